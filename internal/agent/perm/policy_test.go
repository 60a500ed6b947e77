package perm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// world is a workspace with files of rules.
func world(t *testing.T, o Options, user, project string) *Policy {
	t.Helper()
	if o.Root == "" {
		o.Root, o.Home = workspace(t)
	}
	o.UserFile, o.ProjectFile = filepath.Join(o.Home, ".config", "permissions.toml"), filepath.Join(o.Root, ".baleen", "permissions.toml")
	for path, text := range map[string]string{o.UserFile: user, o.ProjectFile: project} {
		if text == "" {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "ROOT", o.Root)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return New(o)
}

// effect reads "read PATH", "write PATH", "reach HOST" and "run COMMAND".
func effect(p *Policy, text string) Effect {
	verb, rest, _ := strings.Cut(text, " ")
	path := rest
	if strings.HasPrefix(rest, "~/") {
		path = p.o.Home + rest[1:]
	} else if !filepath.IsAbs(rest) {
		path = filepath.Join(p.o.Root, rest)
	}
	switch verb {
	case "read":
		return Effect{Reads: []string{path}}
	case "write":
		return Effect{Writes: []string{path}}
	case "reach":
		return Effect{Hosts: []string{rest}}
	}
	return Shell(rest, ShellOptions{Dir: p.o.Root, Home: p.o.Home})
}

func TestModes(t *testing.T) {
	for _, c := range []struct{ what, verdicts string }{ // plan, ask, accept-edits, adaptive, auto; in a sandbox
		{"read a.go", "aaaaa"},
		{"read .", "aaaaa"},
		{"read .env", "d????"},
		{"read ~/.ssh/id_ed25519", "ddddd"},
		{"read ~/x", "?????"},
		{"read /usr/include/stdio.h", "aaaaa"},
		{"read /etc/passwd", "?????"},
		{"read /proc/1/environ", "ddddd"},
		{"write a.go", "d?a?a"},
		{"write new/dir/x", "d?a?a"},
		{"write .env", "d????"},
		{"write .git/config", "d????"},
		{"write sub/.git/hooks/x", "d????"},
		{"write ~/x", "d????"},
		{"write .baleen/permissions.toml", "ddddd"},
		{"run go test ./...", "d?a?a"},
		{"run for f in *.go; do go vet $f; done", "d?a?a"},
		{"run ls", "aaaaa"},
		{"run echo 'a", "d????"},
		{"reach example.org", "?????"},
	} {
		var got []byte
		for _, m := range []Mode{ModePlan, ModeAsk, ModeAcceptEdits, ModeAdaptive, ModeAuto} {
			p := world(t, Options{Mode: m, Sandboxed: true}, "", "")
			v := p.Decide(effect(p, c.what))
			got = append(got, word(v.Decision))
			if (v.Reason == "") != (v.Decision == Allow) {
				t.Errorf("%s: %v, and the reason %q", c.what, v.Decision, v.Reason)
			}
		}
		if string(got) != c.verdicts {
			t.Errorf("%s: %s, want %s", c.what, got, c.verdicts)
		}
	}
}

// TestAdaptive goes on by itself when the first change was allowed, and not for having been asked about reading.
func TestAdaptive(t *testing.T) {
	p := world(t, Options{Mode: ModeAdaptive, Sandboxed: true}, "", "")
	p.Allowed(p.Decide(effect(p, "read ~/x")))
	v := p.Decide(effect(p, "write a.go"))
	if v.Decision != Ask {
		t.Fatalf("%+v", v)
	}
	p.Allowed(v)
	if v := p.Decide(effect(p, "run go test")); v.Decision != Allow {
		t.Errorf("%+v", v)
	}
	if v := p.Decide(effect(p, "write ~/x")); v.Decision != Ask {
		t.Errorf("%+v", v)
	}
}

// TestRules: deny before ask before allow, whatever file they are in; a project's file only narrows.
func TestRules(t *testing.T) {
	user := `
deny = ["run git push *", "read private", "run rm *"]
ask = ["write go.mod", "run npm publish *"]
allow = ["run git *", "write **", "reach *.example.org", "run make test", "read ~/notes/**", "read private/open"]
[[workspace]]
root = "ROOT"
allow = ["run ./build.sh *"]
[[workspace]]
root = "/elsewhere"
allow = ["run everywhere-else"]
`
	project := `
deny = ["write vendor/**"]
ask = ["run make *"]
allow = ["run curl *"]
`
	p := world(t, Options{Mode: ModeAsk}, user, project)
	if !strings.Contains(p.Problem(), "does not count") {
		t.Errorf("%q", p.Problem())
	}
	if err := os.Symlink(filepath.Join(p.o.Root, "vendor"), filepath.Join(p.o.Root, "v")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(p.o.Home, filepath.Join(p.o.Root, "out")); err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]byte{
		"run git commit -m x": 'a', "run git push origin": 'd', "run git push": 'd', "run sudo git push": 'd', "run /usr/bin/git push": 'd', "run env git push": 'd',
		"run true && git push": 'd', "run $g push": 'd', "run git $x": 'd', "run npm publish": '?', "run rm -rf a.go": 'd', "run xargs rm": 'd',
		"run ./build.sh --all": 'a', "run everywhere-else": '?', "run make test": '?', "run curl x": '?', "run GIT_SSH=x git commit": '?',
		"write a.go": 'a', "write go.mod": '?', "write vendor/x/y": 'd', "write v/x": 'd', "write vendor": 'd', "run touch vendor/x": 'd', "write out/x": '?',
		"read private/x": 'd', "read private/open": 'd', "read ~/notes/a": 'a', "read ~/x": '?', "read out/x": '?', "read .": 'a',
		"reach a.example.org": 'a', "reach example.org": '?', "reach A.Example.ORG": 'a', "reach a.example.org.evil": '?',
	} {
		if v := p.Decide(effect(p, what)); word(v.Decision) != want {
			t.Errorf("%s: %v (%s), want %c", what, v.Decision, v.Reason, want)
		}
	}
	for host, want := range map[string]bool{"": true, "a.example.org": true, "A.example.org": true, "example.org": false, "x": false} {
		if p.Reaches(host) != want {
			t.Errorf("commands reach %q: %v", host, !want)
		}
	}
	if world(t, Options{}, `deny = ["reach *"]`, "").Reaches("") {
		t.Error("nothing is allowed")
	}
	if !p.Hides(filepath.Join(p.o.Root, "private", "x")) || !p.Hides(filepath.Join(p.o.Root, ".env")) || p.Hides(filepath.Join(p.o.Root, "a.go")) {
		t.Error("what searches leave out")
	}
}

// TestUnreadableRules mean that files are only read.
func TestUnreadableRules(t *testing.T) {
	for name, c := range map[string]struct{ user, project, want string }{
		"no TOML":         {"allow = [", "", "line 1"},
		"unknown setting": {"\nalow = []", "", `line 2: there is no setting "alow"`},
		"unknown verb":    {`allow = ["execute x"]`, "", "want read, write, run or reach"},
		"no pattern":      {`deny = ["run"]`, "", "no verb and pattern"},
		"wrong kind":      {`deny = "run x"`, "", "line 1"},
		"project":         {"", `deny = ["write {a"]`, "permissions.toml"},
		"no root":         {"[[workspace]]\nallow = []", "", "no root"},
		"quote":           {`deny = ["run 'a"]`, "", "not closed"},
	} {
		t.Run(name, func(t *testing.T) {
			p := world(t, Options{Mode: ModeAuto, Sandboxed: true}, c.user, c.project)
			if !strings.Contains(p.Problem(), c.want) {
				t.Errorf("%q, want %q", p.Problem(), c.want)
			}
			for what, want := range map[string]byte{"read a.go": 'a', "read .env": 'd', "write a.go": 'd', "run ls": 'd', "run 'x": 'd', "reach x": 'd'} {
				if v := p.Decide(effect(p, what)); word(v.Decision) != want {
					t.Errorf("%s: %+v", what, v)
				}
			}
			if err := p.Always(Verdict{Pattern: "run x"}); err == nil {
				t.Error("a rule was written behind those that cannot be read")
			}
		})
	}
	p := world(t, Options{Mode: ModeAuto}, "", "")
	if err := os.MkdirAll(p.o.UserFile, 0o755); err != nil {
		t.Fatal(err)
	}
	if p = New(p.o); p.Problem() == "" {
		t.Error("a folder was read as rules")
	}
}

// TestAlways keeps what was shown, and no more, here and in a new session, and leaves what the file had.
func TestAlways(t *testing.T) {
	for _, c := range []struct{ what, pattern, also, not string }{
		{"run go test ./a", "run go test *", "run go test ./b", "run go run ."},
		{"run npm run lint", "run npm run lint *", "run npm run lint --fix", "run npm run deploy"},
		{"run python3 'a b.py' *x", "run python3 'a b.py' '*x'", "run python3 'a b.py' '*x'", "run python3 'a b.py' yx"},
		{"run ./x --flag=a,b", "run ./x '--flag=a,b'", "run ./x --flag=a,b", "run ./x --flag=a"},
		{"write src/c.go", "write src/**", "write src/d.go", "write a.go"},
		{"write a.go", "write a.go", "write a.go", "write b.go"},
		{"reach example.org", "reach example.org", "reach example.org", "reach a.example.org"},
		{"run go build && python3 x.py", "run go build *\nrun python3 x.py", "run go build ./x", "run python3 y.py"},
		{"run python3 $x", "", "", ""},
		{"read .env", "", "", ""},
		{"write .git/config", "", "", ""},
		{"run 'x", "", "", ""},
	} {
		p := world(t, Options{Mode: ModeAsk}, "# mine\nask = [\"run npm publish *\"]", "")
		v := p.Decide(effect(p, c.what))
		if v.Decision != Ask || v.Pattern != c.pattern {
			t.Errorf("%s: %v %q, want %q", c.what, v.Decision, v.Pattern, c.pattern)
			continue
		}
		err := p.Always(v)
		if (err == nil) != (c.pattern != "") {
			t.Errorf("%s: %v", c.what, err)
		}
		if c.pattern == "" {
			continue
		}
		b, _ := os.ReadFile(p.o.UserFile)
		if !strings.HasPrefix(string(b), "# mine\n") {
			t.Errorf("the file is now %q", b)
		}
		other := New(Options{Root: t.TempDir(), Home: p.o.Home, Mode: ModeAsk, UserFile: p.o.UserFile})
		for _, q := range []*Policy{p, New(p.o)} {
			if q.Problem() != "" {
				t.Fatal(q.Problem())
			}
			for what, want := range map[string]Decision{c.what: Allow, c.also: Allow, c.not: Ask, "run npm publish": Ask} {
				if v := q.Decide(effect(q, what)); v.Decision != want {
					t.Errorf("after %q, %s: %v", c.pattern, what, v.Decision)
				}
			}
		}
		if v := other.Decide(effect(other, c.what)); v.Decision != Ask {
			t.Errorf("%s is allowed in another workspace", c.what)
		}
	}
}

// TestPrivate: what is Baleen's own is neither read nor written, whatever a rule says and through whatever link.
func TestPrivate(t *testing.T) {
	root, home := workspace(t)
	data := filepath.Join(home, "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(data, filepath.Join(root, "d")); err != nil {
		t.Fatal(err)
	}
	p := world(t, Options{Root: root, Home: home, Mode: ModeAuto, Private: []string{data}}, `allow = ["read /**", "write /**", "run cat *"]`, "")
	for _, what := range []string{"read ~/data/keys", "write ~/data/keys", "read d/x", "write d/x", "run cat d/../d", "run echo > d/x", "write ~/.config/permissions.toml"} {
		if v := p.Decide(effect(p, what)); v.Decision != Deny {
			t.Errorf("%s: %+v", what, v)
		}
	}
	p.Grant(filepath.Join(data, "outputs"), false)
	p.Grant(filepath.Join(data, "scratch"), true)
	for what, want := range map[string]Decision{"read ~/data/outputs/x": Allow, "write ~/data/outputs/x": Deny, "write ~/data/scratch/x": Allow, "read d/keys": Deny} {
		if v := p.Decide(effect(p, what)); v.Decision != want {
			t.Errorf("%s: %+v", what, v)
		}
	}
}
