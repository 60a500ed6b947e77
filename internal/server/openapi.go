package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"sort"
	"strings"

	"github.com/baleenrun/baleen/internal/auth"
	"github.com/baleenrun/baleen/internal/server/fields"
)

var pathParam = regexp.MustCompile(`\{([a-z_]+)(\.\.\.)?\}`)

// document writes the OpenAPI document of all routes, for a server that asks for keys or for one that does not.
func (s *Server) document(keys bool) ([]byte, error) {
	paths, schemas := map[string]map[string]any{}, map[string]any{}
	for _, d := range s.dialects {
		s.objects(d, schemas)
	}
	for pattern, list := range s.routes {
		p := strings.ReplaceAll(pattern, "{$}", "")
		p = pathParam.ReplaceAllString(p, "{$1}")
		byMethod := map[string][]entry{}
		for _, e := range list {
			m := strings.ToLower(e.route.Method)
			byMethod[m] = append(byMethod[m], e)
		}
		ops := map[string]any{}
		for m, same := range byMethod {
			ops[m] = operation(same, keys)
		}
		paths[p] = ops
	}
	doc := map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title":       "Baleen",
			"version":     s.o.Version,
			"description": "Language models on this machine, by the APIs of several vendors.",
		},
		"paths": paths,
		"components": map[string]any{
			"schemas": schemas,
			"headers": headerComponents(),
			"securitySchemes": map[string]any{
				"bearer":    map[string]any{"type": "http", "scheme": "bearer"},
				"x_api_key": map[string]any{"type": "apiKey", "in": "header", "name": "x-api-key"},
				"api_key":   map[string]any{"type": "apiKey", "in": "header", "name": "api-key"},
			},
		},
	}
	return json.MarshalIndent(doc, "", " ")
}

// objects adds the objects that a dialect's requests have to a list of schemas, and its error.
func (s *Server) objects(d Dialect, schemas map[string]any) {
	var all []fields.ObjectTable
	for _, r := range d.Routes() {
		all = append(all, r.Objects...)
		if r.Body != nil {
			all = append(all, r.Body)
		}
	}
	known := map[string]bool{}
	for _, o := range all {
		known[o.Title()] = true
	}
	for _, o := range all {
		schemas[schemaName(d, o.Title())] = refer(d, known, fields.Schema(o))
	}
	schemas[schemaName(d, "error")] = fields.AnswerSchema(d.ErrorBody())
}

// schemaName is the name of an object among those of all dialects.
func schemaName(d Dialect, title string) string {
	return d.Name() + "." + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, title)
}

func schemaRef(d Dialect, title string) string {
	return "#/components/schemas/" + schemaName(d, title)
}

// refer replaces the names of objects in a schema by references to them. Names of others are left out.
func refer(d Dialect, known map[string]bool, schema any) any {
	switch v := schema.(type) {
	case map[string]any:
		out := map[string]any{}
		if name, ok := v[fields.ObjectKey].(string); ok && known[name] {
			out["$ref"] = schemaRef(d, name)
			if len(v) == 2 && v["type"] != nil || len(v) == 1 {
				return out
			}
		}
		for k, x := range v {
			if k != fields.ObjectKey {
				out[k] = refer(d, known, x)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = refer(d, known, x)
		}
		return out
	}
	return schema
}

// operation describes one route, or several that share path and method.
func operation(list []entry, keys bool) map[string]any {
	plain := list[len(list)-1] // those with When come first
	r := plain.route
	op := map[string]any{
		"summary": r.Summary, "tags": []string{plain.dialect.Name()}, "operationId": operationID(r), "responses": answers(list),
	}
	var doc []string
	for _, e := range list {
		if e.route.Doc != "" {
			doc = append(doc, e.route.Doc)
		}
	}
	if doc != nil {
		op["description"] = strings.Join(doc, "\n\n")
	}
	if params := parameters(r); params != nil {
		op["parameters"] = params
	}
	if r.Body != nil {
		op["requestBody"] = map[string]any{"required": true, "content": map[string]any{
			"application/json": map[string]any{
				"schema": map[string]any{"$ref": schemaRef(plain.dialect, r.Body.Title())},
			},
		}}
	}
	if r.Upload {
		op["requestBody"] = map[string]any{"content": map[string]any{"application/octet-stream": map[string]any{}}}
	}
	if r.Scope != auth.Public {
		op["security"] = security(keys)
	}
	return op
}

func operationID(r *Route) string {
	p := pathParam.ReplaceAllString(strings.ReplaceAll(r.Path, "{$}", "root"), "by_$1")
	words := strings.FieldsFunc(p, func(c rune) bool { return c == '/' || c == '-' || c == '.' })
	return strings.ToLower(r.Method) + "_" + strings.Join(words, "_")
}

func parameters(r *Route) []any {
	var params []any
	for _, m := range pathParam.FindAllStringSubmatch(r.Path, -1) {
		schema := map[string]any{"type": "string", "minLength": 1}
		if r.PathPattern != "" {
			schema["pattern"] = r.PathPattern
		}
		params = append(params, map[string]any{"name": m[1], "in": "path", "required": true, "schema": schema})
	}
	for _, q := range r.Query {
		params = append(
			params,
			map[string]any{"name": q.Name, "in": "query", "description": q.Doc, "schema": q.Type.Schema()},
		)
	}
	return params
}

// security lists the ways to bring a key. Without keys there is no need to, and any is taken.
func security(keys bool) []any {
	list := []any{
		map[string]any{"bearer": []string{}},
		map[string]any{"x_api_key": []string{}},
		map[string]any{"api_key": []string{}},
	}
	if !keys {
		list = append(list, map[string]any{})
	}
	return list
}

// answers describes what the routes of an operation answer.
func answers(list []entry) map[string]any {
	out := map[string]any{}
	for _, e := range list {
		for status, a := range routeAnswers(e) {
			old, ok := out[status].(map[string]any)
			if !ok {
				out[status] = a
				continue
			}
			mine, _ := a["content"].(map[string]any)
			theirs, _ := old["content"].(map[string]any)
			for media, m := range mine {
				if theirs[media] != nil {
					m = map[string]any{"schema": map[string]any{"anyOf": []any{schemaOf(theirs[media]), schemaOf(m)}}}
				}
				theirs[media] = m
			}
		}
	}
	return out
}

func schemaOf(media any) any { return media.(map[string]any)["schema"] }

func routeAnswers(e entry) map[string]map[string]any {
	r := e.route
	good := map[string]any{"description": "the answer", "headers": headers("X-Request-Id")}
	content := map[string]any{}
	switch {
	case r.Empty:
	case r.Plain:
		content["text/plain"] = map[string]any{"schema": map[string]any{"type": "string"}}
	default:
		content["application/json"] = map[string]any{"schema": fields.AnswerSchema(r.Answer)}
	}
	switch r.Stream {
	case "":
	case eventStream:
		content[r.Stream] = map[string]any{"schema": fields.EventSchema(r.Piece)}
	default:
		content[r.Stream] = map[string]any{"schema": fields.AnswerSchema(r.Piece)}
	}
	if len(content) > 0 {
		good["content"] = content
	}
	out := map[string]map[string]any{"200": good}
	for _, n := range r.statuses() {
		if n < 300 {
			out[fmt.Sprint(n)] = map[string]any{"description": http.StatusText(n), "headers": headers("X-Request-Id")}
			continue
		}
		a := map[string]any{"description": http.StatusText(n)}
		if n == 529 {
			a["description"] = "Overloaded"
		}
		if r.Method != http.MethodHead {
			a["content"] = map[string]any{
				"application/json": map[string]any{"schema": map[string]any{"$ref": schemaRef(e.dialect, "error")}},
			}
		}
		switch n {
		case http.StatusUnauthorized:
			a["headers"] = headers("X-Request-Id", "WWW-Authenticate")
		case http.StatusServiceUnavailable, http.StatusTooManyRequests, 529:
			a["headers"] = headers("X-Request-Id", "Retry-After")
		default:
			a["headers"] = headers("X-Request-Id")
		}
		out[fmt.Sprint(n)] = a
	}
	return out
}

// statuses lists what a route may answer beside 200.
func (r *Route) statuses() []int {
	list := append([]int{http.StatusForbidden}, r.Answers...)
	if r.Scope != auth.Public {
		list = append(list, 401, 429, 500, 503)
	}
	if r.Scope == auth.Infer && r.Body != nil {
		list = append(list, 504)
	}
	if r.Body != nil {
		list = append(list, 400, 408, 413)
	}
	if len(r.Query) > 0 {
		list = append(list, 400)
	}
	if strings.Contains(r.Path, "{") && !strings.Contains(r.Path, "{$}") {
		list = append(list, 404)
	}
	return list
}

func headers(names ...string) map[string]any {
	out := map[string]any{}
	for _, n := range names {
		out[n] = map[string]any{"$ref": "#/components/headers/" + n}
	}
	return out
}

func headerComponents() map[string]any {
	text := map[string]any{"type": "string", "minLength": 1}
	return map[string]any{
		"X-Request-Id": map[string]any{
			"required": true,
			"schema":   text,
			"description": "The request's id in the server's log: the client's own, where it sent a harmless one in " +
				"this header.",
		},
		"WWW-Authenticate": map[string]any{"required": true, "schema": text, "description": "How to bring a key."},
		"Retry-After": map[string]any{
			"required":    true,
			"schema":      map[string]any{"type": "integer", "minimum": 1},
			"description": "Seconds after which it may work.",
		},
	}
}

// Reference writes the page of a dialect's routes and fields.
func Reference(d Dialect) string {
	var b strings.Builder
	fmt.Fprintf(
		&b,
		"# API reference: %s\n\nThis page is generated from the declarations that decode requests.\n",
		d.Name(),
	)
	seen := map[string]bool{}
	var later []fields.ObjectTable
	for _, r := range d.Routes() {
		fmt.Fprintf(&b, "\n## %s %s\n\n%s.\n", r.Method, r.Path, r.Summary)
		if r.Doc != "" {
			fmt.Fprintf(&b, "\n%s\n", r.Doc)
		}
		if r.Scope != auth.Public {
			fmt.Fprintf(&b, "\nScope of the key, where keys are used: `%s`.\n", r.Scope)
		}
		for _, q := range r.Query {
			fmt.Fprintf(&b, "\nQuery parameter `%s` (%s): %s.\n", q.Name, q.Type.Text(), q.Doc)
		}
		if r.Body != nil {
			b.WriteString("\n" + fields.Markdown(r.Body))
			seen[r.Body.Title()] = true
		}
		later = append(later, r.Objects...)
	}
	sort.SliceStable(later, func(i, j int) bool { return later[i].Title() < later[j].Title() })
	if len(later) > 0 {
		b.WriteString("\n## Objects\n")
	}
	for _, o := range later {
		if !seen[o.Title()] {
			seen[o.Title()] = true
			b.WriteString("\n" + fields.Markdown(o))
		}
	}
	return b.String()
}
