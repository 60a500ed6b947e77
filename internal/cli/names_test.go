package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/baleenrun/baleen/internal/config"
	"github.com/baleenrun/baleen/internal/store"
)

func TestRunArguments(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "m.gguf")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	st := store.Open(dir)
	for _, tc := range []struct {
		args          []string
		model, prompt string
		has           bool
		problem       string
	}{
		{nil, "default", "", false, ""},
		{[]string{"What is this?"}, "default", "What is this?", true, ""},
		{[]string{"Hello!"}, "default", "Hello!", true, ""},
		{[]string{"1+1"}, "default", "1+1", true, ""},
		{[]string{"鲸鱼是什么"}, "default", "鲸鱼是什么", true, ""},
		{[]string{"smollm2-135m"}, "smollm2-135m", "", false, ""},
		{[]string{"smolm2-135m", "hi"}, "smolm2-135m", "hi", true, ""},
		{[]string{"smolm2-135m is what?"}, "default", "smolm2-135m is what?", true, ""},
		{[]string{file}, file, "", false, ""},
		{[]string{dir}, dir, "", false, ""},
		{[]string{file, "hi"}, file, "hi", true, ""},
		{[]string{"smollm2-135m", "smollm2-135m"}, "smollm2-135m", "smollm2-135m", true, ""},
		{[]string{"-p", "hello"}, "default", "hello", true, ""},
		{[]string{"smollm2-135m", "-p", "hello"}, "smollm2-135m", "hello", true, ""},
		{[]string{"-m", "smollm2-135m", "-p", "hello"}, "smollm2-135m", "hello", true, ""},
		{[]string{"-m", "smollm2-135m", "hello"}, "smollm2-135m", "hello", true, ""},
		{[]string{"-m", "smollm2-135m"}, "smollm2-135m", "", false, ""},
		{[]string{"-hf", "org/repo:Q4_K_M", "-p", "hello"}, "hf.co/org/repo:Q4_K_M", "hello", true, ""},
		{[]string{"-m", file, "-f", file}, file, "", true, ""},
		{[]string{"-p", "a", "-f", file}, "", "", false, "--prompt and --file exclude each other"},
		{[]string{"-m", "a", "-p", "b", "c"}, "", "", false, `got the argument "c"`},
		{[]string{"-p", "a", "b", "c"}, "", "", false, "want at most the MODEL"},
	} {
		f := &runFlags{}
		cmd := (&app{}).runCommandOf(f)
		if err := cmd.ParseFlags(spelled(append([]string{"run"}, tc.args...))[1:]); err != nil {
			t.Fatal(err)
		}
		model, prompt, has, err := f.runArgs(st, cmd.Flags().Args(), "default")
		if tc.problem != "" {
			if err == nil || !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("%q: error %v, want %q", tc.args, err, tc.problem)
			}
			continue
		}
		if err != nil || model != tc.model || prompt != tc.prompt || has != tc.has {
			t.Errorf("%q: %q %q %v %v", tc.args, model, prompt, has, err)
		}
	}
}

// TestUnknownNamesAreNoPrompts: one word that looks like a model or a path is one, or an error that names what may
// have been meant; the default model is not asked.
func TestUnknownNamesAreNoPrompts(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("models", 0o755); err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]string{
		"mistral":     `there is no model "mistral" on this machine, which has none yet (to fetch it: baleen pull mistral; to say it as a prompt: baleen run -p mistral)`,
		"llama3:8b":   `there is no model "llama3:8b" on this machine`,
		"hello":       "baleen run -p hello",
		"smolm2-135m": `there is no model "smolm2-135m"; did you mean "smollm2-135m"? (to say it as a prompt: baleen run -p smolm2-135m)`,
		"smollm2":     `did you mean "smollm2-135m"?`,
		"org/repo": "org/repo is not on this machine: fetch it from hf.co/org/repo with: baleen pull " +
			"org/repo",
		"org/repo:Q4_K_M":     "baleen pull org/repo:Q4_K_M",
		"models/foo.bin":      "there is no file or folder models/foo.bin",
		"models/foo":          "there is no file or folder models/foo",
		"elsewhere/model.bin": "there is no file or folder elsewhere/model.bin",
		"missing.gguf":        "there is no file or folder missing.gguf",
		"./missing":           "there is no file or folder ./missing",
		`C:\models\x.gguf`:    "there is no file or folder",
		"ftp://host/x.gguf":   "is an address of a kind that cannot be fetched",
	} {
		for _, args := range [][]string{{"run", word}, {"run", "-m", word, "-p", "hi"}} {
			o := command(t, "", args...)
			if args[1] == "-m" {
				want, _, _ = strings.Cut(want, " (to")
				want = strings.TrimPrefix(want, "baleen run -p ")
			}
			if lines := strings.Count(o.err, "\n"); o.status != exitFailed || o.out != "" || lines != 1 ||
				!strings.Contains(o.err, want) {
				t.Errorf("%q: %+v, want one line with %q", args, o, want)
			}
		}
	}
	command(
		t,
		"",
		"run",
		"hello",
		"world",
	).oneErrorLine(t, exitFailed, `a prompt stands in quotes: baleen run "hello world"`)
	command(
		t,
		"",
		"run",
		"hello,",
		"world",
	).oneErrorLine(t, exitUsage, `"hello," is no model; a prompt stands in quotes`)
}

// TestFetchingAsks: on a terminal a repository is fetched after a yes.
func TestFetchingAsks(t *testing.T) {
	for answer, want := range map[string]string{"n\n": "baleen: nothing was fetched", "\n": "baleen: nothing was " +
		"fetched", "y\n": "baleen: "} {
		var out, errs bytes.Buffer
		env := []string{"BALEEN_HOME=" + t.TempDir(), "HF_ENDPOINT=http://127.0.0.1:1"} // nobody listens there
		status := Main(
			[]string{"run", "org/repo:Q4_K_M"},
			IO{In: strings.NewReader(answer), Out: &out, Err: &errs, Environ: env, InTTY: true, ErrTTY: true},
		)
		asked, rest, _ := strings.Cut(errs.String(), "[y/N] ")
		if status != exitFailed ||
			asked != "org/repo:Q4_K_M is not on this machine. Fetch it from hf.co/org/repo:Q4_K_M? " ||
			!strings.HasPrefix(rest, want) ||
			strings.Contains(rest, "127.0.0.1:1") != (answer == "y\n") {
			t.Errorf("%q: status %d, %q", answer, status, errs.String())
		}
	}
}

// TestOtherSpellings: command lines of llama.cpp and Ollama work, and what has no effect says so.
func TestOtherSpellings(t *testing.T) {
	model := tinyFile(t, "")
	want := command(
		t,
		"",
		"run",
		model,
		"once",
		"--max-tokens",
		"4",
		"--temperature",
		"0",
		"--context",
		"64",
		"--threads",
		"1",
	)
	if want.status != exitOK || want.out == "" {
		t.Fatalf("%+v", want)
	}
	prompt := filepath.Join(t.TempDir(), "prompt.txt")
	if err := os.WriteFile(prompt, []byte("once\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const none = "baleen: --gpu-layers has no effect: a model runs on one device as a whole, which --device names\n"
	for line, says := range map[string]string{
		"-m MODEL -p once -n 4 --temp 0 -c 64 -t 1":                       "",
		"-m MODEL -f PROMPT --n-predict 4 --temp 0 --ctx-size 64 -ngl 99": none,
		"-m MODEL -p once --predict 4 --temp 0 -ngl=99":                   none,
		"-m MODEL -p once -n 4 --temp 0 -ngl 0 -s 1 --repeat-penalty 1":   "",
		"-m MODEL -p once -n 4 --temp 0 -fa on -no-cnv": "baleen: --flash-attn has no effect: " +
			"attention is always computed in tiles\nbaleen: --no-conversation has no effect: a prompt is answered " +
			"once; --raw leaves the chat template out\n",
		"MODEL once --verbose --max-tokens 4 --temp 0 --top-k 5 --think":    "baleen: prompt ",
		"MODEL once -n 4 --temp 0 --keepalive 5m --hidethinking --nowarmup": "unknown flag: --nowarmup",
	} {
		args := strings.Fields(strings.NewReplacer("MODEL", model, "PROMPT", prompt).Replace(line))
		o := command(t, "", append([]string{"run"}, args...)...)
		got := strings.ReplaceAll(
			o.err,
			"baleen: Tiny is a base model without a chat template: it continues the text\n",
			"",
		)
		got = got[:min(len(got), len(got))]
		if strings.HasPrefix(says, "unknown") {
			if o.status != exitUsage || !strings.Contains(o.err, says) {
				t.Errorf("%s: %+v", line, o)
			}
			continue
		}
		if o.status != exitOK || o.out != want.out ||
			(says == "") != !strings.Contains(got, "no effect") && !strings.Contains(says, "prompt") ||
			!strings.Contains(got, says) {
			t.Errorf("%s: %+v, want %q and %q", line, o, want.out, says)
		}
	}
	for says, args := range map[string][]string{
		"--format nothing.json: want json, or a file with a JSON Schema: no such file or directory": {
			"--format", "nothing.json",
		},
		"format": {"--format", `{"format":"regex"}`},
		"--format and --grammar exclude each other": {"--format", "json", "--grammar", "x"},
	} {
		command(t, "", append([]string{"run", model, "x"}, args...)...).oneErrorLine(t, exitUsage, says)
	}
	refused := command(t, "", "run", model, "x", "--format", `{"format":"regex"}`)
	if n := strings.Count(refused.err, "cannot be enforced"); n != 1 {
		t.Errorf("what is wrong is said %d times: %q", n, refused.err)
	}
	command(
		t,
		"",
		"run",
		model,
		"x",
		"--think=perhaps",
	).oneErrorLine(t, exitUsage, `--think "perhaps": want true, false, low, medium or high`)
}

// TestModelsAreOffered offers models wherever a command takes one: those that are here, and where it makes sense
// those of the catalog.
func TestModelsAreOffered(t *testing.T) {
	env := []string{"BALEEN_HOME=" + t.TempDir()}
	if o := commandEnv(t, env, "", "cp", tinyFile(t, ""), "mine"); o.status != exitOK {
		t.Fatalf("%+v", o)
	}
	for line, want := range map[string]string{
		"run ":              "mine qwen3-4b",
		"run --model ":      "mine qwen3-4b",
		"run -m ":           "mine qwen3-4b",
		"run mine ":         "-mine",
		"run --think=":      "high",
		"serve --model ":    "mine qwen3-4b",
		"serve -m ":         "mine qwen3-4b",
		"pull ":             "mine qwen3-4b",
		"pull qwen3-4b ":    "mine -qwen3-4b",
		"show ":             "mine -qwen3-4b",
		"rm ":               "mine -qwen3-4b",
		"rm mine ":          "-mine",
		"cp ":               "mine -qwen3-4b",
		"cp mine ":          "-mine",
		"tokenize ":         "mine qwen3-4b",
		"detokenize ":       "mine qwen3-4b",
		"template ":         "mine qwen3-4b",
		"eval ":             "mine qwen3-4b",
		"bench ":            "mine qwen3-4b",
		"stop --port 1 ":    "-mine",
		"run --device cuda": "",
		"run --kv ":         "f32",
		"help ":             "environment run",
	} {
		args := append([]string{"__complete"}, strings.Split(line, " ")...)
		o := commandEnv(t, env, "", args...)
		for _, word := range strings.Fields(want) {
			name, not := strings.CutPrefix(word, "-")
			if has := strings.Contains("\n"+o.out, "\n"+name+"\t") || strings.Contains("\n"+o.out, "\n"+name+"\n"); has == not ||
				o.status != exitOK {
				t.Errorf("%q offers %q, %s: %v", line, o.out, name, has)
			}
		}
	}
}

func TestKeepAlive(t *testing.T) {
	for text, want := range map[string]time.Duration{"-1": -1, "-5m": -1, "0": 0, "5": 5 * time.Second, "30s": 30 * time.Second, "1h30m": 90 * time.Minute} {
		var k keepAlive
		if err := k.Set(text); err != nil || k.d != want {
			t.Errorf("%q: %v, %v; want %v", text, k.d, err, want)
		}
	}
}

// TestHostVariables: BALEEN_HOST, and Ollama's where that is not set, say where a server is; flags win.
func TestHostVariables(t *testing.T) {
	for _, tc := range []struct {
		env  []string
		args []string
		want string
	}{
		{nil, nil, "127.0.0.1:57455"},
		{[]string{"BALEEN_HOST=127.0.0.1:1"}, nil, "127.0.0.1:1"},
		{[]string{"OLLAMA_HOST=127.0.0.2"}, nil, "127.0.0.2:11434"},
		{[]string{"OLLAMA_HOST=0.0.0.0:1"}, nil, "127.0.0.1:1"},
		{[]string{"OLLAMA_HOST=127.0.0.2", "BALEEN_HOST=127.0.0.3:3"}, nil, "127.0.0.3:3"},
		{[]string{"BALEEN_HOST=127.0.0.1:1"}, []string{"--port", "2"}, "127.0.0.1:2"},
		{[]string{"BALEEN_HOST=unix:/nowhere"}, nil, "/nowhere"},
		{[]string{"BALEEN_HOST=unix:/nowhere"}, []string{"--port", "2"}, "127.0.0.1:2"},
		{[]string{"BALEEN_HOST=127.0.0.1:1"}, []string{"--socket", "/nowhere"}, "/nowhere"},
	} {
		a := &app{io: IO{Environ: tc.env}}
		cfg, _, err := config.Load(tc.env)
		if err != nil {
			t.Fatal(err)
		}
		a.cfg = cfg
		r, cmd := &remote{}, &cobra.Command{}
		r.register(a, cmd)
		if err := cmd.ParseFlags(tc.args); err != nil {
			t.Fatal(err)
		}
		if err := cmd.PreRunE(cmd, nil); err != nil || r.address() != tc.want {
			t.Errorf("%v %v: %s, %v; want %s", tc.env, tc.args, r.address(), err, tc.want)
		}
	}
	if o := commandEnv(t, []string{"OLLAMA_HOST=a b"}, "", "ps"); o.status != exitUsage ||
		!strings.Contains(o.err, `OLLAMA_HOST="a b": want HOST`) {
		t.Errorf("%+v", o)
	}
	if o := command(t, "", "--version"); o.status != exitOK || o.out != command(t, "", "version").out {
		t.Errorf("%+v", o)
	}
}
