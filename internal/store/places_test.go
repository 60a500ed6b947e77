package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// put writes a file below dir and makes its folders.
func put(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// ollamaStore lays out a model as Ollama does.
func ollamaStore(t *testing.T, dir, name, weights string) {
	t.Helper()
	layers := ""
	for kind, text := range map[string]string{"model": weights, "system": "Be brief.", "params": `{"stop":["x"]}`, "license": "\nMIT\nmore"} {
		put(t, dir, "blobs/sha256-"+digest(text), text)
		layers += fmt.Sprintf(
			`,{"mediaType":"application/vnd.ollama.image.%s","digest":"sha256:%s","size":%d}`,
			kind,
			digest(text),
			len(text),
		)
	}
	put(t, dir, "manifests/"+name, `{"schemaVersion":2,"layers":[`+layers[1:]+`]}`)
}

// hubCache lays out files as huggingface_hub does: blobs, and snapshots of links to them.
func hubCache(t *testing.T, dir, repo, rev string, files map[string]string) {
	t.Helper()
	base := filepath.Join(dir, "models--"+strings.ReplaceAll(repo, "/", "--"))
	for name, text := range files {
		blob := put(t, base, "blobs/"+digest(text), text)
		link := filepath.Join(base, "snapshots", rev, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			t.Fatal(err)
		}
		rel, err := filepath.Rel(filepath.Dir(link), blob)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(rel, link); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
}

func TestOtherProgramsModels(t *testing.T) {
	dir := t.TempDir()
	ollama, hub, studio := filepath.Join(dir, "o"), filepath.Join(dir, "h"), filepath.Join(dir, "s")
	ollamaStore(t, ollama, "registry.ollama.ai/library/tiny/1b", "weights")
	ollamaStore(t, ollama, "registry.ollama.ai/me/mine/latest", "my weights")
	ollamaStore(t, ollama, "example.org/library/x/latest", "x weights")
	put(t, ollama, "manifests/registry.ollama.ai/library/cloud/latest", `{"layers":[]}`)
	put(t, ollama, "manifests/registry.ollama.ai/library/broken/latest", `<html>`)
	put(
		t,
		ollama,
		"manifests/registry.ollama.ai/library/evil/latest",
		`{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:../../../etc/passwd","size":1}]}`,
	)
	put(
		t,
		ollama,
		"manifests/registry.ollama.ai/library/tuned/latest",
		`{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:`+digest(
			"weights",
		)+`","size":7},`+
			`{"mediaType":"application/vnd.ollama.image.adapter","digest":"sha256:`+digest(
			"weights",
		)+`","size":7}]}`,
	)
	put(
		t,
		ollama,
		"manifests/registry.ollama.ai/library/unset/latest",
		`{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:`+digest(
			"weights",
		)+`","size":7},`+
			`{"mediaType":"application/vnd.ollama.image.params","digest":"sha256:`+digest(
			"weights",
		)+`","size":7}]}`,
	)
	put(
		t,
		ollama,
		"manifests/registry.ollama.ai/library/gone/latest",
		`{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:`+digest(
			"never written",
		)+`","size":1}]}`,
	)

	weights := `{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:` + digest("weights") + `","size":7}`
	put(
		t,
		ollama,
		"manifests/registry.ollama.ai/library/mute/latest",
		`{"layers":[`+weights+`,{"mediaType":"application/vnd.ollama.image.system","digest":"sha256:`+digest(
			"never written",
		)+`","size":1}]}`,
	)
	put(t, ollama, "blobs/sha256-"+digest("not JSON"), "not JSON")
	put(
		t,
		ollama,
		"manifests/registry.ollama.ai/library/odd/latest",
		`{"layers":[`+weights+`,{"mediaType":"application/vnd.ollama.image.params","digest":"sha256:`+digest(
			"not JSON",
		)+`","size":8}]}`,
	)
	put(t, ollama, "manifests/registry.ollama.ai/library/tiny/.DS_Store", "left by a file manager")
	if err := os.MkdirAll(filepath.Join(ollama, "manifests/registry.ollama.ai/library/tiny/folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dangling", "piped"} {
		path := filepath.Join(ollama, "manifests/registry.ollama.ai/library", name, "latest")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if name == "dangling" {
			if err := os.Symlink("gone", path); err != nil {
				t.Skipf("no symbolic links here: %v", err)
			}
		} else if err := makePipe(path); err != nil { // nobody ever writes to it
			t.Skipf("no named pipes here: %v", err)
		}
	}
	ollamaStore(t, ollama, "localhost:5000/library/p/1", "ported")

	hubCache(t, hub, "org/one", "aaaa", map[string]string{"m-Q4_K_M.gguf": "old"})
	hubCache(
		t,
		hub,
		"org/one",
		"bbbb",
		map[string]string{"m-Q4_K_M.gguf": "q4", "m-Q8_0.gguf": "q8", "mmproj.gguf": "p"},
	)
	put(t, hub, "models--org--one/refs/main", "bbbb")
	hubCache(t, hub, "org/full", "cccc", map[string]string{
		"config.json": "{}", "model-00001-of-00002.safetensors": "1", "model-00002-of-00002.safetensors": "22",
		"model.safetensors.index.json": `{"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}}`,
	})
	hubCache(t, hub, "org/half", "dddd", map[string]string{
		"config.json": "{}", "model-00001-of-00002.safetensors": "1",
		"model.safetensors.index.json": `{"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}}`,
	})
	put(t, studio, "pub/split/big-00001-of-00003.gguf", "1")
	put(t, studio, "pub/split/big-00002-of-00003.gguf", "22")
	put(t, studio, "pub/split/big-00003-of-00003.gguf", "333")
	put(t, studio, "pub/With Spaces/x.gguf", "1")
	put(t, studio, "pub/torn/big-00001-of-00002.gguf", "1")

	s := Open(
		filepath.Join(dir, "home"),
		Place{"Ollama", ollama},
		Place{"Hugging Face", hub},
		Place{"LM Studio", studio},
		Place{"Ollama", filepath.Join(dir, "none")},
	)
	list, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Model{}
	for _, m := range list {
		got[m.Name] = m
	}
	for name, want := range map[string]struct {
		where, base, problem string
		size                 int64
	}{
		"tiny:1b":              {"Ollama", "sha256-" + digest("weights"), "", 7},
		"me/mine:latest":       {"Ollama", "sha256-" + digest("my weights"), "", 10},
		"example.org/x:latest": {"Ollama", "sha256-" + digest("x weights"), "", 9},
		"cloud:latest":         {"Ollama", "latest", "no weights", 0},
		"tuned:latest":         {"Ollama", "sha256-" + digest("weights"), "adapter", 14},
		"unset:latest":         {"Ollama", "sha256-" + digest("weights"), "params", 7},
		"broken:latest":        {"Ollama", "latest", "its manifest cannot be read", 0},
		"evil:latest":          {"Ollama", "latest", "its manifest cannot be read", 0},
		"dangling:latest":      {"Ollama", "latest", "its manifest cannot be read", 0},
		"piped:latest":         {"Ollama", "latest", "its manifest cannot be read", 0},
		"mute:latest":          {"Ollama", "sha256-" + digest("weights"), "its system cannot be read", 7},
		"odd:latest":           {"Ollama", "sha256-" + digest("weights"), "its params cannot be read", 7},
		"localhost:5000/p:1":   {"Ollama", "sha256-" + digest("ported"), "", 6},
		"gone:latest":          {"Ollama", "sha256-" + digest("never written"), "missing or cut off", 1},
		"org/one:m-Q4_K_M":     {"Hugging Face", "m-Q4_K_M.gguf", "", 2},
		"org/one:m-Q8_0":       {"Hugging Face", "m-Q8_0.gguf", "", 2},
		"org/full":             {"Hugging Face", "cccc", "", 3},
		"org/half":             {"Hugging Face", "dddd", "model-00002-of-00002.safetensors is missing", 1},
		"pub/split":            {"LM Studio", "big-00001-of-00003.gguf", "", 6},
		"pub/With Spaces":      {"LM Studio", "x.gguf", "", 1},
		"pub/torn":             {"LM Studio", "big-00001-of-00002.gguf", "big-00002-of-00002.gguf is missing", 1},
	} {
		m, ok := got[name]
		if !ok || m.Where != want.where || filepath.Base(m.Path) != want.base || m.Size != want.size || m.Own {
			t.Errorf("%s: %+v", name, m)
		}
		if (want.problem == "") != (m.Problem == "") || !strings.Contains(m.Problem, want.problem) {
			t.Errorf("%s: problem %q, want %q", name, m.Problem, want.problem)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("%s is listed", name)
	}
	for arg, base := range map[string]string{
		"tiny:1b": "sha256-" + digest("weights"), "TINY:1B": "sha256-" + digest("weights"), "me/mine": "sha256-" + digest("my weights"),
		"localhost:5000/p:1": "sha256-" + digest("ported"), "pub/With Spaces": "x.gguf", "org/one:Q8_0": "m-Q8_0.gguf", "org/one:q4_k_m": "m-Q4_K_M.gguf", "pub/split": "big-00001-of-00003.gguf", "org/full": "cccc",
	} {
		if ref, err := s.Resolve(arg); err != nil || filepath.Base(ref.Path) != base || ref.Model == nil {
			t.Errorf("%s means %+v, %v", arg, ref, err)
		}
	}
	for arg, problem := range map[string]string{"org/half": "cannot run", "cloud": "cannot run", "broken": "cannot run", "org/one": "neither a known name", "tiny": "neither"} {
		if _, err := s.Resolve(arg); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v", arg, err)
		}
	}
	if m := s.mustFind(t, "tiny:1b"); m.System != "Be brief." || m.Licence != "MIT" ||
		fmt.Sprint(m.Params["stop"]) != "[x]" {
		t.Errorf("%+v", m)
	}
	if _, err := s.Remove("tiny:1b"); !errors.Is(err, ErrForeign) {
		t.Errorf("removing Ollama's model: %v", err)
	}
	if err := s.Copy("tiny:1b", "mine:v1"); err != nil {
		t.Fatal(err)
	}
	if m := s.mustFind(t, "mine:v1"); filepath.Base(m.Path) != "sha256-"+digest("weights") || !m.Own || m.Size != 7 ||
		m.System != "Be brief." ||
		fmt.Sprint(m.Params["stop"]) != "[x]" ||
		m.Licence != "MIT" {
		t.Errorf("the copy: %+v", m)
	}
	if _, err := s.Remove("mine:v1"); err != nil {
		t.Error(err)
	}
	if m := s.mustFind(t, "tiny:1b"); m.Problem != "" {
		t.Errorf("removing the copy removed the model: %+v", m)
	}
}

// TestBlocked: a place that is there and cannot be read is told of; one that is not there is not.
func TestBlocked(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "ollama/manifests", "a file, where a folder should be")
	put(t, dir, "hub/x", "")
	s := Open(
		filepath.Join(dir, "home"),
		Place{"Ollama", filepath.Join(dir, "ollama")},
		Place{"Hugging Face", filepath.Join(dir, "hub")},
		Place{"LM Studio", filepath.Join(dir, "none")},
	)
	got := s.Blocked()
	if len(got) != 1 || !strings.Contains(got[0].Error(), "models of Ollama are left out") {
		t.Errorf("%v", got)
	}
	if list, err := s.List(); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

// TestNoHome: without a folder for data, what lies elsewhere is found, and nothing is written to the current folder.
func TestNoHome(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, ".", "models/smollm2-135m.gguf", "not of the store")
	put(t, ".", "x.gguf", "")
	s, err := OpenUser("", func(string) string { return "" })
	if err != nil || s.Dir() != "" {
		t.Fatalf("%v, %v", s, err)
	}
	if ref, err := s.Resolve("./x.gguf"); err != nil || ref.Path != "./x.gguf" {
		t.Errorf("%+v, %v", ref, err)
	}
	if list, err := s.List(); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	e, _ := Lookup("smollm2-135m")
	if s.Has(e) {
		t.Error("it has what lies in the current folder")
	}
	if _, err := s.LockEntry(t.Context(), e, nil); !errors.Is(err, ErrNoHome) {
		t.Error(err)
	}
	if err := s.Copy("./x.gguf", "x"); !errors.Is(err, ErrNoHome) {
		t.Error(err)
	}
	if _, err := s.Remove("smollm2-135m"); !errors.Is(err, ErrNoHome) {
		t.Error(err)
	}
	if left, err := os.ReadDir("models"); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

func (s *Store) mustFind(t *testing.T, name string) Model {
	t.Helper()
	m, ok := s.Find(name)
	if !ok {
		t.Fatalf("%s is not found", name)
	}
	return m
}

func TestPlaces(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths of Unix")
	}
	home := t.TempDir()
	put(t, home, ".lmstudio/settings.json", `{"downloadsFolder":"/big/models"}`)
	text := func(env map[string]string) string {
		var out []string
		for _, p := range Places(func(k string) string { return env[k] }) {
			out = append(out, p.Kind+" "+strings.ReplaceAll(p.Dir, home, "~"))
		}
		return strings.Join(out, "\n")
	}
	if got := text(map[string]string{}); got != "" {
		t.Errorf("without HOME: %s", got)
	}
	got := text(map[string]string{"HOME": home})
	for _, want := range []string{"Ollama ~/.ollama/models", "Hugging Face ~/.cache/huggingface/hub", "LM Studio /big/models", "LM Studio ~/.lmstudio/models"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	for env, want := range map[string]string{
		"OLLAMA_MODELS": "Ollama /x", "HF_HUB_CACHE": "Hugging Face /x", "HF_HOME": "Hugging Face /x/hub", "XDG_CACHE_HOME": "Hugging Face /x/huggingface/hub",
	} {
		if got := text(map[string]string{"HOME": home, env: "/x"}); !strings.Contains(got, want) {
			t.Errorf("%s: %s", env, got)
		}
	}
}

func TestOwnModels(t *testing.T) {
	s := Open(t.TempDir())
	put(t, s.Models(), "dropped.gguf", "123")
	put(t, s.Models(), "org+repo=Q4/m.gguf", "12345")
	put(t, s.Models(), ".half.pull/x/m.gguf.part", "1")
	put(t, s.Models(), "no-manifest/m.gguf", "1")
	man := Manifest{
		Name:    "org/repo:Q4",
		Source:  "hf.co/org/repo:Q4",
		Licence: "mit",
		Files:   []File{{"m.gguf", 5, digest("12345")}},
	}
	if err := WriteManifest(filepath.Join(s.Models(), "org+repo=Q4"), man); err != nil {
		t.Fatal(err)
	}
	list, err := s.List()
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	e, _, _ := Remote("org/repo:Q4", true)
	if !s.Has(e) || filepath.Base(s.Located(e)) != "m.gguf" {
		t.Errorf("has not %s, or not at %s", e.Name, s.Located(e))
	}
	for _, bad := range []string{"", "../x", "a b", "x/../y", "smollm2-135m", "dropped", ".hidden", strings.Repeat("x", 300)} {
		if err := s.Copy("org/repo:Q4", bad); err == nil {
			t.Errorf("copied to %q", bad)
		}
	}
	if err := s.Copy("org/repo:Q4", "second"); err != nil {
		t.Fatal(err)
	}
	if err := s.Copy("dropped", "third"); err != nil {
		t.Fatal(err)
	}
	if freed, err := s.Remove("org/repo:Q4"); err != nil || freed != 5 {
		t.Errorf("freed %d, %v", freed, err)
	}
	if b, err := os.ReadFile(s.mustFind(t, "second").Path); err != nil || string(b) != "12345" {
		t.Errorf("the copy has %q, %v", b, err)
	}
	if b, err := os.ReadFile(s.mustFind(t, "third").Path); err != nil || string(b) != "123" {
		t.Errorf("the copy has %q, %v", b, err)
	}
	if err := os.WriteFile(s.mustFind(t, "second").Path, []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Resolve("second"); err == nil || !strings.Contains(err.Error(), "its manifest says 5") {
		t.Errorf("a file that is cut off: %v", err)
	}
	if _, err := s.Remove("nothing"); !errors.Is(err, ErrNotFound) {
		t.Errorf("removing nothing: %v", err)
	}
}

// TestPulledFromARegistry: what a model out of an Ollama registry has beside its weights counts as in Ollama's own
// store.
func TestPulledFromARegistry(t *testing.T) {
	s := Open(t.TempDir())
	dir := filepath.Join(s.Models(), "tiny=1b")
	files := map[string]string{
		"model.gguf":      "weights",
		"system.txt":      "Be brief.",
		"template.ollama": "{{ .Prompt }}",
		"params.json":     `{"stop":["x"]}`,
	}
	man := Manifest{Name: "tiny:1b", Source: "ollama:tiny:1b"}
	for name, text := range files {
		put(t, dir, name, text)
		man.Files = append(man.Files, File{name, int64(len(text)), digest(text)})
	}
	if err := WriteManifest(dir, man); err != nil {
		t.Fatal(err)
	}
	if m := s.mustFind(t, "tiny:1b"); m.System != "Be brief." || m.Template != "{{ .Prompt }}" ||
		fmt.Sprint(m.Params["stop"]) != "[x]" ||
		m.Problem != "" {
		t.Errorf("%+v", m)
	}
	put(t, dir, "params.json", `["stop":"x"]}`)
	if m := s.mustFind(t, "tiny:1b"); !strings.Contains(m.Problem, "its manifest says") &&
		!strings.Contains(m.Problem, "its params cannot be read") {
		t.Errorf("%+v", m)
	}
	man.Source = "hf.co/org/repo" // whose params.json is something else
	put(t, dir, "params.json", `{"stop":["x"]}`)
	if err := WriteManifest(dir, man); err != nil {
		t.Fatal(err)
	}
	if m := s.mustFind(t, "tiny:1b"); m.System != "" || m.Params != nil || m.Problem != "" {
		t.Errorf("%+v", m)
	}
}

func TestRemote(t *testing.T) {
	for arg, want := range map[string]string{ // name and address; "" for none, "!" for an error
		"org/repo": "org/repo hf.co/org/repo", "org/repo:Q4@v1": "org/repo:Q4@v1 hf.co/org/repo:Q4@v1",
		"hf:org/repo": "org/repo hf.co/org/repo", "https://huggingface.co/org/repo/tree/dev": "org/repo@dev " +
			"hf.co/org/repo@dev",
		"llama3.2": "llama3.2:latest ollama:llama3.2:latest", "ollama.com/me/x:1": "ollama.com/me/x:1 ollama:me/x:1",
		"registry.ollama.ai/library/x": "x:latest ollama:x:latest", "pip:a==1": "a pip:a==1", "pip:a": "!", "hf:x": "!", "hf:org/../x": "!",
		"https://h/x.gguf": "x https://h/x.gguf", "https://h/x.bin": "!", "https://h/x.gguf#sha256=12": "!", "https:///x.gguf": "!",
		"what is this?": "", "a/b/c/d": "", "/etc/passwd": "",
		"ftp://h/x.gguf": "!", "file:///x.gguf": "!", "hf://org/repo": "!",
	} {
		e, ok, err := Remote(arg, true)
		got := ""
		switch {
		case err != nil:
			got = "!"
		case ok:
			got = e.Name + " " + e.Sources[0].Address()
		}
		if got != want {
			t.Errorf("%s: %q, want %q (%v)", arg, got, want, err)
		}
		if ok && err == nil && CheckName(e.Name) != nil {
			t.Errorf("%s: bad name %q", arg, e.Name)
		}
	}
	if _, ok, _ := Remote("org/repo", false); ok {
		t.Error("a bare name is an address")
	}
}

// FuzzOllamaManifest: no manifest panics, and every digest it names is one.
func FuzzOllamaManifest(f *testing.F) {
	f.Add(
		[]byte(
			`{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:` + digest(
				"x",
			) + `","size":1}]}`,
		),
	)
	f.Add([]byte(`{"layers":[{"digest":"sha256:../../x","size":-1}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		layers, _, err := ParseOllama(b)
		for _, l := range layers {
			if err == nil && (len(l.Sum()) != 64 || l.Size < 0) {
				t.Errorf("%+v", l)
			}
		}
	})
}

// FuzzRemote: no address panics, and every name it makes can be a model's.
func FuzzRemote(f *testing.F) {
	for _, s := range []string{"org/repo:Q4@v1", "ollama:x", "https://h/x.gguf#sha256=", "https://hf.co/a/b/blob/main/c.gguf", "pip:a==1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, ok, err := Remote(s, true)
		if ok && err == nil && (CheckName(e.Name) != nil || strings.ContainsAny(encodeName(e.Name), `/\:`)) {
			t.Errorf("%q makes the name %q", s, e.Name)
		}
	})
}
