package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/server"
	serveranthropic "github.com/baleenrun/baleen/internal/server/anthropic"
	serveropenai "github.com/baleenrun/baleen/internal/server/openai"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// remoteWorld is Baleen's own server with a scripted model, reached by an API. Bodies of requests are kept.
func remoteWorld(t *testing.T, api string, script servertest.Script) (*Remote, *[]string) {
	t.Helper()
	w := servertest.New(t, servertest.Options{
		Script:   script,
		Dialects: []func(*server.Env) server.Dialect{serveropenai.New, serveranthropic.New},
	})
	var bodies []string
	proxy := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodPost {
			bodies = append(bodies, string(b))
		}
		r.Body = io.NopCloser(strings.NewReader(string(b)))
		w.Server.ServeHTTP(rw, r)
	}))
	t.Cleanup(proxy.Close)
	base := proxy.URL + "/v1"
	if api == Anthropic {
		base = proxy.URL
	}
	m, err := NewRemote(t.Context(), RemoteOptions{API: api, Base: base, Name: "scripted"})
	if err != nil {
		t.Fatal(err)
	}
	return m, &bodies
}

// TestRemotePrefix: against Baleen's own server, by both APIs, each request begins with the bytes of the one before up to the end of
// its conversation, calls and their results come through, and the server finds the prompt in its cache.
func TestRemotePrefix(t *testing.T) {
	for _, api := range []string{OpenAI, Anthropic} {
		t.Run(api, func(t *testing.T) {
			says := []string{
				servertest.ToolCall("read", `{"path": "a <b> é.go"}`), "Now the test.\n" + servertest.ToolCall("bash", `{"command":"go test"}`), "Done.", "Bye.",
			}
			n := 0
			m, sent := remoteWorld(t, api, func(string) string { n++; return says[n-1] })
			s := m.Open(Spec{System: "Be brief.", Tools: tools})
			s.Append(Message{Role: User, Text: "Fix <it>."})
			var seen strings.Builder
			for turn := range says {
				a, err := s.Generate(t.Context(), Options{}, func(d Delta) {
					if d.Call != nil {
						seen.WriteString(d.Call.Args)
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				if a.Usage.Prompt == 0 || a.Usage.Generated == 0 || turn > 0 && a.Usage.Cached == 0 {
					t.Errorf("turn %d: %+v", turn, a.Usage)
				}
				switch turn {
				case 0, 1:
					if a.Reason != Calls || len(a.Message.Calls) != 1 || turn == 1 && a.Message.Text != "Now the test." {
						t.Fatalf("turn %d: %+v", turn, a)
					}
					c := a.Message.Calls[0]
					s.Append(Message{Role: Tool, CallID: c.ID, Name: c.Name, Text: "ok", Failed: turn == 1})
				default:
					if a.Reason != Stop || a.Message.Text != says[turn] {
						t.Fatalf("turn %d: %+v", turn, a)
					}
					s.Append(Message{Role: User, Text: "And?"})
				}
			}
			if got := seen.String(); !sameJSON(strings.SplitAfter(got, "}")[0], `{"path": "a <b> é.go"}`) {
				t.Errorf("arguments as they came: %q", got)
			}
			mark := regexp.MustCompile(`,"cache_control":\{"type":"ephemeral"\}`)
			for i := 1; i < len(*sent); i++ {
				before, now := mark.ReplaceAllString((*sent)[i-1], ""), mark.ReplaceAllString((*sent)[i], "")
				end := strings.LastIndex(before, "]")
				if !strings.HasPrefix(now, before[:end]) {
					t.Errorf("request %d\n%s\ndoes not begin as\n%s", i, now, before)
				}
			}
		})
	}
}

// serve answers the nth request with the nth handler.
func serve(t *testing.T, hs ...http.HandlerFunc) *Remote {
	t.Helper()
	n := -1
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprint(w, `{"data":[{"id":"m","max_model_len":1000}]}`)
			return
		}
		n++
		hs[min(n, len(hs)-1)](w, r)
	}))
	t.Cleanup(srv.Close)
	m, err := NewRemote(t.Context(), RemoteOptions{
		Base: srv.URL, Name: "m", Wait: func(context.Context, time.Duration) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); fmt.Fprint(w, body) }
}

func stream(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, e := range events {
			fmt.Fprintf(w, "data: %s\n\n", e)
			w.(http.Flusher).Flush()
		}
	}
}

const hello = `{"choices":[{"delta":{"content":"Hello"}}]}`

// TestRemoteTrouble: what is over soon is tried again, what is not is said in the server's words, and an answer that breaks
// off is none.
func TestRemoteTrouble(t *testing.T) {
	full := `{"error":{"message":"This model's maximum context length is 1000 tokens","code":"context_length_exceeded"}}`
	for _, c := range []struct {
		name string
		hs   []http.HandlerFunc
		want string // of the error; "": none
	}{
		{"busy, then well", []http.HandlerFunc{status(429, ""), status(503, ""), stream(hello, "[DONE]")}, ""},
		{"always busy", []http.HandlerFunc{status(503, `{"error":{"message":"no room"}}`)}, "no room"},
		{"refused", []http.HandlerFunc{status(400, `{"error":{"message":"bad tools"}}`), stream(hello, "[DONE]")}, "bad tools"},
		{"broken off", []http.HandlerFunc{stream(hello), stream(hello, "[DONE]")}, "without its last event"},
		{"failed in the middle", []http.HandlerFunc{stream(hello, `{"error":{"message":"out of memory"}}`)}, "out of memory"},
		{"no JSON", []http.HandlerFunc{stream("nonsense")}, "no event"},
		{"too long", []http.HandlerFunc{status(400, full)}, "the model takes 1000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, c.hs...).Open(Spec{})
			s.Append(Message{Role: User, Text: "Hi."})
			a, err := s.Generate(t.Context(), Options{}, func(Delta) {})
			switch {
			case c.want == "" && (err != nil || a.Message.Text != "Hello" || len(s.Messages()) != 2):
				t.Errorf("%+v %v", a, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || len(s.Messages()) != 1):
				t.Errorf("%v, want %q", err, c.want)
			}
			var w *WindowError
			if errors.As(err, &w) != (c.name == "too long") {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestRemoteDamage: arguments that are no JSON are kept for the loop to see, and sent back as an object; a missing id gets one.
func TestRemoteDamage(t *testing.T) {
	var last string
	m := serve(t,
		stream(`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"read","arguments":"{\"path\": "}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"x","function":{"name":"bash","arguments":""}}]},"finish_reason":"tool_calls"}]}`, "[DONE]"),
		func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			last = string(b)
			stream(hello, "[DONE]")(w, r)
		})
	s := m.Open(Spec{Tools: tools})
	s.Append(Message{Role: User, Text: "Hi."})
	a, err := s.Generate(t.Context(), Options{}, func(Delta) {})
	if err != nil || len(a.Message.Calls) != 2 || a.Message.Calls[0].Args != `{"path": ` || a.Message.Calls[0].ID == "" ||
		a.Message.Calls[1] != (Call{"x", "bash", "{}"}) {
		t.Fatalf("%+v %v", a, err)
	}
	if _, err := s.Generate(t.Context(), Options{}, func(Delta) {}); err != nil || !json.Valid([]byte(last)) ||
		strings.Count(last, `"arguments":"{}"`) != 2 {
		t.Errorf("%v %s", err, last)
	}
}

// TestRemoteCancel ends at once and keeps what came.
func TestRemoteCancel(t *testing.T) {
	stay := make(chan struct{})
	defer close(stay)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { stream(hello)(w, r); <-stay }).Open(Spec{})
	s.Append(Message{Role: User, Text: "Hi."})
	ctx, cancel := context.WithCancel(t.Context())
	a, err := s.Generate(ctx, Options{}, func(Delta) { cancel() })
	if !errors.Is(err, context.Canceled) || a.Message.Text != "Hello" || len(s.Messages()) != 2 {
		t.Errorf("%+v %v", a, err)
	}
}

// TestRemoteOptions: a small model is asked for one call, Baleen's own server for calls that fit, and a call that was meant is
// forced, all behind or beside the conversation.
func TestRemoteOptions(t *testing.T) {
	for api, want := range map[string][]string{
		OpenAI:    {`"strict":true`, `"parallel_tool_calls":false`, `"tool_choice":{"type":"function","function":{"name":"read"}}`},
		Anthropic: {`"tool_choice":{"type":"tool","name":"read"}`},
	} {
		m, sent := remoteWorld(t, api, func(string) string { return `{"path":"a"}}` + "\n</tool_call>" })
		m.o.Own, m.o.Parameters = true, 1_000_000
		s := m.Open(Spec{Tools: tools})
		s.Append(Message{Role: User, Text: "Hi."})
		_, err := s.Generate(t.Context(), Options{Call: "read"}, func(Delta) {})
		if err != nil {
			t.Errorf("%s: %v", api, err)
		}
		for _, w := range want {
			if !strings.Contains((*sent)[0], w) {
				t.Errorf("%s: %s is not in %s", api, w, (*sent)[0])
			}
		}
	}
}

// TestParametersOf: what a name says of a model's size decides how it is guided.
func TestParametersOf(t *testing.T) {
	for name, want := range map[string]int64{
		"qwen2.5-coder-1.5b": 1_500_000_000, "Qwen/Qwen3-Coder-30B-A3B-Instruct": 30_000_000_000, "llama3.1:8b": 8_000_000_000,
		"gpt-4o": 0, "gemma3-270m": 0, "phi-4": 0, "Meta-Llama-3-70B-Instruct": 70_000_000_000,
	} {
		if got := parametersOf(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

// TestRemoteUnknown: a model that the server does not have is said before work begins.
func TestRemoteUnknown(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":[{"id":"other"}]}`) }))
	defer srv.Close()
	if _, err := NewRemote(t.Context(), RemoteOptions{Base: srv.URL, Name: "m"}); err == nil || !strings.Contains(err.Error(), "it has other") {
		t.Errorf("%v", err)
	}
	if m, err := NewRemote(t.Context(), RemoteOptions{Base: srv.URL}); err != nil || m.Info().Name != "other" {
		t.Errorf("%v", err)
	}
	if _, err := NewRemote(t.Context(), RemoteOptions{API: "soap", Base: srv.URL}); err == nil {
		t.Error("an API that there is not")
	}
}
