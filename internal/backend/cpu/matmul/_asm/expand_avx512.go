package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// RATIONALE: Why do kernels for few rows walk the K formats two or four blocks at a time?
type (
	vec = VecVirtual
	gp  = GPVirtual
)

// form is what the generator knows of a packed format (format.go).
type form struct {
	name    string
	blocks  int // blocks of 32 in a unit
	head    int
	body    int
	signed  bool
	offset  int    // subtracted from the bits of a value
	table   []int8 // or what the bits stand for
	scales  int
	low     func(b, q int) (at, shift int)
	lowMask uint32
	high    func(b, q int) (at, shift int)
	highBit uint32 // mask of the upper bits in place
	scale   func(u *units, b int)

	// turn is a number of blocks after which everything in a unit repeats so many bytes further on, or 0.
	turn                         int
	lowStep, highStep, scaleStep int
}

var (
	iq4Values   = []int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}
	mxfp4Values = []int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}
)

type place = func(b, q int) (at, shift int)

func nibbles(head, body int) place {
	return func(b, q int) (int, int) { return head + b*body + q%4*64, q / 4 * 4 }
}

func fifthBits(head int) place {
	return func(b, q int) (int, int) { return head + b*320 + 256, q }
}

func nibblePairs(head int) place {
	return func(b, q int) (int, int) { return head + b/2*512 + q*64, b % 2 * 4 }
}
func nibblesOfQ6K(b, q int) (int, int) { return 320 + b/4*1024 + b%2*512 + q*64, b / 2 % 2 * 4 }
func bitPairs(at int) place {
	return func(b, q int) (int, int) { return at + b/4*512 + q*64, b % 4 * 2 }
}

func singleBits(at int) place {
	return func(b, q int) (int, int) { return at + q*64, b }
}
func wholeBytes(b, q int) (int, int) { return 64 + b*512 + q*64, 0 }

var forms = []form{
	{name: "Q4_0", blocks: 2, head: 64, body: 256, signed: true, offset: 8, scales: 1, low: nibbles(64, 256), lowMask: 15, scale: scaleF16},
	{name: "Q4_1", blocks: 2, head: 128, body: 256, scales: 1, low: nibbles(128, 256), lowMask: 15, scale: scaleMinF16},
	{
		name: "Q5_0", blocks: 2, head: 64, body: 320, signed: true, offset: 16, scales: 1, low: nibbles(64, 320), lowMask: 15,
		high: fifthBits(64), highBit: 0x10, scale: scaleF16,
	},
	{
		name: "Q5_1", blocks: 2, head: 128, body: 320, scales: 1, low: nibbles(128, 320), lowMask: 15,
		high: fifthBits(128), highBit: 0x10, scale: scaleMinF16,
	},
	{name: "Q8_0", blocks: 2, head: 64, body: 512, signed: true, offset: 128, scales: 1, low: wholeBytes, lowMask: 255, scale: scaleF16},
	{name: "IQ4_NL", blocks: 2, head: 64, body: 256, signed: true, table: iq4Values, scales: 1, low: nibbles(64, 256), lowMask: 15, scale: scaleF16},
	{name: "MXFP4", blocks: 4, head: 64, body: 256, signed: true, table: mxfp4Values, scales: 1, low: nibbles(64, 256), lowMask: 15, scale: scaleE8M0},
	{name: "IQ4_XS", blocks: 8, head: 192, body: 256, signed: true, table: iq4Values, scales: 1, low: nibbles(192, 256), lowMask: 15, scale: scaleSigned},
	{name: "Q2_K", blocks: 8, head: 320, body: 128, scales: 2, low: bitPairs(320), lowMask: 3, scale: scaleQ2K},
	{
		name: "Q3_K", blocks: 8, head: 320, body: 192, signed: true, offset: 4, scales: 2, low: bitPairs(320), lowMask: 3,
		high: singleBits(320 + 1024), highBit: 4, scale: scaleSigned,
	},
	{name: "Q4_K", blocks: 8, head: 320, body: 256, scales: 1, low: nibblePairs(320), lowMask: 15, scale: scaleMinK, turn: 2, lowStep: 512, scaleStep: 32},
	{
		name: "Q5_K", blocks: 8, head: 320, body: 320, scales: 1, low: nibblePairs(320), lowMask: 15,
		high: singleBits(320 + 2048), highBit: 0x10, scale: scaleMinK,
	},
	{
		name: "Q6_K", blocks: 8, head: 320, body: 384, signed: true, offset: 32, scales: 2, low: nibblesOfQ6K, lowMask: 15,
		high: bitPairs(320 + 2048), highBit: 0x30, scale: scaleSigned, turn: 4, lowStep: 1024, highStep: 512, scaleStep: 128,
	},
}

// units is the state of code that walks the units of a format.
type units struct {
	form
	w                      gp  // the unit
	lowAt, highAt, scaleAt gp  // from where places are counted
	lowM, highM            vec // masks
	bias, lookup           vec // added to values, or looked up
	d, dmin, t             vec
	least, small           vec   // constants of E8M0
	S                      []vec // S[i]: scale of sub i, S[scales+i]: minimum
}

func newUnits(f form, w gp) *units {
	u := &units{form: f, w: w, lowAt: w, highAt: w, scaleAt: w, t: ZMM()}
	if f.lowMask != 255 {
		u.lowM = dwords(f.lowMask * 0x01010101)
	}
	if f.high != nil {
		u.highM = dwords(f.highBit * 0x01010101)
	}
	switch {
	case f.table != nil:
		u.lookup = ZMM()
		var words [4]uint32
		for i, v := range f.table {
			words[i/4] |= uint32(uint8(int(v)+128)) << (i % 4 * 8)
		}
		lo, hi, x := GP64(), GP64(), XMM()
		MOVQ(U64(uint64(words[0])|uint64(words[1])<<32), lo)
		MOVQ(U64(uint64(words[2])|uint64(words[3])<<32), hi)
		VMOVQ(lo, x)
		VPINSRQ(U8(1), hi, x, x)
		VSHUFI32X4(U8(0), x.AsZ(), x.AsZ(), u.lookup) // the same in all quarters
	case f.signed && f.offset != 128:
		u.bias = dwords(uint32(128-f.offset) * 0x01010101)
	}
	for range f.scales * 2 {
		u.S = append(u.S, ZMM())
	}
	switch f.name {
	case "MXFP4":
		u.least, u.small = dwords(0x00200000), dwords(1)
	}
	if f.blocks == 8 {
		u.d, u.dmin = ZMM(), ZMM()
	}
	return u
}

// begin loads what a unit's blocks share.
func (u *units) begin() {
	if u.blocks != 8 {
		return
	}
	VCVTPH2PS(mem(u.w, 0), u.d)
	if !u.signed {
		VCVTPH2PS(mem(u.w, 32), u.dmin)
	}
}

// quads emits code that makes each quad of block b, of those under scale sub, and hands it to use. Values are unsigned.
func (u *units) quads(b, from, to int, use func(q int, v vec)) {
	for q := from; q < to; q++ {
		v := ZMM()
		at, shift := u.low(b, q)
		switch {
		case u.lowMask == 255:
			VMOVDQU64(mem(u.lowAt, at), v)
		case shift == 0:
			VPANDD(mem(u.lowAt, at), u.lowM, v)
		default:
			VMOVDQU64(mem(u.lowAt, at), v)
			VPSRLW(U8(shift), v, v)
			VPANDD(u.lowM, v, v)
		}
		if u.high != nil {
			u.addHigh(b, q, v)
		}
		switch {
		case u.lookup != nil:
			VPSHUFB(v, u.lookup, v)
		case u.bias != nil:
			VPADDB(u.bias, v, v)
		}
		use(q, v)
	}
}

// addHigh ors the upper bits of a quad into v.
func (u *units) addHigh(b, q int, v vec) {
	at, shift := u.high(b, q)
	to := trailing(u.highBit)
	VMOVDQU64(mem(u.highAt, at), u.t)
	switch {
	case to > shift:
		VPSLLW(U8(to-shift), u.t, u.t)
	case to < shift:
		VPSRLW(U8(shift-to), u.t, u.t)
	}
	VPTERNLOGD(U8(0xF8), u.highM, u.t, v)
}

// The scales of block b, into S.
func scaleF16(u *units, b int) { VCVTPH2PS(mem(u.scaleAt, 32*b), u.S[0]) }

func scaleMinF16(u *units, b int) {
	VCVTPH2PS(mem(u.scaleAt, 32*b), u.S[0])
	VCVTPH2PS(mem(u.scaleAt, 64+32*b), u.S[1])
}

// scaleE8M0 makes (e-1)<<23, or 0x00200000<<e where e is below 2.
func scaleE8M0(u *units, b int) {
	k := K()
	e := ZMM()
	VPMOVZXBD(mem(u.scaleAt, 16*b), e)
	VPSUBD(u.small, e, u.S[0])
	VPSLLD(U8(23), u.S[0], u.S[0])
	VPCMPUD(U8(2), u.small, e, k) // e <= 1
	VPSLLVD(e, u.least, k, u.S[0])
}

func scaleMinK(u *units, b int) {
	VPMOVZXBD(mem(u.scaleAt, 64+16*b), u.S[0])
	VPMOVZXBD(mem(u.scaleAt, 192+16*b), u.S[1])
	for i, d := range []vec{u.d, u.dmin} {
		VCVTDQ2PS(u.S[i], u.S[i])
		VMULPS(d, u.S[i], u.S[i])
	}
	negate(u.S[1], u)
}

func scaleQ2K(u *units, b int) {
	for sub := range 2 {
		VPMOVZXBD(mem(u.scaleAt, 64+16*(2*b+sub)), u.S[2+sub])
		lowNibbles(u.S[2+sub], u.S[sub])
		VPSRLD(U8(4), u.S[2+sub], u.S[2+sub])
		for i, d := range []vec{u.d, u.dmin} {
			VCVTDQ2PS(u.S[2*i+sub], u.S[2*i+sub])
			VMULPS(d, u.S[2*i+sub], u.S[2*i+sub])
		}
		negate(u.S[2+sub], u)
	}
}

// lowNibbles keeps the low nibble of dwords.
func lowNibbles(from, to vec) {
	VPSLLD(U8(28), from, to)
	VPSRLD(U8(28), to, to)
}

// negate changes the sign of v.
func negate(v vec, u *units) {
	VPTERNLOGD(U8(0xFF), u.t, u.t, u.t)
	VPSLLD(U8(31), u.t, u.t)
	VPXORD(u.t, v, v)
}

func scaleSigned(u *units, b int) {
	for sub := range u.scales {
		VPMOVSXBD(mem(u.scaleAt, 64+16*(u.scales*b+sub)), u.S[sub])
		VCVTDQ2PS(u.S[sub], u.S[sub])
		VMULPS(u.d, u.S[sub], u.S[sub])
	}
}

// expandersAVX512 emits a function for each format that expands blocks of one group, from the start of a unit on, into
// the form that tiles take: qstep and sstep are the bytes from one block to the next.
func expandersAVX512() {
	for _, f := range forms {
		function("expand"+f.name+"_avx512", "func(w *byte, blocks int, q *byte, qstep int, s *byte, sstep int, ahead int)")
		w, n, ahead := param("w"), param("blocks"), param("ahead")
		q, qstep, s, sstep := param("q"), param("qstep"), param("s"), param("sstep")
		u := newUnits(f, w)
		ADDQ(w, ahead)
		Label("unit")
		u.begin()
		fetched := 0
		for b := range f.blocks {
			for end := (f.head + (b+1)*f.body) / 64; fetched < end; fetched++ {
				PREFETCHT1(mem(ahead, 64*fetched))
			}
			f.scale(u, b)
			for i := range f.scales {
				VMOVUPS(u.S[i], mem(s, 64*i))
				if !f.signed {
					VMOVUPS(u.S[f.scales+i], mem(s, 64*(f.scales+i)))
				}
			}
			u.quads(b, 0, 8, func(i int, v vec) { VMOVDQU64(v, mem(q, 64*i)) })
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
