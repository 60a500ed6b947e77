package model

import (
	"errors"
	"slices"

	"github.com/baleenrun/baleen/internal/tokenizer"
)

// ErrNoTemplate says that a model has no chat template: it continues text.
var ErrNoTemplate = errors.New("the model has no chat template; give it a text to continue")

// Text returns the tokens of a text to be continued, with what the model wants before a text.
func (m *Model) Text(text string) ([]int32, error) {
	ids, err := m.Tokenizer.Encode(nil, text, tokenizer.Options{AddSpecial: true})
	if err != nil {
		return nil, err
	}
	for n := len(ids); n > 1 && slices.Contains(m.stops, ids[n-1]); n-- { // some tokenizers end every text
		ids = ids[:n-1]
	}
	if len(ids) == 0 {
		if bos, ok := m.Tokenizer.BOS(); ok {
			ids = append(ids, bos)
		}
	}
	return ids, nil
}
