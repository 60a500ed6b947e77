package tokenizer

import (
	"slices"
	"testing"
)

// TestContinueKeepsWhatWasSaid: an answer in other tokens than the tokenizer's
// stays as it was written, if the conversation still holds its text.
func TestContinueKeepsWhatWasSaid(t *testing.T) {
	for _, name := range []string{"byte_level", "llama2", "metaspace_bpe"} {
		tok := loadTokenizer(t, "testdata/"+name+".json")
		var control int32 = -1
		for id := range int32(tok.Size()) {
			if tok.IsSpecial(id) {
				control = id
				break
			}
		}
		if control < 0 {
			t.Fatalf("%s has no control token", name)
		}
		encode := func(s string) []int32 { return must(tok.Encode(nil, s, Options{})) }
		prompt := slices.Concat([]int32{control}, encode("What is the token?"), []int32{control})
		// A token of two letters, and the letters.
		var same, answer []int32
		for id := range int32(tok.Size()) {
			text, _ := tok.Token(id)
			if len(text) != 2 || text[0] < 'a' || text[0] > 'z' || tok.IsSpecial(id) {
				continue
			}
			first, ok := tok.ID(text[:1])
			second, too := tok.ID(text[1:])
			if ok && too {
				same, answer = append(same, id), append(answer, first, second)
			}
		}
		if len(same) < 2 {
			t.Fatalf("%s has too few tokens of two letters", name)
		}
		more := slices.Concat([]int32{control}, encode("And?"))
		said := append(slices.Clone(prompt), answer...)
		join := func(parts ...[]int32) []int32 { return slices.Concat(parts...) }

		rendered := join(prompt, same, more)
		if got, want := tok.Continue(said, rendered), join(said, more); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
		for what, other := range map[string][]int32{
			"another answer":     join(prompt, same[:len(same)-1], more),
			"a longer answer":    join(prompt, same, encode("!"), more),
			"the answer's start": join(prompt, same[:1]),
			"no more than said":  join(prompt, same),
			"another prompt":     join([]int32{control}, encode("Which token?"), []int32{control}, same, more),
			"nothing":            nil,
		} {
			if got := tok.Continue(said, other); !slices.Equal(got, other) {
				t.Errorf("%s, %s: got %v, want %v", name, what, got, other)
			}
		}
		if got := tok.Continue(nil, rendered); !slices.Equal(got, rendered) {
			t.Errorf("%s: nothing said gives %v", name, got)
		}
	}
}
