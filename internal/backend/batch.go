package backend

import (
	"fmt"

	"github.com/baleenrun/baleen/internal/plan"
)

// CheckBatch tells what of a step would read or write where it must not. Backends call it before they take a step.
func CheckBatch(p *plan.Plan, o Options, b *Batch) error {
	rows := len(b.Tokens)
	if rows == 0 || rows > o.MaxRows || len(b.Seqs) > o.MaxSeqs || len(b.Out) > o.MaxOut {
		return fmt.Errorf("a step of %d rows, %d sequences, %d rows with logits; the limits are %d, %d, %d",
			rows, len(b.Seqs), len(b.Out), o.MaxRows, o.MaxSeqs, o.MaxOut)
	}
	r := 0
	for i := range b.Seqs {
		s := &b.Seqs[i]
		if err := checkSeq(p, o, i, s, rows-r); err != nil {
			return err
		}
		r += s.Rows
	}
	if r != rows {
		return fmt.Errorf("the sequences have %d rows, the batch has %d", r, rows)
	}
	last := int32(-1)
	for _, o := range b.Out {
		if o <= last || int(o) >= rows {
			return fmt.Errorf("row %d with logits is out of order or beyond the %d rows", o, rows)
		}
		last = o
	}
	for _, t := range b.Tokens {
		if t < 0 || int(t) >= p.Vocab {
			return fmt.Errorf("token %d is outside the vocabulary of %d", t, p.Vocab)
		}
	}
	return nil
}

func checkSeq(p *plan.Plan, o Options, i int, s *Seq, left int) error {
	if s.Rows <= 0 || s.Rows > left || s.Pos < 0 || s.Pos+s.Rows > p.Context {
		return fmt.Errorf(
			"sequence %d has rows %d at position %d; %d rows left, context %d",
			i,
			s.Rows,
			s.Pos,
			left,
			p.Context,
		)
	}
	if len(s.Pages) != len(p.Groups) {
		return fmt.Errorf("sequence %d has page tables for %d groups of %d", i, len(s.Pages), len(p.Groups))
	}
	for g, t := range s.Pages {
		first, end := 0, (s.Pos+s.Rows-1)/PageTokens+1
		if w := p.Groups[g].Window; w > 0 {
			first = max(0, s.Pos-w+1) / PageTokens
		}
		if len(t) < end {
			return fmt.Errorf("sequence %d has %d pages of group %d, its rows need %d", i, len(t), g, end)
		}
		for n := first; n < end; n++ {
			if t[n] < 0 || int(t[n]) >= o.Pages[g] {
				return fmt.Errorf("sequence %d: page %d of group %d is %d, of %d", i, n, g, t[n], o.Pages[g])
			}
		}
	}
	if len(p.States) > 0 && (s.Slot < 0 || int(s.Slot) >= o.Slots) {
		return fmt.Errorf("sequence %d has slot %d of %d", i, s.Slot, o.Slots)
	}
	return nil
}
