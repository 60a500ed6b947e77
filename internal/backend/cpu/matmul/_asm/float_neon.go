package main

import "fmt"

// floats emits the products with float weights of NEON; see floatAVX512.
func (c *code) floats() {
	for _, t := range floatTypes {
		for _, rows := range []int{1, 2, 4} {
			c.float(fmt.Sprintf("mul%s_%d_neon", t.name, rows), t.name, t.size, rows)
		}
	}
}

// General registers: 0 walks the weights, 1 counts, 3 and 5 are the tile's first rows of activations and outputs, 4 and
// 6 their strides, 7 counts tiles, 8 is free, 9 to 12 walk the rows of activations, 13 is free. Vectors: sums from 0
// on, weights from 16, activations from 24; 28 is the mask of old outputs, 29 is free.
func (c *code) float(name, typ string, size, rows int) {
	c.function(name, "w *byte", "wstride int", "n int", "a *byte", "astride int", "y *float32", "ystride", "tiles", "first int")
	c.load("a", 3, 3)
	c.load("astride", 4, 4)
	c.load("y", 5, 5)
	c.load("ystride", 6, 6)
	c.load("tiles", 7, 7)
	c.load("first", 8, 8)
	c.op("SUB $1, R8")
	c.dupGeneral(28, 8)
	sum := func(v, m int) int { return v*rows + m }
	step := func(i int) {
		for v := 0; v < 4; v += 2 {
			switch typ {
			case "F32":
				c.ldq(16+v, 0, i*size+16*v)
				c.ldq(17+v, 0, i*size+16*v+16)
			case "F16":
				c.ldq(16+v, 0, i*size+8*v)
				c.halves(16+v, 17+v, 16+v)
			default:
				c.ldq(16+v, 0, i*size+8*v)
				c.brains(16+v, 17+v, 16+v)
			}
		}
		if i*size%64 == 0 {
			c.prefetch(0, i*size+fetchAhead)
		}
		for v := range 4 {
			for m := range rows {
				c.fmlaE(sum(v, m), 16+v, 24+m, i)
			}
		}
	}
	tile, four, rest, one, end := c.label(), c.label(), c.label(), c.label(), c.label()
	c.place(tile)
	c.load("w", 0, 0)
	c.load("n", 2, 1)
	for m := range rows {
		if m == 0 {
			c.op("MOVD R3, R9")
		} else {
			c.op("ADD R4, R%d, R%d", 8+m, 9+m)
		}
		for v := range 4 {
			c.movi(sum(v, m), 0)
		}
	}
	c.op("SUBS $4, R1")
	c.op("BLT %s", rest)
	c.place(four)
	for m := range rows {
		c.ldq(24+m, 9+m, 0)
		c.op("ADD $16, R%d", 9+m)
	}
	for i := range 4 {
		step(i)
	}
	c.op("ADD $%d, R0", 4*size)
	c.op("SUBS $4, R1")
	c.op("BGE %s", four)
	c.place(rest)
	c.op("ADDS $4, R1")
	c.op("BEQ %s", end)
	c.place(one)
	for m := range rows {
		c.lds(24+m, 9+m)
		c.op("ADD $4, R%d", 9+m)
	}
	step(0)
	c.op("ADD $%d, R0", size)
	c.op("SUBS $1, R1")
	c.op("BNE %s", one)
	c.place(end)
	c.op("MOVD R5, R8")
	for m := range rows {
		for v := range 4 {
			c.ldq(29, 8, 16*v)
			c.and(29, 29, 28)
			c.fadd(29, 29, sum(v, m))
			c.stq(29, 8, 16*v)
		}
		c.op("ADD R6, R8")
	}
	c.op("MOVD R8, R5")
	c.op("MOVD $%d, R13", rows)
	c.op("MADD R4, R3, R13, R3")
	c.op("SUBS $1, R7")
	c.op("BNE %s", tile)
	c.op("RET")
}
