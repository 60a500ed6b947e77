package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/agent/headless"
	"github.com/baleenrun/baleen/internal/server"
	serveropenai "github.com/baleenrun/baleen/internal/server/openai"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// coding runs "code" with a scripted model at an endpoint.
type coding struct {
	t    *testing.T
	dir  string
	base string
	env  []string
	seen []string // prompts
	says []string
}

func newCoding(t *testing.T, says ...string) *coding {
	t.Helper()
	c := &coding{t: t, dir: t.TempDir(), says: says}
	w := servertest.New(t, servertest.Options{
		Dialects: []func(*server.Env) server.Dialect{serveropenai.New},
		Script: func(p string) string {
			c.seen = append(c.seen, p)
			if len(c.says) == 0 {
				return "Nothing more."
			}
			text := c.says[0]
			c.says = c.says[1:]
			return text
		},
	})
	c.base = w.URL + "/v1"
	c.env = []string{"BALEEN_HOME=" + t.TempDir(), "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	return c
}

func (c *coding) run(stdin string, args ...string) outcome {
	c.t.Helper()
	var out, errs bytes.Buffer
	args = append([]string{"code", "--dir", c.dir, "--endpoint", c.base, "--model", "scripted"}, args...)
	status := Main(args, IO{In: strings.NewReader(stdin), Out: &out, Err: &errs, Environ: c.env})
	return outcome{status, out.String(), errs.String()}
}

func (c *coding) command(args ...string) outcome {
	c.t.Helper()
	var out, errs bytes.Buffer
	status := Main(args, IO{In: strings.NewReader(""), Out: &out, Err: &errs, Environ: c.env})
	return outcome{status, out.String(), errs.String()}
}

// TestCodeSessions: an answer is printed alone, the session is kept, gone on with by both flags, forked, listed, shown,
// exported and removed.
func TestCodeSessions(t *testing.T) {
	c := newCoding(t, "Hello there.", "Still here.", "Forked.")
	if err := os.WriteFile(filepath.Join(c.dir, "AGENTS.md"), []byte("Speak English."), 0o644); err != nil {
		t.Fatal(err)
	}
	if o := c.run("piped words", "-p", "Hi."); o.status != exitOK || o.out != "Hello there.\n" {
		t.Fatalf("%+v", o)
	}
	for _, want := range []string{"Speak English.", "Hi.\n\npiped words", "Files: AGENTS.md"} {
		if strings.Count(c.seen[0], want) != 1 {
			t.Errorf("%q stands %d times in %q", want, strings.Count(c.seen[0], want), c.seen[0])
		}
	}
	o := c.run("", "--continue", "-p", "Are you there?", "--output-format", "json")
	var r headless.Result
	if err := json.Unmarshal([]byte(o.out), &r); err != nil || r.Result != "Still here." || r.Reason != "done" || r.Usage.First.Prompt == 0 {
		t.Fatalf("%+v %v", o, err)
	}
	if !strings.Contains(c.seen[1], "Hello there.") || strings.Count(c.seen[1], "Speak English.") != 1 {
		t.Errorf("%q", c.seen[1])
	}
	if o = c.run("", "--resume", r.Session[:len(r.Session)-2], "--fork", "-p", "Another way."); o.out != "Forked.\n" {
		t.Fatalf("%+v", o)
	}
	var list []struct{ ID, Title, End, Parent string }
	o = c.command("sessions", "list", "--all", "--json")
	if err := json.Unmarshal([]byte(o.out), &list); err != nil || len(list) != 2 || list[1].ID != r.Session || list[0].Parent != r.Session ||
		list[0].Title != "Hi. piped words" || list[0].End != "done" {
		t.Fatalf("%+v %v", o, err)
	}
	o = c.command("sessions", "show", r.Session)
	if !strings.Contains(o.out, "> Are you there?") || !strings.Contains(o.out, "Still here.") || strings.Contains(o.out, "Another way") {
		t.Errorf("%+v", o)
	}
	o = c.command("sessions", "export", r.Session)
	for _, l := range strings.Split(strings.TrimSpace(o.out), "\n") {
		if !json.Valid([]byte(l)) {
			t.Errorf("%q", l)
		}
	}
	if o = c.command("sessions", "export", r.Session, "--format", "markdown"); !strings.Contains(o.out, "## Are you there?") {
		t.Errorf("%+v", o)
	}
	if o = c.command("sessions", "rm", list[0].ID, r.Session); o.status != exitOK {
		t.Errorf("%+v", o)
	}
	if o = c.command("sessions", "show", r.Session); o.status != exitFailed || !strings.Contains(o.err, "no such session") {
		t.Errorf("%+v", o)
	}
	if o = c.run("", "--continue", "-p", "x"); o.status != exitFailed || !strings.Contains(o.err, "no session of") {
		t.Errorf("%+v", o)
	}
}

// TestCodeStream: events come one a line, messages from standard input are worked on in order.
func TestCodeStream(t *testing.T) {
	c := newCoding(t, "One.", "Two.")
	o := c.run(`{"type":"user","text":"first"}`+"\n"+`{"type":"user","text":"second"}`+"\n",
		"--input-format", "stream-json", "--output-format", "stream-json")
	if o.status != exitOK {
		t.Fatalf("%+v", o)
	}
	var kinds []string
	var last struct {
		Type, Result string
		Turns        int
	}
	for _, l := range strings.Split(strings.TrimSpace(o.out), "\n") {
		if err := json.Unmarshal([]byte(l), &last); err != nil {
			t.Fatalf("%q: %v", l, err)
		}
		if last.Type != "text" && last.Type != "prefill" {
			kinds = append(kinds, last.Type)
		}
	}
	want := "message checkpoint message turn usage message end checkpoint message turn usage message end result"
	if got := strings.Join(kinds, " "); got != want || last.Result != "Two." || last.Turns != 2 {
		t.Errorf("%s, want %s; %+v", got, want, last)
	}
}

// TestCodeRefusals: wrong command lines and folders are refused before anything is opened.
func TestCodeRefusals(t *testing.T) {
	c := newCoding(t)
	home := c.env[1][len("HOME="):]
	for _, x := range []struct {
		args []string
		want string
	}{
		{nil, "there is no task"},
		{[]string{"-p", " "}, "the task is empty"},
		{[]string{"-p", "x", "--output-format", "xml"}, `--output-format is "xml"`},
		{[]string{"-p", "x", "--mode", "wild"}, "wild"},
		{[]string{"-p", "x", "--continue", "--resume", "a"}, "exclude each other"},
		{[]string{"-p", "x", "--fork"}, "--fork needs"},
		{[]string{"-p", "x", "--dir", home}, "is no project's folder"},
		{[]string{"-p", "x", "--dir", "/"}, "is no project's folder"},
		{[]string{"-p", "x", "--api", "soap"}, `--api is "soap"`},
	} {
		if o := c.run("", x.args...); o.status != exitUsage || !strings.Contains(o.err, x.want) {
			t.Errorf("%v: %+v, want %q", x.args, o, x.want)
		}
	}
	if o := c.run("", "-p", "x", "--resume", "nothing"); o.status != exitFailed || !strings.Contains(o.err, "no such session") {
		t.Errorf("%+v", o)
	}
}
