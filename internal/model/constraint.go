package model

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"

	"github.com/baleenrun/baleen/internal/grammar"
	"github.com/baleenrun/baleen/internal/sample"
	"github.com/baleenrun/baleen/internal/tokenizer"
)

// Vocabulary is the model's tokens as constraints read them. It is made when it is first asked for.
func (m *Model) Vocabulary() (*grammar.Vocabulary, error) {
	m.vocabulary.once.Do(func() {
		m.vocabulary.v, m.vocabulary.err = Vocabulary(m.Tokenizer, m.stops...)
	})
	return m.vocabulary.v, m.vocabulary.err
}

type lazyVocabulary struct {
	once sync.Once
	v    *grammar.Vocabulary
	err  error
}

// Constraints makes the masks of rows that one grammar constrains: they share what the masker has found.
type Constraints struct {
	k   *grammar.Masker
	g   *grammar.Grammar
	tok *tokenizer.Tokenizer
}

// Constrain joins a grammar with the model's vocabulary. It is made once for a grammar and serves all its requests.
func (m *Model) Constrain(g *grammar.Grammar) (*Constraints, error) {
	v, err := m.Vocabulary()
	if err != nil {
		return nil, err
	}
	return NewConstraints(g, v, m.Tokenizer), nil
}

// maxConstraints is how many compiled constraints a model keeps. Each may hold some 100 MB of states and masks, which
// few do.
const maxConstraints = 16

// constraintCache keeps what was compiled, by its source.
type constraintCache struct {
	mu    sync.Mutex
	kept  map[[sha256.Size]byte]*compiled
	order [][sha256.Size]byte // the last used at the end
}

type compiled struct {
	once sync.Once
	c    *Constraints
	err  error
}

// Constraint is the constraint that compile makes of a source, compiled once for all requests that have the same: source
// says everything that it depends on, options and kind of grammar included. It must not be called on the engine's
// goroutine: compiling may take a second.
func (m *Model) Constraint(source string, compile func() (*grammar.Grammar, error)) (*Constraints, error) {
	k := sha256.Sum256([]byte(source))
	e := m.constraints.entry(k)
	e.once.Do(func() {
		g, err := compile()
		if err == nil {
			e.c, err = m.Constrain(g)
		}
		e.err = err
	})
	return e.c, e.err
}

// entry finds an entry or makes one, in place of the one that was used longest ago.
func (c *constraintCache) entry(k [sha256.Size]byte) *compiled {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.order, k); i >= 0 {
		c.order = slices.Delete(c.order, i, i+1)
	} else {
		if c.kept == nil {
			c.kept = map[[sha256.Size]byte]*compiled{}
		}
		c.kept[k] = &compiled{}
		if len(c.order) == maxConstraints {
			delete(c.kept, c.order[0])
			c.order = slices.Delete(c.order, 0, 1)
		}
	}
	c.order = append(c.order, k)
	return c.kept[k]
}

// NewConstraints joins a grammar with a vocabulary and its tokenizer.
func NewConstraints(g *grammar.Grammar, v *grammar.Vocabulary, tok *tokenizer.Tokenizer) *Constraints {
	return &Constraints{k: grammar.NewMasker(g, v), g: g, tok: tok}
}

// Row is a new answer's mask.
func (c *Constraints) Row() *RowMask {
	return &RowMask{c: c, at: c.g.Matcher(), bits: make([]uint64, c.k.Words())}
}

// A RowMask is the constraint of one row: a sample.Mask that is made beside the step and says what must come next.
type RowMask struct {
	c    *Constraints
	at   grammar.Matcher
	bits []uint64
	made bool
	err  error
}

var (
	_ sample.Preparer = (*RowMask)(nil)
	_ sample.Forcer   = (*RowMask)(nil)
)

// Prepare makes the mask of the place where the answer is.
func (r *RowMask) Prepare() {
	if !r.made {
		r.err = r.c.k.Mask(r.at, r.bits)
		r.made = true
	}
}

// Allowed is the tokens that may come next. Where a limit of the grammar was met there are none, and Accept says why.
func (r *RowMask) Allowed() []uint64 {
	r.Prepare()
	if r.err != nil {
		clear(r.bits)
	}
	return r.bits
}

// Accept moves on by a token.
func (r *RowMask) Accept(id int32) error {
	if r.err != nil {
		return r.err
	}
	next, ok, err := r.c.k.AcceptToken(r.at, id)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("model: token %d does not fit the constraint", id)
	}
	r.at, r.made = next, false
	return nil
}

// Forced is the tokens that must come next, spelled as the tokenizer itself would. Its last token is left to be drawn:
// what follows may be part of a longer one.
func (r *RowMask) Forced() []int32 {
	text := r.at.Forced()
	if len(text) < 2 {
		return nil
	}
	ids, err := r.c.tok.Encode(nil, string(text), tokenizer.Options{})
	if err != nil || len(ids) < 2 {
		return nil
	}
	ids = ids[:len(ids)-1]
	at := r.at
	for i, id := range ids { // a tokenizer may add or join what is not there: then what fits is kept
		next, ok, err := r.c.k.AcceptToken(at, id)
		if err != nil || !ok {
			return ids[:i]
		}
		at = next
	}
	return ids
}

// Accepting reports whether the answer so far fits the constraint as a whole: one that was cut may not.
func (r *RowMask) Accepting() bool { return r.at.Accepting() }
