// Package servertest is a stand-in for weights: a backend that computes nothing and makes a model write what a script
// says, in its family's own format. Everything above the backend is real: scheduler, cache, tokenizer, templates,
// parsers, pool, server. It is for tests, here and of programs that speak to the server.
package servertest

import (
	"fmt"
	"os"
	"strings"

	"github.com/baleenrun/baleen/internal/gguf"
	"github.com/baleenrun/baleen/internal/quant"
)

// ChatML is a chat template of the Hermes family with tools and thinking that can be switched.
const ChatML = `{%- if tools %}
{{- '<|im_start|>system\n' }}
{%- if messages[0].role == 'system' %}{{- messages[0].content + '\n\n' }}{%- endif %}
{{- "# Tools\n\nYou may call functions.\n<tools>" }}
{%- for tool in tools %}{{- "\n" }}{{- tool | tojson }}{%- endfor %}
{{- "\n</tools>\n\nAnswer with <tool_call>{\"name\": ..., \"arguments\": ...}</tool_call>.<|im_end|>\n" }}
{%- elif messages[0].role == 'system' %}
{{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}
{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
{%- elif message.role == 'assistant' %}
{{- '<|im_start|>assistant\n' }}
{%- if message.reasoning_content %}{{- '<think>\n' + message.reasoning_content + '\n</think>\n\n' }}{%- endif %}
{%- if message.content %}{{- message.content }}{%- endif %}
{%- for call in message.tool_calls or [] %}
{%- set call = call.function %}
{{- '\n<tool_call>\n{"name": "' + call.name + '", "arguments": ' }}{{- call.arguments | tojson }}{{- '}\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\n' }}
{%- elif message.role == 'tool' %}
{{- '<|im_start|>user\n<tool_response>\n' + message.content + '\n</tool_response><|im_end|>\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\n\n</think>\n\n' }}{%- endif %}
{%- endif %}`

// A Checkpoint is a model file without meaning: a vocabulary of bytes and control tokens, a template, and as few
// weights as a file can have.
type Checkpoint struct {
	Name     string   // "": "scripted"
	Template string   // "": ChatML; "none": no template
	Control  []string // control tokens; nil: those of ChatML and of gaps in texts
	Visible  []string // tokens that are no control tokens but whole, such as <think>; nil: those of ChatML
	End      string   // the control token that ends a turn; "": <|im_end|>
	Merges   []string // pairs of tokens that are one, in the spelling of byte-level vocabularies: "Ġ x"
	Context  int      // 0: 131072
}

var (
	chatMLControl = []string{
		"<|endoftext|>",
		"<|im_start|>",
		"<|im_end|>",
		"<|fim_prefix|>",
		"<|fim_suffix|>",
		"<|fim_middle|>",
	}
	chatMLVisible = []string{"<think>", "</think>", "<tool_call>", "</tool_call>"}
)

// Token types of GGUF.
const (
	normalToken  int32 = 1
	controlToken int32 = 3
	userToken    int32 = 4
)

// Write writes the file.
func (c Checkpoint) Write(path string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	if c.Name == "" {
		c.Name = "scripted"
	}
	if c.Template == "" {
		c.Template = ChatML
	}
	if c.Control == nil {
		c.Control = chatMLControl
	}
	if c.Visible == nil {
		c.Visible = chatMLVisible
	}
	if c.Context == 0 {
		c.Context = 131072
	}
	w := gguf.NewWriter(f)
	for _, kv := range c.keys() {
		if err := w.Set(kv.key, kv.value); err != nil {
			return err
		}
	}
	vocab := 256 + len(c.Control) + len(c.Visible) + len(c.Merges)
	tensors := []struct {
		name string
		dims []int
	}{{"token_embd.weight", []int{dim, vocab}}, {"output_norm.weight", []int{dim}}}
	for _, t := range []struct {
		name string
		dims []int
	}{
		{"attn_norm", []int{dim}},
		{"attn_q", []int{dim, dim}},
		{"attn_k", []int{dim, dim}},
		{"attn_v", []int{dim, dim}},
		{"attn_output", []int{dim, dim}},
		{"ffn_norm", []int{dim}},
		{"ffn_gate", []int{dim, dim}},
		{"ffn_up", []int{dim, dim}},
		{"ffn_down", []int{dim, dim}},
	} {
		t.name = "blk.0." + t.name + ".weight"
		tensors = append(tensors, t)
	}
	for _, t := range tensors {
		if err := w.AddTensor(t.name, t.dims, quant.F32); err != nil {
			return err
		}
	}
	for _, t := range tensors {
		n := 4
		for _, d := range t.dims {
			n *= d
		}
		if err := w.WriteTensor(t.name, make([]byte, n)); err != nil {
			return err
		}
	}
	return w.Close()
}

const dim = 32

type keyValue struct {
	key   string
	value any
}

func (c Checkpoint) keys() []keyValue {
	var tokens []string
	var types []int32
	for b := range 256 {
		tokens, types = append(tokens, string(byteRune(b))), append(types, normalToken)
	}
	for _, t := range c.Control {
		tokens, types = append(tokens, t), append(types, controlToken)
	}
	for _, t := range c.Visible {
		tokens, types = append(tokens, t), append(types, userToken)
	}
	merges := append([]string{}, c.Merges...)
	for _, m := range merges {
		tokens, types = append(tokens, strings.Replace(m, " ", "", 1)), append(types, normalToken)
	}
	if c.End == "" {
		c.End = "<|im_end|>"
	}
	end := uint32(256)
	for i, t := range c.Control {
		if t == c.End {
			end = uint32(256 + i)
		}
	}
	kvs := []keyValue{
		{"general.architecture", "llama"},
		{"general.name", c.Name},
		{"general.quantization_version", uint32(2)},
		{"general.file_type", uint32(0)},
		{"llama.context_length", uint32(c.Context)},
		{"llama.embedding_length", uint32(dim)},
		{"llama.block_count", uint32(1)},
		{"llama.feed_forward_length", uint32(dim)},
		{"llama.attention.head_count", uint32(1)},
		{"llama.attention.head_count_kv", uint32(1)},
		{"llama.attention.layer_norm_rms_epsilon", float32(1e-5)},
		{"llama.rope.dimension_count", uint32(dim)},
		{"llama.rope.freq_base", float32(10000)},
		{"llama.vocab_size", uint32(len(tokens))},
		{"tokenizer.ggml.model", "gpt2"},
		{"tokenizer.ggml.pre", "qwen2"},
		{"tokenizer.ggml.tokens", tokens},
		{"tokenizer.ggml.token_type", types},
		{"tokenizer.ggml.merges", merges},
		{"tokenizer.ggml.bos_token_id", uint32(256)},
		{"tokenizer.ggml.eos_token_id", end},
		{"tokenizer.ggml.add_bos_token", false},
	}
	if c.Template != "none" {
		kvs = append(kvs, keyValue{"tokenizer.chat_template", c.Template})
	}
	return kvs
}

// byteRune is how byte-level vocabularies spell a byte: itself where it is printable Latin-1, else the next free
// character from U+0100 on.
func byteRune(b int) rune {
	n := 0
	for i := range 256 {
		printable := i >= '!' && i <= '~' || i >= 0xa1 && i <= 0xac || i >= 0xae
		switch {
		case i == b && printable:
			return rune(b)
		case i == b:
			return rune(0x100 + n)
		case !printable:
			n++
		}
	}
	panic(fmt.Sprintf("servertest: %d is not a byte", b))
}
