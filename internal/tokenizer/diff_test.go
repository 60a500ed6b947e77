package tokenizer

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// diffCase is one line of a file that testdata/gen/diff_cases.py wrote: what
// another implementation makes of a text. What is missing is not compared.
type diffCase struct {
	Text    string  `json:"text"`
	IDs     []int32 `json:"ids"`     // control tokens parsed
	Special []int32 `json:"special"` // and the post-processor's added
	Plain   []int32 `json:"plain"`   // control tokens as text
	Decoded *string `json:"decoded"` // of Special; without IDs, of Plain
	Skipped *string `json:"skipped"` // the same without control tokens
}

// TestDifferential compares with cases from Hugging Face's tokenizers. It needs
// BALEEN_TEST_TOKENIZER (a tokenizer.json or folder) and BALEEN_TEST_CASES.
func TestDifferential(t *testing.T) {
	path, cases := os.Getenv("BALEEN_TEST_TOKENIZER"), os.Getenv("BALEEN_TEST_CASES")
	if path == "" || cases == "" {
		t.Skip("set BALEEN_TEST_TOKENIZER and BALEEN_TEST_CASES to compare with another implementation")
	}
	tok := loadTokenizer(t, path)
	f, err := os.Open(cases)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	checkCases(t, tok, f, 15)
}

// TestTrained compares small tokenizers, one for each kind of pipeline, with
// what testdata/gen/trained.py recorded.
func TestTrained(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.json")
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d tokenizers, %v", len(paths), err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(path, ".json")
		t.Run(filepath.Base(name), func(t *testing.T) {
			checkCases(t, loadTokenizer(t, path), openCases(t, name+".jsonl.gz"), 5)
		})
	}
}

func TestSentencePiece(t *testing.T) {
	for _, kind := range []string{"bpe", "unigram"} {
		t.Run(kind, func(t *testing.T) {
			dir := "testdata/sentencepiece_" + kind
			checkCases(t, loadTokenizer(t, dir), openCases(t, dir+".jsonl.gz"), 5)
		})
	}
}

func TestTiktoken(t *testing.T) {
	checkCases(t, loadRanks(t, "testdata/kimi.tiktoken"), openCases(t, "testdata/kimi_tiktoken.jsonl.gz"), 5)
}

// loadRanks reads a rank file for the pattern of Kimi.
func loadRanks(t testing.TB, path string) *Tokenizer {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !looksTiktoken(data) {
		t.Fatalf("%s does not look like a rank file", path)
	}
	table, err := readRanks(data)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := newTiktoken(table, patternKimi, []addedToken{{id: int32(table.len()), text: "[EOS]", control: true}})
	if err != nil {
		t.Fatal(err)
	}
	tok.finish(nil)
	return tok
}

func openCases(t testing.TB, path string) io.Reader {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func loadTokenizer(t testing.TB, path string) *Tokenizer {
	t.Helper()
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		tok, err := FromDir(path)
		if err != nil {
			t.Fatal(err)
		}
		return tok
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := FromJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// checkCases compares tok with each case, reports up to limit differences in
// full, and fails if there was any.
func checkCases(t *testing.T, tok *Tokenizer, f io.Reader, limit int) {
	t.Helper()
	in := bufio.NewReaderSize(f, 1<<20)
	n, wrong := 0, 0
	bad := func(format string, args ...any) {
		if wrong++; wrong <= limit {
			t.Errorf(format, args...)
		}
	}
	for {
		line, err := in.ReadBytes('\n')
		if len(line) == 0 && err != nil {
			break
		}
		var c diffCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		n++
		compareCase(tok, c, bad)
	}
	t.Logf("%d strings, %d differences", n, wrong)
	if n == 0 {
		t.Error("no cases")
	}
	if wrong > limit {
		t.Errorf("%d differences in all", wrong)
	}
}

func compareCase(tok *Tokenizer, c diffCase, bad func(string, ...any)) {
	for _, e := range []struct {
		what string
		want []int32
		o    Options
	}{
		{"encode", c.IDs, Options{ParseSpecial: true}},
		{"encode with specials", c.Special, Options{ParseSpecial: c.IDs != nil, AddSpecial: true}},
		{"encode as text", c.Plain, Options{}},
	} {
		if e.want == nil {
			continue
		}
		if got := must(tok.Encode(nil, c.Text, e.o)); !slices.Equal(got, e.want) {
			bad("%s %.200q\n got %v\nwant %v", e.what, c.Text, clip(got, e.want), clip(e.want, got))
		}
	}
	for _, d := range []struct {
		want *string
		skip bool
	}{{c.Decoded, false}, {c.Skipped, true}} {
		ids := c.Special
		if c.IDs == nil {
			ids = c.Plain
		}
		// Where a run of byte tokens is not UTF-8, the others write U+FFFD for each
		// byte of it, and this one keeps the characters that are complete.
		if d.want == nil || strings.Contains(*d.want, "\uFFFD") {
			continue
		}
		if got := tok.Decode(ids, d.skip); got != *d.want {
			bad("decode, skip %v\n got %.300q\nwant %.300q", d.skip, got, *d.want)
		}
	}
}

// clip returns the ids of a around the first difference from b.
func clip(a, b []int32) []int32 {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return a[max(0, i-2):min(len(a), i+8)]
}
