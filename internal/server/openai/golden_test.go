package openai_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/openai"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

const weather = `"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]`

const responseWeather = `"tools":[{"type":"function","name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}]`

func says(text, more string) string {
	return fmt.Sprintf(`{"model":"scripted","messages":[{"role":"user","content":%q}]%s}`, text, more)
}

// goldens are requests whose whole answers are kept in testdata/golden.
var goldens = []struct{ name, path, body string }{
	{"chat", "/v1/chat/completions", says("hi", "")},
	{"chat-stream", "/v1/chat/completions", says("hi", `,"stream":true,"stream_options":{"include_usage":true}`)},
	{"chat-calls", "/v1/chat/completions", says("TWO CALLS", ","+weather)},
	{"chat-calls-stream", "/v1/chat/completions", says("WEATHER", `,"stream":true,`+weather)},
	{"chat-call-cut", "/v1/chat/completions", says("WEATHER", `,"max_tokens":66,`+weather)},
	{"chat-call-cut-stream", "/v1/chat/completions", says("WEATHER", `,"max_tokens":66,"stream":true,`+weather)},
	{"chat-reasoning-stream", "/v1/chat/completions", says("THINK", `,"stream":true`)},
	{"chat-length-stream", "/v1/chat/completions", says("COUNT", `,"stream":true,"max_tokens":4`)},
	{"chat-logprobs", "/v1/chat/completions", says("hi", `,"logprobs":true,"top_logprobs":1,"max_tokens":2`)},
	{"chat-failure-stream", "/v1/chat/completions", says("BREAK COUNT", `,"stream":true`)},
	{"chat-failure", "/v1/chat/completions", says("BREAK COUNT", "")},
	{
		"chat-refused",
		"/v1/chat/completions",
		says(
			"hi",
			`,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object","$dynamicRef":"#x"}}}`,
		),
	},
	{"chat-unknown-field", "/v1/chat/completions", says("hi", `,"temprature":1`)},
	{"completion", "/v1/completions", `{"model":"scripted","prompt":"Once","echo":true,"logprobs":1,"max_tokens":2}`},
	{
		"completion-stream",
		"/v1/completions",
		`{"model":"scripted","prompt":["a"],"stream":true,"max_tokens":2,"stream_options":{"include_usage":true}}`,
	},
	{"response", "/v1/responses", `{"model":"scripted","input":"THINK"}`},
	{"response-stream", "/v1/responses", `{"model":"scripted","input":"THINK","stream":true}`},
	{
		"response-calls-stream",
		"/v1/responses",
		`{"model":"scripted","input":"WEATHER","stream":true,"store":false,` + responseWeather + `}`,
	},
	{
		"response-call-cut-stream",
		"/v1/responses",
		`{"model":"scripted","input":"WEATHER","stream":true,"store":false,"max_output_tokens":66,` + responseWeather + `}`,
	},
	{
		"response-length-stream",
		"/v1/responses",
		`{"model":"scripted","input":"COUNT","stream":true,"max_output_tokens":4}`,
	},
	{"response-failure-stream", "/v1/responses", `{"model":"scripted","input":"BREAK COUNT","stream":true}`},
	{"response-refused", "/v1/responses", `{"model":"scripted","input":"hi","truncation":"auto"}`},
}

var (
	ids   = regexp.MustCompile(`"(chatcmpl-|cmpl-|call_|resp_|msg_|rs_|fc_|item_)[A-Za-z0-9]{24}"`)
	times = regexp.MustCompile(`"(created|created_at|completed_at)":\d+`)
	logs  = regexp.MustCompile(`(-?\d+\.\d{3})\d*(e-\d+)?`)
)

// plain replaces what differs between runs.
func plain(s string) string {
	s = ids.ReplaceAllString(s, `"${1}ID"`)
	s = times.ReplaceAllString(s, `"$1":0`)
	s = regexp.MustCompile(`-\d\.\d+e-\d+`).ReplaceAllString(s, "-0.000")
	return logs.ReplaceAllString(s, "$1")
}

// TestGoldens compares whole answers, byte for byte but for ids and times. Files that no case uses fail.
func TestGoldens(t *testing.T) {
	left := map[string]bool{}
	files, err := filepath.Glob("testdata/golden/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		left[f] = true
	}
	for _, c := range goldens {
		file := "testdata/golden/" + c.name + ".txt"
		delete(left, file)
		t.Run(c.name, func(t *testing.T) {
			w := servertest.New(
				t,
				servertest.Options{Script: servertest.Demo, Dialects: []func(*server.Env) server.Dialect{openai.New}},
			)
			w.Backend.SetFail(breaks)
			r := w.Post(t, c.path, c.body)
			got := fmt.Sprintf(
				"POST %s\n%s\n\n%d %s\n\n%s",
				c.path,
				c.body,
				r.Status,
				r.Header.Get("Content-Type"),
				plain(r.Body),
			)
			if *update {
				if err := os.MkdirAll("testdata/golden", 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if string(want) != got {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
	for f := range left {
		t.Errorf("%s belongs to no case", f)
	}
}

// TestStreamsSayWhatWholeAnswersSay compares both forms of one request.
func TestStreamsSayWhatWholeAnswersSay(t *testing.T) {
	w := servertest.New(
		t,
		servertest.Options{Script: servertest.Demo, Dialects: []func(*server.Env) server.Dialect{openai.New}},
	)
	for _, text := range []string{"hi", "UNICODE", "THINK", "COUNT", "WEATHER", "TWO CALLS"} {
		type message struct {
			Content   string `json:"content"`
			Reasoning string `json:"reasoning_content"`
			Calls     []struct {
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		var whole struct {
			Choices []struct {
				Message message
				Finish  string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(w.Post(t, "/v1/chat/completions", says(text, ","+weather)).Body), &whole); err != nil {
			t.Fatal(err)
		}
		want := whole.Choices[0].Message
		wantCalls := ""
		for _, c := range want.Calls {
			wantCalls += c.Function.Name + c.Function.Arguments
		}
		var got message
		calls, finish := "", ""
		for _, e := range w.Post(t, "/v1/chat/completions", says(text, `,"stream":true,`+weather)).Events(t) {
			var c struct {
				Choices []struct {
					Delta  message
					Finish string `json:"finish_reason"`
				}
			}
			if e.Data == "[DONE]" {
				continue
			}
			if err := json.Unmarshal([]byte(e.Data), &c); err != nil {
				t.Fatal(err)
			}
			d := c.Choices[0].Delta
			got.Content += d.Content
			got.Reasoning += d.Reasoning
			finish += c.Choices[0].Finish
			for _, x := range d.Calls {
				calls += x.Function.Name + x.Function.Arguments
			}
		}
		if got.Content != want.Content || got.Reasoning != want.Reasoning || calls != wantCalls ||
			finish != whole.Choices[0].Finish {
			t.Errorf("%s: stream %+v %s %s, whole %+v %s", text, got, calls, finish, want, whole.Choices[0].Finish)
		}
	}
}

// TestConversationsInResponses continues a response by its id and by its items, and both see the same prompt.
func TestConversationsInResponses(t *testing.T) {
	var seen []string
	w := servertest.New(t, servertest.Options{
		Script:   func(p string) string { seen = append(seen, p); return servertest.Demo(p) },
		Dialects: []func(*server.Env) server.Dialect{openai.New},
	})
	r := w.Post(t, "/v1/responses", `{"model":"scripted","input":"WEATHER","instructions":"Be kind.",`+responseWeather+`}`).
		JSON(t)
	output, err := json.Marshal(r["output"])
	if err != nil {
		t.Fatal(err)
	}
	items := r["output"].([]any)
	id := items[len(items)-1].(map[string]any)["call_id"]
	result := fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"sunny"}`, id)
	w.Post(
		t,
		"/v1/responses",
		fmt.Sprintf(
			`{"model":"scripted","previous_response_id":%q,"instructions":"Be kind.","input":[%s],%s}`,
			r["id"],
			result,
			responseWeather,
		),
	)
	w.Post(
		t,
		"/v1/responses",
		fmt.Sprintf(
			`{"model":"scripted","instructions":"Be kind.","input":[{"role":"user","content":"WEATHER"},%s,%s],%s}`,
			strings.Trim(string(output), "[]"),
			result,
			responseWeather,
		),
	)
	if len(seen) < 2 || !strings.Contains(seen[1], "<tool_response>\nsunny") ||
		!strings.Contains(seen[1], `{"name": "get_weather", "arguments": {"city": "Oslo"}}`) {
		t.Fatalf("%q", seen)
	}
	if len(seen) == 3 && seen[2] != seen[1] {
		t.Errorf("by id:\n%s\nby items:\n%s", seen[1], seen[2])
	}
}
