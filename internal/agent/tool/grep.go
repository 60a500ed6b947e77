package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/baleenrun/baleen/internal/agent/files"
	"github.com/baleenrun/baleen/internal/agent/perm"
	"github.com/baleenrun/baleen/internal/agent/sandbox"
)

// grep searches files: by ripgrep where it is there, which is faster, else by itself, with the same result.
type grep struct{ own bool }

type grepArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path,omitempty"`
	Glob    string `json:"glob,omitempty"`
}

// Bounds of a search: what is shown, and what is looked for.
const (
	grepShown = 100
	grepLine  = 240
	grepMost  = 20_000
)

func (grep) Spec() Spec {
	return Spec{
		Name: "grep", Core: true,
		Description: "Search files for a regular expression.",
		Parameters:  schema("pattern:string", "path?:string", "glob?:string"),
	}
}

func (grep) Effect(env *Env, args json.RawMessage) (perm.Effect, error) {
	var a grepArgs
	if err := decode(args, &a); err != nil {
		return perm.Effect{}, err
	}
	at, err := env.agree(cmp.Or(a.Path, "."))
	if err != nil || env.spilled(at) {
		return perm.Effect{}, err
	}
	return perm.Effect{Reads: []string{at.real}}, err
}

// A hit is a line that was found.
type hit struct {
	path string // as it is shown
	line int
	text string
}

// found is what a search has come to.
type found struct {
	hits   []hit
	many   bool // there are more
	hidden map[string]bool
}

func (g grep) Run(ctx context.Context, env *Env, args json.RawMessage, _ func(string)) (Result, error) {
	var a grepArgs
	if err := decode(args, &a); err != nil {
		return failed("%v", err), nil
	}
	re, err := regexp.Compile(a.Pattern)
	if err != nil || a.Pattern == "" {
		return failed("the pattern cannot be read: %v; put \\ in front of ( ) [ ] { } . * + ? | that mean themselves",
			cmp.Or(err, errors.New("it is empty"))), nil
	}
	var match *files.Pattern
	if a.Glob != "" {
		if match, err = files.Compile(anywhere(a.Glob)); err != nil {
			return failed("%v", err), nil
		}
	}
	at, err := env.find(cmp.Or(a.Path, "."))
	if err != nil {
		return failed("%v", err), nil
	}
	st, err := env.stat(at)
	if err != nil {
		return Result{Text: env.notThere(at, err).Error(), IsError: true}, nil
	}
	var f found
	ok := false
	if !g.own && st.IsDir() {
		f, ok = ripgrep(ctx, env, a.Pattern, at, match)
	}
	if !ok {
		if f, err = search(ctx, env, re, at, st.IsDir(), match); err != nil {
			if ctx.Err() != nil {
				return Result{}, context.Cause(ctx)
			}
			return failed("%v", err), nil
		}
	}
	return f.result(env, a), nil
}

// anywhere makes a glob without a slash one for names in any folder.
func anywhere(glob string) string {
	if !strings.Contains(glob, "/") {
		return "**/" + glob
	}
	return strings.TrimPrefix(strings.TrimPrefix(glob, "./"), "/")
}

func (f *found) result(env *Env, a grepArgs) Result {
	slices.SortStableFunc(f.hits, func(x, y hit) int {
		return cmp.Or(strings.Compare(x.path, y.path), cmp.Compare(x.line, y.line))
	})
	note := ""
	if len(f.hidden) > 0 {
		names := slices.Sorted(mapKeys(f.hidden))
		note = fmt.Sprintf("\n[not searched, may hold secrets: %s]", list(names[:min(len(names), 5)]))
	}
	if len(f.hits) == 0 {
		where := ""
		if a.Path != "" && a.Path != "." {
			where = " in " + a.Path
		}
		return Result{Text: "nothing found" + where + note}
	}
	var b strings.Builder
	shown := 0
	for _, h := range f.hits {
		line := fmt.Sprintf("%s:%d: %s\n", h.path, h.line, cut(strings.TrimRight(clean(h.text), " \t\r\n"), grepLine))
		if shown == grepShown || b.Len()+len(line) > env.most() {
			break
		}
		b.WriteString(line)
		shown++
	}
	if shown < len(f.hits) {
		in := map[string]bool{}
		for _, h := range f.hits {
			in[h.path] = true
		}
		more := ""
		if f.many {
			more = "more than "
		}
		fmt.Fprintf(&b, "[%d of %s%d lines found in %s; search for less]\n", shown, more, len(f.hits), count(len(in), "file"))
	}
	return Result{Text: strings.TrimSuffix(b.String(), "\n") + note}
}

// name is a file's path as it is shown, and whether a search leaves it out.
func (f *found) name(env *Env, real string) (string, bool) {
	name := env.short(real)
	if env.hidden(real) {
		if f.hidden == nil {
			f.hidden = map[string]bool{}
		}
		f.hidden[name] = true
		return "", false
	}
	return name, true
}

// search is the search that needs no other program.
func search(ctx context.Context, env *Env, re *regexp.Regexp, at place, dir bool, match *files.Pattern) (found, error) {
	var f found
	if !dir { // it was named, so it was decided about
		p := at
		return f, f.file(env, re, p)
	}
	root, rel := env.Root, at.rel
	if at.rel == "" {
		root, rel = at.real, "."
	}
	r, err := os.OpenRoot(root)
	if err != nil {
		return f, err
	}
	defer r.Close()
	err = files.Walk(ctx, r, rel, files.Options{}, func(e files.Entry) error {
		if !e.Type().IsRegular() {
			return nil
		}
		below := strings.TrimPrefix(e.Path, rel+"/")
		if match != nil && !match.Match(below) && !match.Match(e.Path) {
			return nil
		}
		p := place{real: filepath.Join(root, filepath.FromSlash(e.Path))}
		if at.rel != "" {
			p.rel = e.Path
		}
		name, ok := f.name(env, p.real)
		if !ok {
			return nil
		}
		p.shown = name
		if len(f.hits) >= grepMost {
			f.many = true
			return errEnough
		}
		_ = f.file(env, re, p) // what cannot be read, or is no text, has nothing to find
		return nil
	})
	if errors.Is(err, errEnough) || errors.Is(err, files.ErrMany) {
		f.many, err = true, nil
	}
	return f, err
}

var errEnough = errors.New("enough")

func (f *found) file(env *Env, re *regexp.Regexp, p place) error {
	data, err := env.all(p, wholeBytes)
	if err != nil {
		return err
	}
	t, err := decodeText(data)
	if err != nil {
		return fmt.Errorf("%s: %w", p.shown, err)
	}
	if !re.MatchString(t.s) && !strings.ContainsAny(re.String(), "^$") {
		return nil // the usual case, decided by one look
	}
	n := 0
	for line := range strings.Lines(t.s) {
		n++
		if re.MatchString(strings.TrimRight(line, "\r\n")) {
			f.hits = append(f.hits, hit{p.shown, n, line})
		}
	}
	return nil
}

// ripgrep lets rg search, in the sandbox where there is one: what it opens is where it says, whatever becomes of folders
// meanwhile.
func ripgrep(ctx context.Context, env *Env, pattern string, at place, match *files.Pattern) (found, bool) {
	var f found
	rg, err := exec.LookPath("rg")
	expr, ok := portable(pattern)
	if err != nil || !ok || at.rel == "" {
		return f, false
	}
	args := []string{
		rg, "--no-config", "--null", "--line-number", "--no-heading", "--with-filename", "--color=never", "--hidden", "--glob=!.git",
		"--no-ignore-global", "--no-ignore-dot", "--no-ignore-parent", "--no-require-git", "--max-filesize=16M", "--no-messages",
		"--max-columns=4096", "--max-columns-preview", "--crlf", "-e", expr, "--", "./" + at.rel,
	}
	if at.rel != "." && ignoreAbove(env, at.rel) {
		return f, false // rg reads the ignore files above a folder only where it reads all above, those outside too
	}
	out := &limited{most: 32 << 20}
	var code int
	if env.Sandbox != nil {
		p, err := sandbox.Start(ctx, *env.Sandbox, sandbox.Command{Args: args, Dir: env.Root, Stdout: out})
		if err != nil {
			return f, false
		}
		res, err := p.Wait()
		if err != nil {
			return f, false
		}
		code = res.Code
	} else {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir, cmd.Stdout = env.Root, out
		err := cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			return f, false
		}
		code = cmd.ProcessState.ExitCode()
	}
	if code > 2 || code < 0 || code == 2 && out.b.Len() == 0 || ctx.Err() != nil {
		return f, false // it cannot read the pattern, or ran into something
	}
	hiddenOf := map[string]string{}
	for line := range bytes.Lines(out.b.Bytes()) {
		name, rest, ok := bytes.Cut(line, []byte{0})
		num, text, ok2 := bytes.Cut(rest, []byte(":"))
		n, err := strconv.Atoi(string(num))
		if !ok || !ok2 || err != nil {
			continue // of a binary file: a remark
		}
		rel := path.Clean(string(name))
		if match != nil && !match.Match(strings.TrimPrefix(rel, at.rel+"/")) && !match.Match(rel) {
			continue
		}
		shown, seen := hiddenOf[rel]
		if !seen {
			shown, _ = f.name(env, filepath.Join(env.Root, filepath.FromSlash(rel)))
			hiddenOf[rel] = shown
		}
		if shown == "" {
			continue
		}
		if len(f.hits) >= grepMost {
			f.many = true
			break
		}
		if t, err := decodeText(text); err == nil {
			text = []byte(t.s)
		}
		f.hits = append(f.hits, hit{shown, n, string(text)})
	}
	f.many = f.many || out.over
	return f, true
}

// ignoreAbove tells whether a folder above has an ignore file.
func ignoreAbove(env *Env, rel string) bool {
	for dir := path.Dir(rel); ; dir = path.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(env.Root, filepath.FromSlash(dir), ".gitignore")); err == nil {
			return true
		}
		if dir == "." {
			return false
		}
	}
}

// portable returns a pattern that means in Rust's syntax what it means in Go's, where classes such as \d are ASCII's.
func portable(p string) (string, bool) {
	var b strings.Builder
	class := false
	for i := 0; i < len(p); i++ {
		c := p[i]
		switch {
		case c == '[' && class && !strings.HasPrefix(p[i:], "[:"), c == '&' && class, c == '~' && class, c == '-' && class && strings.HasPrefix(p[i:], "--"):
			return "", false // nested classes and their operations are Rust's alone
		case c == '[':
			class = true
			if strings.HasPrefix(p[i:], "[]") || strings.HasPrefix(p[i:], "[^]") {
				return "", false
			}
		case c == ']':
			class = false
		case c == '(' && strings.HasPrefix(p[i:], "(?") && !strings.HasPrefix(p[i:], "(?:") && !strings.HasPrefix(p[i:], "(?i)"):
			return "", false
		case c == '\\' && i+1 < len(p):
			i++
			in := map[byte]string{'d': "0-9", 'w': "0-9A-Za-z_", 's': `\t\n\f\r `}
			switch e := p[i]; {
			case in[e] != "" && class:
				b.WriteString(in[e])
			case in[e] != "":
				b.WriteString("[" + in[e] + "]")
			case in[e|0x20] != "" && e < 'a' && !class:
				b.WriteString("[^" + in[e|0x20] + "]")
			case (e == 'b' || e == 'B') && !class:
				b.WriteString(`(?-u:\` + p[i:i+1] + ")")
			case e >= 'a' && e <= 'z' && strings.IndexByte("tnrfv", e) < 0, e >= 'A' && e <= 'Z', e >= '0' && e <= '9':
				return "", false
			default:
				b.WriteString(p[i-1 : i+1])
			}
			continue
		}
		b.WriteByte(c)
	}
	return b.String(), true
}

// limited keeps the beginning of what is written.
type limited struct {
	b    bytes.Buffer
	most int
	over bool
}

func (l *limited) Write(p []byte) (int, error) {
	if room := l.most - l.b.Len(); len(p) > room {
		l.over = true
		l.b.Write(p[:max(room, 0)])
	} else {
		l.b.Write(p)
	}
	return len(p), nil
}
