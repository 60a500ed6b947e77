// Package arrows holds the rules on which package may import which. Its test reads the code and fails where an
// arrow points the wrong way; it has nothing to run.
package arrows

// A rule forbids packages under one path to import packages under another, and says why.
type rule struct{ from, to, why string }

var forbidden = []rule{
	{"internal/quant", "internal", "quant is arithmetic on blocks and stands at the bottom"},
	{"internal/mmap", "internal", "mmap maps files and stands at the bottom"},
	{"internal/gguf", "internal/family", "a container knows no families"},
	{"internal/gguf", "internal/backend", "a container knows no backends"},
	{"internal/safetensors", "internal/family", "a container knows no families"},
	{"internal/safetensors", "internal/backend", "a container knows no backends"},
	{"internal/plan", "internal/family", "a plan is what families lower to; it knows none"},
	{"internal/plan", "internal/backend", "a plan is what backends compile; it knows none"},
	{"internal/family", "internal/backend", "a family is data for any backend"},
	{"internal/family", "internal/engine", "a family runs nothing"},
	{"internal/backend", "internal/family", "a backend executes plans of any family"},
	{"internal/backend", "internal/engine", "a backend knows pages and rows, not requests"},
	{"internal/backend", "internal/tokenizer", "a backend knows token ids, not text"},
	{"internal/tokenizer", "internal/gguf", "a tokenizer takes keys from any source"},
	{"internal/tokenizer", "internal/engine", "a tokenizer is text and ids only"},
	{"internal/chattmpl", "internal/tokenizer", "a template yields text, not ids"},
	{"internal/kv", "internal/tokenizer", "the cache knows token ids, not text"},
	{"internal/kv", "internal/engine", "the cache serves the engine, not the other way round"},
	{"internal/sample", "internal/engine", "sampling is arithmetic on one row of logits"},
	{"internal/engine", "net/http", "the engine serves no protocol"},
	{"internal/engine", "internal/cli", "the engine has no user interface"},
	{"internal/engine", "internal/family", "the engine runs plans; opening checkpoints is package model's"},
	{"internal/engine", "internal/backend/cpu", "the engine runs on any backend"},
	{"internal/kv", "net/http", "the cache serves no protocol"},
	{"internal/backend", "net/http", "a backend serves no protocol"},
	{"internal/family", "net/http", "a checkpoint is a file, not a download"},
	{"internal/model", "internal/cli", "commands call the model, not the other way round"},
}
