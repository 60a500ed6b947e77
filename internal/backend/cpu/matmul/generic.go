package matmul

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/baleenrun/baleen/internal/backend/cpu/fma32"
	"github.com/baleenrun/baleen/internal/quant"
)

// The kernels in plain Go: the definition of the bits that all others give.

// expanded is one segment of a group with its values as signed bytes and its scales as float32.
type expanded struct {
	q     [segmentBlocks][8][Lanes][4]int8
	scale [segmentBlocks][2][Lanes]float32
	min   [segmentBlocks][2][Lanes]float32
}

// expand fills e from n blocks, of which the first is block b0 of the group.
func (f *format) expand(e *expanded, group []byte, b0, n int) {
	for i := range n {
		unit, b := group[f.unit(b0+i):], (b0+i)%f.blocks
		for q := range 8 {
			f.expandQuad((*[64]int8)(flat(&e.q[i][q])), unit, b, q)
		}
		for sub := range f.shape.scales() {
			for lane := range Lanes {
				e.scale[i][sub][lane], e.min[i][sub][lane] = f.scale(unit, b, sub, lane)
			}
		}
	}
}

// flat views a quad of all lanes as its 64 bytes.
func flat(q *[Lanes][4]int8) *[64]int8 { return (*[64]int8)(unsafe.Pointer(q)) }

func (f *format) expandQuad(dst *[64]int8, unit []byte, b, q int) {
	at, shift := f.low(b, q)
	low := unit[at : at+64]
	var high []byte
	var highShift int
	if f.high != nil {
		at, highShift = f.high(b, q)
		high = unit[at : at+64]
	}
	for i, v := range low {
		v = v >> (shift & 7) & f.lowMask
		if high != nil {
			v |= high[i] >> (highShift & 7) & f.highMask << f.highPos
		}
		dst[i] = f.value(v)
	}
}

// mulQuantGo multiplies quantized weights.
func mulQuantGo(m *Matrix, c call) {
	e := new(expanded)
	blocks := m.K / 32
	for g := c.g0; g < c.g1; g++ {
		group, lanes := m.group(g), m.lanes(g)
		for b0 := 0; b0 < blocks; b0 += segmentBlocks {
			n := min(segmentBlocks, blocks-b0)
			m.form.expand(e, group, b0, n)
			for r := range c.rows {
				acc := m.form.shape.segment(e, c.act[r*c.actStride+b0*recordBytes:], n)
				addSegment(c.y[r*c.yStride+g*Lanes:][:lanes], acc[:], b0 == 0)
			}
		}
	}
}

// addSegment adds a segment's sums to the running totals, which start at 0.
func addSegment(y, acc []float32, first bool) {
	for i := range y {
		if first {
			y[i] = 0
		}
		y[i] += acc[i]
	}
}

// segment is the chain of one segment: for each block in order, and in it for each scale, one fused multiply-add of the
// exact integer dot product, and another one for the minimum.
func (s shape) segment(e *expanded, act []byte, n int) (acc [Lanes]float32) {
	for b := range n {
		rec := (*[recordBytes]byte)(act[b*recordBytes:])
		d := math.Float32frombits(binary.LittleEndian.Uint32(rec[recScale:]))
		subs := s.scales()
		for sub := range subs {
			var dot [Lanes]int32
			for q := sub * 4; q < (3-subs)*4+sub*4; q++ {
				dotQuad(&dot, &e.q[b][q], rec, 4*q)
			}
			sum := recordSum(rec, d, subs, sub)
			scale, low := &e.scale[b][sub], &e.min[b][sub]
			for lane, v := range dot {
				acc[lane] = fma32.FMA(float32(v), float32(scale[lane]*d), acc[lane])
				if s.hasMin() {
					acc[lane] = fma32.FMA(low[lane], sum, acc[lane])
				}
			}
		}
	}
	return acc
}

// recordSum returns scale times sum of all 32, or of the first or last 16, activations of a record.
func recordSum(rec *[recordBytes]byte, d float32, subs, sub int) float32 {
	if subs == 1 {
		return math.Float32frombits(binary.LittleEndian.Uint32(rec[recSum:]))
	}
	corr := int32(binary.LittleEndian.Uint32(rec[recCorr16:]))
	if sub == 1 {
		corr = int32(binary.LittleEndian.Uint32(rec[recCorr:])) - corr
	}
	return d * float32(-(corr >> 7))
}

func dotQuad(dot *[Lanes]int32, w *[Lanes][4]int8, rec *[recordBytes]byte, at int) {
	a := rec[at : at+4]
	a0, a1, a2, a3 := int32(int8(a[0])), int32(int8(a[1])), int32(int8(a[2])), int32(int8(a[3]))
	for lane := range dot {
		v := &w[lane]
		dot[lane] += int32(v[0])*a0 + int32(v[1])*a1 + int32(v[2])*a2 + int32(v[3])*a3
	}
}

// mulFloatGo multiplies float weights: one fused multiply-add for each k in order, in segments of 512.
func mulFloatGo(m *Matrix, c call) {
	const segment = 32 * segmentBlocks
	w := new([segment][Lanes]float32)
	for g := c.g0; g < c.g1; g++ {
		group, lanes := m.group(g), m.lanes(g)
		for k0 := 0; k0 < m.K; k0 += segment {
			n := min(segment, m.K-k0)
			widen(m.Type, w[:n], group, k0)
			for r := range c.rows {
				x := c.act[r*c.actStride+4*k0:]
				var acc [Lanes]float32
				for k := range n {
					v := math.Float32frombits(binary.LittleEndian.Uint32(x[4*k:]))
					for lane, wv := range &w[k] {
						acc[lane] = fma32.FMA(wv, v, acc[lane])
					}
				}
				addSegment(c.y[r*c.yStride+g*Lanes:][:lanes], acc[:], k0 == 0)
			}
		}
	}
}

// widen turns packed float weights from k0 on into float32.
func widen(t quant.Type, w [][Lanes]float32, group []byte, k0 int) {
	for k := range w {
		for lane := range Lanes {
			w[k][lane] = floatAt(t, group, k0+k, lane)
		}
	}
}

func floatAt(t quant.Type, group []byte, k, lane int) float32 {
	i := k*Lanes + lane
	switch t {
	case quant.F32:
		return math.Float32frombits(binary.LittleEndian.Uint32(group[4*i:]))
	case quant.F16:
		return half(group[2*i:])
	default:
		return quant.BF16ToF32(binary.LittleEndian.Uint16(group[2*i:]))
	}
}

// Row decodes row r of a packed matrix into dst, K numbers long: what quant.Dequantize makes of the source, bit for
// bit.
func Row(m *Matrix, r int, dst []float32) {
	if r < 0 || r >= m.Rows || len(dst) != m.K {
		panic(fmt.Sprintf("matmul: Row %d of %d into %d numbers, rows have %d", r, m.Rows, len(dst), m.K))
	}
	group, lane := m.group(r/Lanes), r%Lanes
	if m.form == nil {
		for k := range dst {
			dst[k] = floatAt(m.Type, group, k, lane)
		}
		return
	}
	f := m.form
	per := 8 / f.shape.scales() // quads under one scale
	for b := range m.K / 32 {
		unit, in := group[f.unit(b):], b%f.blocks
		var d, low float32
		for q := range 8 {
			if q%per == 0 {
				d, low = f.scale(unit, in, q/per, lane)
			}
			for i := range 4 {
				y := d * float32(f.value(f.raw(unit, in, q, lane, i)))
				if f.shape.hasMin() {
					y = float32(y) + low
				}
				dst[32*b+4*q+i] = y
			}
		}
	}
}
