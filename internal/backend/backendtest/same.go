package backendtest

import (
	"fmt"
	"math"
	"testing"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/plan"
	"github.com/baleenrun/baleen/internal/quant"
)

// Formats are those that matrices come in.
var Formats = []quant.Type{
	quant.F32, quant.F16, quant.BF16, quant.Q4_0, quant.Q4_1, quant.Q5_0, quant.Q5_1, quant.Q8_0, quant.MXFP4,
	quant.IQ4_NL, quant.IQ4_XS,
	quant.Q2_K, quant.Q3_K, quant.Q4_K, quant.Q5_K, quant.Q6_K,
}

// Same wants from b the bits of a reference: the logits of every format and kind of block, in steps of all sizes. Where
// they differ
// it names the first operation whose values do.
func Same(t *testing.T, reference, b Maker) {
	for _, typ := range Formats {
		t.Run(typ.String(), func(t *testing.T) {
			t.Parallel()
			for _, p := range Plans(typ) {
				t.Run(p.Family, func(t *testing.T) { samePlan(t, reference, b, p) })
			}
		})
	}
}

func samePlan(t *testing.T, reference, b Maker, p *plan.Plan) {
	for _, kv := range []backend.KVType{backend.KVF16, backend.KVF32} {
		tokens := Tokens(7, 70)
		want := compute(t, reference, p, tokens, way{chunk: 70}, kv)
		for _, w := range []way{
			{name: "one step", chunk: 70},
			{name: "one by one", chunk: 1},
			{name: "chunks of 8, seven more sequences", chunk: 8, others: 7},
			{name: "chunks of 50, seven more sequences", chunk: 50, others: 7},
			{name: "one by one, seven more sequences, swapped", chunk: 1, others: 7, swap: true},
		} {
			got := compute(t, b, p, tokens, w, kv)
			if n, at := differing(got, want); n > 0 {
				t.Errorf(
					"kv %v, %s: %d of %d logits have other bits, the first in row %d; %s",
					kv,
					w.name,
					n,
					len(got)*vocab,
					at,
					firstDifference(t, reference, b, p, tokens, kv),
				)
				return
			}
		}
	}
	if testing.Short() {
		return
	}
	long := Tokens(8, 1100) // several chunks of attention
	want := compute(t, reference, p, long, way{chunk: 512}, backend.KVF16)
	for _, w := range []way{{name: "512", chunk: 512}, {name: "1", chunk: 1}, {
		name: "100 and others", chunk: 100,
		others: 2,
	}} {
		if n, at := differing(compute(t, b, p, long, w, backend.KVF16), want); n > 0 {
			t.Errorf("1,100 tokens in steps of %s: %d logits have other bits, the first in row %d", w.name, n, at)
		}
	}
}

// differing counts the values with other bits and tells the first row that has one.
func differing(got, want [][]float32) (n, first int) {
	first = -1
	for r := range want {
		for i := range want[r] {
			g, w := got[r][i], want[r][i]
			if math.Float32bits(g) != math.Float32bits(w) && (g == g || w == w) {
				if n++; first < 0 {
					first = r
				}
			}
		}
	}
	return n, first
}

// firstDifference runs ever longer parts of a plan, which show what the last operation wrote in place of logits.
func firstDifference(t *testing.T, reference, b Maker, p *plan.Plan, tokens []int32, kv backend.KVType) string {
	for i, op := range p.Ops {
		for _, v := range plan.Writes(op) {
			for off := 0; off < v.Width; off += vocab {
				probe := *p
				probe.Buffers = append(
					append([]plan.Buffer(nil), p.Buffers...),
					plan.Buffer{Name: "probe", Width: vocab},
				)
				n := min(vocab, v.Width-off)
				probe.Logits = plan.Val{Buf: len(p.Buffers), Width: vocab}
				probe.Ops = append(append([]plan.Op(nil), p.Ops[:i+1]...), &plan.Copy{
					In:  v.Slice(off, n),
					Out: probe.Logits.Slice(0, n),
				})
				w := way{chunk: len(tokens)}
				got, want := compute(t, b, &probe, tokens, w, kv), compute(t, reference, &probe, tokens, w, kv)
				if bad, at := differing(got, want); bad > 0 {
					for j := range want[at] {
						if math.Float32bits(got[at][j]) != math.Float32bits(want[at][j]) {
							return fmt.Sprintf(
								"operation %d, %T %+v: %d values differ, in row %d value %d is %v, want %v",
								i,
								op,
								op,
								bad,
								at,
								off+j,
								got[at][j],
								want[at][j],
							)
						}
					}
				}
			}
		}
	}
	return "no operation by itself"
}
