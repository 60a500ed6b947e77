package synth

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Folder is a checkpoint in the layout of Hugging Face whose weights have to be converted: a Mixtral with each expert
// in tensors of its own, or a gpt-oss with those of a layer in one. All weights are zeros that take no space on disk,
// for tests of sizes, times and memory.
type Folder struct {
	Storage                        Storage
	Hidden, Width, Experts, Layers int
}

// Storage is how a Folder holds its matrices.
type Storage string

// Kinds of storage.
const (
	BF16       Storage = "BF16"
	FP8        Storage = "FP8"        // E4M3 in tiles of 128 x 128
	MLX4       Storage = "MLX 4"      // 4 bits in groups of 64
	Transposed Storage = "transposed" // gpt-oss: BF16, experts with inputs first
	MXFP4      Storage = "MXFP4"      // gpt-oss
)

// Storages lists all of them.
var Storages = []Storage{BF16, FP8, MLX4, Transposed, MXFP4}

// joined reports whether the experts of a layer share their tensors: the model is a gpt-oss then.
func (f Folder) joined() bool { return f.Storage == Transposed || f.Storage == MXFP4 }

// Write writes the checkpoint to a folder that is there.
func (f Folder) Write(dir string) error {
	config := map[string]any{
		"model_type": "mixtral", "architectures": []string{"MixtralForCausalLM"}, "hidden_act": "silu", "rope_theta": 1e6,
		"rms_norm_eps": 1e-5, "vocab_size": 512, "max_position_embeddings": 1024, "tie_word_embeddings": false,
		"hidden_size": f.Hidden, "num_attention_heads": f.Hidden / 64, "num_key_value_heads": 2, "num_hidden_layers": f.Layers,
		"intermediate_size": f.Width, "num_local_experts": f.Experts, "num_experts_per_tok": 2,
	}
	if f.joined() {
		delete(config, "rope_theta")
		config["model_type"], config["architectures"] = "gpt_oss", []string{"GptOssForCausalLM"}
	}
	switch f.Storage {
	case MXFP4:
		config["quantization_config"] = map[string]any{"quant_method": "mxfp4"}
	case FP8:
		config["quantization_config"] = map[string]any{"quant_method": "fp8", "weight_block_size": []int{128, 128}}
	case MLX4:
		config["quantization"] = map[string]any{"bits": 4, "group_size": 64}
	}
	settings, err := json.Marshal(config)
	if err != nil {
		return err
	}
	header, size := f.tensors()
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	start := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	weights := filepath.Join(dir, "model.safetensors")
	if err := os.WriteFile(filepath.Join(dir, "config.json"), settings, 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(weights, start, 0o644); err != nil {
		return err
	}
	return os.Truncate(weights, int64(len(start))+size)
}

// entry describes a tensor in the header of a file.
type entry struct {
	DType   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// tensors lists the tensors by name, and says how many bytes they take.
func (f Folder) tensors() (header map[string]entry, size int64) {
	header = map[string]entry{}
	add := func(name, dtype string, bytes int64, shape ...int) {
		for _, d := range shape {
			bytes *= int64(d)
		}
		header[name] = entry{dtype, shape, [2]int64{size, size + bytes}}
		size += bytes
	}
	matrix := func(name string, rows, k int) {
		switch f.Storage {
		case FP8:
			add(name+".weight", "F8_E4M3", 1, rows, k)
			add(name+".weight_scale_inv", "F32", 4, (rows+127)/128, (k+127)/128)
		case MLX4:
			add(name+".weight", "U32", 4, rows, k/8)
			add(name+".scales", "BF16", 2, rows, k/64)
			add(name+".biases", "BF16", 2, rows, k/64)
		default:
			add(name+".weight", "BF16", 2, rows, k)
		}
	}
	add("model.embed_tokens.weight", "BF16", 2, 512, f.Hidden)
	add("lm_head.weight", "BF16", 2, 512, f.Hidden)
	add("model.norm.weight", "BF16", 2, f.Hidden)
	for l := range f.Layers {
		p := fmt.Sprintf("model.layers.%d.", l)
		add(p+"input_layernorm.weight", "BF16", 2, f.Hidden)
		add(p+"post_attention_layernorm.weight", "BF16", 2, f.Hidden)
		matrix(p+"self_attn.q_proj", f.Hidden, f.Hidden)
		matrix(p+"self_attn.k_proj", 128, f.Hidden)
		matrix(p+"self_attn.v_proj", 128, f.Hidden)
		matrix(p+"self_attn.o_proj", f.Hidden, f.Hidden)
		if f.joined() {
			f.joinedExperts(p, add)
			continue
		}
		add(p+"block_sparse_moe.gate.weight", "BF16", 2, f.Experts, f.Hidden)
		for e := range f.Experts {
			x := fmt.Sprintf("%sblock_sparse_moe.experts.%d.", p, e)
			matrix(x+"w1", f.Width, f.Hidden)
			matrix(x+"w2", f.Hidden, f.Width)
			matrix(x+"w3", f.Width, f.Hidden)
		}
	}
	return header, size
}

// joinedExperts adds what a layer of a gpt-oss has beside what a Mixtral has.
func (f Folder) joinedExperts(p string, add func(name, dtype string, bytes int64, shape ...int)) {
	add(p+"self_attn.sinks", "BF16", 2, f.Hidden/64)
	for name, rows := range map[string]int{"q": f.Hidden, "k": 128, "v": 128, "o": f.Hidden} {
		add(p+"self_attn."+name+"_proj.bias", "BF16", 2, rows)
	}
	add(p+"mlp.router.weight", "BF16", 2, f.Experts, f.Hidden)
	add(p+"mlp.router.bias", "BF16", 2, f.Experts)
	for _, m := range []struct {
		name    string
		rows, k int
	}{{"gate_up_proj", 2 * f.Width, f.Hidden}, {"down_proj", f.Hidden, f.Width}} {
		name := p + "mlp.experts." + m.name
		add(name+"_bias", "BF16", 2, f.Experts, m.rows)
		if f.Storage == Transposed {
			add(name, "BF16", 2, f.Experts, m.k, m.rows)
			continue
		}
		add(name+"_blocks", "U8", 1, f.Experts, m.rows, m.k/32, 16)
		add(name+"_scales", "U8", 1, f.Experts, m.rows, m.k/32)
	}
}
