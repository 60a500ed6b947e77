package config

import (
	"strings"
	"testing"
)

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
