package tokenizer

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// diffCase is one line of a file that testdata/gen/diff_cases.py wrote: what
// Hugging Face's tokenizers makes of a text.
type diffCase struct {
	Text    string  `json:"text"`
	IDs     []int32 `json:"ids"`     // control tokens parsed
	Special []int32 `json:"special"` // and the post-processor's added
	Plain   []int32 `json:"plain"`   // control tokens as text; null if as IDs
	Decoded string  `json:"decoded"` // of Special
	Skipped string  `json:"skipped"` // of Special, without control tokens
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
func checkCases(t *testing.T, tok *Tokenizer, f *os.File, limit int) {
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
	if got := tok.Encode(nil, c.Text, Options{ParseSpecial: true}); !slices.Equal(got, c.IDs) {
		bad("encode %.200q\n got %v\nwant %v", c.Text, clip(got, c.IDs), clip(c.IDs, got))
	}
	if got := tok.Encode(nil, c.Text, Options{ParseSpecial: true, AddSpecial: true}); !slices.Equal(got, c.Special) {
		bad("encode with specials %.200q\n got %v\nwant %v", c.Text, clip(got, c.Special), clip(c.Special, got))
	}
	if plain := c.Plain; plain != nil {
		if got := tok.Encode(nil, c.Text, Options{}); !slices.Equal(got, plain) {
			bad("encode as text %.200q\n got %v\nwant %v", c.Text, clip(got, plain), clip(plain, got))
		}
	}
	for _, d := range []struct {
		want string
		skip bool
	}{{c.Decoded, false}, {c.Skipped, true}} {
		if got := tok.Decode(c.Special, d.skip); got != d.want && !strings.Contains(d.want, "\uFFFD") {
			bad("decode, skip %v\n got %.300q\nwant %.300q", d.skip, got, d.want)
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
