// Package backendtest is the contract that every backend keeps: each operation agrees with the plain definition in
// planref, and the bits of a sequence's logits depend on its own tokens only. It owns the small random plans and
// the ways of running them; it knows no particular backend.
package backendtest

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/plan"
	"github.com/baleenrun/baleen/internal/plan/planref"
	"github.com/baleenrun/baleen/internal/quant"
)

// A way is one manner of computing the same logits.
type way struct {
	name    string
	limit   string
	threads int
	chunk   int
	others  int  // further sequences in the batch
	swap    bool // pages and slots go to host memory and come back elsewhere between steps
}

// A Maker makes the backend under test, limited to an instruction set and a number of threads where it has such.
type Maker func(limit string, threads int) backend.Backend

// Run tests a backend. limits are the instruction sets to compare, the first being the reference.
func Run(t *testing.T, b Maker, limits []string) {
	types := []quant.Type{quant.F32, quant.BF16, quant.Q4_0, quant.Q8_0, quant.Q6_K}
	if testing.Short() { // emulated processors and plain Go alone
		types = []quant.Type{quant.F32, quant.Q4_0}
	}
	for _, typ := range types {
		for _, p := range Plans(typ) {
			t.Run(fmt.Sprintf("%s/%v", p.Family, typ), func(t *testing.T) { runPlan(t, b, p, typ, limits) })
		}
	}
}

// RunLong tests that a backend turns long sequences by angles of their own, beside short ones in the same steps.
func RunLong(t *testing.T, b Maker) {
	p := *Plans(quant.F32)[0]
	p.LongFrom, p.Ropes = 25, slices.Clone(p.Ropes)
	for i := range p.Ropes {
		r := &p.Ropes[i]
		for j, f := range r.InvFreq {
			r.Long = append(r.Long, f/float64(j+2))
		}
	}
	for _, n := range []int{25, 26, 70} {
		tokens := Tokens(7, n)
		got := compute(t, b, &p, tokens, way{threads: 1, chunk: 8, others: 3}, backend.KVF32)
		compare(t, got, planref.Run(&p, tokens), quant.F32)
	}
}

func runPlan(t *testing.T, b Maker, p *plan.Plan, typ quant.Type, limits []string) {
	n := 70
	if testing.Short() {
		n = 45 // two pages, and more than a window
	}
	tokens := Tokens(7, n)
	first := compute(t, b, p, tokens, way{limit: limits[0], threads: 1, chunk: n}, backend.KVF32)
	// Quantized activations move router logits, and other experts are another model.
	if typ.BlockSize() == 1 || len(p.Routes) == 0 {
		compare(t, first, planref.Run(p, tokens), typ)
	}
	for _, kv := range []backend.KVType{backend.KVF32, backend.KVF16} {
		want := digest(compute(t, b, p, tokens, way{limit: limits[0], threads: 1, chunk: n}, kv))
		for _, w := range ways(limits) {
			if got := digest(compute(t, b, p, tokens, w, kv)); got != want {
				t.Errorf("kv %v, %s: other bits than one chunk on one thread with %s", kv, w.name, limits[0])
			}
		}
	}
	if testing.Short() {
		return
	}
	long := Tokens(8, 1100) // several chunks of attention, on more threads than heads
	want := digest(compute(t, b, p, long, way{limit: limits[len(limits)-1], threads: 1, chunk: 128}, backend.KVF16))
	for _, w := range []way{{threads: 4, chunk: 100}, {threads: 3, chunk: 512, others: 1}} {
		if got := digest(compute(t, b, p, long, w, backend.KVF16)); got != want {
			t.Errorf("1,100 tokens with %+v: other bits than on one thread", w)
		}
	}
}

func ways(limits []string) []way {
	if testing.Short() {
		ws := []way{{name: "chunks of 8, two more sequences, swapped", threads: 2, chunk: 8, others: 2, swap: true}}
		for _, c := range limits[1:] {
			ws = append(ws, way{name: "instruction set " + c, limit: c, threads: 2, chunk: 13, others: 1})
		}
		return ws
	}
	ws := []way{
		{name: "one by one", threads: 2, chunk: 1},
		{name: "chunks of 3", threads: 3, chunk: 3},
		{name: "chunks of 8, two more sequences", threads: 4, chunk: 8, others: 2},
		{name: "chunks of 50, seven more sequences", threads: 2, chunk: 50, others: 7},
		{name: "one by one, seven more sequences", threads: 1, chunk: 1, others: 7},
		{name: "swapped out and in", threads: 2, chunk: 11, others: 1, swap: true},
	}
	for _, c := range limits[1:] {
		ws = append(ws, way{name: "instruction set " + c, limit: c, threads: 2, chunk: 13, others: 1},
			way{name: "instruction set " + c + ", one by one", limit: c, threads: 1, chunk: 1})
	}
	return ws
}

// compare holds logits against the definition: exactly representable weights to float32 accuracy, quantized ones
// (whose activations are quantized too) by the root of the mean square.
func compare(t *testing.T, got, want [][]float32, typ quant.Type) {
	t.Helper()
	var worst, sum, norm float64
	for r := range want {
		for i := range want[r] {
			d := math.Abs(float64(got[r][i]) - float64(want[r][i]))
			worst = max(worst, d/(1+math.Abs(float64(want[r][i]))))
			sum += d * d
			norm += float64(want[r][i]) * float64(want[r][i])
		}
	}
	relative := math.Sqrt(sum / norm)
	exact := typ.BlockSize() == 1
	if exact && !(worst < 1e-4) || !(relative < 0.1) {
		t.Errorf("logits differ from the definition by %.2g at most, %.2g of their size", worst, relative)
	}
}

// Tokens returns n random tokens of the test plans' vocabulary.
func Tokens(seed uint64, n int) []int32 {
	r := rand.New(rand.NewPCG(seed, 2))
	ts := make([]int32, n)
	for i := range ts {
		ts[i] = r.Int32N(vocab)
	}
	return ts
}

func digest(rows [][]float32) [32]byte {
	h := sha256.New()
	for _, r := range rows {
		h.Write(unsafe.Slice((*byte)(unsafe.Pointer(&r[0])), 4*len(r)))
	}
	return [32]byte(h.Sum(nil))
}

// compute returns the logits of all tokens, computed in the given way beside other sequences.
func compute(t *testing.T, b Maker, p *plan.Plan, tokens []int32, w way, kv backend.KVType) [][]float32 {
	t.Helper()
	seqs := 1 + w.others
	perSeq := (len(tokens)+backend.PageTokens-1)/backend.PageTokens + 1
	o := backend.Options{
		KV: kv, MaxRows: seqs * w.chunk, MaxSeqs: seqs, MaxOut: seqs * w.chunk, Slots: 2 * seqs,
	}
	for range p.Groups {
		o.Pages = append(o.Pages, 2*seqs*perSeq)
	}
	x, err := b(w.limit, w.threads).Compile(p, o)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	r := &runner{x: x, p: p, rnd: rand.New(rand.NewPCG(9, uint64(w.chunk)))}
	for g := range p.Groups {
		r.free = append(r.free, r.rnd.Perm(o.Pages[g]))
	}
	r.slots = r.rnd.Perm(o.Slots)
	all := [][]int32{tokens}
	for i := range w.others {
		all = append(all, Tokens(uint64(100+i), len(tokens)/(1+i%3)))
	}
	for _, ts := range all {
		r.seqs = append(r.seqs, r.begin(ts))
	}
	at := w.others / 2 // the sequence in question stands amid the others
	r.seqs[0], r.seqs[at] = r.seqs[at], r.seqs[0]
	for !r.seqs[at].done() {
		r.step(t, w.chunk)
		if w.swap {
			r.swap()
		}
	}
	return r.seqs[at].logits
}

// runner drives an executor: it hands out pages and slots and keeps the logits.
type runner struct {
	x     backend.Exec
	p     *plan.Plan
	rnd   *rand.Rand
	free  [][]int
	slots []int
	seqs  []*sequence
}

type sequence struct {
	tokens []int32
	pos    int
	pages  [][]int32
	slot   int32
	logits [][]float32
}

func (s *sequence) done() bool { return s.pos >= len(s.tokens) }

func (r *runner) begin(tokens []int32) *sequence {
	s := &sequence{tokens: tokens, pages: make([][]int32, len(r.p.Groups)), slot: r.takeSlot()}
	r.x.SlotZero(s.slot)
	return s
}

func (r *runner) takeSlot() int32 {
	s := r.slots[len(r.slots)-1]
	r.slots = r.slots[:len(r.slots)-1]
	return int32(s)
}

func (r *runner) takePage(g int) int32 {
	f := r.free[g]
	r.free[g] = f[:len(f)-1]
	return int32(f[len(f)-1])
}

func (r *runner) step(t *testing.T, chunk int) {
	t.Helper()
	var b backend.Batch
	var who []*sequence
	for _, s := range r.seqs {
		n := min(chunk, len(s.tokens)-s.pos)
		if n <= 0 {
			continue
		}
		for g := range s.pages {
			for len(s.pages[g])*backend.PageTokens < s.pos+n {
				s.pages[g] = append(s.pages[g], r.takePage(g))
			}
			r.returnPages(s, g)
		}
		for i := range n {
			b.Out = append(b.Out, int32(len(b.Tokens)))
			b.Tokens = append(b.Tokens, s.tokens[s.pos+i])
			who = append(who, s)
		}
		long := r.p.LongFrom > 0 && len(s.tokens) > r.p.LongFrom
		b.Seqs = append(b.Seqs, backend.Seq{Rows: n, Pos: s.pos, Long: long, Pages: s.pages, Slot: s.slot})
		s.pos += n
	}
	if err := r.x.Submit(&b); err != nil {
		t.Fatal(err)
	}
	logits, err := r.x.Wait()
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range who {
		s.logits = append(s.logits, append([]float32(nil), logits[i*vocab:(i+1)*vocab]...))
	}
}

// returnPages gives back the pages that lie wholly before the window of the next row.
func (r *runner) returnPages(s *sequence, g int) {
	w := r.p.Groups[g].Window
	if w == 0 {
		return
	}
	for i := 0; (i+1)*backend.PageTokens <= s.pos-w+1; i++ {
		if p := s.pages[g][i]; p >= 0 {
			r.free[g] = append([]int{int(p)}, r.free[g]...)
			s.pages[g][i] = -1
		}
	}
}

// swap moves the pages and slots of all sequences elsewhere by way of host memory, overwriting the old places.
func (r *runner) swap() {
	for _, s := range r.seqs {
		for g := range s.pages {
			mem, junk := make([]byte, r.x.PageBytes(g)), make([]byte, r.x.PageBytes(g))
			for i := range junk {
				junk[i] = 0xff // NaN as keys and values
			}
			for i, p := range s.pages[g] {
				if p < 0 {
					continue
				}
				r.x.PageOut(mem, g, p)
				r.x.PageIn(g, p, junk)
				s.pages[g][i] = r.takePage(g)
				r.free[g] = append([]int{int(p)}, r.free[g]...)
				r.x.PageIn(g, s.pages[g][i], mem)
			}
		}
		mem := make([]byte, r.x.SlotBytes())
		r.x.SlotOut(mem, s.slot)
		old := s.slot
		s.slot = r.takeSlot()
		r.slots = append([]int{int(old)}, r.slots...)
		r.x.SlotZero(old)
		r.x.SlotIn(s.slot, mem)
	}
}
