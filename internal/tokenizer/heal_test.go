package tokenizer

import (
	"slices"
	"strings"
	"testing"
)

// TestUnfinished: as many tokens are taken off as one longer token begins with; the tokens that may come then spell out
// their bytes, or begin with all of them.
func TestUnfinished(t *testing.T) {
	tok, err := FromJSON(
		[]byte(`{"added_tokens":[{"id":9,"content":"<|m|>","special":true}],"decoder":{"type":"ByteLevel"},
		"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},
		"model":{"type":"BPE","vocab":{"a":0,"b":1,"c":2,"Ġ":3,"ab":4,"Ġa":5,"abc":6,"Ġabc":7,"bc":8},"merges":["a b","Ġ a","b c"]}}`),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ids     []int32
		n       int
		open    string
		allowed []int32
	}{
		{[]int32{0, 3}, 1, " ", []int32{3, 5, 7}},
		{[]int32{0, 5}, 1, " a", []int32{3, 5, 7}},
		{[]int32{0, 5, 1}, 2, " ab", []int32{3, 5, 7}}, // " a" and "b" begin " abc"
		{[]int32{4, 1}, 1, "b", []int32{1, 8}},
		{[]int32{1, 0, 1}, 2, "ab", []int32{0, 4, 6}},
		{[]int32{0, 2}, 0, "", nil}, // nothing goes on behind c
		{[]int32{3}, 0, "", nil},    // the first token stays
		{[]int32{3, 9}, 0, "", nil}, // behind a control token nothing is cut
		{[]int32{9, 3}, 1, " ", []int32{3, 5, 7}},
		{[]int32{0, 3, 9, 0}, 1, "a", []int32{0, 4, 6}},
	} {
		n, open := tok.Unfinished(c.ids)
		if n != c.n || string(open) != c.open {
			t.Errorf("%v: %d tokens, %q, want %d, %q", c.ids, n, open, c.n, c.open)
			continue
		}
		if n == 0 {
			continue
		}
		bits := make([]uint64, 1)
		tok.Spelling(open, bits)
		var got []int32
		for id := range int32(tok.Size()) {
			if bits[0]>>id&1 != 0 {
				got = append(got, id)
			}
		}
		if !slices.Equal(got, c.allowed) {
			t.Errorf("%q may go on with %v, want %v", open, got, c.allowed)
		}
	}
}

// TestDecoderGoesOnBehindAToken: the space of a SentencePiece word is stripped at a text's start, not in its middle.
func TestDecoderGoesOnBehindAToken(t *testing.T) {
	tok := loadTokenizer(t, "testdata/llama2.json")
	ids := must(tok.Encode(nil, "hello world", Options{}))
	for i := 1; i < len(ids); i++ {
		d := tok.NewDecoderAfter(false, ids[i-1])
		var rest strings.Builder
		for _, id := range ids[i:] {
			rest.WriteString(d.Next(id))
		}
		if before := tok.Decode(ids[:i], false); before+rest.String() != "hello world" {
			t.Errorf("%q goes on with %q", before, rest.String())
		}
	}
}
