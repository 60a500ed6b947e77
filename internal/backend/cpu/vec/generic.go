package vec

import (
	"unsafe"

	"github.com/baleenrun/baleen/internal/backend"
)

// generic is the definition of every kernel.
var generic = ops{
	unary: [numUnary]func(dst, x []float32){
		uSiLU:     each(siluf),
		uGELU:     each(geluf),
		uGELUTanh: each(geluTanhf),
		uReLU:     each(reluf),
		uReLU2:    each(relu2f),
		uSigmoid:  each(sigmoidf),
		uTanh:     each(tanhf),
		uSoftplus: each(softplusf),
		uExp:      each(expf),
	},
	scale: func(dst, x []float32, f float32) {
		for i := range dst {
			dst[i] = x[i] * f
		}
	},
	subConst: func(dst, x []float32, c float32) {
		for i := range dst {
			dst[i] = x[i] - c
		}
	},
	softCap: func(dst, x []float32, c float32) {
		for i := range dst {
			dst[i] = softCapf(x[i], c)
		}
	},
	axpy: func(dst, x []float32, f float32) {
		for i := range dst {
			dst[i] = fma(x[i], f, dst[i])
		}
	},
	axpby: func(dst, x []float32, a, b float32) {
		for i := range dst {
			dst[i] = fma(x[i], b, float32(dst[i]*a))
		}
	},
	add: func(dst, a, b []float32) {
		for i := range dst {
			dst[i] = a[i] + b[i]
		}
	},
	mul: func(dst, a, b []float32) {
		for i := range dst {
			dst[i] = a[i] * b[i]
		}
	},
	mulAdd: func(dst, a, b []float32) {
		for i := range dst {
			dst[i] = fma(a[i], b[i], dst[i])
		}
	},
	scaleMul: func(dst, x, w []float32, f float32) {
		for i := range dst {
			dst[i] = float32(x[i]*f) * w[i]
		}
	},
	scaleFMA: func(dst, x, w, b []float32, f float32) {
		for i := range dst {
			dst[i] = fma(float32(x[i]*f), w[i], b[i])
		}
	},
	oai: func(dst, g, u []float32, limit, alpha float32) {
		for i := range dst {
			dst[i] = oaif(g[i], u[i], limit, alpha)
		}
	},
	rotate: func(a, b, cos, sin []float32) {
		for i := range a {
			a[i], b[i] = turn(a[i], b[i], cos[i], sin[i])
		}
	},
	rotateI: func(x, cos, sin []float32) {
		for i := range cos {
			x[2*i], x[2*i+1] = turn(x[2*i], x[2*i+1], cos[i], sin[i])
		}
	},
	sum: func(x []float32, acc *[Lanes]float32) {
		for i, v := range x {
			acc[i%Lanes] += v
		}
	},
	sumSq: func(x []float32, acc *[Lanes]float32) {
		for i, v := range x {
			acc[i%Lanes] = fma(v, v, acc[i%Lanes])
		}
	},
	maxOf: func(x []float32, acc *[Lanes]float32) {
		for i := range acc {
			acc[i] = none
		}
		for i, v := range x {
			acc[i%Lanes] = maxf(acc[i%Lanes], v)
		}
	},
	expSum: func(x []float32, f, m float32, acc *[Lanes]float32) {
		*acc = [Lanes]float32{}
		for i := range x {
			x[i] = expf(float32(x[i]*f) - m)
			acc[i%Lanes] += x[i]
		}
	},
	toHalf: func(dst []uint16, x []float32) {
		for i := range dst {
			dst[i] = Half(x[i])
		}
	},
	fromHalf: func(dst []float32, x []uint16) {
		for i := range dst {
			dst[i] = FromHalf(x[i])
		}
	},
	qk16:       genQK[uint16],
	qk32:       genQK[float32],
	pv16:       genPV[uint16],
	pv32:       genPV[float32],
	turn16:     genTurn[uint16],
	turn32:     genTurn[float32],
	deltaRead:  genDeltaRead,
	deltaWrite: genDeltaWrite,
}

func each(f func(float32) float32) func(dst, x []float32) {
	return func(dst, x []float32) {
		for i := range dst {
			dst[i] = f(x[i])
		}
	}
}

// turn rotates the pair (a, b); each result is one rounded product and one FMA.
func turn(a, b, cos, sin float32) (float32, float32) {
	return fma(a, cos, -float32(b*sin)), fma(b, cos, float32(a*sin))
}

func widen[T uint16 | float32](v T) float32 {
	switch v := any(v).(type) {
	case uint16:
		return FromHalf(v)
	case float32:
		return v
	}
	panic("unreachable")
}

func genQK[T uint16 | float32](q *float32, n, dims int, k *byte, kStride int, s *float32, sStride, add, _, _ int) {
	qs := unsafe.Slice(q, n*dims)
	for r := range n {
		row := unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(s), r*sStride)), backend.PageTokens)
		for j := range row {
			block := unsafe.Slice((*T)(unsafe.Add(unsafe.Pointer(k), j/Lanes*kStride)), dims*Lanes)
			var acc float32
			for d := range dims {
				acc = fma(widen(block[d*Lanes+j%Lanes]), qs[d*n+r], acc)
			}
			if add != 0 {
				acc = row[j] + acc
			}
			row[j] = acc
		}
	}
}

func genPV[T uint16 | float32](o *float32, oStride, n, dims int, p *float32, pStride, keys int, v *byte,
	vStride, _ int,
) {
	for r := range n {
		out := unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(o), r*oStride)), dims)
		ps := unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(p), r*pStride)), keys)
		for j, pj := range ps {
			vj := unsafe.Slice((*T)(unsafe.Add(unsafe.Pointer(v), j*vStride)), dims)
			for d := range out {
				out[d] = fma(pj, widen(vj[d]), out[d])
			}
		}
	}
}

func genTurn[T uint16 | float32](dst *float32, k *byte, kdim, dims int) {
	turnColumns[T](dst, k, kdim, dims, 0)
}

// turnRest turns the columns after the last full group of lanes, and clears those that the keys do not have.
func turnRest[T uint16 | float32](dst *float32, k *byte, kdim, dims int) {
	turnColumns[T](dst, k, kdim, dims, min(dims, kdim&^(Lanes-1)))
}

func turnColumns[T uint16 | float32](dst *float32, k *byte, kdim, dims, from int) {
	out := unsafe.Slice(dst, pageTokens*dims)
	keys := unsafe.Slice((*T)(unsafe.Pointer(k)), pageTokens*kdim)
	for j := range pageTokens {
		block := keys[j/Lanes*kdim*Lanes:]
		for d := from; d < dims; d++ {
			var v float32
			if d < kdim {
				v = widen(block[d*Lanes+j%Lanes])
			}
			out[j*dims+d] = v
		}
	}
}

func genDeltaRead(t, s []float32, stride int, key []float32) {
	clear(t)
	for k := range key {
		row := s[k*stride:]
		for v := range t {
			t[v] = fma(row[v], key[k], t[v])
		}
	}
}

func genDeltaWrite(o, s []float32, stride int, g, key, q, u []float32) {
	clear(o)
	for k := range g {
		row := s[k*stride:]
		for v := range u {
			row[v] = fma(key[k], u[v], float32(row[v]*g[k]))
			o[v] = fma(row[v], q[k], o[v])
		}
	}
}
