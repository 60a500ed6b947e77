package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/anthropic"
	"github.com/baleenrun/baleen/internal/server/ollama"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// TestBodiesOfManySmallThings refuses each by the field that has too many, in every dialect.
func TestBodiesOfManySmallThings(t *testing.T) {
	w := world(t, servertest.Options{
		Dialects: []func(*server.Env) server.Dialect{anthropic.New, ollama.New(nil)},
		Server:   func(o *server.Options) { o.MaxContext = 5000 },
	})
	many := func(piece string) string { return strings.TrimSuffix(strings.Repeat(piece+",", 5001), ",") }
	const hi = `"messages":[{"role":"user","content":"hi"}]`
	for _, c := range []struct{ path, body, field string }{
		{"/v1/completions", `"prompt":[` + many("1") + `]`, "prompt"},
		{"/v1/completions", `"prompt":[` + many(`"a"`) + `]`, "prompt"},
		{"/v1/completions", `"prompt":[` + many("[1]") + `]`, "prompt"},
		{"/v1/completions", `"prompt":[[1],[` + many("1") + `]]`, "prompt[1]"},
		{chatPath, `"messages":[` + many("{}") + `]`, "messages"},
		{chatPath, `"messages":[{"role":"user","content":[` + many(`{"type":"text","text":""}`) + `]}]`, "messages[0].content"},
		{chatPath, hi + `,"stop":[` + many(`"a"`) + `]`, "stop"},
		{chatPath, hi + `,"tools":[` + many(`{}`) + `]`, "tools"},
		{chatPath, hi + `,"logit_bias":{` + strings.Repeat(many(`"1":1`)+",", 14) + `"1":1}`, "logit_bias"},
		{"/v1/responses", `"input":[` + many(`{"role":"user","content":"a"}`) + `]`, "input"},
		{"/v1/messages", `"max_tokens":1,"messages":[` + many(`{"role":"user","content":"a"}`) + `]`, "messages"},
		{"/v1/messages", `"max_tokens":1,` + hi + `,"tools":[` + many(`{}`) + `]`, "tools"},
		{"/v1/messages", `"max_tokens":1,` + hi + `,"stop_sequences":[` + many(`"a"`) + `,` + many(`"b"`) + `]`, "stop_sequences"},
		{"/api/chat", `"messages":[` + many("{}") + `]`, "messages"},
		{"/api/generate", `"prompt":"hi","context":[` + many("1") + `]`, "context"},
		{"/api/generate", `"prompt":"hi","images":[` + many(`""`) + `]`, "images"},
		{"/api/generate", `"prompt":"hi","options":{"stop":[` + many(`"a"`) + `]}`, "options.stop"},
	} {
		r := w.Post(t, c.path, `{"model":"scripted",`+c.body+`}`)
		if path := strings.NewReplacer("[", ".", "]", "").Replace(c.field); r.Status != 400 ||
			!strings.Contains(r.Body, c.field) && !strings.Contains(r.Body, path) {
			t.Errorf("%s %.60s: %d %.300s, want %s", c.path, c.body, r.Status, r.Body, c.field)
		}
	}
	if w.Backend.Steps() > 0 {
		t.Error("something was run")
	}
}

// TestReferencesAddUp stores an item and refers to it again and again: what is referred to counts.
func TestReferencesAddUp(t *testing.T) {
	w := world(t, servertest.Options{Server: func(o *server.Options) { o.MaxContext = 5000 }}) // room for 640,000 bytes
	item := fmt.Sprintf(`{"type":"message","id":"msg_1","role":"user","content":%q}`, strings.Repeat("water ", 3000))
	if r := w.Post(t, "/v1/responses", `{"model":"scripted","input":[`+item+`]}`); r.Status != 200 {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	refer := func(n int) servertest.Reply {
		ref := strings.TrimSuffix(strings.Repeat(`{"type":"item_reference","id":"msg_1"},`, n), ",")
		return w.Post(t, "/v1/responses", `{"model":"scripted","input":[`+ref+`]}`)
	}
	if r := refer(1); r.Status != 200 {
		t.Errorf("one: %d %s", r.Status, r.Body)
	}
	if r := refer(36); r.Status != 400 || !strings.Contains(r.Body, `input[35].id`) {
		t.Errorf("36: %d %s", r.Status, r.Body)
	}
}

// TestTextsBeyondAnyTokens refuses a text that no context can hold before it is encoded. The tokens here are bytes and
// a few marks of up to 15 bytes.
func TestTextsBeyondAnyTokens(t *testing.T) {
	w := world(t, servertest.Options{})
	long := strings.Repeat("x", 32768*130)
	for path, body := range map[string]string{
		chatPath:          fmt.Sprintf(`"messages":[{"role":"user","content":%q}]`, long),
		"/v1/completions": fmt.Sprintf(`"prompt":%q`, long),
	} {
		r := w.Post(t, path, `{"model":"scripted",`+body+`}`)
		if r.Status != 400 || !strings.Contains(r.Body, "context_length_exceeded") ||
			!strings.Contains(r.Body, "at least") {
			t.Errorf("%s: %d %.300s", path, r.Status, r.Body)
		}
	}
}

// TestUnfinishedBodiesHoldLittle sends the greater part of large bodies and stops: together they get so much memory and
// no more, small requests go on meanwhile, and those that send nothing are ended.
func TestUnfinishedBodiesHoldLittle(t *testing.T) {
	w := world(t, servertest.Options{Server: func(o *server.Options) {
		o.BodyMemory, o.BodyPause = 4<<20, time.Second
	}})
	piece := strings.Repeat("x", 64<<10)
	var conns []net.Conn
	answers := make(chan string, 8)
	for range cap(answers) {
		c, err := net.Dial("tcp", strings.TrimPrefix(w.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
		go func() {
			fmt.Fprintf(
				c,
				"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n{\"model\":\"",
				chatPath,
				3<<20,
			)
			for range 31 { // nearly 2 MiB, for which a buffer of 2 or 4 MiB is needed
				if _, err := io.WriteString(c, piece); err != nil {
					break
				}
			}
			line, _ := bufio.NewReader(c).ReadString('\n')
			answers <- line
		}()
	}
	for range 20 {
		if r := w.Post(t, chatPath, hello); r.Status != 200 {
			t.Errorf("an ordinary request meanwhile: %d %s", r.Status, r.Body)
		}
	}
	statuses := map[string]int{}
	for range cap(answers) {
		line := <-answers
		statuses[strings.TrimSpace(strings.TrimPrefix(line, "HTTP/1.1 "))]++
	}
	for _, c := range conns {
		c.Close()
	}
	busy, slow := statuses["503 Service Unavailable"], statuses["408 Request Timeout"]
	if slow < 1 || busy < 1 || slow+busy != cap(answers) {
		t.Errorf("%v: want some that were too slow, and no memory for the others", statuses)
	}
	eventually(t, "they end", func() bool { return w.Server.Active() == 0 })
	big := `{"model":"nope","messages":[{"role":"user","content":"` + strings.Repeat("x", 1<<20) + `"}]}`
	if r := w.Post(t, chatPath, big); r.Status != http.StatusNotFound { // the memory is given back
		t.Errorf("afterwards: %d %s", r.Status, r.Body)
	}
}
