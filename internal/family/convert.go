package family

import (
	"encoding/binary"
	"errors"
	"math"
	"sync"

	"github.com/baleenrun/baleen/internal/plan"
	"github.com/baleenrun/baleen/internal/quant"
	"github.com/baleenrun/baleen/internal/safetensors"
)

// Converters make rows of weights that no file holds as they are, where and when these are read: nothing but the rows
// asked for is in memory.

// convertBytes is about how much one read covers where a converter reads in several.
const convertBytes = 256 << 10

// scratch holds memory that converters read into.
var scratch = sync.Pool{New: func() any { return new(buffers) }}

type buffers struct {
	bytes  []byte
	floats []float32
}

func (b *buffers) take(n int) []byte {
	if cap(b.bytes) < n {
		b.bytes = make([]byte, n)
	}
	return b.bytes[:n]
}

func (b *buffers) numbers(n int) []float32 {
	if cap(b.floats) < n {
		b.floats = make([]float32, n)
	}
	return b.floats[:n]
}

// withScratch runs f with memory of its own.
func withScratch(f func(b *buffers) error) error {
	b := scratch.Get().(*buffers)
	defer scratch.Put(b)
	return f(b)
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// readPart reads bytes of a tensor, from byte at on.
func readPart(t *safetensors.Tensor, dst []byte, at int) error {
	file, off := t.File()
	return plan.ReadFull(file, dst, off+int64(at))
}

func spanOf(t *safetensors.Tensor, at, n int) plan.Span {
	file, off := t.File()
	return plan.Span{File: file, Off: off + int64(at), Len: int64(n)}
}

// strided is every step-th row of a matrix, from the first on.
type strided struct {
	src         *plan.Weight
	first, step int
}

func (s *strided) ReadRows(dst []byte, row, n int) error {
	if s.step == 1 {
		return s.src.ReadRows(dst, s.first+row, n)
	}
	size := len(dst) / n
	most := max(1, convertBytes/(size*s.step), s.src.Together()/s.step) // rows at once
	return withScratch(func(b *buffers) error {
		for n > 0 {
			m := min(n, most)
			rows := (m-1)*s.step + 1
			buf := b.take(rows * size)
			if err := s.src.ReadRows(buf, s.first+row*s.step, rows); err != nil {
				return err
			}
			for i := range m {
				copy(dst[i*size:(i+1)*size], buf[i*s.step*size:])
			}
			dst, row, n = dst[m*size:], row+m, n-m
		}
		return nil
	})
}

func (s *strided) Spans(row, n int) []plan.Span {
	return s.src.Spans(s.first+row*s.step, (n-1)*s.step+1)
}

// widened is a matrix of plain numbers as float32.
type widened struct{ src *plan.Weight }

func (w widened) ReadRows(dst []byte, row, n int) error {
	return withScratch(func(b *buffers) error {
		values, err := readFloats(w.src, b, row, n)
		if err != nil {
			return err
		}
		return quant.Quantize(quant.F32, dst, values)
	})
}

func (w widened) Spans(row, n int) []plan.Span { return w.src.Spans(row, n) }

// readFloats decodes rows of a matrix into b.
func readFloats(w *plan.Weight, b *buffers, row, n int) ([]float32, error) {
	size, err := w.Type.RowBytes(w.K)
	if err != nil {
		return nil, err
	}
	stored, values := b.take(n*size), b.numbers(n*w.K)
	if err := w.ReadRows(stored, row, n); err != nil {
		return nil, err
	}
	return values, quant.Dequantize(w.Type, values, stored)
}

// transposed is a matrix whose rows are columns of another one, each step behind the one before: of plain numbers in
// the same format, else float32.
type transposed struct {
	src         *plan.Weight
	width       int // bytes of an element
	first, step int
}

// transpose returns the type and the one part of the transposed matrix.
func transpose(t *tensor) (quant.Type, plan.Part) {
	c := &transposed{t.matrix(), 4, 0, 1}
	p := plan.Part{Rows: t.k(), Convert: c, Together: t.k()}
	if !isPlain(t.typ) {
		return quant.F32, p
	}
	c.width = t.typ.BlockBytes()
	if c.inFile() != nil {
		p.Together = min(t.k(), max(1, 8*convertBytes/(c.src.Rows*c.width)))
	}
	return t.typ, p
}

// inFile returns the one part of a source that a file holds as it is.
func (t *transposed) inFile() *plan.Part {
	if isPlain(t.src.Type) && len(t.src.Parts) == 1 && t.src.Parts[0].Convert == nil {
		return &t.src.Parts[0]
	}
	return nil
}

func (t *transposed) ReadRows(dst []byte, row, n int) error {
	const most = 32 // source rows at once: as many elements are written side by side
	return withScratch(func(b *buffers) error {
		for i := 0; i < t.src.Rows; i += most {
			m := min(most, t.src.Rows-i)
			columns, stride, err := t.columns(b, i, m, t.first+row*t.step, (n-1)*t.step+1)
			if err != nil {
				return err
			}
			for c := range n {
				out := dst[(c*t.src.Rows+i)*t.width:]
				for r := range m {
					at := r*stride + c*t.step*t.width
					if t.width == 2 {
						binary.LittleEndian.PutUint16(out[2*r:], binary.LittleEndian.Uint16(columns[at:]))
					} else {
						binary.LittleEndian.PutUint32(out[4*r:], binary.LittleEndian.Uint32(columns[at:]))
					}
				}
			}
		}
		return nil
	})
}

// columns reads elements [first,first+n) of m source rows from row i on, and says how far apart rows lie in them.
func (t *transposed) columns(b *buffers, i, m, first, n int) (columns []byte, stride int, err error) {
	if !isPlain(t.src.Type) {
		values, err := readFloats(t.src, b, i, m)
		if err != nil {
			return nil, 0, err
		}
		columns = b.take(4 * len(values))
		return columns[4*first:], 4 * t.src.K, quant.Quantize(quant.F32, columns, values)
	}
	size := t.src.K * t.width
	p := t.inFile()
	if p == nil || n == t.src.K {
		columns = b.take(m * size)
		return columns[first*t.width:], size, t.src.ReadRows(columns, i, m)
	}
	stride = n * t.width
	columns = b.take(m * stride)
	for r := range m {
		if err := plan.ReadFull(p.File, columns[r*stride:(r+1)*stride], p.Off+int64((i+r)*size+first*t.width)); err != nil {
			return nil, 0, err
		}
	}
	return columns, stride, nil
}

// Spans lists all of the source: each of its rows has an element of every column.
func (t *transposed) Spans(_, _ int) []plan.Span { return t.src.Spans(0, t.src.Rows) }

// narrowed is a tensor of float64 as float32.
type narrowed struct {
	t *safetensors.Tensor
	k int
}

func (c *narrowed) ReadRows(dst []byte, row, n int) error {
	values, err := c.t.ReadFloat32s(row*c.k, n*c.k)
	if err != nil {
		return err
	}
	return quant.Quantize(quant.F32, dst, values)
}

func (c *narrowed) Spans(row, n int) []plan.Span {
	return []plan.Span{spanOf(c.t, 8*row*c.k, 8*n*c.k)}
}

// fp8Rows is a matrix of E4M3 codes whose tiles have scales.
type fp8Rows struct {
	codes, scales      *safetensors.Tensor
	typ                quant.Type // BF16, or F32 where that would lose something
	cols               int
	tileRows, tileCols int
}

// tiles returns the rows of tiles that rows [row,row+n) lie in.
func (c *fp8Rows) tiles(row, n int) (first, end int) {
	return row / c.tileRows, (row+n-1)/c.tileRows + 1
}

func (c *fp8Rows) ReadRows(dst []byte, row, n int) error {
	first, end := c.tiles(row, n)
	across := ceilDiv(c.cols, c.tileCols)
	scales, err := c.scales.ReadFloat32s(first*across, (end-first)*across)
	if err != nil {
		return err
	}
	return withScratch(func(b *buffers) error {
		codes, values := b.take(n*c.cols), b.numbers(n*c.cols)
		if err := readPart(c.codes, codes, row*c.cols); err != nil {
			return err
		}
		for at := 0; at < n; { // up to the end of each row of tiles
			tile := (row + at) / c.tileRows
			m := min(n-at, (tile+1)*c.tileRows-row-at)
			from, to := at*c.cols, (at+m)*c.cols
			s := scales[(tile-first)*across:][:across]
			if err := quant.DequantizeFP8(values[from:to], codes[from:to], m, c.cols, s, m, c.tileCols); err != nil {
				return err
			}
			at += m
		}
		return quant.Quantize(c.typ, dst, values)
	})
}

func (c *fp8Rows) Spans(row, n int) []plan.Span {
	first, end := c.tiles(row, n)
	across := ceilDiv(c.cols, c.tileCols) * c.scales.Size() / c.scales.Elements()
	return []plan.Span{spanOf(c.codes, row*c.cols, n*c.cols), spanOf(c.scales, first*across, (end-first)*across)}
}

// exactInBF16 reports whether BF16 holds every code times every scale. It reads the scales up to one that says no.
func (c *fp8Rows) exactInBF16() (bool, error) {
	for at, total := 0, c.scales.Elements(); at < total; {
		n := min(total-at, convertBytes/4)
		scales, err := c.scales.ReadFloat32s(at, n)
		if err != nil {
			return false, err
		}
		for _, s := range scales {
			if !fp8ExactInBF16(s) {
				return false, nil
			}
		}
		at += n
	}
	return true, nil
}

// fp8ExactInBF16 reports whether BF16, with 8 significant bits, holds every E4M3 number times s. Their odd parts are
// 1 to 15 and their lowest bit stands for 2^-9, so the one with 15 such bits needs most.
func fp8ExactInBF16(s float32) bool {
	const unit = 1.0 / 512
	exact := func(v float32) bool { return quant.BF16ToF32(quant.F32ToBF16(v)) == v }
	low := s * unit
	return !math.IsInf(float64(s), 0) && exact(s) && exact(low) && exact(15*low) && float64(s)*unit == float64(low)
}

// mxfp4Rows is a matrix in Hugging Face's layout of MXFP4 as GGUF's blocks.
type mxfp4Rows struct {
	blocks, scales *safetensors.Tensor
	each           int // blocks of a row
}

func (c *mxfp4Rows) ReadRows(dst []byte, row, n int) error {
	first, count := row*c.each, n*c.each
	return withScratch(func(b *buffers) error {
		buf := b.take(17 * count)
		blocks, scales := buf[:16*count], buf[16*count:]
		if err := errors.Join(readPart(c.blocks, blocks, 16*first), readPart(c.scales, scales, first)); err != nil {
			return err
		}
		return quant.RepackMXFP4(dst, blocks, scales)
	})
}

func (c *mxfp4Rows) Spans(row, n int) []plan.Span {
	first, count := row*c.each, n*c.each
	return []plan.Span{spanOf(c.blocks, 16*first, 16*count), spanOf(c.scales, first, count)}
}

// mlxRows is a matrix in MLX's affine groups.
type mlxRows struct {
	words, scales, biases *safetensors.Tensor
	typ                   quant.Type // of scales and biases, and of the numbers
	bits, group, k        int
}

// check compares the sizes of the three tensors.
func (c *mlxRows) check(rows int) error {
	if err := quant.DequantizeMLX(nil, nil, nil, nil, c.typ, c.bits, c.group); err != nil {
		return err
	}
	if _, groups := c.sizes(rows); groups != c.scales.Size() || groups != c.biases.Size() {
		return errors.New("its scales and biases are not those of its groups")
	}
	return nil
}

// sizes returns the bytes of words, and of scales or biases, of so many rows.
func (c *mlxRows) sizes(rows int) (words, groups int) {
	return rows * c.k / 8 * c.bits, rows * c.k / c.group * c.typ.BlockBytes()
}

func (c *mlxRows) ReadRows(dst []byte, row, n int) error {
	wordsAt, groupsAt := c.sizes(row)
	words, groups := c.sizes(n)
	return withScratch(func(b *buffers) error {
		buf, values := b.take(words+2*groups), b.numbers(n*c.k)
		w, s, o := buf[:words], buf[words:words+groups], buf[words+groups:]
		err := errors.Join(
			readPart(c.words, w, wordsAt), readPart(c.scales, s, groupsAt), readPart(c.biases, o, groupsAt),
		)
		if err != nil {
			return err
		}
		if err := quant.DequantizeMLX(values, w, s, o, c.typ, c.bits, c.group); err != nil {
			return err
		}
		return quant.Quantize(c.typ, dst, values)
	})
}

func (c *mlxRows) Spans(row, n int) []plan.Span {
	wordsAt, groupsAt := c.sizes(row)
	words, groups := c.sizes(n)
	return []plan.Span{
		spanOf(c.words, wordsAt, words), spanOf(c.scales, groupsAt, groups), spanOf(c.biases, groupsAt, groups),
	}
}
