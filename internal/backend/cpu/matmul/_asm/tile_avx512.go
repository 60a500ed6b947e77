package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// shapes are the arithmetics of formats (format.go).
var shapes = []struct {
	name   string
	scales int
	min    bool
}{
	{"Signed32", 1, false},
	{"Min32", 1, true},
	{"Signed16", 2, false},
	{"Min16", 2, true},
}

// tileShapes are the tiles: groups of 16 output rows x rows of activations.
var tileShapes = [][2]int{{1, 1}, {1, 2}, {1, 4}, {1, 8}, {2, 1}, {2, 2}, {2, 3}, {2, 4}, {2, 5}, {2, 6}}

func tilesAVX512() {
	for _, s := range shapes {
		for _, t := range tileShapes {
			tileAVX512(fmt.Sprintf("tile%s_%dx%d_avx512", s.name, t[0], t[1]), s.scales, s.min, t[0], t[1])
		}
	}
}

// tileAVX512 multiplies one expanded segment of groups*16 rows with tiles*rows rows of activations and adds the sums to
// y, or sets y to them. q holds for each block the groups' 512 bytes, unsigned with 128 added where the shape is
// signed; s for each block and group the scales and then the minimums as vectors of float32.
func tileAVX512(name string, scales int, min bool, groups, rows int) {
	function(name, "func(q, s *byte, blocks int, a *byte, astride int, y *float32, ystride, tiles, first int)")
	a, astride := param("a"), param("astride")
	y, ystride := param("y"), param("ystride")
	q, s, n := GP64(), GP64(), GP64()
	keep := K()
	first := param("first")
	NEGQ(first)
	NOTQ(first)
	KMOVW(first.As32(), keep) // 0xffff unless first
	perScale := 64
	if min {
		perScale = 128
	}
	F, I := make([][]vec, groups), make([][]vec, groups)
	for g := range groups {
		F[g], I[g] = vectors(rows), vectors(rows)
	}
	W := vectors(groups)
	A, T := ZMM(), ZMM()
	in, out := newRows(rows, astride), newRows(rows, ystride)

	Label("tile")
	Load(Param("q"), q)
	Load(Param("s"), s)
	Load(Param("blocks"), n)
	in.set(a)
	out.set(y)
	for m := range rows {
		for g := range groups {
			zeroed(F[g][m])
			PREFETCHT0(out.at(m, 64*g)) // it may lie far away, and is needed at the end
		}
	}
	Label("block")
	for sub := range scales {
		startSums(in, I, scales, sub, min)
		for quad := sub * 4; quad < sub*4+8/scales; quad++ {
			for g := range groups {
				VMOVDQU64(mem(q, g*512+quad*64), W[g])
			}
			for m := range rows {
				if groups == 1 {
					VPDPBUSD_BCST(in.at(m, 4*quad), W[0], I[0][m])
					continue
				}
				VPBROADCASTD(in.at(m, 4*quad), A)
				for g := range groups {
					VPDPBUSD(A, W[g], I[g][m])
				}
			}
		}
		for m := range rows {
			VBROADCASTSS(in.at(m, recScale), A)
			for g := range groups {
				VCVTDQ2PS(I[g][m], I[g][m])
				VMULPS(mem(s, g*scales*perScale+64*sub), A, T)
				VFMADD231PS(T, I[g][m], F[g][m])
			}
			if min {
				blockSum(in, m, scales, sub, A, T)
				for g := range groups {
					VFMADD231PS(mem(s, g*scales*perScale+64*(scales+sub)), T, F[g][m])
				}
			}
		}
	}
	ADDQ(I32(int32(groups*512)), q)
	ADDQ(I32(int32(groups*scales*perScale)), s)
	in.advance(record)
	DECQ(n)
	JNZ(LabelRef("block"))
	out.set(y)
	for m := range rows {
		for g := range groups {
			VMOVUPS_Z(out.at(m, 64*g), keep, T)
			VADDPS(F[g][m], T, T)
			VMOVUPS(T, out.at(m, 64*g))
		}
	}
	stepRows(rows, a, astride)
	stepRows(rows, y, ystride)
	p, _ := Param("tiles").Resolve()
	DECQ(p.Addr)
	JNZ(LabelRef("tile"))
	VZEROUPPER()
	RET()
}

// startSums sets the integer sums to what corrects unsigned weights into signed ones.
func startSums(in rowsBase, I [][]vec, scales, sub int, min bool) {
	for m := range I[0] {
		for g := range I {
			switch {
			case min:
				zeroed(I[g][m])
			case g > 0:
				VMOVDQA64(I[0][m], I[g][m])
			case scales == 1:
				VPBROADCASTD(in.at(m, recCorr), I[0][m])
			case sub == 0:
				VPBROADCASTD(in.at(m, recCorr16), I[0][m])
			default:
				t := GP32()
				MOVL(in.at(m, recCorr), t)
				SUBL(in.at(m, recCorr16), t)
				VPBROADCASTD(t, I[0][m])
			}
		}
	}
}

// blockSum sets T to scale times sum of row m's activations under the scale sub; A holds the row's scale.
func blockSum(in rowsBase, m, scales, sub int, A, T vec) {
	if scales == 1 {
		VBROADCASTSS(in.at(m, recSum), T)
		return
	}
	t := GP32()
	if sub == 0 {
		MOVL(in.at(m, recCorr16), t)
	} else {
		MOVL(in.at(m, recCorr), t)
		SUBL(in.at(m, recCorr16), t)
	}
	SARL(U8(7), t)
	NEGL(t)
	VPBROADCASTD(t, T)
	VCVTDQ2PS(T, T)
	VMULPS(A, T, T)
}

// stepRows moves p on by a number of rows.
func stepRows(rows int, p, stride gp) {
	t := GP64()
	IMUL3Q(I32(int32(rows)), stride, t)
	ADDQ(t, p)
}
