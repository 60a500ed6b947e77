// Package importrules holds the rules on which package may import which. Its test reads the code and fails where an
// arrow points the wrong way; it has nothing to run.
package importrules

import "strings"

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
	{"internal/engine", "internal/tokenizer", "the engine knows token ids; text is package chat's"},
	{"internal/engine", "internal/chat", "conversations become requests of the engine, not the other way round"},
	{"internal/engine", "internal/family", "the engine runs plans; opening checkpoints is package model's"},
	{"internal/engine", "internal/backend/cpu", "the engine runs on any backend"},
	{"internal/kv", "net/http", "the cache serves no protocol"},
	{"internal/backend", "net/http", "a backend serves no protocol"},
	{"internal/family", "net/http", "a checkpoint is a file, not a download"},
	{"internal/model", "internal/cli", "commands call the model, not the other way round"},
	{"internal/model", "internal/server", "opening a model serves no protocol"},
	{"internal/fairshare", "internal", "who shares with whom does not depend on what is shared"},
	{"internal/pool", "internal", "what is kept loaded comes in as a type parameter"},
	{"internal/auth", "internal", "who may ask does not depend on what is asked"},
	{"internal/toolfmt", "internal/tokenizer", "calls are text, not ids"},
	{"internal/toolfmt", "internal/engine", "calls are text, whoever generates it"},
	{"internal/toolfmt", "net/http", "the forms of families are no vendor's API"},
	{"internal/grammar", "internal", "a constraint knows bytes and token ids, not models or requests"},
	{"internal/grammar", "net/http", "a constraint serves no protocol, and fetches no schemas"},
	{"internal/grammar/regular", "internal/grammar/schema", "a language knows no documents"},
	{"internal/server/openai", "internal/server/anthropic", "a dialect knows no other"},
	{"internal/server/openai", "internal/server/ollama", "a dialect knows no other"},
	{"internal/server/openai", "internal/engine", "a dialect decodes into package chat's requests"},
	{"internal/server/anthropic", "internal/server/openai", "a dialect knows no other"},
	{"internal/server/anthropic", "internal/server/ollama", "a dialect knows no other"},
	{"internal/server/anthropic", "internal/engine", "a dialect decodes into package chat's requests"},
	{"internal/server/ollama", "internal/server/openai", "a dialect knows no other"},
	{"internal/server/ollama", "internal/server/anthropic", "a dialect knows no other"},
	{"internal/server/ollama", "internal/engine", "a dialect decodes into package chat's requests"},
	{
		"internal/server/ollama",
		"internal/server/keeper",
		"a dialect asks for changes on disk by package modeladmin's words",
	},
	{"internal/server/llamacpp", "internal/server/openai", "a dialect knows no other"},
	{"internal/server/llamacpp", "internal/server/anthropic", "a dialect knows no other"},
	{"internal/server/llamacpp", "internal/server/ollama", "a dialect knows no other"},
	{"internal/server/llamacpp", "internal/engine", "a dialect decodes into package chat's requests"},
	{"internal/server/keeper", "internal/server/ollama", "who changes models knows no dialect"},
	{"internal/server/keeper", "net/http", "who changes models serves no protocol"},
	{"internal/server/models", "net/http", "a catalog serves no protocol"},
	{"internal/chat", "net/http", "a request is the same whatever brought it"},
	{"internal/chat", "internal/store", "a request names models; where they lie a catalog says"},
	{"internal/chat", "internal/fetch", "a conversation downloads nothing"},
	{"internal/chat", "internal/server", "dialects are clients of the core, not the other way round"},
	{"internal/chat", "internal/cli", "the terminal is a client of the core, not the other way round"},
	{"internal/chat", "internal/auth", "a caller is a word in the trace"},
	{"internal/cli", "internal/toolfmt", "answers are taken apart in one place, package chat"},
	{"internal/model", "internal/chat", "conversations stand above an open model"},
	{"internal/model", "internal/chattmpl", "templates are rendered in one place, package chat"},
	{"internal/cli/chatui", "internal", "the screen shows text, wherever it comes from"},
	{"internal/agent/event", "internal", "what happens is data, for any face"},
	{"internal/agent/store", "internal/chat", "a log is of events, whatever they mean"},
	{"internal/agent", "internal/cli", "the agent knows no screens"},
	{"internal/agent", "internal/server", "the agent serves no protocol"},
	{"internal/agent", "internal/engine", "conversations go through package chat"},
	{"internal/agent/sandbox", "internal", "who may run what is decided elsewhere"},
	{"examples", "internal", "examples show what any program can do"},
	{"internal/server", "internal/cli", "commands start the server, not the other way round"},
}

// allows reports whether package from may import path under the rule. Parts of one tree may import each other.
func (r rule) allows(from, path string) bool {
	return !within(from, module+r.from) || !within(path, r.target()) || within(path, module+r.from)
}

// target is the import path of what a rule forbids: a package of this module or of another.
func (r rule) target() string {
	if within(r.to, "internal") || within(r.to, "cmd") {
		return module + r.to
	}
	return r.to
}

const module = "github.com/baleenrun/baleen/"

func within(path, tree string) bool { return path == tree || strings.HasPrefix(path, tree+"/") }
