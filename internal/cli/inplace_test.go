package cli

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/gguf"
	"github.com/baleenrun/baleen/internal/safetensors"
)

// splitFile writes a model as two files, as llama.cpp's splitter does, and returns the first.
func splitFile(t *testing.T, model, dir string) string {
	t.Helper()
	f, err := gguf.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tensors := f.Tensors()
	half := len(tensors) / 2
	var first string
	for i, part := range [][]*gguf.Tensor{tensors[:half], tensors[half:]} {
		path := filepath.Join(dir, fmt.Sprintf("tiny-%05d-of-00002.gguf", i+1))
		if i == 0 {
			first = path
		}
		out, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w := gguf.NewWriter(out)
		set := func(key string, v any) {
			if err := w.Set(key, v); err != nil {
				t.Fatal(err)
			}
		}
		if i == 0 {
			for _, key := range f.Keys() {
				v, _ := f.Get(key)
				set(key, v)
			}
		}
		set("split.no", uint16(i))
		set("split.count", uint16(2))
		set("split.tensors.count", int32(len(tensors)))
		for _, tensor := range part {
			if err := w.AddTensor(tensor.Name, tensor.Dims, tensor.Type); err != nil {
				t.Fatal(err)
			}
		}
		for _, tensor := range part {
			if err := w.WriteTensor(tensor.Name, tensor.Bytes()); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return first
}

// inventory returns a function that lists what is in a folder, with sizes and times.
func inventory(t *testing.T, dir string) func() []string {
	t.Helper()
	return func() []string {
		var out []string
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil {
				out = append(out, fmt.Sprintf("%s %d %v", path, info.Size(), info.ModTime()))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

// TestModelsRunInPlace runs a model out of Ollama's store, the Hugging Face cache and LM Studio's folder, where it is
// split over two files, and compares with the file itself.
func TestModelsRunInPlace(t *testing.T) {
	file := tinyFile(t, "")
	weights, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := command(t, "", "run", file, "once upon a time", "-n", "5", "--temp", "0")
	if want.status != exitOK {
		t.Fatalf("%+v", want)
	}
	home := t.TempDir()
	put := func(path string, b []byte) {
		t.Helper()
		path = filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sum := sha256.Sum256(weights)
	hexSum := hex.EncodeToString(sum[:])
	put(".ollama/models/blobs/sha256-"+hexSum, weights)
	put(".ollama/models/manifests/registry.ollama.ai/library/tiny/1b", fmt.Appendf(
		nil,
		`{"schemaVersion":2,"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:%s","size":%d}]}`,
		hexSum,
		len(weights),
	))
	const repo = ".cache/huggingface/hub/models--org--tiny/"
	put(repo+"blobs/"+hexSum, weights)
	put(repo+"refs/main", []byte("abc"))
	snapshot := filepath.Join(home, repo, "snapshots", "abc")
	if err := os.MkdirAll(snapshot, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../blobs/"+hexSum, filepath.Join(snapshot, "tiny-Q8_0.gguf")); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	studio := filepath.Join(home, ".lmstudio", "models", "pub", "split")
	if err := os.MkdirAll(studio, 0o755); err != nil {
		t.Fatal(err)
	}
	splitFile(t, file, studio)

	list := inventory(t, home)
	before := list()
	env := []string{"HOME=" + home}
	for _, name := range []string{"tiny:1b", "org/tiny", "org/tiny:Q8_0", "pub/split", filepath.Join(studio, "tiny-00002-of-00002.gguf"), studio, snapshot} {
		o := commandEnv(t, env, "", "run", name, "once upon a time", "-n", "5", "--temp", "0")
		if o.status != exitOK || o.out != want.out {
			t.Errorf("%s: %+v", name, o)
		}
	}
	o := commandEnv(t, env, "", "list", "--json")
	var models []listedModel
	if err := json.Unmarshal([]byte(o.out), &models); err != nil || len(models) != 3 {
		t.Fatalf("%v: %+v", err, o)
	}
	for i, where := range []string{"Ollama", "Hugging Face", "LM Studio"} {
		if models[i].Where != where || models[i].Problem != "" || models[i].Size < int64(len(weights)) ||
			!strings.HasPrefix(models[i].Path, home) {
			t.Errorf("%+v", models[i])
		}
	}
	if o := commandEnv(t, env, "", "list"); !strings.Contains(o.out, "Ollama  ~") {
		t.Errorf("%+v", o)
	}
	if o := commandEnv(t, env, "", "rm", "tiny:1b"); o.status != exitFailed ||
		!strings.Contains(o.err, "belongs to Ollama") {
		t.Errorf("%+v", o)
	}
	if o := commandEnv(t, env, "", "pull", "tiny:1b"); o.status != exitOK || !strings.Contains(o.err, "runs in place") {
		t.Errorf("%+v", o)
	}
	if after := list(); strings.Join(after, "\n") != strings.Join(before, "\n") {
		t.Errorf("the folders were changed:\n%s\n\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}

// shardFiles is a checkpoint in n files with an index, as large models come, and with a tokenizer of single letters.
func shardFiles(t *testing.T, dir string, n int) map[string][]byte {
	t.Helper()
	set, err := safetensors.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	config, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	vocab := map[string]int{}
	for c := byte('!'); c <= '~'; c++ {
		vocab[string(c)] = len(vocab)
	}
	vocab["Ġ"] = len(vocab) // a space, as byte-level vocabularies write it
	tokenizer, err := json.Marshal(map[string]any{
		"model":         map[string]any{"type": "BPE", "vocab": vocab, "merges": []string{}},
		"pre_tokenizer": map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
		"decoder":       map[string]any{"type": "ByteLevel"},
	})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{"config.json": config, "tokenizer.json": tokenizer}
	weights := map[string]string{}
	entries := make([][]safetensors.Entry, n)
	name := func(i int) string { return fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, n) }
	total := 0
	for i, tensor := range set.Tensors() {
		weights[tensor.Name] = name(i % n)
		entries[i%n] = append(
			entries[i%n],
			safetensors.Entry{Name: tensor.Name, DType: tensor.DType, Shape: tensor.Shape, Data: tensor.Bytes()},
		)
		total += tensor.Size()
	}
	for i, e := range entries {
		var b bytes.Buffer
		if err := safetensors.Write(&b, e, map[string]string{"format": "pt"}); err != nil {
			t.Fatal(err)
		}
		out[name(i)] = b.Bytes()
	}
	index, err := json.Marshal(map[string]any{"metadata": map[string]int{"total_size": total}, "weight_map": weights})
	if err != nil {
		t.Fatal(err)
	}
	out["model.safetensors.index.json"] = index
	return out
}

// TestShardsRunInHubCache runs a checkpoint of several files out of the Hugging Face cache, where each is a link to a
// blob, and compares with the reference and with the folder that holds the files themselves.
func TestShardsRunInHubCache(t *testing.T) {
	golden := filepath.Join("..", "family", "testdata", "goldens", "llama")
	files := shardFiles(t, golden, 3)
	home, plain := t.TempDir(), t.TempDir()
	repo := filepath.Join(home, ".cache", "huggingface", "hub", "models--org--sharded")
	snapshot := filepath.Join(repo, "snapshots", "0123456789abcdef")
	for _, dir := range []string{filepath.Join(repo, "blobs"), filepath.Join(repo, "refs"), snapshot} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(path string, b []byte) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(repo, "refs", "main"), []byte("0123456789abcdef"))
	for name, b := range files {
		write(filepath.Join(plain, name), b)
		sum := sha256.Sum256(b)
		blob := hex.EncodeToString(sum[:])
		write(filepath.Join(repo, "blobs", blob), b)
		if err := os.Symlink("../../blobs/"+blob, filepath.Join(snapshot, name)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	env := []string{"HOME=" + home}
	if o := commandEnv(t, env, "", "verify", "org/sharded", "--reference", filepath.Join(golden, "golden.safetensors")); o.status != exitOK {
		t.Errorf("%+v", o)
	}
	want := command(t, "", "run", plain, "once upon a time", "-n", "8", "--temp", "0", "--raw")
	if want.status != exitOK || strings.TrimSpace(want.out) == "" {
		t.Fatalf("%+v", want)
	}
	for _, name := range []string{"org/sharded", snapshot} {
		if o := commandEnv(t, env, "", "run", name, "once upon a time", "-n", "8", "--temp", "0", "--raw"); o.status != exitOK ||
			o.out != want.out {
			t.Errorf("%s: %+v, want %+v", name, o, want)
		}
	}
	listed := func() listedModel {
		t.Helper()
		o := commandEnv(t, env, "", "list", "--json")
		var models []listedModel
		if err := json.Unmarshal([]byte(o.out), &models); err != nil || len(models) != 1 {
			t.Fatalf("%v: %+v", err, o)
		}
		return models[0]
	}
	if m := listed(); m.Name != "org/sharded" || m.Problem != "" || m.Path != snapshot {
		t.Errorf("%+v", m)
	}
	const second = "model-00002-of-00003.safetensors"
	sum := sha256.Sum256(files[second])
	if err := os.Remove(filepath.Join(repo, "blobs", hex.EncodeToString(sum[:]))); err != nil {
		t.Fatal(err)
	}
	if m := listed(); !strings.Contains(m.Problem, second+" is missing") {
		t.Errorf("with a link to nothing: %+v", m)
	}
	for _, name := range []string{"org/sharded", snapshot} {
		commandEnv(t, env, "", "run", name, "once").oneErrorLine(t, exitFailed, second)
	}
}

// TestNoHome: without HOME and BALEEN_HOME everything works that keeps nothing, and what would keep something says so.
func TestNoHome(t *testing.T) {
	model := tinyFile(t, "")
	t.Chdir(t.TempDir())
	homeless := func(args ...string) outcome {
		var out, errs bytes.Buffer
		status := Main(
			args,
			IO{In: strings.NewReader(""), Out: &out, Err: &errs, Environ: []string{"BALEEN_THREADS=1"}},
		)
		return outcome{status, out.String(), errs.String()}
	}
	for _, args := range [][]string{
		{"doctor", "--quick"},
		{"doctor", "--quick", "--json"},
		{"list"},
		{"list", "--all"},
		{"show", model},
		{"tokenize", model, "x"},
		{"run", model, "once", "-n", "2"},
		{"__complete", "run", "sm"},
	} {
		if o := homeless(args...); o.status != exitOK {
			t.Errorf("%v: %+v", args, o)
		}
	}
	if o := homeless("doctor", "--quick"); !strings.Contains(o.out, "! no home folder is known") {
		t.Errorf("%+v", o)
	}
	for _, args := range [][]string{{"pull", "smollm2-135m"}, {"rm", "smollm2-135m"}, {"cp", model, "x"}, {"run", "once upon"}, {"serve"}, {"keys", "list"}} {
		homeless(args...).oneErrorLine(t, exitFailed, "no home folder is known")
	}
	if left, err := os.ReadDir("."); err != nil || len(left) != 0 {
		t.Errorf("the current folder has %v, %v", left, err)
	}
}

// putOllama lays a model out as Ollama does: pairs of a layer's kind and its bytes.
func putOllama(t *testing.T, home, name string, pairs ...string) {
	t.Helper()
	dir := filepath.Join(home, ".ollama", "models")
	put := func(path, text string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var layers []string
	for i := 0; i < len(pairs); i += 2 {
		sum := sha256.Sum256([]byte(pairs[i+1]))
		put(filepath.Join(dir, "blobs", "sha256-"+hex.EncodeToString(sum[:])), pairs[i+1])
		layers = append(
			layers,
			fmt.Sprintf(
				`{"mediaType":"application/vnd.ollama.image.%s","digest":"sha256:%x","size":%d}`,
				pairs[i],
				sum,
				len(pairs[i+1]),
			),
		)
	}
	put(
		filepath.Join(dir, "manifests", "registry.ollama.ai", "library", name, "latest"),
		`{"layers":[`+strings.Join(layers, ",")+`]}`,
	)
}

// TestSystemPromptOfOllama: a model that was made with a system prompt is run with it, unless another one is given.
func TestSystemPromptOfOllama(t *testing.T) {
	file := tinyFile(t, testTemplate)
	home := t.TempDir()
	weights, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	putOllama(t, home, "whale", "model", string(weights), "system", "You are a whale.")
	prompt := func(args ...string) int {
		t.Helper()
		o := commandEnv(
			t,
			[]string{"HOME=" + home},
			"",
			append(append([]string{"run"}, args...), "hi", "-n", "3", "--json")...)
		var r runResult
		if err := json.Unmarshal([]byte(o.out), &r); err != nil {
			t.Fatalf("%v: %+v", err, o)
		}
		return r.Usage.Prompt
	}
	without, with := prompt(file), prompt(file, "--system", "You are a whale.")
	if got := prompt("whale"); got != with || with == without {
		t.Errorf("a prompt of %d tokens, want %d; without it %d", got, with, without)
	}
	if got := prompt("whale", "--system", ""); got != without {
		t.Errorf("an empty one of the user's own gives %d tokens, want %d", got, without)
	}
}

// TestSettingsOfOllama: parameters and messages that a model was made with count too, but for what flags say.
func TestSettingsOfOllama(t *testing.T) {
	file := tinyFile(t, testTemplate)
	home := t.TempDir()
	weights, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	putOllama(t, home, "plain", "model", string(weights))
	putOllama(t, home, "set", "model", string(weights), "params", `{"num_predict":4,"temperature":5,"seed":7}`,
		"messages", `[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`)
	putOllama(t, home, "wrong", "model", string(weights), "params", `{"temperature":-1}`)
	run := func(args ...string) (r runResult) {
		t.Helper()
		o := commandEnv(t, []string{"HOME=" + home}, "", append(append([]string{"run"}, args...), "hi", "--json")...)
		if err := json.Unmarshal([]byte(o.out), &r); err != nil {
			t.Fatalf("%v: %+v", err, o)
		}
		return r
	}
	set, plain := run("set"), run("plain", "--max-tokens", "4", "--temperature", "5", "--seed", "7")
	if set.Usage.Generated != 4 || set.Usage.Prompt <= plain.Usage.Prompt {
		t.Errorf(
			"%d tokens behind %d, without settings behind %d",
			set.Usage.Generated,
			set.Usage.Prompt,
			plain.Usage.Prompt,
		)
	}
	if again := run("set"); !slices.Equal(again.Tokens, set.Tokens) {
		t.Errorf("the seed does not count: %v, then %v", set.Tokens, again.Tokens)
	}
	if raw, want := run("set", "--raw"), run("plain", "--raw", "--max-tokens", "4", "--temperature", "5", "--seed", "7"); !slices.Equal(
		raw.Tokens,
		want.Tokens,
	) {
		t.Errorf("raw %v, by flags %v", raw.Tokens, want.Tokens)
	}
	if got := run("set", "--max-tokens", "2"); got.Usage.Generated != 2 {
		t.Errorf("%d tokens, the flag says 2", got.Usage.Generated)
	}
	first := plain.Text[:1]
	putOllama(
		t,
		home,
		"stops",
		"model",
		string(weights),
		"params",
		fmt.Sprintf(`{"num_predict":4,"temperature":5,"seed":7,"stop":[%q]}`, first),
	)
	if got := run("stops"); got.Text != "" || got.Finish != "stop" {
		t.Errorf("%+v, want nothing before %q", got, first)
	}
	commandEnv(t, []string{"HOME=" + home}, "", "run", "wrong", "hi").oneErrorLine(t, exitFailed, "temperature")
}

// TestDamagedManifestIsListed: a model of Ollama's whose manifest cannot be read is listed with what is wrong.
func TestDamagedManifestIsListed(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, ".ollama/models/manifests/registry.ollama.ai/library/tiny/1b")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"layers":`), 0o644); err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=" + home}
	if o := commandEnv(t, env, "", "list"); o.status != exitOK || !strings.Contains(o.out, "tiny:1b") ||
		!strings.Contains(o.out, "its manifest cannot be read") {
		t.Errorf("%+v", o)
	}
	commandEnv(t, env, "", "run", "tiny:1b", "x").oneErrorLine(t, exitFailed, "its manifest cannot be read")
	if err := os.RemoveAll(filepath.Join(home, ".ollama/models/manifests")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".ollama/models/manifests"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if o := commandEnv(t, env, "", "list"); !strings.Contains(o.err, "warning: models of Ollama are left out") {
		t.Errorf("%+v", o)
	}
	if o := commandEnv(t, env, "", "doctor", "--quick"); !strings.Contains(o.out, "! models of Ollama are left out") {
		t.Errorf("%+v", o)
	}
}

func TestShowCopyRemove(t *testing.T) {
	file := tinyFile(t, testTemplate)
	env := []string{"BALEEN_HOME=" + t.TempDir()}
	if o := commandEnv(t, env, "", "cp", file, "mine:v1"); o.status != exitOK {
		t.Fatalf("%+v", o)
	}
	o := commandEnv(t, env, "", "show", "mine:v1", "--json", "--context", "512")
	var s shownModel
	if err := json.Unmarshal([]byte(o.out), &s); err != nil {
		t.Fatalf("%v: %+v", err, o)
	}
	if s.Architecture != "llama" || s.Parameters == 0 || s.Quantization == "" || len(s.Roles) < 4 || s.Template != testTemplate ||
		s.Context != 512 || s.Memory == nil || s.Memory.Weights == 0 ||
		s.Memory.Cache == 0 ||
		s.Path != file {
		t.Errorf("%+v", s)
	}
	text := commandEnv(t, env, "", "show", "mine:v1").out
	for _, want := range []string{"Architecture", "  attention", "Q8_0", "Context", "Memory", "fits"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if o := commandEnv(t, env, "", "show", "mine:v1", "--template"); strings.TrimSpace(
		o.out,
	) != strings.TrimSpace(
		testTemplate,
	) {
		t.Errorf("%q", o.out)
	}
	if o := commandEnv(t, env, "", "rm", "mine:v1"); o.status != exitOK {
		t.Errorf("%+v", o)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("removing the name removed the file: %v", err)
	}
	commandEnv(t, env, "", "show", "mine:v1").oneErrorLine(t, exitFailed, "there is no model")
	commandEnv(t, env, "", "show", "smollm2-135m").oneErrorLine(t, exitFailed, "baleen pull smollm2-135m fetches it")
}

func TestTokenizeCommands(t *testing.T) {
	model := tinyFile(t, "")
	strs := []string{"hello", "", "two\nlines", "日本語 😀", "<s>", strings.Repeat("a", 5000)}
	var in bytes.Buffer
	for _, s := range strs {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(b, '\n'))
	}
	ids := command(t, in.String(), "tokenize", model, "--jsonl")
	if ids.status != exitOK || strings.Count(ids.out, "\n") != len(strs) {
		t.Fatalf("%+v", ids)
	}
	for i, line := range strings.Split(strings.TrimSpace(ids.out), "\n") {
		var list []int32
		if err := json.Unmarshal([]byte(line), &list); err != nil || list == nil {
			t.Errorf("line %d: %q", i, line)
		}
	}
	back := command(t, ids.out, "detokenize", model, "--jsonl")
	for i, line := range strings.Split(strings.TrimSpace(back.out), "\n") {
		var text string
		if err := json.Unmarshal([]byte(line), &text); err != nil || text != strs[i] {
			t.Errorf("line %d: %q, want %q", i, text, strs[i])
		}
	}
	one := command(t, "", "tokenize", model, "hello")
	if first, _, _ := strings.Cut(ids.out, "\n"); strings.TrimSpace(one.out) != first {
		t.Errorf("as an argument %q, as JSON %q", one.out, first)
	}
	if piped := command(t, "hello", "tokenize", model); piped.out != one.out {
		t.Errorf("piped %q, as an argument %q", piped.out, one.out)
	}
	if o := command(t, one.out, "detokenize", model); o.out != "hello\n" {
		t.Errorf("%+v", o)
	}
	for _, bad := range []string{"hello", "3", "null", `["a"]`, `"a`} {
		o := command(t, "\"fine\"\n"+bad+"\n", "tokenize", model, "--jsonl")
		if o.status != exitFailed || !strings.Contains(o.err, "line 2: not a JSON string") ||
			strings.Count(o.out, "\n") != 1 {
			t.Errorf("%q: %+v", bad, o)
		}
	}
	for _, bad := range []string{"99999999", "-1", "x"} {
		command(t, bad, "detokenize", model).oneErrorLine(t, exitFailed, "is no token id")
	}
}

func TestTemplateCommand(t *testing.T) {
	model := tinyFile(t, testTemplate)
	file := filepath.Join(t.TempDir(), "t.jinja")
	if err := os.WriteFile(file, []byte(`{{ messages|length }}{{ tools }}{{ extra }}{% if messages|length > 1 %}{{ raise_exception("too many") }}{% endif %}`), 0o644); err != nil {
		t.Fatal(err)
	}
	in := `{"messages":[{"role":"user","content":"hi <b>"}],"add_generation_prompt":true}
{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"extra":[1]}
[]
`
	o := command(t, in, "template", model, "--jsonl")
	want := `{"text":"<user> hi <b>\n<assistant>"}
{"text":"<user> a\n<assistant> b\n"}
{"error":"not a JSON object: want {\"messages\": [{\"role\": \"user\", \"content\": \"...\"}]}"}
`
	if o.status != exitOK || o.out != want {
		t.Errorf("%+v", o)
	}
	o = command(t, in, "template", "--file", file, "--jsonl")
	lines := strings.Split(o.out, "\n")
	if len(lines) != 4 || lines[0] != `{"text":"1None"}` || !strings.HasPrefix(lines[1], `{"error":"`) ||
		!strings.Contains(lines[1], "too many") {
		t.Errorf("%+v", o)
	}
	command(t, "", "template").oneErrorLine(t, exitUsage, "want MODEL or --file")
	command(t, "", "template", model).oneErrorLine(t, exitFailed, "not a JSON object: want")
	command(
		t,
		`{"messages":[]} {"messages":[]}`,
		"template",
		model,
	).oneErrorLine(t, exitFailed, "more behind the JSON object")
	if err := os.WriteFile(file, bytes.Repeat([]byte{'x'}, 5<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	command(t, "{}", "template", "--file", file).oneErrorLine(t, exitFailed, "too many for a template")
	if o := command(t, `{"messages":[{"role":"user","content":"hi"}]}`, "template", model); o.out != "<user> hi\n" {
		t.Errorf("%+v", o)
	}
}

func TestDoctorCommand(t *testing.T) {
	o := command(t, "", "doctor", "--json", "--quick")
	var r report
	if err := json.Unmarshal([]byte(o.out), &r); err != nil {
		t.Fatalf("%v: %+v", err, o)
	}
	if r.Processor.Cores < 1 || len(r.Levels) < 1 || r.Using == "" || len(r.Models) < 10 || r.GPUs == nil {
		t.Errorf("%+v", r)
	}
	if o := command(t, "", "doctor", "--quick"); o.status != exitOK || !strings.Contains(o.out, "Processor") ||
		!strings.Contains(o.out, "qwen3-8b") {
		t.Errorf("%+v", o)
	}
}

func TestCompletion(t *testing.T) {
	o := command(t, "", "__complete", "run", "smol")
	if !strings.Contains(o.out, "smollm2-135m") || !strings.Contains(o.out, "smollm3-3b") ||
		strings.Contains(o.out, "qwen") {
		t.Errorf("%+v", o)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if o := command(t, "", "completion", shell); o.status != exitOK || !strings.Contains(o.out, "baleen") {
			t.Errorf("%s: status %d", shell, o.status)
		}
	}
}

// TestLinesAreAnsweredAtOnce: a program that asks line by line gets each answer before it asks on.
func TestLinesAreAnsweredAtOnce(t *testing.T) {
	model := tinyFile(t, testTemplate)
	for _, tc := range []struct {
		line string
		args []string
	}{
		{`"hello"`, []string{"tokenize", model, "--jsonl"}},
		{`[1,2]`, []string{"detokenize", model, "--jsonl"}},
		{`{"messages":[]}`, []string{"template", model, "--jsonl"}},
	} {
		in, ask := io.Pipe()
		answers, out := io.Pipe()
		status := make(chan int, 1)
		go func() {
			status <- Main(tc.args, IO{In: in, Out: out, Err: io.Discard, Environ: []string{"BALEEN_HOME=" + t.TempDir()}})
			out.Close()
		}()
		lines := bufio.NewScanner(answers)
		for range 3 {
			if _, err := io.WriteString(ask, tc.line+"\n"); err != nil {
				t.Fatal(err)
			}
			if !lines.Scan() || lines.Text() == "" {
				t.Fatalf("%s: no answer (%v)", tc.args[0], lines.Err())
			}
		}
		ask.Close()
		if got := <-status; got != exitOK {
			t.Errorf("%s: status %d", tc.args[0], got)
		}
	}
}

// TestSettingsTakeWhatTheyShow: what /set shows of a setting can be typed behind its name.
func TestSettingsTakeWhatTheyShow(t *testing.T) {
	model := tinyFile(t, testTemplate)
	names := []string{"temperature", "top-p", "top-k", "min-p", "repetition-penalty", "max-tokens"}
	in := "/set seed 5\n/set seed random\n/set thinking on\n/set thinking default\n/show\n"
	for _, name := range names {
		in += "/set " + name + " 1\n/set " + name + " default\n/set " + name + " off\n"
	}
	var out, errs bytes.Buffer
	status := Main([]string{"run", model, "--threads", "1", "-n", "4"}, IO{
		In: strings.NewReader(
			in + "/show\n/exit\n",
		), Out: &out, Err: &errs, InTTY: true, Environ: []string{"BALEEN_HOME=" + t.TempDir(), "TERM=dumb"},
	})
	if status != exitOK || strings.Contains(errs.String(), "wants") {
		t.Fatalf("status %d: %s", status, errs.String())
	}
	for _, want := range []string{
		"temperature          default", "max-tokens           4", "thinking             default", "seed                 random",
		"temperature          0", "top-p                1", "top-k                0", "repetition-penalty   1", "max-tokens           off",
	} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("no %q in %q", want, errs.String())
		}
	}
}

func TestChatCommands(t *testing.T) {
	model := tinyFile(t, testTemplate)
	var out, errs bytes.Buffer
	dir := t.TempDir()
	in := "hello\n/set temperature 0.5\n/set top-p 9\n/set top-k many\n/set nonsense 1\n/show\n/load early\n/save a " +
		"b/../c\n/save two words\n/save talk\n/clear\n/load talk\n/show conversation\n/retry\n/load ../x\n/load " +
		"nosuch\n/load\n/nonsense\n\"\"\"two\nlines\"\"\"\n/exit\n"
	status := Main(
		[]string{"run", model, "-n", "4", "--threads", "1", "--seed", "1"},
		IO{ // with another seed an answer may end before
			In: strings.NewReader(
				in,
			), Out: &out, Err: &errs, InTTY: true, Environ: []string{"BALEEN_HOME=" + dir, "TERM=dumb"},
		},
	)
	if status != exitOK {
		t.Fatalf("status %d: %s", status, errs.String())
	}
	for _, want := range []string{
		"temperature is set", ">>> top-p is 9, want 0 (off) to 1", "there is no setting nonsense", "temperature          0.5", "top-p                default",
		"2 messages are in", "2 messages are loaded", "user: hello",
		`there is no kept conversation "early"; there are none; /save NAME keeps this one`,
		`there is no kept conversation "nosuch"; there is talk`, "want a name; there is talk",
		`"a b/../c" cannot be a conversation's name: one word of`, `"two words" cannot be`, `"../x" cannot be`, "there is no command /nonsense", `>>> top-k wants a whole number, not "many"`,
	} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("no %q in %q", want, errs.String())
		}
	}
	if strings.Count(errs.String(), "cut off after 4 tokens") != 3 { // hello, its retry, two lines
		t.Errorf("%q", errs.String())
	}
	if fi, err := os.Stat(filepath.Join(dir, "chats", "talk.json")); err != nil ||
		fi.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("%v, %v", fi, err)
	}
}
