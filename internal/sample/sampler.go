package sample

import (
	"errors"
	"math"
	"slices"
)

// ErrNothingAllowed says that mask and bias forbid every token.
var ErrNothingAllowed = errors.New("sampling: no token is allowed here: the mask or the logit bias forbids all of them")

// ErrNotFinite says that the model's logits are no numbers.
var ErrNotFinite = errors.New(
	"sampling: the logits are not finite: the weights are damaged or the computation overflowed",
)

// A Sampler draws the tokens of one row. It holds no state but its Mask's.
type Sampler struct {
	p    Params
	mask Mask
	bias []bias
}

type bias struct {
	id  int32
	add float32
}

// New returns a sampler for valid parameters.
func New(p Params, mask Mask) *Sampler {
	s := &Sampler{p: p, mask: mask}
	for id, b := range p.LogitBias {
		s.bias = append(s.bias, bias{id, b})
	}
	slices.SortFunc(s.bias, func(a, b bias) int { return int(a.id) - int(b.id) })
	return s
}

// Scratch is working memory for any number of samplers, used by one goroutine at a time.
type Scratch struct {
	cand  []candidate
	block []float64 // weight of each blockTokens tokens
	count []int32   // by token id, all zero between uses
}

// NewScratch returns working memory for rows of vocab logits.
func NewScratch(vocab int) *Scratch {
	return &Scratch{
		cand: make([]candidate, 0, vocab), count: make([]int32, vocab),
		block: make([]float64, 0, vocab/blockTokens+1),
	}
}

// Sample draws the token that follows history, of which the first prompt tokens were given and the others
// generated. The row of logits is changed by mask, bias and penalties. The position of the draw is
// len(history). Nothing is allocated.
func (s *Sampler) Sample(w *Scratch, logits []float32, history []int32, prompt int) (int32, error) {
	return s.sample(w, logits, history, prompt, true)
}

// SampleFreely is Sample without the repetition, presence and frequency penalties: for places where a text has to
// repeat what stands elsewhere, such as the names and brackets of a tool call.
func (s *Sampler) SampleFreely(w *Scratch, logits []float32, history []int32) (int32, error) {
	return s.sample(w, logits, history, len(history), false)
}

func (s *Sampler) sample(w *Scratch, logits []float32, history []int32, prompt int, penalties bool) (int32, error) {
	if err := s.edit(logits); err != nil {
		return -1, err
	}
	if penalties {
		s.penalize(w, logits, history, prompt)
	}
	best, top := int32(-1), float32(math.Inf(-1))
	for i, x := range logits {
		if x > top {
			best, top = int32(i), x
		} else if x != x {
			return -1, ErrNotFinite
		}
	}
	if best < 0 {
		return -1, ErrNothingAllowed
	}
	if math.IsInf(float64(top), 1) {
		return -1, ErrNotFinite
	}
	if s.p.Greedy() {
		return best, s.accept(best)
	}
	id := s.draw(w, logits, top, uniform(s.p.Seed, len(history)))
	return id, s.accept(id)
}

func (s *Sampler) accept(id int32) error {
	if s.mask == nil {
		return nil
	}
	return s.mask.Accept(id)
}

// Take is Sample for a token that is known already: the row's mask accepts it.
func (s *Sampler) Take(id int32) error { return s.accept(id) }

// draw picks a token by the random number u in [0, 1).
func (s *Sampler) draw(w *Scratch, logits []float32, top float32, u float64) int32 {
	partial := func(p float32) bool { return p > 0 && p < 1 }
	switch {
	case s.p.TopK > 0 && s.p.TopK < len(logits):
		w.cand = selectTop(w.cand[:0], logits, s.p.TopK)
	case partial(s.p.TypicalP):
		w.cand = all(w.cand[:0], logits)
	case partial(s.p.TopP):
		c := likely(w, logits, float64(s.p.TopP), top, s.p.Temperature)
		if s.p.MinP > 0 {
			c = atLeast(c, float64(s.p.MinP))
		}
		return pick(c, u)
	case s.p.MinP > 0:
		w.cand = above(w.cand[:0], logits, atWeight(float64(s.p.MinP), top, s.p.Temperature))
	default:
		return pickAny(w, logits, top, s.p.Temperature, u)
	}
	c := w.cand
	weigh(c, top, s.p.Temperature)
	if p := s.p.TypicalP; partial(p) {
		c = typical(c, float64(p), top, s.p.Temperature)
	}
	if p := s.p.TopP; partial(p) {
		c = nucleus(c, float64(p), sum(c), len(c))
	}
	if p := s.p.MinP; p > 0 {
		c = atLeast(c, float64(p))
	}
	return pick(c, u)
}

// edit applies mask and bias in place.
func (s *Sampler) edit(logits []float32) error {
	if s.mask != nil {
		if allowed := s.mask.Allowed(); allowed != nil {
			forbid(logits, allowed)
		}
	}
	for _, b := range s.bias {
		if int(b.id) < len(logits) {
			logits[b.id] += b.add
		}
	}
	return nil
}

// penalize applies the penalties in place.
func (s *Sampler) penalize(w *Scratch, logits []float32, history []int32, prompt int) {
	if r := s.p.RepetitionPenalty; r > 0 && r != 1 {
		n := s.p.RepeatLastN
		if n == 0 {
			n = DefaultRepeatLastN
		}
		recent := history
		if n > 0 && n < len(history) {
			recent = history[len(history)-n:]
		}
		w.tally(recent)
		w.each(recent, func(id, _ int32) {
			if x := logits[id]; x > 0 {
				logits[id] = x / r
			} else {
				logits[id] = x * r
			}
		})
	}
	if f, once := s.p.FrequencyPenalty, s.p.PresencePenalty; f != 0 || once != 0 {
		w.tally(history[prompt:])
		w.each(history[prompt:], func(id, n int32) {
			logits[id] -= float32(float32(n) * f)
			logits[id] -= once
		})
	}
}

// tally counts the ids into w.count.
func (w *Scratch) tally(ids []int32) {
	for _, id := range ids {
		w.count[id]++
	}
}

// each calls f once for each different id with its count and clears the counts.
func (w *Scratch) each(ids []int32, f func(id, n int32)) {
	for _, id := range ids {
		if n := w.count[id]; n != 0 {
			w.count[id] = 0
			f(id, n)
		}
	}
}

// forbid sets the logits whose bit is not set to -Inf.
func forbid(logits []float32, allowed []uint64) {
	inf := float32(math.Inf(-1))
	for i := 0; i < len(logits); i += 64 {
		row := logits[i:min(i+64, len(logits))]
		var bits uint64
		if i/64 < len(allowed) {
			bits = allowed[i/64]
		}
		if bits == ^uint64(0) {
			continue
		}
		for j := range row {
			if bits>>j&1 == 0 {
				row[j] = inf
			}
		}
	}
}
