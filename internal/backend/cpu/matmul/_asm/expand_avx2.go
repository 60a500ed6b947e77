package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// units2 is what the expanders of AVX2 hold; a vector is half of the 16 lanes.
type units2 struct {
	form
	w                   gp
	lowM, highM, lookup vec
	v, t                vec
	small, least        vec
}

// words8 makes a vector of one 32-bit constant.
func words8(c uint32) vec {
	t, y := GP32(), YMM()
	MOVL(U32(c), t)
	VMOVD(t, y.AsX())
	VPBROADCASTD(y.AsX(), y)
	return y
}

func expandersAVX2() {
	for _, f := range forms {
		function("expand"+f.name+"_avx2", "func(w *byte, blocks int, q *byte, qstep int, s *byte, sstep int, ahead int)")
		w, n, ahead := param("w"), param("blocks"), param("ahead")
		q, qstep, s, sstep := param("q"), param("qstep"), param("s"), param("sstep")
		u := newUnits2(f, w)
		ADDQ(w, ahead)
		Label("unit")
		fetched := 0
		for b := range f.blocks {
			for end := (f.head + (b+1)*f.body) / 64; fetched < end; fetched++ {
				PREFETCHT1(mem(ahead, 64*fetched))
			}
			for h := range 2 {
				u.scales2(b, h, s)
				for quad := range 8 {
					VMOVDQU(u.quad(b, quad, h), mem(q, 64*quad+32*h))
				}
			}
			ADDQ(qstep, q)
			ADDQ(sstep, s)
			if b < f.blocks-1 && f.blocks < 8 {
				DECQ(n)
				JZ(LabelRef("done"))
			}
		}
		ADDQ(I32(int32(f.head+f.blocks*f.body)), w)
		ADDQ(I32(int32(f.head+f.blocks*f.body)), ahead)
		if f.blocks < 8 {
			DECQ(n)
		} else {
			SUBQ(I8(8), n)
		}
		JNZ(LabelRef("unit"))
		Label("done")
		VZEROUPPER()
		RET()
	}
}

func newUnits2(f form, w gp) *units2 {
	u := &units2{form: f, w: w, v: YMM(), t: YMM()}
	if f.lowMask != 255 {
		u.lowM = words8(f.lowMask * 0x01010101)
	} else {
		u.lowM = words8(0x80808080) // turns Q8_0's bytes back into signed ones
	}
	if f.high != nil {
		u.highM = words8(f.highBit * 0x01010101)
	}
	if f.table != nil {
		m := GLOBL("values"+f.name+"_avx2", RODATA|NOPTR)
		for i := range 2 {
			var word uint64
			for j := range 8 {
				word |= uint64(uint8(f.table[8*i+j])) << (8 * j)
			}
			DATA(8*i, U64(word))
		}
		u.lookup = YMM()
		VBROADCASTI128(m, u.lookup)
	}
	if f.name == "MXFP4" {
		u.small, u.least = words8(1), words8(0x00200000)
	}
	return u
}

// quad makes half of a quad: bits, or for formats with a table or of whole bytes, signed values.
func (u *units2) quad(b, q, h int) vec {
	at, shift := u.low(b, q)
	place := mem(u.w, at+32*h)
	switch {
	case u.lowMask == 255:
		VPXOR(place, u.lowM, u.v)
	case shift == 0:
		VPAND(place, u.lowM, u.v)
	default:
		VMOVDQU(place, u.v)
		VPSRLW(U8(shift), u.v, u.v)
		VPAND(u.lowM, u.v, u.v)
	}
	if u.high != nil {
		at, shift := u.high(b, q)
		to := trailing(u.highBit)
		VMOVDQU(mem(u.w, at+32*h), u.t)
		switch {
		case to > shift:
			VPSLLW(U8(to-shift), u.t, u.t)
		case to < shift:
			VPSRLW(U8(shift-to), u.t, u.t)
		}
		VPAND(u.highM, u.t, u.t)
		VPOR(u.t, u.v, u.v)
	}
	if u.lookup != nil {
		VPSHUFB(u.v, u.lookup, u.v)
	}
	return u.v
}

// scales2 stores half of the scales and minimums of block b.
func (u *units2) scales2(b, h int, s gp) {
	to := func(i int) Mem { return mem(s, 64*i+32*h) }
	v, t := u.v, u.t
	// times multiplies v with the halfs at a place.
	times := func(at int) {
		VCVTDQ2PS(v, v)
		VCVTPH2PS(mem(u.w, at+16*h), t)
		VMULPS(t, v, v)
	}
	negate := func() {
		VPCMPEQD(t, t, t)
		VPSLLD(U8(31), t, t)
		VPXOR(t, v, v)
	}
	switch {
	case u.name == "MXFP4":
		e, k := YMM(), YMM()
		VPMOVZXBD(mem(u.w, 16*b+8*h), e)
		VPSUBD(u.small, e, v)
		VPSLLD(U8(23), v, v)
		VPSLLVD(e, u.least, t)
		VPCMPGTD(u.small, e, k) // e > 1
		VBLENDVPS(k, v, t, v)
		VMOVUPS(v, to(0))
	case u.blocks == 2:
		VCVTPH2PS(mem(u.w, 32*b+16*h), v)
		VMOVUPS(v, to(0))
		if !u.signed {
			VCVTPH2PS(mem(u.w, 64+32*b+16*h), v)
			VMOVUPS(v, to(1))
		}
	case u.signed:
		for sub := range u.scales {
			VPMOVSXBD(mem(u.w, 64+16*(u.scales*b+sub)+8*h), v)
			times(0)
			VMOVUPS(v, to(sub))
		}
	case u.scales == 1:
		VPMOVZXBD(mem(u.w, 64+16*b+8*h), v)
		times(0)
		VMOVUPS(v, to(0))
		VPMOVZXBD(mem(u.w, 192+16*b+8*h), v)
		times(32)
		negate()
		VMOVUPS(v, to(1))
	default: // Q2_K
		for sub := range 2 {
			at := mem(u.w, 64+16*(2*b+sub)+8*h)
			VPMOVZXBD(at, v)
			VPSLLD(U8(28), v, v)
			VPSRLD(U8(28), v, v)
			times(0)
			VMOVUPS(v, to(sub))
			VPMOVZXBD(at, v)
			VPSRLD(U8(4), v, v)
			times(32)
			negate()
			VMOVUPS(v, to(2+sub))
		}
	}
}
