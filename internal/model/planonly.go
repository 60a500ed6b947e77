package model

import (
	"errors"

	"github.com/baleenrun/baleen/internal/family"
	"github.com/baleenrun/baleen/internal/plan"
	"github.com/baleenrun/baleen/internal/tokenizer"
)

// A Planned model has a plan and a tokenizer, but nothing is compiled: for those who drive a backend themselves.
type Planned struct {
	Info      family.Info
	Plan      *plan.Plan
	Tokenizer *tokenizer.Tokenizer

	checkpoint *family.Checkpoint
}

// OpenPlan opens the model at path for sequences of context tokens.
func OpenPlan(path string, context int) (*Planned, error) {
	c, err := family.Open(path)
	if err != nil {
		return nil, err
	}
	p := &Planned{Info: c.Info(), checkpoint: c}
	if p.Tokenizer, err = loadTokenizer(c); err == nil {
		if context, err = contextFor(p.Info, context); err == nil {
			p.Plan, err = c.Lower(family.Options{Context: context})
		}
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return p, nil
}

// Close closes the files; the plan ends with them.
func (p *Planned) Close() error { return p.checkpoint.Close() }

// Tokens returns a text's tokens with nothing added but the begin token where the model wants one; bos is that
// token, or -1.
func (p *Planned) Tokens(text string) (tokens []int32, bos int32, err error) {
	bos = -1
	id, has := p.Tokenizer.BOS()
	first, err := p.Tokenizer.Encode(nil, "a", tokenizer.Options{AddSpecial: true})
	if err != nil {
		return nil, bos, err
	}
	if has && len(first) > 0 && first[0] == id {
		bos = id
		tokens = append(tokens, id)
	}
	tokens, err = p.Tokenizer.Encode(tokens, text, tokenizer.Options{})
	return tokens, bos, err
}
