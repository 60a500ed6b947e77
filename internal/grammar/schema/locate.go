package schema

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// An Error says which keyword of a schema cannot be enforced, or is wrong, and where.
type Error struct {
	Keyword string // "format", "$ref"…
	Path    string // JSON pointer to the schema that has it: "/properties/a"
	Reason  string
	Invalid bool // the schema is wrong; otherwise it is right, but cannot be enforced exactly
}

func (e *Error) Error() string {
	at := e.Path
	if at == "" {
		at = "the root"
	}
	if e.Invalid {
		return fmt.Sprintf("schema: %q at %s: %s", e.Keyword, at, e.Reason)
	}
	return fmt.Sprintf("schema: %q at %s cannot be enforced exactly: %s", e.Keyword, at, e.Reason)
}

// Drafts, as far as they differ.
const (
	draft4 = 4
	draft6 = 6
	draft7 = 7
	d2019  = 2019
	d2020  = 2020
)

// A sub is one schema of the document, or one made from a constant.
type sub struct {
	v     *value
	path  string
	base  string // URI that references are relative to
	draft int
	mixed bool // no $schema: the keywords of all drafts count
}

// before reports whether the sub's draft is older than d, or may be, as nobody says which it is.
func (s *sub) before(d int) bool { return s.mixed || s.draft < d }

func (s *sub) since(d int) bool { return s.mixed || s.draft >= d }

func (s *sub) fail(keyword, reason string, args ...any) error {
	return &Error{Keyword: keyword, Path: s.path, Reason: fmt.Sprintf(reason, args...)}
}

func (s *sub) invalid(keyword, reason string, args ...any) error {
	return &Error{Keyword: keyword, Path: s.path, Reason: fmt.Sprintf(reason, args...), Invalid: true}
}

// document finds schemas: by place, by $id, by anchor.
type document struct {
	subs    []*sub
	number  map[*value]int32 // schema → index in subs
	byID    map[string]*value
	anchors map[string]*value // "uri#name"
	dynamic map[string]int    // how many $dynamicAnchors have a name
	wrapped map[*value]*value // constant → {"const": constant}
}

func draftOf(uri string) int {
	uri = strings.TrimSuffix(uri, "#")
	for name, d := range map[string]int{
		"draft-04/schema": draft4, "draft-06/schema": draft6, "draft-07/schema": draft7,
		"draft/2019-09/schema": d2019, "draft/2020-12/schema": d2020,
	} {
		if strings.HasSuffix(uri, "json-schema.org/"+name) {
			return d
		}
	}
	return 0
}

func newDocument(root *value) (*document, error) {
	d := &document{
		number: map[*value]int32{}, byID: map[string]*value{}, anchors: map[string]*value{},
		dynamic: map[string]int{},
	}
	draft, mixed := d2020, true
	if s := root.get("$schema"); s != nil && s.kind == text {
		if n := draftOf(s.str); n != 0 {
			draft, mixed = n, false
		} else if strings.Contains(s.str, "json-schema.org/draft-0") {
			return nil, &Error{Keyword: "$schema", Reason: "only draft-04 and later are read", Invalid: true}
		}
	}
	d.byID[""] = root
	d.walk(root, "", "", draft, mixed, 0)
	return d, nil
}

// Where schemas stand below a schema.
var (
	holdsSchema = keywords("additionalProperties not if then else contains propertyNames additionalItems " +
		"unevaluatedItems unevaluatedProperties items contentSchema")
	holdsSchemas = keywords("allOf anyOf oneOf prefixItems items")
	holdsMap     = keywords("properties patternProperties definitions $defs dependentSchemas dependencies")
)

func keywords(list string) map[string]bool {
	m := map[string]bool{}
	for _, k := range strings.Fields(list) {
		m[k] = true
	}
	return m
}

func escapePointer(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// walk numbers the schemas below v and notes their names.
func (d *document) walk(v *value, path, base string, draft int, mixed bool, depth int) {
	if v.kind != object && v.kind != boolean || depth > maxNesting {
		return
	}
	if _, ok := d.number[v]; ok {
		return
	}
	s := &sub{v: v, path: path, base: base, draft: draft, mixed: mixed}
	d.number[v] = int32(len(d.subs))
	d.subs = append(d.subs, s)
	if v.kind == boolean {
		return
	}
	if x := v.get("$schema"); x != nil && x.kind == text && path != "" {
		if n := draftOf(x.str); n != 0 {
			s.draft, s.mixed = n, false
		}
	}
	ref := v.get("$ref") != nil && !s.since(d2019)
	for _, k := range []string{"$id", "id"} {
		id := v.get(k)
		if id == nil || id.kind != text || ref || k == "id" && s.draft != draft4 || k == "$id" && s.draft == draft4 {
			continue
		}
		if name, ok := strings.CutPrefix(id.str, "#"); ok {
			if s.before(d2019) {
				d.anchors[base+"#"+name] = v
			}
			continue
		}
		uri := resolveURI(base, id.str)
		full, name, _ := strings.Cut(uri, "#")
		s.base = full
		if name != "" && s.before(d2019) {
			d.anchors[full+"#"+name] = v
		}
		if _, ok := d.byID[full]; !ok {
			d.byID[full] = v
		}
	}
	for _, k := range []string{"$anchor", "$dynamicAnchor"} {
		if a := v.get(k); a != nil && a.kind == text && s.since(d2019) {
			d.anchors[s.base+"#"+a.str] = v
			if k == "$dynamicAnchor" {
				d.dynamic[a.str]++
			}
		}
	}
	for i, k := range v.keys {
		x := v.items[i]
		at := path + "/" + escapePointer(k)
		if holdsSchema[k] {
			d.walk(x, at, s.base, s.draft, s.mixed, depth+1)
		}
		if holdsSchemas[k] && x.kind == array {
			for j, y := range x.items {
				d.walk(y, at+"/"+strconv.Itoa(j), s.base, s.draft, s.mixed, depth+1)
			}
		}
		if holdsMap[k] && x.kind == object {
			for j, y := range x.items {
				d.walk(y, at+"/"+escapePointer(x.keys[j]), s.base, s.draft, s.mixed, depth+1)
			}
		}
	}
}

func resolveURI(base, ref string) string {
	r, err := url.Parse(ref)
	if err != nil {
		return ref
	}
	b, err := url.Parse(base)
	if err != nil {
		return ref
	}
	return b.ResolveReference(r).String()
}

// sub returns the number of the schema v, which stands at path below s.
func (d *document) sub(s *sub, v *value, path string) (int32, error) {
	if n, ok := d.number[v]; ok {
		return n, nil
	}
	if v.kind != object && v.kind != boolean {
		keyword := path[strings.LastIndexByte(path, '/')+1:]
		return 0, &Error{Keyword: keyword, Path: s.path, Reason: "must be a schema", Invalid: true}
	}
	d.walk(v, path, s.base, s.draft, s.mixed, 0)
	return d.number[v], nil
}

// made adds a schema that stands nowhere in the document.
func (d *document) made(s *sub, v *value) int32 {
	d.number[v] = int32(len(d.subs))
	d.subs = append(d.subs, &sub{v: v, path: s.path, base: s.base, draft: d2020})
	return d.number[v]
}

// resolve finds what a reference names.
func (d *document) resolve(s *sub, keyword, ref string) (int32, error) {
	uri := ref
	if !strings.HasPrefix(ref, "#") {
		uri = resolveURI(s.base, ref)
	} else {
		uri = s.base + ref
	}
	doc, fragment, _ := strings.Cut(uri, "#")
	root, ok := d.byID[doc]
	if !ok {
		return 0, s.fail(keyword, "%q is not part of this document, and nothing is fetched", ref)
	}
	if plain, err := url.PathUnescape(fragment); err == nil {
		fragment = plain
	}
	switch {
	case fragment == "":
		return d.sub(s, root, "")
	case fragment[0] != '/':
		v, ok := d.anchors[doc+"#"+fragment]
		if !ok {
			return 0, s.invalid(keyword, "no schema has the name %q", ref)
		}
		return d.number[v], nil
	}
	v, at := root, d.subs[d.number[root]]
	path := at.path
	for _, token := range strings.Split(fragment[1:], "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		path += "/" + escapePointer(token)
		var next *value
		switch v.kind {
		case object:
			next = v.get(token)
		case array:
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(v.items) {
				next = v.items[i]
			}
		}
		if next == nil {
			return 0, s.invalid(keyword, "%q leads nowhere", ref)
		}
		v = next
		if n, ok := d.number[v]; ok {
			at = d.subs[n]
		}
	}
	return d.sub(at, v, path)
}

func (d *document) constants() map[*value]*value {
	if d.wrapped == nil {
		d.wrapped = map[*value]*value{}
	}
	return d.wrapped
}
