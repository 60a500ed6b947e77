package quant

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The encoders of formats with one scale per block: the block's extreme fixes the scale, every element is rounded to
// the nearest step. Arithmetic is float32 throughout, so the bytes do not depend on the machine.

// RangeError says that a number cannot be stored in a block format.
type RangeError struct {
	Index int // of the number, in the slice given to Quantize; of the block's first number where the block is too large
	Value float32
	Why   string
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("quant: element %d is %g: %s", e.Index, e.Value, e.Why)
}

// finite returns an error for the first element of src that is a NaN or an infinity.
func finite(src []float32) error {
	for i, x := range src {
		if math.Float32bits(x)&0x7f800000 == 0x7f800000 {
			return &RangeError{Index: i, Value: x, Why: "a block format holds finite numbers only"}
		}
	}
	return nil
}

// putHalf stores x as a half at the start of b. It refuses what is too large for a half; base is the block's first
// element.
func putHalf(b []byte, x float32, base int) error {
	h := F32ToF16(x)
	if h&0x7c00 == 0x7c00 {
		return &RangeError{Index: base, Value: x, Why: "the block's scale is too large for 16 bits"}
	}
	binary.LittleEndian.PutUint16(b, h)
	return nil
}

// extreme returns the element with the largest magnitude, with its sign; the first of equals.
func extreme(x []float32) float32 {
	var best, bestAbs float32
	for _, v := range x {
		if a := abs(v); a > bestAbs {
			best, bestAbs = v, a
		}
	}
	return best
}

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

func span(x []float32) (low, high float32) {
	low, high = x[0], x[0]
	for _, v := range x[1:] {
		low, high = min(low, v), max(high, v)
	}
	return low, high
}

// inverse returns 1/d, and 0 for a d of 0 or so small that its inverse overflows.
func inverse(d float32) float32 {
	if d == 0 {
		return 0
	}
	inv := 1 / d
	if math.IsInf(float64(inv), 0) {
		return 0
	}
	return inv
}

// step returns x*inv+shift cut to a whole number in 0..top. It compares before it converts, because the conversion of
// what is out of range differs between machines.
func step(x, inv, shift float32, top int) uint8 {
	t := float32(x*inv) + shift
	switch {
	case !(t > 0):
		return 0
	case t >= float32(top):
		return uint8(top)
	}
	return uint8(t)
}

func encodeQ4_0(dst []byte, src []float32) error {
	if err := finite(src); err != nil {
		return err
	}
	for base := 0; base < len(src); base, dst = base+32, dst[18:] {
		x := src[base : base+32]
		d := extreme(x) / -8
		inv := inverse(d)
		if err := putHalf(dst, d, base); err != nil {
			return err
		}
		for j := range 16 {
			dst[2+j] = step(x[j], inv, 8.5, 15) | step(x[j+16], inv, 8.5, 15)<<4
		}
	}
	return nil
}

func encodeQ4_1(dst []byte, src []float32) error {
	if err := finite(src); err != nil {
		return err
	}
	for base := 0; base < len(src); base, dst = base+32, dst[20:] {
		x := src[base : base+32]
		low, high := span(x)
		d := (high - low) / 15
		inv := inverse(d)
		if err := putHalf(dst, d, base); err != nil {
			return err
		}
		if err := putHalf(dst[2:], low, base); err != nil {
			return err
		}
		for j := range 16 {
			dst[4+j] = step(x[j]-low, inv, 0.5, 15) | step(x[j+16]-low, inv, 0.5, 15)<<4
		}
	}
	return nil
}

func encodeQ5_0(dst []byte, src []float32) error {
	if err := finite(src); err != nil {
		return err
	}
	for base := 0; base < len(src); base, dst = base+32, dst[22:] {
		x := src[base : base+32]
		d := extreme(x) / -16
		inv := inverse(d)
		if err := putHalf(dst, d, base); err != nil {
			return err
		}
		put5(dst[2:22], x, 0, inv, 16.5)
	}
	return nil
}

func encodeQ5_1(dst []byte, src []float32) error {
	if err := finite(src); err != nil {
		return err
	}
	for base := 0; base < len(src); base, dst = base+32, dst[24:] {
		x := src[base : base+32]
		low, high := span(x)
		d := (high - low) / 31
		if err := putHalf(dst, d, base); err != nil {
			return err
		}
		if err := putHalf(dst[2:], low, base); err != nil {
			return err
		}
		put5(dst[4:24], x, low, inverse(d), 0.5)
	}
	return nil
}

// put5 stores 32 numbers as four bytes of fifth bits and sixteen of nibbles.
func put5(dst []byte, x []float32, low, inv, shift float32) {
	var high uint32
	for j := range 16 {
		a, b := step(x[j]-low, inv, shift, 31), step(x[j+16]-low, inv, shift, 31)
		dst[4+j] = a&15 | b<<4
		high |= uint32(a>>4)<<j | uint32(b>>4)<<(j+16)
	}
	binary.LittleEndian.PutUint32(dst, high)
}

func encodeQ8_0(dst []byte, src []float32) error {
	if err := finite(src); err != nil {
		return err
	}
	for base := 0; base < len(src); base, dst = base+32, dst[34:] {
		x := src[base : base+32]
		d := abs(extreme(x)) / 127
		inv := inverse(d)
		if err := putHalf(dst, d, base); err != nil {
			return err
		}
		for j, v := range x {
			dst[2+j] = byte(roundAway(v*inv, 127))
		}
	}
	return nil
}

// roundAway rounds to the nearest whole number, halves away from zero, within -limit..limit.
func roundAway(x float32, limit int) int8 {
	return int8(max(-float64(limit), min(float64(limit), math.Round(float64(x)))))
}

// encodeMXFP4 takes the scale from the largest magnitude's exponent, so that it falls in the top step, and rounds to
// the nearest of the sixteen values, the one with the lower code where two are equally near.
func encodeMXFP4(dst []byte, src []float32) error {
	if err := finite(src); err != nil {
		return err
	}
	for base := 0; base < len(src); base, dst = base+32, dst[17:] {
		x := src[base : base+32]
		if m := abs(extreme(x)); m > 0 {
			dst[0] = byte(max(0, math.Ilogb(float64(m))-2+127))
		} else {
			dst[0] = 0
		}
		d := e8m0Half(dst[0])
		for j := range 16 {
			dst[1+j] = nearestE2M1(x[j], d) | nearestE2M1(x[j+16], d)<<4
		}
	}
	return nil
}

func nearestE2M1(x, d float32) uint8 {
	best, bestErr := 0, abs(x)
	for i := 1; i < len(e2m1Doubled); i++ {
		if e := abs(float32(d*e2m1Doubled[i]) - x); e < bestErr {
			best, bestErr = i, e
		}
	}
	return uint8(best)
}
