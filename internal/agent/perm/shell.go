package perm

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// ShellOptions say where a script runs.
type ShellOptions struct {
	Dir  string // the current folder, absolute
	Home string // what ~ and $HOME stand for, absolute
}

// Bounds of a script that is looked at; a larger one is Unknown.
const (
	maxScript   = 64 << 10
	maxDepth    = 5 // scripts in scripts
	maxCommands = 500
	maxPaths    = 1000
)

// Shell says what a script for bash would do, without running any of it: every simple command in it, wherever it stands
// (pipes, substitutions, functions, loops, here-documents, and the scripts and commands that others are given: sh -c,
// eval, env, xargs, find -exec …), with the files that it names. What cannot be read is Unknown. It is no sandbox: a
// program does what it likes with what it is given, which is why only programs known to be harmless are ReadOnly.
// RATIONALE: How is it decided what an agent may do?
func Shell(script string, o ShellOptions) Effect {
	s := &shell{o: o, dirs: []string{filepath.Clean(o.Dir)}}
	s.script(script, 0)
	slices.Sort(s.e.Reads)
	slices.Sort(s.e.Writes)
	slices.Sort(s.e.Hosts)
	s.e.Reads, s.e.Writes, s.e.Hosts = slices.Compact(s.e.Reads), slices.Compact(s.e.Writes), slices.Compact(s.e.Hosts)
	if len(s.e.Commands) == 0 && s.e.Unknown == "" && len(s.e.Writes) == 0 { // only a comment, or x=1
		s.e.Commands = []Command{{Words: []string{":"}, ReadOnly: true}}
	}
	if s.tainted {
		for i := range s.e.Commands {
			s.e.Commands[i].ReadOnly, s.e.Commands[i].Writes = false, false
		}
	}
	return s.e
}

// A shell looks at one script.
type shell struct {
	o    ShellOptions
	e    Effect
	dirs []string // folders that may be the current one where the walk is; nil: it is not known
	// tainted: something was set that changes what programs do, such as PATH.
	tainted bool
}

func (s *shell) unknown(format string, args ...any) {
	if s.e.Unknown == "" {
		s.e.Unknown = fmt.Sprintf(format, args...)
	}
}

func (s *shell) script(text string, depth int) {
	switch {
	case len(text) > maxScript:
		s.unknown("the command is longer than %d bytes", maxScript)
		return
	case depth > maxDepth:
		s.unknown("the command has scripts in scripts, %d deep", depth)
		return
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		s.unknown("the command cannot be read: %v", err)
		return
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			s.statement(n, depth)
		case *syntax.CallExpr:
			s.assigned(n)
		case *syntax.DeclClause:
			for _, a := range n.Args {
				if a.Name != nil {
					s.assign(a.Name.Value)
				} else if a.Value != nil { // declare "$x"
					if v, ok := s.word(a.Value); !ok || strings.ContainsAny(v, "=[") {
						name, _, _ := strings.Cut(v, "=")
						s.assign(name)
						s.index(name)
					}
				}
			}
		case *syntax.ForClause:
			if w, ok := n.Loop.(*syntax.WordIter); ok {
				s.assign(w.Name.Value)
			}
		case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
			s.arithmetic(n)
		case *syntax.Assign:
			if n.Index != nil {
				s.arithmetic(n.Index)
			}
		case *syntax.ParamExp:
			s.expansion(n)
		case *syntax.BinaryTest:
			switch n.Op {
			case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
				s.arithmetic(n)
			}
		case *syntax.UnaryTest:
			if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
				s.tainted = true
			}
		case *syntax.CoprocClause, *syntax.TestDecl:
			s.add(Command{Words: []string{"coproc"}})
		}
		return true
	})
}

// arithmetic notes expressions with names in them: bash evaluates what a variable holds as an expression again, and runs
// the substitutions in it (x='a[$(id)]'; ((x))).
func (s *shell) arithmetic(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok {
			if v, ok := s.word(w); !ok || strings.Trim(v, "0123456789") != "" {
				s.tainted = true
			}
			return false
		}
		return !s.tainted
	})
}

// expansion notes those that set a variable, and those that evaluate what one holds: ${!x}, ${a[x]}, ${x:y}, ${x@P}.
func (s *shell) expansion(p *syntax.ParamExp) {
	if p.Excl && p.Names == 0 || p.Exp != nil && p.Exp.Op == syntax.OtherParamOps {
		s.tainted = true
	}
	if p.Param != nil && p.Exp != nil && (p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull) {
		s.assign(p.Param.Value) // ${PATH:=x}
	}
	if w, ok := p.Index.(*syntax.Word); ok && (w.Lit() == "@" || w.Lit() == "*") {
		return
	}
	if p.Index != nil {
		s.arithmetic(p.Index)
	}
	if p.Slice != nil {
		for _, e := range []syntax.ArithmExpr{p.Slice.Offset, p.Slice.Length} {
			if e != nil {
				s.arithmetic(e)
			}
		}
	}
}

// assigned looks at x=1 without a command.
func (s *shell) assigned(c *syntax.CallExpr) {
	if len(c.Args) > 0 {
		return
	}
	for _, a := range c.Assigns {
		s.assign(a.Name.Value)
	}
}

// assign notes that a variable is set for all that follows.
func (s *shell) assign(name string) {
	if steers(name) {
		s.tainted = true
	}
}

// steers tells whether a variable changes which program runs or what it does.
func steers(name string) bool {
	for _, p := range []string{"LD_", "DYLD_", "GIT_", "BASH", "PYTHON", "PERL", "RUBY", "NODE_", "NPM_", "npm_", "CARGO", "RUST", "GO", "JAVA", "MAKE"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	switch name {
	case "", Dynamic, "PATH", "IFS", "ENV", "PAGER", "EDITOR", "VISUAL", "SHELL", "SHELLOPTS", "PROMPT_COMMAND", "PS4", "CDPATH", "HOME", "LESSOPEN",
		"LESSCLOSE", "MANPAGER", "BROWSER", "CC", "CXX", "TMPDIR", "PWD", "OLDPWD", "POSIXLY_CORRECT", "GCONV_PATH", "LOCPATH", "TAR_OPTIONS",
		"RIPGREP_CONFIG_PATH", "GREP_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH", "XDG_CONFIG_HOME", "HISTFILE", "OPENSSL_CONF":
		return true
	}
	return false
}

// statement looks at a command and where its input comes from and its output goes to.
func (s *shell) statement(st *syntax.Stmt, depth int) {
	if len(s.e.Commands) > maxCommands {
		s.unknown("the command has more than %d commands in it", maxCommands)
		return
	}
	doc := ""
	for _, r := range st.Redirs {
		if r.Hdoc != nil {
			doc, _ = s.word(r.Hdoc)
		} else if r.Op == syntax.WordHdoc {
			doc, _ = s.word(r.Word)
		} else {
			s.redirect(r)
		}
	}
	c, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) == 0 {
		return
	}
	var words []string
	for _, a := range c.Assigns { // for this command alone
		if steers(a.Name.Value) {
			v := ""
			if a.Value != nil {
				v, _ = s.word(a.Value)
			}
			words = append(words, a.Name.Value+"="+v)
		}
	}
	env := len(words)
	for _, w := range c.Args {
		for _, b := range braces(w) {
			v, _ := s.word(b)
			words = append(words, v)
		}
	}
	if env > 0 {
		s.add(Command{Words: words})
		words = words[env:]
		s.command(words, doc, depth, true)
		return
	}
	s.command(words, doc, depth, false)
}

// braces expands {a,b}.
func braces(w *syntax.Word) []*syntax.Word {
	cp := *w
	cp.Parts = slices.Clone(w.Parts)
	split := syntax.SplitBraces(&cp)
	if !split {
		return []*syntax.Word{w}
	}
	var out []*syntax.Word
	for b, err := range expand.BracesSeq(nil, &cp) {
		if out = append(out, b); err != nil || len(out) > maxPaths { // as good as not known
			return []*syntax.Word{{Parts: []syntax.WordPart{&syntax.ParamExp{Param: &syntax.Lit{Value: "brace"}}}}}
		}
	}
	return out
}

// word returns a word without its quotes. What is known only when it runs is Dynamic in it, and ok is false.
func (s *shell) word(w *syntax.Word) (string, bool) {
	var b strings.Builder
	ok := s.parts(&b, w.Parts, false)
	return b.String(), ok
}

func (s *shell) parts(b *strings.Builder, parts []syntax.WordPart, quoted bool) bool {
	ok := true
	for i, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			v := unescape(p.Value, quoted)
			if i == 0 && !quoted && strings.HasPrefix(p.Value, "~") {
				name, rest, _ := strings.Cut(v, "/")
				switch {
				case name != "~":
					b.WriteString(Dynamic) // another user's home
					ok = false
					if strings.Contains(v, "/") {
						b.WriteString("/" + rest)
					}
					continue
				case strings.Contains(v, "/"):
					v = s.o.Home + "/" + rest
				default:
					v = s.o.Home
				}
			}
			b.WriteString(v)
		case *syntax.SglQuoted:
			if p.Dollar && strings.Contains(p.Value, `\`) {
				b.WriteString(Dynamic)
				ok = false
				continue
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			ok = s.parts(b, p.Parts, true) && ok
		case *syntax.ParamExp:
			plain := p.Param != nil && p.Index == nil && p.Exp == nil && p.Repl == nil && p.Slice == nil && !p.Excl && !p.Length && !p.Width
			switch {
			case plain && p.Param.Value == "HOME":
				b.WriteString(s.o.Home)
			case plain && p.Param.Value == "PWD" && len(s.dirs) == 1:
				b.WriteString(s.dirs[0])
			default:
				b.WriteString(Dynamic)
				ok = false
			}
		default: // substitutions, arithmetic, extended globs; what is in them is walked on its own
			b.WriteString(Dynamic)
			ok = false
		}
	}
	return ok
}

// unescape takes the backslashes out of a literal.
func unescape(s string, quoted bool) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			switch next := s[i+1]; {
			case next == '\n':
				i++
				continue
			case !quoted || strings.IndexByte("$`\"\\", next) >= 0:
				i++
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// redirect looks at where output goes and input comes from.
func (s *shell) redirect(r *syntax.Redirect) {
	w, _ := s.word(r.Word)
	switch r.Op {
	case syntax.RdrIn:
		s.device(w)
		s.read(w)
	case syntax.DplIn:
	case syntax.DplOut:
		if strings.Trim(w, "0123456789-") != "" {
			s.target(w)
		}
	default: // >, >>, >|, <>, &>, &>>
		s.target(w)
	}
}

// target is a file that output goes to.
func (s *shell) target(w string) {
	switch w {
	case "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty":
		return
	}
	if s.device(w) || strings.HasPrefix(w, "/dev/fd/") {
		return
	}
	if !s.write(w) {
		s.add(Command{Words: []string{">", w}})
	}
}

// device looks at bash's names for connections.
func (s *shell) device(w string) bool {
	for _, p := range []string{"/dev/tcp/", "/dev/udp/"} {
		if rest, ok := strings.CutPrefix(w, p); ok {
			host, _, _ := strings.Cut(rest, "/")
			s.host(host)
			s.add(Command{Words: []string{">", w}})
			return true
		}
	}
	return false
}

func (s *shell) host(h string) {
	if strings.Contains(h, Dynamic) || h == "" {
		s.add(Command{Words: []string{"connect", Dynamic}})
		return
	}
	s.e.Hosts = append(s.e.Hosts, strings.ToLower(h))
}

// paths returns what a word can be a path of: absolute, globs expanded. nil: that cannot be told.
func (s *shell) paths(w string) []string {
	if w == "" || strings.Contains(w, Dynamic) {
		return nil
	}
	var out []string
	if filepath.IsAbs(w) {
		out = []string{filepath.Clean(w)}
	} else {
		if s.dirs == nil {
			return nil
		}
		for _, d := range s.dirs {
			out = append(out, filepath.Join(d, w))
		}
	}
	if !strings.ContainsAny(w, "*?[") {
		return out
	}
	var found []string
	for _, p := range out {
		found = append(found, p)
		wild := 0 // /*/*/* would look at the whole disk
		for part := range strings.SplitSeq(p, "/") {
			if strings.ContainsAny(part, "*?[") {
				wild++
			}
		}
		if names, ok := glob(p, wild); ok {
			found = append(found, names...)
		} else if i := strings.IndexAny(p, "*?["); i >= 0 { // too many to name: their folder
			found = append(found, filepath.Dir(p[:i]+"x"))
		}
	}
	return found
}

// glob lists what a pattern with one wild part stands for.
func glob(p string, wild int) ([]string, bool) {
	if wild > 1 {
		return nil, false
	}
	names, err := filepath.Glob(p)
	return names, err == nil && len(names) <= maxPaths
}

// write notes that a file is written; false: it cannot be told which.
func (s *shell) write(w string) bool {
	ps := s.paths(w)
	if len(s.e.Writes) > maxPaths {
		s.unknown("the command writes more than %d files", maxPaths)
		return true
	}
	s.e.Writes = append(s.e.Writes, ps...)
	return len(ps) > 0
}

// read notes that a file may be read, where a word is the name of one that is there, or of a secret.
func (s *shell) read(w string) {
	if w == "" || len(w) > 4096 || len(s.e.Reads) > maxPaths {
		return
	}
	if strings.Contains(w, Dynamic) { // $d/.env: the end says what it is
		if last := w[strings.LastIndex(w, Dynamic)+1:]; strings.Contains(last, "/") && Secret(last) && len(s.dirs) > 0 {
			s.e.Reads = append(s.e.Reads, filepath.Join(s.dirs[0], last))
		}
		return
	}
	for _, p := range s.paths(w) {
		if _, err := os.Lstat(p); err == nil || Secret(p) || procSecret(p) {
			s.e.Reads = append(s.e.Reads, p)
		}
	}
}

// add notes a command.
func (s *shell) add(c Command) { s.e.Commands = append(s.e.Commands, c) }
