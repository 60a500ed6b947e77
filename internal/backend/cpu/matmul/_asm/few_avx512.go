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

const maxFew = 8

func fewAVX512() {
	for _, f := range forms {
		if fewFormats[f.name] {
			for rows := 1; rows <= maxFew; rows++ {
				fewRowsAVX512(f, rows)
			}
		}
	}
}

// ahead is how far in bytes weights are fetched, into the second-level cache, before they are used. Less is slower with several
// rows: 4096 gives two thirds of the speed at 4 rows.
const ahead = 12288

// fewRowsAVX512 multiplies whole groups, straight from the packed form, with rows rows of activations: weights come from
// memory once. In a segment the sums stand in registers; the running totals stand in y.
func fewRowsAVX512(f form, rows int) {
	function(fmt.Sprintf("few%s_%d_avx512", f.name, rows),
		"func(w *byte, groups, wstride, blocks int, a *byte, astride int, y *float32, ystride int)")
	astride, ystride := param("astride"), param("ystride")
	w, start, n, left, y := GP64(), param("w"), GP64(), GP64(), GP64()
	u := newUnits(f, w)
	F, I := vectors(rows), vectors(rows)
	T := ZMM()
	keep := K()
	in := newRows(rows, astride)

	Label("group")
	MOVQ(start, w)
	Load(Param("blocks"), left)
	in.set(Load(Param("a"), GP64()).(gp))
	KXORW(keep, keep, keep)

	Label("segment")
	MOVQ(U32(segmentLen), n)
	CMPQ(left, n)
	CMOVQLT(left, n)
	SUBQ(n, left)
	for m := range rows {
		zeroed(F[m])
	}
	Label("unit")
	u.begin()
	fetched := 0
	for b := range f.blocks {
		for end := (f.head + (b+1)*f.body) / 64; fetched < end; fetched++ {
			PREFETCHT1(mem(w, 64*fetched+ahead))
		}
		f.scale(u, b)
		for sub := range f.scales {
			startSums(in.from(b*record), [][]vec{I}, f.scales, sub, !f.signed)
			u.quads(b, sub*4, sub*4+8/f.scales, func(q int, v vec) {
				for m := range rows {
					VPDPBUSD_BCST(in.at(m, b*record+4*q), v, I[m])
				}
			})
			for m := range rows {
				VCVTDQ2PS(I[m], I[m])
				VMULPS_BCST(in.at(m, b*record+recScale), u.S[sub], T)
				VFMADD231PS(T, I[m], F[m])
				if !f.signed {
					VFMADD231PS_BCST(in.at(m, b*record+recSum), u.S[f.scales+sub], F[m])
				}
			}
		}
		if b < f.blocks-1 && f.blocks < 8 {
			DECQ(n)
			JZ(LabelRef("sum"))
		}
	}
	ADDQ(I32(int32(f.head+f.blocks*f.body)), w)
	in.advance(f.blocks * record)
	if f.blocks < 8 {
		DECQ(n)
	} else {
		SUBQ(I8(8), n)
	}
	JNZ(LabelRef("unit"))

	Label("sum")
	Load(Param("y"), y)
	for m := range rows {
		VMOVUPS_Z(mem(y, 0), keep, T)
		VADDPS(F[m], T, T)
		VMOVUPS(T, mem(y, 0))
		if m < rows-1 {
			ADDQ(ystride, y)
		}
	}
	KXNORW(keep, keep, keep)
	CMPQ(left, U8(0))
	JNE(LabelRef("segment"))

	p, _ := Param("y").Resolve()
	ADDQ(I8(64), p.Addr)
	stride, _ := Param("wstride").Resolve()
	ADDQ(stride.Addr, start)
	count, _ := Param("groups").Resolve()
	DECQ(count.Addr)
	JNZ(LabelRef("group"))
	VZEROUPPER()
	RET()
}
