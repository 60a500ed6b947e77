package quant_test

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/quant"
	"github.com/baleenrun/baleen/internal/safetensors"
)

// fixtures opens what testdata/make_fixtures.py wrote with the reference implementations.
func fixtures(t testing.TB) *safetensors.Set {
	t.Helper()
	set, err := safetensors.Open("testdata/formats.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	return set
}

func raw(t testing.TB, set *safetensors.Set, name string) []byte {
	t.Helper()
	x, ok := set.Tensor(name)
	if !ok {
		t.Fatalf("the fixture has no %s", name)
	}
	return x.Bytes()
}

func floats(t testing.TB, set *safetensors.Set, name string) []float32 {
	t.Helper()
	b := raw(t, set, name)
	out := make([]float32, len(b)/4)
	if err := quant.Dequantize(quant.F32, out, b); err != nil {
		t.Fatal(err)
	}
	return out
}

// sameBits compares exactly, signs of zeros included; any NaN equals any other.
func sameBits(got, want []float32) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d numbers, want %d", len(got), len(want))
	}
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) && (got[i] == got[i] || want[i] == want[i]) {
			return fmt.Errorf("element %d is %g (%08x), want %g (%08x)",
				i, got[i], math.Float32bits(got[i]), want[i], math.Float32bits(want[i]))
		}
	}
	return nil
}

func TestDequantizeMatchesReference(t *testing.T) {
	set := fixtures(t)
	seen := 0
	for _, x := range set.Tensors() {
		name, ok := strings.CutSuffix(x.Name, ".blocks")
		if !ok {
			continue
		}
		seen++
		t.Run(name, func(t *testing.T) {
			typ, err := quant.ParseType(name)
			if err != nil {
				t.Fatal(err)
			}
			want := floats(t, set, name+".values")
			got := make([]float32, len(want))
			if err := quant.Dequantize(typ, got, x.Bytes()); err != nil {
				t.Fatal(err)
			}
			if err := sameBits(got, want); err != nil {
				t.Error(err)
			}
		})
	}
	if seen != 23 {
		t.Errorf("the fixture has blocks of %d formats, want 23", seen)
	}
}

func TestQuantizeMatchesReference(t *testing.T) {
	set := fixtures(t)
	src := floats(t, set, "encode.source")
	for _, typ := range []quant.Type{quant.F16, quant.BF16, quant.Q4_0, quant.Q4_1, quant.Q5_0, quant.Q5_1, quant.Q8_0, quant.MXFP4} {
		t.Run(typ.String(), func(t *testing.T) {
			want := raw(t, set, "encode."+typ.String())
			got := make([]byte, len(want))
			if err := quant.Quantize(typ, got, src); err != nil {
				t.Fatal(err)
			}
			size := typ.BlockBytes()
			for i := 0; i < len(want); i += size {
				if !bytes.Equal(got[i:i+size], want[i:i+size]) {
					t.Fatalf("block %d is %x, want %x", i/size, got[i:i+size], want[i:i+size])
				}
			}
		})
	}
}

func TestDequantizeMLXMatchesReference(t *testing.T) {
	set := fixtures(t)
	seen := 0
	for _, x := range set.Tensors() {
		base, ok := strings.CutSuffix(x.Name, ".packed")
		if !ok {
			continue
		}
		seen++
		t.Run(base, func(t *testing.T) {
			part := strings.Split(base, ".")
			typ, err := quant.ParseType(part[1])
			if err != nil {
				t.Fatal(err)
			}
			bits, _ := strconv.Atoi(part[2])
			group, _ := strconv.Atoi(part[3])
			want := floats(t, set, base+".values")
			got := make([]float32, len(want))
			err = quant.DequantizeMLX(
				got,
				x.Bytes(),
				raw(t, set, base+".scales"),
				raw(t, set, base+".biases"),
				typ,
				bits,
				group,
			)
			if err != nil {
				t.Fatal(err)
			}
			if err := sameBits(got, want); err != nil {
				t.Error(err)
			}
		})
	}
	if seen != 18 {
		t.Errorf("the fixture has %d mlx cases, want 18", seen)
	}
}
