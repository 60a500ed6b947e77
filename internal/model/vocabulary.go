package model

import (
	"github.com/baleenrun/baleen/internal/grammar"
	"github.com/baleenrun/baleen/internal/tokenizer"
)

// Vocabulary indexes size tokens of a tokenizer for constraints: control tokens, those that hidden tells, and what is
// beyond the tokenizer's own stand for no text, and ends end a text. It takes about a second for 150,000 tokens and is
// made once for a model. hidden may be nil.
func Vocabulary(t *tokenizer.Tokenizer, size int, hidden func(id int32) bool, ends []int32) (*grammar.Vocabulary, error) {
	tokens := make([][]byte, size)
	for id := range int32(min(size, t.Size())) {
		if !t.IsSpecial(id) && (hidden == nil || !hidden(id)) {
			tokens[id] = t.Bytes(id)
		}
	}
	return grammar.NewVocabulary(tokens, ends)
}
