package chattmpl

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"
)

// caseClock is the clock that the expected outputs were made with.
var caseClock = time.Date(2025, 3, 9, 14, 5, 7, 123456000, time.UTC)

// renderCase is one line of a case file: a template, its input, and what
// Jinja2 made of them.
type renderCase struct {
	Name     string          `json:"name"`
	Source   string          `json:"source"`
	Messages json.RawMessage `json:"messages"`
	Tools    json.RawMessage `json:"tools"`
	Add      bool            `json:"add_generation_prompt"`
	Extra    json.RawMessage `json:"extra"`
	Want     *string         `json:"want"`
	Error    string          `json:"error"`
	Stage    string          `json:"stage"`
}

func parseOrNil(t *testing.T, raw json.RawMessage) Value {
	t.Helper()
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	v, err := ParseJSON(raw)
	if err != nil {
		t.Fatalf("case input %s: %v", raw, err)
	}
	return v
}

func (c *renderCase) input(t *testing.T) Input {
	t.Helper()
	in := Input{
		Messages: parseOrNil(t, c.Messages), Tools: parseOrNil(t, c.Tools), AddGenerationPrompt: c.Add,
		Now: func() time.Time { return caseClock },
	}
	extra := c.Extra
	if string(extra) == `"vars"` {
		var err error
		if extra, err = os.ReadFile("testdata/vars.json"); err != nil {
			t.Fatal(err)
		}
	}
	if in.Messages == nil {
		in.Messages = NewList()
	}
	if d, ok := parseOrNil(t, extra).(*Dict); ok {
		for _, e := range d.entries {
			in.Extra = append(in.Extra, KV{e.key.(Str).s, e.val})
		}
	}
	return in
}

// check compares a rendering with Jinja2's. A template that Jinja2 refuses to
// compile must be refused by Parse, and one that fails later must fail later.
func (c *renderCase) check(t *testing.T, cache map[string]*Template) bool {
	t.Helper()
	tm, ok := cache[c.Source]
	var err error
	if !ok {
		tm, err = Parse(c.Name, c.Source)
		if err == nil {
			cache[c.Source] = tm
		}
	}
	if err != nil {
		if c.Want != nil {
			t.Errorf("%s: Parse: %v, want %q\n%s", c.Name, err, *c.Want, c.Source)
			return false
		}
		if c.Stage != "parse" {
			t.Errorf("%s: Parse: %v, want a failure of rendering: %s", c.Name, err, c.Error)
			return false
		}
		return true
	}
	out, err := tm.Render(context.Background(), c.input(t), Limits{})
	switch {
	case err != nil && c.Want != nil:
		t.Errorf("%s: %v, want %q", c.Name, err, *c.Want)
	case err == nil && c.Want == nil:
		t.Errorf("%s: got %q, want the error %s\n%s", c.Name, out.Text(), c.Error, c.Source)
	case err == nil && out.Text() != *c.Want:
		t.Errorf("%s:\n got %q\nwant %q", c.Name, out.Text(), *c.Want)
	case err != nil && c.Stage == "parse":
		t.Errorf("%s: Parse passed, want its failure: %s\n%s", c.Name, c.Error, c.Source)
	default:
		return true
	}
	return false
}

func readCases(t testing.TB, path string) []renderCase {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []renderCase
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		var c renderCase
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			t.Fatalf("%s line %d: %v", path, len(out)+1, err)
		}
		out = append(out, c)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func runCases(t *testing.T, path string) {
	cases := readCases(t, path)
	if len(cases) == 0 {
		t.Fatalf("%s holds no cases", path)
	}
	cache := map[string]*Template{}
	same, failing := 0, 0
	for i := range cases {
		if cases[i].Want == nil {
			failing++
		}
		if cases[i].check(t, cache) {
			same++
		}
	}
	t.Logf("%d of %d cases equal to Jinja2, %d of them errors", same, len(cases), failing)
}

// TestLikeJinja2 runs the committed cases, made by testdata/make_cases.py.
func TestLikeJinja2(t *testing.T) { runCases(t, "testdata/cases.jsonl") }

// TestTemplatesLikeJinja2 runs the case file named by BALEEN_TEST_TEMPLATES,
// made by testdata/compare.py from a folder of templates.
func TestTemplatesLikeJinja2(t *testing.T) {
	path := os.Getenv("BALEEN_TEST_TEMPLATES")
	if path == "" {
		t.Skip("BALEEN_TEST_TEMPLATES names no case file: see testdata/compare.py")
	}
	runCases(t, path)
}
