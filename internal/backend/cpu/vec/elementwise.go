package vec

import (
	"math"
	"runtime"

	"github.com/baleenrun/baleen/internal/plan"
)

// RMSNorm writes x / sqrt(mean(x²)+eps) * w into dst, as (x*f)*w with f the rounded reciprocal of the root. A nil
// w is left out. dst may be x. Both have the same length, w too.
func (k *Kernels) RMSNorm(dst, x, w []float32, eps float32) {
	k.normalize(dst, x, w, nil, reduce(x, k.ops.sumSq)/float32(len(x))+eps)
}

// L2Norm writes x / sqrt(sum(x²)+eps) into dst, which may be x.
func (k *Kernels) L2Norm(dst, x []float32, eps float32) {
	k.normalize(dst, x, nil, nil, reduce(x, k.ops.sumSq)+eps)
}

// LayerNorm writes (x-mean) / sqrt(mean((x-mean)²)+eps) * w + b into dst, which may be x. A nil w or b is left out;
// with both, the last step is one FMA.
func (k *Kernels) LayerNorm(dst, x, w, b []float32, eps float32) {
	n := float32(len(x))
	map1f(dst, x, reduce(x, k.ops.sum)/n, k.ops.subConst)
	k.normalize(dst, dst, w, b, reduce(dst[:len(x)], k.ops.sumSq)/n+eps)
}

// normalize writes x/sqrt(v)*w+b.
func (k *Kernels) normalize(dst, x, w, b []float32, v float32) {
	dst = dst[:len(x)]
	f := 1 / float32(math.Sqrt(float64(v)))
	switch {
	case w != nil && b != nil:
		body := len(dst) &^ (Lanes - 1)
		if body > 0 {
			k.ops.scaleFMA(dst[:body], x[:body], w[:body], b[:body], f)
		}
		for i := body; i < len(dst); i++ {
			dst[i] = fma(float32(x[i]*f), w[i], b[i])
		}
	case w != nil:
		body := len(dst) &^ (Lanes - 1)
		if body > 0 {
			k.ops.scaleMul(dst[:body], x[:body], w[:body], f)
		}
		for i := body; i < len(dst); i++ {
			dst[i] = float32(x[i]*f) * w[i]
		}
	default:
		map1f(dst, x, f, k.ops.scale)
		if b != nil {
			map2(dst, dst, b, k.ops.add)
		}
	}
}

// Add adds x times scale to dst: a plain addition for scale 1, else one FMA per value.
func (k *Kernels) Add(dst, x []float32, scale float32) {
	if scale == 1 {
		map2(dst, dst, x, k.ops.add)
		return
	}
	map1f(dst, x, scale, k.ops.axpy)
}

// Mul writes a*b into dst, which may be either.
func (k *Kernels) Mul(dst, a, b []float32) { map2(dst, a, b, k.ops.mul) }

// ScaleBy multiplies x by f.
func (k *Kernels) ScaleBy(x []float32, f float32) { map1f(x, x, f, k.ops.scale) }

// SoftCap replaces x by c*tanh(x/c).
func (k *Kernels) SoftCap(x []float32, c float32) { map1f(x, x, c, k.ops.softCap) }

// unaryOf numbers the function of an activation; ok is false for those that are no function of one value.
func unaryOf(kind plan.ActKind) (u int, ok bool) {
	switch kind {
	case plan.ActSiLU:
		return uSiLU, true
	case plan.ActGELU:
		return uGELU, true
	case plan.ActGELUTanh:
		return uGELUTanh, true
	case plan.ActReLU:
		return uReLU, true
	case plan.ActReLU2:
		return uReLU2, true
	case plan.ActSigmoid:
		return uSigmoid, true
	case plan.ActTanh:
		return uTanh, true
	case plan.ActSoftplus:
		return uSoftplus, true
	case plan.ActExp:
		return uExp, true
	}
	return 0, false
}

// Act writes the function kind of x into dst, which may be x. ActNone copies.
func (k *Kernels) Act(kind plan.ActKind, dst, x []float32) {
	dst = dst[:len(x)]
	if u, ok := unaryOf(kind); ok {
		map1(dst, x, k.ops.unary[u])
		return
	}
	copy(dst, x)
}

// block is the size of the pieces in which composed operations go through a buffer on the stack.
const block = 256

// GLU writes act(gate)*up into dst, which may be either. Only ActSwiGLUOAI uses limit and alpha.
func (k *Kernels) GLU(kind plan.ActKind, dst, gate, up []float32, limit, alpha float32) {
	dst = dst[:len(gate)]
	if kind == plan.ActSwiGLUOAI {
		k.swiglu(dst, gate, up, limit, alpha)
		return
	}
	var buf [block]float32
	t := noescape(buf[:])
	for len(dst) > 0 {
		n := min(block, len(dst))
		k.Act(kind, t[:n], gate[:n])
		map2(dst[:n], t[:n], up[:n], k.ops.mul)
		dst, gate, up = dst[n:], gate[n:], up[n:]
	}
	runtime.KeepAlive(&buf)
}

func (k *Kernels) swiglu(dst, g, u []float32, limit, alpha float32) {
	body := len(dst) &^ (Lanes - 1)
	if body > 0 {
		k.ops.oai(dst[:body], g[:body], u[:body], limit, alpha)
	}
	for i := body; i < len(dst); i++ {
		dst[i] = oaif(g[i], u[i], limit, alpha)
	}
}

// Gate writes x times act(g) into dst, which may be x. g has x's length, or one value for each of len(x)/len(g)
// values of x in a row.
func (k *Kernels) Gate(kind plan.ActKind, dst, x, g []float32) {
	if len(g) == len(x) {
		k.GLU(kind, dst, g, x, 0, 0)
		return
	}
	width := len(x) / len(g)
	var buf [block]float32
	t := noescape(buf[:])
	for len(g) > 0 {
		n := min(block, len(g))
		k.Act(kind, t[:n], g[:n])
		for i, f := range t[:n] {
			map1f(dst[i*width:][:width], x[i*width:][:width], f, k.ops.scale)
		}
		g, x, dst = g[n:], x[n*width:], dst[n*width:]
	}
	runtime.KeepAlive(&buf)
}

// Decay writes a*softplus(x+bias) into dst, which may be x. a is -exp(aLog), or aLog itself with isNeg, and has x's
// length or one value for each of len(x)/len(aLog) values. A nil bias is left out.
func (k *Kernels) Decay(dst, x, aLog, bias []float32, isNeg bool) {
	dst = dst[:len(x)]
	if bias != nil {
		map2(dst, x, bias, k.ops.add)
		x = dst
	}
	map1(dst, x, k.ops.unary[uSoftplus])
	width := len(x) / len(aLog)
	for i := range dst {
		a := aLog[i/width]
		if !isNeg {
			a = -expf(a)
		}
		dst[i] *= a
	}
}

// F32ToF16 rounds src to float16, to nearest even.
func (k *Kernels) F32ToF16(dst []uint16, src []float32) {
	body := len(src) &^ (Lanes - 1)
	if body > 0 {
		k.ops.toHalf(dst[:body], src[:body])
	}
	for i := body; i < len(src); i++ {
		dst[i] = Half(src[i])
	}
}

// F16ToF32 widens src.
func (k *Kernels) F16ToF32(dst []float32, src []uint16) {
	body := len(src) &^ (Lanes - 1)
	if body > 0 {
		k.ops.fromHalf(dst[:body], src[:body])
	}
	for i := body; i < len(src); i++ {
		dst[i] = FromHalf(src[i])
	}
}

// Rope rotates the 2*len(cos) values of x: pair j, (x[j], x[j+n/2]) or interleaved (x[2j], x[2j+1]), becomes
// (a*cos-b*sin, b*cos+a*sin), each one product and one FMA: fma(a, cos, -(b*sin)), fma(b, cos, a*sin).
func (k *Kernels) Rope(x, cos, sin []float32, interleaved bool) {
	h := len(cos)
	body := h &^ (Lanes - 1)
	if interleaved {
		if body > 0 {
			k.ops.rotateI(x[:2*body], cos[:body], sin[:body])
		}
		for i := body; i < h; i++ {
			x[2*i], x[2*i+1] = turn(x[2*i], x[2*i+1], cos[i], sin[i])
		}
		return
	}
	if body > 0 {
		k.ops.rotate(x[:body], x[h:][:body], cos[:body], sin[:body])
	}
	for i := body; i < h; i++ {
		x[i], x[i+h] = turn(x[i], x[i+h], cos[i], sin[i])
	}
}
