// Package baleen runs open-weight language models on this machine.
//
// Open opens a model by name (it is fetched when it is not there yet), from a GGUF file or from a folder with
// safetensors. Generate continues a text, Chat answers a conversation, and a Session keeps one:
//
//	model, err := baleen.Open(ctx, "qwen2.5-coder-0.5b", nil)
//	if err != nil {
//		return err
//	}
//	defer model.Close()
//	session := model.NewSession("")
//	for chunk, err := range session.Send(ctx, "What is the capital of France?", nil) {
//		if err != nil {
//			return err
//		}
//		fmt.Print(chunk.Text)
//	}
//
// The same request gives the same tokens, bit for bit: what else runs at the same time, what a cache held, how many
// threads worked and which instruction set they used make no difference.
package baleen

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/config"
	"github.com/baleenrun/baleen/internal/engine"
	"github.com/baleenrun/baleen/internal/fetch"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/sample"
	"github.com/baleenrun/baleen/internal/store"
	"github.com/baleenrun/baleen/internal/tokenizer"
)

// DefaultModel is the name of the model that the command line uses when none is named: Qwen2.5-Coder 0.5B Instruct.
const DefaultModel = "qwen2.5-coder-0.5b"

// Options say how a model is opened. The zero value is the default, which the BALEEN_* variables of the command line
// (BALEEN_HOME, BALEEN_THREADS, BALEEN_CPU, BALEEN_CONTEXT, BALEEN_KV) can change.
type Options struct {
	Home    string // folder for fetched models; "": the user's data folder
	Context int    // tokens of one conversation; 0: the model's maximum, at most 8192
	Streams int    // requests that run at once, others wait; 0: 8
	Threads int    // worker threads; 0: one for each available core
	CPU     string // use at most "avx512", "avx2", "neon" or "generic"; "": the best there is
	KV32    bool   // cache keys and values in float32 instead of float16: twice the memory

	// Progress is told about downloads: what is fetched, how many bytes are there and how many there will be. Nil:
	// not told.
	Progress func(what string, done, total int64)
}

// A Model is an open model. Its methods may be called from many goroutines at once; requests share the model's steps.
type Model struct{ m *model.Model }

// Open opens a model: a name of the catalog, a GGUF file, or a folder. What memory cannot hold is refused with the
// numbers. HF_ENDPOINT names another server than Hugging Face's to fetch from, and HF_TOKEN is sent to it. options may
// be nil.
func Open(ctx context.Context, nameOrPath string, options *Options) (*Model, error) {
	if options == nil {
		options = &Options{}
	}
	cfg, _, err := config.Load(os.Environ())
	if err != nil {
		return nil, fmt.Errorf("baleen: %w", err)
	}
	path, err := locate(ctx, cfg, nameOrPath, options)
	if err != nil {
		return nil, fmt.Errorf("baleen: %w", err)
	}
	o := model.Options{
		Device:  cfg.String(config.Device),
		Threads: either(options.Threads, cfg.Int(config.Threads)),
		Context: either(options.Context, cfg.Int(config.Context)),
		CPU:     either(options.CPU, cfg.CPULimit()),
		Seqs:    options.Streams,
	}
	if options.KV32 || cfg.String(config.KV) == "f32" {
		o.KV = backend.KVF32
	}
	m, err := model.Open(ctx, path, o)
	if err != nil {
		return nil, fmt.Errorf("baleen: %w", err)
	}
	return &Model{m}, nil
}

func either[T comparable](a, b T) T {
	var zero T
	if a != zero {
		return a
	}
	return b
}

func locate(ctx context.Context, cfg config.Config, arg string, o *Options) (string, error) {
	st, err := store.OpenUser(either(o.Home, cfg.String(config.Home)), os.Getenv)
	if err != nil {
		return "", err
	}
	ref, err := st.Resolve(arg)
	if err != nil || ref.Entry == nil {
		return ref.Path, err
	}
	f := &fetch.Fetcher{Store: st, HFEndpoint: os.Getenv("HF_ENDPOINT"), HFToken: os.Getenv("HF_TOKEN"), UserAgent: "baleen"}
	if o.Progress != nil {
		f.Progress = &downloads{tell: o.Progress}
	}
	return f.Fetch(ctx, *ref.Entry)
}

// downloads tells a function what a fetch.Progress is told.
type downloads struct {
	tell  func(what string, done, total int64)
	title string
	total int64
}

func (d *downloads) Start(title string, done, total int64) {
	d.title, d.total = title, total
	d.tell(title, done, total)
}
func (d *downloads) Set(done int64) { d.tell(d.title, done, d.total) }
func (d *downloads) Stop()          {}
func (d *downloads) Note(string)    {}

// Close ends all requests with an error and gives the memory back.
func (m *Model) Close() error { return m.m.Close() }

// Info describes a model.
type Info struct {
	Name         string // as the model calls itself
	Family       string // such as "qwen2"
	Quantization string // such as "Q4_K_M"
	Parameters   int64
	Vocabulary   int  // number of token ids
	Context      int  // tokens that a conversation can have here
	MaxContext   int  // tokens that the model was made for; 0: it does not say
	Chat         bool // the model has a chat template
}

// Info describes the model.
func (m *Model) Info() Info {
	i := m.m.Info
	return Info{
		Name: i.Name, Family: i.Family, Quantization: i.Quantization, Parameters: i.Parameters, Vocabulary: m.m.Plan.Vocab,
		Context: m.m.Context, MaxContext: i.MaxContext, Chat: m.m.HasTemplate,
	}
}

// Tokenize returns the token ids of a text, with nothing added. Control tokens written in the text become ordinary
// text. A text on which the tokenizer's regular expression backtracks without end is an error.
func (m *Model) Tokenize(text string) ([]int32, error) {
	return m.m.Tokenizer.Encode(nil, text, tokenizer.Options{})
}

// Detokenize returns the text of token ids, control tokens included.
func (m *Model) Detokenize(ids []int32) string { return m.m.Tokenizer.Decode(ids, false) }

// Count returns the number of tokens of a text; see Tokenize for the error.
func (m *Model) Count(text string) (int, error) {
	ids, err := m.Tokenize(text)
	return len(ids), err
}

// CountChat returns the number of tokens that a conversation takes, the template's own included.
func (m *Model) CountChat(ctx context.Context, messages []Message) (int, error) {
	ids, err := m.m.Chat(ctx, messages)
	return len(ids), err
}

// A Message is one turn of a conversation. Its Role is "system", "user" or "assistant".
type Message = model.Message

// ErrNoTemplate says that a model has no chat template: use Generate.
var ErrNoTemplate = model.ErrNoTemplate

// PromptTooLong refuses a prompt that does not fit into the context, with both counts.
type PromptTooLong = engine.PromptTooLong

// Params say how an answer is made. The zero value takes the most probable token until the model ends its answer.
type Params struct {
	MaxTokens   int     // most tokens to generate; 0: until the context is full; negative: none, the prompt is only read
	Temperature float32 // 0: the most probable token, always
	TopK        int     // keep the k most probable tokens; 0: all
	TopP        float32 // keep the most probable tokens that reach p together; 0 or 1: all
	MinP        float32 // drop tokens with less than p times the best one's probability
	Seed        *uint64 // nil: a random one; Usage says which

	RepetitionPenalty float32 // 0 or 1: off
	PresencePenalty   float32
	FrequencyPenalty  float32

	Stop []string // texts that end the answer; they are not part of it
}

// A Chunk is a piece of an answer: what became text with one token. The last chunk of an answer has Finish set.
type Chunk struct {
	Text   string
	Token  int32  // -1 in the last chunk
	Finish string // "": more follows; "stop": the model ended; "length": MaxTokens or the context did; else see the error
	Usage  Usage  // in the last chunk
}

// Usage counts what an answer took.
type Usage struct {
	Prompt    int // tokens of the prompt
	Cached    int // of these, not computed since a cache had them
	Generated int // tokens of the answer, the one that ended it included

	First time.Duration // until the first token
	Total time.Duration
	Seed  uint64
}

// Generate continues a text. Leaving the loop, or the end of ctx, stops it within one step. The error is not nil in at
// most one pair, the last one: a *PromptTooLong, a wrong parameter, or the end of ctx. params may be nil.
func (m *Model) Generate(ctx context.Context, prompt string, params *Params) iter.Seq2[Chunk, error] {
	return m.stream(ctx, params, func() ([]int32, error) { return m.m.Text(prompt) })
}

// Chat answers a conversation by the model's own template. No message can write a control token.
func (m *Model) Chat(ctx context.Context, messages []Message, params *Params) iter.Seq2[Chunk, error] {
	return m.stream(ctx, params, func() ([]int32, error) { return m.m.Chat(ctx, messages) })
}

func (m *Model) stream(ctx context.Context, params *Params, prompt func() ([]int32, error)) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		tokens, err := prompt()
		if err != nil {
			yield(Chunk{Token: -1}, err)
			return
		}
		s, err := m.m.Engine.Generate(ctx, params.request(tokens))
		if err != nil {
			yield(Chunk{Token: -1}, err)
			return
		}
		for ev := range s.All() {
			if !yield(chunk(ev), failure(ev)) {
				return
			}
		}
	}
}

func (p *Params) request(tokens []int32) *engine.Request {
	r := &engine.Request{Tokens: tokens}
	if p == nil {
		return r
	}
	r.MaxTokens, r.Stop = p.MaxTokens, p.Stop
	r.Sampling = sample.Params{
		Temperature: p.Temperature, TopK: p.TopK, TopP: p.TopP, MinP: p.MinP, RepetitionPenalty: p.RepetitionPenalty,
		PresencePenalty: p.PresencePenalty, FrequencyPenalty: p.FrequencyPenalty,
	}
	if p.Seed != nil {
		r.Sampling.Seed, r.Sampling.HasSeed = *p.Seed, true
	}
	return r
}

func chunk(ev engine.Event) Chunk {
	c := Chunk{Text: ev.Text, Token: ev.Token}
	if ev.Done {
		u := ev.Usage
		c.Finish = ev.Reason.String()
		c.Usage = Usage{Prompt: u.Prompt, Cached: u.Cached, Generated: u.Generated, First: u.First, Total: u.Total, Seed: u.Seed}
	}
	return c
}

// failure is the error that a stream ended with.
func failure(ev engine.Event) error {
	switch {
	case !ev.Done:
		return nil
	case ev.Err != nil:
		return ev.Err
	case ev.Reason == engine.FinishCancelled:
		return context.Canceled
	case ev.Reason == engine.FinishError:
		return errors.New("baleen: the request failed")
	}
	return nil
}

// Text collects an answer. It returns what came before an error as well.
func Text(chunks iter.Seq2[Chunk, error]) (string, Usage, error) {
	var b strings.Builder
	for c, err := range chunks {
		b.WriteString(c.Text)
		if err != nil || c.Finish != "" {
			return b.String(), c.Usage, err
		}
	}
	return b.String(), Usage{}, nil
}
