package chat

import (
	"slices"
	"strings"

	"github.com/baleenrun/baleen/internal/tokenizer"
)

// Whether a text that ends inside a token is healed where a request does not say: measured on code, see
// docs/BENCHMARKS.md.
const (
	healText = true
	healGap  = true
)

// heal takes the last tokens of a text that is continued off again where they may be parts of longer ones; the first
// tokens of the answer must spell them out, see tokenizer.Unfinished. cut gives the tokens of the text, and build those
// of a prompt with another text in its place. The tokens before are those of the whole text, to the last.
func (p *prompt) heal(m *Model, text string, cut, build func(text string) ([]int32, error)) error {
	whole, err := cut(text)
	if err != nil {
		return err
	}
	n, open := m.Tokenizer.Unfinished(whole)
	short, ok := strings.CutSuffix(text, string(open))
	if n == 0 || !ok || short == "" {
		return nil
	}
	kept, err := cut(short)
	if err != nil || !slices.Equal(kept, whole[:len(whole)-n]) {
		return err // the text before it would be cut in another way
	}
	tokens, err := build(short)
	if err == nil {
		p.tokens, p.open, p.openTokens = tokens, open, n
	}
	return err
}

// healed tells whether a request's text may be healed: not where the prompt's own tokens are asked about.
func (r *Request) healed(byDefault bool) bool {
	if r.PromptLogProbs || r.MaxTokens < 0 || r.Format.Kind != "" {
		return false
	}
	if r.Heal != nil {
		return *r.Heal
	}
	return byDefault
}

// A spelling is the mask of an answer that begins with bytes of the prompt. It is for one answer.
type spelling struct {
	t       *tokenizer.Tokenizer
	open    []byte // to be spelled out yet
	allowed []uint64
}

func newSpelling(t *tokenizer.Tokenizer, open []byte) *spelling {
	return &spelling{t: t, open: open, allowed: make([]uint64, (t.Size()+63)/64)}
}

// Allowed returns the tokens that agree with what must be spelled out.
func (s *spelling) Allowed() []uint64 {
	if len(s.open) == 0 {
		return nil
	}
	clear(s.allowed)
	s.t.Spelling(s.open, s.allowed)
	return s.allowed
}

// Accept takes a token.
func (s *spelling) Accept(id int32) error {
	if len(s.open) > 0 {
		b := s.t.Bytes(id)
		s.open = s.open[min(len(b), len(s.open)):]
	}
	return nil
}

// unspell takes what belongs to the prompt off the next text of an answer.
func (c *choice) unspell(text string) string {
	n := min(len(text), len(c.open))
	c.open = c.open[n:]
	return text[n:]
}

// spells notes the bytes of a token that spell out the end of the prompt. It reports how many they are, and whether
// that is all of them: such a token is no part of the answer.
func (c *choice) spells(id int32) (n int, all bool) {
	if c.unspelled == 0 {
		return 0, false
	}
	b := c.s.lease.Model.Tokenizer.Bytes(id)
	n = min(len(b), c.unspelled)
	c.unspelled -= n
	return n, n == len(b)
}
