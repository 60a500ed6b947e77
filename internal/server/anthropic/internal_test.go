package anthropic

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// FuzzRequest decodes hostile bodies: what is not refused makes a request whose calls and results belong together.
func FuzzRequest(f *testing.F) {
	paths, _ := filepath.Glob("testdata/*.txt")
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		_, body, _ := strings.Cut(string(b), "-- request --\n")
		body, _, _ = strings.Cut(body, "\n-- ")
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, table := range []struct {
			decode func([]byte, *request) error
		}{{createTable.Decode}, {countTable.Decode}} {
			q := &request{}
			err := table.decode(body, q)
			if err == nil {
				err = q.finish()
			}
			if err != nil {
				if e := chat.AsError(err); e.Kind == chat.Internal || message(e) == "" {
					t.Fatalf("%q: %v", body, err)
				}
				continue
			}
			checkRequest(t, q)
		}
	})
}

func checkRequest(t *testing.T, q *request) {
	t.Helper()
	if len(q.chat.Messages) == 0 {
		t.Fatal("no messages")
	}
	calls, results := map[string]bool{}, map[string]bool{}
	for i, m := range q.chat.Messages {
		if i > 0 && m.Role == q.chat.Messages[i-1].Role && m.Role != chat.ToolRole {
			t.Fatalf("messages %d and %d have the role %s", i-1, i, m.Role)
		}
		for _, c := range m.Calls {
			if calls[c.ID] {
				t.Fatalf("call %s is there twice", c.ID)
			}
			calls[c.ID] = true
		}
		if m.Role == chat.ToolRole {
			if !calls[m.CallID] || results[m.CallID] {
				t.Fatalf("result of %s, which has none to come", m.CallID)
			}
			results[m.CallID] = true
		}
	}
	if len(calls) != len(results) {
		t.Fatalf("%d calls, %d results", len(calls), len(results))
	}
}

// TestSignatures: what is sealed comes back, and nothing else does.
func TestSignatures(t *testing.T) {
	for _, text := range []string{"A thought.", "", "Grüße \x00 世界"} {
		if got := unseal(seal(text)); got != text {
			t.Errorf("%q came back as %q", text, got)
		}
		if got := unseal(sign(text)); got != "" {
			t.Errorf("a plain signature holds %q", got)
		}
	}
	for _, s := range []string{"", "zzz", "!!", "c2ln"} {
		if got := unseal(s); got != "" {
			t.Errorf("%q holds %q", s, got)
		}
	}
}

// TestPings: a stream whose model is slow says that it lives, and nothing behind its last event.
func TestPings(t *testing.T) {
	w := servertest.New(t, servertest.Options{Dialects: []func(*server.Env) server.Dialect{
		func(e *server.Env) server.Dialect { return &dialect{e, 5 * time.Millisecond} },
	}})
	w.Backend.SetDelay(40 * time.Millisecond)
	events := w.Post(t, "/v1/messages", `{"model":"scripted","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"Hi"}]}`).
		Events(t)
	pings := 0
	for _, e := range events {
		if e.Name == "ping" {
			pings++
		}
	}
	if last := events[len(events)-1].Name; pings < 3 || last != "message_stop" {
		t.Errorf("%d pings, the last event is %s", pings, last)
	}
}
