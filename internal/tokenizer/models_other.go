package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
)

type lattice struct{}

func (l *lattice) release() {}

func (t *Tokenizer) jsonOtherModel(kind string, raw json.RawMessage, m map[string]json.RawMessage) error {
	return fmt.Errorf("unknown type %q", kind)
}

func (src *ggufSource) loadOther(t *Tokenizer, kind string) error {
	return errors.New("unknown model")
}

// FromDir builds a tokenizer from the files of a model folder.
func FromDir(dir string) (*Tokenizer, error) { return nil, errors.New("tokenizer: no files") }
