//go:build unix

package harness_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/anthropic"
	"github.com/baleenrun/baleen/internal/server/openai"
	"github.com/baleenrun/baleen/internal/server/servertest"
	"github.com/baleenrun/baleen/internal/server/servertest/harness"
)

const (
	question  = "Which word does the file plankton.txt name? Read the file, then answer with that word."
	file      = "plankton.txt"
	timeLimit = 4 * time.Minute // of one run: most take a few seconds
	window    = 1 << 19         // of the model, in bytes: harnesses begin with up to 100 KB
)

// TestTurns runs every harness through a turn with a tool: the model calls it, gets what it found, and answers. The
// environment variable BALEEN_TEST_HARNESSES names the folder that scripts/get-harnesses filled.
func TestTurns(t *testing.T) {
	dir := os.Getenv("BALEEN_TEST_HARNESSES")
	if dir == "" {
		t.Skip("BALEEN_TEST_HARNESSES is not set")
	}
	bin, families := filepath.Join(dir, "node_modules", ".bin"), servertest.Families()
	for _, h := range harness.All() {
		for _, f := range families {
			t.Run(h.Name+"/"+f.Name, func(t *testing.T) { turn(t, bin, h, f) })
		}
	}
	for i, h := range harness.Others() {
		f := families[i%len(families)]
		t.Run(h.Name+"/"+f.Name, func(t *testing.T) { turn(t, bin, h, f) })
	}
}

func turn(t *testing.T, bin string, h harness.Harness, f servertest.Family) {
	if _, err := os.Stat(filepath.Join(bin, h.Command)); err != nil {
		t.Fatalf("%v: fill the folder with scripts/get-harnesses", err)
	}
	p := &play{family: f}
	w := p.world(t)
	s := harness.Setup{URL: w.URL, Model: "scripted", Home: t.TempDir(), Work: t.TempDir()}
	p.harness, p.setup = h, s
	word := "krill" + strings.ToLower(rand.Text()[:8])
	write(t, filepath.Join(s.Work, file), "The secret word is "+word+".\n")
	if h.Files != nil {
		for name, content := range h.Files(s) {
			write(t, filepath.Join(s.Home, name), content)
		}
	}
	var out string
	var err error
	defer func() {
		if t.Failed() {
			t.Logf("printed:\n%s\nserver's log:\n%s", out, w.Log())
		}
	}()
	out, err = launch(t, bin, h, s)
	if err != nil {
		t.Errorf("%v", err)
	}
	if want := answer(word); !strings.Contains(out, want) {
		t.Errorf("the answer %q is not in what it printed", want)
	}
	p.check(t, w, word)
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A play is the model's part: it calls the tool where a prompt has the question and the tool, and answers where it has
// what the file says.
type play struct {
	family  servertest.Family
	harness harness.Harness
	setup   harness.Setup

	mu     sync.Mutex
	calls  int
	seen   []prompt
	usages []chat.Usage
}

type prompt struct {
	text   string
	tokens int
}

var says = regexp.MustCompile(`The secret word is (krill[a-z0-9]+)\.`)

// answer is what the model says when it knows the word: more than the file does, so that printing the file is not
// enough.
func answer(word string) string { return "I have read it: the word is " + word + ", as asked." }

func (p *play) script(text string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := says.FindStringSubmatch(text); m != nil {
		return p.family.Answer(answer(m[1]))
	}
	// Prompts without tools ask for a title and the like.
	if !p.asks(text) || p.calls > 2 {
		return p.family.Answer("Reading a file")
	}
	p.calls++
	name, arguments := p.harness.Reads(p.setup, file)
	b, err := json.Marshal(arguments)
	if err != nil {
		panic(err) // maps of strings
	}
	return p.family.Call(name, string(b))
}

// asks tells whether a prompt has the question and offers the tool.
func (p *play) asks(text string) bool {
	name, _ := p.harness.Reads(p.setup, file)
	return strings.Contains(text, question) && strings.Contains(text, p.family.Offer(name))
}

func (p *play) world(t *testing.T) *servertest.World {
	checkpoint := p.family.Checkpoint
	checkpoint.Context = window
	w := servertest.New(t, servertest.Options{
		Checkpoint: checkpoint, Script: p.script,
		Dialects: []func(*server.Env) server.Dialect{openai.New, anthropic.New},
		Server:   func(o *server.Options) { o.RecordDir = os.Getenv("BALEEN_TEST_RECORD") },
		Chat: func(o *chat.Options) {
			ended := o.Hooks.Ended
			o.Hooks.Ended = func(model string, u chat.Usage, end string) {
				ended(model, u, end)
				p.mu.Lock()
				defer p.mu.Unlock()
				p.usages = append(p.usages, u)
			}
		},
		Model: func(o *model.Options) { o.Context, o.CacheTokens, o.MaxRows = window, 2*window, 4096 },
	})
	w.Backend.SetWatch(func(text string, tokens int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.seen = append(p.seen, prompt{text, tokens})
	})
	return w
}

// check looks at what the model saw: one prompt with the question, then one with the file, whose beginning was still in
// the cache.
func (p *play) check(t *testing.T, w *servertest.World, word string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := slices.IndexFunc(p.seen, func(q prompt) bool { return p.asks(q.text) })
	told := slices.IndexFunc(p.seen, func(q prompt) bool { return strings.Contains(q.text, word) })
	if asked < 0 || told < asked {
		t.Fatalf(
			"of %d prompts, number %d has the question and the tool, number %d has the file",
			len(p.seen),
			asked,
			told,
		)
	}
	if p.calls != 1 {
		t.Errorf("the model called %d times", p.calls)
	}
	first, second := p.seen[asked], p.seen[told]
	i := slices.IndexFunc(p.usages, func(u chat.Usage) bool { return u.Prompt == second.tokens })
	if i < 0 {
		t.Fatalf("no request of %d tokens ended", second.tokens)
	}
	cached := p.usages[i].Cached
	t.Logf("prompts of %d and %d tokens, %d of the second from the cache", first.tokens, second.tokens, cached)
	if cached < first.tokens {
		t.Errorf(
			"%d of %d prompt tokens came from the cache, not %d: prompts differ %s",
			cached,
			second.tokens,
			first.tokens,
			difference(first.text, second.text),
		)
	}
	sum := 0
	for _, u := range p.usages {
		sum += u.Cached
	}
	if metrics := w.Do(t, http.MethodGet, "/metrics", "").Body; !strings.Contains(
		metrics,
		fmt.Sprintf("baleen_cached_tokens_total{model=\"scripted\"} %d\n", sum),
	) {
		t.Errorf("the metrics do not tell of %d cached tokens", sum)
	}
}

// difference says where two texts part.
func difference(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return fmt.Sprintf("at byte %d: %.200q and %.200q", n, a[max(0, n-50):], b[max(0, n-50):])
}

// launch runs a harness with nothing of this process' environment, and with a proxy that refuses all hosts: what it
// tries to reach beside the server is logged.
func launch(t *testing.T, bin string, h harness.Harness, s harness.Setup) (string, error) {
	tried := map[string]int{}
	var mu sync.Mutex
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		tried[r.Host]++
		http.Error(w, "no network in tests", http.StatusForbidden)
	}))
	defer proxy.Close()
	ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, h.Command), h.Args(s, question)...)
	cmd.Dir = s.Work
	cmd.Env = []string{
		"PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin", "HOME=" + s.Home, "TMPDIR=" + t.TempDir(), "LANG=C.UTF-8", "TERM=dumb", "NO_COLOR=1",
		"NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost", "HTTP_PROXY=" + proxy.URL, "HTTPS_PROXY=" + proxy.URL,
		"http_proxy=" + proxy.URL, "https_proxy=" + proxy.URL,
	}
	if h.Env != nil {
		cmd.Env = append(cmd.Env, h.Env(s)...)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	// Helpers that outlive the harness end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // none is left as a rule
	}
	mu.Lock()
	defer mu.Unlock()
	if len(tried) > 0 {
		t.Logf("it tried to reach %v", tried)
	}
	return out.String(), err
}
