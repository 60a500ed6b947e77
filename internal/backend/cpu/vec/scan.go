package vec

import (
	"runtime"

	"github.com/baleenrun/baleen/internal/plan"
)

// ConvArgs is a work item of a short causal convolution: consecutive rows of one sequence, channels [Lo, Hi).
type ConvArgs struct {
	Rows                int
	In, Out             []float32 // row r starts at r*InStride, r*OutStride; Out may be In
	InStride, OutStride int
	Lo, Hi              int
	W                   []float32 // [Kernel][Channels]: the plan's weights through TransposeConv
	B                   []float32 // [Channels], or nil
	Channels, Kernel    int
	Kind                plan.ActKind
	State               []float32 // [Kernel-1][Channels], oldest first; brought up to date
}

// TransposeConv turns the plan's weights [channels][kernel] into [kernel][channels].
func TransposeConv(w []float32, channels, kernel int) []float32 {
	t := make([]float32, channels*kernel)
	for c := range channels {
		for j := range kernel {
			t[j*channels+c] = w[c*kernel+j]
		}
	}
	return t
}

// ShortConv computes the work item. A channel is one FMA chain from 0 over the kernel, oldest input first; then the
// bias is added, then the activation applied.
func (k *Kernels) ShortConv(a *ConvArgs) {
	var buf [block]float32
	acc := noescape(buf[:])
	for r := range a.Rows {
		x, y := a.In[r*a.InStride:], a.Out[r*a.OutStride:]
		for lo := a.Lo; lo < a.Hi; lo += block {
			hi := min(lo+block, a.Hi)
			sum := acc[:hi-lo]
			clear(sum)
			for j := range a.Kernel - 1 {
				map2(sum, a.State[j*a.Channels+lo:], a.W[j*a.Channels+lo:], k.ops.mulAdd)
				if j > 0 {
					copy(a.State[(j-1)*a.Channels+lo:][:hi-lo], a.State[j*a.Channels+lo:])
				}
			}
			map2(sum, x[lo:hi], a.W[(a.Kernel-1)*a.Channels+lo:], k.ops.mulAdd)
			if a.Kernel > 1 {
				copy(a.State[(a.Kernel-2)*a.Channels+lo:][:hi-lo], x[lo:hi])
			}
			if a.B != nil {
				map2(sum, sum, a.B[lo:], k.ops.add)
			}
			k.Act(a.Kind, y[lo:hi], sum)
		}
	}
	runtime.KeepAlive(&buf)
}

// DeltaArgs is a work item of the gated delta rule: consecutive rows of one sequence, one value head. The slices
// start at the head's values in the first row; the strides lead to the next row.
type DeltaArgs struct {
	Rows                      int
	Q, K, V, Decay, Beta, Out []float32
	QStride, KStride, VStride int
	DecayStride, BetaStride   int
	OutStride                 int
	KDim, VDim                int
	Scale                     float32
	PerChannel                bool      // Decay has KDim values a row, else one
	State                     []float32 // [KDim][VDim]
	Scratch                   []float32 // at least DeltaScratch
}

// DeltaScratch is the number of float32 values of scratch memory that DeltaScan needs.
func DeltaScratch(kdim, vdim int) int {
	n := 3*kdim + 2*padded(vdim)
	if vdim%Lanes != 0 {
		n += kdim * padded(vdim)
	}
	return n
}

// DeltaScan computes the work item, row by row. With g = exp(Decay):
//
//	t[v] = sum over k of S[k][v]*(g[k]*K[k])
//	u[v] = (V[v]-t[v])*Beta
//	S[k][v] = fma(K[k], u[v], S[k][v]*g[k])
//	Out[v] = sum over k of S[k][v]*(Q[k]*Scale)
//
// Both sums are FMA chains over k ascending, from 0.
func (k *Kernels) DeltaScan(a *DeltaArgs) {
	vp := padded(a.VDim)
	free := a.Scratch
	take := func(n int) []float32 {
		x := free[:n:n]
		free = free[n:]
		return x
	}
	g, q, gk, u, t := take(a.KDim), take(a.KDim), take(a.KDim), take(vp), take(vp)
	state := a.State
	if vp != a.VDim {
		state = take(a.KDim * vp)
		clear(state)
		for i := range a.KDim {
			copy(state[i*vp:], a.State[i*a.VDim:][:a.VDim])
		}
	}
	clear(u)
	for r := range a.Rows {
		decay := a.Decay[r*a.DecayStride:]
		if a.PerChannel {
			map1(g, decay, k.ops.unary[uExp])
		} else {
			e := expf(decay[0])
			for i := range g {
				g[i] = e
			}
		}
		key := a.K[r*a.KStride:][:a.KDim]
		map1f(q, a.Q[r*a.QStride:], a.Scale, k.ops.scale)
		map2(gk, g, key, k.ops.mul)
		k.ops.deltaRead(t, state, vp, gk)
		v, beta := a.V[r*a.VStride:], a.Beta[r*a.BetaStride]
		for i := range a.VDim {
			u[i] = (v[i] - t[i]) * beta
		}
		k.ops.deltaWrite(t, state, vp, g, key, q, u)
		copy(a.Out[r*a.OutStride:][:a.VDim], t)
	}
	if vp != a.VDim {
		for i := range a.KDim {
			copy(a.State[i*a.VDim:][:a.VDim], state[i*vp:])
		}
	}
}
