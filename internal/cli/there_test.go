package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/config"
	"github.com/baleenrun/baleen/internal/server"
)

// served is the environment of a user whose server has the model "weights" loaded.
func served(t *testing.T) []string {
	t.Helper()
	home := t.TempDir()
	path := filepath.Join(home, "models", "weights.gguf")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(tinyFile(t, testTemplate), path); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(home, "s")
	env := []string{"BALEEN_HOME=" + home, "BALEEN_HOST=unix:" + socket}
	r, w := io.Pipe()
	a := &app{io: IO{Out: w, Err: io.Discard, Environ: env}}
	var err error
	if a.cfg, _, err = config.Load(env); err != nil {
		t.Fatal(err)
	}
	cmd := a.rootCommand()
	cmd.SetArgs([]string{"serve", "--model", "weights", "--threads", "1", "--context", "512", "--max-memory", "1GiB"})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx); w.Close() }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if _, err := r.Read(make([]byte, 256)); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, r) //nolint:errcheck // what it prints does not matter
	rem := &remote{socket: socket}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		var ready struct{ Status string }
		if err := rem.call(t.Context(), http.MethodGet, "/readyz", nil, &ready); err == nil {
			return env
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// TestRunOfAServer: run asks a server that has the model loaded, and its output, counts, seeds and errors are those of
// its own process, token by token.
func TestRunOfAServer(t *testing.T) {
	env := served(t)
	gbnf, lark := filepath.Join(t.TempDir(), "g.gbnf"), filepath.Join(t.TempDir(), "g.lark")
	if err := errors.Join(os.WriteFile(gbnf, []byte(`root ::= "yes" | "no"`), 0o644), os.WriteFile(lark, []byte(`start: "yes" | "no"`), 0o644)); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) outcome {
		t.Helper()
		var out, errs bytes.Buffer
		status := Main(
			append([]string{"run", "weights"}, args...),
			IO{In: strings.NewReader(""), Out: &out, Err: &errs, Environ: env},
		)
		return outcome{status, out.String(), errs.String()}
	}
	for _, args := range [][]string{
		{"hello there", "-n", "12", "--temp", "0"},
		{"hello there", "-n", "12", "--temp", "1.5", "--seed", "7", "--top-k", "20", "--min-p", "0.01"},
		{"hello there", "-n", "12", "--seed", "18446744073709551615", "--repeat-penalty", "1.1"},
		{"hello there", "-n", "5", "--raw", "--temp", "0"},
		{"hello there", "-n", "5", "--system", "Be brief.", "--temp", "0", "--think=false"},
		{"hello there", "-n", "12", "--temp", "0", "--format", "json"},
		{"hello there", "-n", "40", "--temp", "0", "--format", `{"type":"array","items":{"type":"boolean"},"minItems":3,"maxItems":3}`},
		{"hello there", "-n", "9", "--temp", "0", "--raw", "--grammar", gbnf},
		{"hello there", "-n", "9", "--temp", "0", "--grammar", lark},
	} {
		here, there := run(append(args, "--no-server")...), run(args...)
		if here.status != there.status || here.out != there.out || here.err != there.err {
			t.Errorf("%.60q:\nhere  %+v\nthere %+v", args, here, there)
		}
		a, b := run(append(args, "--no-server", "--json")...), run(append(args, "--json")...)
		if a.status != exitOK {
			continue
		}
		var ra, rb runResult
		if err := errors.Join(json.Unmarshal([]byte(a.out), &ra), json.Unmarshal([]byte(b.out), &rb)); err != nil {
			t.Fatal(err)
		}
		ra.LoadMS, ra.FirstMS, ra.TotalMS, ra.Usage.Cached, rb.LoadMS, rb.FirstMS, rb.TotalMS, rb.Usage.Cached = 0, 0, 0, 0, 0, 0, 0, 0
		if !slices.Contains(args, "--seed") {
			ra.Seed, rb.Seed = 0, 0
		}
		if !reflect.DeepEqual(ra, rb) || len(ra.Tokens) == 0 {
			t.Errorf("%.60q:\nhere  %+v\nthere %+v", args, ra, rb)
		}
	}
	if o := run("hi you", "--temp", "0", "--grammar", gbnf); o.status != exitOK || o.out != "yes\n" && o.out != "no\n" {
		t.Errorf("--grammar: %+v", o)
	}
	if o := run("hi you", "-n", "2", "--stats"); o.status != exitOK || strings.Contains(o.err, "loading took") ||
		!strings.Contains(o.err, "answer 2 tokens") {
		t.Errorf("the server was not asked: %+v", o)
	}
	if o := run("hi you", "-n", "2", "--keepalive", "5m"); o.status != exitOK || strings.Contains(o.err, "no effect") {
		t.Errorf("--keepalive: %+v", o)
	}
	for _, args := range [][]string{{"--no-server"}, {"--context", "64"}, {"--kv", "f32"}, {"--keepalive", "5m", "--no-server"}} {
		o := run(append(args, "hi you", "-n", "2", "--stats")...)
		if o.status != exitOK || !strings.Contains(o.err, "loading took") ||
			strings.Contains(o.err, "--keep-alive has no effect") != (args[0] == "--keepalive") {
			t.Errorf("%v: %+v", args, o)
		}
	}
}

// TestChatOfAServer: a conversation goes on with the tokens that the model wrote, and can be stopped.
func TestChatOfAServer(t *testing.T) {
	env := served(t)
	a := &app{io: IO{Out: io.Discard, Err: io.Discard, Environ: env}}
	cfg, _, err := config.Load(env)
	if err != nil {
		t.Fatal(err)
	}
	a.cfg = cfg
	f := &runFlags{}
	cmd := a.runCommandOf(f)
	if err := cmd.ParseFlags([]string{"-n", "8"}); err != nil {
		t.Fatal(err)
	}
	st, err := a.store()
	if err != nil {
		t.Fatal(err)
	}
	spec, err := a.locateSpec(t.Context(), st, "weights", false)
	if err != nil {
		t.Fatal(err)
	}
	to := a.askServer(t.Context(), "weights", spec, f)
	if to == nil {
		t.Fatal("the server is not found")
	}
	defer to.close()
	c := a.conversation(to, f)
	if !strings.Contains(
		c.Title(),
		"context of 512 tokens, loaded by the server at "+strings.TrimPrefix(env[1], "BALEEN_HOST=unix:"),
	) {
		t.Errorf("%s", c.Title())
	}
	if _, err := c.Answer(t.Context(), "one", nobody); err != nil || len(c.said) == 0 {
		t.Fatalf("%v, said %v", err, c.said)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := c.Answer(ctx, "three", func(bool, string) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	if n, err := to.count(t.Context(), c.request("four")); err != nil || n < 10 {
		t.Errorf("%d tokens, %v", n, err)
	}
	_, err = to.answer(t.Context(), c.request(strings.Repeat("five ", 600)), func(bool, string) error { return nil })
	var e *chat.Error
	if !errors.As(err, &e) || e.Kind != chat.PromptTooLong || e.Tokens < 600 || e.Context != 512 {
		t.Errorf("%v", err)
	}
	q := c.request("six")
	q.Said = []int32{1 << 30}
	if _, err := to.answer(t.Context(), q, func(bool, string) error { return nil }); err == nil ||
		!strings.Contains(err.Error(), "said: token 1073741824 at position 0") {
		t.Errorf("%v", err)
	}
}

// TestEveryFieldIsSent: what a request of run can say arrives at the server.
func TestEveryFieldIsSent(t *testing.T) {
	q := &chat.Request{
		Raw:       true,
		Prompt:    "p",
		Said:      []int32{1},
		Stop:      []string{"s"},
		MaxTokens: 1,
		Thinking:  new(true),
		Effort:    "high",
		KeepAlive: new(time.Minute),
		Format:    chat.Format{Kind: chat.SchemaFormat, Schema: []byte("{}"), Text: "g"},
	}
	q.Messages = []chat.Message{chat.Text(chat.User, "hi")}
	s := reflect.ValueOf(&q.Sampling).Elem()
	for i := range s.NumField() {
		if s.Field(i).Kind() == reflect.Pointer {
			s.Field(i).Set(reflect.New(s.Field(i).Type().Elem()))
		}
	}
	b := reflect.ValueOf(*(&there{name: "m"}).body(q))
	for i := range b.NumField() {
		if b.Field(i).IsZero() {
			t.Errorf("%s is not sent", b.Type().Field(i).Name)
		}
	}
	if b.Type() != reflect.TypeFor[server.RunBody]() {
		t.Error(b.Type())
	}
}
