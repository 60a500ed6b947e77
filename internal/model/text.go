package model

import (
	"errors"
	"slices"

	"github.com/baleenrun/baleen/internal/tokenizer"
)

// ErrNoTemplate says that a model has no chat template: it continues text.
var ErrNoTemplate = errors.New("the model has no chat template; give it a text to continue")

// Text returns the tokens of a text to be continued, with what the model wants before a text, once. marks tells whether
// control tokens that are written out in it are read as such.
func (m *Model) Text(text string, marks bool) ([]int32, error) {
	ids, err := m.Tokenizer.Encode(nil, text, tokenizer.Options{AddSpecial: true, ParseSpecial: marks})
	if err != nil {
		return nil, err
	}
	if bos, ok := m.Tokenizer.BOS(); ok && len(ids) > 1 && ids[0] == bos && ids[1] == bos {
		ids = ids[1:] // the text has it
	}
	_, after := m.Tokenizer.Around()
	for n := len(ids); n > 1 && after > 0 && slices.Contains(m.stops, ids[n-1]); n, after = n-1, after-1 { // some tokenizers end every text
		ids = ids[:n-1]
	}
	if len(ids) == 0 {
		if bos, ok := m.Tokenizer.BOS(); ok {
			ids = append(ids, bos)
		}
	}
	return ids, nil
}
