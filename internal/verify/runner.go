// Package verify compares a checkpoint with reference outputs and measures its perplexity. It drives a compiled
// plan step by step, without an engine, so that the caller decides how rows fall into steps.
package verify

import (
	"context"
	"fmt"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/plan"
)

// A runner feeds the same tokens to some equal sequences at once.
type runner struct {
	exec  backend.Exec
	vocab int
	seqs  []backend.Seq
	batch backend.Batch
	out   int // rows with logits that a step may have
	rows  int // rows of a step for one sequence
	pos   int // of all sequences

	longFrom int // see plan.Plan
}

// newRunner compiles p for n sequences that take steps of at most rows rows each. Sequence i has its own pages and
// slot. out bounds the rows with logits of one step, per sequence.
func newRunner(be backend.Backend, p *plan.Plan, o backend.Options, n, rows, out int) (*runner, error) {
	perSeq := (p.Context + backend.PageTokens - 1) / backend.PageTokens
	o.MaxRows, o.MaxSeqs, o.MaxOut = n*rows, n, n*out
	o.Pages = make([]int, len(p.Groups))
	for g := range o.Pages {
		o.Pages[g] = n * perSeq
	}
	o.Slots = n
	exec, err := be.Compile(p, o)
	if err != nil {
		return nil, err
	}
	r := &runner{exec: exec, vocab: p.Vocab, longFrom: p.LongFrom, out: out, rows: rows}
	for i := range n {
		s := backend.Seq{Pages: make([][]int32, len(p.Groups)), Slot: int32(i)}
		for g := range s.Pages {
			for j := range perSeq {
				s.Pages[g] = append(s.Pages[g], int32(i*perSeq+j))
			}
		}
		r.seqs = append(r.seqs, s)
	}
	r.reset(len(p.States) > 0)
	return r, nil
}

// reset makes all sequences new ones.
func (r *runner) reset(states bool) {
	r.pos = 0
	for i := range r.seqs {
		if states {
			r.exec.SlotZero(int32(i))
		}
	}
}

func (r *runner) close() error { return r.exec.Close() }

// feed runs tokens on all sequences. From token number from on, yield gets the logits of every position: seq is the
// sequence, at the token's number. The logits are valid during the call.
func (r *runner) feed(ctx context.Context, tokens []int32, from int, yield func(seq, at int, logits []float32)) error {
	for i := range r.seqs {
		r.seqs[i].Long = r.longFrom > 0 && r.pos+len(tokens) > r.longFrom
	}
	for begin := 0; begin < len(tokens); {
		if err := ctx.Err(); err != nil {
			return err
		}
		end := min(begin+r.rows, len(tokens))
		if wanted := end - max(begin, from); wanted > r.out {
			end = max(begin, from) + r.out
		}
		if err := r.step(tokens[begin:end], max(0, from-begin), begin, yield); err != nil {
			return err
		}
		begin = end
	}
	return nil
}

func (r *runner) step(tokens []int32, from, base int, yield func(seq, at int, logits []float32)) error {
	b := &r.batch
	b.Tokens, b.Seqs, b.Out = b.Tokens[:0], r.seqs, b.Out[:0]
	for i := range r.seqs {
		r.seqs[i].Rows, r.seqs[i].Pos = len(tokens), r.pos
		for j := from; j < len(tokens); j++ {
			b.Out = append(b.Out, int32(i*len(tokens)+j))
		}
		b.Tokens = append(b.Tokens, tokens...)
	}
	if err := r.exec.Submit(b); err != nil {
		return err
	}
	logits, err := r.exec.Wait()
	if err != nil {
		return err
	}
	if len(logits) < len(b.Out)*r.vocab {
		return fmt.Errorf("the backend gave %d logits for %d rows of %d", len(logits), len(b.Out), r.vocab)
	}
	r.pos += len(tokens)
	for k, row := range b.Out {
		yield(int(row)/len(tokens), base+int(row)%len(tokens), logits[k*r.vocab:(k+1)*r.vocab])
	}
	return nil
}
