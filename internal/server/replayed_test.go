package server_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// TestReplayedFields sends what clients send back of earlier answers, and tools with fields that change no prompt: they
// are taken where the vendor takes them, and what nothing reads is named in a header and in the log.
func TestReplayedFields(t *testing.T) {
	w := all(t, servertest.Options{})
	const user = `{"role":"user","content":"hi"}`
	chat := func(messages, more string) string {
		return `{"model":"scripted","messages":[` + messages + `]` + more + `}`
	}
	for _, c := range []struct{ name, path, body, notice string }{
		{
			"a whole assistant message of OpenAI's SDK", "/v1/chat/completions",
			chat(user+`,{"role":"assistant","content":"Yes.","refusal":null,"annotations":[],"audio":null,"function_call":null,"tool_calls":[],"id":"msg_1"},`+user, ""), "",
		},
		{
			"parts of the agents SDK", "/v1/chat/completions",
			chat(user+`,{"role":"assistant","content":[{"type":"text","text":"Yes.","annotations":[],"role":"assistant","id":"x","logprobs":null}]},`+user, ""), "",
		},
		{
			"calls as they were streamed", "/v1/chat/completions",
			chat(user+`,{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{}","parsed_arguments":{}},"thought_signature":"s"}]},`+
				`{"role":"tool","tool_call_id":"c1","content":"x","is_error":false}`, ""),
			"without effect: messages[1].tool_calls[0].thought_signature, " +
				"messages[1].tool_calls[0].function.parsed_arguments, messages[2].is_error",
		},
		{"fields of other servers", "/v1/chat/completions", chat(`{"role":"user","content":"hi","weight":1,"ts":2},{"role":"user","content":"hi","ts":3}`, ""), "without effect: messages[0].weight, messages[0].ts and 1 alike"},
		{"null where nothing is known", "/v1/chat/completions", chat(user, `,"extra":null,"thinking":null,"tools":null`), ""},
		{
			"strict tools", "/v1/chat/completions", chat(user, `,"tools":[{"type":"function","function":{"name":"f","strict":true}}]`), "",
		},
		{"strict tools of responses", "/v1/responses", `{"model":"scripted","input":"hi","tools":[{"type":"function","name":"f","strict":true,"parameters":{}}]}`, ""},
		{"strict tools of messages", "/v1/messages", `{"model":"scripted","max_tokens":50,"messages":[` + user + `],"tools":[{"name":"f","strict":true,"input_schema":{"type":"object"}}]}`, ""},
		{"null in blocks", "/v1/messages", `{"model":"scripted","max_tokens":50,"messages":[{"role":"user","content":[{"type":"text","text":"hi","citations":null,"parsed_output":null}]}]}`, ""},
		{
			"Codex's tools", "/v1/responses",
			`{"model":"scripted","input":"hi","tool_choice":"auto","tools":[{"type":"function","name":"f","strict":false,"parameters":{}},{"type":"web_search","external_web_access":true},` +
				`{"type":"local_shell"},{"type":"image_generation","output_format":"png"},{"type":"custom","name":"p","format":{"type":"text"}},` +
				`{"type":"namespace","name":"n","description":"d","tools":[{"type":"function","name":"g","parameters":{}}]},{"type":"mcp","server_label":"x","server_url":"http://x/"}]}`,
			"without effect: tools[1] (web_search), tools[2] (local_shell), tools[3] (image_generation), tools[6] " +
				"(mcp)",
		},
		{
			"allowed tools of which some are left out", "/v1/responses",
			`{"model":"scripted","input":"hi","tools":[{"type":"function","name":"f","parameters":{}},{"type":"file_search","vector_store_ids":[]}],` +
				`"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"},{"type":"file_search"}]}}`,
			"without effect: tools[1] (file_search)",
		},
		{
			"items of an earlier answer", "/v1/responses",
			`{"model":"scripted","input":[{"type":"reasoning","id":"rs_1","status":"completed","summary":[{"type":"summary_text","text":"t"}],"content":null,"encrypted_content":null},` +
				`{"type":"message","id":"msg_1","status":"completed","phase":null,"role":"assistant","content":[{"type":"output_text","text":"a","annotations":[],"logprobs":[]}]},{"role":"user","content":"hi"}]}`, "",
		},
		{"unknown options", "/api/chat", chat(user, `,"options":{"num_gqa":1},"metadata":{}`), "without effect: metadata, options.num_gqa"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := w.Post(t, c.path, c.body)
			if got := r.Header.Get(server.NoticeHeader); r.Status != 200 || got != c.notice {
				t.Errorf("%d %.200s\nnotice %q\nwant   %q", r.Status, r.Body, got, c.notice)
			}
			if c.notice != "" && !strings.Contains(w.Log(), `"notice":"`+c.notice+`"`) {
				t.Error("the log does not have it")
			}
		})
	}
}

// TestNumbersOfClients sends numbers as clients of Ollama, llama.cpp and LM Studio do.
func TestNumbersOfClients(t *testing.T) {
	w := all(t, servertest.Options{})
	ollama := func(more string) string { return `{"model":"scripted","prompt":"COUNT","stream":false,` + more + `}` }
	for _, c := range []struct {
		path, body string
		tokens     float64 // of the answer; 0: not looked at
		status     int
	}{
		{"/api/generate", ollama(`"options":{"seed":9223372036854775807,"num_predict":3}`), 3, 200},
		{"/api/generate", ollama(`"options":{"seed":18446744073709551615,"num_predict":3}`), 3, 200},
		{"/api/generate", ollama(`"options":{"seed":-9223372036854775808,"num_predict":3}`), 3, 200},
		{"/api/generate", ollama(`"options":{"num_predict":3.9,"top_k":40.5,"num_ctx":4096.5,"repeat_last_n":64.5,"seed":1.5}`), 3, 200},
		{"/api/generate", ollama(`"options":{"num_predict":"3"}`), 0, 400},
		{"/api/generate", ollama(`"keep_alive":"-1","options":{"num_predict":3}`), 3, 200},
		{"/api/generate", ollama(`"keep_alive":"5","options":{"num_predict":3}`), 3, 200},
		{"/v1/chat/completions", `{"model":"scripted","messages":[{"role":"user","content":"COUNT"}],"max_tokens":-1}`, 1493, 200},
		{"/v1/chat/completions", `{"model":"scripted","messages":[{"role":"user","content":"COUNT"}],"max_tokens":-1,"max_completion_tokens":3}`, 3, 200},
		{"/v1/chat/completions", `{"model":"scripted","messages":[{"role":"user","content":"COUNT"}],"max_tokens":0}`, 0, 400},
		{"/v1/chat/completions", `{"model":"scripted","messages":[{"role":"user","content":"COUNT"}],"max_tokens":-2}`, 0, 400},
		{"/v1/completions", `{"model":"scripted","prompt":"<|im_start|>user\nCOUNT","max_tokens":-1}`, 1493, 200},
		{"/v1/responses", `{"model":"scripted","input":"COUNT","max_output_tokens":-1}`, 1493, 200},
	} {
		r := w.Post(t, c.path, c.body)
		if r.Status != c.status {
			t.Errorf("%s: %d %.200s", c.body, r.Status, r.Body)
			continue
		}
		if c.tokens == 0 {
			continue
		}
		m := r.JSON(t)
		got := m["eval_count"]
		if u, ok := m["usage"].(map[string]any); ok {
			if got = u["completion_tokens"]; got == nil {
				got = u["output_tokens"]
			}
		}
		if got != c.tokens {
			t.Errorf("%s: %v tokens, want %v", c.body, got, c.tokens)
		}
	}
}

// matchers are how clients tell from an error that the prompt is too long, copied from their sources: regular
// expressions on the body in lower case. Those of LiteLLM are aider's and DSPy's, too.
var matchers = map[string][]struct{ client, pattern string }{
	"openai": {
		{"LiteLLM 1.81, 1.110", `this model's maximum context length is`},
		{"LangChain 1.7, events of streams", `exceeds the context window`},
		{"LangChain 1.7", `context_length_exceeded`},
		{"Pydantic AI 2.68", `maximum context length`},
		{"Pydantic AI 2.68, Groq", `reduce the length of the messages`},
		{"Inspect 0.3, lm-eval, gptme 0.35, CrewAI 1.15, Strands 1.62", `maximum context length`},
		{"Codex", `"context_length_exceeded"`},
	},
	"llamacpp": {
		{"LiteLLM 1.110", `exceeds the available context size`},
		{"Strands 1.62, llama.cpp", `context|kv cache|slot`},
		{"llama.cpp's own", `"type":"exceed_context_size_error","n_prompt_tokens":\d+,"n_ctx":512`},
	},
	"anthropic": {
		{"Claude Code, LangChain 1.7, LiteLLM 1.110, agno 3.1", `prompt is too long`},
		{"Strands 1.62", `prompt is too long:`},
		{"LiteLLM 1.110, with numbers", `prompt is too long: \d+ tokens > \d+ maximum`},
	},
	"ollama": {
		{"LiteLLM 1.110", `this model's maximum context length is`},
		{"Strands 1.62", `the input length exceeds the context length`},
		{
			"Ollama's integration suite",
			`context.*(exceed|too large|longer|too long)|(exceed|too large|longer|too long).*context`,
		},
	},
}

// TestOverflowWords wants errors of prompts that are too long to have the words that clients look for, with the
// numbers.
func TestOverflowWords(t *testing.T) {
	w := all(t, servertest.Options{Model: func(o *model.Options) { o.Context = 512 }})
	for _, s := range speakers {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprint(s.path, " ", stream), func(t *testing.T) {
				body := s.say(strings.Repeat("x", 5000), stream)
				r := w.Post(t, s.path, strings.Replace(body, "9000", "90", 1), anthropicHdr, "2023-06-01")
				if r.Status != 400 || !strings.Contains(r.Body, "512") {
					t.Fatalf("%d %s", r.Status, r.Body)
				}
				for _, m := range matchers[s.dialect] {
					if !regexp.MustCompile(m.pattern).MatchString(strings.ToLower(r.Body)) {
						t.Errorf("%s looks for %q in %s", m.client, m.pattern, r.Body)
					}
				}
			})
		}
	}
}
