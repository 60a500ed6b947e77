// Package quant owns the element formats of weights: ggml's block formats, 16-bit and 8-bit floats, MLX's affine groups
// and the MX formats. It says how many bytes they take and turns them into float32 and back, in plain Go that defines
// the bits. It knows blocks and rows of numbers, not files, tensors' names, models or kernels.
package quant

import (
	"fmt"
	"math"
	"strings"
)

// Type is the format of a tensor's elements, numbered as ggml numbers it in GGUF files.
type Type uint32

// The formats that current GGUF files may hold. The numbers left out were removed from the format.
const (
	F32     Type = 0
	F16     Type = 1
	Q4_0    Type = 2
	Q4_1    Type = 3
	Q5_0    Type = 6
	Q5_1    Type = 7
	Q8_0    Type = 8
	Q8_1    Type = 9
	Q2_K    Type = 10
	Q3_K    Type = 11
	Q4_K    Type = 12
	Q5_K    Type = 13
	Q6_K    Type = 14
	Q8_K    Type = 15
	IQ2_XXS Type = 16
	IQ2_XS  Type = 17
	IQ3_XXS Type = 18
	IQ1_S   Type = 19
	IQ4_NL  Type = 20
	IQ3_S   Type = 21
	IQ2_S   Type = 22
	IQ4_XS  Type = 23
	I8      Type = 24
	I16     Type = 25
	I32     Type = 26
	I64     Type = 27
	F64     Type = 28
	IQ1_M   Type = 29
	BF16    Type = 30
	TQ1_0   Type = 34
	TQ2_0   Type = 35
	MXFP4   Type = 39
	NVFP4   Type = 40
	Q1_0    Type = 41
	Q2_0    Type = 42
)

// superBlock is the number of elements in a block of the K and most IQ formats.
const superBlock = 256

// format is a row of the table of formats. decode and encode take whole blocks: len(dst) and len(src) already agree.
// A nil decode means that the format is known (it can be measured, skipped and refused by name) but not readable.
type format struct {
	name   string
	elems  int // elements in a block
	bytes  int // bytes in a block
	decode func(dst []float32, src []byte)
	encode func(dst []byte, src []float32) error
}

var formats = [...]format{
	F32:     {"F32", 1, 4, decodeF32, encodeF32},
	F16:     {"F16", 1, 2, decodeF16, encodeF16},
	Q4_0:    {"Q4_0", 32, 18, decodeQ4_0, encodeQ4_0},
	Q4_1:    {"Q4_1", 32, 20, decodeQ4_1, encodeQ4_1},
	Q5_0:    {"Q5_0", 32, 22, decodeQ5_0, encodeQ5_0},
	Q5_1:    {"Q5_1", 32, 24, decodeQ5_1, encodeQ5_1},
	Q8_0:    {"Q8_0", 32, 34, decodeQ8_0, encodeQ8_0},
	Q8_1:    {"Q8_1", 32, 36, decodeQ8_1, nil},
	Q2_K:    {"Q2_K", superBlock, 84, decodeQ2K, nil},
	Q3_K:    {"Q3_K", superBlock, 110, decodeQ3K, nil},
	Q4_K:    {"Q4_K", superBlock, 144, decodeQ4K, encodeQ4K},
	Q5_K:    {"Q5_K", superBlock, 176, decodeQ5K, encodeQ5K},
	Q6_K:    {"Q6_K", superBlock, 210, decodeQ6K, encodeQ6K},
	Q8_K:    {"Q8_K", superBlock, 292, decodeQ8K, nil},
	IQ2_XXS: {"IQ2_XXS", superBlock, 66, decodeIQ2XXS, nil},
	IQ2_XS:  {"IQ2_XS", superBlock, 74, decodeIQ2XS, nil},
	IQ3_XXS: {"IQ3_XXS", superBlock, 98, decodeIQ3XXS, nil},
	IQ1_S:   {"IQ1_S", superBlock, 50, decodeIQ1S, nil},
	IQ4_NL:  {"IQ4_NL", 32, 18, decodeIQ4NL, nil},
	IQ3_S:   {"IQ3_S", superBlock, 110, decodeIQ3S, nil},
	IQ2_S:   {"IQ2_S", superBlock, 82, decodeIQ2S, nil},
	IQ4_XS:  {"IQ4_XS", superBlock, 136, decodeIQ4XS, nil},
	I8:      {"I8", 1, 1, decodeI8, nil},
	I16:     {"I16", 1, 2, decodeI16, nil},
	I32:     {"I32", 1, 4, decodeI32, nil},
	I64:     {"I64", 1, 8, decodeI64, nil},
	F64:     {"F64", 1, 8, decodeF64, nil},
	IQ1_M:   {"IQ1_M", superBlock, 56, decodeIQ1M, nil},
	BF16:    {"BF16", 1, 2, decodeBF16, encodeBF16},
	TQ1_0:   {"TQ1_0", superBlock, 54, decodeTQ1, nil},
	TQ2_0:   {"TQ2_0", superBlock, 66, decodeTQ2, nil},
	MXFP4:   {"MXFP4", 32, 17, decodeMXFP4, encodeMXFP4},
	NVFP4:   {"NVFP4", 64, 36, decodeNVFP4, nil},
	Q1_0:    {"Q1_0", 128, 18, decodeQ1_0, nil},
	Q2_0:    {"Q2_0", 64, 18, decodeQ2_0, nil},
}

// lookup returns t's row, or nil where t is not a format of this table.
func lookup(t Type) *format {
	if uint64(t) >= uint64(len(formats)) || formats[t].elems == 0 {
		return nil
	}
	return &formats[t]
}

// String returns ggml's name of the format, such as "Q4_K", or "type 200" for a number it does not know.
func (t Type) String() string {
	if f := lookup(t); f != nil {
		return f.name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// ParseType returns the format with the given name; case does not matter.
func ParseType(name string) (Type, error) {
	for i := range formats {
		if formats[i].elems != 0 && strings.EqualFold(formats[i].name, name) {
			return Type(i), nil
		}
	}
	return 0, fmt.Errorf("quant: no format is named %q", name)
}

// Known reports whether the format's layout is known, so that its tensors can be measured.
func (t Type) Known() bool { return lookup(t) != nil }

// CanDequantize reports whether Dequantize reads the format.
func (t Type) CanDequantize() bool { f := lookup(t); return f != nil && f.decode != nil }

// CanQuantize reports whether Quantize writes the format.
func (t Type) CanQuantize() bool { f := lookup(t); return f != nil && f.encode != nil }

// BlockSize returns the number of elements in a block, 1 for plain numbers, 0 for an unknown format.
func (t Type) BlockSize() int {
	if f := lookup(t); f != nil {
		return f.elems
	}
	return 0
}

// BlockBytes returns the number of bytes in a block, 0 for an unknown format.
func (t Type) BlockBytes() int {
	if f := lookup(t); f != nil {
		return f.bytes
	}
	return 0
}

// RowBytes returns the number of bytes that k elements take. k must be a whole number of blocks.
func (t Type) RowBytes(k int) (int, error) {
	f := lookup(t)
	switch {
	case f == nil:
		return 0, &UnsupportedError{Type: t, Op: "measured"}
	case k < 0 || k%f.elems != 0:
		return 0, fmt.Errorf("quant: a row of %d elements is not a whole number of %s blocks of %d", k, f.name, f.elems)
	case k/f.elems > math.MaxInt/f.bytes:
		return 0, fmt.Errorf("quant: a row of %d elements is more than this machine can address", k)
	}
	return k / f.elems * f.bytes, nil
}

// UnsupportedError says that a format cannot be read or written here.
type UnsupportedError struct {
	Type Type
	Op   string // what was asked for: "measured", "dequantized" or "quantized"
}

func (e *UnsupportedError) Error() string {
	if !e.Type.Known() {
		return fmt.Sprintf("quant: %v is not a known format and cannot be %s", e.Type, e.Op)
	}
	return fmt.Sprintf(
		"quant: the format %v cannot be %s yet; use Q4_K, Q6_K, Q8_0 or another common format",
		e.Type,
		e.Op,
	)
}

// sizes checks that n elements and b bytes are the same whole number of blocks.
func (f *format) sizes(n, b int) error {
	if n%f.elems != 0 || b%f.bytes != 0 || n/f.elems != b/f.bytes {
		return fmt.Errorf("quant: %d elements and %d bytes do not agree: a %s block has %d elements in %d bytes",
			n, b, f.name, f.elems, f.bytes)
	}
	return nil
}

// Dequantize turns whole blocks of src into len(dst) numbers, with the bits of ggml's reference decoders. Every product
// is rounded to float32 before anything is added to it. The sizes must agree exactly. Integers and F64 are rounded to
// float32. NVFP4's global scale, a tensor of its own, is left to the caller.
func Dequantize(t Type, dst []float32, src []byte) error {
	f := lookup(t)
	if f == nil || f.decode == nil {
		return &UnsupportedError{Type: t, Op: "dequantized"}
	}
	if err := f.sizes(len(dst), len(src)); err != nil {
		return err
	}
	f.decode(dst, src)
	return nil
}

// Quantize turns len(src) numbers into whole blocks of dst. The sizes must agree exactly. Block formats refuse numbers
// that are not finite, and blocks too large for their scale; what dst holds after an error is undefined.
func Quantize(t Type, dst []byte, src []float32) error {
	f := lookup(t)
	if f == nil || f.encode == nil {
		return &UnsupportedError{Type: t, Op: "quantized"}
	}
	if err := f.sizes(len(src), len(dst)); err != nil {
		return err
	}
	return f.encode(dst, src)
}
