package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/dlclark/regexp2/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/baleenrun/baleen/internal/grammar/regular"
	"github.com/baleenrun/baleen/internal/grammar/schema"
)

// ecma makes the validator read patterns as ECMA-262 does.
type ecma struct{ re *regexp2.Regexp }

func (e ecma) MatchString(s string) bool { ok, _ := e.re.MatchString(s); return ok }
func (e ecma) String() string            { return e.re.String() }

func compileECMA(s string) (jsonschema.Regexp, error) {
	if strings.Contains(s, `\p{`) || strings.Contains(s, `\P{`) {
		return nil, errors.New("the validator's engine has no properties in this mode")
	}
	re, err := regexp2.Compile(s, regexp2.ECMAScript)
	if err != nil {
		return nil, err
	}
	re.MatchTimeout = time.Second
	return ecma{re}, nil
}

// validator compiles a schema for the reference; draft counts where the schema does not say which it is.
func validator(src []byte, draft *jsonschema.Draft, formats bool) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(src))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseRegexpEngine(compileECMA)
	c.DefaultDraft(draft)
	c.UseLoader(jsonschema.SchemeURLLoader{})
	if formats {
		c.AssertFormat()
	}
	if err := c.AddResource("mem:///schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("mem:///schema.json")
}

// spell writes a value as constrained generation would: no blanks, the fewest escapes, plain numbers.
func spell(v any) string {
	var b strings.Builder
	var put func(v any)
	put = func(v any) {
		switch v := v.(type) {
		case nil:
			b.WriteString("null")
		case bool:
			fmt.Fprint(&b, v)
		case json.Number:
			d, err := regular.ParseDecimal(string(v))
			if err != nil {
				b.WriteString(string(v))
				return
			}
			b.WriteString(d.String())
		case string:
			b.WriteString(spellString(v))
		case []any:
			b.WriteByte('[')
			for i, x := range v {
				if i > 0 {
					b.WriteByte(',')
				}
				put(x)
			}
			b.WriteByte(']')
		case map[string]any:
			keys := make([]string, 0, len(v))
			for k := range v {
				keys = append(keys, k)
			}
			sort.Strings(keys)
			b.WriteByte('{')
			for i, k := range keys {
				if i > 0 {
					b.WriteByte(',')
				}
				b.WriteString(spellString(k) + ":")
				put(v[k])
			}
			b.WriteByte('}')
		}
	}
	put(v)
	return b.String()
}

func spellString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch i := strings.IndexRune("\"\\\b\f\n\r\t", r); {
		case i >= 0:
			b.WriteByte('\\')
			b.WriteByte(`"\bfnrt`[i])
		case r < 0x20:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func decode(t testing.TB, src string) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(src))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// fits reports whether a grammar takes a whole text.
func fits(t testing.TB, g *Grammar, text string) bool {
	t.Helper()
	m, ok, err := g.Matcher().Accept([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return ok && m.Accepting()
}

// mutate changes a value in one place.
func mutate(r *rand.Rand, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		keys := make([]string, 0, len(v))
		for k, x := range v {
			out[k] = x
			keys = append(keys, k)
		}
		sort.Strings(keys)
		if len(keys) == 0 || r.IntN(6) == 0 {
			out[[]string{"a", "b", "extra", "x-1", "type", "_", "é"}[r.IntN(7)]] = scalar(r)
			return out
		}
		k := keys[r.IntN(len(keys))]
		switch r.IntN(8) {
		case 0:
			delete(out, k)
		case 1:
			out[k+"x"] = out[k]
			delete(out, k)
		case 2:
			out[k] = out[keys[r.IntN(len(keys))]]
		default:
			out[k] = mutate(r, out[k])
		}
		return out
	case []any:
		out := slices.Clone(v)
		switch n := len(out); {
		case n == 0:
			return append(out, scalar(r))
		case r.IntN(5) == 0:
			return append(out, out[r.IntN(n)])
		case r.IntN(5) == 0:
			return slices.Delete(out, n-1, n)
		case r.IntN(8) == 0:
			return append(out, scalar(r))
		default:
			i := r.IntN(n)
			out[i] = mutate(r, out[i])
			return out
		}
	case string:
		runes := []rune(v)
		switch r.IntN(6) {
		case 0:
			return v + v
		case 1:
			return string(runes[:len(runes)/2])
		case 2:
			if len(runes) > 0 {
				runes[r.IntN(len(runes))] = []rune("aZ0-_ é/@.😀")[r.IntN(11)]
			}
			return string(runes)
		case 3:
			return v + string([]rune("aZ0-_ é/@.😀")[r.IntN(11)])
		}
	case json.Number:
		d, err := regular.ParseDecimal(string(v))
		if err == nil {
			switch r.IntN(6) {
			case 0:
				d.Negative = !d.Negative
				return json.Number(d.String())
			case 1:
				return json.Number(d.String() + []string{"0", "1", "5"}[r.IntN(3)])
			case 2:
				d.Frac += []string{"5", "25", "1"}[r.IntN(3)]
				return json.Number(d.String())
			case 3:
				if d.Int != "" {
					d.Int = d.Int[:len(d.Int)-1] + string("0123456789"[r.IntN(10)])
					d.Int = strings.TrimLeft(d.Int, "0")
				}
				return json.Number(d.String())
			}
		}
	}
	return scalar(r)
}

func scalar(r *rand.Rand) any {
	return []any{
		nil, true, false, json.Number("0"), json.Number("-1"), json.Number("7"), json.Number("2.5"), json.Number("100"),
		"", "a", "abc", "2024-02-29", "x@y.zz",
		map[string]any{},
		[]any{},
		[]any{json.Number("1")},
		map[string]any{"a": json.Number("1")},
	}[r.IntN(17)]
}

// A pair is a grammar and the validator of one schema. Formats are compared apart: JSON Schema leaves them loose.
type pair struct {
	name            string
	plain, full     *Grammar // without and with formats
	plainV, fullV   *jsonschema.Schema
	formats, failed error
}

func newPair(name string, src []byte, draft *jsonschema.Draft) *pair {
	p := &pair{name: name}
	o := Options{AnyOrder: true, Whitespace: Compact}
	if p.full, p.failed = JSONSchema(src, o); p.failed != nil {
		return p
	}
	stripped := withoutFormats(src)
	p.plain, _ = JSONSchema(stripped, o)
	p.plainV, p.failed = validator(stripped, draft, false)
	if !bytes.Equal(stripped, src) {
		p.fullV, p.formats = validator(src, draft, true)
	}
	return p
}

func withoutFormats(src []byte) []byte {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(src))
	if err != nil {
		return src
	}
	found := false
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if _, ok := v["format"].(string); ok {
				delete(v, "format")
				found = true
			}
			for _, x := range v {
				walk(x)
			}
		case []any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(v)
	if !found {
		return src
	}
	out, _ := json.Marshal(v)
	return out
}

// A tally compares grammars with the validator and counts.
type tally struct {
	checks, differences int
	examples, formats   []string
}

func (c *tally) check(p *pair, v any) {
	text := spell(v)
	if p.plain != nil && p.plainV != nil {
		got, err := answer(p.plain, text)
		if err != nil {
			return // a limit, which is no answer
		}
		c.checks++
		if problem := p.plainV.Validate(v); got != (problem == nil) {
			c.differences++
			if len(c.examples) < 40 {
				c.examples = append(
					c.examples,
					fmt.Sprintf("%s: grammar %v, validator %.200v, on %.300s", p.name, got, problem, text),
				)
			}
		}
	}
	if p.fullV == nil {
		return
	}
	got, err := answer(p.full, text)
	if problem := p.fullV.Validate(v); err == nil && got != (problem == nil) && p.plain != nil {
		if same, _ := answer(p.plain, text); same {
			c.formats = append(
				c.formats,
				fmt.Sprintf("%s: grammar %v, validator %v, on %.150s", p.name, got, problem == nil, text),
			)
		}
	}
}

func answer(g *Grammar, text string) (bool, error) {
	m, ok, err := g.Matcher().Accept([]byte(text))
	return ok && m.Accepting(), err
}

// legacy reports whether a schema without $schema uses a keyword that newer drafts do not have.
func legacy(src []byte) bool {
	s := string(src)
	return strings.Contains(s, `"definitions"`) || strings.Contains(s, `"dependencies"`) ||
		strings.Contains(s, `"additionalItems"`)
}

// TestCollections runs all schemas below the folders of BALEEN_TEST_SCHEMAS (files like those of
// JSON-Schema-Test-Suite, of MaskBench, or bare schemas) against the validator, with their instances and mutations of
// them.
func TestCollections(t *testing.T) {
	dirs := os.Getenv("BALEEN_TEST_SCHEMAS")
	if dirs == "" {
		t.Skip("BALEEN_TEST_SCHEMAS names no folders")
	}
	var total tally
	accepted, refused, unknown := 0, 0, 0
	r := rand.New(rand.NewPCG(1, 2))
	for _, dir := range filepath.SplitList(dirs) {
		err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
			if err != nil || info.IsDir() || filepath.Ext(path) != ".json" {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for i, c := range readCases(data, path) {
				p := newPair(fmt.Sprintf("%s[%d]", filepath.Base(path), i), c.schema, c.draft)
				if p.full == nil {
					refused++
					if e := (*schema.Error)(nil); !errors.As(p.failed, &e) {
						t.Errorf("%s: no place in %v", path, p.failed)
					}
					continue
				}
				accepted++
				if p.failed != nil {
					unknown++
					continue
				}
				for _, v := range c.instances {
					total.check(p, v)
					for range 4 {
						total.check(p, mutate(r, v))
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("accepted %d, refused %d, not compiled by the validator %d, checks %d, differences %d, in format %d",
		accepted, refused, unknown, total.checks, total.differences, len(total.formats))
	for _, f := range total.formats {
		t.Logf("format: %s", f)
	}
	for _, e := range total.examples {
		t.Error(e)
	}
}

type testCase struct {
	schema    json.RawMessage
	instances []any
	draft     *jsonschema.Draft
}

func readCases(data []byte, path string) []testCase {
	type file struct {
		Schema json.RawMessage
		Tests  []struct{ Data json.RawMessage }
	}
	var many []file
	if json.Unmarshal(data, &many) != nil {
		var one file
		if json.Unmarshal(data, &one) != nil {
			return nil
		}
		if one.Schema == nil || one.Tests == nil {
			one = file{Schema: data}
		}
		many = []file{one}
	}
	var out []testCase
	for _, f := range many {
		c := testCase{schema: f.Schema, draft: jsonschema.Draft2020}
		switch {
		case strings.Contains(path, "draft7"):
			c.draft = jsonschema.Draft7
			c.schema = withDraft(c.schema, "http://json-schema.org/draft-07/schema#")
		case strings.Contains(path, "draft4"):
			c.draft = jsonschema.Draft4
			c.schema = withDraft(c.schema, "http://json-schema.org/draft-04/schema#")
		case legacy(f.Schema):
			c.draft = jsonschema.Draft7
		}
		for _, x := range f.Tests {
			if v, err := jsonschema.UnmarshalJSON(bytes.NewReader(x.Data)); err == nil {
				c.instances = append(c.instances, v)
			}
		}
		out = append(out, c)
	}
	return out
}

func withDraft(s json.RawMessage, uri string) json.RawMessage {
	if t := bytes.TrimSpace(s); len(t) > 1 && t[0] == '{' && !bytes.Contains(s, []byte(`"$schema"`)) {
		rest := bytes.TrimSpace(t[1:])
		comma := ","
		if rest[0] == '}' {
			comma = ""
		}
		return []byte(`{"$schema":"` + uri + `"` + comma + string(rest))
	}
	return s
}
