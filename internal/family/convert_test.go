package family

import (
	"bytes"
	"encoding/binary"
	"math"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/plan"
	"github.com/baleenrun/baleen/internal/quant"
	"github.com/baleenrun/baleen/internal/synth"
)

// sized is a file of a plan whose end is known.
type sized interface {
	plan.File
	Len() int
}

// readAnyRows checks that rows of weights are the same however many are read at once, and that what they say they are
// made from lies in the file.
func readAnyRows(t *testing.T, p *plan.Plan) {
	t.Helper()
	for i := range p.Weights {
		w := &p.Weights[i]
		whole := make([]byte, w.Size())
		if err := w.ReadRows(whole, 0, w.AllRows()); err != nil {
			t.Fatal(err)
		}
		size := len(whole) / w.AllRows()
		for _, n := range []int{1, 2, 7, 16, w.Rows} {
			for row := 0; row < w.AllRows(); row += n {
				m := min(n, w.AllRows()-row)
				got := make([]byte, m*size)
				if err := w.ReadRows(got, row, m); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, whole[row*size:(row+m)*size]) {
					t.Fatalf(
						"weight %q: rows %d to %d of %d are others when read alone",
						w.Name,
						row,
						row+m,
						w.AllRows(),
					)
				}
			}
		}
		spans := w.Spans(w.Rows-1, 1)
		if len(spans) == 0 {
			t.Errorf("weight %q does not say what it is made from", w.Name)
		}
		for _, s := range append(spans, w.Spans(0, w.AllRows())...) {
			if s.Off < 8 || s.Len < 1 || s.Off+s.Len > int64(s.File.(sized).Len()) {
				t.Errorf(
					"weight %q is made from bytes %d to %d of a file of %d",
					w.Name,
					s.Off,
					s.Off+s.Len,
					s.File.(sized).Len(),
				)
			}
		}
	}
}

// TestAnyRowsCanBeRead goes through all goldens: experts joined, projections cut apart, rows picked, matrices
// transposed.
func TestAnyRowsCanBeRead(t *testing.T) {
	for _, pattern := range []string{"testdata/goldens/*", "testdata/ggufs/*"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatal(err, paths)
		}
		for _, path := range paths {
			t.Run(filepath.Base(path), func(t *testing.T) { readAnyRows(t, lower(t, path, Options{})) })
		}
	}
}

// TestExpertsOfSeveralTypes joins experts of which some are stored wider than the others.
func TestExpertsOfSeveralTypes(t *testing.T) {
	a, b := load(t, "mixtral"), load(t, "mixtral")
	n := 0
	for _, name := range sortedKeys(a.tensors) {
		e := a.tensors[name]
		if !strings.Contains(name, "experts.") {
			continue
		}
		values := make([]float32, len(e.Data)/2)
		for i := range values {
			values[i] = quant.BF16ToF32(binary.LittleEndian.Uint16(e.Data[2*i:]))
		}
		b.tensors[name] = float32Entry(e.Shape, values)
		if n++; n%3 == 0 {
			a.tensors[name] = b.tensors[name]
		}
	}
	if n < 6 {
		t.Fatalf("the golden has %d matrices of experts", n)
	}
	sameLogits(t, a, b)
}

// TestFP8ExactInBF16 compares the test of a scale with all products of it.
func TestFP8ExactInBF16(t *testing.T) {
	scales := []float32{
		0, 1, -1, 3, 15, 17, 19, 21, 255, 257, 0.1, 1.0 / 3, 1.0 / 15, 1 << 20, 0x1p-100, 0x1p-120, 0x11p-124,
		0x1p-124, 0x1p-125, 0x1p-133, 0x1p-149,
		0x1.fp127, 0x1p127, 0x11p120, math.MaxFloat32, 0x1.111112p3, 0x1.88p0, 0x1.1p-100,
	}
	for i := range 2000 {
		scales = append(scales, math.Float32frombits(uint32(i*7919)<<11), math.Float32frombits(uint32(i)<<19))
	}
	for _, s := range scales {
		want := true
		for code := range 256 {
			v := quant.E4M3ToF32(byte(code))
			if v != v {
				continue // not a number: neither format loses that
			}
			v *= s
			want = want && quant.BF16ToF32(quant.F32ToBF16(v)) == v
		}
		if math.IsInf(float64(s), 0) || s != s {
			want = false
		}
		if got := fp8ExactInBF16(s); got && !want {
			t.Errorf("scale %x: exact %v, want %v", s, got, want)
		} else if want && !got && math.Abs(float64(s)) > 0x1p-110 {
			t.Errorf("scale %x: %v, want %v", s, got, want)
		}
	}
	if got := quant.BF16ToF32(quant.F32ToBF16(float32(math.NaN()))); got == got {
		t.Error("BF16 turns what is no number into one")
	}
}

// TestLoweringReadsNoWeights lowers checkpoints of some GiB, in files without contents, that would all be converted.
func TestLoweringReadsNoWeights(t *testing.T) {
	for _, storage := range synth.Storages {
		t.Run(string(storage), func(t *testing.T) {
			path := t.TempDir()
			f := synth.Folder{Storage: storage, Hidden: 4096, Width: 14336, Experts: 8, Layers: 2}
			if err := f.Write(path); err != nil {
				t.Skipf("no files without contents can be made here: %v", err)
			}
			c, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			p, err := c.Lower(Options{Context: 64})
			runtime.ReadMemStats(&after)
			if err != nil {
				t.Fatal(err)
			}
			var size int64
			for i := range p.Weights {
				size += p.Weights[i].Size()
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 || size < 1<<30 {
				t.Errorf("lowering weights of %d MiB allocated %d KiB", size>>20, took>>10)
			}
			// A row of the last expert is there all the same.
			w := &p.Weights[len(p.Weights)-2]
			row := make([]byte, w.Size()/int64(w.AllRows()))
			if err := w.ReadRows(row, w.AllRows()-1, 1); err != nil {
				t.Error(err)
			}
		})
	}
}
