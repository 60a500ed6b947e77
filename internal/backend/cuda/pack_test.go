package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/baleenrun/baleen/internal/quant"
)

// TestPackedWeightsAreTheSource: every weight of every format comes back from the order of the tensor cores, with whole
// groups
// and units and with parts of them.
func TestPackedWeightsAreTheSource(t *testing.T) {
	for typ := range packings {
		for _, shape := range [][2]int{{16, 256}, {5, 512}, {37, 768}, {9, 32}, {16, 352}} {
			rows, k := shape[0], shape[1]
			if k%typ.BlockSize() != 0 {
				continue
			}
			t.Run(fmt.Sprintf("%v/%dx%d", typ, rows, k), func(t *testing.T) { checkPacked(t, typ, rows, k) })
		}
	}
}

func checkPacked(t *testing.T, typ quant.Type, rows, k int) {
	rowBytes, err := typ.RowBytes(k)
	if err != nil {
		t.Fatal(err)
	}
	src := randomBlocks(typ, rows*rowBytes)
	want := make([]float32, rows*k)
	if err := quant.Dequantize(typ, want, src); err != nil {
		t.Fatal(err)
	}
	size, err := packedBytes(typ, rows, k)
	if err != nil {
		t.Fatal(err)
	}
	per, bytes, _ := groupShape(typ, k)
	dst := make([]byte, size)
	for i := range dst {
		dst[i] = 0xaa // what is not written shows
	}
	for g := 0; g*per < rows; g++ {
		packGroup(typ, dst[g*bytes:(g+1)*bytes], src[g*per*rowBytes:min((g+1)*per, rows)*rowBytes], k)
	}
	for r := range rows {
		for i := range k {
			w, scale, low := unpacked(typ, dst[r/per*bytes:], r%per, i)
			got := scale * float32(w)
			if low != 0 {
				got = float32(got) + low
			}
			if x := want[r*k+i]; got != x && !(got != got && x != x) {
				t.Fatalf("row %d, weight %d: %v, want %v", r, i, got, x)
			}
		}
	}
}

// randomBlocks returns bytes whose scales are finite.
func randomBlocks(t quant.Type, n int) []byte {
	rnd := rand.New(rand.NewPCG(uint64(t), uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	size, _ := t.RowBytes(t.BlockSize())
	halfs := map[quant.Type][]int{
		quant.Q4_0: {0}, quant.Q4_1: {0, 2}, quant.Q5_0: {0}, quant.Q5_1: {0, 2}, quant.Q8_0: {0}, quant.IQ4_NL: {0},
		quant.IQ4_XS: {0},
		quant.Q2_K:   {80, 82}, quant.Q3_K: {108}, quant.Q4_K: {0, 2}, quant.Q5_K: {0, 2}, quant.Q6_K: {208},
	}[t]
	for at := 0; at < n; at += size {
		for _, h := range halfs {
			binary.LittleEndian.PutUint16(b[at+h:], quant.F32ToF16(float32(rnd.NormFloat64()*0.01)))
		}
		if t == quant.MXFP4 {
			b[at] = byte(rnd.UintN(130))
		}
	}
	return b
}

// TestPackedFloats holds the order of float weights, and that what is beyond the last row and number is zero.
func TestPackedFloats(t *testing.T) {
	for _, c := range []struct {
		t       quant.Type
		rows, k int
	}{{quant.F32, 32, 8}, {quant.F32, 33, 7}, {quant.BF16, 64, 24}, {quant.F16, 3, 13}} {
		rowBytes, _ := c.t.RowBytes(c.k)
		src := make([]byte, c.rows*rowBytes)
		for i := range src {
			src[i] = byte(1 + i*7%251)
		}
		per, bytes, err := groupShape(c.t, c.k)
		if err != nil {
			t.Fatal(err)
		}
		size, v := floatBytes(c.t), 16/floatBytes(c.t)
		for g := 0; g*per < c.rows; g++ {
			dst := make([]byte, bytes)
			for i := range dst {
				dst[i] = 0xaa
			}
			packGroup(c.t, dst, src[g*per*rowBytes:min((g+1)*per, c.rows)*rowBytes], c.k)
			for r := range per {
				for i := range (c.k + v - 1) / v * v {
					got := dst[(i/v*floatRows+r)*16+i%v*size:][:size]
					want := make([]byte, size)
					if g*per+r < c.rows && i < c.k {
						want = src[(g*per+r)*rowBytes+i*size:][:size]
					}
					if string(got) != string(want) {
						t.Fatalf("%v %dx%d: row %d, number %d is %x, want %x", c.t, c.rows, c.k, g*per+r, i, got, want)
					}
				}
			}
		}
	}
}

func TestPackedSizeIsNearTheSource(t *testing.T) {
	for typ := range packings {
		rowBytes, _ := typ.RowBytes(4096)
		size, _ := packedBytes(typ, 4096, 4096)
		if over := float64(size)/float64(4096*rowBytes) - 1; over > 0.08 || math.IsNaN(over) {
			t.Errorf("%v takes %.1f %% more than its source", typ, 100*over)
		}
	}
}
