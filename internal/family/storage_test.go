package family

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/plan"
	"github.com/baleenrun/baleen/internal/plan/planref"
	"github.com/baleenrun/baleen/internal/quant"
	"github.com/baleenrun/baleen/internal/safetensors"
)

// sameLogits compares two checkpoints bit by bit.
func sameLogits(t *testing.T, a, b *variant) (pa, pb *plan.Plan) {
	t.Helper()
	ids := []int32{5, 9, 70, 33, 12, 101}
	pa, pb = lower(t, a.write(t), Options{}), lower(t, b.write(t), Options{})
	readAnyRows(t, pa)
	la, lb := planref.Run(pa, ids), planref.Run(pb, ids)
	for r := range la {
		for i := range la[r] {
			if math.Float32bits(la[r][i]) != math.Float32bits(lb[r][i]) {
				t.Fatalf("logit %d of row %d: %v and %v", i, r, la[r][i], lb[r][i])
			}
		}
	}
	return pa, pb
}

// matrices returns the names of the matrices inside the layers.
func (v *variant) matrices() []string {
	var names []string
	for _, name := range sortedKeys(v.tensors) {
		if strings.HasSuffix(name, "_proj.weight") {
			names = append(names, name)
		}
	}
	return names
}

// TestFP8 stores matrices as E4M3 in the layouts in use and compares with their decoded values.
func TestFP8(t *testing.T) {
	for _, test := range []struct {
		name, suffix       string
		tileRows, tileCols int // 0: all
		flat               bool
		config             map[string]any
	}{
		{"tiles", "_scale_inv", 32, 16, false, map[string]any{"quant_method": "fp8", "weight_block_size": []int{32, 16}}},
		{"rows", "_scale", 1, 0, false, map[string]any{"quant_method": "compressed-tensors", "format": "float-quantized"}},
		{"tensor", "_scale", 0, 0, true, map[string]any{"quant_method": "fp8"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, b := load(t, "llama"), load(t, "llama")
			a.config["quantization_config"] = test.config
			for i, name := range a.matrices() {
				shape := a.tensors[name].Shape
				tr, tc := test.tileRows, test.tileCols
				if tr == 0 {
					tr = shape[0]
				}
				if tc == 0 {
					tc = shape[1]
				}
				codes := make([]byte, shape[0]*shape[1])
				for j := range codes {
					codes[j] = byte(j*37+i*11) % 120 // no NaN
				}
				grid := []int{(shape[0] + tr - 1) / tr, (shape[1] + tc - 1) / tc}
				scales := make([]float32, grid[0]*grid[1])
				for j := range scales {
					scales[j] = 0.001 * float32(j%7+1)
				}
				values := make([]float32, len(codes))
				for j := range values {
					values[j] = quant.E4M3ToF32(codes[j]) * scales[j/shape[1]/tr*grid[1]+j%shape[1]/tc]
				}
				a.tensors[name] = safetensors.Entry{DType: "F8_E4M3", Shape: shape, Data: codes}
				if test.flat {
					grid = []int{}
				}
				a.tensors[name+test.suffix] = float32Entry(grid, scales)
				a.tensors[strings.TrimSuffix(name, "weight")+"input_scale"] = float32Entry([]int{}, []float32{1})
				b.tensors[name] = float32Entry(shape, values)
			}
			sameLogits(t, a, b)
		})
	}
}

// TestMLX stores matrices in MLX's affine groups, some with parameters of their own, and compares with decoded values.
func TestMLX(t *testing.T) {
	a, b := load(t, "gpt_oss"), load(t, "gpt_oss")
	own := "model.layers.1.self_attn.k_proj"
	a.config["quantization"] = map[string]any{
		"bits":       4,
		"group_size": 32,
		own:          map[string]any{"bits": 8, "group_size": 64},
	}
	a.config["quantization_config"] = a.config["quantization"]
	for i, name := range a.matrices() {
		base := strings.TrimSuffix(name, ".weight")
		bits, group := 4, 32
		if base == own {
			bits, group = 8, 64
		}
		shape := a.tensors[name].Shape
		n := shape[0] * shape[1]
		packed := make([]byte, n*bits/8)
		for j := range packed {
			packed[j] = byte(j*29 + i*5)
		}
		var scales, biases []byte
		for g := range n / group {
			scales = binary.LittleEndian.AppendUint16(scales, quant.F32ToBF16(0.02+0.001*float32(g%5)))
			biases = binary.LittleEndian.AppendUint16(biases, quant.F32ToBF16(-0.1-0.01*float32(g%3)))
		}
		values := make([]float32, n)
		if err := quant.DequantizeMLX(values, packed, scales, biases, quant.BF16, bits, group); err != nil {
			t.Fatal(err)
		}
		groups := []int{shape[0], shape[1] / group}
		a.tensors[name] = safetensors.Entry{DType: "U32", Shape: []int{shape[0], shape[1] * bits / 32}, Data: packed}
		a.tensors[base+".scales"] = safetensors.Entry{DType: "BF16", Shape: groups, Data: scales}
		a.tensors[base+".biases"] = safetensors.Entry{DType: "BF16", Shape: groups, Data: biases}
		b.tensors[name] = float32Entry(shape, values)
	}
	sameLogits(t, a, b)
}

// TestMXFP4 stores gpt-oss's experts as the published checkpoints do, and compares with decoded values in the plain
// layout.
func TestMXFP4(t *testing.T) {
	a, b := load(t, "gpt_oss"), load(t, "gpt_oss")
	a.config["quantization_config"] = map[string]any{"quant_method": "mxfp4"}
	for _, name := range sortedKeys(a.tensors) {
		if !strings.HasSuffix(name, "experts.gate_up_proj") && !strings.HasSuffix(name, "experts.down_proj") {
			continue
		}
		shape := a.tensors[name].Shape // [experts][k][rows]
		experts, k, rows := shape[0], shape[1], shape[2]
		n := experts * rows * k
		blocks, scales := make([]byte, n/2), make([]byte, n/32)
		for j := range blocks {
			blocks[j] = byte(j*53 + 7)
		}
		for j := range scales {
			scales[j] = byte(122 + j%4)
		}
		file := make([]byte, n/32*17)
		if err := quant.RepackMXFP4(file, blocks, scales); err != nil {
			t.Fatal(err)
		}
		values, turned := make([]float32, n), make([]float32, n)
		if err := quant.Dequantize(quant.MXFP4, values, file); err != nil {
			t.Fatal(err)
		}
		for e := range experts {
			for r := range rows {
				for i := range k {
					turned[(e*k+i)*rows+r] = values[(e*rows+r)*k+i]
				}
			}
		}
		delete(a.tensors, name)
		a.tensors[name+"_blocks"] = safetensors.Entry{
			DType: "U8",
			Shape: []int{experts, rows, k / 32, 16},
			Data:  blocks,
		}
		a.tensors[name+"_scales"] = safetensors.Entry{DType: "U8", Shape: []int{experts, rows, k / 32}, Data: scales}
		b.tensors[name] = float32Entry(shape, turned)
	}
	pa, _ := sameLogits(t, a, b)
	if !slices.ContainsFunc(pa.Weights, func(w plan.Weight) bool { return w.Type == quant.MXFP4 && w.Experts == 4 }) {
		t.Error("the experts did not stay MXFP4")
	}
}

// TestWeightsStayWhereTheyAre checks that matrices which need no change are read from where the file has them.
func TestWeightsStayWhereTheyAre(t *testing.T) {
	for _, path := range []string{"testdata/goldens/llama", "testdata/goldens/phi3", "testdata/ggufs/mixtral.gguf"} {
		for _, w := range lower(t, path, Options{}).Weights {
			if len(w.Parts) != 1 || w.Parts[0].File == nil || w.Parts[0].Rows != w.AllRows() || w.Bytes != nil {
				t.Errorf("%s: weight %q is not one run of the file's rows", path, w.Name)
			}
		}
	}
}
