package family

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/plan/planref"
	"github.com/baleenrun/baleen/internal/quant"
	"github.com/baleenrun/baleen/internal/safetensors"
)

// variant is a golden checkpoint in memory, to be changed and written elsewhere.
type variant struct {
	config  map[string]any
	tensors map[string]safetensors.Entry
}

func load(t *testing.T, name string) *variant {
	t.Helper()
	dir := filepath.Join("testdata", "goldens", name)
	v := &variant{config: map[string]any{}, tensors: map[string]safetensors.Entry{}}
	data, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &v.config); err != nil {
		t.Fatal(err)
	}
	set, err := safetensors.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	for _, s := range set.Tensors() {
		v.tensors[s.Name] = safetensors.Entry{
			Name:  s.Name,
			DType: s.DType,
			Shape: s.Shape,
			Data:  bytes.Clone(s.Bytes()),
		}
	}
	return v
}

// write writes the checkpoint to a new folder.
func (v *variant) write(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	data, err := json.Marshal(v.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	var entries []safetensors.Entry
	for _, name := range sortedKeys(v.tensors) {
		e := v.tensors[name]
		e.Name = name
		entries = append(entries, e)
	}
	var file bytes.Buffer
	if err := safetensors.Write(&file, entries, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "model.safetensors"), file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	for i := range keys { // insertion sort: a few dozen names
		for j := i; j > 0 && keys[j] < keys[j-1]; j-- {
			keys[j], keys[j-1] = keys[j-1], keys[j]
		}
	}
	return keys
}

// rename changes the names of tensors.
func (v *variant) rename(change func(name string) string) {
	renamed := map[string]safetensors.Entry{}
	for name, e := range v.tensors {
		renamed[change(name)] = e
	}
	v.tensors = renamed
}

func float32Entry(shape []int, values []float32) safetensors.Entry {
	var data []byte
	for _, f := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(f))
	}
	return safetensors.Entry{DType: "F32", Shape: shape, Data: data}
}

// TestSpellings changes how configurations and tensors are written, not what they say: the logits stay those of the
// golden.
func TestSpellings(t *testing.T) {
	flat := func(v *variant) { // the spelling before rope_parameters
		p := v.config["rope_parameters"].(map[string]any)
		delete(v.config, "rope_parameters")
		v.config["rope_theta"] = p["rope_theta"]
		delete(p, "rope_theta")
		if share, ok := p["partial_rotary_factor"]; ok {
			v.config["partial_rotary_factor"] = share
			delete(p, "partial_rotary_factor")
		}
		if p["rope_type"] != "default" {
			v.config["rope_scaling"] = p
		}
	}
	oldType := func(v *variant) {
		flat(v)
		s := v.config["rope_scaling"].(map[string]any)
		s["type"] = s["rope_type"]
		delete(s, "rope_type")
	}
	for _, test := range []struct {
		name, golden string
		change       func(v *variant)
	}{
		{"llama3 scaling, old", "llama", flat},
		{"yarn, old with type", "qwen2_yarn", oldType},
		{"plain rope, old", "qwen3", flat},
		{"no rope keys", "qwen3", func(v *variant) { delete(v.config, "rope_parameters") }},
		{"partial rotary, old", "phi3", flat},
		{"partial rotary of Qwen, default", "qwen3_next", func(v *variant) {
			flat(v)
			delete(v.config, "partial_rotary_factor")
		}},
		{"longrope called su", "phi3_longrope", func(v *variant) {
			oldType(v)
			v.config["rope_scaling"].(map[string]any)["type"] = "su"
		}},
		{"gemma 3, old", "gemma3", func(v *variant) {
			p := v.config["rope_parameters"].(map[string]any)
			full, sliding := p["full_attention"].(map[string]any), p["sliding_attention"].(map[string]any)
			delete(v.config, "rope_parameters")
			v.config["rope_theta"], v.config["rope_local_base_freq"] = full["rope_theta"], sliding["rope_theta"]
			v.config["rope_scaling"] = map[string]any{"rope_type": "linear", "factor": full["factor"]}
		}},
		{"gemma 3 inside a multimodal model", "gemma3", func(v *variant) {
			v.config = map[string]any{"model_type": "gemma3", "text_config": v.config, "vision_config": map[string]any{"hidden_size": 3}}
			v.rename(func(n string) string { return "language_model." + n })
			v.tensors["vision_tower.patch.weight"] = float32Entry([]int{1}, []float32{1})
		}},
		{"qwen 3.5 inside a multimodal model", "qwen3_5", func(v *variant) {
			v.config = map[string]any{"model_type": "qwen3_5", "text_config": v.config, "image_token_id": 7}
			v.rename(func(n string) string { return strings.Replace(n, "model.", "model.language_model.", 1) })
			v.tensors["model.visual.patch.weight"] = float32Entry([]int{1}, []float32{1})
			v.tensors["mtp.fc.weight"] = float32Entry([]int{1}, []float32{1})
		}},
		{"num_experts for num_local_experts", "qwen3_moe", func(v *variant) {
			v.config["num_experts"] = v.config["num_local_experts"]
			delete(v.config, "num_local_experts")
		}},
		{"lfm2, old", "lfm2", func(v *variant) {
			v.config["block_ff_dim"], v.config["tie_embedding"] = v.config["intermediate_size"], true
			delete(v.config, "intermediate_size")
			delete(v.config, "tie_word_embeddings")
			v.config["full_attn_idxs"] = []int{1}
			delete(v.config, "layer_types")
		}},
		{"generation keys and nulls", "llama", func(v *variant) {
			maps.Copy(v.config, map[string]any{"temperature": 0.7, "sliding_window": nil, "_name_or_path": "x", "is_encoder_decoder": false})
		}},
		{"head_dim left out", "llama", func(v *variant) { delete(v.config, "head_dim") }},
		{"tied but saved", "qwen3", func(v *variant) { v.tensors["lm_head.weight"] = v.tensors["model.embed_tokens.weight"] }},
		{"inv_freq saved", "llama", func(v *variant) {
			v.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = float32Entry([]int{2}, []float32{1, 2})
		}},
		{"heads for multi-token prediction", "deepseek_v3", func(v *variant) {
			v.config["num_nextn_predict_layers"] = 1
			v.tensors["model.layers.3.eh_proj.weight"] = float32Entry([]int{1}, []float32{1})
		}},
		{"experts stacked", "qwen3_moe", stackExperts},
		{"delta nets as MLX writes them", "qwen3_next", likeMLX},
		{"delta nets and stacked experts as MLX writes them", "qwen3_5_moe", likeMLX},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := load(t, test.golden)
			test.change(v)
			g := readGolden(t, filepath.Join("testdata", "goldens", test.golden))
			compare(t, planref.Run(lower(t, v.write(t), Options{}), g.ids), g.logits)
		})
	}
}

// stackExperts writes experts as transformers holds them in memory: [experts][2*width][hidden].
func stackExperts(v *variant) {
	for _, layer := range []string{"0", "2"} {
		prefix := "model.layers." + layer + ".mlp.experts."
		var gateUp, down []byte
		n := 0
		for ; ; n++ {
			e := prefix + string(rune('0'+n))
			if _, ok := v.tensors[e+".gate_proj.weight"]; !ok {
				break
			}
			gateUp = append(
				append(gateUp, v.tensors[e+".gate_proj.weight"].Data...),
				v.tensors[e+".up_proj.weight"].Data...)
			down = append(down, v.tensors[e+".down_proj.weight"].Data...)
			for _, p := range []string{"gate", "up", "down"} {
				delete(v.tensors, e+"."+p+"_proj.weight")
			}
		}
		hidden, width := int(v.config["hidden_size"].(float64)), int(v.config["moe_intermediate_size"].(float64))
		v.tensors[prefix+"gate_up_proj"] = safetensors.Entry{
			DType: "BF16",
			Shape: []int{n, 2 * width, hidden},
			Data:  gateUp,
		}
		v.tensors[prefix+"down_proj"] = safetensors.Entry{DType: "BF16", Shape: []int{n, hidden, width}, Data: down}
	}
}

// likeMLX writes delta nets and experts as MLX's conversions do: norm weights with the 1 added, convolutions as
// [channels][kernel][1], and a stack for each of the experts' matrices.
func likeMLX(v *variant) {
	for _, name := range sortedKeys(v.tensors) {
		e := v.tensors[name]
		switch {
		case strings.HasSuffix(name, "conv1d.weight"):
			e.Shape = []int{e.Shape[0], e.Shape[2], 1}
			v.tensors[name] = e
		case strings.HasSuffix(name, "norm.weight") && !strings.HasSuffix(name, "linear_attn.norm.weight"):
			values := make([]float32, e.Shape[0])
			for i := range values {
				values[i] = quant.BF16ToF32(binary.LittleEndian.Uint16(e.Data[2*i:])) + 1
			}
			v.tensors[name] = float32Entry(e.Shape, values)
		}
	}
	for layer := range 3 {
		prefix := fmt.Sprintf("model.layers.%d.mlp.", layer)
		for _, p := range []string{"gate_proj", "up_proj", "down_proj"} {
			var data []byte
			var shape []int
			n := 0
			for ; ; n++ {
				name := fmt.Sprintf("%sexperts.%d.%s.weight", prefix, n, p)
				e, ok := v.tensors[name]
				if !ok {
					break
				}
				data, shape = append(data, e.Data...), e.Shape
				delete(v.tensors, name)
			}
			if n > 0 {
				v.tensors[prefix+"switch_mlp."+p+".weight"] = safetensors.Entry{
					DType: "BF16",
					Shape: append([]int{n}, shape...),
					Data:  data,
				}
			}
		}
	}
}

// TestTiedButDifferent: a configuration that ties the output to the embedding does not win over an output of its own.
func TestTiedButDifferent(t *testing.T) {
	a, b := load(t, "qwen3"), load(t, "qwen3")
	own := b.tensors["model.embed_tokens.weight"]
	own.Data = bytes.Clone(own.Data)
	for i := 0; i < len(own.Data); i += 2 {
		own.Data[i] ^= 1
	}
	a.tensors["lm_head.weight"], b.tensors["lm_head.weight"] = own, own
	b.config["tie_word_embeddings"] = false
	sameLogits(t, a, b)
}

// TestMinistralDefaults: without rope_parameters the reference scales by YaRN and tempers the attention.
func TestMinistralDefaults(t *testing.T) {
	a, b := load(t, "ministral3"), load(t, "ministral3")
	a.config["max_position_embeddings"], b.config["max_position_embeddings"] = 262144, 262144
	delete(a.config, "rope_parameters")
	p := b.config["rope_parameters"].(map[string]any)
	p["original_max_position_embeddings"], p["factor"] = 16384, 16
	sameLogits(t, a, b)
}

// noTensors is a GGUF file without any.
type noTensors struct{}

func (noTensors) has(string) bool    { return false }
func (noTensors) get(string) *tensor { panic("no tensors") }
func (noTensors) names() []string    { return nil }

// smallGGUF is metadata that leave to the architecture what they can.
func smallGGUF() *config {
	return &config{gguf: true, source: noTensors{}, used: map[string]bool{}, values: map[string]any{
		"hidden_size": 16, "num_hidden_layers": 7, "num_attention_heads": 2, "head_dim": 8, "intermediate_size": 32,
		"max_position_embeddings": 512, "rms_norm_eps": 1e-6,
	}}
}

// TestGemmaGGUFDefaults: the first Gemma 2 files do not name the caps that the model was trained with, and Gemma 3
// files without a window have one rotary table for all layers.
func TestGemmaGGUFDefaults(t *testing.T) {
	m := gemma2.spec(smallGGUF())
	if a := m.layers[0].mix.(*attention); m.logitCap != 30 || a.cap != 50 || a.window != 4096 {
		t.Errorf("Gemma 2: caps of %v and %v, window %v", m.logitCap, a.cap, a.window)
	}
	for i, l := range gemma3.spec(smallGGUF()).layers {
		if a := l.mix.(*attention); a.window != 0 || a.rope.params.theta != 1e6 {
			t.Errorf("Gemma 3, layer %d: window %v, rotary base %v", i, a.window, a.rope.params.theta)
		}
	}
}

// TestGGUFNamesEpsilon: the constant of the norms is not guessed.
func TestGGUFNamesEpsilon(t *testing.T) {
	c := smallGGUF()
	delete(c.values, "rms_norm_eps")
	err := func() (err error) {
		defer catch(&err)
		llama.spec(c)
		return nil
	}()
	if err == nil || !strings.Contains(err.Error(), "layer_norm_rms_epsilon") {
		t.Error(err)
	}
}

// TestGraniteWithoutPositions: a GGUF file of Granite says by rope.scaling.finetuned whether heads are rotated.
func TestGraniteWithoutPositions(t *testing.T) {
	for value, rotates := range map[any]bool{nil: true, true: true, false: false} {
		c := smallGGUF()
		c.values["rope.scaling.finetuned"] = value
		if a := granite.spec(c).layers[0].mix.(*attention); (a.rope != nil) != rotates {
			t.Errorf("finetuned = %v: rotation %v", value, a.rope)
		}
	}
}

// TestQwenGGUFWindow: a window that a GGUF file names is not left out in silence.
func TestQwenGGUFWindow(t *testing.T) {
	for _, f := range []*family{qwen2, qwen3} {
		for window, want := range map[int]bool{0: true, 64: false} {
			c := smallGGUF()
			c.values["sliding_window"] = window
			err := func() (err error) {
				defer catch(&err)
				f.spec(c)
				return nil
			}()
			if (err == nil) != want {
				t.Errorf("%s with a window of %d: %v", f.name, window, err)
			}
		}
	}
}

// TestRecurrentLayers: a GGUF file may name its delta nets one by one.
func TestRecurrentLayers(t *testing.T) {
	for _, test := range []struct {
		value any
		want  string // a letter for each layer; "" for a refusal
	}{
		{nil, "rrrfrr"},
		{[]any{false, true, true, false, false, true}, "frrffr"},
		{[]any{int64(1), int64(0), int64(0), int64(0), int64(0), int64(0), int64(0)}, "rfffff"}, // one more for prediction
		{int64(1), "rrrrrr"}, // a list of equal numbers
		{[]any{int64(1), int64(0)}, ""},
		{"all", ""},
	} {
		c := &config{
			gguf:   true,
			used:   map[string]bool{},
			values: map[string]any{"attention.recurrent_layers": test.value},
		}
		got := ""
		err := func() (err error) {
			defer catch(&err)
			for _, r := range c.linearLayers(6) {
				got += map[bool]string{true: "r", false: "f"}[r]
			}
			return nil
		}()
		if got != test.want || (err != nil) != (test.want == "") {
			t.Errorf("%v: %q, %v; want %q", test.value, got, err, test.want)
		}
	}
}

// TestGGUFScaling: what a file says about rotary scaling is used or refused.
func TestGGUFScaling(t *testing.T) {
	for _, test := range []struct {
		name, refused string // refused is part of the error, "" for none
		values        map[string]any
		second        float64 // frequency, relative to that without scaling
	}{
		{"none", "", nil, 1},
		{"linear", "", map[string]any{"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}, 0.25},
		{"an old file", "", map[string]any{"rope.scale_linear": 4.0}, 0.25},
		{"a factor without a type", "", map[string]any{"rope.scaling.factor": 4.0}, 0.25},
		{"a factor that is switched off", "", map[string]any{"rope.scaling.type": "none", "rope.scaling.factor": 4.0}, 1},
		{"LongRoPE without its factors", "rope_factors", map[string]any{"rope.scaling.type": "longrope"}, 0},
		{"a factor of cosines without YaRN", "attn_factor", map[string]any{"rope.scaling.attn_factor": 1.2}, 0},
		{"the same with a linear factor", "attn_factor", map[string]any{
			"rope.scaling.type": "linear", "rope.scaling.factor": 4.0, "rope.scaling.attn_factor": 1.2,
		}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := smallGGUF()
			maps.Copy(c.values, test.values)
			var r *rope
			err := func() (err error) {
				defer catch(&err)
				r = c.rope(ropeArgs{dim: 8})
				return nil
			}()
			switch {
			case test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)):
				t.Errorf("rope() = %v, want an error with %q", err, test.refused)
			case test.refused == "" && err != nil:
				t.Error(err)
			case test.refused == "" && r.freqs[1] != round32(round32(0.1)*test.second):
				t.Errorf("second frequency %v", r.freqs[1])
			}
		})
	}
}

// TestRefusals changes checkpoints so that they must not load, and checks that the message names the cause.
func TestRefusals(t *testing.T) {
	set := func(key string, value any) func(v *variant) {
		return func(v *variant) { v.config[key] = value }
	}
	for _, test := range []struct {
		name, golden, want string
		change             func(v *variant)
	}{
		{"unknown key", "llama", "attn_temperature_tuning", set("attn_temperature_tuning", true)},
		{"unknown rope key", "llama", "wobble", func(v *variant) { v.config["rope_parameters"].(map[string]any)["wobble"] = 2 }},
		{"unknown rope type", "llama", "spiral", set("rope_parameters", map[string]any{"rope_type": "spiral"})},
		{"unknown activation", "llama", "hidden_act", set("hidden_act", "mish")},
		{"unknown type", "llama", "not supported", set("model_type", "hal9000")},
		{"unknown tensor", "llama", "adapter.weight", func(v *variant) { v.tensors["model.layers.0.adapter.weight"] = float32Entry([]int{1}, []float32{1}) }},
		{"bias that the configuration denies", "llama", "q_proj.bias", func(v *variant) {
			v.tensors["model.layers.0.self_attn.q_proj.bias"] = float32Entry([]int{48}, make([]float32, 48))
		}},
		{"bias that the checkpoint lacks", "llama", "q_proj.bias", set("attention_bias", true)},
		{"missing tensor", "llama", "layers.2.mlp.up_proj.weight", func(v *variant) { delete(v.tensors, "model.layers.2.mlp.up_proj.weight") }},
		{"missing output", "llama", "lm_head.weight", func(v *variant) { delete(v.tensors, "lm_head.weight") }},
		{"one layer too few", "llama", "layers.2.", set("num_hidden_layers", 2)},
		{"one layer too many", "llama", "layers.3.", set("num_hidden_layers", 4)},
		{"another width", "llama", "shape", set("intermediate_size", 81)},
		{"another vocabulary", "llama", "embed_tokens", set("vocab_size", 113)},
		{"missing key", "llama", "hidden_size is missing", func(v *variant) { delete(v.config, "hidden_size") }},
		{"heads that do not divide", "llama", "cannot share", set("num_key_value_heads", 3)},
		{"no heads", "llama", "num_attention_heads", set("num_attention_heads", 0)},
		{"a width beyond any", "llama", "hidden_size", set("hidden_size", 1e12)},
		{"a fraction", "llama", "whole number", set("hidden_size", 48.5)},
		{"a string", "llama", "hidden_size", set("hidden_size", "48")},
		{"partial rotary where there is none", "llama", "partial_rotary_factor", set("partial_rotary_factor", 0.5)},
		{"encoder", "gemma3", "use_bidirectional_attention", set("use_bidirectional_attention", true)},
		{"window without use_sliding_window", "qwen3", "use_sliding_window", set("layer_types", []string{"full_attention", "sliding_attention", "full_attention"})},
		{"layer types of another length", "qwen3", "layer_types", set("layer_types", []string{"full_attention"})},
		{"layer type of another family", "qwen3", "chunked_attention", set("layer_types", []string{"full_attention", "chunked_attention", "full_attention"})},
		{"GPTQ", "llama", "gptq", set("quantization_config", map[string]any{"quant_method": "gptq", "bits": 4})},
		{"too many experts per token", "qwen3_moe", "experts per token", set("num_experts_per_tok", 7)},
		{"groups that do not divide", "deepseek_v3", "groups", set("n_group", 4)},
		{"routing method", "deepseek_v2", "topk_method", set("topk_method", "noaux_tc")},
		{"clamped elsewhere", "gpt_oss", "swiglu_limit", set("swiglu_limit", 5)},
		{"dynamic rope without a factor", "llama", "rope factor", set("rope_parameters", map[string]any{"rope_type": "dynamic"})},
		{"rotary part beyond an odd head", "phi3_odd", "rotary embedding of 11 of 11", func(v *variant) {
			p := v.config["rope_parameters"].(map[string]any)
			v.config["head_dim"], p["partial_rotary_factor"] = 11, 1
		}},
		{"rotary part of nothing", "phi3_odd", "rotary embedding of 0 of 12", func(v *variant) {
			v.config["rope_parameters"].(map[string]any)["partial_rotary_factor"] = 0.05
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := load(t, test.golden)
			test.change(v)
			c, err := Open(v.write(t))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, err = c.Lower(Options{Context: 100000})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Lower() = %v, want an error with %q", err, test.want)
			}
		})
	}
}

// TestLongRopeFollowsTheSequence: the factors are chosen by how long a sequence is, as in the reference, and not by
// what the model is loaded for.
func TestLongRopeFollowsTheSequence(t *testing.T) {
	dir := filepath.Join("testdata", "goldens", "phi3_longrope")
	short, long, whole := lower(
		t,
		dir,
		Options{Context: 32},
	), lower(
		t,
		dir,
		Options{Context: 33},
	), lower(
		t,
		dir,
		Options{},
	)
	r, w := long.Ropes[0], whole.Ropes[0]
	if s := short.Ropes[0]; s.Long != nil || short.LongFrom != 0 || !slices.Equal(s.InvFreq, r.InvFreq) {
		t.Errorf("for 32 positions %v, from %d on %v; for 33 %v", s.InvFreq, short.LongFrom, s.Long, r.InvFreq)
	}
	if long.LongFrom != 32 || whole.LongFrom != 32 || !slices.Equal(r.InvFreq, w.InvFreq) ||
		!slices.Equal(r.Long, w.Long) ||
		!(r.InvFreq[1] > r.Long[1]) {
		t.Errorf("for 33 positions %+v from %d on, for all %+v from %d on", r, long.LongFrom, w, whole.LongFrom)
	}
	ids := make([]int32, 33)
	for i := range ids {
		ids[i] = int32(i*7%50 + 1)
	}
	for _, n := range []int{32, 33} {
		if a, b := planref.Run(long, ids[:n]), planref.Run(whole, ids[:n]); !reflect.DeepEqual(a, b) {
			t.Errorf("%d tokens: other logits where the model is loaded for more", n)
		}
	}
	if short.Context != 32 || whole.Context != 256 {
		t.Errorf("contexts %d and %d", short.Context, whole.Context)
	}
}

// TestFrequencies compares tables with those of transformers 5.17, to the bit.
func TestFrequencies(t *testing.T) {
	yarn := ropeParams{kind: "yarn", theta: 1e4, factor: 40, original: 128, betaFast: 32, betaSlow: 1}
	rounded := ropeParams{kind: "yarn", theta: 5e5, factor: 8, original: 64, betaFast: 32, betaSlow: 1, truncate: true}
	llama3 := ropeParams{kind: "llama3", theta: 5e5, factor: 32, original: 128, lowFreq: 1, highFreq: 4}
	blended := ropeParams{kind: "llama3", theta: 1e4, factor: 8, original: 1024, lowFreq: 1, highFreq: 4}
	for _, test := range []struct {
		name    string
		params  ropeParams
		rotated int
		context int
		want    []float64
		scale   float64
	}{
		{"yarn", yarn, 16, 64, []float64{
			1, 0.1984604001045227, 0.02551736868917942, 0.0007905694656074047, 0.0002500000118743628,
			7.905694656074047e-05, 2.499999936844688e-05, 7.905694474175107e-06,
		}, 1.3688879454113936},
		{"yarn with a rounded range", rounded, 24, 64, []float64{
			1, 0.23731404542922974, 0.04676924645900726, 0.004700753837823868, 0.0015749010490253568, 0.0005276418523862958,
			0.00017677668074611574, 5.922580021433532e-05, 1.9842507754219696e-05, 6.647869668086059e-06,
			2.2272474780038465e-06, 7.461979407707986e-07,
		}, 1.2079441541679836},
		{"llama3", llama3, 24, 64, []float64{
			1, 0.3350316286087036, 0.05014421045780182, 0.001175188459455967, 0.0003937252622563392, 0.00013191046309657395,
			4.4194170186528936e-05, 1.480645005358383e-05, 4.960626938554924e-06, 1.6619674170215148e-06,
			5.568118695009616e-07, 1.8654948519269965e-07,
		}, 1},
		{"llama3, blended", blended, 16, 64, []float64{
			1, 0.3162277638912201, 0.10000000149011612, 0.03162277862429619, 0.003086760640144348, 0.00039528473280370235,
			0.0001250000059371814, 3.9528473280370235e-05,
		}, 1},
		{"dynamic, three times as long", ropeParams{kind: "dynamic", theta: 1e4, factor: 3, max: 32}, 16, 100, []float64{
			1, 0.2377026379108429, 0.05650254338979721, 0.013430803082883358, 0.0031925374642014503, 0.0007588745793327689,
			0.0001803864724934101, 4.287833871785551e-05,
		}, 1},
		{"dynamic, a little longer", ropeParams{kind: "dynamic", theta: 5e5, factor: 4, max: 48}, 12, 53, []float64{
			1, 0.10469311475753784, 0.010960647836327553, 0.0011475045466795564, 0.00012013580271741375, 1.2577398592839018e-05,
		}, 1},
		{"linear", ropeParams{kind: "linear", theta: 5e5, factor: 1.7}, 12, 53, []float64{
			0.5882352590560913, 0.06602717190980911, 0.007411298807710409, 0.0008318902109749615, 9.337650408269837e-05,
			1.0481164281372912e-05,
		}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &config{limit: test.context}
			freqs, _, scale := c.frequencies(test.params, test.rotated)
			if scale != test.scale {
				t.Errorf("scale %v, want %v", scale, test.scale)
			}
			for j, want := range test.want {
				if freqs[j] != want {
					t.Errorf("frequency %d is %v, want %v", j, freqs[j], want)
				}
			}
		})
	}
}

// TestWindowsGetTheirOwnGroup checks that windows which never cut anything are merged with full attention.
func TestWindowsGetTheirOwnGroup(t *testing.T) {
	dir := filepath.Join("testdata", "goldens", "gemma2") // windows of 10 in the first and third layer
	p := lower(t, dir, Options{})
	if len(p.Groups) != 2 || p.Groups[0].Window != 10 || len(p.Groups[0].Layers) != 2 || p.Groups[1].Window != 0 {
		t.Errorf("groups %+v", p.Groups)
	}
	if p := lower(t, dir, Options{Context: 10}); len(p.Groups) != 1 || len(p.Groups[0].Layers) != 3 {
		t.Errorf("groups for 10 positions: %+v", p.Groups)
	}
}
