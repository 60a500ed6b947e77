package toolfmt

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// readCorpus returns the cases of testdata/corpus by family.
func readCorpus(t testing.TB) map[string][]corpusCase {
	t.Helper()
	names, err := filepath.Glob("testdata/corpus/*.jsonl")
	if err != nil || len(names) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	all := map[string][]corpusCase{}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		family := strings.TrimSuffix(filepath.Base(name), ".jsonl")
		sc := bufio.NewScanner(f)
		sc.Buffer(nil, 1<<20)
		for sc.Scan() {
			var c corpusCase
			if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all[family] = append(all[family], c)
		}
		if err := sc.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// sameCall compares name{arguments} by meaning.
func sameCall(t *testing.T, got, want string) bool {
	t.Helper()
	i, k := strings.IndexByte(got, '{'), strings.IndexByte(want, '{')
	if got[:i] != want[:k] {
		return false
	}
	if got == want { // also a call that is cut, whose arguments are no JSON
		return true
	}
	var a, b any
	if err := json.Unmarshal([]byte(got[i:]), &a); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	if err := json.Unmarshal([]byte(want[k:]), &b); err != nil {
		t.Fatalf("%s: %v", want, err)
	}
	return reflect.DeepEqual(a, b)
}

// TestCorpus parses each family's outputs, cut at every byte.
func TestCorpus(t *testing.T) {
	for family, cases := range readCorpus(t) {
		t.Run(family, func(t *testing.T) {
			if len(cases) < 40 {
				t.Errorf("only %d cases, want 40", len(cases))
			}
			f := formatNamed(t, family)
			for _, c := range cases {
				o := parseSplit(
					t,
					f,
					everyday,
					Options{InReasoning: c.Think, SingleCall: c.Single, Forced: c.Forced},
					c.In,
				)
				ok := o.text == c.Text && o.reasoning == c.Reasoning && o.cut == c.Cut && len(o.calls) == len(c.Calls)
				for i := 0; ok && i < len(c.Calls); i++ {
					ok = sameCall(t, o.calls[i], c.Calls[i])
				}
				if !ok {
					t.Errorf(
						"%s: %q\ngot  %s\nwant text %q reasoning %q calls %q cut %v",
						c.Note,
						c.In,
						o,
						c.Text,
						c.Reasoning,
						c.Calls,
						c.Cut,
					)
				}
			}
		})
	}
}
