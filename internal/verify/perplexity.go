package verify

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/plan"
)

// A Perplexity is the result of an evaluation.
type Perplexity struct {
	Perplexity float64 `json:"perplexity"`
	Error      float64 `json:"perplexity_error"` // one standard error
	Tokens     int     `json:"tokens"`           // of the whole text
	Scored     int     `json:"scored"`           // tokens that count
	Windows    int     `json:"windows"`
	Window     int     `json:"ctx"`
	Seconds    float64 `json:"seconds"`
}

// A Text is a text as tokens, without what a model wants before it.
type Text struct {
	Tokens []int32
	BOS    int32 // replaces the first token of every window; -1: the model wants none
}

const outRows = 64 // rows with logits of a step: a row of logits takes 600 kB in a model of 150,000 tokens

// Measure computes perplexity as llama-perplexity does: the text is cut into windows of ctx tokens, each begins with
// an empty cache and, where the model wants one, with BOS in place of its first token, and the tokens of its second
// half are scored. What is left at the end is dropped. running may be nil; it is called after every window.
func Measure(
	ctx context.Context,
	p *plan.Plan,
	text Text,
	window int,
	o Options,
	running func(Perplexity, int),
) (Perplexity, error) {
	if window < 4 {
		return Perplexity{}, fmt.Errorf("a window of %d tokens is too small; take at least 4", window)
	}
	if len(text.Tokens) < 2*window {
		return Perplexity{}, fmt.Errorf(
			"the text has %d tokens; windows of %d need at least %d",
			len(text.Tokens),
			window,
			2*window,
		)
	}
	rows := window
	if o.Chunk > 0 {
		rows = min(rows, o.Chunk)
	}
	be, err := o.backendFor(p)
	if err != nil {
		return Perplexity{}, err
	}
	r, err := newRunner(be, p, backend.Options{KV: o.KV}, 1, rows, min(rows, outRows))
	if err != nil {
		return Perplexity{}, err
	}
	defer r.close()
	e := &evaluation{began: time.Now(), tokens: len(text.Tokens), window: window}
	windows := len(text.Tokens) / window
	for w := range windows {
		r.reset(len(p.States) > 0)
		tokens := append([]int32(nil), text.Tokens[w*window:(w+1)*window]...)
		s := &scorer{targets: tokens}
		first := window / 2
		input := append([]int32(nil), tokens[:window-1]...)
		if text.BOS >= 0 {
			input[0] = text.BOS
		}
		if err := r.feed(ctx, input, first, s.add); err != nil {
			return Perplexity{}, err
		}
		e.add(s.losses)
		if running != nil {
			running(e.result(), windows)
		}
	}
	return e.result(), nil
}

// An evaluation adds up windows.
type evaluation struct {
	began        time.Time
	tokens       int
	window       int
	windows      int
	count        int
	nll, squares float64
}

func (e *evaluation) add(losses []float64) {
	for _, l := range losses {
		e.nll += l
		e.squares += l * l
	}
	e.count += len(losses)
	e.windows++
}

func (e *evaluation) result() Perplexity {
	n := float64(e.count)
	mean := e.nll / n
	p := Perplexity{
		Perplexity: finite(math.Exp(mean)),
		Tokens:     e.tokens, Scored: e.count, Windows: e.windows, Window: e.window,
		Seconds: time.Since(e.began).Seconds(),
	}
	if variance := e.squares/n - mean*mean; variance > 0 && e.count > 1 {
		p.Error = finite(p.Perplexity * math.Sqrt(variance/(n-1)))
	}
	return p
}

// A scorer turns rows of logits into losses: -log of the probability of the token that follows.
type scorer struct {
	targets []int32
	losses  []float64
}

func (s *scorer) add(_, at int, logits []float32) {
	s.losses = append(s.losses, splitLogSumExp(logits)-float64(logits[s.targets[at+1]]))
}

// splitLogSumExp works on all cores, in parts of fixed size, so that the result does not depend on the machine.
func splitLogSumExp(v []float32) float64 {
	const part = 16384
	n := (len(v) + part - 1) / part
	sums := make([]float64, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { sums[i] = logSumExp(v[i*part : min((i+1)*part, len(v))]) })
	}
	wg.Wait()
	m := slices.Max(sums)
	var total float64
	for _, s := range sums {
		total += math.Exp(s - m)
	}
	return m + math.Log(total)
}
