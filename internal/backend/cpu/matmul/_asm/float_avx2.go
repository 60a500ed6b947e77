package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

func floatsAVX2() {
	for _, t := range floatTypes {
		for _, s := range [][2]int{{1, 1}, {1, 2}, {1, 3}, {1, 4}, {1, 5}, {1, 6}, {2, 1}} {
			floatAVX2(fmt.Sprintf("mul%s_%dx%d_avx2", t.name, s[0], s[1]), t.name, t.size, s[0], s[1])
		}
	}
}

// floatAVX2 is floatAVX512 with two vectors for the 16 rows of a group.
func floatAVX2(name, typ string, size int, groups, rows int) {
	function(name, "func(w *byte, wstride int, n int, a *byte, astride int, y *float32, ystride, tiles, first int)")
	wstride := param("wstride")
	a, astride := param("a"), param("astride")
	y, ystride := param("y"), param("ystride")
	n := GP64()
	first, _ := Param("first").Resolve()
	DECQ(first.Addr) // now a mask: all ones unless first
	halfs := 2 * groups
	F := make([][]vec, halfs)
	for i := range F {
		F[i] = ymms(rows)
	}
	W, A := ymms(halfs), YMM()
	in, w := newRows(rows, astride), newRows(groups, wstride)
	step := func(i int) {
		for h := range halfs {
			at := w.at(h/2, i*size+h%2*size/2)
			switch typ {
			case "F32":
				VMOVUPS(at, W[h])
			case "F16":
				VCVTPH2PS(at, W[h])
			default:
				VPMOVZXWD(at, W[h])
				VPSLLD(U8(16), W[h], W[h])
			}
			if h%2 == 0 && i*size%64 == 0 {
				PREFETCHT1(w.at(h/2, i*size+fetchAhead))
			}
		}
		for m := range rows {
			VBROADCASTSS(in.at(m, 4*i), A)
			for h := range halfs {
				VFMADD231PS(A, W[h], F[h][m])
			}
		}
	}
	Label("tile")
	t := Load(Param("w"), GP64()).(gp)
	w.set(t)
	in.set(a)
	Load(Param("n"), n)
	for _, fs := range F {
		for _, f := range fs {
			VPXOR(f, f, f)
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
	VPBROADCASTQ(first.Addr, A)
	yp := GP64()
	MOVQ(y, yp)
	for m := range rows {
		for h := range halfs {
			VANDPS(mem(yp, 32*h), A, W[0])
			VADDPS(F[h][m], W[0], W[0])
			VMOVUPS(W[0], mem(yp, 32*h))
		}
		ADDQ(ystride, yp)
	}
	MOVQ(yp, y)
	stepRows(rows, a, astride)
	p, _ := Param("tiles").Resolve()
	DECQ(p.Addr)
	JNZ(LabelRef("tile"))
	VZEROUPPER()
	RET()
}
