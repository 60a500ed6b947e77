package main

// neonUnits emits the expanders of NEON; values become signed bytes. General registers: 0 the unit, 1 counts blocks, 2
// and 4 walk q and s, 3 and 5 their steps, 6 is the memory to be fetched. Vectors: 0 to 7 are free, 16 masks lower
// bits, 17 upper bits, 18 is what is subtracted or the table, 19 and 20 constants.
type neonUnits struct {
	*code
	form
}

func (c *code) expanders() {
	for _, f := range forms {
		u := neonUnits{code: c, form: f}
		u.emit()
	}
}

func (u *neonUnits) emit() {
	u.function("expand"+u.name+"_neon", "w *byte", "blocks int", "q *byte", "qstep int", "s *byte", "sstep int", "ahead int")
	for i, name := range []string{"w", "blocks", "q", "qstep", "s", "sstep", "ahead"} {
		u.load(name, i, i)
	}
	u.op("ADD R0, R6")
	u.constants()
	unit, done := u.label(), u.label()
	u.place(unit)
	fetched := 0
	for b := range u.blocks {
		for end := (u.head + (b+1)*u.body) / 64; fetched < end; fetched++ {
			u.prefetch(6, 64*fetched)
		}
		u.writeScales(b)
		for q := range 8 {
			for v := range 4 {
				u.quad(b, q, v)
			}
		}
		u.op("ADD R3, R2")
		u.op("ADD R5, R4")
		if b < u.blocks-1 && u.blocks < 8 {
			u.op("SUBS $1, R1")
			u.op("BEQ %s", done)
		}
	}
	u.op("ADD $%d, R0", u.head+u.blocks*u.body)
	u.op("ADD $%d, R6", u.head+u.blocks*u.body)
	if u.blocks < 8 {
		u.op("SUBS $1, R1")
	} else {
		u.op("SUBS $8, R1")
	}
	u.op("BNE %s", unit)
	u.place(done)
	u.op("RET")
}

func (u *neonUnits) constants() {
	u.movi(16, u.lowMask)
	if u.lowMask == 255 {
		u.movi(16, 0x80)
	}
	if u.high != nil {
		u.movi(17, u.highBit)
	}
	if u.table != nil {
		var words [2]uint64
		for i, v := range u.table {
			words[i/8] |= uint64(uint8(v)) << (i % 8 * 8)
		}
		for i, w := range words {
			u.op("MOVD $0x%016x, R7", w)
			// ins v18.d[i], x7
			u.word(0x4e001c00|uint32(i<<4|8)<<16|7<<5|18, "ins v18.d[%d], x7", i)
		}
	} else if u.signed {
		u.movi(18, uint32(u.offset))
	}
	if u.name == "MXFP4" {
		u.op("MOVD $0x0000000100000001, R7")
		u.dupGeneral(19, 7)
		u.op("MOVD $0x0020000000200000, R7")
		u.dupGeneral(20, 7)
	}
}

// quad expands vector v, 4 rows, of a quad.
func (u *neonUnits) quad(b, q, v int) {
	d, t := v, 4+v
	at, shift := u.low(b, q)
	u.ldq(d, 0, at+16*v)
	switch {
	case u.lowMask == 255:
		u.eor(d, d, 16)
		u.stq(d, 2, 64*q+16*v)
		return
	case shift > 0:
		u.shift(0x6f000400, "ushr.16b", 16-shift, d, d)
	}
	if shift+bits(u.lowMask) < 8 {
		u.and(d, d, 16)
	}
	if u.high != nil {
		at, shift := u.high(b, q)
		to := trailing(u.highBit)
		u.ldq(t, 0, at+16*v)
		switch {
		case to > shift:
			u.shift(0x4f005400, "shl.16b", 8+to-shift, t, t)
		case to < shift:
			u.shift(0x6f000400, "ushr.16b", 16-(shift-to), t, t)
		}
		u.and(t, t, 17)
		u.orr(d, d, t)
	}
	switch {
	case u.table != nil:
		u.tbl(d, 18, d)
	case u.signed:
		u.subB(d, d, 18)
	}
	u.stq(d, 2, 64*q+16*v)
}

func bits(mask uint32) (n int) {
	for ; mask != 0; mask >>= 1 {
		n++
	}
	return n
}

func trailing(mask uint32) (n int) {
	for ; mask&1 == 0; mask >>= 1 {
		n++
	}
	return n
}

// writeScales stores the scales and minimums of block b.
func (u *neonUnits) writeScales(b int) {
	store := func(i int, vs [4]int) {
		for v, r := range vs {
			u.stq(r, 4, 64*i+16*v)
		}
	}
	vs := [4]int{0, 1, 2, 3}
	halfs := func(at, i int) {
		u.ldq(0, 0, at)
		u.ldq(2, 0, at+16)
		u.halves(0, 1, 0)
		u.halves(2, 3, 2)
		store(i, vs)
	}
	// times multiplies the integers in vs with the halfs at a place and stores them.
	times := func(at, i int, negative bool) {
		u.ldq(4, 0, at)
		u.ldq(6, 0, at+16)
		u.halves(4, 5, 4)
		u.halves(6, 7, 6)
		for v := range 4 {
			u.scvtf(v, v)
			u.fmul(v, v, 4+v)
			if negative {
				u.fneg(v, v)
			}
		}
		store(i, vs)
	}
	switch {
	case u.name == "MXFP4":
		u.exponents(b, store)
	case u.blocks == 2:
		halfs(32*b, 0)
		if !u.signed {
			halfs(64+32*b, 1)
		}
	case u.signed:
		for sub := range u.scales {
			u.ldq(4, 0, 64+16*(u.scales*b+sub))
			u.widen(vs, 4, true)
			times(0, sub, false)
		}
	case u.scales == 1:
		u.ldq(4, 0, 64+16*b)
		u.widen(vs, 4, false)
		times(0, 0, false)
		u.ldq(4, 0, 192+16*b)
		u.widen(vs, 4, false)
		times(32, 1, true)
	default: // Q2_K
		u.movi(21, 15)
		for sub := range 2 {
			at := 64 + 16*(2*b+sub)
			u.ldq(4, 0, at)
			u.and(4, 4, 21)
			u.widen(vs, 4, false)
			times(0, sub, false)
			u.ldq(4, 0, at)
			u.shift(0x6f000400, "ushr.16b", 16-4, 4, 4)
			u.widen(vs, 4, false)
			times(32, 2+sub, true)
		}
	}
}

// exponents makes (e-1)<<23, or 0x00200000<<e where e is below 2.
func (u *neonUnits) exponents(b int, store func(int, [4]int)) {
	u.ldq(4, 0, 16*b)
	u.widen([4]int{0, 1, 2, 3}, 4, false)
	for v := range 4 {
		u.subS(5, v, 19)
		u.shift(0x4f005400, "shl.4s", 32+23, 5, 5)
		u.three(0x6ea04400, "ushl.4s", 6, 20, v)
		u.three(0x6ea03400, "cmhi.4s", 7, v, 19) // e > 1
		u.three(0x6e601c00, "bsl.16b", 7, 5, 6)
		u.orr(v, 7, 7)
	}
	store(0, [4]int{0, 1, 2, 3})
}
