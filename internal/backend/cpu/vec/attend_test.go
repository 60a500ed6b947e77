package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/backend/cpu/isa"
)

// sequence is a cached sequence of one key head with queries for its last rows.
type sequence struct {
	typ             backend.KVType
	kdim, vdim      int
	vInK            bool
	heads           int
	tokens, rows    int
	window          int
	scale, softCap  float32
	sinks           []float32
	keys, vals, qry []float32
}

func (s *sequence) name() string {
	return fmt.Sprintf(
		"type%d k%d v%d inK=%t heads%d tokens%d rows%d window%d cap%g sinks=%t",
		s.typ,
		s.kdim,
		s.vdim,
		s.vInK,
		s.heads,
		s.tokens,
		s.rows,
		s.window,
		s.softCap,
		s.sinks != nil,
	)
}

func (s *sequence) fill(v values) {
	s.keys, s.qry = v.slice(s.tokens*s.kdim), v.slice(s.rows*s.heads*s.kdim)
	s.vals = v.slice(s.tokens * s.vdim)
	if s.vInK {
		for p := range s.tokens {
			copy(s.vals[p*s.vdim:][:s.vdim], s.keys[p*s.kdim:])
		}
	}
}

// store puts the sequence into pages in an order chosen by rng and returns the arguments for all rows. Everything
// that a kernel must not use is NaN.
func (s *sequence) store(k *Kernels, rng *rand.Rand) *AttendArgs {
	elem := 2
	if s.typ == backend.KVF32 {
		elem = 4
	}
	a := &AttendArgs{
		Type: s.typ, KDim: s.kdim, VDim: s.vdim, VInK: s.vInK, Rows: s.rows, Pos: s.tokens - s.rows,
		Heads: s.heads, Q: s.qry, QStride: s.heads * s.kdim, OutStride: s.heads*s.vdim + 3, Scale: s.scale,
		SoftCap: s.softCap, Window: s.window, Sinks: s.sinks,
	}
	a.Out = make([]float32, s.rows*a.OutStride)
	a.KOff = 64
	a.VOff = a.KOff + pageTokens*s.kdim*elem
	a.PageStride = a.VOff
	if !s.vInK {
		a.PageStride += pageTokens * s.vdim * elem
	}
	n := (s.tokens + pageTokens - 1) / pageTokens
	a.Base = make([]byte, n*a.PageStride)
	for i := range a.Base {
		a.Base[i] = 0xff
	}
	for _, p := range rng.Perm(n) {
		a.Pages = append(a.Pages, int32(p))
	}
	for p := range s.tokens {
		m := a.Base[int(a.Pages[p/pageTokens])*a.PageStride:][:a.PageStride]
		k.StoreK(s.typ, m[a.KOff:a.VOff], p%pageTokens, s.keys[p*s.kdim:][:s.kdim])
		if !s.vInK {
			k.StoreV(s.typ, m[a.VOff:], p%pageTokens, s.vals[p*s.vdim:][:s.vdim])
		}
	}
	if s.window > 0 { // pages before the window are gone
		for i := range (s.tokens - s.rows + 1 - s.window) / pageTokens {
			a.Pages[i] = -1
		}
	}
	a.Scratch = make([]byte, AttendScratchBytes(s.rows, s.heads, s.kdim, s.vdim))
	return a
}

// tiled computes the rows in tiles and, where split is not 0, every tile in parts of split chunks, in reverse order.
func tiled(k *Kernels, all *AttendArgs, tile, split int) []float32 {
	for i := range all.Scratch {
		all.Scratch[i] = 0xff
	}
	clear(all.Out)
	for r := 0; r < all.Rows; r += tile {
		a := *all
		a.Rows = min(tile, all.Rows-r)
		a.Pos += r
		a.Q, a.Out = a.Q[r*a.QStride:], a.Out[r*a.OutStride:]
		if split == 0 {
			k.Attend(&a)
			continue
		}
		first, end := a.Chunks()
		part := make([]float32, (end-first)*a.PartFloats())
		var starts []int
		for c := first; c < end; c += split {
			starts = append(starts, c)
		}
		slices.Reverse(starts)
		for _, c := range starts {
			k.AttendPart(&a, c, min(c+split, end), part)
		}
		k.AttendMerge(&a, part)
	}
	return slices.Clone(all.Out)
}

var sequences = []sequence{
	{typ: backend.KVF16, kdim: 64, vdim: 64, heads: 4, tokens: 77, rows: 13},
	{typ: backend.KVF16, kdim: 128, vdim: 128, heads: 1, tokens: 1300, rows: 1},
	{typ: backend.KVF32, kdim: 64, vdim: 64, heads: 3, tokens: 1111, rows: 9},
	{typ: backend.KVF16, kdim: 80, vdim: 80, heads: 2, tokens: 545, rows: 21},
	{typ: backend.KVF16, kdim: 24, vdim: 24, heads: 5, tokens: 100, rows: 7},
	{typ: backend.KVF32, kdim: 7, vdim: 3, heads: 2, tokens: 70, rows: 70},
	{typ: backend.KVF16, kdim: 1, vdim: 1, heads: 1, tokens: 33, rows: 33},
	{typ: backend.KVF16, kdim: 192, vdim: 128, heads: 2, tokens: 600, rows: 3},
	{typ: backend.KVF16, kdim: 256, vdim: 256, heads: 4, tokens: 1200, rows: 5, window: 512},
	{typ: backend.KVF16, kdim: 32, vdim: 32, heads: 2, tokens: 1600, rows: 20, window: 37},
	{typ: backend.KVF16, kdim: 32, vdim: 32, heads: 8, tokens: 1030, rows: 12, window: 1},
	{typ: backend.KVF32, kdim: 16, vdim: 16, heads: 2, tokens: 530, rows: 70, softCap: 3},
	{
		typ:    backend.KVF16,
		kdim:   64,
		vdim:   64,
		heads:  8,
		tokens: 1100,
		rows:   6,
		window: 128,
		sinks:  []float32{0, 1, -3, 9, 2, 0.5, 30, -90},
	},
	{
		typ:    backend.KVF16,
		kdim:   32,
		vdim:   32,
		heads:  1,
		tokens: 670,
		rows:   64,
		window: 100,
	}, // begins in the second chunk for the last rows alone
	{typ: backend.KVF32, kdim: 16, vdim: 16, heads: 2, tokens: 1100, rows: 60, window: 540},
	{typ: backend.KVF16, kdim: 576, vdim: 512, heads: 16, tokens: 600, rows: 3, vInK: true},
	{typ: backend.KVF32, kdim: 40, vdim: 24, heads: 3, tokens: 700, rows: 5, vInK: true},
	{typ: backend.KVF16, kdim: 24, vdim: 24, heads: 3, tokens: 70, rows: 5, vInK: true},
}

// someWidening has keys and values widened first, or not, whatever this processor prefers.
var someWidening = []widening{{8, 8}, {never, 8}, {8, never}, {never, never}}

// TestAttendInvariant wants the bits of the plain Go definition, row by row, from every level, tile size, order of
// pages, division into chunks and way to widen.
func TestAttendInvariant(t *testing.T) {
	for i, s := range sequences {
		t.Run(s.name(), func(t *testing.T) {
			s.scale = float32(1 / math.Sqrt(float64(s.kdim)))
			s.fill(newValues(uint64(i), false))
			rng := rand.New(rand.NewPCG(uint64(i), 3))
			def := For(isa.Generic)
			want := tiled(def, s.store(def, rng), 1, 0)
			for _, l := range isa.Levels() {
				k := For(l)
				a := s.store(k, rng)
				for i, tile := range []int{1, 2, 5, 8, s.rows} {
					if l == isa.Generic && tile > 2 {
						continue // slow, and the same for all
					}
					split := i % 3
					k.widen = someWidening[i%len(someWidening)]
					if i, bad := differ(tiled(k, a, tile, split), want); bad {
						t.Fatalf(
							"%s, tile %d, split %d: value %d differs: %x, want %x",
							l,
							tile,
							split,
							i,
							a.Out[i],
							want[i],
						)
					}
				}
			}
		})
	}
}

// TestAttendAccuracy compares with attention in float64 over the stored (rounded) keys and values.
func TestAttendAccuracy(t *testing.T) {
	for i, s := range sequences {
		t.Run(s.name(), func(t *testing.T) {
			s.scale = float32(0.2 / math.Sqrt(float64(s.kdim))) // scores of a few units, as in models
			s.fill(newValues(uint64(i), false))
			rng := rand.New(rand.NewPCG(uint64(i), 3))
			levels := isa.Levels()
			k := For(levels[len(levels)-1])
			a := s.store(k, rng)
			k.Attend(a)
			for r := range s.rows {
				for h := range s.heads {
					want := s.reference(r, h)
					for d, w := range want {
						got := float64(a.Out[r*a.OutStride+h*s.vdim+d])
						if !(math.Abs(got-w) < 2e-5) {
							t.Fatalf("row %d head %d value %d: %g, want %g", r, h, d, got, w)
						}
					}
				}
			}
		})
	}
}

func (s *sequence) stored(x float32) float64 {
	if s.typ == backend.KVF16 {
		x = FromHalf(Half(x))
	}
	return float64(x)
}

func (s *sequence) reference(r, h int) []float64 {
	hi := s.tokens - s.rows + r + 1
	lo := 0
	if s.window > 0 {
		lo = max(0, hi-s.window)
	}
	scores := make([]float64, 0, hi-lo)
	top := math.Inf(-1)
	if s.sinks != nil {
		top = float64(s.sinks[h])
	}
	for p := lo; p < hi; p++ {
		var dot float64
		for d := range s.kdim {
			dot += float64(s.qry[(r*s.heads+h)*s.kdim+d]) * s.stored(s.keys[p*s.kdim+d])
		}
		dot *= float64(s.scale)
		if s.softCap > 0 {
			dot = float64(s.softCap) * math.Tanh(dot/float64(s.softCap))
		}
		scores = append(scores, dot)
		top = max(top, dot)
	}
	out, sum := make([]float64, s.vdim), 0.0
	if s.sinks != nil {
		sum = math.Exp(float64(s.sinks[h]) - top)
	}
	for i, x := range scores {
		e := math.Exp(x - top)
		sum += e
		for d := range out {
			out[d] += e * s.stored(s.vals[(lo+i)*s.vdim+d])
		}
	}
	for d := range out {
		out[d] /= sum
	}
	return out
}

// TestAttendIgnoresLaterRows: a key or value that overflowed in a later row of the tile must not reach an earlier one.
func TestAttendIgnoresLaterRows(t *testing.T) {
	s := sequence{typ: backend.KVF16, kdim: 32, vdim: 32, heads: 2, tokens: 50, rows: 8, scale: 0.2}
	s.fill(newValues(5, false))
	for _, l := range isa.Levels() {
		k := For(l)
		want := tiled(k, s.store(k, rand.New(rand.NewPCG(1, 1))), 1, 0)
		bad := s
		bad.keys, bad.vals = slices.Clone(s.keys), slices.Clone(s.vals)
		for d := range 32 {
			bad.keys[49*32+d], bad.vals[49*32+d] = 1e30, float32(math.Inf(1))
		}
		a := bad.store(k, rand.New(rand.NewPCG(1, 1)))
		k.Attend(a)
		n := 7 * a.OutStride
		if i, wrong := differ(a.Out[:n], want[:n]); wrong {
			t.Errorf("%s: value %d is %g, want %g", l, i, a.Out[i], want[i])
		}
	}
}

func FuzzAttend(f *testing.F) {
	f.Add(uint64(1), uint16(100), uint8(3), uint8(2), uint8(64), uint8(64), uint8(0), uint8(0))
	f.Add(uint64(2), uint16(1025), uint8(9), uint8(4), uint8(33), uint8(18), uint8(40), uint8(15))
	f.Fuzz(func(t *testing.T, seed uint64, tokens uint16, rows, heads, kdim, vdim, window, flags uint8) {
		s := sequence{
			tokens: 1 + int(tokens)%1600, heads: 1 + int(heads)%9, kdim: 1 + int(kdim), vdim: 1 + int(vdim),
			window: int(window) * 7, scale: 0.3, typ: backend.KVType(flags & 1), vInK: flags&2 != 0,
		}
		s.rows = 1 + int(rows)%min(s.tokens, 70)
		if s.rows > 12 { // many rows of many values take the plain Go definition too long
			s.kdim, s.vdim = 1+s.kdim%24, 1+s.vdim%24
		}
		if s.vInK {
			s.vdim = min(s.vdim, s.kdim)
		}
		if flags&4 != 0 {
			s.softCap = 5
		}
		v := newValues(seed, flags&16 != 0)
		if flags&8 != 0 {
			s.sinks = v.slice(s.heads)
		}
		s.fill(v)
		def := For(isa.Generic)
		want := tiled(def, s.store(def, v.Rand), 1, 0)
		for _, l := range isa.Levels() {
			k := For(l)
			k.widen = someWidening[v.IntN(len(someWidening))]
			got := tiled(k, s.store(k, v.Rand), 1+v.IntN(s.rows), v.IntN(3))
			if i, bad := differ(got, want); bad {
				t.Fatalf("%s: %s: value %d is %x, want %x", s.name(), l, i, got[i], want[i])
			}
		}
	})
}

// BenchmarkAttend: one key head with four query heads of 64 dimensions.
func BenchmarkAttend(b *testing.B) {
	for _, c := range []struct {
		name         string
		tokens, rows int
		s            sequence
	}{
		{"decode512", 512, 1, sequence{kdim: 64, vdim: 64, heads: 4}},
		{"decode4096", 4096, 1, sequence{kdim: 64, vdim: 64, heads: 4}},
		{"decode4096x128", 4096, 1, sequence{kdim: 128, vdim: 128, heads: 4}},
		{"prefill512", 512, 512, sequence{kdim: 64, vdim: 64, heads: 4}},
		{"prefill512x128", 512, 512, sequence{kdim: 128, vdim: 128, heads: 4}},
		{"latent512", 512, 1, sequence{kdim: 576, vdim: 512, heads: 16, vInK: true}},
	} {
		s := c.s
		s.tokens, s.rows, s.scale = c.tokens, c.rows, 0.125
		s.fill(newValues(1, false))
		for _, l := range isa.Levels() {
			if l == isa.Generic {
				continue
			}
			b.Run(fmt.Sprintf("%s/%s", c.name, l), func(b *testing.B) {
				k := For(l)
				a := s.store(k, rand.New(rand.NewPCG(1, 1)))
				tile := TileRows(s.heads)
				var pairs float64
				for r := range s.rows {
					pairs += float64(s.tokens - s.rows + r + 1)
				}
				for b.Loop() {
					for r := 0; r < s.rows; r += tile {
						t := *a
						t.Rows, t.Pos = min(tile, s.rows-r), a.Pos+r
						t.Q, t.Out = a.Q[r*a.QStride:], a.Out[r*a.OutStride:]
						k.Attend(&t)
					}
				}
				perOp := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
				b.ReportMetric(pairs*float64(s.heads*(s.kdim+s.vdim))*2/perOp, "GFLOP/s")
				kv := s.kdim + s.vdim
				if s.vInK {
					kv = s.kdim
				}
				b.ReportMetric(float64(s.tokens*kv*2)/perOp, "KV-GB/s")
			})
		}
	}
}
