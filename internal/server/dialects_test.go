package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/auth"
	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/engine"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// A speaker is a route that generates, as tests ask it.
type speaker struct {
	dialect, path string
	body          string // PROMPT and STREAM are put in
	think         string // asks for a budget of 20 tokens of reasoning; "": the route has none
	effort        string // asks for little reasoning
	// end is what a stream must end with after it was begun well, and failed after it was not.
	end, failed string
}

var speakers = []speaker{
	{
		"openai", "/v1/chat/completions", `{"model":"scripted","messages":[{"role":"user","content":"PROMPT"}],"stream":STREAM}`,
		`"thinking_budget":20`, `"reasoning_effort":"low"`, "data: [DONE]\n\n", `data: {"error":`,
	},
	{
		"openai",
		"/v1/completions",
		`{"model":"scripted","prompt":"<|im_start|>user\nPROMPT","max_tokens":2000,"stream":STREAM}`,
		"",
		"",
		"data: [DONE]\n\n",
		`data: {"error":`,
	},
	{
		"openai", "/v1/responses", `{"model":"scripted","input":"PROMPT","stream":STREAM}`,
		"", `"reasoning":{"effort":"low"}`, "", "event: response.failed\n",
	},
	{
		"anthropic", "/v1/messages", `{"model":"scripted","max_tokens":9000,"messages":[{"role":"user","content":"PROMPT"}],"stream":STREAM}`,
		`"thinking":{"type":"enabled","budget_tokens":20}`, `"output_config":{"effort":"low"}`, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", "event: error\n",
	},
	{
		"ollama", "/api/chat", `{"model":"scripted","messages":[{"role":"user","content":"PROMPT"}],"stream":STREAM}`,
		"", `"think":"low"`, "", `{"error":`,
	},
	{"llamacpp", "/completion", `{"prompt":"<|im_start|>user\nPROMPT","stream":STREAM}`, "", "", "", `data: {"error":`},
	{
		"ollama",
		"/api/generate",
		`{"model":"scripted","prompt":"PROMPT","stream":STREAM}`,
		"",
		`"think":"low"`,
		"",
		`{"error":`,
	},
}

func (s *speaker) say(prompt string, stream bool, more ...string) string {
	body := strings.NewReplacer("PROMPT", prompt, "STREAM", fmt.Sprint(stream)).Replace(s.body)
	for _, m := range more {
		body = strings.TrimSuffix(body, "}") + "," + m + "}"
	}
	return body
}

// lastPiece is the last event or line of a stream.
func lastPiece(body string) string {
	body = strings.TrimRight(body, "\n")
	if i := strings.LastIndex(body, "\n\n"); i >= 0 {
		return body[i+2:]
	}
	return body[strings.LastIndexByte(body, '\n')+1:]
}

// eachSpeaker runs a test for each route that generates, streamed and in one piece.
func eachSpeaker(t *testing.T, f func(t *testing.T, s *speaker, stream bool)) {
	for i := range speakers {
		for _, stream := range []bool{false, true} {
			t.Run(
				fmt.Sprintf("%s streamed %v", speakers[i].path, stream),
				func(t *testing.T) { f(t, &speakers[i], stream) },
			)
		}
	}
}

// TestFailuresMidway breaks answers after some tokens, and ends them by a deadline: a stream ends in the dialect's
// terminal event with an error, and an answer in one piece is an error.
func TestFailuresMidway(t *testing.T) {
	for _, c := range []struct {
		name   string
		limit  time.Duration
		fail   func(string, int) error
		status int
		say    string
	}{
		{"failure", 0, func(_ string, n int) error {
			if n == 9 {
				return errors.New("out of luck")
			}
			return nil
		}, 500, "internal"},
		{"deadline", 200 * time.Millisecond, nil, 504, "deadline"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := all(t, servertest.Options{Chat: func(o *chat.Options) { o.MaxTime = c.limit }})
			w.Backend.SetDelay(3 * time.Millisecond)
			w.Backend.SetFail(c.fail)
			eachSpeaker(t, func(t *testing.T, s *speaker, stream bool) {
				r := w.Post(t, s.path, s.say("COUNT", stream), anthropicHdr, "2023-06-01")
				if !stream {
					if _, message, ok := errorShape(s.dialect, r.Body); r.Status != c.status || !ok ||
						!strings.Contains(message, c.say) ||
						strings.Contains(message, "luck") {
						t.Errorf("%d %s", r.Status, r.Body)
					}
					return
				}
				i := strings.LastIndex(r.Body, s.failed)
				if r.Status != 200 || i < 0 || !strings.Contains(r.Body[i:], c.say) ||
					strings.Contains(r.Body, "luck") ||
					strings.Contains(r.Body[i+1:], "\"content\":\"") {
					t.Errorf("%d, end: %s", r.Status, r.Body[max(0, len(r.Body)-400):])
				}
				if s.dialect == "openai" && s.end != "" && !strings.HasSuffix(r.Body, s.end) {
					t.Errorf("no end behind the error: %q", r.Body[max(0, len(r.Body)-100):])
				}
			})
			w.Backend.SetFail(nil)
			held(t, w)
		})
	}
}

// TestEndedByTheServer ends answers because the server ends: clients are told so in their dialect.
func TestEndedByTheServer(t *testing.T) {
	eachSpeaker(t, func(t *testing.T, s *speaker, stream bool) {
		w := all(t, servertest.Options{})
		w.Backend.SetDelay(3 * time.Millisecond)
		got := make(chan servertest.Reply, 1)
		go func() {
			r, _ := w.Send(t.Context(), "POST", s.path, s.say("COUNT", stream))
			got <- r
		}()
		eventually(t, "it runs", func() bool { return w.Backend.Steps() > 10 })
		w.Server.End()
		r := <-got
		if !stream {
			if _, message, ok := errorShape(s.dialect, r.Body); r.Status != 503 || !ok ||
				!strings.Contains(message, "stopping") ||
				r.Header.Get("Retry-After") == "" {
				t.Errorf("%d %s", r.Status, r.Body)
			}
			return
		}
		if i := strings.LastIndex(r.Body, s.failed); r.Status != 200 || i < 0 ||
			!strings.Contains(r.Body[i:], "stopping") ||
			s.dialect == "openai" && !strings.HasSuffix(r.Body, s.end) {
			t.Errorf("%d, end: %s", r.Status, r.Body[max(0, len(r.Body)-400):])
		}
		if !strings.Contains(w.Log(), `"end":"unavailable"`) {
			t.Errorf("the log takes the server's end for the client's: %s", w.Log())
		}
	})
}

// TestHalfClosed shuts the client's side of a connection for writing and reads on: what is generated for it ends there,
// and it is told.
func TestHalfClosed(t *testing.T) {
	w := all(t, servertest.Options{})
	w.Backend.SetDelay(3 * time.Millisecond)
	for i := range speakers {
		s := &speakers[i]
		c, err := net.Dial("tcp", strings.TrimPrefix(w.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		start := w.Backend.Steps()
		body := s.say("COUNT", true)
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", s.path, len(body), body)
		eventually(t, "it runs", func() bool { return w.Backend.Steps() > start+10 })
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(c)
		if err != nil || !strings.Contains(string(b), s.failed) || !strings.HasSuffix(string(b), "\r\n0\r\n\r\n") {
			t.Errorf("%s: %v, end: %q", s.path, err, b[max(0, len(b)-300):])
		}
	}
	held(t, w)
}

// TestGoodStreamsEnd wants each dialect's last event.
func TestGoodStreamsEnd(t *testing.T) {
	w := all(t, servertest.Options{})
	for i := range speakers {
		s := &speakers[i]
		r := w.Post(t, s.path, s.say("hi", true))
		last := lastPiece(r.Body)
		ok := s.end != "" && strings.HasSuffix(r.Body, s.end) ||
			strings.HasPrefix(last, "event: response.completed\n") ||
			strings.Contains(last, `"done":true`) ||
			s.dialect == "llamacpp" && strings.Contains(last, `"stop":true`)
		if r.Status != 200 || !ok {
			t.Errorf("%s: %s", s.path, last)
		}
	}
}

// TestDisconnectsInEveryDialect goes away in the middle of answers.
func TestDisconnectsInEveryDialect(t *testing.T) {
	w := all(t, servertest.Options{})
	w.Backend.SetDelay(3 * time.Millisecond)
	eachSpeaker(t, func(t *testing.T, s *speaker, stream bool) {
		before := strings.Count(w.Log(), `"end":"cancelled"`)
		start := w.Backend.Steps()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { _, err := w.Send(ctx, "POST", s.path, s.say("COUNT", stream)); done <- err }()
		eventually(t, "it runs", func() bool { return w.Backend.Steps() > start+10 })
		cancel()
		if err := <-done; err == nil {
			t.Fatal("the client was not cancelled")
		}
		eventually(t, "it ends", func() bool { return w.Server.Active() == 0 })
		eventually(t, "the log says so", func() bool { return strings.Count(w.Log(), `"end":"cancelled"`) > before })
	})
	held(t, w)
}

// TestAllowedMethods wants each method once where dialects share a path.
func TestAllowedMethods(t *testing.T) {
	w := all(t, servertest.Options{})
	if r := w.Do(t, "PUT", "/v1/models", ""); r.Status != 405 || r.Header.Get("Allow") != "GET" {
		t.Errorf("%d, Allow %q: %s", r.Status, r.Header.Get("Allow"), r.Body)
	}
}

// TestPromptsThatDoNotFit wants a refusal with both counts.
func TestPromptsThatDoNotFit(t *testing.T) {
	w := all(t, servertest.Options{Model: func(o *model.Options) { o.Context = 1024 }})
	long := strings.Repeat("word ", 600) // 3000 tokens of a byte each, and the template's
	eachSpeaker(t, func(t *testing.T, s *speaker, stream bool) {
		r := w.Post(t, s.path, s.say(long, stream))
		_, message, ok := errorShape(s.dialect, r.Body)
		plain := strings.ReplaceAll(message, ",", "")
		if r.Status != 400 || !ok || !strings.Contains(plain, "30") || !strings.Contains(plain, "1024") ||
			!strings.Contains(plain, "tokens") {
			t.Errorf("%d %s", r.Status, r.Body)
		}
	})
	r := w.Post(t, "/v1/chat/completions", speakers[0].say(long, false))
	if !strings.Contains(r.Body, `"code":"context_length_exceeded"`) {
		t.Error(r.Body)
	}
	if r := w.Post(t, "/v1/messages", speakers[3].say(long, false)); !strings.Contains(r.Body, "prompt is too long") {
		t.Error(r.Body)
	}
}

// TestWrongKeysInEveryDialect wants each dialect's own refusal, also where no route is known.
func TestWrongKeysInEveryDialect(t *testing.T) {
	w := all(
		t,
		servertest.Options{Server: func(o *server.Options) { o.Keys = auth.NewKeys([]string{"secret-key"}, "") }},
	)
	eachSpeaker(t, func(t *testing.T, s *speaker, stream bool) {
		for _, headers := range [][]string{nil, {"Authorization", "Bearer secret-kez"}, {"X-Api-Key", "secret"}, {"Api-Key", "secret-key2"}, {"Authorization", "Basic secret-key"}} {
			r := w.Do(t, "POST", s.path, s.say("hi", stream), headers...)
			if _, _, ok := errorShape(s.dialect, r.Body); r.Status != 401 || !ok ||
				r.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%v: %d %s", headers, r.Status, r.Body)
			}
		}
		if r := w.Do(t, "POST", s.path, s.say("hi", stream), "X-Api-Key", "secret-key"); r.Status != 200 {
			t.Errorf("the right key: %d %s", r.Status, r.Body)
		}
	})
}

// TestFullInEveryDialect fills a queue of one: clients are told when to come again.
func TestFullInEveryDialect(t *testing.T) {
	w := all(t, servertest.Options{Model: func(o *model.Options) {
		o.Seqs = 1
		o.Tune = func(e *engine.Options) { e.MaxQueue = 1 }
	}})
	w.Backend.SetDelay(3 * time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range 2 { // one runs, one waits
		go w.Send(ctx, "POST", chatPath, counting) //nolint:errcheck // it is cancelled
		// The first must have left the queue, which has room for one, before the second comes.
		eventually(t, "it is there", func() bool { return w.Server.Active() == i+1 && w.Backend.Steps() > 5 })
	}
	eventually(t, "the queue is full", func() bool { return w.Post(t, chatPath, hello).Status == 503 })
	eachSpeaker(t, func(t *testing.T, s *speaker, stream bool) {
		want := 503
		if s.dialect == "anthropic" {
			want = 529
		}
		r := w.Post(t, s.path, s.say("hi", stream))
		if _, _, ok := errorShape(s.dialect, r.Body); r.Status != want || !ok || r.Header.Get("Retry-After") == "" {
			t.Errorf("%d %q %s", r.Status, r.Header.Get("Retry-After"), r.Body)
		}
		if s.dialect == "anthropic" && !strings.Contains(r.Body, "overloaded_error") {
			t.Error(r.Body)
		}
	})
}

// TestThinkingInEveryDialect bounds reasoning by a budget and by an effort, in every dialect's spelling.
func TestThinkingInEveryDialect(t *testing.T) {
	w := all(t, servertest.Options{Script: func(p string) string {
		if strings.HasSuffix(p, "</think>\n\n") {
			return "Short answer."
		}
		return "<think>\n" + strings.Repeat("endless thought ", 200) + "\n</think>\n\nLong answer."
	}})
	answers := func(t *testing.T, s *speaker, stream bool, more string, least, most int) {
		t.Helper()
		before := len(w.Log())
		r := w.Post(t, s.path, s.say("x", stream, more))
		if r.Status != 200 {
			t.Fatalf("%d %.300s", r.Status, r.Body)
		}
		var thought int
		eventually(t, "the log has a row", func() bool {
			for line := range strings.Lines(w.Log()[before:]) {
				var row struct {
					Msg       string
					Reasoning int
				}
				if json.Unmarshal([]byte(line), &row) == nil && row.Msg == "request" {
					thought = row.Reasoning
					return true
				}
			}
			return false
		})
		if thought < least || thought > most {
			t.Errorf("%s: %d tokens of reasoning, want %d to %d", more, thought, least, most)
		}
	}
	eachSpeaker(t, func(t *testing.T, s *speaker, stream bool) {
		if s.think != "" {
			answers(t, s, stream, s.think, 18, 20)
		}
		if s.effort != "" {
			answers(t, s, stream, s.effort, 1020, 1024)
		}
	})
}

// TestEndThinkingInEveryDialect ends the reasoning of live answers.
func TestEndThinkingInEveryDialect(t *testing.T) {
	w := all(t, servertest.Options{Script: func(p string) string {
		if strings.HasSuffix(p, "</think>\n\n") {
			return "Short."
		}
		return "<think>\n" + strings.Repeat("endless thought ", 400)
	}})
	w.Backend.SetDelay(time.Millisecond)
	eachSpeaker(t, func(t *testing.T, s *speaker, stream bool) {
		if s.effort == "" {
			t.Skip("no reasoning in texts")
		}
		id := strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())
		id = id[max(0, len(id)-40):]
		start := w.Backend.Steps()
		got := make(chan servertest.Reply, 1)
		go func() {
			r, _ := w.Send(t.Context(), "POST", s.path, s.say("x", stream), "X-Request-Id", id)
			got <- r
		}()
		eventually(t, "it thinks", func() bool { return w.Backend.Steps() > start+20 })
		if r := w.Post(t, "/baleen/requests/"+id+"/end-thinking", ""); r.Status != 200 {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
		r := <-got
		if text := strings.Count(r.Body, "Short") + strings.Count(r.Body, `"S"`); r.Status != 200 || text == 0 ||
			strings.Count(r.Body, "endless")+strings.Count(r.Body, `"d"`) > 2000 {
			t.Errorf("%d %.500s", r.Status, r.Body)
		}
	})
}

// TestProgressInEveryDialect wants reports in the streams of clients that ask, and nothing in those of others.
func TestProgressInEveryDialect(t *testing.T) {
	w := all(t, servertest.Options{})
	for i := range speakers {
		s := &speakers[i]
		prompt := strings.Repeat(fmt.Sprintf("word %d ", i), 200)
		plain := w.Post(t, s.path, s.say(prompt, true)).Body
		if strings.Contains(plain, "prefill") {
			t.Errorf("%s: reports that nobody asked for: %.300s", s.path, plain)
		}
		for _, stream := range []bool{true, false} {
			body := w.Post(t, s.path, s.say("again "+prompt, stream), "X-Baleen-Progress", "true").Body
			if !stream {
				if strings.Contains(body, "prefill") {
					t.Errorf("%s: reports in an answer of one piece", s.path)
				}
				continue
			}
			var reports []server.PrefillReport
			for line := range strings.Lines(body) {
				var p server.PrefillReport
				if rest, ok := strings.CutPrefix(line, ": prefill "); ok {
					if err := json.Unmarshal([]byte(rest), &p); err != nil {
						t.Error(err)
					}
					reports = append(reports, p)
				}
				var l struct{ Prefill *server.PrefillReport }
				if json.Unmarshal([]byte(line), &l) == nil && l.Prefill != nil {
					reports = append(reports, *l.Prefill)
				}
			}
			if n := len(reports); n < 2 || reports[n-1].Ready != reports[n-1].Total || reports[n-1].Total < 1000 {
				t.Errorf("%s: %+v in %.300s", s.path, reports, body)
			}
		}
	}
}
