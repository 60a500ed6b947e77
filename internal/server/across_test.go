package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/pool"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/anthropic"
	"github.com/baleenrun/baleen/internal/server/ollama"
	"github.com/baleenrun/baleen/internal/server/openai"
	"github.com/baleenrun/baleen/internal/server/servertest"
	"github.com/baleenrun/baleen/internal/store"
)

// A way is one conversation in a dialect's form: how it is asked, and where text and calls are in the answer and in the
// pieces of a stream.
type way struct {
	name, path, body, tools string
	seed                    bool // the dialect has seeds
	read                    func(v map[string]any, got *said)
}

// said is what a model said, in no dialect's form.
type said struct {
	Text, Call string
	Tokens     float64 // of the answer
}

const weatherSchema = `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`

var ways = []way{
	{
		"chat", "/v1/chat/completions", `{"messages":[SYS,ASK],"temperature":T,"top_p":1,"seed":3,"max_tokens":24,"stream_options":OPTS,"stream":S`,
		`,"tools":[{"type":"function","function":{"name":"get_weather","description":"Weather of a city","parameters":SCHEMA}}]`, true,
		func(v map[string]any, got *said) {
			for _, c := range list(v, "choices") {
				m := member(c, "message")
				if m == nil {
					m = member(c, "delta")
				}
				got.Text += text(m, "content")
				for _, call := range list(m, "tool_calls") {
					f := member(call, "function")
					got.Call += text(f, "name") + text(f, "arguments")
				}
			}
			count(member(v, "usage"), "completion_tokens", got)
		},
	},
	{
		"responses", "/v1/responses", `{"instructions":"You are brief.","input":[ASK],"temperature":T,"top_p":1,"max_output_tokens":24,"stream":S`,
		`,"tools":[{"type":"function","name":"get_weather","description":"Weather of a city","parameters":SCHEMA}]`, false,
		func(v map[string]any, got *said) {
			switch text(v, "type") {
			case "response.output_text.delta":
				got.Text += text(v, "delta")
			case "response.function_call_arguments.done":
				got.Call += text(v, "name") + text(v, "arguments")
			case "response.completed", "response.incomplete":
				count(member(member(v, "response"), "usage"), "output_tokens", got)
			case "":
				for _, it := range list(v, "output") {
					if text(it, "type") == "function_call" {
						got.Call += text(it, "name") + text(it, "arguments")
					}
					for _, part := range list(it, "content") {
						got.Text += text(part, "text")
					}
				}
				count(member(v, "usage"), "output_tokens", got)
			}
		},
	},
	{
		"messages", "/v1/messages", `{"system":"You are brief.","messages":[ASK],"temperature":T,"max_tokens":24,"stream":S`,
		`,"tools":[{"name":"get_weather","description":"Weather of a city","input_schema":SCHEMA}]`, false,
		func(v map[string]any, got *said) {
			switch text(v, "type") {
			case "content_block_start":
				got.Call += text(member(v, "content_block"), "name")
			case "content_block_delta":
				got.Text += text(member(v, "delta"), "text")
				got.Call += text(member(v, "delta"), "partial_json")
			case "message_delta":
				count(member(v, "usage"), "output_tokens", got)
			case "message":
				for _, b := range list(v, "content") {
					got.Text += text(b, "text")
					if text(b, "type") == "tool_use" {
						args, _ := json.Marshal(member(b, "input"))
						got.Call += text(b, "name") + string(args)
					}
				}
				count(member(v, "usage"), "output_tokens", got)
			}
		},
	},
	{
		"ollama chat", "/api/chat", `{"messages":[SYS,ASK],"stream":S,"options":{"temperature":T,"seed":3,"top_p":1,"num_predict":24}`,
		`,"tools":[{"type":"function","function":{"name":"get_weather","description":"Weather of a city","parameters":SCHEMA}}]`, true,
		func(v map[string]any, got *said) {
			m := member(v, "message")
			got.Text += text(m, "content")
			for _, call := range list(m, "tool_calls") {
				f := member(call, "function")
				args, _ := json.Marshal(member(f, "arguments"))
				got.Call += text(f, "name") + string(args)
			}
			count(v, "eval_count", got)
		},
	},
	{
		"ollama generate", "/api/generate", `{"system":"You are brief.","prompt":QUESTION,"stream":S,"options":{"temperature":T,"seed":3,"top_p":1,"num_predict":24}`, "", true,
		func(v map[string]any, got *said) {
			got.Text += text(v, "response")
			count(v, "eval_count", got)
		},
	},
}

func member(v any, name string) map[string]any {
	m, _ := v.(map[string]any)
	m, _ = m[name].(map[string]any)
	return m
}

func list(v any, name string) []any {
	m, _ := v.(map[string]any)
	l, _ := m[name].([]any)
	return l
}

func text(v any, name string) string {
	m, _ := v.(map[string]any)
	s, _ := m[name].(string)
	return s
}

func count(v map[string]any, name string, got *said) {
	if n, ok := v[name].(float64); ok && n > 0 {
		got.Tokens = n
	}
}

// an ask is one question, independent of the dialect.
type ask struct {
	question    string
	temperature float64
	tools       bool
}

// put asks in one way.
func (a ask) put(ctx context.Context, w *servertest.World, x *way, stream bool) (said, error) {
	body := x.body
	if a.tools {
		body += x.tools
	}
	opts := "null"
	if stream {
		opts = `{"include_usage":true}`
	}
	question, err := json.Marshal(a.question)
	if err != nil {
		return said{}, err
	}
	body = strings.NewReplacer(
		"SYS",
		`{"role":"system","content":"You are brief."}`,
		"ASK",
		`{"role":"user","content":`+string(question)+`}`,
		"QUESTION",
		string(question),
		":SCHEMA",
		":"+weatherSchema,
		":T",
		fmt.Sprintf(":%g", a.temperature),
		`:S`,
		fmt.Sprintf(":%v", stream),
		"OPTS",
		opts,
	).Replace(body)
	body = strings.Replace(body, `{`, `{"model":"real",`, 1) + "}"
	r, err := w.Send(ctx, "POST", x.path, body, "anthropic-version", "2023-06-01")
	if err != nil || r.Status != 200 {
		return said{}, fmt.Errorf("%s: %w %d %s", x.name, err, r.Status, r.Body)
	}
	var got said
	for _, line := range strings.Split(r.Body, "\n") {
		var v map[string]any
		if json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &v) == nil {
			x.read(v, &got)
		}
	}
	got.Call = strings.ReplaceAll(got.Call, " ", "") // white space between arguments is the dialect's
	return got, nil
}

// realWorld serves the default model. It must have been fetched.
func realWorld(t *testing.T) *servertest.World {
	t.Helper()
	if os.Getenv("BALEEN_TEST_MODELS") == "" {
		t.Skip("BALEEN_TEST_MODELS is not set")
	}
	home, err := store.Home(os.Getenv("BALEEN_HOME"), os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	const name = "qwen2.5-coder-0.5b"
	m, ok := store.Open(home).Find(name)
	if !ok {
		t.Fatalf("%s is not here: baleen pull %s", name, name)
	}
	return servertest.New(t, servertest.Options{
		Dialects: []func(*server.Env) server.Dialect{openai.New, anthropic.New, ollama.New(nil)},
		Names:    func(string) servertest.Names { return servertest.Names{{Name: "real", Path: m.Path}} },
		Chat: func(o *chat.Options) {
			l := &chat.Loader{Options: model.Options{Context: 2048}}
			o.Pool = pool.New(pool.Options[*chat.Model]{Open: l.Open, KeepAlive: new(forGood)})
			t.Cleanup(func() { o.Pool.Close(context.Background()) }) //nolint:errcheck // the test is over
		},
	})
}

// TestSameTokensInEveryDialect asks the default model one question in every dialect, streamed and in one piece, alone
// and among seven others. BALEEN_TEST_MODELS turns it on.
func TestSameTokensInEveryDialect(t *testing.T) {
	w := realWorld(t)
	for _, a := range []ask{
		{"Tell me about whales.", 0, false},
		{"What is the weather in Oslo?", 0, true},
		{"Tell me about whales.", 0.9, false},
	} {
		want, err := a.put(t.Context(), w, &ways[0], false)
		if err != nil || a.tools != (want.Call != "") || want.Tokens < 3 {
			t.Fatalf("%+v: %+v %v", a, want, err)
		}
		t.Logf("%+v", want)
		for i := range ways {
			x := &ways[i]
			if a.tools && x.tools == "" || a.temperature > 0 && !x.seed {
				continue
			}
			for _, stream := range []bool{false, true} {
				for _, others := range []int{0, 7} {
					got, err := among(t, w, others, func() (said, error) { return a.put(t.Context(), w, x, stream) })
					if err != nil || got != want {
						t.Errorf(
							"%+v over %s, streamed %v, among %d others: %+v %v, want %+v",
							a,
							x.name,
							stream,
							others,
							got,
							err,
							want,
						)
					}
				}
			}
		}
	}
}

// among runs f while other requests run, each of its own kind.
func among(t *testing.T, w *servertest.World, others int, f func() (said, error)) (said, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range others {
		wg.Go(func() {
			for round := 0; ctx.Err() == nil; round++ {
				a := ask{
					fmt.Sprintf("Count to %d%s.", 10*i+round, strings.Repeat(" slowly", 20*i)),
					float64(i%3) / 2,
					i%2 == 1,
				}
				if _, err := a.put(ctx, w, &ways[i%4], i%3 == 0); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	if others > 0 {
		eventually(t, "the others run", func() bool { return w.Server.Active() >= others })
	}
	got, err := f()
	cancel()
	wg.Wait()
	return got, err
}
