package config

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of the README anew")

// TestReadme holds the README to the table of settings (go test ./internal/config -update).
func TestReadme(t *testing.T) {
	const file, begin, end = "../../README.md", "<!-- settings: made by go test ./internal/config -update -->\n", "<!-- end of settings -->\n"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("the README has no place between %q and %q", begin, end)
	}
	want := before + begin + "\n" + Markdown() + "\n" + end + after
	if string(b) == want {
		return
	}
	if !*update {
		t.Fatal("the README's table of settings is not that of package config: go test ./internal/config -update")
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestEverySettingIsListed: a row of the table that no list has would be a secret.
func TestEverySettingIsListed(t *testing.T) {
	listed := slices.Sorted(slices.Values(order))
	if !slices.Equal(listed, Names()) {
		t.Errorf("listed are %v, there are %v", listed, Names())
	}
	help := Help(80)
	for _, name := range Names() {
		if !strings.Contains(help, Get(name).Var) {
			t.Errorf("the help has no %s", Get(name).Var)
		}
	}
	for line := range strings.SplitSeq(help, "\n") {
		if len(line) > 80 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

func TestParseAddress(t *testing.T) {
	for text, want := range map[string]Address{
		"example.org":             {Host: "example.org", Port: 1},
		"0.0.0.0:8080":            {Host: "0.0.0.0", Port: 8080},
		":8080":                   {Host: "127.0.0.1", Port: 8080},
		"http://example.org":      {Host: "example.org", Port: 80},
		"http://example.org:9/v1": {Host: "example.org", Port: 9},
		"https://example.org/":    {Host: "example.org", Port: 443, TLS: true},
		"[::1]:9":                 {Host: "::1", Port: 9},
		"::1":                     {Host: "::1", Port: 1},
		"[::]":                    {Host: "::", Port: 1},
		`"127.0.0.1"`:             {Host: "127.0.0.1", Port: 1},
		"unix:/run/b.sock":        {Port: 1, Socket: "/run/b.sock"},
		"unix:///run/b.sock":      {Port: 1, Socket: "/run/b.sock"},
	} {
		if got, err := ParseAddress(text, 1); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"ftp://x", "x:y", "x:70000", "a b", "unix:", "a@b", "x?y"} {
		if got, err := ParseAddress(text, 1); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestLoadChecksVariables(t *testing.T) {
	for _, tc := range []struct {
		env     string
		want    string // part of the error, "" for none
		warning string
	}{
		{"BALEEN_CPU=avx2", "", ""},
		{"BALEEN_CPU=auto", "", ""},
		{"BALEEN_CPU=sse9", `BALEEN_CPU="sse9": want one of auto, avx512`, ""},
		{"BALEEN_THREADS=0", "whole number from 1", ""},
		{"BALEEN_THREADS=two", "whole number from 1", ""},
		{"BALEEN_THREADS=", "", ""},
		{"BALEEN_KV=f8", "want one of f16, f32", ""},
		{"BALEEN_THREAD=4", "", "did you mean BALEEN_THREADS"},
		{"BALEEN_TEST_GOLDENS=/x", "", ""},
		{"PATH=/bin", "", ""},
	} {
		_, warnings, err := Load([]string{tc.env})
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", tc.env, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: error %v, want %q", tc.env, err, tc.want)
		}
		if got := strings.Join(warnings, ";"); (tc.warning == "") != (got == "") || !strings.Contains(got, tc.warning) {
			t.Errorf("%s: warnings %q, want %q", tc.env, got, tc.warning)
		}
	}
}

func TestFlagBeatsVariableBeatsDefault(t *testing.T) {
	c, _, err := Load([]string{"BALEEN_KV=f32", "BALEEN_CPU=auto"})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.String(KV); got != "f32" {
		t.Errorf("variable: kv = %q", got)
	}
	if got := c.CPULimit(); got != "" {
		t.Errorf("CPULimit of auto = %q", got)
	}
	if got := c.Int(Threads); got != 0 {
		t.Errorf("threads default = %d", got)
	}
	if err := c.Set(KV, "f16"); err != nil || c.String(KV) != "f16" {
		t.Errorf("flag: kv = %q, %v", c.String(KV), err)
	}
	if err := c.Set(Threads, "-1"); err == nil || !strings.Contains(err.Error(), `--threads "-1"`) {
		t.Errorf("Set(-1) = %v", err)
	}
}

func TestTableIsComplete(t *testing.T) {
	seen := map[string]string{}
	for _, name := range Names() {
		s := Get(name)
		if s.Help == "" || !strings.HasPrefix(s.Var, "BALEEN_") {
			t.Errorf("%s: no help or variable", name)
		}
		if other := seen[s.Var]; other != "" {
			t.Errorf("%s and %s share %s", name, other, s.Var)
		}
		seen[s.Var] = name
		if err := s.Check(s.Default); err != nil {
			t.Errorf("%s: default %q: %v", name, s.Default, err)
		}
	}
}
