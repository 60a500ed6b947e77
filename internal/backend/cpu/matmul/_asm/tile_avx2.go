package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// kindsAVX2 are the tiles' arithmetics with VPMADDUBSW, which adds pairs of products in 16 bits with saturation. chain
// is how many quads' pairs fit into 16 bits before they are added in 32 bits: 2*127*largest value*chain < 32768. A
// chain of 0 is for signed bytes: products of magnitudes with activations that take over the sign, at most 2*127*128,
// are added at once.
var kindsAVX2 = []struct {
	name   string
	scales int
	min    bool
	chain  int
	shift  int // of the record's correction, for values with an offset
	rows   []int
}{
	{"Signed4", 1, false, 8, 4, []int{1, 2, 3}},
	{"Signed5", 1, false, 4, 3, []int{1, 2}},
	{"Signed8", 1, false, 0, 0, []int{1, 2}},
	{"Min4", 1, true, 8, 0, []int{1, 2, 3}},
	{"Min5", 1, true, 4, 0, []int{1, 2}},
	{"Signed6x16", 2, false, 2, 2, []int{1, 2}},
	{"Signed3x16", 2, false, 4, 5, []int{1, 2, 3}},
	{"Min2x16", 2, true, 4, 0, []int{1, 2, 3}},
}

func tilesAVX2() {
	for _, k := range kindsAVX2 {
		for _, rows := range k.rows {
			t := tile2{scales: k.scales, min: k.min, chain: k.chain, shift: k.shift, rows: rows}
			t.emit(fmt.Sprintf("tile%s_%d_avx2", k.name, rows))
		}
	}
}

// kindsVNNI are the same with AVX-VNNI's VPDPBUSD, which adds four products in 32 bits.
var kindsVNNI = []struct {
	name   string
	scales int
	min    bool
	shift  int
	flip   bool // turn signed bytes into unsigned ones with 128 added
}{
	{"Signed4", 1, false, 4, false},
	{"Signed5", 1, false, 3, false},
	{"Signed8", 1, false, 0, true},
	{"Min", 1, true, 0, false},
	{"Signed6x16", 2, false, 2, false},
	{"Signed3x16", 2, false, 5, false},
	{"Min2x16", 2, true, 0, false},
}

func tilesVNNI() {
	for _, k := range kindsVNNI {
		for rows := 1; rows <= 3; rows++ {
			t := tile2{scales: k.scales, min: k.min, shift: k.shift, rows: rows, vnni: true, flip: k.flip}
			t.emit(fmt.Sprintf("tile%s_%d_avxvnni", k.name, rows))
		}
	}
}

// tile2 is a tile of one group, as two halves of 8 rows, and some rows of activations.
type tile2 struct {
	scales, chain, shift, rows int
	min                        bool
	vnni, flip                 bool

	in       rowsBase
	F, I, S  [2][]vec // sums as float32, in 32 bits, in 16 bits
	W, M     []vec    // weights and their magnitudes
	A, T     vec
	constant Mem // ones, or the bits that flip turns over
	q, s     gp
}

func (t *tile2) emit(name string) {
	t.constant = GLOBL(name+"_constant", RODATA|NOPTR)
	for i := range 4 {
		if t.vnni {
			DATA(8*i, U64(0x8080808080808080))
		} else {
			DATA(8*i, U64(0x0001000100010001))
		}
	}
	function(name, "func(q, s *byte, blocks int, a *byte, astride int, y *float32, ystride, tiles, first int)")
	a, astride := param("a"), param("astride")
	y, ystride := param("y"), param("ystride")
	q, s, n := GP64(), GP64(), GP64()
	t.q, t.s, t.in = q, s, newRows(t.rows, astride)
	first, _ := Param("first").Resolve()
	DECQ(first.Addr) // now a mask: all ones unless first
	for h := range 2 {
		t.F[h], t.I[h] = ymms(t.rows), ymms(t.rows)
		if t.chain > 0 && t.chain < 8/t.scales {
			t.S[h] = ymms(t.rows)
		} else {
			t.S[h] = t.I[h]
		}
	}
	t.W, t.A, t.T = ymms(2), YMM(), YMM()
	if t.chain == 0 && !t.vnni {
		t.M = ymms(2)
	}

	Label("tile")
	Load(Param("q"), q)
	Load(Param("s"), s)
	Load(Param("blocks"), n)
	t.in.set(a)
	yp := GP64()
	MOVQ(y, yp)
	for m := range t.rows {
		PREFETCHT0(mem(yp, 0)) // it may lie far away, and is needed at the end
		if m < t.rows-1 {
			ADDQ(ystride, yp)
		}
	}
	for h := range 2 {
		for _, f := range t.F[h] {
			VPXOR(f, f, f)
		}
	}
	Label("block")
	for sub := range t.scales {
		per := 8 / t.scales
		for i := range per {
			switch {
			case t.vnni:
				t.vnniQuad(sub*per+i, i == 0, sub)
			case t.chain == 0:
				t.signedQuad(sub*per+i, i == 0)
			default:
				t.quad(sub*per+i, i, per)
			}
		}
		t.scale(sub)
	}
	perScale := 64
	if t.min {
		perScale = 128
	}
	ADDQ(I32(512), q)
	ADDQ(I32(int32(t.scales*perScale)), s)
	t.in.advance(record)
	DECQ(n)
	JNZ(LabelRef("block"))

	VPBROADCASTQ(first.Addr, t.A)
	MOVQ(y, yp)
	for m := range t.rows {
		for h := range 2 {
			VANDPS(mem(yp, 32*h), t.A, t.T)
			VADDPS(t.F[h][m], t.T, t.T)
			VMOVUPS(t.T, mem(yp, 32*h))
		}
		ADDQ(ystride, yp)
	}
	MOVQ(yp, y)
	stepRows(t.rows, a, astride)
	tiles, _ := Param("tiles").Resolve()
	DECQ(tiles.Addr)
	JNZ(LabelRef("tile"))
	VZEROUPPER()
	RET()
}

// quad adds the products of a quad, the i-th of per under its scale, in 16 bits, and at the end of a chain in 32 bits.
func (t *tile2) quad(quad, i, per int) {
	for h := range 2 {
		VMOVDQU(mem(t.q, quad*64+32*h), t.W[h])
	}
	chain := min(t.chain, per)
	for m := range t.rows {
		VPBROADCASTD(t.in.at(m, 4*quad), t.A)
		for h := range 2 {
			if i%chain == 0 {
				VPMADDUBSW(t.A, t.W[h], t.S[h][m])
			} else {
				VPMADDUBSW(t.A, t.W[h], t.T)
				VPADDW(t.T, t.S[h][m], t.S[h][m])
			}
			if i%chain != chain-1 {
				continue
			}
			if i < chain {
				VPMADDWD(t.constant, t.S[h][m], t.I[h][m])
			} else {
				VPMADDWD(t.constant, t.S[h][m], t.S[h][m])
				VPADDD(t.S[h][m], t.I[h][m], t.I[h][m])
			}
		}
	}
}

// signedQuad adds the products of a quad of signed bytes in 32 bits.
func (t *tile2) signedQuad(quad int, start bool) {
	for h := range 2 {
		VMOVDQU(mem(t.q, quad*64+32*h), t.W[h])
		VPABSB(t.W[h], t.M[h])
	}
	for m := range t.rows {
		VPBROADCASTD(t.in.at(m, 4*quad), t.A)
		for h := range 2 {
			VPSIGNB(t.W[h], t.A, t.T)
			VPMADDUBSW(t.T, t.M[h], t.T)
			if start {
				VPMADDWD(t.constant, t.T, t.I[h][m])
			} else {
				VPMADDWD(t.constant, t.T, t.T)
				VPADDD(t.T, t.I[h][m], t.I[h][m])
			}
		}
	}
}

// vnniQuad adds the products of a quad, to the correction where it is the first.
func (t *tile2) vnniQuad(quad int, start bool, sub int) {
	for m := range t.rows {
		switch {
		case !start:
		case t.min:
			for h := range 2 {
				VPXOR(t.I[h][m], t.I[h][m], t.I[h][m])
			}
		default:
			t.correction(m, sub)
			for h := range 2 {
				VMOVDQA(t.A, t.I[h][m])
			}
		}
	}
	for h := range 2 {
		VMOVDQU(mem(t.q, quad*64+32*h), t.W[h])
		if t.flip {
			VPXOR(t.constant, t.W[h], t.W[h])
		}
	}
	for m := range t.rows {
		VPBROADCASTD(t.in.at(m, 4*quad), t.A)
		for h := range 2 {
			VPDPBUSD(t.A, t.W[h], t.I[h][m])
		}
	}
}

// scale ends a block, or half of one: the sums are corrected, scaled and added.
func (t *tile2) scale(sub int) {
	for m := range t.rows {
		if t.shift > 0 && !t.vnni {
			t.correction(m, sub)
			for h := range 2 {
				VPADDD(t.A, t.I[h][m], t.I[h][m])
			}
		}
		VBROADCASTSS(t.in.at(m, recScale), t.A)
		for h := range 2 {
			VCVTDQ2PS(t.I[h][m], t.I[h][m])
			VMULPS(mem(t.s, 64*sub+32*h), t.A, t.T)
			VFMADD231PS(t.T, t.I[h][m], t.F[h][m])
		}
		if !t.min {
			continue
		}
		t.sum(m, sub)
		for h := range 2 {
			VFMADD231PS(mem(t.s, 64*(t.scales+sub)+32*h), t.T, t.F[h][m])
		}
	}
}

// correction sets A to minus the offset of values times the sum of row m's activations.
func (t *tile2) correction(m, sub int) {
	if t.scales == 1 {
		VPBROADCASTD(t.in.at(m, recCorr), t.A)
	} else {
		r := GP32()
		halfCorrection(t.in, m, sub, r)
		VMOVD(r, t.A.AsX())
		VPBROADCASTD(t.A.AsX(), t.A)
	}
	if t.shift > 0 {
		VPSRAD(U8(t.shift), t.A, t.A)
	}
}

// sum sets T to scale times sum of row m's activations; A holds the scale.
func (t *tile2) sum(m, sub int) {
	if t.scales == 1 {
		VBROADCASTSS(t.in.at(m, recSum), t.T)
		return
	}
	r := GP32()
	halfCorrection(t.in, m, sub, r)
	SARL(U8(7), r)
	NEGL(r)
	VMOVD(r, t.T.AsX())
	VPBROADCASTD(t.T.AsX(), t.T)
	VCVTDQ2PS(t.T, t.T)
	VMULPS(t.A, t.T, t.T)
}

// halfCorrection loads the correction of the first or last 16 activations of a record.
func halfCorrection(in rowsBase, m, sub int, r gp) {
	if sub == 0 {
		MOVL(in.at(m, recCorr16), r)
		return
	}
	MOVL(in.at(m, recCorr), r)
	SUBL(in.at(m, recCorr16), r)
}
