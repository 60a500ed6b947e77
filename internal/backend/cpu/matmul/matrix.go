// Package matmul owns products of weight matrices with rows of activations: the packed form of weights, the quantized
// form of activations, and the kernels that multiply them. It knows formats, rows and instruction sets; it knows
// nothing of tensors' names, models, plans or threads.
//
// Weights are packed in groups of 16 output rows, a lane being a row, so that no kernel sums across lanes. What an
// element of a result is, bit for bit, stands in ../../NUMERICS.md; it does not depend on the number of rows multiplied
// at once, on the groups given to a call, or on the instruction set.
package matmul

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/baleenrun/baleen/internal/backend/cpu/isa"
	"github.com/baleenrun/baleen/internal/quant"
)

//go:generate ./generate.sh

// Lanes is the number of output rows in a group.
const Lanes = 16

// align is the alignment in bytes of packed weights and of activation rows.
const align = 64

// Act is the form in which a format wants its activations.
type Act uint8

const (
	ActF32 Act = iota // the float32 row itself, as bytes
	ActQ8             // records of 32 signed bytes with scale and sums
)

// Bytes returns the size of one row of k activations, a multiple of 64.
func (a Act) Bytes(k int) int {
	if a == ActQ8 {
		return roundUp((k+31)/32*recordBytes, align)
	}
	return roundUp(4*k, align)
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// Matrix is a packed weight matrix: Rows output rows of K inputs.
type Matrix struct {
	Type   quant.Type
	Rows   int
	K      int
	Groups int    // groups of 16 rows; the last is filled up with rows of zeros
	Stride int    // bytes of a group
	Data   []byte // Groups*Stride bytes, 64-byte aligned

	form *format // nil for float formats
}

// Supports reports whether matrices of format t can be packed and multiplied.
func Supports(t quant.Type) bool {
	return formatOf(t) != nil || floatBytes(t) != 0
}

// floatBytes returns the size of a float weight, 0 where t is no float format that has kernels.
func floatBytes(t quant.Type) int {
	switch t {
	case quant.F32:
		return 4
	case quant.F16, quant.BF16:
		return 2
	}
	return 0
}

// groupBytes returns the packed size of 16 rows of k elements.
func groupBytes(t quant.Type, k int) (int, error) {
	const most = 1 << 28 // keeps every product below inside an int64 and inside the offsets of assembly
	f, size := formatOf(t), floatBytes(t)
	switch {
	case f == nil && size == 0:
		return 0, fmt.Errorf(
			"matmul: weights of the format %v cannot be multiplied yet; use a file in Q4_K_M, Q8_0 or another "+
				"common format",
			t,
		)
	case k < 1 || k > most:
		return 0, fmt.Errorf("matmul: rows of %d elements, want 1 to %d", k, most)
	case f == nil:
		return roundUp(k*size*Lanes, align), nil
	case k%t.BlockSize() != 0:
		return 0, fmt.Errorf("matmul: rows of %d elements are no whole number of %v blocks of %d", k, t, t.BlockSize())
	}
	return f.groupBytes(k / 32), nil
}

// PackedBytes returns the size of the packed form of a matrix, a multiple of 64. k is a multiple of the format's block
// size; for float formats it is any positive number.
func PackedBytes(t quant.Type, rows, k int) (int, error) {
	stride, err := groupBytes(t, k)
	if err != nil {
		return 0, err
	}
	if rows < 1 || rows > math.MaxInt/2/stride*Lanes {
		return 0, fmt.Errorf("matmul: a matrix of %d rows of %d elements cannot be addressed", rows, k)
	}
	return (rows + Lanes - 1) / Lanes * stride, nil
}

// New makes a matrix over memory of at least PackedBytes that the caller allocated, aligned to 64 bytes. Pack fills it.
func New(t quant.Type, rows, k int, data []byte) (Matrix, error) {
	n, err := PackedBytes(t, rows, k)
	if err != nil {
		return Matrix{}, err
	}
	if len(data) < n {
		return Matrix{}, fmt.Errorf(
			"matmul: %d bytes given for a packed %v matrix of %d x %d, which takes %d",
			len(data),
			t,
			rows,
			k,
			n,
		)
	}
	if uintptr(unsafe.Pointer(unsafe.SliceData(data)))%align != 0 {
		return Matrix{}, fmt.Errorf("matmul: memory of a packed matrix is not aligned to %d bytes", align)
	}
	groups := (rows + Lanes - 1) / Lanes
	return Matrix{
		Type:   t,
		Rows:   rows,
		K:      k,
		Groups: groups,
		Stride: n / groups,
		Data:   data[:n:n],
		form:   formatOf(t),
	}, nil
}

// Act returns the form of activations that the matrix is multiplied with.
func (m *Matrix) Act() Act {
	if m.form != nil {
		return ActQ8
	}
	return ActF32
}

// group returns the packed bytes of a group.
func (m *Matrix) group(g int) []byte { return m.Data[g*m.Stride : (g+1)*m.Stride : (g+1)*m.Stride] }

// lanes returns how many rows of group g exist.
func (m *Matrix) lanes(g int) int { return min(Lanes, m.Rows-g*Lanes) }

// Kernels is the set of kernels of one instruction set.
// RATIONALE: Why Go assembly, and not cgo, archsimd or plain Go?
type Kernels struct {
	level    isa.Level
	quantize func(dst []byte, x []float32)
	// packGroup packs one group of 16 whole rows; nil, or false returned: the plain way.
	packGroup func(m *Matrix, dst, src []byte, rowBytes int) bool
	quant     func(m *Matrix, c call)
	float     func(m *Matrix, c call)
}

// call is what Mul was given.
type call struct {
	g0, g1    int
	act       []byte
	actStride int
	rows      int
	y         []float32
	yStride   int
	ahead     int
}

var tables = func() (t [isa.NEONI8MM + 1]*Kernels) {
	for l := range t {
		t[l] = &Kernels{level: isa.Level(l), quantize: quantizeGo, quant: mulQuantGo, float: mulFloatGo}
		t[l].native()
	}
	return t
}()

// For returns the kernels of a level. The caller asks only for levels that the processor has; a level that this build
// has no kernels for gets the plain ones.
func For(l isa.Level) *Kernels { return tables[l] }

// Level returns the instruction set of the kernels.
func (k *Kernels) Level() isa.Level { return k.level }

// Pack packs groups [g0, g1). src holds exactly the source rows 16*g0 to min(16*g1, Rows). Disjoint ranges may be
// packed at the same time.
func (k *Kernels) Pack(m *Matrix, src []byte, g0, g1 int) {
	if g0 >= g1 {
		return
	}
	rowBytes, err := m.Type.RowBytes(m.K)
	if err != nil || g0 < 0 || g1 > m.Groups || len(src) != (min(g1*Lanes, m.Rows)-g0*Lanes)*rowBytes {
		panic(fmt.Sprintf("matmul: Pack of groups %d to %d of %d from %d bytes", g0, g1, m.Groups, len(src)))
	}
	for g := g0; g < g1; g++ {
		dst, lanes := m.group(g), m.lanes(g)
		rows := src[:lanes*rowBytes]
		src = src[lanes*rowBytes:]
		if lanes == Lanes && k.packGroup != nil && k.packGroup(m, dst, rows, rowBytes) {
			continue
		}
		if lanes < Lanes {
			clear(dst)
		}
		if m.form != nil {
			m.form.packGroup(dst, rows, rowBytes, m.K/32)
		} else {
			packFloat(dst, rows, rowBytes, floatBytes(m.Type))
		}
	}
}

// Quantize turns one row of activations into the form a; dst has a.Bytes(len(x)) bytes.
func (k *Kernels) Quantize(a Act, dst []byte, x []float32) {
	dst = dst[:a.Bytes(len(x))]
	if a == ActF32 {
		copy(dst, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x)))
		return
	}
	k.quantize(dst, x)
}

// DefaultAhead is a distance for Mul that suits most processors and numbers of rows.
const DefaultAhead = 12288

// FewRows is the number of rows up to which Mul's time depends much on its distance.
const FewRows = 12

// Mul multiplies groups [g0, g1) with rows rows of activations, actStride bytes apart, in the form m.Act():
// y[r*yStride+n] is the product of weight row n with activation row r, for n from 16*g0 to min(16*g1, m.Rows). Nothing
// else of y is touched. Disjoint ranges may run at the same time.
//
// Quantized weights are fetched from memory ahead bytes before they are used; with 0 that is left to the processor.
func (k *Kernels) Mul(m *Matrix, g0, g1 int, act []byte, actStride, rows int, y []float32, yStride, ahead int) {
	if g0 >= g1 || rows <= 0 {
		return
	}
	used := 4 * m.K
	if m.form != nil {
		used = m.K / 32 * recordBytes
	}
	if g0 < 0 || g1 > m.Groups || len(act) < (rows-1)*actStride+used || actStride < 0 || actStride%4 != 0 ||
		len(y) < (rows-1)*yStride+min(g1*Lanes, m.Rows) || yStride < 0 || ahead < 0 {
		panic(
			fmt.Sprintf(
				"matmul: Mul of groups %d to %d of %d with %d rows of %d bytes in %d into %d floats, %d a row, "+
					"fetching %d ahead",
				g0,
				g1,
				m.Groups,
				rows,
				actStride,
				len(act),
				len(y),
				yStride,
				ahead,
			),
		)
	}
	c := call{g0: g0, g1: g1, act: act, actStride: actStride, rows: rows, y: y, yStride: yStride, ahead: ahead}
	if m.form != nil {
		k.quant(m, c)
	} else {
		k.float(m, c)
	}
}
