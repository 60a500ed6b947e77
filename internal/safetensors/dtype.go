package safetensors

import (
	"encoding/binary"
	"fmt"

	"github.com/baleenrun/baleen/internal/quant"
)

// dtypes is the bits of an element of each type that the format defines.
var dtypes = map[string]int{
	"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8,
	"F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
	"I16": 16, "U16": 16, "F16": 16, "BF16": 16,
	"I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}

// sameInGGML maps the types that package quant decodes.
var sameInGGML = map[string]quant.Type{
	"F32": quant.F32, "F16": quant.F16, "BF16": quant.BF16, "F64": quant.F64,
	"I8": quant.I8, "I16": quant.I16, "I32": quant.I32, "I64": quant.I64,
}

// Elements returns the number of elements. It fits: the reader checked the product.
func (t *Tensor) Elements() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// ReadFloat32s reads n elements, from element at on, as float32: floats of 16 to 64 bits, integers and booleans
// (rounded where float32 has too few bits). The 8-bit and smaller floats are refused: they mean nothing without the
// scales that lie in other tensors; package quant joins the two.
func (t *Tensor) ReadFloat32s(at, n int) ([]float32, error) {
	if at < 0 || n < 0 || at > t.Elements()-n {
		return nil, fmt.Errorf(
			"safetensors: elements %d to %d of tensor %q, which has %d",
			at,
			at+n,
			t.Name,
			t.Elements(),
		)
	}
	typ, known := sameInGGML[t.DType]
	read, ok := unsigned[t.DType]
	if !known && !ok {
		return nil, fmt.Errorf("safetensors: tensor %q is %s and cannot be read without its scales", t.Name, t.DType)
	}
	width := dtypes[t.DType] / 8
	out, b := make([]float32, n), make([]byte, n*width)
	if got, err := t.file.ReadAt(b, int64(t.off+at*width)); got < len(b) {
		return nil, fmt.Errorf("safetensors: tensor %q in %s: %w", t.Name, t.Path(), err)
	}
	if known {
		return out, quant.Dequantize(typ, out, b)
	}
	for i := range out {
		out[i] = float32(read(b[i*width:]))
	}
	return out, nil
}

// Float32s reads all elements.
func (t *Tensor) Float32s() ([]float32, error) { return t.ReadFloat32s(0, t.Elements()) }

var unsigned = map[string]func([]byte) uint64{
	"BOOL": func(b []byte) uint64 { return min(1, uint64(b[0])) },
	"U8":   func(b []byte) uint64 { return uint64(b[0]) },
	"U16":  func(b []byte) uint64 { return uint64(binary.LittleEndian.Uint16(b)) },
	"U32":  func(b []byte) uint64 { return uint64(binary.LittleEndian.Uint32(b)) },
	"U64":  binary.LittleEndian.Uint64,
}
