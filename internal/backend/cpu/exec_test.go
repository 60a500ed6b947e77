package cpu

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/backend/backendtest"
	"github.com/baleenrun/baleen/internal/mmap"
	"github.com/baleenrun/baleen/internal/plan"
	"github.com/baleenrun/baleen/internal/quant"
)

func compileTest(t *testing.T, p *plan.Plan, threads int, o backend.Options) *exec {
	t.Helper()
	for range p.Groups {
		o.Pages = append(o.Pages, 40)
	}
	o.Slots = 8
	x, err := New(Options{Threads: threads}).Compile(p, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x.(*exec)
}

func tables(p *plan.Plan, first int) [][]int32 {
	ts := make([][]int32, len(p.Groups))
	for g := range ts {
		for i := range 10 {
			ts[g] = append(ts[g], int32(first+i))
		}
	}
	return ts
}

// TestStepAllocatesNothing holds for every kind of block: allocations in a step show as pauses.
func TestStepAllocatesNothing(t *testing.T) {
	for _, p := range backendtest.Plans(quant.Q4_0) {
		t.Run(p.Family, func(t *testing.T) {
			x := compileTest(t, p, 2, backend.Options{MaxRows: 16, MaxSeqs: 4, MaxOut: 4})
			b := &backend.Batch{Out: []int32{0, 1}, Tokens: make([]int32, 2), Seqs: []backend.Seq{
				{Rows: 1, Pages: tables(p, 0), Slot: 0}, {Rows: 1, Pages: tables(p, 10), Slot: 3},
			}}
			step := func() {
				if err := x.Submit(b); err != nil {
					t.Fatal(err)
				}
				if _, err := x.Wait(); err != nil {
					t.Fatal(err)
				}
				for i := range b.Seqs {
					b.Seqs[i].Pos++
					b.Tokens[i] = backendtest.Tokens(uint64(b.Seqs[i].Pos), 1)[0]
				}
			}
			step()
			// Choosing the next tokens allocates, outside of the step: a generator each.
			own := testing.AllocsPerRun(50, func() { _ = backendtest.Tokens(1, 1); _ = backendtest.Tokens(2, 1) })
			if n := testing.AllocsPerRun(50, step); n > own {
				t.Errorf("%v allocations a step", n-own)
			}
		})
	}
}

// TestSubmitRefuses feeds batches that would read or write where they must not.
func TestSubmitRefuses(t *testing.T) {
	plans := backendtest.Plans(quant.F32)
	p := plans[len(plans)-1] // has pages and slots
	x := compileTest(t, p, 1, backend.Options{MaxRows: 8, MaxSeqs: 2, MaxOut: 2})
	good := func() *backend.Batch {
		return &backend.Batch{
			Tokens: []int32{1, 2, 3}, Out: []int32{0, 2},
			Seqs: []backend.Seq{{Rows: 2, Pages: tables(p, 0)}, {Rows: 1, Pages: tables(p, 20), Slot: 1}},
		}
	}
	for _, c := range []struct {
		what string
		ruin func(b *backend.Batch)
	}{
		{"no rows", func(b *backend.Batch) { b.Tokens, b.Seqs, b.Out = nil, nil, nil }},
		{"too many rows", func(b *backend.Batch) { b.Tokens = make([]int32, 9); b.Seqs[0].Rows = 8 }},
		{"too many sequences", func(b *backend.Batch) { b.Seqs = append(b.Seqs, b.Seqs[0]) }},
		{"sequences beyond the rows", func(b *backend.Batch) { b.Seqs[1].Rows = 2 }},
		{"rows without a sequence", func(b *backend.Batch) { b.Seqs = b.Seqs[:1] }},
		{"a sequence without rows", func(b *backend.Batch) { b.Seqs[1].Rows = 0 }},
		{"a negative position", func(b *backend.Batch) { b.Seqs[0].Pos = -1 }},
		{"a position beyond the context", func(b *backend.Batch) { b.Seqs[0].Pos = p.Context }},
		{"a missing page", func(b *backend.Batch) { b.Seqs[0].Pos = 10 * backend.PageTokens }},
		{"a returned page", func(b *backend.Batch) { b.Seqs[0].Pages[0][0] = -1 }},
		{"a page that does not exist", func(b *backend.Batch) { b.Seqs[0].Pages[0][0] = 40 }},
		{"a slot that does not exist", func(b *backend.Batch) { b.Seqs[0].Slot = 8 }},
		{"no page table", func(b *backend.Batch) { b.Seqs[0].Pages = nil }},
		{"logits of a row that does not exist", func(b *backend.Batch) { b.Out[1] = 3 }},
		{"logits out of order", func(b *backend.Batch) { b.Out = []int32{1, 0} }},
		{"too many rows with logits", func(b *backend.Batch) { b.Out = []int32{0, 1, 2} }},
		{"a token outside the vocabulary", func(b *backend.Batch) { b.Tokens[2] = int32(p.Vocab) }},
		{"a negative token", func(b *backend.Batch) { b.Tokens[0] = -1 }},
	} {
		b := good()
		c.ruin(b)
		if err := x.Submit(b); err == nil || !strings.HasPrefix(err.Error(), "cpu: ") {
			t.Errorf("%s: error %v", c.what, err)
			if err == nil {
				_, _ = x.Wait()
			}
		}
	}
	if _, err := x.Wait(); err == nil {
		t.Error("Wait without Submit: no error")
	}
	if err := x.Submit(good()); err != nil {
		t.Fatal(err)
	}
	if err := x.Submit(good()); err == nil {
		t.Error("a second Submit: no error")
	}
	logits, err := x.Wait()
	if err != nil || len(logits) != 2*p.Vocab {
		t.Fatalf("%d logits, error %v", len(logits), err)
	}
	for i, v := range logits {
		if math.IsNaN(float64(v)) {
			t.Fatalf("logit %d is not a number", i)
		}
	}
}

// TestWrittenFileEndsTheStep: a model's file that another program writes while steps read from it costs the step, not
// the process, which touching a shortened mapping would, and gives no result: nothing tells which contents rows were
// of.
func TestWrittenFileEndsTheStep(t *testing.T) {
	p := backendtest.Plans(quant.Q4_0)[0]
	w := &p.Weights[p.Ops[0].(*plan.Embed).W]
	whole := w.Bytes
	step := func(x *exec) ([]float32, error) {
		t.Helper()
		b := &backend.Batch{
			Tokens: []int32{3, int32(p.Vocab - 1)},
			Out:    []int32{0, 1},
			Seqs:   []backend.Seq{{Rows: 2, Pages: tables(p, 0)}},
		}
		if err := x.Submit(b); err != nil {
			t.Fatal(err)
		}
		logits, err := x.Wait()
		return slices.Clone(logits), err
	}
	o := backend.Options{MaxRows: 4, MaxSeqs: 1, MaxOut: 4}
	want, err := step(compileTest(t, p, 2, o))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		write func(path string) error
		err   error
	}{
		{"left alone", func(string) error { return nil }, nil},
		{"removed", os.Remove, nil},
		{"replaced", func(path string) error {
			return errors.Join(os.WriteFile(path+".new", []byte("x"), 0o600), os.Rename(path+".new", path))
		}, nil},
		{"shortened", func(path string) error { return os.Truncate(path, 1) }, mmap.ErrChanged},
		{"overwritten", func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteAt([]byte{1, 2, 3}, 0)
			}
			return errors.Join(err, f.Close())
		}, mmap.ErrChanged},
	} {
		path := filepath.Join(t.TempDir(), "model")
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := mmap.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		w.Bytes, w.Parts = nil, []plan.Part{{Rows: w.Rows, File: file}}
		x := compileTest(t, p, 2, o)
		if n := testing.AllocsPerRun(20, func() { _, _ = x.embedding(w, 1, int(w.Size())/w.Rows, 0) }); n > 0 {
			t.Errorf("%v allocations a row", n)
		}
		for range 2 {
			if got, err := step(x); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s, before: %v; other logits than from memory: %v", test.name, err, !slices.Equal(got, want))
			}
		}
		if err := test.write(path); err != nil {
			t.Fatal(err)
		}
		for range 2 { // it is not forgotten
			got, err := step(x)
			if !errors.Is(err, test.err) || err == nil && !slices.Equal(got, want) {
				t.Errorf("%s: %v; other logits than from memory: %v", test.name, err, !slices.Equal(got, want))
			}
			if err != nil && (!strings.Contains(err.Error(), path) || got != nil) {
				t.Errorf("%s: error %v with %d logits", test.name, err, len(got))
			}
		}
	}
}

// A file that is written while its weights are packed may have given rows of both contents.
func TestFileWrittenWhilePackingIsRefused(t *testing.T) {
	p := backendtest.Plans(quant.Q8_0)[0]
	w := &p.Weights[len(p.Weights)-1]
	path := filepath.Join(t.TempDir(), "model")
	if err := os.WriteFile(path, w.Bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := mmap.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w.Bytes, w.Parts = nil, []plan.Part{{Rows: w.Rows, File: file}}
	var once sync.Once
	o := backend.Options{MaxRows: 4, MaxSeqs: 1, MaxOut: 4, Pages: make([]int, len(p.Groups))}
	o.Progress = func(done, total int64) {
		if done == total {
			once.Do(func() {
				f, err := os.OpenFile(path, os.O_WRONLY, 0)
				if err == nil {
					_, err = f.WriteAt([]byte{1}, 0)
				}
				if err = errors.Join(err, f.Close()); err != nil {
					t.Error(err)
				}
			})
		}
	}
	x, err := New(Options{Threads: 2}).Compile(p, o)
	if err == nil {
		x.Close()
	}
	if !errors.Is(err, mmap.ErrChanged) {
		t.Errorf("error %v", err)
	}
}

// TestCompileRefuses damages plans.
func TestCompileRefuses(t *testing.T) {
	limits := backend.Options{MaxRows: 4, MaxSeqs: 1, MaxOut: 1, Slots: 1}
	for _, c := range []struct {
		what string
		ruin func(p *plan.Plan, o *backend.Options, c *Options)
	}{
		{"no limits", func(_ *plan.Plan, o *backend.Options, _ *Options) { o.MaxRows = 0 }},
		{"negative threads", func(_ *plan.Plan, _ *backend.Options, c *Options) { c.Threads = -1 }},
		{"an unknown instruction set", func(_ *plan.Plan, _ *backend.Options, c *Options) { c.Limit = "mmx" }},
		{"pages for other groups", func(_ *plan.Plan, o *backend.Options, _ *Options) { o.Pages = append(o.Pages, 1) }},
		{"weights cut short", func(p *plan.Plan, _ *backend.Options, _ *Options) { p.Weights[1].Bytes = p.Weights[1].Bytes[4:] }},
		{"an embedding cut short", func(p *plan.Plan, _ *backend.Options, _ *Options) { p.Weights[0].Bytes = p.Weights[0].Bytes[4:] }},
		{"a format without kernels", func(p *plan.Plan, _ *backend.Options, _ *Options) { p.Weights[1].Type = quant.IQ1_S }},
	} {
		p := backendtest.Plans(quant.F32)[0]
		o := limits
		for range p.Groups {
			o.Pages = append(o.Pages, 4)
		}
		own := Options{Threads: 1}
		c.ruin(p, &o, &own)
		if x, err := New(own).Compile(p, o); err == nil {
			_ = x.Close()
			t.Errorf("%s: compiled", c.what)
		}
	}
}

// TestMemoryIsWhatCompileTakes compares the forecast with the allocations.
func TestMemoryIsWhatCompileTakes(t *testing.T) {
	for _, p := range backendtest.Plans(quant.Q8_0) {
		o := backend.Options{MaxRows: 64, MaxSeqs: 4, MaxOut: 4}
		m, err := New(Options{Threads: 2}).Memory(p, o)
		if err != nil {
			t.Fatal(err)
		}
		x := compileTest(t, p, 2, o)
		want := m.Weights + m.Scratch + 8*m.Slot
		for _, n := range m.Page {
			want += 40 * n
		}
		if got := x.arena.total; math.Abs(float64(got-want)) > 0.02*float64(want) {
			t.Errorf("%s: %d bytes allocated, %d forecast", p.Family, got, want)
		}
	}
}
