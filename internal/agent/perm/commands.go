package perm

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// command looks at a simple command. doc is its here-document. steered: variables in front of it change what it does.
func (s *shell) command(words []string, doc string, depth int, steered bool) {
	if len(words) == 0 {
		return
	}
	if words[0] == "" || strings.Contains(words[0], Dynamic) {
		s.add(Command{Words: words})
		s.arguments(words[1:])
		return
	}
	name := program(words[0])
	args := words[1:]
	if w, ok := wrappers[name]; ok {
		s.wrapped(name, words, w, doc, depth, steered)
		return
	}
	switch name {
	case "sh", "bash", "dash", "zsh", "ksh", "ash", "mksh":
		s.interpreter(words, doc, depth)
		return
	case "eval":
		s.inner(strings.Join(args, " "), words, depth)
		return
	case "trap":
		if len(args) > 1 {
			s.inner(args[0], words, depth)
			return
		}
	case "test", "[":
		for i, a := range args {
			if (a == "-v" || a == "-R") && i+1 < len(args) {
				s.index(args[i+1])
			}
		}
	case "cd", "pushd", "popd":
		s.chdir(name, args)
	case "xargs", "parallel":
		s.xargs(words, depth)
		return
	case "find":
		s.find(words, depth)
		return
	case "export", "readonly", "declare", "typeset", "local", "unset", "read", "mapfile", "readarray", "getopts", "printf", "let":
		s.sets(name, args)
	}
	c := Command{Words: words}
	switch judge, known := programs[name]; {
	case steered || !known:
	default:
		c.ReadOnly, c.Writes = judge(s, args)
	}
	// A program of the system's says what it is; ./node may be anything.
	asked := len(args) == 1 && (args[0] == "--version" || args[0] == "--help") && !strings.Contains(words[0], "/")
	if !c.ReadOnly && !c.Writes && asked && !steered {
		c.ReadOnly = true
	}
	s.add(c)
	s.arguments(args)
}

// program is a program's name without the folder of the system that it is in; in another folder it may be anything.
func program(w string) string {
	for _, dir := range []string{"/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/"} {
		if rest, ok := strings.CutPrefix(w, dir); ok && !strings.Contains(rest, "/") {
			return rest
		}
	}
	return w
}

// arguments notes the files and hosts that arguments name.
func (s *shell) arguments(args []string) {
	for _, a := range args {
		for _, w := range []string{a, after(a, "="), after(a, "@")} {
			if w == "" {
				continue
			}
			if scheme, rest, ok := strings.Cut(w, "://"); ok {
				if strings.HasSuffix(scheme, "file") {
					s.read(rest)
				} else {
					s.host(authority(rest))
				}
				continue
			}
			s.read(w)
		}
	}
}

// authority is the host of an address's part behind ://.
func authority(rest string) string {
	rest = rest[:strings.IndexAny(rest+"/", "/?#")]
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	if inner, _, ok := strings.Cut(strings.TrimPrefix(rest, "["), "]"); ok {
		return inner
	}
	host, _, _ := strings.Cut(rest, ":")
	return host
}

func after(s, sep string) string {
	_, rest, _ := strings.Cut(s, sep)
	return rest
}

// inner looks at a script that a command is given. Where it is known only when it runs, the command is.
func (s *shell) inner(script string, words []string, depth int) {
	if strings.Contains(script, Dynamic) {
		s.add(Command{Words: words})
		return
	}
	s.script(script, depth+1)
}

// interpreter looks at sh -c SCRIPT, sh <<EOF and sh FILE.
func (s *shell) interpreter(words []string, doc string, depth int) {
	args := words[1:]
	for i, a := range args {
		if strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.Contains(a, "c") {
			rest := args[i+1:]
			for len(rest) > 0 && (strings.HasPrefix(rest[0], "-") || strings.HasPrefix(rest[0], "+")) {
				rest = rest[1:]
			}
			if len(rest) == 0 {
				break
			}
			dirs := s.dirs
			s.inner(rest[0], words, depth)
			s.dirs = dirs // another process's folder
			s.arguments(rest[1:])
			return
		}
		if !strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "+") {
			break
		}
	}
	if len(args) == 0 && doc != "" {
		s.inner(doc, words, depth)
		return
	}
	s.add(Command{Words: words})
	s.arguments(args)
}

// chdir follows cd. Since it may fail, or stand in a subshell, the folder before stays possible.
func (s *shell) chdir(name string, args []string) {
	args = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "-") && a != "-" || a == "--" })
	if name == "popd" || len(args) > 0 && (args[0] == "-" || strings.Contains(args[0], Dynamic)) || len(s.dirs) > 16 {
		s.dirs = nil
		return
	}
	to := s.o.Home
	if len(args) > 0 {
		to = args[0]
	}
	for _, p := range s.paths(to) {
		if !slices.Contains(s.dirs, p) {
			s.dirs = append(s.dirs, p)
		}
	}
}

// sets notes variables that builtins set.
func (s *shell) sets(name string, args []string) {
	if name == "printf" {
		if len(args) > 1 && strings.HasPrefix(args[0], "-v") {
			s.assign(args[1])
			s.index(args[0] + args[1])
		} else if len(args) > 0 && strings.Contains(args[0], Dynamic) {
			s.tainted = true
		}
		return
	}
	if name == "let" {
		s.tainted = true
	}
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			v, _, _ := strings.Cut(a, "=")
			s.assign(v)
			s.index(v)
		}
	}
}

// index notes an index in a variable's name, which the builtins that take names evaluate.
func (s *shell) index(name string) {
	if strings.ContainsAny(name, "["+Dynamic) {
		s.tainted = true
	}
}

// A wrapper is a program that runs the command behind its own arguments.
type wrapper struct {
	values string // one-letter options with a value of their own
	longs  []string
	skip   int  // arguments in front of the command
	env    bool // K=V in front of the command
	shown  bool // it is a command of its own: what it adds matters
}

var wrappers = map[string]wrapper{
	"env":       {values: "uCS", longs: []string{"--unset", "--chdir", "--split-string"}, env: true},
	"sudo":      {values: "ugpCRTDhrt", longs: []string{"--user", "--group", "--chdir", "--host", "--prompt"}, env: true, shown: true},
	"doas":      {values: "uC", shown: true},
	"su":        {values: "gsw", shown: true, skip: 99},
	"nice":      {values: "n", longs: []string{"--adjustment"}},
	"ionice":    {values: "cnp"},
	"nohup":     {},
	"setsid":    {},
	"time":      {values: "fo"},
	"timeout":   {values: "ks", longs: []string{"--kill-after", "--signal"}, skip: 1},
	"stdbuf":    {values: "ioe", longs: []string{"--input", "--output", "--error"}},
	"command":   {},
	"builtin":   {},
	"exec":      {values: "a"},
	"busybox":   {},
	"chroot":    {skip: 1, shown: true},
	"unshare":   {shown: true},
	"nsenter":   {values: "tG", shown: true},
	"strace":    {values: "eopsu", shown: true},
	"ltrace":    {values: "eopsu", shown: true},
	"watch":     {values: "n", longs: []string{"--interval"}},
	"flock":     {values: "wE", skip: 1, shown: true},
	"catchsegv": {},
	"xvfb-run":  {values: "nes", shown: true},
}

func (s *shell) wrapped(name string, words []string, w wrapper, doc string, depth int, steered bool) {
	args := words[1:]
	skip := w.skip
	dirs := s.dirs
	for len(args) > 0 {
		a := args[0]
		long, _, hasValue := strings.Cut(a, "=")
		switch {
		case strings.Contains(a, Dynamic):
			s.add(Command{Words: words})
			s.arguments(args)
			return
		case a == "--":
			args = args[1:]
			goto found
		case name == "command" && (a == "-v" || a == "-V"):
			s.add(Command{Words: words, ReadOnly: true})
			return
		case name == "env" && (a == "-S" || long == "--split-string"): // a command in a string
			script := after(a, "=")
			if a == "-S" && len(args) > 1 {
				script = args[1]
			}
			s.inner(script, words, depth)
			return
		case name == "env" && strings.HasPrefix(a, "-S"):
			s.inner(a[2:], words, depth)
			return
		case name == "env" && (a == "-C" || long == "--chdir"):
			s.dirs = nil
		}
		switch {
		case slices.Contains(w.longs, a) && !hasValue:
			args = args[min(2, len(args)):]
		case strings.HasPrefix(a, "--"):
			args = args[1:]
		case len(a) > 1 && a[0] == '-':
			if len(a) == 2 && strings.IndexByte(w.values, a[1]) >= 0 {
				args = args[min(2, len(args)):]
			} else {
				args = args[1:]
			}
		case w.env && strings.Contains(a, "=") && !strings.HasPrefix(a, "="):
			v, _, _ := strings.Cut(a, "=")
			steered = steered || steers(v)
			args = args[1:]
		case skip > 0:
			skip--
			args = args[1:]
		default:
			goto found
		}
	}
found:
	if w.shown || steered && len(args) > 0 {
		s.add(Command{Words: words})
	}
	if len(args) == 0 {
		if !w.shown { // env alone shows variables, which may hold keys
			s.add(Command{Words: words, ReadOnly: name != "env" && name != "exec"})
		}
		s.arguments(words[1:])
		return
	}
	s.command(args, doc, depth, steered)
	s.dirs = dirs
}

// xargs looks at the command that gets words of its input.
func (s *shell) xargs(words []string, depth int) {
	args := words[1:]
	if words[0] != "xargs" {
		s.add(Command{Words: words})
	}
	place := ""
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		if a == "-I" || a == "--replace" {
			if len(args) > 0 {
				place = args[0]
			}
		} else if rest, ok := strings.CutPrefix(a, "-I"); ok {
			place = rest
		}
		if len(a) == 2 && strings.IndexByte("adEILnPs", a[1]) >= 0 && len(args) > 0 {
			if a == "-a" {
				s.read(args[0])
			}
			args = args[1:]
		}
	}
	if len(args) == 0 {
		args = []string{"echo"}
	}
	args = slices.Clone(args)
	if place != "" {
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], place, Dynamic)
		}
	} else {
		args = append(args, Dynamic)
	}
	s.command(args, "", depth, false)
}

// find looks at the commands that find runs, and what it writes and removes.
func (s *shell) find(words []string, depth int) {
	args := words[1:]
	var starts []string
	for _, a := range args {
		if strings.HasPrefix(a, "-") || a == "(" || a == "!" {
			break
		}
		starts = append(starts, a)
	}
	if len(starts) == 0 {
		starts = []string{"."}
	}
	// A word that is not known may be -delete.
	readOnly := !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, Dynamic) })
	writes, whole := false, true
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "-exec", "-execdir", "-ok", "-okdir":
			end := i + 1
			for end < len(args) && args[end] != ";" && !(args[end] == "+" && args[end-1] == "{}") {
				end++
			}
			inner := slices.Clone(args[i+1 : end])
			for j := range inner {
				inner[j] = strings.ReplaceAll(inner[j], "{}", Dynamic)
			}
			s.command(inner, "", depth, false)
			i = end
		case "-delete":
			readOnly, writes = false, true
			for _, d := range starts {
				whole = s.write(d) && whole
			}
		case "-fprint", "-fprint0", "-fprintf", "-fls":
			readOnly, writes = false, true
			whole = i+1 < len(args) && s.write(args[i+1]) && whole
		}
	}
	s.add(Command{Words: words, ReadOnly: readOnly, Writes: writes && whole})
	for _, d := range starts {
		s.read(d)
	}
}

// operands are arguments that are no options. Values of options in values (such as "-n") are left out.
func operands(args []string, values ...string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			return append(out, args[i+1:]...)
		case slices.Contains(values, a):
			i++
		case len(a) > 1 && a[0] == '-':
		default:
			out = append(out, a)
		}
	}
	return out
}

// has tells whether an option is among arguments: as it is, with =value, or, of one letter, among others.
func has(args []string, options ...string) bool {
	for _, a := range args {
		if strings.HasPrefix(a, Dynamic) {
			return true // it may be any
		}
		for _, o := range options {
			long, _, _ := strings.Cut(a, "=") // programs take --outp for --output
			if a == o || strings.HasPrefix(o, "--") && len(long) > 2 && strings.HasPrefix(o, long) ||
				len(o) == 2 && len(a) > 2 && a[0] == '-' && a[1] != '-' && strings.Contains(a, o[1:]) {
				return true
			}
		}
	}
	return false
}

// writesAll notes all operands as written; ok where it can be told which they are.
func (s *shell) writesAll(args []string) bool {
	ok := true
	for _, a := range args {
		ok = s.write(a) && ok
	}
	return ok
}

// A judge says whether a program with these arguments changes nothing, or only what it has noted as written.
type judge func(s *shell, args []string) (readOnly, writes bool)

func reads(*shell, []string) (bool, bool) { return true, false }

// readsBut is a program that only reads, but for options.
func readsBut(options ...string) judge {
	return func(_ *shell, args []string) (bool, bool) { return !has(args, options...), false }
}

// writesTo is a program that changes its operands and nothing else.
func writesTo(values ...string) judge {
	return func(s *shell, args []string) (bool, bool) { return false, s.writesAll(operands(args, values...)) }
}

var programs map[string]judge

func init() {
	programs = map[string]judge{
		"sort": sortProgram, "uniq": secondIsWritten, "xxd": secondIsWritten, "awk": awk, "gawk": awk, "mawk": awk, "sed": sed,
		"cp": copies, "install": copies, "mv": moves, "rm": writesTo(), "rmdir": writesTo(), "mkdir": writesTo("-m"),
		"touch": writesTo("-d", "-t", "-r"), "tee": writesTo(), "truncate": writesTo("-s", "-r"), "unlink": writesTo(),
		"chmod": chmod, "ln": link, "dd": dd, "git": git, "gofmt": gofmt, "gofumpt": gofmt, "go": goProgram,
		"date": readsBut("-s", "--set"), "tree": readsBut("-o"), "file": readsBut("-C", "--compile"),
		"rg": readsBut("--pre", "--hostname-bin"), "diff": readsBut("--output"), "hostname": noArguments, "jq": reads, "shuf": readsBut("-o", "--output"),
		"type": reads, "hash": noArguments, "ps": readsBut("e", "-e"), "yes": reads,
		"mapfile": readsBut("-C"), "readarray": readsBut("-C"),
	}
	for name := range strings.FieldsSeq(`cat head tail ls wc grep egrep fgrep zgrep echo printf pwd true false test [ which whoami id uname stat du df
		basename dirname realpath readlink cut tr cmp comm nl tac rev seq expr sleep column fold od hexdump strings sha1sum sha224sum sha256sum
		sha384sum sha512sum md5sum b2sum cksum sum cd pushd popd dirs exit return break continue : shift set unset export readonly local
		declare typeset let getopts wait jobs umask read shopt trap fmt paste join expand unexpand nproc arch groups tty
		locale getconf tsort factor numfmt base64 base32 zcat bzcat xzcat look cal whereis zdiff diff3 uptime free lscpu`) {
		programs[name] = reads
	}
}

func noArguments(_ *shell, args []string) (bool, bool) { return len(args) == 0, false }

func sortProgram(s *shell, args []string) (bool, bool) {
	if has(args, "--compress-program", "-T", "--temporary-directory") {
		return false, false
	}
	if !has(args, "-o", "--output") {
		return true, false
	}
	found, whole := false, true // the last one counts
	for i, a := range args {
		switch {
		case a == "-o" && i+1 < len(args):
			found, whole = true, s.write(args[i+1]) && whole
		case strings.HasPrefix(a, "--output="):
			found, whole = true, s.write(after(a, "=")) && whole
		case has([]string{a}, "-o", "--output"): // -ox, --out=x
			return false, false
		}
	}
	return false, found && whole
}

// secondIsWritten: of two operands, the second is the output.
func secondIsWritten(s *shell, args []string) (bool, bool) {
	ops := operands(args, "-f", "-s", "-w", "-c", "-l", "-o", "-g", "-n")
	if slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, Dynamic) }) {
		return false, false
	}
	if len(ops) < 2 {
		return true, false
	}
	return false, s.writesAll(ops[1:])
}

// awk programs that neither run commands nor write files.
func awk(_ *shell, args []string) (bool, bool) {
	ops := operands(args, "-F", "-v")
	if len(ops) == 0 || has(args, "-f", "-i", "-l", "-E", "--file", "--include", "--load", "--exec", "--debug", "--profile", "--dump-variables", "-d", "-D", "-p", "-o") {
		return false, false
	}
	for _, word := range []string{Dynamic, "system", "|", ">", "getline", "@", "close", "ENVIRON"} {
		if strings.Contains(ops[0], word) {
			return false, false
		}
	}
	return true, false
}

// sed without -i whose script has only commands that print, delete and replace.
func sed(s *shell, args []string) (bool, bool) {
	inPlace := false
	var scripts, rest []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "-e" || a == "--expression":
			if i++; i < len(args) {
				scripts = append(scripts, args[i])
			}
		case strings.HasPrefix(a, "--expression="):
			scripts = append(scripts, after(a, "="))
		case strings.HasPrefix(a, "--in-place"), strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.Contains(a, "i"):
			inPlace = true
			if strings.ContainsAny(a, "/*") { // the copy of the old text may be in another folder
				return false, false
			}
		case a == "-n" || a == "-E" || a == "-r" || a == "-u" || a == "-z" || a == "-s" || a == "-nE" || a == "-En" || a == "-ne" || a == "-nr" ||
			a == "--quiet" || a == "--silent" || a == "--regexp-extended":
			if a == "-ne" {
				if i++; i < len(args) {
					scripts = append(scripts, args[i])
				}
			}
		case len(a) > 1 && a[0] == '-':
			return false, false
		default:
			rest = append(rest, a)
		}
	}
	if len(scripts) == 0 && len(rest) > 0 {
		scripts, rest = rest[:1], rest[1:]
	}
	for _, sc := range scripts {
		if !safeSed(sc) {
			return false, false
		}
	}
	if inPlace {
		return false, s.writesAll(rest)
	}
	return true, false
}

// safeSed reads a sed script of simple commands: addresses, then p, d, q, =, or s with harmless flags.
func safeSed(script string) bool {
	if strings.Contains(script, Dynamic) {
		return false
	}
	for script = strings.TrimLeft(script, " ;\n\t"); script != ""; script = strings.TrimLeft(script, " ;\n\t") {
		for range 2 { // addresses
			script = strings.TrimLeft(script, "0123456789$,!~+ ")
			if strings.HasPrefix(script, "/") {
				_, rest, ok := delimited(script[1:], '/')
				if !ok {
					return false
				}
				script = strings.TrimPrefix(rest, "I")
			}
		}
		script = strings.TrimLeft(script, "0123456789$,!~+ ")
		switch {
		case script == "":
			return false
		case strings.IndexByte("pdqPDNnGHghx=", script[0]) >= 0:
			script = strings.TrimLeft(script[1:], " ")
			if script != "" && script[0] != ';' && script[0] != '\n' && script[0] != '}' {
				return false
			}
		case script[0] == 's' && len(script) > 1 && script[1] != '\n' && script[1] != '\\':
			sep := script[1]
			_, rest, ok := delimited(script[2:], sep)
			if !ok {
				return false
			}
			if _, rest, ok = delimited(rest, sep); !ok {
				return false
			}
			script = strings.TrimLeft(rest, "gpiIM0123456789")
			if script != "" && script[0] != ';' && script[0] != '\n' && script[0] != '}' && script[0] != ' ' {
				return false // e runs, w writes
			}
			if t := strings.TrimLeft(script, " "); t != "" && t[0] != ';' && t[0] != '\n' && t[0] != '}' {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func delimited(s string, sep byte) (string, string, bool) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case sep:
			return s[:i], s[i+1:], true
		}
	}
	return "", "", false
}

// moves writes all that it names; into another folder, or with a backup beside, it writes more.
func moves(s *shell, args []string) (bool, bool) {
	whole := !has(args, "-t", "--target-directory", "-S", "--suffix", "-b", "--backup")
	return false, s.writesAll(operands(args, "-t", "-S")) && whole
}

func copies(s *shell, args []string) (bool, bool) {
	for i, a := range args {
		if a == "-t" && i+1 < len(args) {
			return false, s.write(args[i+1])
		}
		if strings.HasPrefix(a, "--target-directory=") {
			return false, s.write(after(a, "="))
		}
	}
	ops := operands(args, "-m", "-o", "-g", "-S")
	if len(ops) < 2 || has(args, "-t", "--target-directory", "--strip-program", "-s", "-l", "--link") ||
		has(args, "-S", "--suffix", "-b", "--backup") {
		return false, false
	}
	ok := s.write(ops[len(ops)-1])
	for _, o := range ops[:len(ops)-1] { // into a folder, under its own name
		if b := path.Base(o); b != "." && b != "/" && b != ".." && !strings.Contains(b, Dynamic) && len(s.e.Writes) < maxPaths {
			for _, d := range s.paths(ops[len(ops)-1]) {
				if isDir(d) {
					s.e.Writes = append(s.e.Writes, filepath.Join(d, b))
				}
			}
		}
	}
	return false, ok
}

func chmod(s *shell, args []string) (bool, bool) {
	ops := operands(args)
	if len(ops) < 2 || strings.Contains(ops[0], "s") || len(ops[0]) == 4 && ops[0][0] != '0' {
		return false, false
	}
	return false, s.writesAll(ops[1:])
}

// link makes names of files. A symbolic one may lead anywhere, and what is written through it is not seen here.
func link(s *shell, args []string) (bool, bool) {
	s.writesAll(operands(args)[max(0, len(operands(args))-1):])
	return false, false
}

func dd(s *shell, args []string) (bool, bool) {
	ok := true
	for _, a := range args {
		if w, is := strings.CutPrefix(a, "of="); is {
			ok = s.write(w) && ok
		}
	}
	return false, ok
}

func gofmt(s *shell, args []string) (bool, bool) {
	if has(args, "-cpuprofile", "--cpuprofile") {
		return false, false
	}
	if has(args, "-w") {
		return false, s.writesAll(operands(args, "-r"))
	}
	return true, false
}

func goProgram(_ *shell, args []string) (bool, bool) {
	if len(args) == 0 {
		return true, false
	}
	switch args[0] {
	case "version", "help", "doc":
		return true, false
	case "env":
		return !has(args[1:], "-w", "-u"), false
	}
	return false, false
}

// gitReads are subcommands of git that change nothing, with the options that make them do so.
var gitReads = map[string][]string{
	"status": nil, "diff": {"--output", "--ext-diff"}, "log": {"--output", "--ext-diff"}, "show": {"--output", "--ext-diff", "--textconv"}, "rev-parse": nil,
	"ls-files": nil, "blame": nil, "grep": {"-O", "--open-files-in-pager", "--textconv"}, "describe": nil, "shortlog": {"--output"},
	"cat-file": {"--textconv", "--filters"}, "ls-tree": nil, "rev-list": nil, "merge-base": nil, "name-rev": nil, "count-objects": nil,
	"for-each-ref": nil, "show-ref": nil, "diff-tree": {"--output", "--ext-diff"}, "whatchanged": {"--output"}, "check-ignore": nil, "var": nil, "version": nil,
	"cherry": nil, "range-diff": {"--output"},
}

func git(s *shell, args []string) (bool, bool) {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch a := args[0]; {
		case a == "--no-pager" || a == "--no-optional-locks" || a == "--literal-pathspecs":
			args = args[1:]
		case a == "-C" && len(args) > 1 && !strings.Contains(args[1], Dynamic):
			s.read(args[1])
			args = args[2:]
		case a == "--version":
			return true, false
		default:
			return false, false // -c names programs, --git-dir another repository's configuration
		}
	}
	if len(args) == 0 {
		return true, false
	}
	sub, rest := args[0], args[1:]
	if writing, ok := gitReads[sub]; ok {
		return !has(rest, writing...), false
	}
	plain := !slices.ContainsFunc(rest, func(a string) bool { return strings.HasPrefix(a, Dynamic) })
	ops := operands(rest)
	switch sub {
	case "branch":
		return plain && len(ops) == 0 && !has(rest, "-d", "-D", "-m", "-M", "-c", "-C", "-u", "-f", "--unset-upstream", "--edit-description", "--set-upstream-to"), false
	case "tag":
		return plain && len(ops) == 0 && !has(rest, "-d", "-f", "-a", "-s", "-m"), false
	case "remote":
		return plain && (len(rest) == 0 || len(rest) == 1 && rest[0] == "-v" || rest[0] == "get-url"), false
	case "stash":
		return plain && len(rest) > 0 && (rest[0] == "list" || rest[0] == "show"), false
	case "config":
		return plain && len(rest) > 0 && (rest[0] == "--get" || rest[0] == "-l" || rest[0] == "--list" || rest[0] == "get" || rest[0] == "list"), false
	case "reflog":
		return plain && (len(rest) == 0 || rest[0] == "show"), false
	case "worktree", "submodule", "notes", "bisect":
		return plain && len(rest) > 0 && (rest[0] == "list" || rest[0] == "status" || rest[0] == "log"), false
	}
	return false, false
}
