package perm

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/baleenrun/baleen/internal/agent/files"
)

// A rule says what becomes of effects of one kind.
type rule struct {
	verb     string // read, write, run, reach
	text     string // as it was written
	from     string // the file, for reasons
	decision Decision

	words []*files.Pattern // of a command; rest: and any words behind them
	rest  bool
	glob  *files.Pattern // of a path or a host
	below string         // all that it matches is this path or below it
}

// ruleFile is a file of rules.
//
//	deny  = ["read private/**", "run git push *"]
//	ask   = ["write go.mod"]
//	allow = ["run go test *", "reach pkg.go.dev"]
//
//	[[workspace]]          # only there
//	root  = "/home/me/project"
//	allow = ["run make *"]
type ruleFile struct {
	Deny      []string        `toml:"deny"`
	Ask       []string        `toml:"ask"`
	Allow     []string        `toml:"allow"`
	Workspace []workspaceFile `toml:"workspace"`
}

type workspaceFile struct {
	Root  string   `toml:"root"`
	Deny  []string `toml:"deny"`
	Ask   []string `toml:"ask"`
	Allow []string `toml:"allow"`
}

// maxRules bounds a file, in bytes.
const maxRules = 1 << 20

// readRules reads a file of rules. One that is not there has none.
func readRules(path string) (*ruleFile, error) {
	if path == "" {
		return &ruleFile{}, nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|files.NonBlock, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return &ruleFile{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRules+1))
	if err == nil && len(b) > maxRules {
		err = fmt.Errorf("it is longer than %d bytes", maxRules)
	}
	if err != nil {
		return nil, err
	}
	return parseRules(string(b))
}

func parseRules(text string) (*ruleFile, error) {
	var out ruleFile
	d := toml.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(&out)
	var strict *toml.StrictMissingError
	var bad *toml.DecodeError
	switch {
	case errors.As(err, &strict) && len(strict.Errors) > 0:
		row, _ := strict.Errors[0].Position()
		return nil, fmt.Errorf("line %d: there is no setting %q; there are deny, ask, allow and [[workspace]] with root", row,
			strings.Join(strict.Errors[0].Key(), "."))
	case errors.As(err, &bad):
		row, _ := bad.Position()
		return nil, fmt.Errorf("line %d: %w", row, err)
	case err != nil:
		return nil, err
	}
	return &out, nil
}

// compile makes rules of lists of patterns.
func compile(o *Options, from string, deny, ask, allow []string) ([]rule, error) {
	var out []rule
	for _, l := range []struct {
		d     Decision
		texts []string
	}{{Deny, deny}, {Ask, ask}, {Allow, allow}} {
		for _, text := range l.texts {
			r, err := parseRule(o, text)
			if err != nil {
				return nil, err
			}
			r.decision, r.from = l.d, from
			out = append(out, r)
		}
	}
	return out, nil
}

// parseRule reads "verb pattern". Paths are relative to the workspace, or begin with / or ~/; one that names a folder
// stands for what is in it, too. Commands are compared word by word; a last * stands for any words, none among them.
func parseRule(o *Options, text string) (rule, error) {
	verb, pattern, _ := strings.Cut(strings.TrimSpace(text), " ")
	pattern = strings.TrimSpace(pattern)
	r := rule{verb: verb, text: text}
	if pattern == "" {
		return r, fmt.Errorf("the rule %q is no verb and pattern, such as \"run go test *\"", text)
	}
	var err error
	switch verb {
	case "read", "write":
		switch {
		case pattern == "~" || strings.HasPrefix(pattern, "~/"):
			pattern = escapeGlob(o.Home) + pattern[1:]
		case !filepath.IsAbs(pattern):
			pattern = escapeGlob(o.Root) + "/" + strings.TrimPrefix(pattern, "./")
		}
		pattern = strings.TrimSuffix(pattern, "/")
		r.below = unescapeGlob(files.Literal(strings.ReplaceAll(pattern, `\`, "")))
		r.glob, err = files.Compile(pattern)
	case "reach":
		r.glob, err = files.Compile(strings.ToLower(pattern))
	case "run":
		words, err := splitPattern(pattern)
		if err != nil {
			return r, fmt.Errorf("the rule %q: %w", text, err)
		}
		if n := len(words); n > 0 && words[n-1] == "*" {
			r.rest, words = true, words[:n-1]
		}
		for _, w := range words {
			// A slash is nothing special in a word: * goes across.
			p, err := files.Compile(strings.ReplaceAll(strings.ReplaceAll(w, "*", "**"), "/", slashWord))
			if err != nil {
				return r, fmt.Errorf("the rule %q: %w", text, err)
			}
			r.words = append(r.words, p)
		}
	default:
		return r, fmt.Errorf("the rule %q begins with %q, want read, write, run or reach", text, verb)
	}
	if err != nil {
		return r, fmt.Errorf("the rule %q: %w", text, err)
	}
	return r, nil
}

// slashWord stands for slashes in the words of commands.
const slashWord = "\x01"

// splitPattern splits a command's pattern into words, as quoteWords has joined them.
func splitPattern(s string) ([]string, error) {
	var out []string
	var b strings.Builder
	in, quoted := false, false
	for _, r := range s {
		switch {
		case r == '\'':
			quoted, in = !quoted, true
		case r == ' ' && !quoted:
			if in {
				out = append(out, b.String())
			}
			b.Reset()
			in = false
		case quoted && strings.ContainsRune(`*?[{\`, r):
			b.WriteString(`\` + string(r))
			in = true
		default:
			b.WriteRune(r)
			in = true
		}
	}
	if quoted {
		return nil, errors.New("a ' is not closed")
	}
	if in {
		out = append(out, b.String())
	}
	return out, nil
}

// quoteWords writes words as a pattern that stands for just these; "": they cannot be written.
func quoteWords(words []string) string {
	var out []string
	for _, w := range words {
		switch {
		case strings.ContainsAny(w, "'\n"+Dynamic):
			return ""
		case w == "" || strings.ContainsAny(w, ` *?[]{}\,`):
			w = "'" + w + "'"
		}
		out = append(out, w)
	}
	return strings.Join(out, " ")
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `{`, `\{`, `\`, `\\`).Replace(s)
}

func unescapeGlob(s string) string { return strings.ReplaceAll(s, `\`, "") }

// matchPath tells whether the rule is about a path, or, where it narrows, about something below it.
func (r *rule) matchPath(path string) bool {
	slash := filepath.ToSlash(path)
	for p := slash; ; p = p[:strings.LastIndexByte(p, '/')] { // a folder's rule is about all in it
		if r.glob.Match(p) {
			return true
		}
		if i := strings.LastIndexByte(p, '/'); i <= 0 {
			break
		}
	}
	return false
}

// concerns tells whether what is done to a whole folder concerns a rule about something in it.
func (r *rule) concerns(path string) bool {
	return r.decision != Allow && r.below != "" && Within(r.below, path)
}

// matchCommand tells whether the rule is about a command. A word that is known only when it runs may be any, which counts
// for rules that narrow.
func (r *rule) matchCommand(words []string) bool {
	if len(words) < len(r.words) || len(words) > len(r.words) && !r.rest {
		return false
	}
	for i, p := range r.words {
		w := words[i]
		if strings.Contains(w, Dynamic) {
			if r.decision == Allow {
				return false
			}
			continue
		}
		if !p.Match(strings.ReplaceAll(w, "/", slashWord)) && (i > 0 || r.decision == Allow || !p.Match(filepath.Base(w))) {
			return false
		}
	}
	return r.decision != Allow || len(words) == 0 || !strings.Contains(words[0], Dynamic)
}

// load reads the rules of both files.
func (p *Policy) load() {
	o := &p.o
	user, err := readRules(o.UserFile)
	if err != nil {
		p.fail(o.UserFile, err)
		return
	}
	rules, err := compile(o, o.UserFile, user.Deny, user.Ask, user.Allow)
	if err != nil {
		p.fail(o.UserFile, err)
		return
	}
	for _, w := range user.Workspace {
		root := w.Root
		if real, err := filepath.EvalSymlinks(root); err == nil {
			root = real
		}
		more, err := compile(o, o.UserFile, w.Deny, w.Ask, w.Allow)
		if err != nil || w.Root == "" {
			if err == nil {
				err = errors.New("a [[workspace]] has no root")
			}
			p.fail(o.UserFile, err)
			return
		}
		if root == o.Root {
			rules = append(rules, more...)
		}
	}
	session, err := compile(o, "the command line", o.Deny, nil, o.Allow)
	if err != nil {
		p.fail("the command line", err)
		return
	}
	rules = append(rules, session...)
	project, err := readRules(o.ProjectFile)
	if err != nil {
		p.fail(o.ProjectFile, err)
		return
	}
	narrow, err := compile(o, o.ProjectFile, project.Deny, project.Ask, nil)
	if err != nil {
		p.fail(o.ProjectFile, err)
		return
	}
	if len(project.Allow)+len(project.Workspace) > 0 {
		p.problem = o.ProjectFile + ": a project's rules can deny and ask; what they allow does not count"
	}
	p.rules = append(rules, narrow...)
}

// fail makes the policy one that only reads.
func (p *Policy) fail(file string, err error) {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	p.broken = fmt.Sprintf("the rules in %s cannot be read (%v), so files are only read", file, err)
	p.problem = p.broken
}

// Always tells the policy that the user has allowed what the verdict's Pattern says, from now on. It is written to the
// user's file of rules, for this workspace.
func (p *Policy) Always(v Verdict) error {
	if v.Pattern == "" {
		return errors.New("permissions: this cannot be allowed for always")
	}
	texts := strings.Split(v.Pattern, "\n")
	rules, err := compile(&p.o, p.o.UserFile, nil, nil, texts)
	if err != nil {
		return fmt.Errorf("permissions: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken != "" {
		return errors.New(p.broken)
	}
	if err := p.append(texts); err != nil {
		return fmt.Errorf("permissions: %w", err)
	}
	p.rules = append(p.rules, rules...)
	p.changed = p.changed || v.changes
	return nil
}

// append writes rules behind those that the user's file has. What is there stays as it is, comments too.
func (p *Policy) append(allow []string) error {
	if p.o.UserFile == "" {
		return errors.New("there is no file for rules")
	}
	was, err := os.ReadFile(p.o.UserFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	added := workspaceFile{Root: p.o.Root, Allow: slices.Clone(allow)}
	b, err := toml.Marshal(struct {
		Root  string   `toml:"root"`
		Allow []string `toml:"allow"`
	}{added.Root, added.Allow})
	if err != nil {
		return err
	}
	text := "\n[[workspace]]\n" + string(b)
	if len(was) > 0 && was[len(was)-1] != '\n' {
		text = "\n" + text
	}
	if f, err := parseRules(string(was) + text); err != nil || len(f.Workspace) == 0 || f.Workspace[len(f.Workspace)-1].Root != p.o.Root {
		return fmt.Errorf("%s cannot take another rule: %v", p.o.UserFile, err)
	}
	if err := os.MkdirAll(filepath.Dir(p.o.UserFile), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(p.o.UserFile, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}
