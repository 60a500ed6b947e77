package ollama_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/ollama"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

var update = flag.Bool("update", false, "write the answers that are got into the goldens")

// A golden is a file of testdata: what a client sends, what the model writes, what the client gets. Every file there
// is run, so none is unused; a section that nothing reads fails.
//
//	-- setup --     lines such as "fail 3" (the engine fails after 3 tokens), "template none"
//	-- script --    what the model writes, a newline at the end left out
//	-- request --   METHOD PATH, and the body below
//	-- answer --    the status, the media type, and the body
//
// Several pairs of request and answer run one after the other.
type golden struct {
	setup, script string
	pairs         [][2]string
}

var heading = regexp.MustCompile(`(?m)^-- ([a-z]+) --\n`)

func readGolden(t *testing.T, path string) golden {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	marks := heading.FindAllStringSubmatchIndex(string(b), -1)
	if len(marks) == 0 || marks[0][0] != 0 {
		t.Fatalf("%s does not begin with a section", path)
	}
	for i, m := range marks {
		end := len(b)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		body := strings.TrimSuffix(string(b[m[1]:end]), "\n")
		switch name := string(b[m[2]:m[3]]); name {
		case "setup":
			g.setup = body
		case "script":
			g.script = body
		case "request":
			g.pairs = append(g.pairs, [2]string{body, ""})
		case "answer":
			g.pairs[len(g.pairs)-1][1] = body
		default:
			t.Fatalf("%s: nothing reads a section %q", path, name)
		}
	}
	return g
}

func (g golden) write(t *testing.T, path string) {
	t.Helper()
	var b strings.Builder
	if g.setup != "" {
		fmt.Fprintf(&b, "-- setup --\n%s\n", g.setup)
	}
	if g.script != "" {
		fmt.Fprintf(&b, "-- script --\n%s\n", g.script)
	}
	for _, p := range g.pairs {
		fmt.Fprintf(&b, "-- request --\n%s\n-- answer --\n%s\n", p[0], p[1])
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// world starts a server as a golden's setup has it.
func world(t *testing.T, setup, script string) *servertest.World {
	t.Helper()
	o := servertest.Options{Dialects: []func(*server.Env) server.Dialect{ollama.New(newShelf())}}
	if script != "" {
		o.Script = func(string) string { return script }
	}
	o.Names = names
	fail := -1
	for line := range strings.Lines(setup) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch name {
		case "template":
			o.Checkpoint.Template = value
		case "marks": // "marks none": the vocabulary has no marks of thinking and calls
			o.Checkpoint.Visible = []string{}
		case "context":
			fmt.Sscan(value, &o.Checkpoint.Context)
		case "served": // the context that the server gives the model
			var n int
			fmt.Sscan(value, &n)
			o.Model = func(m *model.Options) { m.Context = n }
		case "fail":
			fmt.Sscan(value, &fail)
		case "keeper": // "keeper none"
			o.Dialects[0] = ollama.New(nil)
		default:
			t.Fatalf("there is no setup %q", line)
		}
	}
	if n := o.Checkpoint.Context; n > 0 && o.Model == nil {
		o.Model = func(m *model.Options) { m.Context = n }
	}
	w := servertest.New(t, o)
	if fail >= 0 {
		w.Backend.SetFail(func(_ string, written int) error {
			if written >= fail {
				return servertest.ErrScripted
			}
			return nil
		})
	}
	return w
}

// names are models of one file: the plain one, and one with what a Modelfile adds.
func names(path string) servertest.Names {
	temperature := float32(0)
	return servertest.Names{
		{
			Name:   "scripted",
			Path:   path,
			Time:   time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
			Digest: strings.Repeat("ab", 32),
			Size:   1234,
		},
		{
			Name: "whale:small", Path: path, Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Digest: strings.Repeat("ab", 32), Size: 1234,
			System: "You are a whale.", Stop: []string{"<end>"}, Sampling: chat.Sampling{Temperature: &temperature}, MaxTokens: 12,
			Messages: []chat.Message{chat.Text(chat.User, "Wet?"), chat.Text(chat.Assistant, "Yes.")},
		},
	}
}

// changing are the parts of answers that differ from run to run.
var changing = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`"(created_at|expires_at)":"[^"]+"`), `"$1":"TIME"`},
	{regexp.MustCompile(`"((?:total|load|prompt_eval|eval)_duration)":\d+`), `"$1":1`},
	{regexp.MustCompile(`"id":"call_[A-Za-z0-9]{24}"`), `"id":"call_ID"`},
	{regexp.MustCompile(`FROM /[^"\\]*scripted\.gguf`), `FROM /PATH/scripted.gguf`},
	{regexp.MustCompile(`"(logprob)":-?[0-9.e-]+`), `"$1":-1`},
}

func stable(s string) string {
	for _, c := range changing {
		s = c.pattern.ReplaceAllString(s, c.with)
	}
	return s
}

func TestGoldens(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d goldens: %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			t.Parallel()
			g := readGolden(t, path)
			w := world(t, g.setup, g.script)
			for i, p := range g.pairs {
				head, body, _ := strings.Cut(p[0], "\n")
				method, route, ok := strings.Cut(head, " ")
				if !ok {
					t.Fatalf("%q is no request", head)
				}
				var headers []string
				if route2, agent, ok := strings.Cut(route, " agent "); ok {
					route, headers = route2, []string{"User-Agent", agent}
				}
				r := w.Do(t, method, route, body, headers...)
				got := strings.TrimSuffix(
					stable(fmt.Sprintf("%d %s\n%s", r.Status, r.Header.Get("Content-Type"), r.Body)),
					"\n",
				)
				if *update {
					g.pairs[i][1] = got
				} else if got != p[1] {
					t.Errorf("%s\n got: %s\nwant: %s", head, got, p[1])
				}
			}
			if *update {
				g.write(t, path)
			}
		})
	}
}

func TestReferencePage(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "api", "ollama.md")
	got := server.Reference(ollama.New(nil)(&server.Env{}))
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != got {
		t.Errorf("%s is not what the declarations say: run go test ./internal/server/ollama -update (%v)", path, err)
	}
}
