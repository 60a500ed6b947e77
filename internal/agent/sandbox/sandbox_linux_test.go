//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	Helper()
	if name := os.Getenv("SANDBOX_ATTACK"); name != "" {
		attack(name, os.Args[1:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// eachLevel runs a test at every level that this machine has.
func eachLevel(t *testing.T, f func(t *testing.T, l Level)) {
	for _, l := range []Level{Landlock, Namespaces} {
		t.Run(l.String(), func(t *testing.T) {
			if err := try(l, t.TempDir()); err != nil {
				t.Skipf("not to be had here: %v", err)
			}
			f(t, l)
		})
	}
}

// A room is a workspace with a scratch folder.
type room struct {
	t *testing.T
	p Policy
	w string // the workspace
}

func newRoom(t *testing.T, l Level) *room {
	t.Helper()
	r := &room{t: t, w: filepath.Join(t.TempDir(), "workspace")}
	if err := os.MkdirAll(r.w, 0o755); err != nil {
		t.Fatal(err)
	}
	r.p = Policy{Write: []string{r.w}, Scratch: t.TempDir(), AtMost: l, Limits: Limits{Time: 20 * time.Second}}
	return r
}

// sh runs a shell command and returns its output, both streams together.
func (r *room) sh(script string) (string, Result) {
	r.t.Helper()
	var out bytes.Buffer
	p, err := Start(
		r.t.Context(),
		r.p,
		Command{Args: []string{"/bin/bash", "-c", script}, Dir: r.w, Stdout: &out, Stderr: &out},
	)
	if err != nil {
		r.t.Fatal(err)
	}
	res, err := p.Wait()
	if err != nil {
		r.t.Fatalf("%v\n%s", err, out.String())
	}
	return out.String(), res
}

func (r *room) file(path, text string) string {
	r.t.Helper()
	path = filepath.Join(r.w, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
	return path
}

// TestWork: what commands are for works.
func TestWork(t *testing.T) {
	eachLevel(t, func(t *testing.T, l Level) {
		r := newRoom(t, l)
		r.file("a.txt", "hello\n")
		for _, c := range []struct{ script, want string }{
			{"cat a.txt", "hello"},
			{"echo more > b.txt && mkdir -p d && mv b.txt d/ && ln d/b.txt c.txt && cat c.txt", "more"},
			{"pwd", r.w},
			{"echo $HOME", r.p.Scratch},
			{"touch $TMPDIR/x && ls $TMPDIR", "x"},
			{"echo x | grep x && seq 3 | tail -1", "3"},
			{"cat /proc/self/stat > /dev/null && cat /proc/cpuinfo | head -1 | wc -l", "1"},
			{"python3 -c 'import os, json; print(json.dumps(os.getcwd()))'", r.w},
			{"git init -q . && git status --short | head -1", "a.txt"},
			{"for i in $(seq 20); do (true &) ; done; wait; echo done", "done"},
			{"head -c 3 /dev/urandom | wc -c", "3"},
			{"echo 'echo ran' > run.sh && chmod +x run.sh && ./run.sh", "ran"},
			{"mkdir -p m && touch -d 2001-02-03 m/f && (cd m && chmod 600 f && stat -c '%a %y' f)", "600 2001-02-03"},
			{"tar cf t.tar a.txt && mkdir -p u && tar xf t.tar -C u && cat u/a.txt", "hello"},
			{"cp -p a.txt p.txt && cat p.txt", "hello"},
			{"exit 7", ""},
			{"kill -TERM $$", ""},
		} {
			out, res := r.sh(c.script)
			if !strings.Contains(out, c.want) || res.Limit != "" {
				t.Errorf("%s: %q, %+v", c.script, out, res)
			}
			switch c.script {
			case "exit 7":
				if res.Code != 7 {
					t.Errorf("code %d", res.Code)
				}
			case "kill -TERM $$":
				if res.Code != 143 {
					t.Errorf("code %d", res.Code)
				}
			default:
				if res.Code != 0 {
					t.Errorf("%s: code %d: %s", c.script, res.Code, out)
				}
			}
		}
	})
}

// TestPromises of the process itself: it ends with its caller's context, tells a failed start apart, and refuses
// policies that depend on where it stands.
func TestPromises(t *testing.T) {
	eachLevel(t, func(t *testing.T, l Level) {
		r := newRoom(t, l)
		ctx, cancel := context.WithCancel(t.Context())
		p, err := Start(ctx, r.p, Command{Args: []string{"sleep", "600"}, Dir: r.w})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if res, err := p.Wait(); err != nil || res.Code != 137 {
			t.Errorf("after the end of the context: %+v %v", res, err)
		}
		if p, err = Start(t.Context(), r.p, Command{Args: []string{"no-such-program"}, Dir: r.w}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Wait(); err == nil || !strings.Contains(err.Error(), "nothing was run") {
			t.Errorf("a program that is not there: %v", err)
		}
		bad := r.p
		bad.Write = []string{"relative"}
		if _, err := Start(t.Context(), bad, Command{Args: []string{"true"}, Dir: r.w}); !errors.Is(err, errRelative) {
			t.Errorf("a relative path: %v", err)
		}
		if out, res := r.sh("(setsid sleep 600 &) ; sleep 0.1; echo done"); out != "done\n" || res.Code != 0 {
			t.Errorf("%q %+v", out, res)
		}
	})
}

func TestEnvironmentHasNoSecrets(t *testing.T) {
	home := t.TempDir()
	got := Environment(
		[]string{"PATH=/bin", "LC_ALL=C", "OPENAI_API_KEY=k", "GOPROXY=https://u:p@host", "HOME=/root", "X=1"},
		home,
		"/scratch",
	)
	want := []string{
		"PATH=/bin",
		"LC_ALL=C",
		"HOME=/scratch",
		"TMPDIR=/scratch/tmp",
		"TMP=/scratch/tmp",
		"TEMP=/scratch/tmp",
		"XDG_CACHE_HOME=/scratch/.cache",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestWithoutHelper: a program whose main does not call Helper is not started as one: it would do its own work there, and
// start itself again and again.
func TestWithoutHelper(t *testing.T) {
	helped.Store(false)
	defer helped.Store(true)
	var u *UnavailableError
	if _, err := start(t.Context(), &spec{}, Command{}); !errors.As(err, &u) {
		t.Errorf("%v", err)
	}
}
