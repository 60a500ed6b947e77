package tokenizer

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestFloor wants no text to have fewer tokens than Floor says: else texts that fit would be refused.
func TestFloor(t *testing.T) {
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
	texts = append(texts, strings.Repeat("internationalization Uncharacteristically 0000000000000000 ", 100))
	bounds, gaps, tight := 0, 0, 0
	for _, name := range files {
		tok := loadTokenizer(t, name)
		f := tok.Floor()
		if f == nil {
			continue
		}
		bounds++
		if f.Of("\x04") == 0 {
			gaps++
		}
		for _, text := range texts {
			ids, err := tok.Encode(nil, text, Options{})
			if err != nil {
				continue
			}
			exact, other, least := f.Tokens(f.Of(text)), f.Tokens(f.Rewritten(text)), f.Tokens(f.Least(text))
			if len(ids) < exact || exact < other || other < least {
				t.Errorf("%s: %d tokens of %.8q, floors %d, %d and %d", name, len(ids), text, exact, other, least)
			}
			if text[0] == 'x' && exact > len(text)/200 {
				tight++
			}
		}
	}
	if bounds == 0 || gaps == 0 || tight == 0 {
		t.Errorf("%d tokenizers have a floor, %d of them gaps, %d are tight", bounds, gaps, tight)
	}
}
