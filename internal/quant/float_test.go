package quant

import (
	"math"
	"testing"
)

// ieee returns the value of a binary float with the given widths by the definition, in float64, which holds it exactly.
func ieee(bits uint32, exponentBits, mantissaBits int) float64 {
	bias := 1<<(exponentBits-1) - 1
	sign := 1 - 2*float64(bits>>(exponentBits+mantissaBits)&1)
	e := int(bits >> mantissaBits & (1<<exponentBits - 1))
	m := float64(bits & (1<<mantissaBits - 1))
	if e == 0 {
		return sign * math.Ldexp(m, 1-bias-mantissaBits)
	}
	return sign * math.Ldexp(1+m/float64(int(1)<<mantissaBits), e-bias)
}

func TestHalvesAreExactAndComeBack(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		f := F16ToF32(h)
		switch {
		case h&0x7fff > 0x7c00:
			if f == f || F32ToF16(f)&0x7fff <= 0x7c00 {
				t.Fatalf("half %04x is %g, want NaN both ways", h, f)
			}
			continue
		case h&0x7fff == 0x7c00:
			if !math.IsInf(float64(f), 1-2*int(h>>15)) {
				t.Fatalf("half %04x is %g, want an infinity", h, f)
			}
		case float64(f) != ieee(uint32(h), 5, 10) || math.Signbit(float64(f)) != (h>>15 == 1):
			t.Fatalf("half %04x is %g, want %g", h, f, ieee(uint32(h), 5, 10))
		}
		if back := F32ToF16(f); back != h {
			t.Fatalf("half %04x comes back as %04x", h, back)
		}
	}
}

// TestHalfRounding checks the middle between each pair of neighbours, and the floats on both sides of it.
func TestHalfRounding(t *testing.T) {
	for i := range 0x7c00 {
		low, high := uint16(i), uint16(i+1)
		next := float64(F16ToF32(high))
		if high == 0x7c00 {
			next = 65536 // where the next half would be
		}
		middle := float32((float64(F16ToF32(low)) + next) / 2)
		even := low
		if low&1 == 1 {
			even = high
		}
		below, above := math.Nextafter32(middle, 0), math.Nextafter32(middle, math.MaxFloat32)
		if a, b, c := F32ToF16(below), F32ToF16(middle), F32ToF16(above); a != low || b != even || c != high {
			t.Fatalf("around the middle after %04x: %04x %04x %04x, want %04x %04x %04x", low, a, b, c, low, even, high)
		}
		if F32ToF16(-middle) != even|0x8000 {
			t.Fatalf("the negative middle after %04x is %04x", low, F32ToF16(-middle))
		}
	}
	if h := F32ToF16(float32(math.Inf(-1))); h != 0xfc00 {
		t.Errorf("-inf is %04x", h)
	}
}

func TestBrainFloats(t *testing.T) {
	for i := range 1 << 16 {
		f := BF16ToF32(uint16(i))
		back := F32ToBF16(f)
		if f != f {
			if back&0x7fc0 != 0x7fc0 {
				t.Fatalf("bf16 %04x is NaN and comes back as %04x", i, back)
			}
			continue
		}
		if back != uint16(i) {
			t.Fatalf("bf16 %04x comes back as %04x", i, back)
		}
		if i&0x7fff == 0x7f80 {
			continue
		}
		bits := math.Float32bits(f)
		even := uint16(i) + uint16(i)&1
		if a, b, c := F32ToBF16(math.Float32frombits(bits|0x7fff)), F32ToBF16(math.Float32frombits(bits|0x8000)),
			F32ToBF16(math.Float32frombits(bits|0x8001)); a != uint16(i) || b != even || c != uint16(i)+1 {
			t.Fatalf("around the middle after %04x: %04x %04x %04x", i, a, b, c)
		}
	}
}

func TestSmallFloats(t *testing.T) {
	for i := range 256 {
		b := byte(i)
		if f := E4M3ToF32(b); b&0x7f == 0x7f {
			if f == f {
				t.Errorf("e4m3 %02x is %g, want NaN", b, f)
			}
		} else if float64(f) != ieee(uint32(b), 4, 3) || math.Signbit(float64(f)) != (b>>7 == 1) {
			t.Errorf("e4m3 %02x is %g, want %g", b, f, ieee(uint32(b), 4, 3))
		}
		if f := E5M2ToF32(b); b&0x7f < 0x7c && float64(f) != ieee(uint32(b), 5, 2) {
			t.Errorf("e5m2 %02x is %g, want %g", b, f, ieee(uint32(b), 5, 2))
		}
		if f := E8M0ToF32(b); b == 0xff {
			if f == f {
				t.Errorf("e8m0 %02x is %g, want NaN", b, f)
			}
		} else if float64(f) != math.Ldexp(1, i-127) {
			t.Errorf("e8m0 %02x is %g, want 2^%d", b, f, i-127)
		}
		if f := e8m0Half(b); float64(f) != math.Ldexp(1, i-128) {
			t.Errorf("half of e8m0 %02x is %g, want 2^%d", b, f, i-128)
		}
	}
}
