package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGrammarCommand holds what the command says of a schema that is accepted and of one that is not.
func TestGrammarCommand(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write(
		"good.json",
		`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`,
	)
	bad := write("bad.json", `{"properties":{"a":{"format":"regex"}}}`)
	gbnf := write("yes.gbnf", `root ::= "yes" | "no\n"`)
	own := write(
		"own.json",
		`{"schema":{"type":"integer"},"tests":[{"data":1e0,"valid":true},{"data":"a","valid":false}]}`,
	)
	lines := write("lines.jsonl", "{\"a\": 1}\n{\"a\":\"x\"}\n")
	words := write("words.jsonl", "\"yes\"\n\"no\\n\"\n\"maybe\"\n")
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"grammar", good, "--instances", lines}, []string{"accepted", "line 1 fits", "line 2 does not fit, " +
			"from byte 5"}},
		{[]string{"grammar", bad, "--json"}, []string{`"accepted":false`, `"keyword":"format"`, `"path":"/properties/a"`}},
		{[]string{"grammar", gbnf, "--instances", words}, []string{"line 1 fits", "line 2 fits", "line 3 does not fit, from byte 0"}},
		{[]string{"grammar", own, "--json"}, []string{`{"line":1,"fits":true,"valid":true}`, `{"line":2,"fits":false,"valid":false}`}},
	} {
		got := command(t, "", c.args...)
		out := got.out
		if got.status != 0 {
			t.Errorf("%v: %+v", c.args, got)
		}
		for _, w := range c.want {
			if !strings.Contains(out, w) {
				t.Errorf("%v: %q is not in %s", c.args, w, out)
			}
		}
	}
	if got := command(t, "", "grammar", bad); got.status == 0 || !strings.Contains(got.out, "refused") {
		t.Errorf("a refused schema ends well: %+v", got)
	}
}
