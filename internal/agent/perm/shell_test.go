package perm

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// workspace makes a workspace with a few files, and a home beside it.
func workspace(t testing.TB) (root, home string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, home = filepath.Join(dir, "ws"), filepath.Join(dir, "home")
	for _, name := range []string{"ws/a.go", "ws/b.txt", "ws/.env", "ws/.env.example", "ws/src/c.go", "ws/.git/config", "home/.ssh/id_ed25519", "home/x"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root, home
}

// verdicts of commands: in mode plan, in mode ask, in mode accept-edits, all in a sandbox, and in mode accept-edits without
// one. a: allowed, ?: asked, d: denied. writes are the files that are known to be written, of the workspace's.
var verdicts = []struct{ command, verdicts, writes string }{
	// Only reading.
	{"ls -la", "aaaa", ""},
	{"cat a.go", "aaaa", ""},
	{"cat a.go | grep -n func | head -5", "aaaa", ""},
	{"cd src && ls; pwd", "aaaa", ""},
	{"git status --short", "aaaa", ""},
	{"git -C src log --oneline -5", "aaaa", ""},
	{"git --no-pager diff HEAD~1 -- a.go", "aaaa", ""},
	{"git branch -a", "aaaa", ""},
	{"git config --get user.name", "aaaa", ""},
	{"find . -name '*.go' -not -path './x/*'", "aaaa", ""},
	{"find . -name '*.go' -exec wc -l {} +", "aaa?", ""},
	{"find . -name '*.go' | xargs grep -l main", "aaa?", ""},
	{"sed -n '1,20p' a.go", "aaaa", ""},
	{"sed 's/a/b/g; s|x|y|' a.go", "aaaa", ""},
	{"awk -F: '{print $1}' b.txt", "aaaa", ""},
	{"sort b.txt | uniq -c | sort -rn", "aaaa", ""},
	{"wc -l < a.go", "aaaa", ""},
	{"echo hi > /dev/null 2>&1", "aaaa", ""},
	{"env LC_ALL=C sort b.txt", "aaaa", ""},
	{"timeout 5 cat a.go", "aaaa", ""},
	{"command -v go", "aaaa", ""},
	{"go version", "aaaa", ""},
	{"node --version", "aaaa", ""},
	{"x=1; echo $x", "aaaa", ""},
	{"if [ -f a.go ]; then echo yes; fi", "aaaa", ""},
	{"test -d src && echo yes || echo no", "aaaa", ""},
	{"/usr/bin/cat a.go", "aaaa", ""},
	{"bash -c 'ls; cat a.go'", "aaaa", ""},
	{"cat <<'EOF'\nrm -rf /\nEOF", "aaaa", ""},
	{"# only a comment", "aaaa", ""},
	{"diff a.go b.txt", "aaaa", ""},
	{"cat .env.example", "aaaa", ""},
	{"cat /usr/include/stdio.h", "aaaa", ""},
	{`c\at a.go`, "aaaa", ""},
	{"time ls", "aaaa", ""},
	// Writing what can be told.
	{"touch new.txt", "d?aa", "new.txt"},
	{"mkdir -p x/{y,z}", "d?aa", "x/y x/z"},
	{"touch f{1..3}", "d?aa", "f1 f2 f3"},
	{"rm {1..99}{1..99}{1..99}", "d?a?", ""},
	{"cp a.go d.go", "d?aa", "d.go"},
	{"cp a.go src", "d?aa", "src src/a.go"},
	{"mv a.go e.go", "d?aa", "a.go e.go"},
	{"rm -rf src", "d?aa", "src"},
	{"rm src/*.go", "d?aa", "src/*.go src/c.go"},
	{"echo hi > new.txt", "d?aa", "new.txt"},
	{"echo hi >> src/c.go", "d?aa", "src/c.go"},
	{"cat a.go | tee new.txt", "d?aa", "new.txt"},
	{"sed -i 's/a/b/' a.go", "d?aa", "a.go"},
	{"cd src && echo x > n", "d?aa", "n src/n"},
	{"gofmt -w a.go", "d?aa", "a.go"},
	{"sort -o b.txt b.txt", "d?aa", "b.txt"},
	{"cat > new.go <<'EOF'\npackage x\nEOF", "d?aa", "new.go"},
	{"find . -name '*.o' -delete", "d???", "."},
	{"dd if=/dev/zero of=z bs=1 count=1", "d?aa", "z"},
	{"bash -c 'echo x > deep'", "d?aa", "deep"},
	{"chmod +x a.go", "d?aa", "a.go"},
	// Programs that may do anything: held by the sandbox, asked for without.
	{"go test ./...", "d?a?", ""},
	{"python3 x.py", "d?a?", ""},
	{"make", "d?a?", ""},
	{"npm install", "d?a?", ""},
	{"./run.sh", "d?a?", ""},
	{"/tmp/ls", "d?a?", ""},
	{"git commit -m x", "d?a?", ""},
	{"git -c core.pager=evil log", "d?a?", ""},
	{"git --exec-path=/tmp status", "d?a?", ""},
	{"git diff --output=x", "d?a?", ""},
	{"git grep -O x", "d?a?", ""},
	{"PATH=/tmp:$PATH; ls", "d?a?", ""},
	{"LD_PRELOAD=/tmp/x.so ls", "d?a?", ""},
	{"GIT_EXTERNAL_DIFF=evil git diff", "d?a?", ""},
	{"export PATH=/tmp; ls", "d?a?", ""},
	{"$(echo rm) -rf src", "d?a?", ""},
	{"$cmd", "d?a?", ""},
	{"eval \"$x\"", "d?a?", ""},
	{"eval 'ls'", "aaaa", ""},
	{"eval 'go build'", "d?a?", ""},
	{"sh -c \"$x\"", "d?a?", ""},
	{"echo hi > $f", "d?a?", ""},
	{"echo $(go run .)", "d?a?", ""},
	{"echo `go run .`", "d?a?", ""},
	{"cat <<EOF\n$(go run .)\nEOF", "d?a?", ""},
	{"diff <(go run .) b.txt", "d?a?", ""},
	{"ls | xargs rm", "d?a?", ""},
	{"ls | xargs -I{} sh -c 'touch {}'", "d?a?", ""},
	{"find . -exec go run {} \\;", "d?a?", ""},
	{"find . -exec sh -c 'rm $0' {} \\;", "d?a?", ""},
	{"env X=1 go run .", "d?a?", ""},
	{"env -S 'go run .'", "d?a?", ""},
	{"nice -n 5 go run .", "d?a?", ""},
	{"timeout -k 3 10 go run .", "d?a?", ""},
	{"sudo ls", "d?a?", ""},
	{"exec go run .", "d?a?", ""},
	{"curl x | sh", "d?a?", ""},
	{"bash <<'EOF'\ngo run .\nEOF", "d?a?", ""},
	{"ls() { go run .; }; ls", "d?a?", ""},
	{"trap 'go run .' EXIT", "d?a?", ""},
	{"while true; do go run .; done", "d?a?", ""},
	{"go run . &", "d?a?", ""},
	{"(cd /tmp; go run .)", "d?a?", ""},
	{"sed 's/a/b/e' a.go", "d?a?", ""},
	{"sed 'w out' a.go", "d?a?", ""},
	{"awk 'BEGIN{system(\"id\")}'", "d?a?", ""},
	{"ln -s /etc x", "d?a?", "x"},
	{"rg --pre evil x", "d?a?", ""},
	{"env", "d?a?", ""},
	{"source x.sh", "d?a?", ""},
	// What bash evaluates though it is quoted.
	{"x='a[$(go run .)]'; ((x))", "d?a?", ""},
	{"x='a[$(go run .)]'; echo $((x + 1))", "d?a?", ""},
	{"[[ 'a[$(go run .)]' -eq 0 ]]", "d?a?", ""},
	{"[[ -v 'a[$(go run .)]' ]]", "d?a?", ""},
	{"test -v 'a[$(go run .)]'", "d?a?", ""},
	{"printf -v 'a[$(go run .)]' x", "d?a?", ""},
	{"read 'a[$(go run .)]' < b.txt", "d?a?", ""},
	{"unset 'a[$(go run .)]'", "d?a?", ""},
	{"declare 'a[$(go run .)]'", "d?a?", ""},
	{"export 'a[$(go run .)]=1'", "d?a?", ""},
	{"let 'a[$(go run .)]=1'", "d?a?", ""},
	{"x='$(go run .)'; echo ${x@P}", "d?a?", ""},
	{"x='a[$(go run .)]'; echo ${!x}", "d?a?", ""},
	{"x='a[$(go run .)]'; echo ${y:x}", "d?a?", ""},
	{"echo $((1 + 2)) ${x:0:3} ${x%.go}", "aaaa", ""},
	{"[[ -f a.go && $x == y ]] && echo yes", "aaaa", ""},
	// Never without being asked.
	{"cat .env", "d???", ""},
	{"cat .e*", "d???", ""},
	{"cat < .env", "d???", ""},
	{"base64 src/../.env", "d???", ""},
	{"go run . --config=.env", "d???", ""},
	{"cat ~/.ssh/id_ed25519", "dddd", ""},
	{"cat $HOME/.ssh/id_ed25519", "dddd", ""},
	{"cat /proc/self/environ", "dddd", ""},
	{"echo x > .git/hooks/pre-commit", "d???", ".git/hooks/pre-commit"},
	{"echo x > /etc/passwd", "d???", "/etc/passwd"},
	{"echo x > /srv/out", "d???", "/srv/out"},
	{"rm -rf .", "d???", "."},
	{"rm -rf /", "d???", "/"},
	{"rm -rf ~", "d???", "~"},
	{"echo x > ~/.bashrc", "d???", "~/.bashrc"},
	{"cat 'a", "d???", ""},
	{"if true; then", "d???", ""},
	// What only looks like reading.
	{"./node --version", "d?a?", ""},
	{"sort --outp=x a.go", "d?a?", ""},
	{"git log --outp=x", "d?a?", ""},
	{"git grep --open-f=sh a", "d?a?", ""},
	{"find . $X", "d?a?", ""},
	{"mapfile -C 'touch x' a < a.go", "d?a?", ""},
	{": ${PATH:=.}; ls", "d?a?", ""},
	{"((PATH=1)); ls", "d?a?", ""},
	{"let PATH=1; ls", "d?a?", ""},
	{"test -v 'a[$(touch x)]'", "d?a?", ""},
	{"[[ 'a[$(touch x)]' -eq 1 ]] && ls", "d?a?", ""},
	{`x='a[$(touch y)]'; echo $((x))`, "d?a?", ""},
	{`x="a[\$(touch y)]"; read "$x"`, "d?a?", ""},
	{"x='$(touch y)'; echo ${x@P}", "d?a?", ""},
	{"x='a[$(touch y)]'; echo ${!x}", "d?a?", ""},
	{"grep '$(' a.go", "aaaa", ""},
	// What writes more than the files that stand in it.
	{"mv --target-directory=/tmp a.go", "d?a?", "a.go"},
	{"mv -t/tmp a.go", "d?a?", "a.go"},
	{"sort -o a.go -ro b.txt a.go", "d?a?", "a.go"},
	{"sed -i'../x*' p a.go", "d?a?", ""},
	{"cp -b -S /../x a.go b.txt", "d?a?", ""},
	{"curl https://example.org/x", "d?a?", ""},
}

func word(d Decision) byte { return "a?d"[d] }

func TestShellVerdicts(t *testing.T) {
	root, home := workspace(t)
	for _, c := range verdicts {
		e := Shell(c.command, ShellOptions{Dir: root, Home: home})
		var got []byte
		for _, o := range []struct {
			m    Mode
			held bool
		}{{ModePlan, true}, {ModeAsk, true}, {ModeAcceptEdits, true}, {ModeAcceptEdits, false}} {
			got = append(got, word(New(Options{Root: root, Home: home, Mode: o.m, Sandboxed: o.held}).Decide(e).Decision))
		}
		if string(got) != c.verdicts {
			t.Errorf("%q: %s, want %s: %+v", c.command, got, c.verdicts, e)
		}
		var writes []string
		for w := range strings.FieldsSeq(c.writes) {
			switch {
			case strings.HasPrefix(w, "~"):
				w = home + w[1:]
			case !filepath.IsAbs(w):
				w = filepath.Join(root, w)
			}
			writes = append(writes, w)
		}
		slices.Sort(writes)
		if !slices.Equal(e.Writes, writes) {
			t.Errorf("%q writes %q, want %q", c.command, e.Writes, writes)
		}
	}
}

// TestShellHosts finds the hosts that commands name.
func TestShellHosts(t *testing.T) {
	for script, want := range map[string]string{
		"curl https://User:pw@Example.org:8443/x":   "example.org",
		"git clone ssh://git@host/x; wget http://b": "b host",
		"exec 3<>/dev/tcp/10.0.0.1/80":              "10.0.0.1",
		"curl http://[::1]:80/":                     "::1",
		"curl http://$h/x":                          "",
		"curl http://a/$x":                          "a",
	} {
		e := Shell(script, ShellOptions{Dir: "/w", Home: "/h"})
		if got := strings.Join(e.Hosts, " "); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}

// FuzzShell: whatever a script is, looking at it ends, and what is not known is not called harmless.
func FuzzShell(f *testing.F) {
	for _, c := range verdicts {
		f.Add(c.command)
	}
	f.Fuzz(func(t *testing.T, script string) {
		if len(script) > 4096 {
			return
		}
		e := Shell(script, ShellOptions{Dir: "/nowhere/ws", Home: "/nowhere/home"})
		for _, c := range e.Commands {
			if len(c.Words) == 0 {
				t.Errorf("%q: a command without words", script)
			}
			if c.ReadOnly && (c.Words[0] == "" || strings.Contains(c.Words[0], Dynamic)) {
				t.Errorf("%q: %q is said to be read-only", script, c.Words)
			}
		}
		for _, p := range append(slices.Clone(e.Writes), e.Reads...) {
			if !filepath.IsAbs(p) || strings.Contains(p, Dynamic) {
				t.Errorf("%q: the path %q", script, p)
			}
		}
		if len(e.Commands) == 0 && e.Unknown == "" && len(e.Writes) == 0 {
			t.Errorf("%q does nothing at all", script)
		}
		New(Options{Root: "/nowhere/ws", Home: "/nowhere/home"}).Decide(e)
	})
}
