package cuda

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/plan"
	"github.com/baleenrun/baleen/internal/quant"
)

// big is a plan of a model's size whose matrices of one shape and format share their bytes in the host's memory.
type big struct {
	*plan.Plan
	bytes map[string][]byte
	rnd   *rand.Rand
}

func (b *big) buf(name string, width int) plan.Val {
	b.Buffers = append(b.Buffers, plan.Buffer{Name: name, Width: width})
	return plan.Val{Buf: len(b.Buffers) - 1, Width: width}
}

func (b *big) weight(t quant.Type, rows, k int) plan.WeightID {
	key := fmt.Sprint(t, rows, k)
	if b.bytes[key] == nil {
		n, err := t.RowBytes(k)
		if err != nil {
			panic(err)
		}
		one := randomBlocks(t, n) // a row; another one would be no different work
		all := make([]byte, 0, n*rows)
		for range rows {
			all = append(all, one...)
		}
		b.bytes[key] = all
	}
	b.Weights = append(b.Weights, plan.Weight{Name: key, Type: t, Rows: rows, K: k, Bytes: b.bytes[key]})
	return plan.WeightID(len(b.Weights) - 1)
}

func (b *big) ones(n int) plan.VectorID {
	v := make([]float32, n)
	for i := range v {
		v[i] = 1 + 0.1*float32(b.rnd.NormFloat64())
	}
	b.Vectors = append(b.Vectors, plan.Vector{Name: "norm", Data: v})
	return plan.VectorID(len(b.Vectors) - 1)
}

// llama8B is the shape of Llama 3.1 8B, in Q4_K_M's mixture or in one format.
func llama8B(mixed bool, t quant.Type, layers, context int) *plan.Plan {
	const width, ff, heads, kv, dim, vocab = 4096, 14336, 32, 8, 128, 128256
	b := &big{&plan.Plan{Family: "llama", Vocab: vocab, Context: context}, map[string][]byte{}, rand.New(rand.NewPCG(1,
		2))}
	more := t
	if mixed {
		t, more = quant.Q4_K, quant.Q6_K
	}
	x, h, q := b.buf("x", width), b.buf("h", width), b.buf("q", width)
	k, v := b.buf("k", kv*dim), b.buf("v", kv*dim)
	g, u, logits := b.buf("g", ff), b.buf("u", ff), b.buf("logits", vocab)
	inv := make([]float64, dim/2)
	for i := range inv {
		inv[i] = 1 / (1 + float64(i))
	}
	b.Ropes = []plan.Rope{{InvFreq: inv, Scale: 1}}
	b.Groups = []plan.Group{{}}
	b.Ops = append(b.Ops, &plan.Embed{Out: x, W: b.weight(t, vocab, width), Scale: 1})
	norm := func() {
		b.Ops = append(b.Ops, &plan.Norm{In: x, Out: h, W: b.ones(width), B: plan.None, Heads: 1, Eps: 1e-5})
	}
	for l := range layers {
		b.Groups[0].Layers = append(b.Groups[0].Layers, plan.KVLayer{Heads: kv, KDim: dim, VDim: dim})
		own := t
		if l%2 == 1 {
			own = more
		}
		norm()
		b.Ops = append(
			b.Ops,
			&plan.MatMul{
				In:  h,
				Out: []plan.Val{q, k, v},
				W: []plan.WeightID{b.weight(t, width, width), b.weight(t, kv*dim,
					width), b.weight(own, kv*dim, width)},
			},
			&plan.RopeOp{X: q, Heads: heads, HeadDim: dim},
			&plan.RopeOp{X: k, Heads: kv, HeadDim: dim},
			&plan.StoreKV{K: k, V: v, Layer: l},
			&plan.Attention{Q: q, Out: q, Heads: heads, Layer: l, Scale: 0.088, Sinks: plan.None},
		)
		if l == layers-1 {
			b.Ops = append(b.Ops, &plan.Gather{Vals: []plan.Val{x, q}})
		}
		b.Ops = append(b.Ops, &plan.MatMul{In: q, Out: []plan.Val{h}, W: []plan.WeightID{b.weight(t, width, width)}},
			&plan.Add{In: h, Out: x, Scale: 1})
		norm()
		b.Ops = append(b.Ops, &plan.MatMul{In: h, Out: []plan.Val{g, u}, W: []plan.WeightID{
			b.weight(t, ff, width),
			b.weight(t, ff, width),
		}},
			&plan.GLU{Gate: g, Up: u, Out: g, Kind: plan.ActSiLU},
			&plan.MatMul{In: g, Out: []plan.Val{h}, W: []plan.WeightID{b.weight(own, width, ff)}}, &plan.Add{
				In: h, Out: x,
				Scale: 1,
			})
	}
	norm()
	b.Ops = append(
		b.Ops,
		&plan.MatMul{In: h, Out: []plan.Val{logits}, W: []plan.WeightID{b.weight(more, vocab, width)}},
	)
	b.Logits = logits
	return b.Plan
}

// TestProfile measures steps of a model of 8 billion weights and what their launches take, each kind by itself. It
// wants a
// device and BALEEN_PROFILE: a list of rows:position, such as 1:100,512:0.
func TestProfile(t *testing.T) {
	what := os.Getenv("BALEEN_PROFILE")
	if what == "" {
		t.Skip("BALEEN_PROFILE is not set")
	}
	d := open(t)
	mixed, format := true, quant.Q4_K
	if os.Getenv("BALEEN_PROFILE_FORMAT") == "BF16" {
		mixed, format = false, quant.BF16
	}
	const context = 66 << 10
	p := llama8B(mixed, format, 32, context)
	o := backend.Options{MaxRows: 512, MaxSeqs: 64, MaxOut: 64, Pages: []int{6000}}
	m, err := d.Memory(p, o)
	if err != nil {
		t.Fatal(err)
	}
	free, _, _ := d.Free()
	began := time.Now()
	x, err := d.Compile(p, o)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	after, _, _ := d.Free()
	promised := m.Weights + m.Scratch + 6000*m.Page[0]
	fmt.Printf("loaded in %v; %.3f GB promised, %.3f GB taken\n", time.Since(began), float64(promised)/1e9,
		float64(free-after)/1e9)
	e := x.(*exec)
	for _, w := range strings.Split(what, ",") {
		rows, pos, _ := strings.Cut(w, ":")
		n, _ := strconv.Atoi(rows)
		at, _ := strconv.Atoi(pos)
		profile(t, e, n, at)
	}
}

func profile(t *testing.T, e *exec, rows, pos int) {
	b := &backend.Batch{Tokens: make([]int32, rows)}
	seqs, per := rows, 1
	if rows > 64 { // a prompt
		seqs, per = 1, rows
	}
	for s := range seqs {
		var pages []int32
		for i := range (pos+per-1)/backend.PageTokens + 1 {
			pages = append(pages, int32((s*97+i)%6000))
		}
		b.Seqs = append(b.Seqs, backend.Seq{Rows: per, Pos: pos, Pages: [][]int32{pages}})
		b.Out = append(b.Out, int32((s+1)*per-1))
	}
	for i := range b.Tokens {
		b.Tokens[i] = int32(i * 31)
	}
	step := func() {
		if err := e.Submit(b); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		step()
	}
	const n = 10
	began := time.Now()
	for range n {
		step()
	}
	whole := time.Since(began) / n
	key := bucketOf(b, e.opt)
	timed := func(f func() error, n int) time.Duration {
		var took time.Duration
		err := e.c.Do(func() error {
			if err := f(); err != nil {
				return err
			}
			if err := e.c.Sync(); err != nil {
				return err
			}
			began := time.Now()
			for range n {
				if err := f(); err != nil {
					return err
				}
			}
			err := e.c.Sync()
			took = time.Since(began) / time.Duration(n)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return took
	}
	launches := timed(func() error { return e.run(key) }, n)
	fmt.Printf("\n%d rows at %d: step %v = %.0f t/s; launches alone %v, %d passes\n", rows, pos, whole,
		float64(rows)/whole.Seconds(), launches, len(e.passes))
	kinds := map[string][]pass{}
	for _, p := range e.passes {
		kinds[p.op] = append(kinds[p.op], p)
	}
	names := make([]string, 0, len(kinds))
	took := map[string]time.Duration{}
	for name, ps := range kinds {
		names = append(names, name)
		run := func() error {
			for _, p := range ps {
				if err := p.run(key); err != nil {
					return err
				}
			}
			return nil
		}
		var g interface {
			Launch() error
			Close() error
		}
		err := e.c.Do(func() (err error) { g, err = e.c.Record(run); return err })
		if err != nil {
			t.Fatal(err)
		}
		took[name] = timed(g.Launch, 5)
		_ = e.c.Do(g.Close)
	}
	sort.Slice(names, func(i, j int) bool { return took[names[i]] > took[names[j]] })
	for _, name := range names {
		ps := kinds[name]
		fmt.Printf("  %-40s %4d  %9.1f us  %7.2f us each\n", name, len(ps), float64(took[name].Nanoseconds())/1e3,
			float64(took[name].Nanoseconds())/1e3/float64(len(ps)))
	}
}
