package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/kv"
	"github.com/baleenrun/baleen/internal/plan"
	"github.com/baleenrun/baleen/internal/sample"
)

// mix is one round of a hash.
func mix(a, b uint64) uint64 {
	a ^= b + 0x9E3779B97F4A7C15 + a<<6 + a>>2
	a *= 0xBF58476D1CE4E5B9
	return a ^ a>>29
}

// kind is a kind of model by its memory: windows of its groups, and whether it has a state.
type kind struct {
	name    string
	windows []int
	state   bool
	long    int // see plan.Plan.LongFrom
}

var kinds = []kind{
	{"full", []int{0}, false, 0},
	{"window", []int{40}, false, 0},
	{"full and windows", []int{0, 70, 5}, false, 0},
	{"state", nil, true, 0},
	{"full and state", []int{0}, true, 0},
	{"full, window and state", []int{0, 33}, true, 0},
	{"long sequences", []int{0}, false, 90},
}

const fakeVocab = 61

func (k kind) plan(context int) *plan.Plan {
	p := &plan.Plan{Vocab: fakeVocab, Context: context, LongFrom: k.long}
	for _, w := range k.windows {
		p.Groups = append(p.Groups, plan.Group{Window: w})
	}
	if k.state {
		p.States = []plan.State{{Name: "state", Size: 1}}
	}
	return p
}

// history is what the fake model computes from: everything that a row can see. A row's hash goes into what later
// rows see, so one wrong cell, position or state changes all that follows.
type history interface {
	cell(group, pos int) uint64
	state() uint64
	long() bool
}

func rowHash(k kind, h history, token int32, pos int) uint64 {
	e := mix(uint64(token)+1, uint64(pos))
	if h.long() {
		e = mix(e, 77)
	}
	for g, w := range k.windows {
		first := 0
		if w > 0 {
			first = max(0, pos-w+1)
		}
		acc := uint64(g)
		for q := first; q < pos; q++ {
			acc = mix(acc, h.cell(g, q))
		}
		e = mix(e, acc)
	}
	if k.state {
		e = mix(e, h.state())
	}
	return e
}

func fakeLogits(dst []float32, hash uint64) {
	for i := range dst {
		dst[i] = float32(mix(hash, uint64(i))%4096) / 512
	}
}

// oracle computes the same without pages, slots, batches or chunks.
type oracle struct {
	k      kind
	cells  []uint64
	s      uint64
	tokens []int32
	isLong bool
}

func (o *oracle) cell(g, pos int) uint64 { return mix(o.cells[pos], uint64(g)) }
func (o *oracle) state() uint64          { return o.s }
func (o *oracle) long() bool             { return o.isLong }

func (o *oracle) feed(token int32) uint64 {
	o.tokens = append(o.tokens, token)
	if o.k.long > 0 && len(o.tokens) == o.k.long+1 { // all that stands before is another sequence's now
		before := o.tokens[:o.k.long]
		*o = oracle{k: o.k, tokens: o.tokens, isLong: true}
		for _, t := range before {
			o.row(t)
		}
	}
	return o.row(token)
}

func (o *oracle) row(token int32) uint64 {
	e := rowHash(o.k, o, token, len(o.cells))
	o.cells = append(o.cells, e)
	o.s = mix(o.s, e)
	return e
}

// expect returns the tokens that a request must generate, a stop token included.
func expect(k kind, r *Request, capacity int) []int32 {
	o := &oracle{k: k}
	var at uint64
	for _, t := range r.Tokens {
		at = o.feed(t)
	}
	tokens := append([]int32(nil), r.Tokens...)
	limit := capacity
	if r.MaxTokens > 0 {
		limit = min(limit, len(tokens)+r.MaxTokens)
	}
	var mask sample.Mask
	if m, ok := r.Mask.(masks); ok {
		mask = m.plain()
	}
	sampler, scratch := sample.New(r.Sampling, mask), sample.NewScratch(fakeVocab)
	logits := make([]float32, fakeVocab)
	for len(tokens) < limit {
		fakeLogits(logits, at)
		last := int32(-1)
		if n := len(tokens); n > len(r.Tokens) {
			last = tokens[n-1]
		}
		draw := func() (int32, error) {
			if r.NoPenalty != nil && r.NoPenalty(last) {
				return sampler.SampleFreely(scratch, logits, tokens)
			}
			return sampler.Sample(scratch, logits, tokens, len(r.Tokens)-r.Answered)
		}
		id, err := draw()
		if err != nil {
			panic(err)
		}
		tokens = append(tokens, id)
		for _, s := range r.StopTokens {
			if id == s && !r.IgnoreEOS {
				return tokens[len(r.Tokens):]
			}
		}
		at = o.feed(id)
	}
	return tokens[len(r.Tokens):]
}

// promptHashes returns the hash of every row of a prompt.
func promptHashes(k kind, tokens []int32) []uint64 {
	o := &oracle{k: k, isLong: k.long > 0 && len(tokens) > k.long}
	var h []uint64
	for _, t := range tokens {
		h = append(h, o.row(t))
	}
	return h
}

// reserve sets Pages and Slots of o so that the cache holds tokens positions in all, of at most o.MaxSeqs
// sequences at a time, and what they share. MaxRows and MaxSeqs must be set.
func reserve(p *plan.Plan, o *backend.Options, tokens int) {
	// Each sequence ends inside a page, on average in its middle.
	full := (tokens+kv.PageTokens-1)/kv.PageTokens + o.MaxSeqs
	o.Pages = make([]int, len(p.Groups))
	for g := range p.Groups {
		o.Pages[g] = full
		if w := p.Groups[g].Window; w > 0 {
			// A window for each that runs, as much again for cached prefixes, and the chunk of a step.
			windows := 2*o.MaxSeqs*kv.MinPages(w) + o.MaxRows/kv.PageTokens
			o.Pages[g] = max(min(full, windows), kv.MinPages(w))
		}
	}
	o.Slots = 0
	if len(p.States) > 0 {
		o.Slots = 4 * o.MaxSeqs
	}
}

type cell struct {
	hash uint64
	pos  int64
}

// fake is an executor of that model over real pages and slots.
type fake struct {
	k      kind
	o      backend.Options
	pages  [][][kv.PageTokens]cell // by group and page
	slots  []uint64
	logits []float32

	batch    *backend.Batch
	steps    []stepShape
	problem  error // a rule of the interface that was broken
	failStep int   // the step that fails, counted from 1
	cost     func(rows int) time.Duration
	clock    *clock
	closed   bool
}

type stepShape struct{ seqs, rows, outs int }

// clock is a time that only executors advance.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

var errFake = errors.New("the fake executor fails as it was told")

func newFake(k kind, o backend.Options) *fake {
	f := &fake{k: k, o: o, slots: make([]uint64, o.Slots), logits: make([]float32, o.MaxOut*fakeVocab)}
	for g := range k.windows {
		f.pages = append(f.pages, make([][kv.PageTokens]cell, o.Pages[g]))
		for p := range f.pages[g] {
			for i := range f.pages[g][p] {
				f.pages[g][p][i] = cell{0xDEAD, -1}
			}
		}
	}
	return f
}

// seqHistory reads a sequence's cells through its page tables.
type seqHistory struct {
	f *fake
	s *backend.Seq
}

func (h seqHistory) cell(g, pos int) uint64 {
	t := h.s.Pages[g]
	if pos/kv.PageTokens >= len(t) || t[pos/kv.PageTokens] < 0 {
		h.f.fail("group %d: position %d has no page", g, pos)
		return 0
	}
	c := h.f.pages[g][t[pos/kv.PageTokens]][pos%kv.PageTokens]
	if c.pos != int64(pos) {
		h.f.fail("group %d: position %d holds position %d", g, pos, c.pos)
	}
	return c.hash
}

func (h seqHistory) state() uint64 { return h.f.slots[h.s.Slot] }
func (h seqHistory) long() bool    { return h.s.Long }

func (f *fake) fail(format string, a ...any) {
	if f.problem == nil {
		f.problem = fmt.Errorf(format, a...)
	}
}

func (f *fake) Submit(b *backend.Batch) error {
	if f.batch != nil {
		f.fail("submit while a step runs")
	}
	f.batch = b
	return nil
}

func (f *fake) Wait() ([]float32, error) {
	b := f.batch
	f.batch = nil
	f.check(b)
	f.steps = append(f.steps, stepShape{len(b.Seqs), len(b.Tokens), len(b.Out)})
	if f.clock != nil {
		f.clock.t = f.clock.t.Add(f.cost(len(b.Tokens)))
	}
	fails := len(f.steps) == f.failStep
	row, out := 0, 0
	for i := range b.Seqs {
		s := &b.Seqs[i]
		h := seqHistory{f, s}
		for pos := s.Pos; pos < s.Pos+s.Rows; pos++ {
			e := rowHash(f.k, h, b.Tokens[row], pos)
			if fails {
				e = 0xBAD // what a failed step leaves behind
			}
			for g := range f.k.windows {
				f.pages[g][s.Pages[g][pos/kv.PageTokens]][pos%kv.PageTokens] = cell{mix(e, uint64(g)), int64(pos)}
			}
			if f.k.state {
				f.slots[s.Slot] = mix(f.slots[s.Slot], e)
			}
			if out < len(b.Out) && int(b.Out[out]) == row {
				fakeLogits(f.logits[out*fakeVocab:(out+1)*fakeVocab], e)
				out++
			}
			row++
		}
	}
	if fails {
		return nil, errFake
	}
	return f.logits[:out*fakeVocab], nil
}

// check tests a batch against the rules of the interface.
func (f *fake) check(b *backend.Batch) {
	rows := 0
	writes := map[[2]int32]bool{}
	for _, s := range b.Seqs {
		if s.Rows < 1 {
			f.fail("a sequence without rows")
		}
		rows += s.Rows
		for g := range f.k.windows {
			for i := s.Pos / kv.PageTokens; i <= (s.Pos+s.Rows-1)/kv.PageTokens; i++ {
				at := [2]int32{int32(g), s.Pages[g][i]}
				if writes[at] {
					f.fail("two sequences write to page %v", at)
				}
				writes[at] = true
			}
		}
		if f.k.state {
			at := [2]int32{-1, s.Slot}
			if writes[at] {
				f.fail("two sequences write to slot %d", s.Slot)
			}
			writes[at] = true
		}
	}
	if rows != len(b.Tokens) || rows > f.o.MaxRows || len(b.Seqs) > f.o.MaxSeqs || len(b.Out) > f.o.MaxOut {
		f.fail("%d tokens, %d rows, %d sequences, %d outputs", len(b.Tokens), rows, len(b.Seqs), len(b.Out))
	}
	for i, o := range b.Out {
		if int(o) >= rows || i > 0 && o <= b.Out[i-1] {
			f.fail("outputs %v", b.Out)
		}
	}
}

const cellBytes = 16

func (f *fake) PageBytes(int) int { return kv.PageTokens * cellBytes }

func (f *fake) idle() {
	if f.batch != nil {
		f.fail("memory is moved while a step runs")
	}
}

func (f *fake) PageOut(dst []byte, g int, page int32) {
	f.idle()
	for i, c := range f.pages[g][page] {
		binary.LittleEndian.PutUint64(dst[i*cellBytes:], c.hash)
		binary.LittleEndian.PutUint64(dst[i*cellBytes+8:], uint64(c.pos))
	}
}

func (f *fake) PageIn(g int, page int32, src []byte) {
	f.idle()
	for i := range f.pages[g][page] {
		f.pages[g][page][i] = cell{
			binary.LittleEndian.Uint64(src[i*cellBytes:]), int64(binary.LittleEndian.Uint64(src[i*cellBytes+8:])),
		}
	}
}

func (f *fake) PageCopy(g int, dst, src int32) { f.idle(); f.pages[g][dst] = f.pages[g][src] }
func (f *fake) SlotBytes() int                 { return 8 }

func (f *fake) SlotOut(dst []byte, slot int32) {
	f.idle()
	binary.LittleEndian.PutUint64(dst, f.slots[slot])
}

func (f *fake) SlotIn(slot int32, src []byte) {
	f.idle()
	f.slots[slot] = binary.LittleEndian.Uint64(src)
}

func (f *fake) SlotCopy(dst, src int32) { f.idle(); f.slots[dst] = f.slots[src] }
func (f *fake) SlotZero(slot int32)     { f.idle(); f.slots[slot] = 0 }
func (f *fake) Close() error            { f.closed = true; return nil }
