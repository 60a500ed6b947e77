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

// document writes the OpenAPI document of all routes.
func (s *Server) document() ([]byte, error) {
	paths, schemas := map[string]map[string]any{}, map[string]any{}
	for _, d := range s.dialects {
		s.objects(d, schemas)
	}
	for pattern, list := range s.routes {
		p := strings.ReplaceAll(pattern, "{$}", "")
		p = pathParam.ReplaceAllString(p, "{$1}")
		ops := map[string]any{}
		for _, e := range list {
			m := strings.ToLower(e.route.Method)
			if _, twice := ops[m]; !twice || e.route.When == nil { // the plain form is the documented one
				ops[m] = operation(e)
			}
		}
		paths[p] = ops
	}
	doc := map[string]any{
		"openapi": "3.1.0",
		"info":    map[string]any{"title": "Baleen", "version": s.o.Version, "description": "Language models on this machine, by the APIs of several vendors."},
		"paths":   paths,
		"components": map[string]any{"schemas": schemas, "securitySchemes": map[string]any{
			"bearer": map[string]any{"type": "http", "scheme": "bearer"},
			"key":    map[string]any{"type": "apiKey", "in": "header", "name": "x-api-key"},
		}},
	}
	return json.MarshalIndent(doc, "", " ")
}

// objects adds the objects that a dialect's requests have to a list of schemas.
func (s *Server) objects(d Dialect, schemas map[string]any) {
	known := map[string]bool{}
	for _, r := range d.Routes() {
		for _, o := range r.Objects {
			known[o.Title()] = true
		}
	}
	for _, r := range d.Routes() {
		for _, o := range r.Objects {
			schemas[schemaName(d, o.Title())] = refer(d, known, fields.Schema(o))
		}
	}
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

// refer replaces the names of objects in a schema by references to them. Names of others are left out.
func refer(d Dialect, known map[string]bool, schema any) any {
	switch v := schema.(type) {
	case map[string]any:
		if name, ok := v[fields.ObjectKey].(string); ok && known[name] {
			return map[string]any{"$ref": "#/components/schemas/" + schemaName(d, name)}
		}
		out := map[string]any{}
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

func operation(e entry) map[string]any {
	r := e.route
	media := "application/json"
	if r.Plain {
		media = "text/plain"
	}
	content := map[string]any{media: map[string]any{}}
	if r.Stream != "" {
		content[r.Stream] = map[string]any{}
	}
	answers := map[string]any{"200": map[string]any{"description": "the answer", "content": content}}
	status := append([]int{403}, r.Answers...)
	if r.Scope != auth.Public {
		status = append(status, 401, 429, 500, 503, 504)
	}
	if r.Body != nil {
		status = append(status, 400, 413)
	}
	for _, n := range status {
		answers[fmt.Sprint(n)] = map[string]any{"description": http.StatusText(n), "content": map[string]any{"application/json": map[string]any{}, "text/plain": map[string]any{}}}
	}
	op := map[string]any{"summary": r.Summary, "tags": []string{e.dialect.Name()}, "responses": answers}
	if r.Doc != "" {
		op["description"] = r.Doc
	}
	var params []any
	for _, m := range pathParam.FindAllStringSubmatch(r.Path, -1) {
		params = append(params, map[string]any{"name": m[1], "in": "path", "required": true, "schema": map[string]any{"type": "string", "minLength": 1}})
	}
	for _, q := range r.Query {
		params = append(params, map[string]any{"name": q.Name, "in": "query", "description": q.Doc, "schema": q.Type.Schema()})
	}
	if params != nil {
		op["parameters"] = params
	}
	if r.Body != nil {
		known := map[string]bool{}
		for _, o := range r.Objects {
			known[o.Title()] = true
		}
		op["requestBody"] = map[string]any{"required": true, "content": map[string]any{"application/json": map[string]any{"schema": refer(e.dialect, known, fields.Schema(r.Body))}}}
	}
	if r.Scope != auth.Public {
		op["security"] = []any{map[string]any{"bearer": []string{}}, map[string]any{"key": []string{}}, map[string]any{}}
	}
	return op
}

// Reference writes the page of a dialect's routes and fields.
func Reference(d Dialect) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# API reference: %s\n\nThis page is generated from the declarations that decode requests.\n", d.Name())
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
