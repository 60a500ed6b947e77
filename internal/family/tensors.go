package family

import (
	"io"
	"slices"
	"strings"

	"github.com/baleenrun/baleen/internal/gguf"
	"github.com/baleenrun/baleen/internal/quant"
	"github.com/baleenrun/baleen/internal/safetensors"
)

// tensor is a tensor of either container in the storage that plans use.
type tensor struct {
	name  string
	typ   quant.Type
	shape []int // row-major; the last dimension varies fastest
	bytes []byte
	file  io.ReaderAt // nil: bytes were made here
	off   int64
	parts []string // names of all tensors of the container that it was made from
}

// source is a container seen as a set of tensors.
type source interface {
	has(name string) bool
	// get returns a tensor; it ends loading if there is none.
	get(name string) *tensor
	names() []string
}

// k is the length of a row, rows the number of rows.
func (t *tensor) k() int {
	if len(t.shape) == 0 {
		return 1
	}
	return t.shape[len(t.shape)-1]
}

func (t *tensor) elements() int {
	n := 1
	for _, d := range t.shape {
		n *= d
	}
	return n
}

func (t *tensor) rows() int { return t.elements() / t.k() }

func (t *tensor) rowBytes() int { return len(t.bytes) / t.rows() }

// slice returns n rows from row from on as a matrix of its own.
func (t *tensor) slice(from, n int) *tensor {
	if from < 0 || n < 1 || from+n > t.rows() {
		fail("family: tensor %q has %d rows, rows %d to %d are needed", t.name, t.rows(), from, from+n)
	}
	s := *t
	s.shape = []int{n, t.k()}
	s.bytes = t.bytes[from*t.rowBytes() : (from+n)*t.rowBytes()]
	s.off = t.off + int64(from*t.rowBytes())
	return &s
}

// pick copies rows in the given order to a new matrix.
func (t *tensor) pick(rows []int) *tensor {
	p := &tensor{name: t.name, typ: t.typ, shape: []int{len(rows), t.k()}, parts: t.parts}
	size := t.rowBytes()
	p.bytes = make([]byte, 0, len(rows)*size)
	for _, r := range rows {
		p.bytes = append(p.bytes, t.bytes[r*size:(r+1)*size]...)
	}
	return p
}

// floats returns all elements.
func (t *tensor) floats() []float32 {
	out := make([]float32, t.elements())
	if err := quant.Dequantize(t.typ, out, t.bytes); err != nil {
		fail("family: tensor %q: %w", t.name, err)
	}
	return out
}

// fromFloats stores values as BF16 where that loses nothing, else as F32.
func fromFloats(name string, shape []int, values []float32, parts []string) *tensor {
	t := &tensor{name: name, typ: quant.BF16, shape: shape, parts: parts}
	width := 2
	if slices.ContainsFunc(values, func(v float32) bool { return quant.BF16ToF32(quant.F32ToBF16(v)) != v }) {
		t.typ, width = quant.F32, 4
	}
	t.bytes = make([]byte, len(values)*width)
	if err := quant.Quantize(t.typ, t.bytes, values); err != nil {
		fail("family: tensor %q: %w", name, err)
	}
	return t
}

// join copies matrices of one type and row length end to end.
func join(name string, list []*tensor) *tensor {
	first := list[0]
	j := &tensor{name: name, typ: first.typ}
	rows, size := 0, 0
	for _, t := range list {
		if t.typ != first.typ || t.k() != first.k() {
			fail("family: tensors %q and %q are to be joined but differ in type or row length", first.name, t.name)
		}
		rows, size = rows+t.rows(), size+len(t.bytes)
		j.parts = append(j.parts, t.parts...)
	}
	j.shape = []int{rows, first.k()}
	j.bytes = make([]byte, 0, size)
	for _, t := range list {
		j.bytes = append(j.bytes, t.bytes...)
	}
	return j
}

// ggufSource is a GGUF file.
type ggufSource struct{ file *gguf.File }

func (s ggufSource) has(name string) bool { _, ok := s.file.Tensor(name); return ok }

func (s ggufSource) names() []string {
	var names []string
	for _, t := range s.file.Tensors() {
		names = append(names, t.Name)
	}
	return names
}

func (s ggufSource) get(name string) *tensor {
	g, ok := s.file.Tensor(name)
	if !ok {
		fail("family: tensor %q is missing from the GGUF file", name)
	}
	if !g.Type.CanDequantize() {
		fail("family: tensor %q: %w", name, &quant.UnsupportedError{Type: g.Type, Op: "used"})
	}
	t := &tensor{name: name, typ: g.Type, bytes: g.Bytes(), parts: []string{name}}
	t.file, t.off = g.File()
	for _, d := range g.Dims {
		t.shape = append([]int{d}, t.shape...)
	}
	return t
}

// hfSource is a set of safetensors, with the quantization that its configuration declares.
type hfSource struct {
	set   *safetensors.Set
	quant hfQuant
}

// hfQuant is what a configuration says about the storage of weights.
type hfQuant struct {
	blockRows, blockCols int // FP8 tiles
	mlx                  map[string]any
}

func (s *hfSource) has(name string) bool {
	if _, ok := s.set.Tensor(name); ok {
		return true
	}
	_, ok := s.set.Tensor(name + "_blocks")
	return ok
}

func (s *hfSource) names() []string {
	var names []string
	for _, t := range s.set.Tensors() {
		names = append(names, t.Name)
	}
	return names
}

var plainTypes = map[string]quant.Type{"F32": quant.F32, "F16": quant.F16, "BF16": quant.BF16}

func (s *hfSource) get(name string) *tensor {
	t, ok := s.set.Tensor(name)
	if !ok {
		if blocks, ok := s.set.Tensor(name + "_blocks"); ok {
			return s.mxfp4(name, blocks, name+"_scales")
		}
		fail("family: tensor %q is missing from the checkpoint", name)
	}
	if t.Elements() == 0 {
		fail("family: tensor %q is empty", name)
	}
	out := &tensor{name: name, shape: slices.Clone(t.Shape), parts: []string{name}}
	if typ, ok := plainTypes[t.DType]; ok {
		out.typ, out.bytes = typ, t.Bytes()
		out.file, out.off = t.File()
		return out
	}
	switch t.DType {
	case "F8_E4M3":
		return s.fp8(t)
	case "U32":
		return s.mlx(t)
	case "F64":
		values, err := t.Float32s()
		if err != nil {
			fail("family: %w", err)
		}
		return fromFloats(name, out.shape, values, out.parts)
	}
	fail("family: tensor %q is stored as %s, which is not supported here", name, t.DType)
	return nil
}

// fp8 decodes an E4M3 matrix with its scales: one for the tensor, one per row, or one per tile.
func (s *hfSource) fp8(t *safetensors.Tensor) *tensor {
	parts := []string{t.Name}
	var scales []float32
	var shape []int
	for _, suffix := range []string{"_scale_inv", "_scale"} {
		sc, ok := s.set.Tensor(t.Name + suffix)
		if !ok {
			continue
		}
		var err error
		if scales, err = sc.Float32s(); err != nil {
			fail("family: %w", err)
		}
		shape, parts = sc.Shape, append(parts, sc.Name)
		break
	}
	if scales == nil {
		fail("family: tensor %q is FP8 without %s_scale_inv or %s_scale", t.Name, t.Name, t.Name)
	}
	rows, cols := 1, 1
	for i, d := range t.Shape {
		if i == len(t.Shape)-1 {
			cols = d
		} else {
			rows *= d
		}
	}
	tileRows, tileCols := s.quant.blockRows, s.quant.blockCols
	switch {
	case len(scales) == 1:
		tileRows, tileCols = rows, cols
	case len(scales) == rows && (len(shape) == 1 || shape[len(shape)-1] == 1):
		tileRows, tileCols = 1, cols
	case len(t.Shape) != 2:
		fail("family: tensor %q is FP8 with %d dimensions and scales %v", t.Name, len(t.Shape), shape)
	}
	values := make([]float32, rows*cols)
	if err := quant.DequantizeFP8(values, t.Bytes(), rows, cols, scales, tileRows, tileCols); err != nil {
		fail("family: tensor %q: %w", t.Name, err)
	}
	return fromFloats(t.Name, slices.Clone(t.Shape), values, parts)
}

// mxfp4 repacks Hugging Face's blocks [...][k/32][16] and scales [...][k/32] into GGUF's blocks; nothing is lost.
func (s *hfSource) mxfp4(name string, blocks *safetensors.Tensor, scalesName string) *tensor {
	scales, ok := s.set.Tensor(scalesName)
	if !ok {
		fail("family: tensor %q has no %q", blocks.Name, scalesName)
	}
	n := len(blocks.Shape)
	if n < 3 || blocks.Shape[n-1] != 16 || blocks.DType != "U8" || scales.DType != "U8" || blocks.Size() != 16*scales.Size() || blocks.Size() == 0 {
		fail("family: tensors %q %s%v and %q %s%v are not MXFP4", blocks.Name, blocks.DType, blocks.Shape, scales.Name, scales.DType, scales.Shape)
	}
	shape := append(slices.Clone(blocks.Shape[:n-2]), blocks.Shape[n-2]*32)
	return repack(name, shape, blocks, scales)
}

func repack(name string, shape []int, blocks, scales *safetensors.Tensor) *tensor {
	t := &tensor{name: name, typ: quant.MXFP4, shape: shape, parts: []string{blocks.Name, scales.Name}}
	t.bytes = make([]byte, scales.Size()*17)
	if err := quant.RepackMXFP4(t.bytes, blocks.Bytes(), scales.Bytes()); err != nil {
		fail("family: tensor %q: %w", name, err)
	}
	return t
}

// mlx decodes a matrix in MLX's packed form: words of 32 bits, with .scales and (affine) .biases beside the .weight.
func (s *hfSource) mlx(t *safetensors.Tensor) *tensor {
	base, isWeight := strings.CutSuffix(t.Name, ".weight")
	scales, ok := s.set.Tensor(base + ".scales")
	if !isWeight || !ok || len(t.Shape) < 2 || s.quant.mlx == nil {
		fail("family: tensor %q holds 32-bit words but the checkpoint declares no MLX quantization for it", t.Name)
	}
	c := (&config{}).sub(s.quant.mlx)
	if own, ok := s.quant.mlx[base].(map[string]any); ok {
		c = c.sub(own)
	}
	bits, group := c.dim("bits", 8), c.dim("group_size", 128)
	mode := c.stringOr("mode", "affine")
	if bits < 2 { // the numbers would take 32 times the file's size before anything else refuses them
		fail("family: tensor %q: MLX numbers of %d bit", t.Name, bits)
	}
	words := t.Shape[len(t.Shape)-1]
	k := words * 32 / bits
	shape := append(slices.Clone(t.Shape[:len(t.Shape)-1]), k)
	if words*32%bits != 0 || k%group != 0 {
		fail("family: tensor %q: rows of %d words at %d bits in groups of %d", t.Name, words, bits, group)
	}
	if mode == "mxfp4" && bits == 4 && group == 32 && scales.DType == "U8" {
		return repack(t.Name, shape, t, scales)
	}
	biases, ok := s.set.Tensor(base + ".biases")
	typ, known := plainTypes[scales.DType]
	if mode != "affine" || !ok || !known || biases.DType != scales.DType {
		fail("family: tensor %q: MLX mode %q with %s scales is not supported", t.Name, mode, scales.DType)
	}
	values := make([]float32, t.Elements()/words*k)
	if err := quant.DequantizeMLX(values, t.Bytes(), scales.Bytes(), biases.Bytes(), typ, bits, group); err != nil {
		fail("family: tensor %q: %w", t.Name, err)
	}
	return fromScaled(t.Name, shape, values, typ, []string{t.Name, scales.Name, biases.Name})
}

// fromScaled stores values that are exact in typ.
func fromScaled(name string, shape []int, values []float32, typ quant.Type, parts []string) *tensor {
	width := typ.BlockBytes()
	t := &tensor{name: name, typ: typ, shape: shape, bytes: make([]byte, len(values)*width), parts: parts}
	if err := quant.Quantize(typ, t.bytes, values); err != nil {
		fail("family: tensor %q: %w", name, err)
	}
	return t
}
