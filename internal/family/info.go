package family

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/baleenrun/baleen/internal/quant"
)

// Info describes a checkpoint without lowering it.
type Info struct {
	Family       string // registered name; "" if the type is not supported
	Type         string // model_type or general.architecture
	Name         string // the model's own name, or that of its file or folder
	Path         string // as opened
	Container    string // "gguf" or "safetensors"
	Parameters   int64
	MaxContext   int
	Vocab        int
	Layers       int
	Quantization string  // such as "Q4_K_M", "BF16", "MXFP4"
	BOS          int32   // -1: none
	EOS          []int32 // all tokens that end a turn
	// ChatTemplate is the model's own Jinja template, "" if it has none.
	ChatTemplate string
}

// Info returns what the checkpoint says about itself. What it does not say stays zero.
func (c *Checkpoint) Info() Info {
	i := Info{Type: c.kind, Path: c.path, BOS: -1}
	if c.fam != nil {
		i.Family = c.fam.name
	}
	if c.gguf != nil {
		c.ggufInfo(&i)
	} else {
		c.hfInfo(&i)
	}
	return i
}

func (c *Checkpoint) ggufInfo(i *Info) {
	f := c.gguf
	i.Container = "gguf"
	i.Name, _ = f.String("general.name")
	if i.Name == "" {
		i.Name = strings.TrimSuffix(filepath.Base(c.path), ".gguf")
	}
	size := func(key string) int { v, _ := f.Uint(c.kind + "." + key); return int(min(v, 1<<40)) }
	i.MaxContext, i.Layers = size("context_length"), size("block_count")
	bytes := map[quant.Type]int{}
	for _, t := range f.Tensors() {
		i.Parameters += int64(t.Elements())
		bytes[t.Type] += t.Size()
	}
	if t, ok := f.Tensor("token_embd.weight"); ok && len(t.Dims) == 2 {
		i.Vocab = t.Dims[1]
	}
	i.Quantization = mostOf(bytes)
	if t, ok := f.Uint("general.file_type"); ok && fileTypes[t] != "" {
		i.Quantization = fileTypes[t]
	}
	if v, ok := f.Uint("tokenizer.ggml.bos_token_id"); ok {
		i.BOS = int32(min(v, 1<<31-1))
	}
	for _, k := range []string{"eos_token_id", "eot_token_id", "eom_token_id"} {
		if v, ok := f.Uint("tokenizer.ggml." + k); ok {
			i.addEOS(float64(v))
		}
	}
	i.ChatTemplate = c.template
}

// fileTypes names GGUF's general.file_type, llama.cpp's numbering of quantization recipes.
var fileTypes = map[uint64]string{
	0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M",
	13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS",
	21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S",
	29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4",
}

// mostOf returns the type that takes the most bytes.
func mostOf(bytes map[quant.Type]int) string {
	best, most := quant.Type(0), -1
	for t, n := range bytes {
		if n > most || n == most && t < best {
			best, most = t, n
		}
	}
	if most < 0 {
		return ""
	}
	return best.String()
}

func (i *Info) addEOS(v float64) {
	id := int32(v)
	if v < 0 || v > 1<<31-1 {
		return
	}
	for _, e := range i.EOS {
		if e == id {
			return
		}
	}
	i.EOS = append(i.EOS, id)
}

func (c *Checkpoint) hfInfo(i *Info) {
	i.Container = "safetensors"
	i.Name = filepath.Base(c.dir)
	if abs, err := filepath.Abs(c.dir); err == nil {
		i.Name = filepath.Base(abs)
	}
	size := func(key string) int { f, _ := number(c.config[key]); return int(max(0, min(f, 1<<40))) }
	i.MaxContext, i.Layers, i.Vocab = size("max_position_embeddings"), size("num_hidden_layers"), size("vocab_size")
	c.hfStorage(i)
	for _, source := range []map[string]any{c.generation, c.config} {
		if v, ok := number(source["bos_token_id"]); ok && i.BOS < 0 && v >= 0 && v < 1<<31 {
			i.BOS = int32(v)
		}
		if len(i.EOS) > 0 {
			continue // the generation's own list replaces the model's
		}
		list, ok := source["eos_token_id"].([]any)
		if !ok {
			list = []any{source["eos_token_id"]}
		}
		for _, v := range list {
			if n, ok := number(v); ok {
				i.addEOS(n)
			}
		}
	}
	i.ChatTemplate = c.template
}

// hfStorage counts parameters and names the storage of most of them.
func (c *Checkpoint) hfStorage(i *Info) {
	method := ""
	bits := 0.0
	for _, k := range []string{"quantization", "quantization_config"} {
		if d, ok := c.config[k].(map[string]any); ok {
			if m, ok := d["quant_method"].(string); ok {
				method = m
			}
			if b, ok := number(d["bits"]); ok && method == "" {
				bits = b
			}
		}
	}
	bytes := map[string]int{}
	for _, t := range c.set.Tensors() {
		n := int64(t.Elements())
		switch {
		case t.DType == "U32" && bits > 0:
			n = n * 32 / int64(max(bits, 1))
		case t.DType == "U8" && strings.HasSuffix(t.Name, "_blocks"):
			n *= 2
		case strings.HasSuffix(t.Name, ".scales"),
			strings.HasSuffix(t.Name, ".biases"),
			strings.HasSuffix(t.Name, "_scales"),
			strings.HasSuffix(t.Name, "_scale_inv"),
			strings.HasSuffix(t.Name, "_scale"):
			n = 0
		}
		i.Parameters += n
		bytes[t.DType] += t.Size()
	}
	most := -1
	for t, n := range bytes {
		if n > most || n == most && t < i.Quantization {
			i.Quantization, most = t, n
		}
	}
	switch {
	case i.Quantization == "U32" && bits > 0:
		i.Quantization = "MLX-" + string(rune('0'+int(min(bits, 9)))) + "bit"
	case i.Quantization == "U8" && method == "mxfp4":
		i.Quantization = "MXFP4"
	case strings.HasPrefix(i.Quantization, "F8_"):
		i.Quantization = "FP8"
	}
}

// FolderTemplate reads the chat template of a folder as Hugging Face keeps it: in its own file or in the tokenizer's
// configuration. "" means that there is none; a file that is there and cannot be read is an error.
func FolderTemplate(dir string) (string, error) {
	b, err := readSmall(filepath.Join(dir, "chat_template.jinja"))
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return string(b), err
	}
	for _, file := range []string{"chat_template.json", "tokenizer_config.json"} {
		path := filepath.Join(dir, file)
		d, err := readJSON(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		switch t := d["chat_template"].(type) {
		case nil:
		case string:
			return t, nil
		case []any: // named templates
			text, err := defaultTemplate(t)
			if err != nil {
				return "", fmt.Errorf("family: %s: %w", path, err)
			}
			return text, nil
		default:
			return "", fmt.Errorf("family: %s: chat_template is %T, want a text or a list of named templates", path, t)
		}
	}
	return "", nil
}

func defaultTemplate(list []any) (string, error) {
	for _, e := range list {
		d, _ := e.(map[string]any)
		if name, _ := d["name"].(string); name != "default" {
			continue
		}
		t, ok := d["template"].(string)
		if !ok {
			return "", errors.New("the default chat_template has no text")
		}
		return t, nil
	}
	return "", nil
}
