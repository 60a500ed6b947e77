// Package vec owns the CPU kernels that are not matrix products: norms, activations, rotary embedding, the cache
// layout and attention over it, recurrent scans, and the router. Its arithmetic is written down in
// ../../NUMERICS.md. It must not know plans beyond the enumerations of their operations, nor threads or pages'
// owners: callers say which rows, heads or channels to compute.
//
// Every kernel is defined in plain Go (generic.go, function.go); the assembly of the other levels gives the
// same bits, NaN payloads excepted.
package vec

//go:generate sh -c "cd _asm && go run . && ../../align-loops ../avx512_amd64.s ../avx2_amd64.s"

import (
	"math"
	"runtime"
	"unsafe"

	"github.com/baleenrun/baleen/internal/backend/cpu/isa"
)

// Lanes is the number of partial sums that every reduction keeps: element i is added to lane i%Lanes.
const Lanes = 16

// segment is the longest chain of additions in a lane, and the number of keys in a chunk of attention.
// RATIONALE: Why 512-element segments?
const segment = 512

// Kernels are the kernels of one instruction set. The value is immutable and safe for concurrent use.
type Kernels struct {
	level isa.Level
	ops   *ops
	widen widening
}

// For returns the kernels of level l, or of the best lower level that this build has.
func For(l isa.Level) *Kernels {
	return &Kernels{l, table(l), widenings[l]()}
}

// Level is the instruction set that the kernels were asked for.
func (k *Kernels) Level() isa.Level { return k.level }

// ops is what an instruction set implements. The elementwise functions take slices whose length is that of the
// first one and a multiple of Lanes; any argument may be the same slice as another. The functions on rows of keys
// and values take pointers and strides in bytes.
type ops struct {
	unary [numUnary]func(dst, x []float32)

	scale    func(dst, x []float32, f float32)         // x*f
	subConst func(dst, x []float32, c float32)         // x-c
	softCap  func(dst, x []float32, c float32)         // c*tanh(x/c)
	axpy     func(dst, x []float32, f float32)         // fma(x, f, dst)
	axpby    func(dst, x []float32, a, b float32)      // fma(x, b, dst*a)
	add      func(dst, a, b []float32)                 // a+b
	mul      func(dst, a, b []float32)                 // a*b
	mulAdd   func(dst, a, b []float32)                 // fma(a, b, dst)
	scaleMul func(dst, x, w []float32, f float32)      // (x*f)*w
	scaleFMA func(dst, x, w, b []float32, f float32)   // fma(x*f, w, b)
	oai      func(dst, g, u []float32, lim, a float32) // (clamp(u)+1) * (g*sigmoid(a*g)), g=min(g,lim)
	rotate   func(a, b, cos, sin []float32)            // in place; see Rope
	rotateI  func(x, cos, sin []float32)               // interleaved pairs; len(cos) a multiple of 16

	// Reductions leave their lanes in acc.
	sum    func(x []float32, acc *[Lanes]float32)               // acc += x
	sumSq  func(x []float32, acc *[Lanes]float32)               // acc = fma(x, x, acc)
	maxOf  func(x []float32, acc *[Lanes]float32)               // acc = max(-inf, x)
	expSum func(x []float32, f, m float32, acc *[Lanes]float32) // x = exp(x*f-m), x*f rounded; acc = 0 + x

	toHalf   func(dst []uint16, x []float32)
	fromHalf func(dst []float32, x []uint16)

	// qk computes dot products of n rows (1 to qkRows) with the keys of one page over dims (at most segment)
	// dimensions. q holds dims times n values, row within dimension; k points at the first dimension in the
	// first of the page's key blocks, which lie kStride bytes apart; s at the first score of the first row.
	// With add not 0 the products are added to the scores, else they replace them. Meanwhile pace bytes (at most the
	// 32 values') for each dimension are fetched into the second-level cache, from k and ahead bytes further on.
	qk16 func(q *float32, n, dims int, k *byte, kStride int, s *float32, sStride, add, ahead, pace int)
	qk32 func(q *float32, n, dims int, k *byte, kStride int, s *float32, sStride, add, ahead, pace int)
	// pv adds p[row][j]*v[j][0:dims] for keys j=0..keys-1 to n rows (1 to pvRows) of o; dims is a multiple of 16.
	// pv16 fetches as many bytes as it reads, ahead bytes further on.
	pv16 func(o *float32, oStride, n, dims int, p *float32, pStride, keys int, v *byte, vStride, ahead int)
	pv32 func(o *float32, oStride, n, dims int, p *float32, pStride, keys int, v *byte, vStride, ahead int)
	// turn16 and turn32 turn one page's key blocks of kdim dimensions into rows of float32 values: the first
	// dims (a multiple of 16) of each key, stride dims.
	turn16 func(dst *float32, k *byte, kdim, dims int)
	turn32 func(dst *float32, k *byte, kdim, dims int)

	// deltaRead computes t[v] = sum over k of s[k][v]*key[k], deltaWrite s[k][v] = fma(key[k], u[v],
	// s[k][v]*g[k]) and o[v] = sum over k of s[k][v]*q[k], both sums FMA chains over k ascending from 0.
	// len(t) and len(u), the columns, are multiples of 16 and at most stride; len(key) is the number of rows.
	deltaRead  func(t, s []float32, stride int, key []float32)
	deltaWrite func(o, s []float32, stride int, g, key, q, u []float32)
}

// The unary functions.
const (
	uSiLU = iota
	uGELU
	uGELUTanh
	uReLU
	uReLU2
	uSigmoid
	uTanh
	uSoftplus
	uExp
	numUnary
)

// noescape returns x in a way that keeps the compiler from moving the array behind it to the heap because it is
// passed to a function value. No kernel keeps its arguments. The way leads through assembly, so that the result is a
// pointer to the compiler and to the runtime, which moves stacks: a conversion by way of an integer is not. The
// array must be kept alive (by a later use) as long as the result is in use.
// RATIONALE: Why can a stack buffer be hidden from the compiler?
func noescape[T any](x []T) []T {
	return unsafe.Slice((*T)(opaque(unsafe.Pointer(unsafe.SliceData(x)))), len(x))
}

// noescapeLanes is noescape for the lanes of a reduction.
func noescapeLanes(x *[Lanes]float32) *[Lanes]float32 {
	return (*[Lanes]float32)(opaque(unsafe.Pointer(x)))
}

// asBytes views x as bytes.
func asBytes[T uint16 | float32](x []T) []byte {
	var v T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(v)))
}

// skip returns the address n bytes after p.
func skip[T any](p *T, n int) *T { return (*T)(unsafe.Add(unsafe.Pointer(p), n)) }

// tree adds the lanes: each half to the other, 8, 4, 2, 1.
func tree(a *[Lanes]float32) float32 {
	b0, b1, b2, b3 := a[0]+a[8], a[1]+a[9], a[2]+a[10], a[3]+a[11]
	b4, b5, b6, b7 := a[4]+a[12], a[5]+a[13], a[6]+a[14], a[7]+a[15]
	c0, c1, c2, c3 := b0+b4, b1+b5, b2+b6, b3+b7
	return (c0 + c2) + (c1 + c3)
}

// treeMax returns the largest lane, or any value if one is a NaN; +0 is larger than -0. Compared as integers,
// since the outcome of a comparison of scores cannot be predicted.
func treeMax(a *[Lanes]float32) float32 {
	top, other := int32(math.MinInt32), int32(math.MinInt32)
	for i := 0; i < Lanes; i += 2 {
		top, other = max(top, ordered(a[i])), max(other, ordered(a[i+1]))
	}
	top = max(top, other)
	return math.Float32frombits(uint32(top ^ (top >> 31 & math.MaxInt32)))
}

// ordered returns an integer that compares as x does.
func ordered(x float32) int32 {
	i := int32(math.Float32bits(x))
	return i ^ (i >> 31 & math.MaxInt32)
}

// reduce runs a reduction over x in segments and adds up the lanes. A segment's lanes start at zero; the lanes of
// the segments are added in order.
func reduce(x []float32, f func(x []float32, acc *[Lanes]float32)) float32 {
	var total [Lanes]float32
	for first := true; len(x) > 0; first = false {
		seg := x[:min(len(x), segment*Lanes)]
		x = x[len(seg):]
		var acc [Lanes]float32
		body := len(seg) &^ (Lanes - 1)
		if body > 0 {
			f(seg[:body], noescapeLanes(&acc))
		}
		if body < len(seg) {
			var tail [Lanes]float32
			copy(tail[:], seg[body:])
			f(noescape(tail[:]), noescapeLanes(&acc))
			runtime.KeepAlive(&tail)
		}
		if first {
			total = acc
			continue
		}
		for i := range total {
			total[i] += acc[i]
		}
	}
	return tree(&total)
}

// The map functions apply an elementwise operation to slices of any length: the rest after the last full
// group of lanes goes through a padded copy.

func map1(dst, x []float32, f func(dst, x []float32)) {
	body := len(dst) &^ (Lanes - 1)
	if body > 0 {
		f(dst[:body], x[:body])
	}
	if body < len(dst) {
		var t [Lanes]float32
		copy(t[:], x[body:len(dst)])
		h := noescape(t[:])
		f(h, h)
		copy(dst[body:], t[:])
	}
}

func map1f(dst, x []float32, a float32, f func(dst, x []float32, a float32)) {
	body := len(dst) &^ (Lanes - 1)
	if body > 0 {
		f(dst[:body], x[:body], a)
	}
	if body < len(dst) {
		var d, t [Lanes]float32
		copy(d[:], dst[body:])
		copy(t[:], x[body:len(dst)])
		f(noescape(d[:]), noescape(t[:]), a)
		runtime.KeepAlive(&t)
		copy(dst[body:], d[:])
	}
}

func map2(dst, a, b []float32, f func(dst, a, b []float32)) {
	body := len(dst) &^ (Lanes - 1)
	if body > 0 {
		f(dst[:body], a[:body], b[:body])
	}
	if body < len(dst) {
		var d, t, u [Lanes]float32
		copy(d[:], dst[body:])
		copy(t[:], a[body:len(dst)])
		copy(u[:], b[body:len(dst)])
		f(noescape(d[:]), noescape(t[:]), noescape(u[:]))
		runtime.KeepAlive(&t)
		runtime.KeepAlive(&u)
		copy(dst[body:], d[:])
	}
}

// maxf is the maximum of every kernel: a where a > b, else b. So b wins if either is NaN, and of two zeros.
func maxf(a, b float32) float32 {
	if a > b {
		return a
	}
	return b
}

// minf is the minimum of every kernel: a where a < b, else b.
func minf(a, b float32) float32 {
	if a < b {
		return a
	}
	return b
}
