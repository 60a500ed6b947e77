package tokenizer

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestLongest wants no text to have fewer tokens than its length over Longest: else texts that fit would be refused.
func TestLongest(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{
		strings.Repeat(
			" ",
			5000,
		), strings.Repeat("x", 5000), strings.Repeat("=", 5000), strings.Repeat("\n", 5000), strings.Repeat("the water ", 500),
		strings.Repeat(
			"e\u0301\u0323",
			900,
		), strings.Repeat("\u1112\u1161\u11ab", 500), strings.Repeat("\u0390", 900), strings.Repeat("\U0001d400", 900), strings.Repeat("日本", 900), strings.Repeat("\x04\x1b", 2000),
	}
	bounds, gaps := 0, 0
	for _, name := range files {
		tok := loadTokenizer(t, name)
		n := tok.Longest()
		if n == 0 {
			continue
		}
		bounds++
		if tok.Standing("\x04") == 0 {
			gaps++
		}
		for _, text := range texts {
			if ids, err := tok.Encode(nil, text, Options{}); err == nil && len(ids) < tok.Standing(text)/n {
				t.Errorf(
					"%s: %d tokens for %d bytes of %.8q, at least %d are promised",
					name,
					len(ids),
					len(text),
					text,
					len(text)/n,
				)
			}
		}
	}
	if bounds == 0 || gaps == 0 {
		t.Errorf("%d tokenizers have a bound, %d of them gaps", bounds, gaps)
	}
}
