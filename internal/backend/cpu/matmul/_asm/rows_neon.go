package main

// quantize turns blocks of 32 activations into records (act.go).
func (c *code) quantize() {
	c.function("quantize_neon", "x *float32", "dst *byte", "blocks int")
	const abs, c127, most, d, inv, first, second, sum = 16, 20, 21, 22, 23, 24, 25, 26
	c.load("x", 0, 0)
	c.load("dst", 1, 1)
	c.load("blocks", 2, 2)
	c.op("MOVD $0x7fffffff7fffffff, R3")
	c.dupGeneral(abs, 3)
	c.op("MOVD $0x42fe0000, R3")
	c.op("FMOVS R3, F%d", c127)
	c.op("MOVD $0x7f7fffff, R3")
	c.op("FMOVS R3, F%d", most)
	c.op("MOVD $0x7f800000, R3")
	block, next, broken, zero := c.label(), c.label(), c.label(), c.label()
	c.place(block)
	for i := range 8 {
		c.ldq(i, 0, 16*i)
	}
	c.and(8, 0, abs)
	for i := 1; i < 8; i++ {
		c.and(9, i, abs)
		c.three(0x6ea06400, "umax.4s", 8, 8, 9)
	}
	c.two(0x6eb0a800, "umaxv.4s", 8, 8)
	c.op("FMOVS F8, R4")
	c.op("CMPW R3, R4")
	c.op("BHS %s", broken)
	c.op("FDIVS F%d, F8, F%d", c127, d)
	c.op("FDIVS F8, F%d, F%d", c127, inv)
	c.op("FCMPS F%d, F%d", most, inv)
	c.op("BGT %s", zero)
	for i := range 8 {
		c.fmulE(i, i, inv, 0)
		c.two(0x4e21a800, "fcvtns.4s", i, i)
	}
	for i, s := range []int{first, second} {
		v := 4 * i
		c.three(0x4ea08400, "add.4s", s, v, v+1)
		c.three(0x4ea08400, "add.4s", s, s, v+2)
		c.three(0x4ea08400, "add.4s", s, s, v+3)
		c.two(0x4eb1b800, "addv.4s", s, s)
		c.two(0x0e612800, "xtn.4h", v, v)
		c.two(0x4e612800, "xtn2.8h", v, v+1)
		c.two(0x0e612800, "xtn.4h", v+2, v+2)
		c.two(0x4e612800, "xtn2.8h", v+2, v+3)
		c.two(0x0e212800, "xtn.8b", v, v)
		c.two(0x4e212800, "xtn2.16b", v, v+2)
		c.stq(v, 1, 16*i)
	}
	c.op("FMOVS F%d, R5", first)
	c.op("FMOVS F%d, R6", second)
	c.op("ADDW R5, R6")
	c.op("SCVTFWS R6, F%d", sum)
	c.op("FMULS F%d, F%d, F%d", d, sum, sum)
	c.op("FMOVS F%d, %d(R1)", d, recScale)
	c.op("FMOVS F%d, %d(R1)", sum, recSum)
	c.op("LSLW $7, R6")
	c.op("NEGW R6, R6")
	c.op("MOVW R6, %d(R1)", recCorr)
	c.op("LSLW $7, R5")
	c.op("NEGW R5, R5")
	c.op("MOVW R5, %d(R1)", recCorr16)
	c.place(next)
	c.op("ADD $128, R0")
	c.op("ADD $%d, R1", record)
	c.op("SUBS $1, R2")
	c.op("BNE %s", block)
	c.op("RET")

	c.place(broken)
	c.zeros()
	c.op("MOVD $0x7fc00000, R4")
	c.op("MOVW R4, %d(R1)", recScale)
	c.op("MOVW R4, %d(R1)", recSum)
	c.op("B %s", next)

	c.place(zero)
	c.zeros()
	c.op("B %s", next)
}

// zeros clears the record at R1.
func (c *code) zeros() {
	c.movi(0, 0)
	for i := range record / 16 {
		c.stq(0, 1, 16*i)
	}
}

// packPlanes packs chunks times 16 bytes of each of 16 rows into 4 planes each; see packPlanes of AVX2.
func (c *code) packPlanes() {
	c.function("packPlanes_neon", "dst", "src *byte", "rowBytes", "n", "srcStep", "dstStep", "chunks", "flip int")
	for i, name := range []string{"dst", "src", "rowBytes", "n", "srcStep", "dstStep", "chunks", "flip"} {
		c.load(name, i, i)
	}
	const flip = 16
	// dup v16.4s, w7
	c.word(0x4e040c00|7<<5|flip, "dup v%d.4s, w7", flip)
	block, chunk := c.label(), c.label()
	c.place(block)
	c.op("MOVD R0, R8")
	c.op("MOVD R1, R9")
	c.op("MOVD R6, R10")
	c.place(chunk)
	c.op("MOVD R9, R11")
	for part := range 4 {
		for i := range 4 {
			c.ldq(i, 11, 0)
			c.op("ADD R2, R11")
		}
		c.three(0x4e802800, "trn1.4s", 4, 0, 1)
		c.three(0x4e806800, "trn2.4s", 5, 0, 1)
		c.three(0x4e802800, "trn1.4s", 6, 2, 3)
		c.three(0x4e806800, "trn2.4s", 7, 2, 3)
		c.three(0x4ec02800, "trn1.2d", 0, 4, 6)
		c.three(0x4ec02800, "trn1.2d", 1, 5, 7)
		c.three(0x4ec06800, "trn2.2d", 2, 4, 6)
		c.three(0x4ec06800, "trn2.2d", 3, 5, 7)
		for i := range 4 {
			c.eor(i, i, flip)
			c.stq(i, 8, 64*i+16*part)
		}
	}
	c.op("ADD $256, R8")
	c.op("ADD $16, R9")
	c.op("SUBS $1, R10")
	c.op("BNE %s", chunk)
	c.op("ADD R4, R1")
	c.op("ADD R5, R0")
	c.op("SUBS $1, R3")
	c.op("BNE %s", block)
	c.op("RET")
}
