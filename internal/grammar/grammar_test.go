package grammar

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schemas with instances, compared with the validator as they stand and mutated. Each row holds a kind of keyword.
var schemas = []struct {
	name, schema string
	instances    []string
}{
	{"types", `{"type":["integer","null","boolean"]}`, []string{`1`, `1.5`, `null`, `true`, `"a"`, `[]`, `{}`}},
	{
		"bounds",
		`{"type":"number","minimum":-2.5,"exclusiveMaximum":10,"multipleOf":0.5}`,
		[]string{`-2.5`, `9.5`, `10`, `-3`, `0.25`},
	},
	{"integers", `{"type":"integer","minimum":-15,"maximum":1200}`, []string{`-15`, `-16`, `1200`, `1201`, `0`, `999`}},
	{
		"enum",
		`{"enum":["a",1,2.50,null,{"a":[1]},[true]]}`,
		[]string{`"a"`, `1`, `2.5`, `null`, `{"a":[1]}`, `[true]`, `"b"`, `[false]`},
	},
	{
		"strings",
		`{"type":"string","minLength":2,"maxLength":4}`,
		[]string{`"ab"`, `"a"`, `"abcd"`, `"abcde"`, `"😀é"`, `"\n\""`},
	},
	{
		"pattern and length",
		`{"type":"string","pattern":"^(ab)*c?$","minLength":3,"maxLength":6}`,
		[]string{`"ab"`, `"abc"`, `"abababc"`, `"ababab"`},
	},
	{"format", `{"format":"date"}`, []string{`"2024-02-29"`, `"2023-02-29"`, `1`}},
	{
		"object",
		`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["b"],"additionalProperties":false}`,
		[]string{`{"a":1,"b":"x"}`, `{"b":"x"}`, `{"a":1}`, `{"b":"x","c":1}`},
	},
	{
		"patterns of keys",
		`{"properties":{"ab":{"type":"null"}},"patternProperties":{"^a":{"type":["integer","null"]},"b$":{"type":["boolean","null"]}},"additionalProperties":{"type":"string"}}`,
		[]string{`{"ab":null}`, `{"axb":null,"a":1,"b":true,"c":"x"}`, `{"ab":1}`, `{"axb":1}`},
	},
	{
		"propertyNames",
		`{"propertyNames":{"pattern":"^[a-c]+$","maxLength":2},"required":["a"]}`,
		[]string{`{"a":1,"bc":2}`, `{"a":1,"d":2}`, `{"a":1,"abc":2}`},
	},
	{
		"counts",
		`{"minProperties":2,"maxProperties":3,"properties":{"a":{"type":"integer"}}}`,
		[]string{`{"a":1,"b":2}`, `{"a":1}`, `{"b":1,"c":2,"d":3}`, `{"a":1,"b":2,"c":3,"d":4}`},
	},
	{
		"arrays",
		`{"prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":"boolean"},"minItems":1,"maxItems":4}`,
		[]string{`[1]`, `[1,"a",true]`, `[1,"a",true,false,true]`, `[]`, `["a"]`},
	},
	{
		"contains",
		`{"type":"array","contains":{"type":"integer"},"minContains":2,"maxContains":3,"items":{"type":["integer","string"]}}`,
		[]string{`[1,"a",2]`, `[1]`, `[1,2,3,4]`, `["a","b",1,2,3]`},
	},
	{"contains and maxItems", `{"contains":{"const":1},"maxItems":2}`, []string{`[1]`, `[2,1]`, `[2,3]`, `[2,3,1]`}},
	{
		"anyOf",
		`{"anyOf":[{"type":"object","required":["a"],"properties":{"a":{"type":"integer"}}},{"type":"object","required":["b"],"properties":{"a":{"type":"string"}}}]}`,
		[]string{`{"a":1}`, `{"b":1,"a":"x"}`, `{"a":"x"}`, `{"b":1,"a":1}`},
	},
	{
		"oneOf that overlap",
		`{"oneOf":[{"required":["a"]},{"required":["b"]}]}`,
		[]string{`{"a":1}`, `{"b":1}`, `{"a":1,"b":1}`, `{}`},
	},
	{"oneOf of numbers", `{"oneOf":[{"type":"integer"},{"minimum":2}]}`, []string{`1`, `2`, `2.5`, `3`, `"a"`, `1.5`}},
	{
		"oneOf three",
		`{"oneOf":[{"multipleOf":2},{"multipleOf":3},{"multipleOf":5}],"type":"integer"}`,
		[]string{`2`, `3`, `5`, `6`, `30`, `7`, `10`},
	},
	{
		"not",
		`{"not":{"type":"object","properties":{"a":{"const":1}},"required":["a"]}}`,
		[]string{`{"a":1}`, `{"a":2}`, `{}`, `1`},
	},
	{
		"not additional",
		`{"type":"object","not":{"properties":{"a":{}},"additionalProperties":false}}`,
		[]string{`{"a":1}`, `{"b":1}`, `{"a":1,"c":1}`, `{}`},
	},
	{"not items", `{"type":"array","not":{"items":{"type":"integer"}}}`, []string{`[]`, `[1]`, `[1,"a"]`, `["a"]`}},
	{
		"not a constant",
		`{"type":["object","array"],"not":{"enum":[{"a":1},[1,2]]}}`,
		[]string{`{"a":1}`, `{"a":2}`, `{"a":1,"b":1}`, `[1,2]`, `[1]`, `[1,2,3]`, `[2,1]`},
	},
	{
		"if",
		`{"if":{"properties":{"k":{"const":"x"}},"required":["k"]},"then":{"required":["v"]},"else":{"maxProperties":1}}`,
		[]string{`{"k":"x","v":1}`, `{"k":"x"}`, `{"k":"y"}`, `{"k":"y","v":1}`, `{}`},
	},
	{
		"dependencies",
		`{"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"properties":{"d":{"type":"null"}}}}}`,
		[]string{`{"a":1,"b":1}`, `{"a":1}`, `{"c":1,"d":null}`, `{"c":1,"d":1}`},
	},
	{
		"allOf",
		`{"allOf":[{"properties":{"a":{"minimum":2}}},{"properties":{"a":{"maximum":4},"b":{"type":"string"}},"required":["a"]}]}`,
		[]string{`{"a":3}`, `{"a":1}`, `{"a":5}`, `{"b":"x"}`},
	},
	{
		"recursion",
		`{"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","properties":{"v":{"type":"integer"},"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["v"],"additionalProperties":false}}}`,
		[]string{`{"v":1,"kids":[{"v":2,"kids":[]},{"v":3}]}`, `{"v":1,"kids":[{"kids":[]}]}`},
	},
	{
		"unique strings",
		`{"type":"array","uniqueItems":true,"items":{"type":["string","number","null"]},"minItems":1}`,
		[]string{
			`["a","b"]`,
			`["a","a"]`,
			`[1,1.5,null]`,
			`[1,1]`,
			`[]`,
			`["é","è","日本","日"]`,
			`["a\n","a\\n","\""]`,
			`[12,1,2,12]`,
		},
	},
	{
		"unique choices",
		`{"type":"array","uniqueItems":true,"items":{"enum":["a","b",true,3]},"minItems":3}`,
		[]string{`["a","b",3]`, `["a","b","a"]`, `["a","b",3,true]`, `["a","b"]`},
	},
	{
		"unique and bounded",
		`{"type":"array","uniqueItems":true,"items":{"type":"string","maxLength":2},"maxItems":4}`,
		[]string{`["a","ab",""]`, `["abc"]`, `["a","a"]`, `["a","b","c","d","e"]`},
	},
	{
		"names of schemas",
		`{"$id":"https://x.test/root","items":{"$ref":"item#num"},"$defs":{"i":{"$id":"item","$defs":{"n":{"$anchor":"num","type":"number"}}}}}`,
		[]string{`[1]`, `["a"]`},
	},
	{"booleans", `{"properties":{"a":true,"b":false}}`, []string{`{"a":1}`, `{"b":1}`}},
	{
		"nested alternatives",
		`{"$defs":{"n":{"anyOf":[{"properties":{"x":{"$ref":"#/$defs/n"},"a":{"type":"integer"}},"required":["a"]},{"properties":{"x":{"$ref":"#/$defs/n"},"b":{"type":"integer"}},"required":["b"]}]}},"$ref":"#/$defs/n"}`,
		[]string{`{"x":{"x":{"x":{"a":1},"b":1},"a":1},"b":1}`, `{"x":{"x":{"c":1},"b":1},"a":1}`},
	},
	{
		"key with any letters",
		`{"properties":{"é\"\n":{"type":"null"}},"additionalProperties":false}`,
		[]string{`{"é\"\n":null}`, `{"é":null}`},
	},
}

// TestAgainstValidator compares every schema's answers with santhosh-tekuri/jsonschema's.
func TestAgainstValidator(t *testing.T) {
	for _, c := range schemas {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(c.name, []byte(c.schema), jsonschema.Draft2020)
			if p.failed != nil || p.plain == nil {
				t.Fatal(p.failed)
			}
			r := rand.New(rand.NewPCG(3, 3))
			var tally tally
			yes := 0
			for _, src := range c.instances {
				v := decode(t, src)
				tally.check(p, v)
				if ok, _ := answer(p.full, spell(v)); ok {
					yes++
				}
				for range 60 {
					v = mutate(r, decode(t, src))
					tally.check(p, v)
					tally.check(p, mutate(r, v))
				}
			}
			if yes == 0 || yes == len(c.instances) {
				t.Errorf("%d of %d instances fit: the row holds nothing", yes, len(c.instances))
			}
			for _, e := range append(tally.examples, tally.formats...) {
				t.Error(e)
			}
		})
	}
}

// TestOrderAndBlanks holds where blanks may stand and in which order keys come, by option.
func TestOrderAndBlanks(t *testing.T) {
	const doc = `{"properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["b"]}`
	for _, c := range []struct {
		text                        string
		usual, compact, free, order bool
	}{
		{`{"a":1,"b":2}`, true, true, true, true},
		{`{"a": 1, "b": 2}`, true, false, true, true},
		{"{\n  \"a\": 1,\n  \"b\": 2\n}", true, false, true, true},
		{"{\n\t\"a\": 1,\n\t\"b\": 2\n}", true, false, true, true},
		{`{"a" : 1 , "b":2}`, false, false, true, true},
		{`{"b":2,"a":1}`, false, false, false, true},
		{`{"b":2,"x":1,"a":1}`, false, false, false, true},
		{`{"b":2,"b":1}`, false, false, false, false},
		{`{"a":1,"b":2,"x":1,"y":null}`, true, true, true, true},
		{`{"a":1,"x":1,"b":2}`, false, false, false, true},
		{` {"b":1}`, false, false, false, false},
		{`{"b":1} `, false, false, false, false},
	} {
		for _, o := range []struct {
			options Options
			want    bool
		}{
			{Options{}, c.usual},
			{Options{Whitespace: Compact}, c.compact},
			{Options{Whitespace: Free}, c.free},
			{Options{Whitespace: Free, AnyOrder: true}, c.order},
		} {
			g, err := JSONSchema([]byte(doc), o.options)
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := answer(g, c.text); got != o.want {
				t.Errorf("%+v on %q: %v", o.options, c.text, got)
			}
		}
	}
	g, err := JSON(false, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{`{"a":[1,{"b":null}],"c":"\u00e9\ud83d\ude00"}`: true, `[]`: false, `{"a":"\ud83d"}`: false} {
		if got, _ := answer(g, text); got != want {
			t.Errorf("any object: %s: %v", text, got)
		}
	}
}

func TestForced(t *testing.T) {
	g, err := JSONSchema(
		[]byte(
			`{"type":"object","properties":{"name":{"const":"x"},"kind":{"enum":["ab","ac"]}},"required":["name","kind"],"additionalProperties":false}`,
		),
		Options{Whitespace: Compact},
	)
	if err != nil {
		t.Fatal(err)
	}
	m := g.Matcher()
	if got := string(m.Forced()); got != `{"name":"x","kind":"a` {
		t.Fatalf("forced %q", got)
	}
	after, ok, err := m.Accept([]byte(`{"name":"x","kind":"ab`))
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	if got := string(after.Forced()); got != `"}` {
		t.Fatalf("forced %q", got)
	}
	if _, ok, _ := m.Accept([]byte(`{"name":"y`)); ok {
		t.Fatal("a matcher that was kept has moved")
	}
	end, _, _ := after.Accept([]byte(`"}`))
	if !end.Accepting() || !end.Done() || after.Accepting() {
		t.Fatal("where the text may end")
	}
}

// testTokens is a small vocabulary with the difficult kinds of tokens: every byte, tokens across the borders of
// strings and of values, parts of characters, runs of blanks.
func testTokens() [][]byte {
	var tokens [][]byte
	for b := range 256 {
		tokens = append(tokens, []byte{byte(b)})
	}
	for _, s := range []string{
		`"`, `":`, `": `, `":"`, `","`, `"}`, `"}]`, `"},{"`, `{"`, `[{"`, `[[`, `]]`, `]}`, `}}`, `,"`, `, "`, `:{"`, `:[`, `":["`,
		`""`, `"":`, `":"","`, `\"`, `\\`, `\n`, `\u00`, `\ud83d`, `\ude00`, `null`, `true`, `false`, `nul`, `l,`, `e}`, `12`, `1,2`, `0.5`,
		`-1`, `00`, `1e5`, `abc`, `ab`, `name`, `value`, ` the`, ` `, `  `, "\n", "\n  ", "\n    \"", `é`, "\xc3", "\xa9\"", "😀", "\xf0\x9f",
		"\x98\x80", "日本", "日\"", `a","b`, `a":1,"b":2}`, `2024-01-`, `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa`, `kids`, `x`,
	} {
		tokens = append(tokens, []byte(s))
	}
	return append(tokens, nil, []byte("<end>"), []byte(`"`)) // no text, an end token, and the same bytes again
}

// checkMask compares a mask with trying every token.
func checkMask(t *testing.T, k *Masker, m Matcher, mask []uint64, where string) (allowed []int32) {
	t.Helper()
	if err := k.Mask(m, mask); err != nil {
		t.Fatal(where, err)
	}
	for id := range k.v.tokens {
		got := mask[id>>6]>>(id&63)&1 == 1
		_, want, err := k.AcceptToken(m, int32(id))
		if err != nil {
			t.Fatal(where, err)
		}
		if got != want {
			t.Fatalf("%s: token %d %q: mask %v, tried %v", where, id, k.v.tokens[id], got, want)
		}
		if want {
			allowed = append(allowed, int32(id))
		}
	}
	return allowed
}

// TestMasks samples documents by masks alone. Every mask is that of trying all tokens, no place is without a way on,
// and what comes out fits the schema by the validator's answer.
func TestMasks(t *testing.T) {
	tokens := testTokens()
	end := int32(len(tokens) - 2)
	v, err := NewVocabulary(tokens, []int32{end})
	if err != nil {
		t.Fatal(err)
	}
	mask := make([]uint64, v.Words())
	r := rand.New(rand.NewPCG(5, 5))
	for _, c := range schemas {
		for _, o := range []Options{{}, {Whitespace: Compact, AnyOrder: true}, {Whitespace: Free}} {
			g, err := JSONSchema([]byte(c.schema), o)
			if err != nil {
				t.Fatal(err)
			}
			want, err := validator([]byte(c.schema), jsonschema.Draft2020, true)
			if err != nil {
				t.Fatal(err)
			}
			k := NewMasker(g, v)
			complete := 0
			for range 6 {
				m := g.Matcher()
				var text []byte
				for step := range 60 {
					where := fmt.Sprintf("%s %+v after %q", c.name, o, text)
					allowed := checkMask(t, k, m, mask, where)
					if len(allowed) == 0 {
						t.Fatalf("%s: nothing may follow", where)
					}
					id := allowed[r.IntN(len(allowed))]
					if step > 15 { // bring it to an end: prefer what closes
						closing := []byte("}]\",:")
						for _, a := range allowed {
							if a == end || slices.Contains(closing, tokens[a][0]) && r.IntN(3) > 0 {
								id = a
								break
							}
						}
					}
					if id == end {
						complete++
						if !json.Valid(text) {
							t.Fatalf("%s: no JSON", where)
						}
						if err := want.Validate(decode(t, string(text))); err != nil {
							t.Fatalf("%s: %v", where, err)
						}
						break
					}
					next, ok, err := k.AcceptToken(m, id)
					if !ok || err != nil {
						t.Fatal(where, ok, err)
					}
					m = next
					text = append(text, tokens[id]...)
				}
			}
			if complete == 0 && c.name != "nested alternatives" {
				t.Logf("%s %+v: no sample came to an end", c.name, o)
			}
		}
	}
}

func TestRegexAndChoices(t *testing.T) {
	re, err := Regex(`(?:yes|no), \d{1,3} é+`, ECMA)
	if err != nil {
		t.Fatal(err)
	}
	choices, err := Choices([]string{"red", "green", "red wine"})
	if err != nil {
		t.Fatal(err)
	}
	re2, err := Regex(`(?i)ok\z`, RE2)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		g       *Grammar
		yes, no string
	}{
		{re, "yes, 12 é|no, 1 ééé", "yes, 1234 é|yes,1 é|yes, 1 "},
		{choices, "red|green|red wine", "re|red |blue"},
		{re2, "OK|ok|oK", "okk|o"},
	} {
		for _, s := range strings.Split(c.yes, "|") {
			if !fits(t, c.g, s) {
				t.Errorf("%q does not fit", s)
			}
		}
		for _, s := range strings.Split(c.no, "|") {
			if fits(t, c.g, s) {
				t.Errorf("%q fits", s)
			}
		}
	}
	if _, err := Regex(`a(?!a)a`, ECMA); err == nil {
		t.Error("a language without texts")
	}
	v, err := NewVocabulary(testTokens(), nil)
	if err != nil {
		t.Fatal(err)
	}
	mask := make([]uint64, v.Words())
	for _, g := range []*Grammar{re, choices, re2} {
		k := NewMasker(g, v)
		m := g.Matcher()
		for range 6 {
			allowed := checkMask(t, k, m, mask, "regular expression")
			if len(allowed) == 0 {
				break
			}
			m, _, _ = k.AcceptToken(m, allowed[0])
		}
	}
}

func TestLimits(t *testing.T) {
	g, err := JSON(true, Options{Whitespace: Compact})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := g.Matcher().Accept([]byte(strings.Repeat("[", MaxDepth+2))); ok {
		t.Error("deeper than the limit")
	}
	m, ok, err := g.Matcher().Accept([]byte(strings.Repeat("[", MaxDepth)))
	if !ok || err != nil {
		t.Fatal("less deep than the limit", err)
	}
	v, err := NewVocabulary(testTokens(), nil)
	if err != nil {
		t.Fatal(err)
	}
	checkMask(t, NewMasker(g, v), m, make([]uint64, v.Words()), "at the limit")
	if _, err := JSONSchema(make([]byte, MaxSource+1), Options{}); err == nil {
		t.Error("a source without a bound")
	}
	if _, err := NewVocabulary(testTokens(), []int32{9999}); err == nil {
		t.Error("an end token that is none")
	}
}

func FuzzInstance(f *testing.F) {
	for _, c := range schemas {
		for _, i := range c.instances {
			f.Add(c.schema, i)
		}
	}
	f.Fuzz(func(t *testing.T, schema, text string) {
		if len(schema) > 300 || len(text) > 300 {
			return
		}
		g, err := JSONSchema([]byte(schema), Options{AnyOrder: true, Whitespace: Free})
		if err != nil {
			return
		}
		m, ok, err := g.Matcher().Accept([]byte(text))
		if err == nil && ok && m.Accepting() && !json.Valid([]byte(text)) {
			t.Fatalf("%s accepted %q", schema, text)
		}
	})
}

// TestKeysComeOnce holds that no key comes twice, be it named by the schema or not, in text and in masks, and that an
// object which has used all keys that there are is not led on.
func TestKeysComeOnce(t *testing.T) {
	for _, c := range []struct{ schema, yes, no string }{
		{`{"type":"object"}`, `{"a":1,"ab":2,"b":1}|{"é":1,"è":2}|{"日":1,"日本":2,"月":3}`, `{"a":1,"a":2}|{"ab":1,"a":1,"ab":1}|{"é":1,"é":2}`},
		{`{"type":"object","minProperties":2}`, `{"x":1,"y":1}`, `{"x":1,"x":1}|{"x":1}`},
		{`{"type":"object","patternProperties":{"^[ab]$":{}},"additionalProperties":false}`, `{"a":1,"b":1}`, `{"a":1,"a":1}|{"a":1,"b":1,`},
		{`{"type":"object","patternProperties":{"^[ab]$":{}},"additionalProperties":false,"minProperties":2}`, `{"b":1,"a":1}`, `{"b":1}`},
		{`{"type":"object","properties":{"a":{}},"additionalProperties":{"type":"object"}}`, `{"a":1,"b":{"a":1,"b":{}}}`, `{"b":{},"a":1}|{"b":{},"b":{}}`},
	} {
		g, err := JSONSchema([]byte(c.schema), Options{Whitespace: Compact})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range strings.Split(c.yes, "|") {
			if !fits(t, g, s) {
				t.Errorf("%s: %s does not fit", c.schema, s)
			}
		}
		for _, s := range strings.Split(c.no, "|") {
			if fits(t, g, s) {
				t.Errorf("%s: %s fits", c.schema, s)
			}
		}
	}
	if _, err := JSONSchema([]byte(`{"type":"object","patternProperties":{"^[ab]$":{}},"additionalProperties":false,"minProperties":3}`), Options{}); err == nil {
		t.Error("three keys of two")
	}
	g, err := JSONSchema(
		[]byte(`{"type":"object","patternProperties":{"^[ab]$":{}},"additionalProperties":false}`),
		Options{Whitespace: Compact},
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := g.Matcher().Accept([]byte(`{"a":1,"b":1,`)); ok {
		t.Error("led on after all keys")
	}
	tokens := append(testTokens(), []byte(`b":1,"ab":1`), []byte(`":1,"a"`))
	v, err := NewVocabulary(tokens, nil)
	if err != nil {
		t.Fatal(err)
	}
	k := NewMasker(g, v)
	free, err := JSONSchema([]byte(`{"type":"object"}`), Options{Whitespace: Compact})
	if err != nil {
		t.Fatal(err)
	}
	kf := NewMasker(free, v)
	mask := make([]uint64, v.Words())
	for _, text := range []string{`{`, `{"`, `{"a`, `{"a":1,"`, `{"a":1,"a`, `{"ab":1,"a`, `{"日":1,"`, "{\"日\":1,\"\xe6\x97"} {
		if m, ok, _ := g.Matcher().Accept([]byte(text)); ok {
			checkMask(t, k, m, mask, text)
		}
		m, ok, err := free.Matcher().Accept([]byte(text))
		if !ok || err != nil {
			t.Fatal(text, err)
		}
		checkMask(t, kf, m, mask, text)
	}
}
