package schema

import (
	"errors"
	"strings"
	"testing"
)

// TestRefused holds that what cannot be enforced is an error with the keyword and the place, before any token.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ doc, keyword, path string }{
		{`{"properties":{"a":{"pattern":"(x)\\1"}}}`, "pattern", "/properties/a"},
		{`{"items":{"format":"regex"}}`, "format", "/items"},
		{`{"$ref":"https://example.com/other.json"}`, "$ref", ""},
		{`{"$ref":"#/$defs/none"}`, "$ref", ""},
		{`{"$ref":"#"}`, "$ref", ""},
		{`{"anyOf":[{"$ref":"#"}]}`, "$ref", ""},
		{`{"type":"text"}`, "type", ""},
		{`{"properties":{"a/b":{"minLength":-1}}}`, "minLength", "/properties/a~1b"},
		{`{"minimum":"1"}`, "minimum", ""},
		{`{"multipleOf":0}`, "multipleOf", ""},
		{`{"multipleOf":0.123456789}`, "multipleOf", ""},
		{`{"required":true}`, "required", ""},
		{`{"enum":[]}`, "enum", ""},
		{`{"unevaluatedProperties":false,"allOf":[{"properties":{"a":{}}}]}`, "unevaluatedProperties", ""},
		{`{"type":"string","enum":[1]}`, "schema", ""}, // no value fits
		{`false`, "schema", ""},
		{`{"$defs":{"a":{"type":"object","required":["a"],"properties":{"a":{"$ref":"#/$defs/a"}}}},"$ref":"#/$defs/a"}`, "schema", ""}, // no end
		{`[1]`, "schema", ""},
		{`{"a":`, "schema", ""},
		{`{"minItems":4e9}`, "minItems", ""},
		{`{"$schema":"http://json-schema.org/draft-03/schema#"}`, "$schema", ""},
	} {
		_, err := Compile([]byte(c.doc))
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", c.doc, err)
			continue
		}
		if e.Keyword != c.keyword || e.Path != c.path {
			t.Errorf("%s: %q at %q, want %q at %q (%v)", c.doc, e.Keyword, e.Path, c.keyword, c.path, err)
		}
	}
}

// TestNotes holds that formats which JSON Schema does not define are reported.
func TestNotes(t *testing.T) {
	s, err := Compile([]byte(`{"properties":{"c":{"format":"color"}}}`))
	if err != nil || len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "color at /properties/c") {
		t.Fatalf("%v %v", s, err)
	}
}

// TestBlowUp holds that schemas whose alternatives multiply are refused and do not run away.
func TestBlowUp(t *testing.T) {
	one := `{"oneOf":[` + strings.TrimSuffix(
		strings.Repeat(`{"required":["a"]},{"required":["b"]},{"minProperties":2},`, 20),
		",",
	) + `]}`
	all := `{"allOf":[` + strings.TrimSuffix(
		strings.Repeat(`{"anyOf":[{"pattern":"a.{9}$"},{"pattern":"b.{8}$"},{"pattern":"c.{7}$"}]},`, 12),
		",",
	) + `]}`
	deep := strings.Repeat(`{"not":`, 400) + `{}` + strings.Repeat(`}`, 400)
	nested := strings.Repeat(`[`, 100000)
	for _, doc := range []string{one, all, deep, nested} {
		if _, err := Compile([]byte(doc)); err == nil && doc != deep && doc != all {
			t.Errorf("%.60s… compiled", doc)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{
		`{"type":"object","properties":{"a":{"type":"string","minLength":1}},"required":["a"]}`,
		`{"oneOf":[{"const":1},{"type":"integer","multipleOf":2}],"not":{"enum":[4]}}`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"type":"null"},{"items":{"$ref":"#/$defs/a"}}]}}}`,
		`{"if":{"required":["a"]},"then":{"minProperties":2},"else":{"maxProperties":0}}`,
		`{"patternProperties":{"^a":{"type":"null"}},"additionalProperties":false,"propertyNames":{"maxLength":3}}`,
		`{"contains":{"const":1},"prefixItems":[true,{"type":"string"}],"maxItems":3}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		if len(doc) > 400 {
			return
		}
		s, err := Compile(doc)
		if e := (*Error)(nil); err != nil && !errors.As(err, &e) {
			t.Fatalf("no place in %v", err)
		}
		if err == nil && !s.Alive(s.Root) {
			t.Fatal("a schema without values compiled")
		}
	})
}

// TestHalvesOfCharactersInSchemas: half of a surrogate pair is no text; it is refused by keyword and path instead of being
// taken for U+FFFD.
func TestHalvesOfCharactersInSchemas(t *testing.T) {
	for _, c := range []struct{ schema, keyword, path string }{
		{`{"enum":["\ud800"]}`, "enum", ""},
		{`{"properties":{"a/b":{"anyOf":[{"const":{"x":"\udc00\ud800"}}]}}}`, "x", "/properties/a~1b/anyOf/0/const"},
		{`{"properties":{"\ud83d":{}}}`, "properties", ""},
		{`{"properties":{"a":{"pattern":"\ud83dx"}}}`, "pattern", "/properties/a"},
		{`{"enum":["\ud83d\ude00"]}`, "", ""},
	} {
		_, err := Compile([]byte(c.schema))
		var e *Error
		errors.As(err, &e)
		if c.keyword == "" && err == nil {
			continue
		}
		if e == nil || e.Keyword != c.keyword || e.Path != c.path || !e.Invalid {
			t.Errorf("%s: %v, want %q at %q", c.schema, err, c.keyword, c.path)
		}
	}
}
