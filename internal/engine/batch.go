package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/baleenrun/baleen/internal/backend"
)

// schedule makes the batch of the next step and reports whether there is anything in it: first one row for each
// stream that runs, then chunks of prompts, shared evenly among the newcomers.
func (e *Engine) schedule() bool {
	for {
		e.clearBatch()
		e.decodeRows = e.scheduleDecode()
		e.schedulePrompts(e.decodeRows)
		if len(e.entries) > 0 {
			return true
		}
		if slices.ContainsFunc(e.running, (*sequence).awaitsMask) {
			return false // whoever makes the mask wakes the engine
		}
		// Every sequence lacks pages that another one holds.
		switch len(e.running) {
		case 0:
			return false
		case 1:
			s := e.running[0]
			e.remove(s)
			e.finish(s, FinishError, errors.New("engine: no pages left for the only sequence"))
			e.wake() // those who wait can run now
			return false
		}
		e.preempt(e.running[len(e.running)-1])
	}
}

func (e *Engine) clearBatch() {
	e.entries = e.entries[:0]
	e.batch.Tokens = e.batch.Tokens[:0]
	e.batch.Seqs = e.batch.Seqs[:0]
	e.batch.Out = e.batch.Out[:0]
	e.decodeRows, e.promptRows = 0, 0
}

// scheduleDecode adds the rows of running streams and counts them. Where pages run out, the youngest sequences make
// room.
func (e *Engine) scheduleDecode() int {
	n := 0
	for i := 0; i < len(e.running); i++ {
		s := e.running[i]
		if s.pending() != 1 {
			continue
		}
		for s.mem.Extend(1) == 0 {
			youngest := e.running[len(e.running)-1]
			if len(e.running) == 1 {
				return n
			}
			e.preempt(youngest)
			if youngest == s {
				return n
			}
		}
		e.add(s, 1)
		n++
	}
	return n
}

// schedulePrompts adds chunks of the prompts that are being computed.
func (e *Engine) schedulePrompts(decode int) {
	e.prefill = e.prefill[:0]
	for _, s := range e.running {
		if s.pending() > 1 && !e.following(s) {
			s.rows = 0
			// A sequence that took over a whole prefix may have become one with a single row.
			e.prefill = append(e.prefill, s)
		}
	}
	if len(e.prefill) == 0 {
		return
	}
	rows := e.o.Exec.MaxRows - decode
	if decode > 0 {
		rows = min(rows, e.budget.rowsBeside(decode))
	}
	outs := e.o.Exec.MaxOut - len(e.running) // beyond the one that each may need
	e.share(rows, outs)
	for _, s := range e.prefill {
		if n := s.mem.Extend(s.rows); n > 0 {
			e.add(s, n)
			e.promptRows += n
		}
	}
}

// share sets rows of the sequences in e.prefill: equal parts, and what some do not use goes to the others.
func (e *Engine) share(rows, outs int) {
	for rows > 0 {
		open := 0
		for _, s := range e.prefill {
			if e.most(s, outs) > s.rows {
				open++
			}
		}
		if open == 0 {
			return
		}
		for _, s := range e.prefill {
			more := min(e.most(s, outs)-s.rows, (rows+open-1)/open)
			if more <= 0 {
				continue
			}
			outs -= max(s.outsFor(s.rows+more)-1, 0) - max(s.outsFor(s.rows)-1, 0)
			s.rows += more
			rows -= more
			if open--; open == 0 || rows == 0 {
				break
			}
		}
	}
}

// most returns how many rows a sequence can use in this step: up to its end, the next snapshot, and as many
// logits as there is room for.
func (e *Engine) most(s *sequence, outs int) int {
	n := min(s.pending(), s.mem.RowsToSnapshot())
	if s.r.PromptLogits == nil {
		return n
	}
	// Rows before logitsAt need no logits; behind it each needs one.
	free := max(s.logitsAt-s.mem.Len(), 0)
	used := max(s.outsFor(s.rows)-1, 0)
	return min(n, free+1+used+max(outs, 0))
}

// add puts the next rows of a sequence into the batch.
func (e *Engine) add(s *sequence, rows int) {
	from := s.mem.Len()
	s.rows, s.outs = rows, 0
	for pos := from; pos < from+rows; pos++ {
		if s.wants(pos) {
			e.batch.Out = append(e.batch.Out, int32(len(e.batch.Tokens)+pos-from))
			s.outs++
		}
	}
	e.batch.Tokens = append(e.batch.Tokens, s.tokens[from:from+rows]...)
	e.batch.Seqs = append(
		e.batch.Seqs,
		backend.Seq{Rows: rows, Pos: from, Long: s.long, Pages: s.mem.Tables(), Slot: s.mem.Slot()},
	)
	e.entries = append(e.entries, s)
}

// runBatch computes the batch and hands its logits out. Where the executor fails, the requests in the batch end
// with its error: what they have in memory is not known any more.
func (e *Engine) runBatch() {
	e.maskBy = time.Time{}
	err := e.x.Submit(&e.batch)
	var logits []float32
	if err == nil {
		logits, err = e.x.Wait()
	}
	e.stats.Steps++
	e.stats.Rows += int64(len(e.batch.Tokens))
	for _, s := range e.entries {
		if err != nil {
			e.end(s, FinishError, err)
			continue
		}
		n := s.outs * e.vocab
		e.collect(s, logits[:n])
		logits = logits[n:]
	}
	e.running = slices.DeleteFunc(e.running, func(s *sequence) bool { return s.done })
}

// collect takes the results of one sequence.
func (e *Engine) collect(s *sequence, logits []float32) {
	from := s.mem.Len()
	to := from + s.rows
	s.mem.Advance(s.tokens[:to])
	s.ready = max(s.ready, to)
	e.report(s)
	for pos := max(from, s.logitsAt); pos < min(to, s.prompt); pos++ {
		if err := s.tellLogits(pos, logits[:e.vocab]); err != nil {
			e.end(s, FinishError, err)
			return
		}
		s.logitsAt = pos + 1
		if pos < len(s.tokens)-1 { // else it is the row to draw from, too
			logits = logits[e.vocab:]
		}
	}
	if to < len(s.tokens) {
		return
	}
	if s.limit == s.prompt {
		e.end(s, FinishLength, nil)
		return
	}
	if !e.maskReady(s) {
		s.mask.wait(logits[:e.vocab])
		return
	}
	s.mask.waits = false // a row that was set aside before the sequence was moved out is computed anew
	e.draw(s, logits[:e.vocab])
}
