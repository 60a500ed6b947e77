package gguf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/quant"
)

// rewrite copies an open file through the Writer, without what only belongs to shards.
func rewrite(t testing.TB, f *File) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b)
	for _, k := range f.Keys() {
		v, _ := f.Get(k)
		if err := w.Set(k, v); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range f.Tensors() {
		if err := w.AddTensor(x.Name, x.Dims, x.Type); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range f.Tensors() {
		if err := w.WriteTensor(x.Name, x.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWriterRoundTrip(t *testing.T) {
	values := map[string]any{
		"u8": uint8(
			1,
		), "i8": int8(-1), "u16": uint16(2), "i16": int16(-2), "u32": uint32(3), "i32": int32(-3), "u64": uint64(4), "i64": int64(-4),
		"f32": float32(0.5), "f64": 0.25, "yes": true, "no": false, "text": "höher", "empty": "",
		"u8s": []uint8{
			1,
			2,
		}, "i8s": []int8{-1}, "u16s": []uint16{1}, "i16s": []int16{-1, 2}, "u32s": []uint32{7}, "i32s": []int32{-7, 8},
		"u64s": []uint64{
			9,
		}, "i64s": []int64{-9}, "f32s": []float32{1, 2.5}, "f64s": []float64{1, 2.5}, "bools": []bool{true, false},
		"strs": []string{"a", "", "ccc"}, "none": []float32{}, "nostrs": []string{},
	}
	for _, alignment := range []int{0, 8, 64} {
		t.Run(fmt.Sprint(alignment), func(t *testing.T) {
			var b bytes.Buffer
			w := NewWriter(&b)
			if alignment != 0 {
				if err := w.Set(keyAlignment, uint32(alignment)); err != nil {
					t.Fatal(err)
				}
			}
			for k, v := range values {
				if err := w.Set(k, v); err != nil {
					t.Fatal(err)
				}
			}
			data := map[string][]byte{"a": []byte("12345"), "b": bytes.Repeat([]byte{9}, 2*3*34), "c": {1, 2, 3, 4}}
			err := errors.Join(
				w.AddTensor("a", []int{5}, quant.I8),
				w.AddTensor("b", []int{32, 2, 3}, quant.Q8_0),
				w.AddTensor("c", []int{1, 1, 1, 1}, quant.F32),
				w.WriteTensor(
					"a",
					data["a"],
				),
				w.WriteTensorFrom("b", bytes.NewReader(append(data["b"], "left over"...))),
				w.WriteTensor("c", data["c"]),
				w.Close(),
			)
			if err != nil {
				t.Fatal(err)
			}
			if w.Close() == nil || w.Set("late", "") == nil {
				t.Error("a closed writer takes more")
			}
			f, err := Open(write(t, t.TempDir(), "m.gguf", b.Bytes()))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			checkFile(t, f)
			if alignment != 0 && f.Alignment() != alignment || f.Version() != 3 {
				t.Errorf("alignment %d, version %d", f.Alignment(), f.Version())
			}
			for k, want := range values {
				if got := plain(f, k); !reflect.DeepEqual(got, widen(want)) {
					t.Errorf("%s is %#v, want %#v", k, got, widen(want))
				}
			}
			for name, want := range data {
				x, ok := f.Tensor(name)
				if !ok || !bytes.Equal(x.Bytes(), want) {
					t.Errorf("tensor %s is not what was written", name)
				}
			}
		})
	}
}

// plain reads a key as the widest type of its kind.
func plain(f *File, key string) any {
	v, _ := f.Get(key)
	if n, ok := v.Int(); ok {
		return n
	}
	if x, ok := v.Float(); ok {
		return x
	}
	if b, ok := v.Bool(); ok {
		return b
	}
	if s, ok := v.Text(); ok {
		return s
	}
	if s, ok := v.Ints(); ok {
		return s
	}
	if s, ok := v.Floats(); ok {
		return s
	}
	if s, ok := v.Bools(); ok {
		return s
	}
	s, _ := v.Strings()
	return s
}

func widen(v any) any {
	r := reflect.ValueOf(v)
	switch {
	case r.CanInt():
		return r.Int()
	case r.CanUint():
		return int64(r.Uint())
	case r.CanFloat():
		return r.Float()
	case r.Kind() != reflect.Slice:
		return v
	}
	switch e := r.Type().Elem(); e.Kind() {
	case reflect.Bool, reflect.String:
		return v
	case reflect.Float32, reflect.Float64:
		out := make([]float32, r.Len())
		for i := range out {
			out[i] = float32(r.Index(i).Float())
		}
		return out
	}
	out := make([]int64, r.Len())
	for i := range out {
		out[i] = widen(r.Index(i).Interface()).(int64)
	}
	return out
}

func TestWriterRefuses(t *testing.T) {
	one := []int{1}
	for _, c := range []struct {
		name string
		do   func(w *Writer) error
		err  string
	}{
		{"key twice", func(w *Writer) error { return errors.Join(w.Set("a", "x"), w.Set("a", "x")) }, `key "a" is set twice`},
		{"key without name", func(w *Writer) error { return w.Set("", "x") }, "0 bytes"},
		{"value of int", func(w *Writer) error { return w.Set("a", 1) }, "a int cannot be stored"},
		{"value of struct", func(w *Writer) error { return w.Set("a", struct{}{}) }, "cannot be stored"},
		{"alignment", func(w *Writer) error { return w.Set(keyAlignment, uint32(3)) }, "power of two"},
		{"alignment late", func(w *Writer) error {
			return errors.Join(w.AddTensor("t", one, quant.F32), w.Set(keyAlignment, uint32(64)))
		}, "set before the first tensor"},
		{"tensor twice", func(w *Writer) error {
			return errors.Join(w.AddTensor("t", one, quant.F32), w.AddTensor("t", one, quant.F32))
		}, "declared twice"},
		{"part of a block", func(w *Writer) error { return w.AddTensor("t", one, quant.Q8_0) }, "whole number of Q8_0 blocks"},
		{"no dimensions", func(w *Writer) error { return w.AddTensor("t", nil, quant.F32) }, "0 dimensions"},
		{"dimension 0", func(w *Writer) error { return w.AddTensor("t", []int{0}, quant.F32) }, "must be positive"},
		{"too large", func(w *Writer) error { return w.AddTensor("t", []int{1 << 40, 1 << 40}, quant.F32) }, "must fit"},
		{"two too large", func(w *Writer) error {
			return errors.Join(w.AddTensor("t", []int{1 << 61}, quant.I8), w.AddTensor("s", []int{1 << 61}, quant.I8))
		}, "too large"},
		{"wrong size", func(w *Writer) error { return errors.Join(w.AddTensor("t", one, quant.F32), w.WriteTensor("t", nil)) }, "takes 4 bytes, 0 were given"},
		{"wrong order", func(w *Writer) error {
			return errors.Join(w.AddTensor("t", one, quant.I8), w.AddTensor("s", one, quant.I8), w.WriteTensor("s", []byte{1}))
		}, `but "t" comes next`},
		{"data missing", func(w *Writer) error { return errors.Join(w.AddTensor("t", one, quant.I8), w.Close()) }, "1 of 1 tensors have no data"},
		{"data not declared", func(w *Writer) error { return w.WriteTensor("t", nil) }, "all 0 tensors are written"},
		{"reader too short", func(w *Writer) error {
			return errors.Join(w.AddTensor("t", one, quant.F32), w.WriteTensorFrom("t", strings.NewReader("abc")))
		}, "EOF"},
		{"late key", func(w *Writer) error {
			return errors.Join(w.AddTensor("t", one, quant.I8), w.WriteTensor("t", []byte{1}), w.Set("a", "x"))
		}, "after the first tensor's data"},
		{"late tensor", func(w *Writer) error {
			return errors.Join(w.AddTensor("t", one, quant.I8), w.WriteTensor("t", []byte{1}), w.AddTensor("s", one, quant.I8))
		}, "after the first tensor's data"},
	} {
		w := NewWriter(io.Discard)
		err := c.do(w)
		if err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.err)
		}
		if again := w.Close(); again == nil {
			t.Errorf("%s: Close forgets the error", c.name)
		}
	}
}

// full fails after n bytes, as a disk does.
type full struct{ n int }

func (f *full) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestWriterReportsFullDisk(t *testing.T) {
	for _, room := range []int{0, 100, 3 << 20} {
		w := NewWriter(&full{room})
		data := make([]byte, 4<<20)
		err := errors.Join(w.AddTensor("t", []int{len(data)}, quant.I8), w.WriteTensor("t", data), w.Close())
		if err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("room for %d bytes: %v", room, err)
		}
	}
}
