package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// quantizeAVX2 does what quantizeAVX512 does.
func quantizeAVX2() {
	order := GLOBL("order_avx2", RODATA|NOPTR)
	for i, p := range [][2]uint64{{0, 4}, {1, 5}, {2, 6}, {3, 7}} {
		DATA(8*i, U64(p[0]|p[1]<<32))
	}
	function("quantize_avx2", "func(x *float32, dst *byte, blocks int)")
	x, dst, n := param("x"), param("dst"), param("blocks")
	abs, c127, inf, maxFinite := words8(0x7fffffff), XMM(), GP32(), XMM()
	t := GP32()
	MOVL(U32(0x42fe0000), t)
	VMOVD(t, c127)
	MOVL(U32(0x7f7fffff), t)
	VMOVD(t, maxFinite)
	MOVL(U32(0x7f800000), inf)
	perm := YMM()
	VMOVDQU(order, perm)
	Label("block")
	v, m, s := ymms(4), YMM(), YMM()
	for i, r := range v {
		VMOVUPS(mem(x, 32*i), r)
		if i == 0 {
			VPAND(abs, r, m)
			continue
		}
		VPAND(abs, r, s)
		VPMAXUD(s, m, m)
	}
	h := XMM()
	VEXTRACTI128(U8(1), m, h)
	VPMAXUD(h, m.AsX(), m.AsX())
	VPSHUFD(U8(0x4e), m.AsX(), h)
	VPMAXUD(h, m.AsX(), m.AsX())
	VPSHUFD(U8(0xb1), m.AsX(), h)
	VPMAXUD(h, m.AsX(), m.AsX())
	top := GP32()
	VMOVD(m.AsX(), top)
	CMPL(top, inf)
	JAE(LabelRef("broken"))
	d, inv := XMM(), XMM()
	VDIVSS(c127, m.AsX(), d)
	VDIVSS(m.AsX(), c127, inv)
	VUCOMISS(maxFinite, inv) // inv > the largest
	JA(LabelRef("zero"))
	by := YMM()
	VBROADCASTSS(inv, by)
	for _, r := range v {
		VMULPS(by, r, r)
		VCVTPS2DQ(r, r)
	}
	lo, hi := YMM(), YMM()
	VPADDD(v[1], v[0], lo)
	VPADDD(v[3], v[2], hi)
	VPACKSSDW(v[1], v[0], v[0])
	VPACKSSDW(v[3], v[2], v[2])
	VPACKSSWB(v[2], v[0], v[0])
	VPERMD(v[0], perm, v[0])
	VMOVDQU(v[0], mem(dst, 0))
	VPHADDD(hi, lo, lo) // quarters: 2 lo, 2 hi, 2 lo, 2 hi
	VEXTRACTI128(U8(1), lo, h)
	VPADDD(h, lo.AsX(), h)
	VPHADDD(h, h, h)
	first, all := GP32(), GP32()
	VMOVD(h, first)
	VPEXTRD(U8(1), h, all)
	ADDL(first, all)
	VMOVSS(d, mem(dst, recScale))
	f := XMM()
	VXORPS(f, f, f)
	VCVTSI2SSL(all, f, f)
	VMULSS(d, f, f)
	VMOVSS(f, mem(dst, recSum))
	SHLL(U8(7), all)
	NEGL(all)
	MOVL(all, mem(dst, recCorr))
	SHLL(U8(7), first)
	NEGL(first)
	MOVL(first, mem(dst, recCorr16))
	Label("next")
	ADDQ(U8(128), x)
	ADDQ(U8(record), dst)
	DECQ(n)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	RET()

	z := YMM()
	Label("broken")
	VPXOR(z, z, z)
	VMOVDQU(z, mem(dst, 0))
	VMOVDQU(z.AsX(), mem(dst, 32))
	MOVL(U32(0x7fc00000), mem(dst, recScale))
	MOVL(U32(0x7fc00000), mem(dst, recSum))
	JMP(LabelRef("next"))

	Label("zero")
	VPXOR(z, z, z)
	VMOVDQU(z, mem(dst, 0))
	VMOVDQU(z.AsX(), mem(dst, 32))
	JMP(LabelRef("next"))
}
