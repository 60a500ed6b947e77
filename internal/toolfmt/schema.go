package toolfmt

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

func unmarshal(s string, v any) error { return json.Unmarshal([]byte(s), v) }

// toolInfo is an offered tool with what its schema says of the arguments.
type toolInfo struct {
	name     string
	props    map[string]*prop
	order    []string
	required []string
	open     bool // keys that are not declared are welcome
	silent   bool // open, and nothing is declared: any object fits, so that fitting alone tells little
}

// prop is what a schema says of one value. No types means any.
type prop struct {
	types []string
	enum  []string // of strings
	items *prop
	props map[string]*prop
}

type rawSchema struct {
	Type       json.RawMessage      `json:"type"`
	Enum       []json.RawMessage    `json:"enum"`
	Const      json.RawMessage      `json:"const"`
	Items      json.RawMessage      `json:"items"`
	AnyOf      []json.RawMessage    `json:"anyOf"`
	OneOf      []json.RawMessage    `json:"oneOf"`
	Ref        string               `json:"$ref"`
	AllOf      []json.RawMessage    `json:"allOf"`
	Properties map[string]rawObject `json:"properties"`
	Required   json.RawMessage      `json:"required"`
	Additional json.RawMessage      `json:"additionalProperties"`
}

// rawObject reads any JSON without looking into it.
type rawObject = json.RawMessage

// readProp reads a schema. What it does not understand allows everything.
func readProp(raw json.RawMessage, depth int) *prop {
	p := &prop{}
	var s rawSchema
	if depth > 8 || json.Unmarshal(raw, &s) != nil || s.Ref != "" || len(s.AllOf) > 0 {
		return p
	}
	p.types = typesOf(s.Type)
	alternatives := append(append([]json.RawMessage(nil), s.AnyOf...), s.OneOf...)
	for _, a := range alternatives {
		q := readProp(a, depth+1)
		if len(q.types) == 0 {
			return &prop{}
		}
		p.types = append(p.types, q.types...)
		if q.items != nil {
			p.items = q.items
		}
	}
	for _, e := range s.Enum {
		var v string
		if json.Unmarshal(e, &v) != nil {
			p.enum = nil
			break
		}
		p.enum = append(p.enum, v)
	}
	if len(p.types) == 0 && p.enum != nil {
		p.types = []string{"string"}
	}
	if len(s.Items) > 0 {
		p.items = readProp(s.Items, depth+1)
	}
	for k, v := range s.Properties {
		if p.props == nil {
			p.props = map[string]*prop{}
		}
		p.props[k] = readProp(v, depth+1)
	}
	return p
}

// jsonTypes are the names that a schema can give to types.
var jsonTypes = []string{"string", "number", "integer", "boolean", "array", "object", "null"}

// typesOf reads the types that a schema allows; none where it says nothing or has a name that is no type's.
func typesOf(raw json.RawMessage) []string {
	var many []string
	if json.Unmarshal(raw, &many) != nil {
		var one string
		if json.Unmarshal(raw, &one) != nil {
			return nil
		}
		many = []string{one}
	}
	for i, t := range many {
		many[i] = strings.ToLower(t)
		if !oneOf(many[i], jsonTypes) {
			return nil
		}
	}
	return many
}

func readTool(t Tool) *toolInfo {
	ti := &toolInfo{name: t.Name, props: map[string]*prop{}}
	var s rawSchema
	if len(t.Parameters) == 0 || json.Unmarshal(t.Parameters, &s) != nil {
		ti.open, ti.silent = true, true
		return ti
	}
	for k, v := range s.Properties {
		ti.props[k] = readProp(v, 0)
		ti.order = append(ti.order, k)
	}
	if json.Unmarshal(s.Required, &ti.required) != nil {
		ti.required = nil
	}
	extra := strings.TrimSpace(string(s.Additional))
	ti.open = extra != "" && extra != "false" || s.Ref != "" || len(s.AnyOf)+len(s.OneOf)+len(s.AllOf) > 0
	// A schema that is strict about its properties need not say so, and most do not: what lists none at all is another
	// matter, and so is a type that nobody knows.
	types := &prop{types: typesOf(s.Type)}
	if extra == "" && types.allows("object") && (s.Properties == nil || len(types.types) == 0 && len(s.Type) > 0) {
		ti.open = true
	}
	ti.silent = ti.open && len(ti.props) == 0
	return ti
}

func (p *prop) allows(typ string) bool {
	if len(p.types) == 0 {
		return true
	}
	for _, t := range p.types {
		if t == typ || t == "number" && typ == "integer" {
			return true
		}
	}
	return false
}

// onlyString tells that a value is a string whatever it looks like.
func (p *prop) onlyString() bool {
	for _, t := range p.types {
		if t != "string" && t != "null" {
			return false
		}
	}
	return p.allows("string") && len(p.types) > 0
}

// typeOf names the JSON type of a strict value.
func typeOf(v string) string {
	v = strings.TrimSpace(v)
	if v == "" {
		return ""
	}
	switch v[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	f, err := strconv.ParseFloat(v, 64)
	if err == nil && f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return "integer"
	}
	return "number"
}

// coerce gives a value the declared type where it can have one meaning only: "5" for 5, "true" for true, JSON
// in a string for an array or object, 7 for "7", another case of an enum's word. Anything else stays.
func (p *prop) coerce(v string) string {
	typ := typeOf(v)
	if p.allows(typ) {
		switch typ {
		case "string":
			return p.enumCase(v)
		case "integer":
			if !isPlainInteger(v) && !p.allows("number") {
				return asInteger(v)
			}
		case "array":
			return p.coerceItems(v)
		case "object":
			return p.coerceMembers(v)
		}
		return v
	}
	switch typ {
	case "string":
		s, ok := unquote([]byte(v))
		if !ok {
			return v
		}
		return p.fromText(s, v)
	case "integer", "number", "boolean":
		if p.allows("string") {
			return quote(v)
		}
	}
	return v
}

func isPlainInteger(v string) bool { return !strings.ContainsAny(v, ".eE") }

func asInteger(v string) string {
	f, err := strconv.ParseFloat(v, 64)
	if err != nil {
		return v
	}
	return strconv.FormatFloat(f, 'f', 0, 64)
}

// fromText reads text as a value of a type other than string, or returns otherwise.
func (p *prop) fromText(s, otherwise string) string {
	t := strings.TrimSpace(s)
	if t == "" {
		return otherwise
	}
	if t[0] == '{' || t[0] == '[' {
		if r, ok := relax(t); ok && p.allows(typeOf(r)) {
			return p.coerce(r)
		}
		return otherwise
	}
	lit, ok := literal(t)
	if !ok && (strings.EqualFold(t, "true") || strings.EqualFold(t, "false")) {
		lit, ok = strings.ToLower(t), true
	}
	if ok && p.allows(typeOf(lit)) {
		return lit
	}
	return otherwise
}

// enumCase replaces a string by the one word of the enum that differs from it only in case.
func (p *prop) enumCase(v string) string {
	if len(p.enum) == 0 {
		return v
	}
	s, ok := unquote([]byte(v))
	if !ok {
		return v
	}
	found := ""
	for _, e := range p.enum {
		if e == s {
			return v
		}
		if strings.EqualFold(e, strings.TrimSpace(s)) {
			if found != "" {
				return v
			}
			found = quote(e)
		}
	}
	if found != "" {
		return found
	}
	return v
}

func (p *prop) coerceItems(v string) string {
	if p.items == nil || len(p.items.types) == 0 {
		return v
	}
	var items []json.RawMessage
	if unmarshal(v, &items) != nil {
		return v
	}
	changed := false
	parts := make([]string, len(items))
	for i, it := range items {
		parts[i] = p.items.coerce(string(it))
		changed = changed || parts[i] != string(it)
	}
	if !changed {
		return v
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func (p *prop) coerceMembers(v string) string {
	if len(p.props) == 0 {
		return v
	}
	ms, ok := members(v)
	if !ok {
		return v
	}
	changed := false
	for i, m := range ms {
		q := p.props[m.key]
		if q == nil {
			continue
		}
		ms[i].value = q.coerce(m.value)
		changed = changed || ms[i].value != m.value
	}
	if !changed {
		return v
	}
	return object(ms)
}

// valid tells whether a value can be meant by the schema, as far as types go.
func (p *prop) valid(v string) bool {
	typ := typeOf(v)
	if !p.allows(typ) {
		return false
	}
	if typ == "array" && p.items != nil {
		var items []json.RawMessage
		if unmarshal(v, &items) != nil {
			return false
		}
		for _, it := range items {
			if !p.items.valid(string(it)) {
				return false
			}
		}
	}
	return true
}

// key returns the declared spelling of an argument's name: itself, or the only declared one that differs just
// in case and separators.
func (t *toolInfo) key(k string) string {
	if t.props[k] != nil {
		return k
	}
	found, want := "", squash(k)
	for _, name := range t.order {
		if squash(name) == want {
			if found != "" {
				return k
			}
			found = name
		}
	}
	if found != "" && want != "" {
		return found
	}
	return k
}

// arguments returns the arguments of a call in the declared spelling and types. raw is strict JSON: an object,
// a string that holds one, or null.
func (t *toolInfo) arguments(raw string) ([]member, bool) {
	raw = strings.TrimSpace(raw)
	if raw == "" || raw == "null" {
		return nil, true
	}
	if raw[0] == '"' {
		s, ok := unquote([]byte(raw))
		if !ok {
			return nil, false
		}
		if s = strings.TrimSpace(s); s == "" {
			return nil, true
		}
		if raw, ok = relax(s); !ok || raw[0] != '{' {
			return nil, false
		}
	}
	if raw[0] == '[' { // an object alone in a list
		var items []json.RawMessage
		if unmarshal(raw, &items) != nil || len(items) != 1 {
			return nil, false
		}
		raw = strings.TrimSpace(string(items[0]))
	}
	if raw == "" || raw[0] != '{' {
		return nil, false
	}
	ms, ok := members(raw)
	if !ok {
		return nil, false
	}
	return t.shape(ms), true
}

// shape gives members their declared names and types. Two members never get the same name.
func (t *toolInfo) shape(ms []member) []member {
	taken := map[string]bool{}
	for _, m := range ms {
		taken[m.key] = true
	}
	for i, m := range ms {
		if k := t.key(m.key); k != m.key && !taken[k] {
			taken[k] = true
			ms[i].key = k
		}
		if p := t.props[ms[i].key]; p != nil {
			ms[i].value = p.coerce(m.value)
		}
	}
	return ms
}

// fits tells whether arguments are what the tool declares: no others, all that are required, of the types.
func (t *toolInfo) fits(ms []member) bool {
	have := map[string]bool{}
	for _, m := range ms {
		p := t.props[m.key]
		if p == nil {
			if !t.open {
				return false
			}
			continue
		}
		have[m.key] = true
		if !p.valid(m.value) {
			if typeOf(m.value) == "null" && !t.requires(m.key) {
				continue
			}
			return false
		}
	}
	for _, r := range t.required {
		if !have[r] {
			return false
		}
	}
	return true
}

func (t *toolInfo) requires(key string) bool {
	for _, r := range t.required {
		if r == key {
			return true
		}
	}
	return false
}

// isSchema tells whether arguments are really a definition that the model repeats.
func (t *toolInfo) isSchema(ms []member) bool {
	typ, props := false, false
	for _, m := range ms {
		switch {
		case m.key == "type" && t.props["type"] == nil:
			typ = m.value == `"object"`
		case m.key == "properties" && t.props["properties"] == nil:
			props = typeOf(m.value) == "object"
		}
	}
	return typ && props
}
