package plan

import (
	"fmt"
	"io"
	"slices"

	"github.com/baleenrun/baleen/internal/quant"
)

// A Weight is a matrix, or a stack of Experts matrices, of Rows output features by K input features. Experts follow
// each other: row r of expert e is row e*Rows+r of the weight. K is a multiple of the type's block size.
//
// Its bytes are in memory, or are read where they are needed: lowering reads none.
// RATIONALE: Why are converted weights made while they are packed?
type Weight struct {
	Name    string     // for messages: the tensor's name in the container
	Type    quant.Type // storage format of the bytes
	Experts int        // 0: one matrix
	Rows, K int

	// Bytes holds the rows where they are in memory. It is never written to.
	Bytes []byte
	// Parts say where the rows come from otherwise, in order.
	Parts []Part
}

// A Part is a run of a weight's rows that come from one place.
type Part struct {
	Rows int
	// File and Off locate the rows where a file holds them as they are, one after the other.
	File File
	Off  int64
	// Convert makes them where no file does. File is nil then.
	Convert Converter
	// Together is how many rows of a converted part are best made at once, because few cost nearly as much; 0: any
	// number.
	Together int
}

// A File is what weights are read from, at positions: no page of it is touched in a mapping, where a file that was
// shortened would end the process.
type File interface {
	io.ReaderAt
	// Unchanged returns an error where the contents may no longer be what they were when the plan was made.
	Unchanged() error
}

// A Converter makes rows in the weight's format from what files hold. Its methods may be called from several
// goroutines.
type Converter interface {
	// ReadRows writes n rows of the part, from row on, to dst.
	ReadRows(dst []byte, row, n int) error
	// Spans lists what of files these rows are made from.
	Spans(row, n int) []Span
}

// A Span is a run of bytes of a file.
type Span struct {
	File     File
	Off, Len int64
}

// AllRows is the number of rows of all experts.
func (w *Weight) AllRows() int { return max(1, w.Experts) * w.Rows }

// Size is the number of bytes in the weight's format; 0 where it has no such rows.
func (w *Weight) Size() int64 {
	n, err := w.Type.RowBytes(w.K)
	if err != nil {
		return 0
	}
	return int64(n) * int64(w.AllRows())
}

// ReadRows writes n rows from row on, counted over all experts, to dst, which has their size.
func (w *Weight) ReadRows(dst []byte, row, n int) error {
	size, err := w.Type.RowBytes(w.K)
	if err != nil {
		return fmt.Errorf("weight %q: %w", w.Name, err)
	}
	if row < 0 || n < 0 || row > w.AllRows()-n || len(dst) != n*size {
		return fmt.Errorf("weight %q: rows %d to %d of %d into %d bytes, a row has %d",
			w.Name, row, row+n, w.AllRows(), len(dst), size)
	}
	if w.Parts == nil {
		copy(dst, w.Bytes[row*size:])
		return nil
	}
	err = w.eachPart(row, n, func(p *Part, row, n int) error {
		part := dst[:n*size]
		dst = dst[n*size:]
		return p.readRows(part, row, n)
	})
	if err != nil {
		return fmt.Errorf("reading weight %q: %w", w.Name, err)
	}
	return nil
}

// eachPart calls f for the parts of rows [row, row+n), with the rows counted within each.
func (w *Weight) eachPart(row, n int, f func(p *Part, row, n int) error) error {
	for i := range w.Parts {
		p := &w.Parts[i]
		if row >= p.Rows {
			row -= p.Rows
			continue
		}
		if n == 0 {
			return nil
		}
		m := min(n, p.Rows-row)
		if err := f(p, row, m); err != nil {
			return err
		}
		row, n = 0, n-m
	}
	return nil
}

func (p *Part) readRows(dst []byte, row, n int) error {
	if p.Convert != nil {
		return p.Convert.ReadRows(dst, row, n)
	}
	return ReadFull(p.File, dst, p.Off+int64(row)*int64(len(dst)/n))
}

// ReadFull fills dst from off on.
func ReadFull(f io.ReaderAt, dst []byte, off int64) error {
	n, err := f.ReadAt(dst, off)
	switch {
	case n == len(dst):
		return nil
	case err == nil || err == io.EOF:
		return io.ErrUnexpectedEOF
	}
	return err
}

// Spans lists what of files n rows are made from, from row on, counted over all experts. It is empty for rows in
// memory.
func (w *Weight) Spans(row, n int) []Span {
	size, err := w.Type.RowBytes(w.K)
	if err != nil {
		return nil
	}
	var spans []Span
	_ = w.eachPart(row, n, func(p *Part, row, n int) error {
		if p.Convert != nil {
			spans = append(spans, p.Convert.Spans(row, n)...)
		} else {
			spans = append(spans, Span{p.File, p.Off + int64(row)*int64(size), int64(n) * int64(size)})
		}
		return nil
	})
	return spans
}

// Files lists the files that a weight is made from, each once.
func (w *Weight) Files() []File {
	var files []File
	seen := map[File]bool{}
	for _, s := range w.Spans(0, w.AllRows()) {
		if !seen[s.File] {
			seen[s.File] = true
			files = append(files, s.File)
		}
	}
	return files
}

// Together is how many rows are best read at once.
func (w *Weight) Together() int {
	n := 1
	for i := range w.Parts {
		n = max(n, w.Parts[i].Together)
	}
	return n
}

// Files lists the files that the plan's weights come from, each once, where want says so.
func (p *Plan) Files(want func(id WeightID) bool) []File {
	var files []File
	for i := range p.Weights {
		if !want(WeightID(i)) {
			continue
		}
		for _, f := range p.Weights[i].Files() {
			if !slices.Contains(files, f) {
				files = append(files, f)
			}
		}
	}
	return files
}

// Unchanged returns the first file's error where one may no longer hold what it held when the plan was made.
func Unchanged(files []File) error {
	for _, f := range files {
		if err := f.Unchanged(); err != nil {
			return err
		}
	}
	return nil
}
