package synth

import "fmt"

// GGUF's token types.
const (
	normalToken  int32 = 1
	controlToken int32 = 3
)

// vocabulary makes a byte-level BPE vocabulary of the shape's size: the 256 bytes, merges of two letters, filler
// that no text produces, and one control token that ends texts.
func vocabulary(s Shape) []keyValue {
	tokens := make([]string, 0, s.Vocab)
	for b := range 256 {
		tokens = append(tokens, string(byteRune(b)))
	}
	var merges []string
	const space = "Ġ" // the byte-level spelling of a space
	for _, first := range space + "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" {
		for second := 'a'; second <= 'z' && len(tokens) < s.Vocab-1; second++ {
			tokens = append(tokens, string(first)+string(second))
			merges = append(merges, string(first)+" "+string(second))
		}
	}
	for i := 0; len(tokens) < s.Vocab-1; i++ {
		tokens = append(tokens, fmt.Sprintf("[unused%d]", i))
	}
	tokens = append(tokens, "<|endoftext|>")
	types := make([]int32, len(tokens))
	for i := range types {
		types[i] = normalToken
	}
	last := len(tokens) - 1
	types[last] = controlToken
	return []keyValue{
		{"tokenizer.ggml.model", "gpt2"},
		{"tokenizer.ggml.pre", s.Pre},
		{"tokenizer.ggml.tokens", tokens},
		{"tokenizer.ggml.token_type", types},
		{"tokenizer.ggml.merges", merges},
		{"tokenizer.ggml.bos_token_id", uint32(last)},
		{"tokenizer.ggml.eos_token_id", uint32(last)},
		{"tokenizer.ggml.add_bos_token", false},
	}
}

// byteRune is the printable character that byte-level BPE writes for a byte: itself where it is printable Latin-1,
// else the next free one from U+0100 on.
func byteRune(b int) rune {
	printable := func(b int) bool { return b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae }
	if printable(b) {
		return rune(b)
	}
	n := 0
	for i := range b {
		if !printable(i) {
			n++
		}
	}
	return rune(0x100 + n)
}
