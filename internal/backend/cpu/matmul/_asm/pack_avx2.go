package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// Packing moves 16 rows, rowBytes apart, into planes (format.go). Everything is a loop over n source blocks, srcStep
// bytes apart in each row, with results dstStep bytes apart. AVX2 is enough: stores are the limit.

func packAVX2() {
	packPlanes()
	packWords16()
	packHalfs()
	packPairs()
	packFifth()
	packExponents()
	packScales16()
	packScalesMinK()
}

// walk is the frame of a packing function: rows, steps, and the loop.
type walk struct {
	in  rowsBase
	dst gp
}

// packing emits what prepare emits, and then the loop around what the function that it returns emits; that must undo
// what it does to the pointers.
func packing(name, more string, prepare func(w *walk) func()) {
	function(name, "func(dst, src *byte, rowBytes, n, srcStep, dstStep int"+more+")")
	w := &walk{in: newRows(16, param("rowBytes")), dst: param("dst")}
	srcStep, dstStep := param("srcStep"), param("dstStep")
	w.in.set(param("src"))
	body := prepare(w)
	Label("block")
	body()
	for _, p := range w.in.ptr {
		ADDQ(srcStep, p)
	}
	ADDQ(dstStep, w.dst)
	n, _ := Param("n").Resolve()
	DECQ(n.Addr)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	RET()
}

func ymms(n int) (v []vec) {
	for range n {
		v = append(v, YMM())
	}
	return v
}

// transposed loads 16 bytes at disp of the 8 rows from row on and returns, for each of their 4 words, a vector of 8
// rows.
func (w *walk) transposed(row, disp int) []vec {
	v := ymms(4)
	for j, y := range v {
		VBROADCASTI128(w.in.at(row+j, disp), y) // and not a move to its lower half, which would leave the upper undefined
		VINSERTI128(U8(1), w.in.at(row+4+j, disp), y, y)
	}
	t := ymms(4)
	VPUNPCKLDQ(v[1], v[0], t[0]) // 0a 1a 0b 1b
	VPUNPCKHDQ(v[1], v[0], t[1]) // 0c 1c 0d 1d
	VPUNPCKLDQ(v[3], v[2], t[2])
	VPUNPCKHDQ(v[3], v[2], t[3])
	VPUNPCKLQDQ(t[2], t[0], v[0])
	VPUNPCKHQDQ(t[2], t[0], v[1])
	VPUNPCKLQDQ(t[3], t[1], v[2])
	VPUNPCKHQDQ(t[3], t[1], v[3])
	return v
}

// packPlanes packs chunks times 16 bytes of each row into 4 planes each; flip is the mask of bits to turn over.
func packPlanes() {
	packing("packPlanes_avx2", ", chunks, flip int", func(w *walk) func() {
		flip := YMM()
		p, _ := Param("flip").Resolve()
		VPBROADCASTD(p.Addr, flip)
		return func() { packChunks(w, flip) }
	})
}

func packChunks(w *walk, flip vec) {
	chunks := param("chunks")
	size := GP64()
	MOVQ(chunks, size)
	Label("chunk")
	for half := range 2 {
		for i, v := range w.transposed(8*half, 0) {
			VPXOR(flip, v, v)
			VMOVDQU(v, mem(w.dst, 64*i+32*half))
		}
	}
	w.in.advance(16)
	ADDQ(I32(256), w.dst)
	DECQ(chunks)
	JNZ(LabelRef("chunk"))
	SHLQ(U8(4), size)
	for _, p := range w.in.ptr {
		SUBQ(size, p)
	}
	SHLQ(U8(4), size)
	SUBQ(size, w.dst)
}

// packWords16 packs 8 numbers of 16 bits of each row, as 8 vectors of 16.
func packWords16() {
	packing("packWords16_avx2", "", func(w *walk) func() {
		return func() {
			lo, hi := w.transposed(0, 0), w.transposed(8, 0)
			for i := range lo {
				// Words of 32 bits hold elements 2i and 2i+1.
				a, b, even, odd := lo[i], hi[i], YMM(), YMM()
				VPSLLD(U8(16), a, even)
				VPSRLD(U8(16), even, even)
				VPSLLD(U8(16), b, odd)
				VPSRLD(U8(16), odd, odd)
				VPACKUSDW(odd, even, even) // quarters: a, b, a, b
				VPERMQ(U8(0xd8), even, even)
				VPSRLD(U8(16), a, a)
				VPSRLD(U8(16), b, b)
				VPACKUSDW(b, a, a)
				VPERMQ(U8(0xd8), a, a)
				VMOVDQU(even, mem(w.dst, 64*i))
				VMOVDQU(a, mem(w.dst, 64*i+32))
			}
		}
	})
}

// packHalfs packs 2 bytes of each row.
func packHalfs() {
	packing("packHalfs_avx2", "", func(w *walk) func() {
		return func() {
			for r := range 16 {
				t := GP32()
				MOVWLZX(w.in.at(r, 0), t)
				MOVW(t.As16(), mem(w.dst, 2*r))
			}
		}
	})
}

// packPairs packs 2 bytes of each row and, gap bytes further on, the next 2 bytes.
func packPairs() {
	packing("packPairs_avx2", ", gap int", func(w *walk) func() {
		return func() {
			second := GP64()
			p, _ := Param("gap").Resolve()
			MOVQ(p.Addr, second)
			ADDQ(w.dst, second)
			for r := range 16 {
				t := GP32()
				MOVL(w.in.at(r, 0), t)
				MOVW(t.As16(), mem(w.dst, 2*r))
				SHRL(U8(16), t)
				MOVW(t.As16(), mem(second, 2*r))
			}
		}
	})
}

// packExponents packs a byte of each row.
func packExponents() {
	packing("packExponents_avx2", "", func(w *walk) func() {
		return func() {
			for r := range 16 {
				t := GP32()
				MOVBLZX(w.in.at(r, 0), t)
				MOVB(t.As8(), mem(w.dst, r))
			}
		}
	})
}

// packFifth packs 32 bits of each row so that bit 4j+i comes to bit j of byte i.
func packFifth() {
	packing("packFifth_avx2", "", func(w *walk) func() {
		return func() {
			for half := range 2 {
				v := YMM()
				parts := []vec{XMM(), XMM()}
				for i, x := range parts {
					VMOVD(w.in.at(8*half+4*i, 0), x)
					for j := 1; j < 4; j++ {
						VPINSRD(U8(j), w.in.at(8*half+4*i+j, 0), x, x)
					}
				}
				VPXOR(v, v, v)
				VINSERTI128(U8(0), parts[0], v, v)
				VINSERTI128(U8(1), parts[1], v, v)
				spread(v)
				VMOVDQU(v, mem(w.dst, 32*half))
			}
		}
	})
}

// spread does on 8 words what spread in pack.go does on one.
func spread(v vec) {
	out := YMM()
	VPXOR(out, out, out)
	m := func(c uint32) vec {
		t, y := GP32(), YMM()
		MOVL(U32(c), t)
		VMOVD(t, y.AsX())
		VPBROADCASTD(y.AsX(), y)
		return y
	}
	m1, m3, mf, mff := m(0x11111111), m(0x03030303), m(0x000f000f), m(0xff)
	for i := range 4 {
		x, s := YMM(), YMM()
		VPSRLD(U8(i), v, x)
		VPAND(m1, x, x)
		for _, step := range []struct {
			shift int
			mask  vec
		}{{3, m3}, {6, mf}, {12, mff}} {
			VPSRLD(U8(step.shift), x, s)
			VPOR(s, x, x)
			VPAND(step.mask, x, x)
		}
		VPSLLD(U8(8*i), x, x)
		VPOR(x, out, out)
	}
	VMOVDQA(out, v)
}

// byteColumns takes 4 bytes of each of 16 rows, in two vectors, and stores 4 times 16 bytes.
func (w *walk) byteColumns(lo, hi, order, lanes vec, disp int) {
	for _, v := range []vec{lo, hi} {
		VPSHUFB(order, v, v)
		VPERMD(v, lanes, v)
	}
	t := YMM()
	VPUNPCKLQDQ(hi, lo, t)
	VMOVDQU(t, mem(w.dst, disp))
	VPUNPCKHQDQ(hi, lo, t)
	VMOVDQU(t, mem(w.dst, disp+32))
}

// columnOrder returns the vectors that byteColumns wants: bytes of 4 rows grouped by column, and then the words of two
// times 4 rows in the order of columns 0, 2, 1, 3.
func columnOrder() (order, lanes vec) {
	constant := func(words ...uint64) vec {
		y, x := YMM(), XMM()
		t := GP64()
		MOVQ(U64(words[0]), t)
		VMOVQ(t, y.AsX())
		MOVQ(U64(words[1]), t)
		VPINSRQ(U8(1), t, y.AsX(), y.AsX())
		MOVQ(U64(words[2]), t)
		VMOVQ(t, x)
		MOVQ(U64(words[3]), t)
		VPINSRQ(U8(1), t, x, x)
		VINSERTI128(U8(1), x, y, y)
		return y
	}
	order = constant(0x0d0905010c080400, 0x0f0b07030e0a0602, 0x0d0905010c080400, 0x0f0b07030e0a0602)
	lanes = constant(0|4<<32, 2|6<<32, 1|5<<32, 3|7<<32)
	return order, lanes
}

// packScales16 packs 16 bytes of each row as 16 vectors of 16 bytes.
func packScales16() {
	packing("packScales16_avx2", "", func(w *walk) func() {
		order, lanes := columnOrder()
		return func() {
			lo, hi := w.transposed(0, 0), w.transposed(8, 0)
			for i := range lo {
				w.byteColumns(lo[i], hi[i], order, lanes, 64*i)
			}
		}
	})
}

// packScalesMinK packs the head of Q4_K and Q5_K: two halfs, then 12 bytes with 8 scales and 8 minimums of 6 bits.
func packScalesMinK() {
	packing("packScalesMinK_avx2", "", func(w *walk) func() {
		order, lanes := columnOrder()
		m63, m15, m48 := byteMask(63), byteMask(15), byteMask(48)
		part := func(row int) []vec {
			v := w.transposed(row, 0)
			a, b, c, t := v[1], v[2], v[3], v[0]
			out := ymms(4)
			VPAND(m15, c, out[1])
			VPSRLD(U8(2), a, t)
			VPAND(m48, t, t)
			VPOR(t, out[1], out[1])
			VPSRLD(U8(4), c, out[3])
			VPAND(m15, out[3], out[3])
			VPSRLD(U8(2), b, t)
			VPAND(m48, t, t)
			VPOR(t, out[3], out[3])
			VPAND(m63, a, out[0])
			VPAND(m63, b, out[2])
			return out
		}
		return func() {
			for r := range 16 {
				t := GP32()
				MOVL(w.in.at(r, 0), t)
				MOVW(t.As16(), mem(w.dst, 2*r))
				SHRL(U8(16), t)
				MOVW(t.As16(), mem(w.dst, 32+2*r))
			}
			lo := part(0)
			hi := part(8)
			for i := range lo {
				w.byteColumns(lo[i], hi[i], order, lanes, 64+64*i)
			}
		}
	})
}

// byteMask returns 32 bytes of c in memory.
func byteMask(c uint64) Mem {
	m := GLOBL(fmt.Sprintf("bytes%d_avx2", c), RODATA|NOPTR)
	for i := range 4 {
		DATA(8*i, U64(c*0x0101010101010101))
	}
	return m
}
