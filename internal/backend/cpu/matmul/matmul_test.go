package matmul

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/baleenrun/baleen/internal/backend/cpu/isa"
	"github.com/baleenrun/baleen/internal/quant"
)

// types are all formats with kernels, and where their blocks hold half-precision scales.
var types = []struct {
	typ   quant.Type
	halfs []int
}{
	{quant.Q4_0, []int{0}},
	{quant.Q4_1, []int{0, 2}},
	{quant.Q5_0, []int{0}},
	{quant.Q5_1, []int{0, 2}},
	{quant.Q8_0, []int{0}},
	{quant.IQ4_NL, []int{0}},
	{quant.MXFP4, nil},
	{quant.IQ4_XS, []int{0}},
	{quant.Q2_K, []int{80, 82}},
	{quant.Q3_K, []int{108}},
	{quant.Q4_K, []int{0, 2}},
	{quant.Q5_K, []int{0, 2}},
	{quant.Q6_K, []int{208}},
	{quant.F32, nil},
	{quant.F16, nil},
	{quant.BF16, nil},
}

type namedKernels struct {
	name string
	*Kernels
}

// underTest lists all kernels that this processor can run, the plain ones first.
func underTest() (list []namedKernels) {
	for _, l := range isa.Levels() {
		list = append(list, namedKernels{l.String(), For(l)})
	}
	return append(list, variants()...)
}

// aligned returns n bytes at a multiple of 64.
func aligned(n int) []byte {
	b := make([]byte, n+64)
	at := int(-uintptr(unsafe.Pointer(&b[0])) & 63)
	return b[at : at+n : at+n]
}

// source makes random rows of a format with scales of ordinary size.
func source(rng *rand.Rand, t quant.Type, halfs []int, rows, k int) []byte {
	n, err := t.RowBytes(k)
	if err != nil {
		panic(err)
	}
	b := make([]byte, n*rows)
	switch t {
	case quant.F32:
		for i := 0; i < len(b); i += 4 {
			binary.LittleEndian.PutUint32(b[i:], math.Float32bits(float32(rng.NormFloat64())))
		}
		return b
	case quant.F16:
		for i := 0; i < len(b); i += 2 {
			binary.LittleEndian.PutUint16(b[i:], quant.F32ToF16(float32(rng.NormFloat64())))
		}
		return b
	case quant.BF16:
		for i := 0; i < len(b); i += 2 {
			binary.LittleEndian.PutUint16(b[i:], quant.F32ToBF16(float32(rng.NormFloat64())))
		}
		return b
	}
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	for i := 0; i < len(b); i += t.BlockBytes() {
		for _, h := range halfs {
			binary.LittleEndian.PutUint16(b[i+h:], quant.F32ToF16(float32(rng.NormFloat64()*0.02)))
		}
		if t == quant.MXFP4 {
			b[i] = byte(120 + rng.IntN(12))
		}
	}
	return b
}

func packed(tb testing.TB, k *Kernels, t quant.Type, rows, cols int, src []byte) *Matrix {
	tb.Helper()
	n, err := PackedBytes(t, rows, cols)
	if err != nil {
		tb.Fatal(err)
	}
	m, err := New(t, rows, cols, aligned(n))
	if err != nil {
		tb.Fatal(err)
	}
	for i := range m.Data {
		m.Data[i] = 0xa5 // packing must not rely on cleared memory
	}
	k.Pack(&m, src, 0, m.Groups)
	return &m
}

// activations makes rows of numbers and their form a; some blocks are zero, some have outliers.
func activations(rng *rand.Rand, k *Kernels, a Act, rows, cols int) (x [][]float32, act []byte, stride int) {
	stride = a.Bytes(cols)
	act = aligned(stride*rows + align)
	for r := range rows {
		row := make([]float32, cols)
		scale := 1.0
		for i := range row {
			if i%32 == 0 {
				scale = [...]float64{1, 1, 1, 0, 30, 1e-3}[rng.IntN(6)]
			}
			row[i] = float32(rng.NormFloat64() * scale)
		}
		k.Quantize(a, act[r*stride:(r+1)*stride], row)
		x = append(x, row)
	}
	return x, act, stride
}

// cases are sizes: rows of the matrix, inputs, rows of activations.
func cases(t quant.Type) (list [][3]int) {
	block := max(t.BlockSize(), 1)
	for m := 1; m <= 17; m++ {
		list = append(list, [3]int{32, 1024, m})
	}
	list = append(
		list,
		[3]int{48, 256, 64},
		[3]int{80, 768, 23},
		[3]int{17, 512, 1},
		[3]int{33, 512, 9},
		[3]int{5, 256, 3},
		[3]int{70, 1536, 40},
		[3]int{16, 2048, 19},
		[3]int{49, 1280, 12},
	)
	if block <= 32 {
		list = append(
			list,
			[3]int{48, 32, 5},
			[3]int{40, 96, 13},
			[3]int{64, 544, 33},
			[3]int{47, 864, 1},
			[3]int{48, 4864, 2},
			[3]int{16, 1120, 18},
		)
	}
	if block == 1 {
		list = append(list, [3]int{33, 1, 4}, [3]int{48, 513, 14}, [3]int{31, 77, 1}, [3]int{64, 1023, 29})
	}
	return list
}

func TestKernels(t *testing.T) {
	plain := For(isa.Generic)
	for _, tt := range types {
		for _, k := range underTest() {
			t.Run(fmt.Sprintf("%v/%v", tt.typ, k.name), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(1, uint64(tt.typ)))
				list := cases(tt.typ)
				if testing.Short() {
					list = list[15:]
				}
				for _, c := range list {
					checkCase(t, rng, plain, k.Kernels, tt.typ, source(rng, tt.typ, tt.halfs, c[0], c[1]), c)
				}
			})
		}
	}
}

// checkCase packs, quantizes and multiplies with plain and with k and wants the same bits; with the plain kernels
// it compares with a product in float64.
func checkCase(t *testing.T, rng *rand.Rand, plain, k *Kernels, typ quant.Type, src []byte, c [3]int) {
	t.Helper()
	rows, cols, n := c[0], c[1], c[2]
	want, m := packed(t, plain, typ, rows, cols, src), packed(t, k, typ, rows, cols, src)
	if string(want.Data) != string(m.Data) && k != plain && rows%Lanes == 0 && (cols/32)%8 == 0 {
		t.Fatalf("%v: packed form differs at byte %d", c, firstDifference(want.Data, m.Data))
	}
	x, act, stride := activations(rng, plain, m.Act(), n, cols)
	for r, row := range x {
		got := aligned(stride)
		k.Quantize(m.Act(), got, row)
		if used := stride / recordBytes; m.Act() == ActQ8 && string(got) != string(act[r*stride:(r+1)*stride]) {
			t.Fatalf(
				"%v: row %d quantized differs at byte %d of %d records",
				c,
				r,
				firstDifference(got, act[r*stride:]),
				used,
			)
		}
	}
	yStride := rows + 3
	y, ref := filled(n*yStride), filled(n*yStride)
	plain.Mul(want, 0, m.Groups, act, stride, n, ref, yStride, DefaultAhead)
	k.Mul(m, 0, m.Groups, act, stride, n, y, yStride, DefaultAhead)
	for i := range ref {
		if !same(y[i], ref[i]) {
			t.Fatalf(
				"%v: row %d, output %d: %x (%g), plain %x (%g)",
				c,
				i/yStride,
				i%yStride,
				math.Float32bits(y[i]),
				y[i],
				math.Float32bits(ref[i]),
				ref[i],
			)
		}
		if i%yStride >= rows && y[i] != sentinel {
			t.Fatalf("%v: wrote past the rows: %d", c, i)
		}
	}
	if m.Groups > 2 { // in two parts, and rows one by one
		part := filled(n * yStride)
		k.Mul(m, 0, 1, act, stride, n, part, yStride, 0)
		for r := range n {
			k.Mul(m, 1, m.Groups, act[r*stride:], stride, 1, part[r*yStride:], yStride, 1000)
		}
		for i := range ref {
			if !same(part[i], ref[i]) {
				t.Fatalf("%v: in parts: row %d, output %d: %g, at once %g", c, i/yStride, i%yStride, part[i], ref[i])
			}
		}
	}
	if k == plain {
		checkProduct(t, m, x, act, stride, y, yStride)
	}
}

const sentinel = -12345.5

func filled(n int) []float32 {
	y := make([]float32, n)
	for i := range y {
		y[i] = sentinel
	}
	return y
}

func same(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

func firstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// checkProduct compares results with a product in float64 of the decoded weights and decoded activations.
func checkProduct(t *testing.T, m *Matrix, x [][]float32, act []byte, stride int, y []float32, yStride int) {
	t.Helper()
	w := make([]float32, m.K)
	for n := range m.Rows {
		Row(m, n, w)
		for r := range x {
			var sum, size float64
			for i, wv := range w {
				v := float64(x[r][i])
				if m.Act() == ActQ8 {
					rec := act[r*stride+i/32*recordBytes:]
					v = float64(
						math.Float32frombits(binary.LittleEndian.Uint32(rec[recScale:])),
					) * float64(
						int8(rec[i%32]),
					)
					if math.Abs(
						v-float64(x[r][i]),
					) > 0.51*float64(
						math.Float32frombits(binary.LittleEndian.Uint32(rec[recScale:])),
					) {
						t.Fatalf("activation %g quantized as %g", x[r][i], v)
					}
				}
				sum += float64(wv) * v
				size += math.Abs(float64(wv) * v)
			}
			if got := float64(y[r*yStride+n]); !(math.Abs(got-sum) <= 4e-6*size+1e-30) {
				t.Fatalf("%v: output %d of row %d is %g, in float64 %g", m.Type, n, r, got, sum)
			}
		}
	}
}

func TestRowEqualsDequantize(t *testing.T) {
	for _, tt := range types {
		t.Run(tt.typ.String(), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(2, uint64(tt.typ)))
			for _, k := range []int{256, 512, 1280, 32, 96, 7} {
				if k%tt.typ.BlockSize() != 0 {
					continue
				}
				const rows = 37
				src := source(rng, tt.typ, tt.halfs, rows, k)
				if tt.typ == quant.MXFP4 {
					for i := range rows * k / 32 {
						src[17*i] = byte(rng.Uint32()) // every exponent
					}
				}
				for _, k2 := range underTest() {
					m := packed(t, k2.Kernels, tt.typ, rows, k, src)
					want, got := make([]float32, rows*k), make([]float32, k)
					if err := quant.Dequantize(tt.typ, want, src); err != nil {
						t.Fatal(err)
					}
					for r := range rows {
						Row(m, r, got)
						for i, v := range got {
							if !same(v, want[r*k+i]) {
								t.Fatalf("%v, k=%d: row %d element %d is %g, want %g", k2.name, k, r, i, v, want[r*k+i])
							}
						}
					}
				}
			}
		})
	}
}

func TestQuantizeSpecialBlocks(t *testing.T) {
	for _, level := range isa.Levels() {
		k := For(level)
		for _, c := range []struct {
			name  string
			x     [3]float32
			scale float32
		}{
			{"zeros", [3]float32{}, 0},
			{"NaN", [3]float32{1, float32(math.NaN()), 2}, float32(math.NaN())},
			{"infinity", [3]float32{float32(math.Inf(-1)), 1, 2}, float32(math.NaN())},
			{"subnormal", [3]float32{1e-40, -1e-41, 0}, 0},
			{"tiny", [3]float32{3e-37, -1e-38, 0}, 0},
			{"small", [3]float32{4e-37, -1e-37, 0}, 4e-37 / 127},
			{"largest", [3]float32{math.MaxFloat32, -math.MaxFloat32, 1}, math.MaxFloat32 / 127},
			{"ties", [3]float32{127, 0.5, 1.5}, 1},
		} {
			x := make([]float32, 32)
			copy(x[14:], c.x[:])
			got, want := aligned(64), aligned(64)
			k.Quantize(ActQ8, got, x)
			For(isa.Generic).Quantize(ActQ8, want, x)
			if string(got) != string(want) {
				t.Errorf("%v, %s: record %x, plain %x", level, c.name, got, want)
			}
			if d := math.Float32frombits(binary.LittleEndian.Uint32(got[recScale:])); !same(d, c.scale) {
				t.Errorf("%v, %s: scale %g, want %g", level, c.name, d, c.scale)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	for name, err := range map[string]error{
		"format":    second(PackedBytes(quant.IQ1_S, 16, 256)),
		"block":     second(PackedBytes(quant.Q4_K, 16, 128)),
		"rows":      second(PackedBytes(quant.Q4_0, 0, 128)),
		"k":         second(PackedBytes(quant.F32, 16, 0)),
		"overflow":  second(PackedBytes(quant.F32, math.MaxInt/4, 1<<20)),
		"huge k":    second(PackedBytes(quant.F32, 16, math.MaxInt)),
		"too small": second(New(quant.Q4_0, 16, 64, aligned(575))),
		"alignment": second(New(quant.Q4_0, 16, 64, aligned(1024)[4:])),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestPackedSizeOverhead(t *testing.T) {
	for _, tt := range types {
		for _, k := range []int{1024, 4864, 14336} {
			if k%tt.typ.BlockSize() != 0 {
				continue
			}
			n, err := PackedBytes(tt.typ, 1600, k)
			if err != nil {
				t.Fatal(err)
			}
			row, _ := tt.typ.RowBytes(k)
			limit := 1.03
			if tt.typ == quant.Q3_K {
				limit = 1.06
			}
			if tt.typ == quant.IQ4_XS {
				limit = 1.03
			}
			if ratio := float64(n) / float64(row*1600); ratio > limit {
				t.Errorf("%v, k=%d: packed %.3f times the source", tt.typ, k, ratio)
			}
		}
	}
}
