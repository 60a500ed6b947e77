package quant

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// every calls f for each known format.
func every(f func(Type)) {
	for i := range Type(len(formats)) {
		if i.Known() {
			f(i)
		}
	}
}

func TestTypeNames(t *testing.T) {
	known := 0
	every(func(typ Type) {
		known++
		for _, name := range []string{typ.String(), strings.ToLower(typ.String())} {
			if got, err := ParseType(name); err != nil || got != typ {
				t.Errorf("ParseType(%q) = %v, %v", name, got, err)
			}
		}
		if n, err := typ.RowBytes(3 * typ.BlockSize()); err != nil || n != 3*typ.BlockBytes() {
			t.Errorf("%v: three blocks take %d bytes, %v", typ, n, err)
		}
	})
	if known != 35 {
		t.Errorf("%d formats are known, want 35", known)
	}
	for _, id := range []Type{4, 5, 31, 33, 36, 38, 43, 97, 1 << 31, math.MaxUint32} {
		if id.Known() || id.BlockSize() != 0 || id.BlockBytes() != 0 {
			t.Errorf("format %d is known", uint32(id))
		}
	}
	if _, err := ParseType("Q9_Z"); err == nil {
		t.Error("ParseType accepts Q9_Z")
	}
	if _, err := ParseType(""); err == nil {
		t.Error("ParseType accepts the empty name of removed formats")
	}
}

func TestRowBytesRefuses(t *testing.T) {
	for _, c := range []struct {
		typ Type
		k   int
	}{{Q4_K, 255}, {Q4_0, -32}, {F64, math.MaxInt}, {Type(5), 32}, {Q8_0, 1}} {
		if n, err := c.typ.RowBytes(c.k); err == nil {
			t.Errorf("%v: %d elements take %d bytes, want an error", c.typ, c.k, n)
		}
	}
}

func TestSizesMustAgree(t *testing.T) {
	for _, c := range []struct {
		typ             Type
		elements, bytes int
	}{{Q4_0, 32, 17}, {Q4_0, 32, 19}, {Q4_0, 31, 18}, {Q4_0, 64, 18}, {Q4_K, 32, 18}, {F32, 1, 3}, {Q6_K, 0, 210}, {Q6_K, 256, 0}} {
		if err := Dequantize(c.typ, make([]float32, c.elements), make([]byte, c.bytes)); err == nil {
			t.Errorf("%v: %d elements from %d bytes: no error", c.typ, c.elements, c.bytes)
		}
		if err := Quantize(c.typ, make([]byte, c.bytes), make([]float32, c.elements)); err == nil {
			t.Errorf("%v: %d bytes from %d elements: no error", c.typ, c.bytes, c.elements)
		}
	}
}

func TestUnsupportedIsTyped(t *testing.T) {
	for _, typ := range []Type{5, 31, 200} {
		var u *UnsupportedError
		if err := Dequantize(typ, nil, nil); !errors.As(err, &u) || u.Type != typ || typ.CanDequantize() {
			t.Errorf("%v: %v, want an UnsupportedError", typ, err)
		}
	}
	var u *UnsupportedError
	if err := Quantize(IQ4_XS, nil, nil); !errors.As(err, &u) || IQ4_XS.CanQuantize() {
		t.Errorf("quantizing to IQ4_XS: %v, want an UnsupportedError", err)
	}
}

// TestPlainFormats covers the formats without a reference in the fixture, by their definitions.
func TestPlainFormats(t *testing.T) {
	u32 := func(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
	u64 := func(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }
	fill := func(head []byte, n int, b byte) []byte {
		for range n {
			head = append(head, b)
		}
		return head
	}
	for _, c := range []struct {
		typ  Type
		src  []byte
		want map[int]float32
	}{
		{F32, u32(math.Float32bits(-1.5)), map[int]float32{0: -1.5}},
		{F64, u64(math.Float64bits(0.1)), map[int]float32{0: 0.1}},
		{I8, []byte{0x80}, map[int]float32{0: -128}},
		{I16, []byte{0xff, 0x7f}, map[int]float32{0: 32767}},
		{I32, u32(0x80000000), map[int]float32{0: -1 << 31}},
		{I64, u64(1<<63 | 1), map[int]float32{0: -1 << 63}},
		{Q8_1, fill([]byte{0x00, 0x38, 0xff, 0x7b}, 32, 0xfe), map[int]float32{0: -1, 31: -1}},
		{Q8_K, append(fill(u32(math.Float32bits(0.25)), 256, 0x80), make([]byte, 32)...), map[int]float32{0: -32, 255: -32}},
		{Q1_0, append([]byte{0x00, 0x40, 0x01}, fill(nil, 15, 0x80)...), map[int]float32{0: 2, 1: -2, 8: -2, 15: 2, 127: 2}},
		{Q2_0, append([]byte{0x00, 0x3c, 0xe4}, make([]byte, 15)...), map[int]float32{0: -1, 1: 0, 2: 1, 3: 2, 4: -1, 63: -1}},
	} {
		got := make([]float32, c.typ.BlockSize())
		if err := Dequantize(c.typ, got, c.src); err != nil {
			t.Errorf("%v: %v", c.typ, err)
			continue
		}
		for i, want := range c.want {
			if got[i] != want {
				t.Errorf("%v: element %d is %g, want %g", c.typ, i, got[i], want)
			}
		}
	}
}

// heavy returns numbers like weights: bell-shaped with some outliers.
func heavy(n int, seed uint64) []float32 {
	rng := rand.New(rand.NewPCG(seed, 7))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64() * 0.02)
		if rng.IntN(200) == 0 {
			x[i] *= 6
		}
	}
	return x
}

// rms returns the root of the mean squared error of x through typ, relative to that of x itself.
func rms(t *testing.T, typ Type, x []float32) float64 {
	t.Helper()
	size, err := typ.RowBytes(len(x))
	if err != nil {
		t.Fatal(err)
	}
	b, y := make([]byte, size), make([]float32, len(x))
	if err := Quantize(typ, b, x); err != nil {
		t.Fatalf("%v: %v", typ, err)
	}
	if err := Dequantize(typ, y, b); err != nil {
		t.Fatalf("%v: %v", typ, err)
	}
	var e, s float64
	for i := range x {
		d := float64(x[i]) - float64(y[i])
		e += d * d
		s += float64(x[i]) * float64(x[i])
	}
	return math.Sqrt(e / s)
}

// TestQuantizeIsAccurate holds each encoder to the error that its bits allow. The bounds are a little above what is
// measured, which for the K formats is within a hundredth of llama.cpp's own encoders on the same numbers.
func TestQuantizeIsAccurate(t *testing.T) {
	x := heavy(1<<16, 1)
	for typ, bound := range map[Type]float64{
		F32: 0, F16: 2.2e-4, BF16: 1.7e-3, Q8_0: 0.0066, Q6_K: 0.0207, Q5_K: 0.0402, Q5_1: 0.0414, Q5_0: 0.0524, Q4_K: 0.0793,
		Q4_1: 0.0855, Q4_0: 0.105, MXFP4: 0.125,
	} {
		got := rms(t, typ, x)
		t.Logf("%v: relative error %.5f", typ, got)
		if got > bound {
			t.Errorf("%v: relative error %.5f, want at most %.5f", typ, got, bound)
		}
	}
	every(func(typ Type) {
		if typ.CanQuantize() {
			zeros := make([]float32, 256)
			b, y := make([]byte, 256/typ.BlockSize()*typ.BlockBytes()), make([]float32, 256)
			if err := errors.Join(Quantize(typ, b, zeros), Dequantize(typ, y, b)); err != nil {
				t.Errorf("%v: %v", typ, err)
			}
			for i, v := range y {
				if v != 0 {
					t.Errorf("%v: zero %d comes back as %g", typ, i, v)
					break
				}
			}
		}
	})
}

// TestQuantizeKeepsScale checks that the encoders work the same at any size of number that the scales can hold.
func TestQuantizeKeepsScale(t *testing.T) {
	for _, typ := range []Type{Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, MXFP4} {
		x := heavy(1024, 2)
		want := rms(t, typ, x)
		for i := range x {
			x[i] *= 1 << 10
		}
		if got := rms(t, typ, x); got > want*1.05 {
			t.Errorf("%v: error %.5f for large numbers, %.5f for small ones", typ, got, want)
		}
		same := make([]float32, 256)
		for i := range same {
			same[i] = -0.75
		}
		if got := rms(t, typ, same); got > 0.02 && typ != MXFP4 {
			t.Errorf("%v: error %.5f for a constant block", typ, got)
		}
	}
}

func TestQuantizeRefuses(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, typ := range []Type{Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, MXFP4} {
		for _, bad := range []float32{nan, inf, -inf, 3e38} {
			if typ == MXFP4 && bad == 3e38 {
				continue // its scale reaches that far
			}
			x := heavy(512, 3)
			x[300] = bad
			b := make([]byte, 512/typ.BlockSize()*typ.BlockBytes())
			var r *RangeError
			if err := Quantize(typ, b, x); !errors.As(err, &r) {
				t.Errorf("%v with %g: %v, want a RangeError", typ, bad, err)
			} else if at := r.Index; at != 300 && at != 300/typ.BlockSize()*typ.BlockSize() {
				t.Errorf("%v with %g: error at %d", typ, bad, at)
			}
		}
	}
}

func TestFP8Tiles(t *testing.T) {
	one := byte(0x38)
	for _, c := range []struct {
		name                           string
		rows, cols, tileRows, tileCols int
		scales                         []float32
		want                           []float32
		fails                          bool
	}{
		{
			name: "blocks cut at both edges", rows: 3, cols: 3, tileRows: 2, tileCols: 2, scales: []float32{1, 2, 3, 4},
			want: []float32{1, 1, 2, 1, 1, 2, 3, 3, 4},
		},
		{name: "per channel", rows: 2, cols: 2, tileRows: 1, tileCols: 2, scales: []float32{5, 6}, want: []float32{5, 5, 6, 6}},
		{name: "per tensor", rows: 2, cols: 2, tileRows: 2, tileCols: 2, scales: []float32{7}, want: []float32{7, 7, 7, 7}},
		{name: "larger tile than matrix", rows: 1, cols: 2, tileRows: 128, tileCols: 128, scales: []float32{7}, want: []float32{7, 7}},
		{name: "empty", rows: 0, cols: 2, tileRows: 128, tileCols: 128, want: nil},
		{name: "too few scales", rows: 3, cols: 3, tileRows: 2, tileCols: 2, scales: []float32{1, 2}, fails: true},
		{name: "tile of nothing", rows: 1, cols: 1, tileRows: 0, tileCols: 1, scales: []float32{1}, fails: true},
		{name: "huge", rows: math.MaxInt, cols: math.MaxInt, tileRows: 1, tileCols: 1, fails: true},
	} {
		n := min(len(c.want), 9)
		src := make([]byte, n)
		for i := range src {
			src[i] = one
		}
		got := make([]float32, n)
		err := DequantizeFP8(got, src, c.rows, c.cols, c.scales, c.tileRows, c.tileCols)
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", c.name, err)
		}
		for i := range c.want {
			if got[i] != c.want[i] {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
				break
			}
		}
	}
}

func TestMLXRefuses(t *testing.T) {
	for _, c := range []struct {
		name                   string
		n, src, scales, biases int
		typ                    Type
		bits, group            int
	}{
		{"bits", 64, 56, 2, 2, BF16, 7, 64},
		{"group", 64, 32, 8, 8, BF16, 4, 16},
		{"type", 64, 32, 2, 2, Q4_0, 4, 64},
		{"part of a group", 65, 32, 2, 2, BF16, 4, 64},
		{"bytes", 64, 31, 2, 2, BF16, 4, 64},
		{"scales", 64, 32, 4, 4, BF16, 4, 64},
		{"biases", 64, 32, 2, 4, BF16, 4, 64},
	} {
		err := DequantizeMLX(
			make([]float32, c.n),
			make([]byte, c.src),
			make([]byte, c.scales),
			make([]byte, c.biases),
			c.typ,
			c.bits,
			c.group,
		)
		if err == nil {
			t.Errorf("wrong %s: no error", c.name)
		}
	}
}

// TestRepackMXFP4 compares with the definition: the element at each place is the same before and after.
func TestRepackMXFP4(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	const n = 5
	blocks, scales, packed := make([]byte, 16*n), make([]byte, n), make([]byte, 17*n)
	for i := range blocks {
		blocks[i] = byte(rng.Uint32())
	}
	for i := range scales {
		scales[i] = byte(rng.IntN(255))
	}
	if err := RepackMXFP4(packed, blocks, scales); err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 32*n)
	if err := Dequantize(MXFP4, got, packed); err != nil {
		t.Fatal(err)
	}
	values := [16]float32{0, .5, 1, 1.5, 2, 3, 4, 6, 0, -.5, -1, -1.5, -2, -3, -4, -6}
	for i, g := range got {
		code := blocks[i/2] >> (i % 2 * 4) & 15
		if want := values[code] * E8M0ToF32(scales[i/32]); g != want {
			t.Fatalf("element %d is %g, want %g", i, g, want)
		}
	}
	blocks2, scales2 := make([]byte, 16*n), make([]byte, n)
	if err := UnpackMXFP4(blocks2, scales2, packed); err != nil {
		t.Fatal(err)
	}
	if string(blocks2) != string(blocks) || string(scales2) != string(scales) {
		t.Error("unpacking does not give back what was packed")
	}
	if RepackMXFP4(packed[1:], blocks, scales) == nil || UnpackMXFP4(blocks[1:], scales, packed) == nil {
		t.Error("wrong sizes give no error")
	}
}

func TestDequantizeAllocatesNothing(t *testing.T) {
	every(func(typ Type) {
		if !typ.CanDequantize() {
			return
		}
		src, dst := make([]byte, typ.BlockBytes()), make([]float32, typ.BlockSize())
		if n := testing.AllocsPerRun(10, func() { _ = Dequantize(typ, dst, src) }); n != 0 {
			t.Errorf("%v: %g allocations", typ, n)
		}
	})
}

// FuzzDequantize feeds any bytes to any format: no panic, every element written, and for formats with an encoder the
// numbers can be encoded again if they are finite and not too large.
func FuzzDequantize(f *testing.F) {
	every(func(typ Type) {
		f.Add(uint32(typ), make([]byte, typ.BlockBytes()))
	})
	f.Add(uint32(Q6_K), []byte{1})
	f.Fuzz(func(t *testing.T, id uint32, src []byte) {
		typ := Type(id)
		if !typ.CanDequantize() {
			if Dequantize(typ, nil, src) == nil {
				t.Fatal("a format that cannot be read gives no error")
			}
			return
		}
		dst := make([]float32, len(src)/typ.BlockBytes()*typ.BlockSize())
		err := Dequantize(typ, dst, src)
		if whole := len(src)%typ.BlockBytes() == 0; (err == nil) != whole {
			t.Fatalf("%v: %d bytes: %v", typ, len(src), err)
		}
		if err != nil || !typ.CanQuantize() {
			return
		}
		again := make([]byte, len(src))
		err = Quantize(typ, again, dst)
		for _, v := range dst {
			if abs(v) > 10_000 || v != v {
				return // may or may not fit
			}
		}
		if err != nil {
			t.Fatalf("%v: %v", typ, err)
		}
		if err := Dequantize(typ, make([]float32, len(dst)), again); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzMLX checks the packed stream against a bit-by-bit reading.
func FuzzMLX(f *testing.F) {
	for i := range 6 {
		f.Add(byte(i), byte(i), []byte(strings.Repeat("0123456789abcdef", 9)))
	}
	f.Fuzz(func(t *testing.T, b, g byte, src []byte) {
		bits, group := []int{2, 3, 4, 5, 6, 8}[b%6], []int{32, 64, 128}[g%3]
		groups := len(src) / (group * bits / 8)
		src = src[:groups*group*bits/8]
		one, zero := make([]byte, 4*groups), make([]byte, 4*groups)
		for i := range groups {
			binary.LittleEndian.PutUint32(one[4*i:], math.Float32bits(1))
		}
		dst := make([]float32, groups*group)
		if err := DequantizeMLX(dst, src, one, zero, F32, bits, group); err != nil {
			t.Fatal(err)
		}
		for i, got := range dst {
			want := 0
			for k := range bits {
				at := i*bits + k
				want |= int(src[at/8]>>(at%8)&1) << k
			}
			if int(got) != want {
				t.Fatalf("element %d is %g, want %d", i, got, want)
			}
		}
	})
}

func BenchmarkDequantize(b *testing.B) {
	every(func(typ Type) {
		if !typ.CanDequantize() {
			return
		}
		b.Run(typ.String(), func(b *testing.B) {
			const n = 4096
			size, _ := typ.RowBytes(n)
			src, dst := make([]byte, size), make([]float32, n)
			b.SetBytes(4 * n)
			for b.Loop() {
				if err := Dequantize(typ, dst, src); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}

func BenchmarkQuantize(b *testing.B) {
	x := heavy(4096, 9)
	every(func(typ Type) {
		if !typ.CanQuantize() {
			return
		}
		b.Run(typ.String(), func(b *testing.B) {
			size, _ := typ.RowBytes(len(x))
			dst := make([]byte, size)
			b.SetBytes(int64(4 * len(x)))
			for b.Loop() {
				if err := Quantize(typ, dst, x); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}
