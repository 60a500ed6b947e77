package vec

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/baleenrun/baleen/internal/backend/cpu/isa"
	"github.com/baleenrun/baleen/internal/plan"
)

func TestShortConv(t *testing.T) {
	for _, kernel := range []int{1, 2, 3, 4, 9} {
		for _, kind := range []plan.ActKind{plan.ActNone, plan.ActSiLU} {
			const channels, rows = 611, 11
			v := newValues(uint64(kernel), false)
			w, b, x := v.slice(channels*kernel), v.slice(channels), v.slice(rows*channels)
			run := func(l isa.Level, cuts []int, step int, inPlace bool) ([]float32, []float32) {
				state := make([]float32, (kernel-1)*channels)
				in := slices.Clone(x)
				out := make([]float32, len(x))
				if inPlace {
					out = in
				}
				for i, from := range cuts {
					to := rows
					if i+1 < len(cuts) {
						to = cuts[i+1]
					}
					for lo := 0; lo < channels; lo += step {
						For(l).ShortConv(&ConvArgs{
							Rows: to - from, In: in[from*channels:], Out: out[from*channels:],
							InStride: channels, OutStride: channels, Lo: lo, Hi: min(lo+step, channels),
							W: TransposeConv(
								w,
								channels,
								kernel,
							), B: b, Channels: channels, Kernel: kernel, Kind: kind, State: state,
						})
					}
				}
				return out, state
			}
			want, wantState := run(isa.Generic, []int{0}, channels, false)
			for r := range rows {
				for c := range channels {
					sum := 0.0
					for j := range kernel {
						if p := r - kernel + 1 + j; p >= 0 {
							sum += float64(w[c*kernel+j]) * float64(x[p*channels+c])
						}
					}
					sum += float64(b[c])
					if kind == plan.ActSiLU {
						sum /= 1 + math.Exp(-sum)
					}
					if math.Abs(sum-float64(want[r*channels+c])) > 1e-4 {
						t.Fatalf("kernel %d, row %d, channel %d: %g, want %g", kernel, r, c, want[r*channels+c], sum)
					}
				}
			}
			for _, l := range isa.Levels() {
				for _, cuts := range [][]int{{0}, {0, 1, 3}, {0, 5}} {
					for _, step := range []int{channels, 100} {
						for _, inPlace := range []bool{false, true} {
							got, state := run(l, cuts, step, inPlace)
							if _, bad := differ(got, want); bad {
								t.Errorf(
									"kernel %d, %s, cuts %v, step %d, in place %t: differs",
									kernel,
									l,
									cuts,
									step,
									inPlace,
								)
							}
							if _, bad := differ(state, wantState); bad {
								t.Errorf("kernel %d, %s, cuts %v, step %d: the state differs", kernel, l, cuts, step)
							}
						}
					}
				}
			}
		}
	}
}

func TestDeltaScan(t *testing.T) {
	for _, c := range []struct {
		kdim, vdim int
		perChannel bool
	}{{128, 128, false}, {64, 48, true}, {5, 7, false}, {7, 33, true}, {600, 20, true}} {
		t.Run(fmt.Sprintf("%dx%d/%t", c.kdim, c.vdim, c.perChannel), func(t *testing.T) {
			const rows = 9
			v := newValues(uint64(c.kdim), false)
			small := func(n int) []float32 {
				x := v.slice(n)
				for i := range x {
					x[i] *= 0.05
				}
				return x
			}
			q, k, val, beta := small(rows*c.kdim), small(rows*c.kdim), v.slice(rows*c.vdim), small(rows)
			decay := v.slice(rows * c.kdim)
			for i := range decay {
				decay[i] = -absf(decay[i])
			}
			run := func(l isa.Level, cut int) ([]float32, []float32) {
				state, out := make([]float32, c.kdim*c.vdim), make([]float32, rows*c.vdim)
				for from := 0; from < rows; from += cut {
					For(l).DeltaScan(&DeltaArgs{
						Rows: min(cut, rows-from), Q: q[from*c.kdim:], K: k[from*c.kdim:], V: val[from*c.vdim:],
						Decay: decay[from*c.kdim:], Beta: beta[from:], Out: out[from*c.vdim:], QStride: c.kdim, KStride: c.kdim,
						VStride: c.vdim, DecayStride: c.kdim, BetaStride: 1, OutStride: c.vdim, KDim: c.kdim, VDim: c.vdim,
						Scale: 0.25, PerChannel: c.perChannel, State: state, Scratch: make([]float32, DeltaScratch(c.kdim, c.vdim)),
					})
				}
				return out, state
			}
			want, wantState := run(isa.Generic, rows)
			state := make([]float64, c.kdim*c.vdim)
			for r := range rows {
				for j := range c.vdim {
					read, y := 0.0, 0.0
					for i := range c.kdim {
						d := decay[r*c.kdim]
						if c.perChannel {
							d = decay[r*c.kdim+i]
						}
						s := &state[i*c.vdim+j]
						*s *= math.Exp(float64(d))
						read += *s * float64(k[r*c.kdim+i])
					}
					u := float64(beta[r]) * (float64(val[r*c.vdim+j]) - read)
					for i := range c.kdim {
						s := &state[i*c.vdim+j]
						*s += float64(k[r*c.kdim+i]) * u
						y += *s * float64(q[r*c.kdim+i]) * 0.25
					}
					if got := float64(want[r*c.vdim+j]); math.Abs(got-y) > 1e-6*(1+math.Abs(y)) {
						t.Fatalf("row %d value %d: %g, want %g", r, j, got, y)
					}
				}
			}
			for _, l := range isa.Levels() {
				for _, cut := range []int{1, 4, rows} {
					got, state := run(l, cut)
					if _, bad := differ(got, want); bad {
						t.Errorf("%s, %d rows at a time: differs", l, cut)
					}
					if _, bad := differ(state, wantState); bad {
						t.Errorf("%s, %d rows at a time: the state differs", l, cut)
					}
				}
			}
		})
	}
}

func TestRoute(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		name   string
		r      plan.Router
		logits []float32
		bias   []float32
		ids    []int32
	}{
		{"softmax", plan.Router{Kind: plan.GateSoftmax, Scale: 1}, []float32{0, 3, 1, 2}, nil, []int32{1, 3}},
		{"ties go down", plan.Router{Kind: plan.GateSoftmax, Norm: true, Scale: 2}, []float32{1, 2, 2, 2}, nil, []int32{1, 2}},
		{
			"sigmoid with bias",
			plan.Router{Kind: plan.GateSigmoid, Norm: true, NormEps: 1e-20, Scale: 1},
			[]float32{0, 1, 2, 3},
			[]float32{5, 0, 0, -5},
			[]int32{0, 2},
		},
		{"top k softmax", plan.Router{Kind: plan.GateTopKSoftmax, Scale: 1}, []float32{-1, 4, 0, 4.5, 3}, nil, []int32{3, 1, 4}},
		{
			"groups by best",
			plan.Router{Kind: plan.GateSoftmax, Groups: 3, GroupTopK: 1, Scale: 1},
			[]float32{3, 3, 4, 0, 1, 1},
			nil,
			[]int32{2, 3},
		},
		{
			"groups by two",
			plan.Router{Kind: plan.GateSigmoid, Groups: 3, GroupTopK: 2, GroupSum2: true, Scale: 1},
			[]float32{3, 3, 4, -9, 1, 1},
			nil,
			[]int32{0, 1, 4, 5},
		},
		{"nan is last", plan.Router{Kind: plan.GateTopKSoftmax, Scale: 1}, []float32{nan, -50, nan, -60}, nil, []int32{1, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, top := len(c.logits), len(c.ids)
			var first []float32
			for _, l := range isa.Levels() {
				ids, weights := make([]int32, top), make([]float32, top)
				For(l).Route(c.logits, &c.r, c.bias, ids, weights, make([]float32, RouteScratch(n)))
				if !slices.Equal(ids, c.ids) {
					t.Fatalf("%s: experts %v, want %v", l, ids, c.ids)
				}
				if first == nil {
					first = weights
				}
				if _, bad := differ(weights, first); bad {
					t.Errorf("%s: weights %v, want %v", l, weights, first)
				}
			}
			for i, want := range gateWeights(c.r, c.logits, c.ids) {
				if math.Abs(want-float64(first[i])) > 1e-6 {
					t.Errorf("weights %v, value %d should be %g", first, i, want)
				}
			}
		})
	}
}

// gateWeights computes the weights of the chosen experts in float64.
func gateWeights(r plan.Router, logits []float32, ids []int32) []float64 {
	w := make([]float64, len(ids))
	total, chosen := 0.0, 0.0
	for _, l := range logits {
		total += math.Exp(float64(l))
	}
	for i, id := range ids {
		x := float64(logits[id])
		switch r.Kind {
		case plan.GateSigmoid:
			w[i] = 1 / (1 + math.Exp(-x))
		case plan.GateSoftmax:
			w[i] = math.Exp(x) / total
		default:
			w[i] = math.Exp(x)
		}
		chosen += w[i]
	}
	for i := range w {
		if r.Norm || r.Kind == plan.GateTopKSoftmax {
			w[i] /= chosen
		}
		w[i] *= float64(r.Scale)
	}
	return w
}

// TestNoAllocations: a step allocates nothing.
func TestNoAllocations(t *testing.T) {
	for _, l := range isa.Levels() {
		k := For(l)
		s := sequence{kdim: 40, vdim: 24, heads: 3, tokens: 70, rows: 3, scale: 1}
		s.fill(newValues(1, false))
		a := s.store(k, newValues(1, false).Rand)
		x, y := make([]float32, 100), make([]float32, 100)
		ids, scratch := make([]int32, 4), make([]float32, RouteScratch(100))
		router := plan.Router{Kind: plan.GateSigmoid, Groups: 5, GroupTopK: 2, Norm: true, Scale: 1}
		m := make([]byte, 32*100*2)
		state, delta := make([]float32, 20*20), make([]float32, DeltaScratch(20, 20))
		n := testing.AllocsPerRun(10, func() {
			onStack := *a
			k.Attend(&onStack)
			k.RMSNorm(x, y, y, 1)
			k.LayerNorm(x, y, y, y, 1)
			k.GLU(plan.ActGELU, x, x, y, 0, 0)
			k.Gate(plan.ActSiLU, x, x, y[:50])
			k.Rope(x, y[:50], y[50:], true)
			k.StoreK(0, m, 3, x)
			k.StoreV(0, m, 3, x)
			k.Route(x, &router, nil, ids, y[:4], scratch)
			k.DeltaScan(
				&DeltaArgs{
					Rows:    1,
					Q:       x,
					K:       x,
					V:       x,
					Decay:   x,
					Beta:    x,
					Out:     y,
					KDim:    20,
					VDim:    20,
					State:   state,
					Scratch: delta,
				},
			)
			k.ShortConv(&ConvArgs{Rows: 1, In: x, Out: y, Hi: 20, W: x, Channels: 20, Kernel: 2, State: state})
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", l, n)
		}
	}
}
