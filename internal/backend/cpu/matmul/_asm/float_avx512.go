package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

var floatTypes = []struct {
	name string
	size int // bytes of 16 weights
	load func(m Mem, v vec)
}{
	{"F32", 64, func(m Mem, v vec) { VMOVUPS(m, v) }},
	{"F16", 32, func(m Mem, v vec) { VCVTPH2PS(m, v) }},
	{"BF16", 32, func(m Mem, v vec) {
		VPMOVZXWD(m, v)
		VPSLLD(U8(16), v, v)
	}},
}

// floatTiles are groups of 16 output rows x rows of activations.
var floatTiles = [][2]int{{1, 1}, {1, 2}, {1, 4}, {1, 8}, {2, 1}, {2, 2}, {2, 3}, {2, 4}, {2, 5}, {2, 6}, {2, 7}, {2, 8}, {2, 12}, {4, 1}}

func floatsAVX512() {
	for _, t := range floatTypes {
		for _, s := range floatTiles {
			floatAVX512(fmt.Sprintf("mul%s_%dx%d_avx512", t.name, s[0], s[1]), t.size, t.load, s[0], s[1])
		}
	}
}

// floatAVX512 multiplies n inputs, a part of one segment, of groups packed groups wstride bytes apart with tiles*rows
// rows of activations and adds the sums to y, or sets y to them.
func floatAVX512(name string, size int, load func(Mem, vec), groups, rows int) {
	function(name, "func(w *byte, wstride int, n int, a *byte, astride int, y *float32, ystride, tiles, first int)")
	wstride := param("wstride")
	a, astride := param("a"), param("astride")
	y, ystride := param("y"), param("ystride")
	n, first := GP64(), param("first")
	keep := K()
	NEGQ(first)
	NOTQ(first)
	KMOVW(first.As32(), keep)
	F := make([][]vec, groups)
	for g := range F {
		F[g] = vectors(rows)
	}
	W := vectors(groups)
	A, T := ZMM(), ZMM()
	in, out, w := newRows(rows, astride), newRows(rows, ystride), newRows(groups, wstride)
	step := func(i int) {
		for g := range groups {
			load(w.at(g, i*size), W[g])
			if i*size%64 == 0 {
				PREFETCHT1(w.at(g, i*size+fetchAhead))
			}
		}
		for m := range rows {
			if groups == 1 {
				VFMADD231PS_BCST(in.at(m, 4*i), W[0], F[0][m])
				continue
			}
			VBROADCASTSS(in.at(m, 4*i), A)
			for g := range groups {
				VFMADD231PS(A, W[g], F[g][m])
			}
		}
	}
	Label("tile")
	t := Load(Param("w"), GP64()).(gp)
	w.set(t)
	in.set(a)
	Load(Param("n"), n)
	for g := range groups {
		for m := range rows {
			zeroed(F[g][m])
		}
	}
	SUBQ(I8(4), n)
	JLT(LabelRef("rest"))
	Label("four")
	for i := range 4 {
		step(i)
	}
	w.advance(4 * size)
	in.advance(16)
	SUBQ(I8(4), n)
	JGE(LabelRef("four"))
	Label("rest")
	ADDQ(I8(4), n)
	JZ(LabelRef("sum"))
	Label("one")
	step(0)
	w.advance(size)
	in.advance(4)
	DECQ(n)
	JNZ(LabelRef("one"))
	Label("sum")
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
