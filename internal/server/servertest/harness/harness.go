// Package harness runs real coding harnesses, headless, against a server: what each needs to be told so that it speaks
// to that server alone, and how its tool for reading files is called. It is for tests; scripts/get-harnesses fetches
// the programs. It knows no server.
package harness

import (
	"encoding/json"
	"fmt"
	"path/filepath"
)

// A Setup is where one run takes place.
type Setup struct {
	URL   string // of the server, without a path
	Model string
	Home  string // an empty folder for the harness's own files
	Work  string // the folder that it works in
}

// A Harness is a program and what it is told. Nothing of the caller's own environment reaches it.
type Harness struct {
	Name    string // of what is run
	Command string
	Dialect string // of the server that it speaks: chat, responses or messages

	// Reads returns the name and the arguments of the call that reads a file of the working folder.
	Reads func(s Setup, file string) (name string, arguments map[string]any)
	Files func(Setup) map[string]string // contents by path below the home folder; nil: none
	Env   func(Setup) []string          // nil: none
	Args  func(s Setup, prompt string) []string
}

// Context is the size of context that harnesses are told of.
const Context = 200000

// All are the harnesses that the server is tested with, each speaking the dialect that it is used with most.
func All() []Harness {
	return []Harness{claude(), codex(), opencode(), copilot("chat"), pi("chat"), qwen("chat")}
}

// Others are harnesses of All that can speak more dialects, speaking these.
func Others() []Harness {
	return []Harness{
		copilot("responses"), copilot("messages"), pi("responses"), pi("messages"), qwen("responses"), qwen("messages"),
	}
}

// named names a harness that speaks several dialects.
func named(command, dialect string) Harness {
	h := Harness{Name: command, Command: command, Dialect: dialect}
	if dialect != "chat" {
		h.Name += "-" + dialect
	}
	return h
}

func claude() Harness {
	return Harness{
		Name: "claude", Command: "claude", Dialect: "messages",
		Reads: func(s Setup, file string) (string, map[string]any) {
			return "Read", map[string]any{"file_path": filepath.Join(s.Work, file)}
		},
		Env: func(s Setup) []string {
			return []string{
				"ANTHROPIC_BASE_URL=" + s.URL, "ANTHROPIC_AUTH_TOKEN=none", "ANTHROPIC_API_KEY=",
				"ANTHROPIC_MODEL=" + s.Model, "ANTHROPIC_DEFAULT_OPUS_MODEL=" + s.Model, "ANTHROPIC_DEFAULT_SONNET_MODEL=" + s.Model,
				"ANTHROPIC_DEFAULT_HAIKU_MODEL=" + s.Model, "CLAUDE_CODE_SUBAGENT_MODEL=" + s.Model,
				// A header in the prompt that differs with each request would leave nothing of it in the cache.
				"CLAUDE_CODE_ATTRIBUTION_HEADER=0",
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
			}
		},
		Args: func(_ Setup, prompt string) []string { return []string{"-p", prompt, "--allowedTools", "Read"} },
	}
}

func codex() Harness {
	return Harness{
		Name: "codex", Command: "codex", Dialect: "responses",
		Reads: func(_ Setup, file string) (string, map[string]any) {
			return "exec_command", map[string]any{"cmd": "cat " + file}
		},
		Files: func(s Setup) map[string]string {
			return map[string]string{".codex/config.toml": fmt.Sprintf(`model = %q
model_provider = "baleen"
model_context_window = %d
web_search = "disabled"
check_for_update_on_startup = false

[features]
plugins = false
apps = false
remote_plugin = false

[analytics]
enabled = false

[feedback]
enabled = false

[model_providers.baleen]
name = "Baleen"
base_url = %q
wire_api = "responses"
env_key = "BALEEN_KEY"
`, s.Model, Context, s.URL+"/v1")}
		},
		Env: func(Setup) []string { return []string{"BALEEN_KEY=none"} },
		Args: func(_ Setup, prompt string) []string {
			return []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", prompt}
		},
	}
}

func opencode() Harness {
	return Harness{
		Name: "opencode", Command: "opencode", Dialect: "chat",
		Reads: func(s Setup, file string) (string, map[string]any) {
			return "read", map[string]any{"filePath": filepath.Join(s.Work, file)}
		},
		Env: func(s Setup) []string {
			return []string{
				// By this variable, not by a file: beside a file of settings it installs packages for plugins.
				"OPENCODE_CONFIG_CONTENT=" + text(map[string]any{
					"autoupdate": false, "share": "disabled", "model": "baleen/" + s.Model, "small_model": "baleen/" + s.Model,
					"enabled_providers": []string{"baleen"},
					"provider": map[string]any{"baleen": map[string]any{
						"npm": "@ai-sdk/openai-compatible", "name": "Baleen",
						"options": map[string]any{"baseURL": s.URL + "/v1", "apiKey": "none"},
						"models": map[string]any{
							s.Model: map[string]any{"limit": map[string]any{"context": Context, "output": 4096}},
						},
					}},
				}),
				"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
				"OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
			}
		},
		Args: func(_ Setup, prompt string) []string { return []string{"run", "--pure", "--print-logs", prompt} },
	}
}

func copilot(dialect string) Harness {
	h := named("copilot", dialect)
	h.Reads = func(s Setup, file string) (string, map[string]any) {
		return "view", map[string]any{"path": filepath.Join(s.Work, file)}
	}
	h.Env = func(s Setup) []string {
		env := []string{
			"COPILOT_PROVIDER_API_KEY=none", "COPILOT_MODEL=" + s.Model, "COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false",
		}
		switch dialect {
		case "messages":
			return append(env, "COPILOT_PROVIDER_TYPE=anthropic", "COPILOT_PROVIDER_BASE_URL="+s.URL)
		case "responses":
			return append(env, "COPILOT_PROVIDER_BASE_URL="+s.URL+"/v1", "COPILOT_PROVIDER_WIRE_API=responses")
		default:
			return append(env, "COPILOT_PROVIDER_BASE_URL="+s.URL+"/v1", "COPILOT_PROVIDER_WIRE_API=completions")
		}
	}
	h.Args = func(_ Setup, prompt string) []string {
		return []string{"-p", prompt, "--allow-all-tools", "--disable-builtin-mcps", "--disable-client-telemetry"}
	}
	return h
}

func pi(dialect string) Harness {
	h := named("pi", dialect)
	h.Reads = func(s Setup, file string) (string, map[string]any) {
		return "read", map[string]any{"path": filepath.Join(s.Work, file)}
	}
	h.Files = func(s Setup) map[string]string {
		api, url := "openai-completions", s.URL+"/v1"
		switch dialect {
		case "responses":
			api = "openai-responses"
		case "messages":
			api, url = "anthropic-messages", s.URL
		}
		return map[string]string{
			".pi/agent/models.json": text(map[string]any{"providers": map[string]any{"baleen": map[string]any{
				"baseUrl": url, "api": api, "apiKey": "none",
				"models": []any{map[string]any{"id": s.Model, "contextWindow": Context, "maxTokens": 4096}},
			}}}),
		}
	}
	h.Env = func(Setup) []string { return []string{"PI_OFFLINE=1", "PI_TELEMETRY=0", "PI_SKIP_VERSION_CHECK=1"} }
	h.Args = func(s Setup, prompt string) []string {
		return []string{"--provider", "baleen", "--model", s.Model, "--offline", "-p", prompt}
	}
	return h
}

func qwen(dialect string) Harness {
	h := named("qwen", dialect)
	h.Reads = func(s Setup, file string) (string, map[string]any) {
		return "read_file", map[string]any{"file_path": filepath.Join(s.Work, file)}
	}
	h.Files = func(Setup) map[string]string {
		return map[string]string{".qwen/settings.json": text(map[string]any{
			"general":   map[string]any{"enableAutoUpdate": false},
			"privacy":   map[string]any{"usageStatisticsEnabled": false},
			"telemetry": map[string]any{"enabled": false},
		})}
	}
	h.Env = func(s Setup) []string {
		if dialect == "messages" {
			return []string{
				"ANTHROPIC_BASE_URL=" + s.URL,
				"ANTHROPIC_API_KEY=none",
				"ANTHROPIC_MODEL=" + s.Model,
				"QWEN_TELEMETRY_ENABLED=false",
			}
		}
		return []string{
			"OPENAI_BASE_URL=" + s.URL + "/v1",
			"OPENAI_API_KEY=none",
			"OPENAI_MODEL=" + s.Model,
			"QWEN_TELEMETRY_ENABLED=false",
		}
	}
	h.Args = func(_ Setup, prompt string) []string {
		auth := map[string]string{"chat": "openai", "responses": "openai-responses", "messages": "anthropic"}[dialect]
		return []string{"--auth-type", auth, "--approval-mode", "yolo", "-p", prompt}
	}
	return h
}

// text writes a setting as JSON.
func text(v map[string]any) string {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err) // maps of strings and numbers
	}
	return string(b) + "\n"
}
