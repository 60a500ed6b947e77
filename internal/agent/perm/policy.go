package perm

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Options say what a Policy is for.
type Options struct {
	Root string // the workspace, absolute, links followed
	Home string // the user's home
	Mode Mode
	// Sandboxed: commands are held to the workspace by the kernel.
	Sandboxed bool
	// UserFile and ProjectFile are the files of rules; they need not exist.
	UserFile, ProjectFile string
	// Allow and Deny are rules of this session alone, such as a command line has them.
	Allow, Deny []string
	// Private are files and folders that hold secrets of this program's own: they are denied.
	Private []string
	// Tools are files and folders outside of the workspace that may be read without asking, such as toolchains; what the
	// system has is among them anyway.
	Tools []string
}

// A Policy decides about effects: by rules of the user and of the project, and by a mode. It is safe for concurrent use.
type Policy struct {
	o       Options
	problem string
	broken  string // rules that cannot be read: why only reading is left

	mu      sync.Mutex // guards what is below
	mode    Mode
	rules   []rule
	changed bool // a change was allowed, which is what ModeAdaptive waits for
	granted []grant
}

// A grant opens a folder that would be private or outside.
type grant struct {
	dir   string
	write bool
}

// Grant lets a folder that is the session's own be read, such as that of long outputs, or also be written, such as the
// home of commands in the sandbox.
func (p *Policy) Grant(dir string, write bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.granted = append(p.granted, grant{follow(dir), write})
}

func (p *Policy) grants(real string, write bool) bool {
	return slices.ContainsFunc(p.granted, func(g grant) bool { return Within(real, g.dir) && (g.write || !write) })
}

// New reads the files of rules. It always returns a policy that can be used: where rules cannot be read, one that only
// lets files be read, and Problem says why.
func New(o Options) *Policy {
	o.Root, o.Home = follow(o.Root), follow(o.Home)
	o.Private = slices.Clone(o.Private)
	for i := range o.Private {
		o.Private[i] = follow(o.Private[i])
	}
	for _, f := range []string{o.UserFile, o.ProjectFile} {
		if f != "" {
			o.Private = append(o.Private, follow(f))
		}
	}
	p := &Policy{o: o, mode: o.Mode}
	p.load()
	return p
}

// Problem says what was wrong with the rules; "": nothing.
func (p *Policy) Problem() string { return p.problem }

// Mode returns the mode in force.
func (p *Policy) Mode() Mode {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode
}

// SetMode changes the mode. Only people do that.
func (p *Policy) SetMode(m Mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = m
}

// Allowed tells the policy that the user has allowed the effect of a verdict, this once.
func (p *Policy) Allowed(v Verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed = p.changed || v.changes
}

// Hides tells whether searches leave a file out: reading it alone would be asked for or denied.
func (p *Policy) Hides(path string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.read(path, false).d != Allow
}

// A part is what becomes of one thing that a call would do.
type part struct {
	d       Decision
	reason  string
	pattern string // what would allow it; "": nothing does
	change  bool
}

// Decide says whether the effect is allowed. The strictest of what its parts get counts.
func (p *Policy) Decide(e Effect) Verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken != "" {
		return p.readOnly(e)
	}
	held := p.o.Sandboxed && len(e.Commands) > 0
	var parts []part
	for _, path := range e.Reads {
		parts = append(parts, p.read(path, held))
	}
	for _, path := range e.Writes {
		parts = append(parts, p.write(path, held))
	}
	for _, c := range e.Commands {
		parts = append(parts, p.command(c))
	}
	for _, h := range e.Hosts {
		parts = append(parts, p.host(h, held))
	}
	if e.Unknown != "" {
		d, reason := Ask, e.Unknown
		if p.mode == ModePlan {
			d = Deny
		}
		parts = append(parts, part{d: d, reason: reason, change: true})
	}
	return verdict(parts)
}

// verdict joins the parts.
func verdict(parts []part) Verdict {
	var v Verdict
	for _, x := range parts {
		v.Decision = max(v.Decision, x.d)
	}
	if v.Decision == Allow {
		return v
	}
	var reasons, patterns []string
	always := v.Decision == Ask
	for _, x := range parts {
		if x.d == Allow {
			continue
		}
		if x.d == v.Decision && !slices.Contains(reasons, x.reason) {
			reasons = append(reasons, x.reason)
		}
		always = always && x.pattern != ""
		if !slices.Contains(patterns, x.pattern) {
			patterns = append(patterns, x.pattern)
		}
		v.changes = v.changes || x.change
	}
	const most = 4
	if n := len(reasons) - most; n > 0 {
		reasons = append(reasons[:most], fmt.Sprintf("and %d more", n))
	}
	v.Reason = strings.Join(reasons, "; ")
	if always && len(patterns) <= 8 {
		v.Pattern = strings.Join(patterns, "\n")
	}
	return v
}

// readOnly is what is left where rules cannot be read.
func (p *Policy) readOnly(e Effect) Verdict {
	if len(e.Writes)+len(e.Commands)+len(e.Hosts) > 0 || e.Unknown != "" {
		return Verdict{Decision: Deny, Reason: p.broken}
	}
	for _, path := range e.Reads {
		if x := p.read(path, false); x.d != Allow {
			return Verdict{Decision: Deny, Reason: p.broken}
		}
	}
	return Verdict{}
}

// byRules returns what the rules say: the strictest of those that match. ok: there is one.
func (p *Policy) byRules(verb string, match func(*rule) bool) (rule, bool) {
	var best *rule
	for i := range p.rules {
		r := &p.rules[i]
		if r.verb == verb && match(r) && (best == nil || r.decision > best.decision) {
			best = r
		}
	}
	if best == nil {
		return rule{}, false
	}
	return *best, true
}

// ruled is what a rule makes of something.
func (r rule) ruled(what string) part {
	switch r.decision {
	case Deny:
		return part{d: Deny, reason: fmt.Sprintf("%s is denied by the rule %q", what, r.text)}
	case Ask:
		return part{d: Ask, reason: fmt.Sprintf("%s is asked for by the rule %q", what, r.text)}
	}
	return part{}
}

// follow resolves the links of a path as far as it is there.
func follow(path string) string {
	if path == "" {
		return ""
	}
	path = filepath.Clean(path)
	rest := ""
	for range 255 {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Join(real, rest)
		}
		if to, err := os.Readlink(path); err == nil {
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(path), to)
			}
			path = filepath.Clean(to)
			continue
		}
		if path == filepath.Dir(path) {
			break
		}
		rest = filepath.Join(filepath.Base(path), rest)
		path = filepath.Dir(path)
	}
	return filepath.Join(path, rest)
}

func (p *Policy) show(path string) string {
	if path != p.o.Root && Within(path, p.o.Root) {
		return path[len(p.o.Root)+1:]
	}
	return path
}

// both tells whether a rule is about a path as it is written, or about where it leads. What allows must be about the
// latter.
func both(path, real string) func(*rule) bool {
	return func(r *rule) bool {
		if r.decision == Allow {
			return r.matchPath(real)
		}
		return r.matchPath(path) || r.matchPath(real) || r.concerns(real)
	}
}

// system are folders that everybody may read.
var system = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store", "/snap", "/dev/null", "/dev/stdin", "/dev/zero", "/dev/urandom", "/dev/random"}

func (p *Policy) private(real string) bool {
	return slices.ContainsFunc(p.o.Private, func(dir string) bool { return Within(real, dir) })
}

// read decides about reading a file or folder. held: by a command in the sandbox, which can reach nothing else.
func (p *Policy) read(path string, held bool) part {
	real := follow(path)
	what := "reading " + p.show(real)
	if p.grants(real, false) {
		return part{}
	}
	if p.private(real) {
		return part{d: Deny, reason: what + " is denied: it is Baleen's own"}
	}
	match := both(path, real)
	r, ok := p.byRules("read", func(r *rule) bool {
		// Searches leave out what is in a folder and hidden; naming the folder is no reason to ask.
		return match(r) && (r.decision == Allow || r.matchPath(path) || r.matchPath(real))
	})
	if ok {
		return r.ruled(what)
	}
	inside := Within(real, p.o.Root)
	switch {
	case Secret(real) || Secret(path):
		d := Ask
		if !inside || p.mode == ModePlan {
			d = Deny
		}
		return part{d: d, reason: what + ": it may hold secrets"}
	case procSecret(real) || procSecret(path):
		return part{d: Deny, reason: what + " is denied: it shows what is in processes"}
	case inside, held:
		return part{}
	}
	for _, dir := range slices.Concat(system, p.o.Tools) {
		if Within(real, dir) {
			return part{}
		}
	}
	dir := real
	if !isDir(dir) {
		dir = filepath.Dir(dir)
	}
	x := part{d: Ask, reason: what + ": it is outside of the workspace"}
	if dir != "/" && dir != p.o.Home && !Within(p.o.Home, dir) {
		x.pattern = "read " + escapeGlob(dir) + "/**"
	}
	return x
}

// guarded are files of a workspace that run or allow something when others use it.
var guarded = []string{".git", ".baleen"}

// write decides about changing a file.
func (p *Policy) write(path string, held bool) part {
	real := follow(path)
	what := "writing " + p.show(real)
	if p.grants(real, true) {
		return part{}
	}
	if p.private(real) {
		return part{d: Deny, reason: what + " is denied: it is Baleen's own"}
	}
	if p.mode == ModePlan {
		return part{d: Deny, reason: what + ": the mode is plan, in which nothing is changed"}
	}
	r, ok := p.byRules("write", both(path, real))
	if ok && r.decision != Allow {
		x := r.ruled(what)
		x.change = true
		return x
	}
	x := part{d: Ask, change: true}
	own := p.ownFolder(real)
	switch {
	case ok && !own:
		return part{}
	case !Within(real, p.o.Root):
		if held && !Within(real, p.o.Home) && !Within(p.o.Home, real) && (Within(real, "/tmp") || Within(real, "/dev")) {
			return part{} // its own
		}
		x.reason = what + ": it is outside of the workspace"
		if dir := filepath.Dir(real); !Secret(real) && dir != "/" && !Within(p.o.Home, dir) && !p.systemFile(real) {
			x.pattern = "write " + escapeGlob(real)
		}
		return x
	case real == p.o.Root || own:
		x.reason = what + ": it is of the repository itself"
		return x
	case Secret(real):
		x.reason = what + ": it may hold secrets"
		return x
	}
	switch p.mode {
	case ModeAcceptEdits, ModeAuto:
		return part{}
	case ModeAdaptive:
		if p.changed {
			return part{}
		}
	}
	x.reason = what
	dir := filepath.Dir(real)
	if x.pattern = "write " + escapeGlob(p.show(dir)) + "/**"; dir == p.o.Root {
		x.pattern = "write " + escapeGlob(p.show(real))
	}
	return x
}

func (p *Policy) systemFile(real string) bool {
	return slices.ContainsFunc([]string{"/usr", "/bin", "/sbin", "/lib", "/etc", "/boot", "/proc", "/sys", "/dev", "/root", "/var"},
		func(dir string) bool { return Within(real, dir) })
}

func (p *Policy) ownFolder(real string) bool {
	for _, g := range guarded {
		if Within(real, filepath.Join(p.o.Root, g)) {
			return true
		}
	}
	// A nested repository's are no better.
	rest := strings.TrimPrefix(real, p.o.Root)
	return Within(real, p.o.Root) && slices.Contains(strings.Split(rest, string(filepath.Separator)), ".git")
}

// command decides about running a command, but for the files that it is known to write.
func (p *Policy) command(c Command) part {
	what := "running " + shorten(c.String())
	r, ok := p.byRules("run", func(r *rule) bool { return r.matchCommand(c.Words) })
	switch {
	case ok && r.decision != Allow:
		x := r.ruled(what)
		x.change = !c.ReadOnly
		return x
	case c.ReadOnly && (p.o.Sandboxed || !c.opens()):
		return part{}
	case p.mode == ModePlan:
		return part{d: Deny, reason: what + ": the mode is plan, in which only commands run that are known to change nothing"}
	case ok, c.Writes:
		return part{} // what it writes is decided about
	}
	switch {
	case p.mode == ModeAuto,
		p.o.Sandboxed && p.mode == ModeAcceptEdits,
		p.o.Sandboxed && p.mode == ModeAdaptive && p.changed:
		return part{}
	}
	x := part{d: Ask, reason: what, change: true, pattern: commandPattern(c.Words)}
	if !p.o.Sandboxed {
		x.reason += ", which no sandbox holds"
	}
	return x
}

// opens tells whether a command may read files of which the names are known only when it runs. In a sandbox they are of
// the workspace.
func (c Command) opens() bool {
	if len(c.Words) == 0 || slices.Contains([]string{"echo", "printf", "test", "[", "true", "false", "exit", "return", "seq", "cd", ":"}, c.Words[0]) {
		return false
	}
	return slices.ContainsFunc(c.Words, func(w string) bool { return strings.Contains(w, Dynamic) })
}

func shorten(s string) string {
	s = strings.ReplaceAll(s, "\n", " ")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}

// families are programs of which what they do is said by their first words: so many are kept, and any others allowed.
var families = map[string]int{
	"go build": 2, "go test": 2, "go vet": 2, "go fmt": 2, "go list": 2, "go mod": 3, "gofmt": 1, "npm test": 2, "npm run": 3, "pnpm run": 3, "yarn run": 3,
	"npx tsc": 2, "npx eslint": 2, "npx prettier": 2, "npx vitest": 2, "npx jest": 2, "cargo build": 2, "cargo test": 2, "cargo check": 2, "cargo clippy": 2, "cargo fmt": 2,
	"pytest": 1, "ruff": 1, "mypy": 1, "black": 1, "tsc": 1, "eslint": 1, "prettier": 1, "make": 2, "git add": 2, "git commit": 2, "git stash": 2, "git checkout": 2,
	"git switch": 2, "git fetch": 2, "git pull": 2, "mvn test": 2, "dotnet build": 2, "dotnet test": 2, "ctest": 1, "cmake": 1,
}

// commandPattern is what "always" would allow: a family of commands, or this one as it is.
func commandPattern(words []string) string {
	if len(words) == 0 || strings.Contains(words[0], Dynamic) {
		return ""
	}
	for _, n := range []int{2, 1} {
		if len(words) < n {
			continue
		}
		if keep := families[strings.Join(words[:n], " ")]; keep > 0 && len(words) >= keep {
			if s := quoteWords(words[:keep]); s != "" {
				return "run " + s + " *"
			}
		}
	}
	if s := quoteWords(words); s != "" && len(s) < 500 {
		return "run " + s
	}
	return ""
}

// Reaches tells whether a rule lets commands reach a host, and none denies or asks. host "": whether there is any such rule.
func (p *Policy) Reaches(host string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken != "" {
		return false
	}
	if host == "" {
		return slices.ContainsFunc(p.rules, func(r rule) bool { return r.verb == "reach" && r.decision == Allow })
	}
	r, ok := p.byRules("reach", func(r *rule) bool { return r.glob.Match(strings.ToLower(host)) })
	return ok && r.decision == Allow
}

// host decides about reaching a host. Nothing leaves the machine unless the user named the place, in any mode.
func (p *Policy) host(h string, held bool) part {
	what := "reaching " + h
	r, ok := p.byRules("reach", func(r *rule) bool { return r.glob.Match(strings.ToLower(h)) })
	switch {
	case ok:
		return r.ruled(what)
	case held:
		return part{} // the sandbox has no network but what Reaches lets through
	}
	return part{d: Ask, reason: what, pattern: "reach " + escapeGlob(h)}
}
