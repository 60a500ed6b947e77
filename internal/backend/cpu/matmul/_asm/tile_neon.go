package main

import "fmt"

// neonTiles are rows of activations x vectors of 4 output rows done at a time.
var neonTiles = [][2]int{{1, 4}, {2, 4}, {4, 2}}

func (c *code) tiles() {
	for _, s := range shapes {
		for _, t := range neonTiles {
			n := neonTile{code: c, scales: s.scales, min: s.min, rows: t[0], vecs: t[1]}
			n.emit(fmt.Sprintf("tile%s_%d_neon", s.name, t[0]))
		}
	}
}

// neonTile multiplies an expanded segment of one group, signed bytes, with rows of activations; see tileAVX512.
type neonTile struct {
	*code
	scales, rows, vecs int
	min                bool
}

// General registers: 0 and 1 walk q and s, 2 counts blocks, 3 and 5 are the tile's first rows of activations and
// outputs, 4 and 6 their strides, 7 counts tiles, 8 is free, 9 to 12 walk the rows of activations. Vectors: F and I
// from 0 and 8 on, W from 16, A from 20; 24 to 27 are free, 28 is the mask of old outputs.
func (t *neonTile) F(v, m int) int { return v*t.rows + m }
func (t *neonTile) I(v, m int) int { return 8 + v*t.rows + m }

func (t *neonTile) emit(name string) {
	t.function(name, "q", "s *byte", "blocks int", "a *byte", "astride int", "y *float32", "ystride", "tiles", "first int")
	t.load("a", 3, 3)
	t.load("astride", 4, 4)
	t.load("y", 5, 5)
	t.load("ystride", 6, 6)
	t.load("tiles", 7, 7)
	t.load("first", 8, 8)
	t.op("SUB $1, R8")
	t.dupGeneral(28, 8)
	tile := t.label()
	t.place(tile)
	for part := 0; part < 4; part += t.vecs {
		t.part(part)
	}
	t.op("MOVD $%d, R8", t.rows)
	t.op("MADD R4, R3, R8, R3")
	t.op("MADD R6, R5, R8, R5")
	t.op("SUBS $1, R7")
	t.op("BNE %s", tile)
	t.op("RET")
}

// part does the output rows of vectors first to first+vecs-1.
func (t *neonTile) part(first int) {
	t.load("q", 0, 0)
	t.load("s", 1, 1)
	t.load("blocks", 2, 2)
	for m := range t.rows {
		if m == 0 {
			t.op("MOVD R3, R9")
		} else {
			t.op("ADD R4, R%d, R%d", 8+m, 9+m)
		}
		for v := range t.vecs {
			t.movi(t.F(v, m), 0)
		}
	}
	block := t.label()
	t.place(block)
	for sub := range t.scales {
		for v := range t.vecs {
			for m := range t.rows {
				t.movi(t.I(v, m), 0)
			}
		}
		for quad := sub * 4; quad < sub*4+8/t.scales; quad++ {
			if quad%4 == 0 {
				for m := range t.rows {
					t.ldq(20+m, 9+m, 4*quad)
				}
			}
			for v := range t.vecs {
				t.ldq(16+v, 0, quad*64+(first+v)*16)
			}
			for v := range t.vecs {
				for m := range t.rows {
					t.sdot(t.I(v, m), 16+v, 20+m, quad%4)
				}
			}
		}
		t.scale(first, sub)
	}
	perScale := 64
	if t.min {
		perScale = 128
	}
	t.op("ADD $512, R0")
	t.op("ADD $%d, R1", t.scales*perScale)
	for m := range t.rows {
		t.op("ADD $%d, R%d", record, 9+m)
	}
	t.op("SUBS $1, R2")
	t.op("BNE %s", block)
	t.op("MOVD R5, R8")
	for m := range t.rows {
		for v := range t.vecs {
			t.ldq(24, 8, (first+v)*16)
			t.and(24, 24, 28)
			t.fadd(24, 24, t.F(v, m))
			t.stq(24, 8, (first+v)*16)
		}
		if m < t.rows-1 {
			t.op("ADD R6, R8")
		}
	}
}

// scale ends a block, or half of one: the sums are scaled and added.
func (t *neonTile) scale(first, sub int) {
	const rec, prod, scale = 24, 25, 26
	for m := range t.rows {
		t.ldq(rec, 9+m, recScale) // scale, scale times sum, and the corrections
		for v := range t.vecs {
			t.ldq(scale, 1, 64*sub+16*(first+v))
			t.scvtf(t.I(v, m), t.I(v, m))
			t.fmulE(prod, scale, rec, 0)
			t.fmla(t.F(v, m), t.I(v, m), prod)
		}
		if !t.min {
			continue
		}
		if t.scales == 2 {
			t.halfSum(sub, rec, prod, scale)
		}
		for v := range t.vecs {
			t.ldq(scale, 1, 64*(t.scales+sub)+16*(first+v))
			if t.scales == 2 {
				t.fmla(t.F(v, m), scale, prod)
			} else {
				t.fmlaE(t.F(v, m), scale, rec, 1)
			}
		}
	}
}

// halfSum sets sum to scale times the sum of the first or last 16 activations of a record.
func (t *neonTile) halfSum(sub, rec, sum, tmp int) {
	t.dupElement(sum, rec, 3)
	if sub == 1 {
		t.dupElement(tmp, rec, 2)
		t.subS(sum, tmp, sum)
	}
	t.shift(0x4f000400, "sshr.4s", 64-7, sum, sum)
	t.negS(sum, sum)
	t.scvtf(sum, sum)
	t.fmulE(sum, sum, rec, 0)
}
