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
			few(f, 1, rows)
		}
		for rows := 2; rows <= pairRows(f); rows++ {
			few(f, 2, rows)
		}
	}
}

// pairRows is the largest number of rows for which two groups at a time find registers, or 0. Formats with larger units gain
// nothing: their code then no longer comes out of the cache of decoded instructions.
func pairRows(f form) int {
	switch {
	case f.blocks > 2:
		return 0
	case !f.signed:
		return 5
	}
	return 6
}

// fewKernel multiplies whole groups, straight from the packed form, with rows of activations: weights come from memory once.
// In a segment the sums stand in registers; the running totals stand in y. With two groups at a time an activation that is
// brought into a register serves both, which halves what is loaded.
type fewKernel struct {
	form
	units []*units // of each group
	in    rowsBase
	F, I  [][]vec // by group and row
	A, T  vec
	shift int // what turns a row's correction for an offset of 128 into that for the format's

	// Lines are fetched into the second-level cache in the order in which they lie in memory, whatever that in which they are
	// used. Two pointers take turns: with one, Q5_0 and Q6_K on four rows were 6 % slower.
	next    [2]gp // where to go on fetching, both the same
	fetched int   // lines since next was moved
}

// few emits the kernel for a number of groups and of rows.
func few(f form, groups, rows int) {
	name := map[int]string{1: "few", 2: "pair"}[groups]
	function(fmt.Sprintf("%s%s_%d_avx512", name, f.name, rows),
		"func(w *byte, count, wstride, blocks int, a *byte, astride int, y *float32, ystride, ahead int)")
	astride, w, n, left, y := param("astride"), GP64(), GP64(), GP64(), GP64()
	k := newFewKernel(f, groups, rows, w, astride)
	u := k.units[0]
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
		for m := range rows {
			zeroed(F[m])
		}
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
			k.fetch(groups * (f.head + (b+1)*f.body))
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
		for g, F := range k.F {
			VMOVUPS_Z(mem(y, 64*g), keep, k.T)
			VADDPS(F[m], k.T, k.T)
			VMOVUPS(k.T, mem(y, 64*g))
		}
		if m < rows-1 {
			ADDQ(arg("ystride"), y)
		}
	}
	KXNORW(keep, keep, keep)
	CMPQ(left, U8(0))
	JNE(LabelRef("segment"))

	ADDQ(I32(int32(64*groups)), arg("y"))
	Load(Param("wstride"), n)
	for range groups {
		ADDQ(n, arg("w"))
	}
	DECQ(arg("count"))
	JNZ(LabelRef("group"))
	VZEROUPPER()
	RET()
}

func newFewKernel(f form, groups, rows int, w, astride gp) *fewKernel {
	k := &fewKernel{form: f, A: ZMM(), T: ZMM(), in: newRows(rows, astride), next: [2]gp{GP64(), GP64()}}
	u := newUnits(f, w)
	if f.turn > 0 {
		u.lowAt, u.scaleAt = GP64(), GP64()
		if f.high != nil {
			u.highAt = GP64()
		}
	}
	if groups == 2 && u.bias != nil { // values stay as they are; rather than them, the sum of each row is moved
		u.bias = nil
		for k.shift = 1; f.offset<<k.shift < 128; k.shift++ {
		}
	}
	k.units = append(k.units, u)
	if groups == 2 {
		second := *u
		second.index, second.S = param("wstride"), vectors(len(u.S))
		k.units = append(k.units, &second)
	}
	for range groups {
		k.F, k.I = append(k.F, vectors(rows)), append(k.I, vectors(rows))
	}
	return k
}

// pointers are those that move within a unit.
func (k *fewKernel) pointers() []gp {
	u := k.units[0]
	if k.high == nil {
		return []gp{u.lowAt, u.scaleAt}
	}
	return []gp{u.lowAt, u.scaleAt, u.highAt}
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
	for _, u := range k.units {
		k.scale(u, b)
	}
	for sub := range k.scales {
		k.start(in, sub)
		for q := sub * 4; q < sub*4+8/k.scales; q++ {
			var W []vec
			for _, u := range k.units {
				u.quads(b, q, q+1, func(_ int, v vec) { W = append(W, v) })
			}
			for m := range k.I[0] {
				if len(W) == 1 {
					VPDPBUSD_BCST(in.at(m, 4*q), W[0], k.I[0][m])
					continue
				}
				VPBROADCASTD(in.at(m, 4*q), k.A)
				for g := range W {
					VPDPBUSD(k.A, W[g], k.I[g][m])
				}
			}
		}
		for m := range k.I[0] {
			k.add(in, m, sub)
		}
	}
}

// add adds row m's integer sums, scaled, to its totals.
func (k *fewKernel) add(in rowsBase, m, sub int) {
	if len(k.units) > 1 {
		VBROADCASTSS(in.at(m, recScale), k.A)
	}
	for g, u := range k.units {
		VCVTDQ2PS(k.I[g][m], k.I[g][m])
		if len(k.units) > 1 {
			VMULPS(k.A, u.S[sub], k.T)
		} else {
			VMULPS_BCST(in.at(m, recScale), u.S[sub], k.T)
		}
		VFMADD231PS(k.T, k.I[g][m], k.F[g][m])
		if !k.signed {
			VFMADD231PS_BCST(in.at(m, recSum), u.S[k.scales+sub], k.F[g][m])
		}
	}
}

// start sets the integer sums to what takes the offset of the weights off.
func (k *fewKernel) start(in rowsBase, sub int) {
	for m, i := range k.I[0] {
		switch {
		case !k.signed:
			zeroed(i)
		case k.scales == 1:
			VPBROADCASTD(in.at(m, recCorr), i)
		case sub == 0:
			VPBROADCASTD(in.at(m, recCorr16), i)
		default:
			VPBROADCASTD(in.at(m, recCorr), i)
			VPSUBD_BCST(in.at(m, recCorr16), i, i)
		}
		if k.shift > 0 {
			VPSRAD(U8(uint8(k.shift)), i, i)
		}
		for _, I := range k.I[1:] {
			if k.signed {
				VMOVDQA64(i, I[m])
			} else {
				zeroed(I[m])
			}
		}
	}
}
