package model

import (
	"slices"

	"github.com/baleenrun/baleen/internal/grammar"
	"github.com/baleenrun/baleen/internal/tokenizer"
)

// Vocabulary indexes the tokens of a tokenizer for constraints: control tokens stand for no text, and end, with the
// tokenizer's own end tokens, end a text. It takes about a second for 150,000 tokens and is made once for a model.
func Vocabulary(t *tokenizer.Tokenizer, end ...int32) (*grammar.Vocabulary, error) {
	tokens := make([][]byte, t.Size())
	for id := range tokens {
		if !t.IsSpecial(int32(id)) {
			tokens[id] = t.Bytes(int32(id))
		}
	}
	return grammar.NewVocabulary(tokens, slices.Concat(t.EOS(), end))
}
