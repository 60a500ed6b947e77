package family

import (
	"slices"
	"strings"

	"github.com/baleenrun/baleen/internal/gguf"
	"github.com/baleenrun/baleen/internal/plan"
	"github.com/baleenrun/baleen/internal/quant"
	"github.com/baleenrun/baleen/internal/safetensors"
)

// tensor is a tensor of either container in a format that plans use. Its numbers stay where they are: it only says
// from where they are read.
type tensor struct {
	name  string
	typ   quant.Type
	shape []int       // row-major; the last dimension varies fastest
	parts []plan.Part // where the rows come from, in order
	names []string    // of all tensors of the container that it is made from
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

// rowBytes is the size of a row; it ends loading where rows are no whole number of blocks.
func (t *tensor) rowBytes() int {
	n, err := t.typ.RowBytes(t.k())
	if err != nil {
		fail("family: tensor %q: %w", t.name, err)
	}
	return n
}

// matrix is the tensor as a reader of its rows.
func (t *tensor) matrix() *plan.Weight {
	return &plan.Weight{Name: t.name, Type: t.typ, Rows: t.rows(), K: t.k(), Parts: t.parts}
}

// rowsFrom says where n rows come from of which each is step behind the one before.
func (t *tensor) rowsFrom(first, step, n int) []plan.Part {
	last := first + (n-1)*step
	if first < 0 || n < 1 || last >= t.rows() {
		fail("family: tensor %q has %d rows, rows %d to %d are needed", t.name, t.rows(), first, last)
	}
	var parts []plan.Part
	for _, p := range t.parts {
		if first >= p.Rows {
			first -= p.Rows
			continue
		}
		count := min(n, (p.Rows-first+step-1)/step)
		parts = append(parts, t.cut(p, first, step, count))
		if n -= count; n == 0 {
			break
		}
		first += count*step - p.Rows
	}
	return parts
}

// cut returns count rows of a part, from row first on, each step behind the one before.
func (t *tensor) cut(p plan.Part, first, step, count int) plan.Part {
	whole := first == 0 && step == 1
	turned, ok := p.Convert.(*transposed)
	switch {
	case p.Convert == nil && step == 1:
		p.Off += int64(first * t.rowBytes())
	case ok && !whole:
		p.Convert = &transposed{turned.src, turned.width, turned.first + first*turned.step, step * turned.step}
	case !whole:
		src := &plan.Weight{Name: t.name, Type: t.typ, Rows: p.Rows, K: t.k(), Parts: []plan.Part{p}}
		p.File, p.Off, p.Convert, p.Together = nil, 0, &strided{src, first, step}, p.Together/step
	}
	p.Rows = count
	return p
}

// slice returns n rows from row from on as a matrix of its own.
func (t *tensor) slice(from, n int) *tensor {
	return &tensor{name: t.name, typ: t.typ, shape: []int{n, t.k()}, parts: t.rowsFrom(from, 1, n), names: t.names}
}

// A stripe is a choice of rows: count runs of size rows each, of which each begins step rows after the one before.
type stripe struct{ first, size, step, count int }

func (s stripe) rows() int { return s.size * s.count }

// alternate divides the rows of n groups that hold first rows of one kind and then second of another.
func alternate(n, first, second int) (a, b stripe) {
	return stripe{0, first, first + second, n}, stripe{first, second, first + second, n}
}

// pick returns the rows of stripes, one stripe after the other, as a matrix of its own.
func (t *tensor) pick(stripes ...stripe) *tensor {
	p := &tensor{name: t.name, typ: t.typ, shape: []int{0, t.k()}, names: t.names}
	for _, s := range stripes {
		p.shape[0] += s.rows()
		if s.size == 1 {
			p.parts = append(p.parts, t.rowsFrom(s.first, s.step, s.count)...)
			continue
		}
		for i := range s.count {
			p.parts = append(p.parts, t.rowsFrom(s.first+i*s.step, 1, s.size)...)
		}
	}
	return p
}

// pickFloats returns the numbers of a stripe.
func pickFloats(from []float32, s stripe) []float32 {
	out := make([]float32, 0, s.rows())
	for i := range s.count {
		out = append(out, from[s.first+i*s.step:][:s.size]...)
	}
	return out
}

// floats reads all elements.
func (t *tensor) floats() []float32 {
	stored, out := make([]byte, t.rows()*t.rowBytes()), make([]float32, t.elements())
	err := t.matrix().ReadRows(stored, 0, t.rows())
	if err == nil {
		err = quant.Dequantize(t.typ, out, stored)
	}
	if err != nil {
		fail("family: tensor %q: %w", t.name, err)
	}
	return out
}

// join puts matrices of one type and row length end to end. Those of plain numbers are widened where they differ.
func join(name string, list []*tensor) *tensor {
	first := list[0]
	j := &tensor{name: name, typ: first.typ, shape: []int{0, first.k()}}
	for _, t := range list {
		switch {
		case t.k() != first.k():
			fail("family: tensors %q and %q are to be joined but differ in row length", first.name, t.name)
		case t.typ == j.typ:
		case !isPlain(t.typ) || !isPlain(j.typ):
			fail("family: tensors %q and %q are to be joined but differ in type", first.name, t.name)
		default:
			j.typ = quant.F32
		}
	}
	for _, t := range list {
		j.shape[0] += t.rows()
		j.names = append(j.names, t.names...)
		if t.typ == j.typ {
			j.parts = append(j.parts, t.parts...)
		} else {
			j.parts = append(j.parts, plan.Part{Rows: t.rows(), Convert: widened{t.matrix()}})
		}
	}
	return j
}

// isPlain reports whether elements of the type are stored one by one.
func isPlain(t quant.Type) bool { return t == quant.F32 || t == quant.F16 || t == quant.BF16 }

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
	t := &tensor{name: name, typ: g.Type, names: []string{name}}
	for _, d := range g.Dims {
		t.shape = append([]int{d}, t.shape...)
	}
	file, off := g.File()
	t.parts = []plan.Part{{Rows: t.rows(), File: file, Off: off}}
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
	out := &tensor{name: name, shape: slices.Clone(t.Shape), names: []string{name}}
	if typ, ok := plainTypes[t.DType]; ok {
		file, off := t.File()
		out.typ, out.parts = typ, []plan.Part{{Rows: out.rows(), File: file, Off: off}}
		return out
	}
	switch t.DType {
	case "F8_E4M3":
		return s.fp8(t, out)
	case "U32":
		return s.mlx(t)
	case "F64":
		return out.converted(quant.F32, &narrowed{t, out.k()})
	}
	fail("family: tensor %q is stored as %s, which is not supported here", name, t.DType)
	return nil
}

// converted lets the tensor's rows be made by c, in the format typ.
func (t *tensor) converted(typ quant.Type, c plan.Converter, names ...string) *tensor {
	t.typ, t.parts, t.names = typ, []plan.Part{{Rows: t.rows(), Convert: c}}, append(t.names, names...)
	return t
}

// fp8 is an E4M3 matrix with its scales: one for the tensor, one per row, or one per tile.
func (s *hfSource) fp8(t *safetensors.Tensor, out *tensor) *tensor {
	var scales *safetensors.Tensor
	for _, suffix := range []string{"_scale_inv", "_scale"} {
		if sc, ok := s.set.Tensor(t.Name + suffix); ok {
			scales = sc
			break
		}
	}
	if scales == nil {
		fail("family: tensor %q is FP8 without %s_scale_inv or %s_scale", t.Name, t.Name, t.Name)
	}
	rows, cols := out.rows(), out.k()
	c := &fp8Rows{codes: t, scales: scales, cols: cols, tileRows: s.quant.blockRows, tileCols: s.quant.blockCols}
	n, shape := scales.Elements(), scales.Shape
	switch {
	case n == 1:
		c.tileRows, c.tileCols = rows, cols
	case n == rows && (len(shape) == 1 || shape[len(shape)-1] == 1):
		c.tileRows, c.tileCols = 1, cols
	case len(t.Shape) != 2:
		fail("family: tensor %q is FP8 with %d dimensions and scales %v", t.Name, len(t.Shape), shape)
	}
	if across, down := ceilDiv(cols, c.tileCols), ceilDiv(rows, c.tileRows); n != across*down {
		fail("family: tensor %q is FP8 of %d x %d in tiles of %d x %d: it needs %d x %d scales, there are %d",
			t.Name, rows, cols, c.tileRows, c.tileCols, down, across, n)
	}
	exact, err := c.exactInBF16()
	if err != nil {
		fail("family: tensor %q: %w", scales.Name, err)
	}
	if c.typ = quant.F32; exact {
		c.typ = quant.BF16
	}
	return out.converted(c.typ, c, scales.Name)
}

// mxfp4 turns Hugging Face's blocks [...][k/32][16] and scales [...][k/32] into GGUF's blocks; nothing is lost.
func (s *hfSource) mxfp4(name string, blocks *safetensors.Tensor, scalesName string) *tensor {
	scales, ok := s.set.Tensor(scalesName)
	if !ok {
		fail("family: tensor %q has no %q", blocks.Name, scalesName)
	}
	n := len(blocks.Shape)
	if n < 3 || blocks.Shape[n-1] != 16 || blocks.DType != "U8" || scales.DType != "U8" ||
		blocks.Size() != 16*scales.Size() ||
		blocks.Size() == 0 {
		fail(
			"family: tensors %q %s%v and %q %s%v are not MXFP4",
			blocks.Name,
			blocks.DType,
			blocks.Shape,
			scales.Name,
			scales.DType,
			scales.Shape,
		)
	}
	shape := append(slices.Clone(blocks.Shape[:n-2]), blocks.Shape[n-2]*32)
	return repack(name, shape, blocks, scales)
}

func repack(name string, shape []int, blocks, scales *safetensors.Tensor) *tensor {
	t := &tensor{name: name, shape: shape, names: []string{blocks.Name}}
	if scales.Size() != t.elements()/32 || blocks.Size() != 16*scales.Size() {
		fail("family: tensors %q of %d bytes and %q of %d are not MXFP4 of shape %v",
			blocks.Name, blocks.Size(), scales.Name, scales.Size(), shape)
	}
	return t.converted(quant.MXFP4, &mxfp4Rows{blocks, scales, t.k() / 32}, scales.Name)
}

// mlx is a matrix in MLX's packed form: words of 32 bits, with .scales and (affine) .biases beside the .weight.
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
	out := &tensor{name: t.Name, shape: append(slices.Clone(t.Shape[:len(t.Shape)-1]), k), names: []string{t.Name}}
	if words*32%bits != 0 || k%group != 0 {
		fail("family: tensor %q: rows of %d words at %d bits in groups of %d", t.Name, words, bits, group)
	}
	if mode == "mxfp4" && bits == 4 && group == 32 && scales.DType == "U8" {
		return repack(t.Name, out.shape, t, scales)
	}
	biases, ok := s.set.Tensor(base + ".biases")
	typ, known := plainTypes[scales.DType]
	if mode != "affine" || !ok || !known || biases.DType != scales.DType {
		fail("family: tensor %q: MLX mode %q with %s scales is not supported", t.Name, mode, scales.DType)
	}
	rows := &mlxRows{words: t, scales: scales, biases: biases, typ: typ, bits: bits, group: group, k: k}
	if err := rows.check(out.rows()); err != nil {
		fail("family: tensor %q: %w", t.Name, err)
	}
	return out.converted(typ, rows, scales.Name, biases.Name)
}
