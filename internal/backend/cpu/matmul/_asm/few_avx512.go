package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// fewFormats are the formats with kernels of their own for few rows.
var fewFormats = map[string]bool{
	"Q4_0": true, "Q4_1": true, "Q5_0": true, "Q5_1": true, "Q8_0": true, "MXFP4": true,
	"Q4_K": true, "Q5_K": true, "Q6_K": true,
}

const maxFew = 12

func fewAVX512() {
	for _, f := range forms {
		if !fewFormats[f.name] {
			continue
		}
		for rows := 1; rows <= maxFew; rows++ {
			few(f, rows)
		}
	}
}

// fewKernel multiplies whole groups, straight from the packed form, with rows of activations: weights come from memory
// once. In a segment the sums stand in registers; the running totals stand in y.
type fewKernel struct {
	form
	u    *units
	in   rowsBase
	F, I []vec // by row
	T    vec

	// Lines are fetched into the second-level cache in the order in which they lie in memory, whatever that in which
	// they are used. Two pointers take turns: with one, Q5_0 and Q6_K on four rows were 6 % slower.
	next    [2]gp // where to go on fetching, both the same
	fetched int   // lines since next was moved
}

// few emits the kernel for a number of rows.
func few(f form, rows int) {
	function(fmt.Sprintf("few%s_%d_avx512", f.name, rows),
		"func(w *byte, count, wstride, blocks int, a *byte, astride int, y *float32, ystride, ahead int)")
	astride, w, n, left, y := param("astride"), GP64(), GP64(), GP64(), GP64()
	k := newFewKernel(f, rows, w, astride)
	u := k.u
	keep := K()

	Label("group")
	Load(Param("w"), w)
	for _, p := range k.next {
		Load(Param("ahead"), p)
		ADDQ(w, p)
	}
	Load(Param("blocks"), left)
	k.in.set(Load(Param("a"), GP64()).(gp))
	KXORW(keep, keep, keep)

	Label("segment")
	MOVQ(U32(segmentLen), n)
	CMPQ(left, n)
	CMOVQLT(left, n)
	SUBQ(n, left)
	for _, F := range k.F {
		zeroed(F)
	}
	Label("unit")
	size := f.head + f.blocks*f.body
	if f.turn > 0 {
		for _, p := range k.pointers() {
			MOVQ(w, p)
		}
		k.fetch(f.head)
		k.moveNext()
		u.begin()
		Label("turn")
		for b := range f.turn {
			k.fetch((b + 1) * (f.lowStep + f.highStep) / f.turn)
			k.block(b)
		}
		k.moveNext()
		k.advance()
		k.in.advance(f.turn * record)
		SUBQ(I8(int8(f.turn)), n)
		TESTQ(I32(int32(f.blocks-1)), n)
		JNZ(LabelRef("turn"))
		ADDQ(I32(int32(size)), w)
		CMPQ(n, U8(0))
	} else {
		u.begin()
		for b := range f.blocks {
			k.fetch(f.head + (b+1)*f.body)
			k.block(b)
			if b < f.blocks-1 && f.blocks < 8 {
				DECQ(n)
				JZ(LabelRef("sum"))
			}
		}
		ADDQ(I32(int32(size)), w)
		k.moveNext()
		k.in.advance(f.blocks * record)
		if f.blocks < 8 {
			DECQ(n)
		} else {
			SUBQ(I8(8), n)
		}
	}
	JNZ(LabelRef("unit"))

	Label("sum")
	Load(Param("y"), y)
	for m := range rows {
		VMOVUPS_Z(mem(y, 0), keep, k.T)
		VADDPS(k.F[m], k.T, k.T)
		VMOVUPS(k.T, mem(y, 0))
		if m < rows-1 {
			ADDQ(arg("ystride"), y)
		}
	}
	KXNORW(keep, keep, keep)
	CMPQ(left, U8(0))
	JNE(LabelRef("segment"))

	ADDQ(I32(64), arg("y"))
	Load(Param("wstride"), n)
	ADDQ(n, arg("w"))
	DECQ(arg("count"))
	JNZ(LabelRef("group"))
	VZEROUPPER()
	RET()
}

func newFewKernel(f form, rows int, w, astride gp) *fewKernel {
	k := &fewKernel{form: f, u: newUnits(f, w), T: ZMM(), in: newRows(rows, astride), next: [2]gp{GP64(), GP64()}}
	if f.turn > 0 {
		k.u.lowAt, k.u.scaleAt = GP64(), GP64()
		if f.high != nil {
			k.u.highAt = GP64()
		}
	}
	k.F, k.I = vectors(rows), vectors(rows)
	return k
}

// pointers are those that move within a unit.
func (k *fewKernel) pointers() []gp {
	if k.high == nil {
		return []gp{k.u.lowAt, k.u.scaleAt}
	}
	return []gp{k.u.lowAt, k.u.scaleAt, k.u.highAt}
}

func (k *fewKernel) advance() {
	for i, p := range k.pointers() {
		ADDQ(I32(int32([]int{k.lowStep, k.scaleStep, k.highStep}[i])), p)
	}
}

// fetch asks for the lines up to a byte behind next.
func (k *fewKernel) fetch(to int) {
	for ; (k.fetched+1)*64 <= to; k.fetched++ {
		PREFETCHT1(mem(k.next[k.fetched%2], k.fetched*64))
	}
}

// moveNext moves next behind the lines fetched.
func (k *fewKernel) moveNext() {
	for _, p := range k.next {
		ADDQ(I32(int32(64*k.fetched)), p)
	}
	k.fetched = 0
}

// block multiplies block b.
func (k *fewKernel) block(b int) {
	in := k.in.from(b * record)
	k.scale(k.u, b)
	for sub := range k.scales {
		k.start(in, sub)
		for q := sub * 4; q < sub*4+8/k.scales; q++ {
			k.u.quads(b, q, q+1, func(_ int, W vec) {
				for m, I := range k.I {
					VPDPBUSD_BCST(in.at(m, 4*q), W, I)
				}
			})
		}
		for m := range k.I {
			k.add(in, m, sub)
		}
	}
}

// add adds row m's integer sums, scaled, to its totals.
func (k *fewKernel) add(in rowsBase, m, sub int) {
	VCVTDQ2PS(k.I[m], k.I[m])
	VMULPS_BCST(in.at(m, recScale), k.u.S[sub], k.T)
	VFMADD231PS(k.T, k.I[m], k.F[m])
	if !k.signed {
		VFMADD231PS_BCST(in.at(m, recSum), k.u.S[k.scales+sub], k.F[m])
	}
}

// start sets the integer sums to what takes the offset of the weights off.
func (k *fewKernel) start(in rowsBase, sub int) {
	for m, I := range k.I {
		switch {
		case !k.signed:
			zeroed(I)
		case k.scales == 1:
			VPBROADCASTD(in.at(m, recCorr), I)
		case sub == 0:
			VPBROADCASTD(in.at(m, recCorr16), I)
		default:
			VPBROADCASTD(in.at(m, recCorr), I)
			VPSUBD_BCST(in.at(m, recCorr16), I, I)
		}
	}
}
