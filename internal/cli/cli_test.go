package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/baleenrun/baleen/internal/agent/sandbox"
	"github.com/baleenrun/baleen/internal/bench"
	"github.com/baleenrun/baleen/internal/gguf"
	"github.com/baleenrun/baleen/internal/quant"
	"github.com/baleenrun/baleen/internal/synth"
)

// testTemplate is a small chat template in the usual form.
const testTemplate = `{% for m in messages %}<{{ m.role }}> {{ m.content }}
{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}`

// tinyFile writes a model of random weights.
func tinyFile(t *testing.T, template string) string {
	t.Helper()
	s, err := synth.Lookup("tiny")
	if err != nil {
		t.Fatal(err)
	}
	s.ChatTemplate = template
	r, err := synth.LookupRecipe("Q8_0")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := synth.Write(t.Context(), f, s, r, 3, nil); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

type outcome struct {
	status   int
	out, err string
}

// command runs a command line with text on a pipe as standard input.
func command(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	return commandEnv(t, nil, stdin, args...)
}

func commandEnv(t *testing.T, env []string, stdin string, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	env = append([]string{"BALEEN_HOME=" + t.TempDir(), "BALEEN_THREADS=1"}, env...)
	status := Main(args, IO{In: strings.NewReader(stdin), Out: &out, Err: &errs, Environ: env})
	return outcome{status, out.String(), errs.String()}
}

// oneErrorLine wants a failure with one line that has want in it.
func (o outcome) oneErrorLine(t *testing.T, status int, want string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(o.err), "\n")
	if status == exitUsage {
		if len(lines) != 2 || !strings.HasPrefix(lines[1], "Try: baleen") {
			t.Errorf("a usage error has a line and a hint, got %q", o.err)
		}
		lines = lines[:1]
	}
	if o.status != status || len(lines) != 1 || !strings.HasPrefix(lines[0], "baleen: ") ||
		!strings.Contains(lines[0], want) {
		t.Errorf("status %d and %q, want status %d and one line with %q", o.status, o.err, status, want)
	}
	if o.out != "" {
		t.Errorf("standard output has %q", o.out)
	}
}

func TestPipedPrompts(t *testing.T) {
	for _, tc := range []struct {
		in, arg string
		has     bool
		want    string
		wantHas bool
		problem string
	}{
		{"", "", false, "", false, ""},
		{"\n", "", false, "", false, ""},
		{"text\n", "", false, "text", true, ""},
		{"", "arg", true, "arg", true, ""},
		{"line 1\nline 2\r\n", "arg", true, "arg\n\nline 1\nline 2", true, ""},
		{"\xff\xfe", "", false, "", false, "not UTF-8"},
	} {
		a := &app{io: IO{In: strings.NewReader(tc.in)}}
		got, has, err := a.pipedPrompt(tc.arg, tc.has)
		if tc.problem != "" {
			if err == nil || !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("%q: error %v", tc.in, err)
			}
			continue
		}
		if err != nil || got != tc.want || has != tc.wantHas {
			t.Errorf("%q with %q: %q, %v, %v", tc.in, tc.arg, got, has, err)
		}
	}
	a := &app{io: IO{In: strings.NewReader("typed"), InTTY: true}}
	if got, _, _ := a.pipedPrompt("arg", true); got != "arg" {
		t.Errorf("a terminal was read: %q", got)
	}
}

func TestUsageErrors(t *testing.T) {
	model := tinyFile(t, "")
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "--temprature", "1", "x"}, "unknown flag: --temprature; did you mean --temperature?"},
		{[]string{"run", "--temprature=1", "x"}, "did you mean --temperature?"},
		{[]string{"run", "-json", "x"}, "did you mean --json?"},
		{[]string{"show", model, "--licenc"}, "did you mean --licence?"},
		{[]string{"serve", "--prot", "1"}, "unknown flag: --prot"},
		{[]string{"rum"}, `there is no command "rum"; did you mean run`},
		{[]string{"rum", "--help"}, `there is no command "rum"; did you mean run`},
		{[]string{"--help", "rum"}, `there is no command "rum"`},
		{[]string{"run", "--context", "many"}, `baleen: --context "many": want a whole number`},
		{[]string{"keys", "revok"}, `there is no command "revok"; did you mean revoke?`},
		{[]string{"help", "rum"}, `there is no command "rum"`},
		{[]string{"run"}, "there is no prompt"},
		{[]string{"run", "--seed", "-1", "hi"}, `--seed wants a whole number that is not negative, not "-1"`},
		{[]string{"run", "--temperature", "hot", "hi"}, `--temperature wants a number, not "hot"`},
		{[]string{"serve", "--keep-alive", "soon"}, `--keep-alive "soon": want a time such as 30s or 5m, or -1 for good`},
		{[]string{"bench", model, "--streams", "a"}, `--streams wants whole numbers, not "a"`},
		{[]string{"synth", filepath.Dir(model), "--shape", "tiny"}, "is no regular file: name the file to write"},
		{[]string{"run", "a", "b", "c"}, "put the prompt in quotes"},
		{[]string{"run", "--max-tokens", "-3", "hi there"}, "--max-tokens is -3"},
		{[]string{"run", "--temperature", "-1", "hi"}, "temperature is -1"},
		{[]string{"run", "--top-p", "2", "hi"}, "baleen: --top-p is 2, want 0 (off) to 1"},
		{[]string{"run", "--threads", "0", "hi"}, "whole number from 1"},
		{[]string{"run", "--kv", "f8", "hi"}, "want one of f16, f32"},
		{[]string{"run", "--nonsense", "hi"}, "unknown flag: --nonsense"},
		{[]string{"run", model, "hi", "--system", "x"}, "--system needs a chat template"},
		{[]string{"run", model, "  "}, "the prompt is empty"},
		{[]string{"verify", model}, "--reference is missing"},
		{[]string{"verify"}, "got 0 arguments, want the PATH"},
		{[]string{"list", "x"}, "got 1 argument, want none"},
		{[]string{"completion"}, "which shell? bash, "},
		{[]string{"completion", "fihs"}, `there is no command "fihs"; did you mean fish?; the shells are bash, `},
		{[]string{"completion", "bash", "x"}, "got 1 argument, want none"},
		{[]string{"verify", model, "--reference", "x", "--batch", "100"}, "--batch is 100"},
		{[]string{"eval", model}, "--text is missing"},
		{[]string{"eval", model, "--text", "x", "--ctx", "2"}, "--ctx is 2"},
		{[]string{"bench", model, "--generate", "1"}, "generate 1"},
		{[]string{"bench", model, "--plot", "x.gif"}, "must end in .svg or .png"},
		{[]string{"bench", model, "--plot", "nowhere/x.svg"}, "cannot plot to nowhere/x.svg: there is no folder " +
			"nowhere"},
		{[]string{"synth", "x.gguf"}, "--shape is missing"},
		{[]string{"synth", "", "--shape", "tiny"}, "the FILE to write has no name"},
		{[]string{"synth", "x.gguf", "--shape", "huge"}, `no shape is named "huge"`},
		{[]string{"synth", "x.gguf", "--shape", "tiny", "--quant", "Q9"}, `no quantization is named "Q9"`},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			command(t, "", tc.args...).oneErrorLine(t, exitUsage, tc.want)
		})
	}
	o := commandEnv(t, []string{"BALEEN_CPU=fast"}, "", "version")
	if o.status != exitUsage || !strings.Contains(o.err, `BALEEN_CPU="fast": want one of`) {
		t.Errorf("wrong variable: %+v", o)
	}
}

// TestErrorsNameNoPackages: where in the program a fault was found is no word for who runs it.
func TestErrorsNameNoPackages(t *testing.T) {
	for text, want := range map[string]string{
		"gguf: tensor x is cut": "tensor x is cut", "a.gguf: gguf: cut": "a.gguf: cut", "a: family: gguf: b": "a: b", "open model: no": "open model: no",
		"one\nengine: two": "one; two", "the model: a": "the model: a", "cpu: model: x": "x", "--model: gone": "--model: gone",
	} {
		if got := oneLine(errors.New(text)); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	bad := filepath.Join(t.TempDir(), "bad.gguf")
	if err := os.WriteFile(bad, []byte("GGUF\x03\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"run", bad, "x y"}, {"show", bad}, {"tokenize", bad, "x"}, {"bench", bad}} {
		if o := command(t, "", args...); o.status != exitFailed || strings.Contains(o.err, " gguf: ") ||
			strings.Contains(o.err, "family: ") {
			t.Errorf("%v: %+v", args, o)
		}
	}
}

// TestShowOfWhatCannotRun describes the model, and fails.
func TestShowOfWhatCannotRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "strange.gguf")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := gguf.NewWriter(f)
	if err := errors.Join(w.Set("general.architecture", "unheard-of"), w.Set("general.name", "Strange"), w.AddTensor("token_embd.weight", []int{32, 1}, quant.F32),
		w.WriteTensor("token_embd.weight", make([]byte, 128)), w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"show", path}, {"show", path, "--json"}} {
		o := command(t, "", args...)
		if o.status != exitFailed || !strings.Contains(o.out, "unheard-of") || !strings.HasPrefix(o.err, "baleen: ") ||
			!strings.Contains(o.err, "cannot run: ") {
			t.Errorf("%v: %+v", args, o)
		}
	}
}

// TestCreate makes models of a file and of a name, runs and shows them with what they were made with, and removes them.
func TestCreate(t *testing.T) {
	env := []string{"BALEEN_HOME=" + t.TempDir()}
	file := tinyFile(t, testTemplate)
	write := func(name, text string) string {
		path := filepath.Join(filepath.Dir(file), name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	run := func(stdin string, args ...string) outcome {
		t.Helper()
		o := commandEnv(t, env, stdin, args...)
		if o.status != exitOK {
			t.Fatalf("%q: %+v", args, o)
		}
		return o
	}
	of := write(
		"Modelfile",
		"FROM ./tiny.gguf\nSYSTEM \"\"\"Be brief.\"\"\"\nPARAMETER temperature 0\nPARAMETER num_predict 3\n",
	)
	if o := run("", "create", "terse", "-f", of); o.out != "created terse\n" {
		t.Errorf("%+v", o)
	}
	run("FROM terse\nPARAMETER num_predict 5\n", "create", "longer:v1", "-f", "-")
	want := run("", "run", file, "hi you", "--temp", "0", "-n", "3", "--system", "Be brief.")
	if o := run("", "run", "terse", "hi you"); o.out != want.out ||
		!strings.Contains(o.err, "cut off after 3 tokens, as this model's settings say") {
		t.Errorf("%+v, want %q", o, want.out)
	}
	if o := run("", "run", "longer:v1", "hi you", "--json"); !strings.Contains(o.out, `"generated_tokens": 5`) {
		t.Errorf("%+v", o)
	}
	for flag, want := range map[string]string{
		"--modelfile": "FROM ", "--parameters": "num_predict", "--system": "Be brief.\n", "--template": "for m in messages", "--context": "Made of",
	} {
		args := []string{"show", "terse", flag}
		if flag == "--context" {
			args = append(args, "64")
		}
		if o := run("", args...); !strings.Contains(o.out, want) {
			t.Errorf("%v: %+v", args, o)
		}
	}
	if o := run("", "list"); !strings.Contains(o.out, "made of tiny.gguf") ||
		!strings.Contains(o.out, "made of terse") {
		t.Errorf("%+v", o)
	}
	for text, want := range map[string]string{
		"SYSTEM x":                         "there is no FROM: name the model to start from",
		"FROM nowhere-at-all":              `there is no model "nowhere-at-all" on this machine`,
		"FROM ./nowhere.gguf":              "there is no file or folder ",
		"FROM ./tiny.gguf\nTEMPLATE {{ .X": "no template in Jinja",
		"FROM ./tiny.gguf\nADAPTER x":      "ADAPTER is not supported",
		"FROM ./tiny.gguf\nPARAMETER x 1":  `unknown parameter "x"`,
	} {
		commandEnv(t, env, "", "create", "bad", "-f", write("bad", text)).oneErrorLine(t, exitFailed, want)
	}
	commandEnv(
		t,
		env,
		"",
		"create",
		"bad",
		"-f",
		"none",
	).oneErrorLine(t, exitFailed, "there is no file none: name the Modelfile with --file")
	commandEnv(t, env, "", "create", "smollm2-135m", "-f", of).oneErrorLine(t, exitFailed, "is a name of the catalog")
	commandEnv(t, env, "", "create", "a b", "-f", of).oneErrorLine(t, exitUsage, "cannot be a model's name")
	run("", "rm", "longer:v1", "terse")
}

// TestHelpFitsTerminals: no help text is wider than a terminal that nobody made wider, and each ends its last line.
func TestHelpFitsTerminals(t *testing.T) {
	root := (&app{}).rootCommand()
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		if c.IsAdditionalHelpTopicCommand() {
			args = []string{"help", c.Name()}
		}
		o := command(t, "", args...)
		if o.status != exitOK || !strings.HasSuffix(o.out, "\n") || strings.HasSuffix(o.out, "\n\n") {
			t.Errorf("%v: status %d, ends in %q", args, o.status, o.out[max(0, len(o.out)-20):])
		}
		for line := range strings.Lines(o.out) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > helpWidth {
				t.Errorf("%v: %d columns: %s", args, n, line)
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
}

// TestFailedWorkersSpeakOnce: the process that measures has said why it failed.
func TestFailedWorkersSpeakOnce(t *testing.T) {
	_, err := bench.Measure(t.Context(), []string{os.Args[0], "bench", "nowhere.gguf"}, io.Discard)
	if got := (&app{}).workerFailed(err); !errors.Is(got, errFailed) {
		t.Errorf("%v became %v", err, got)
	}
}

// TestMain is the program where "bench" starts itself anew; as a test, it would run all tests again, and each would.
// It is the sandbox's helper as well.
func TestMain(m *testing.M) {
	sandbox.Helper()
	if len(os.Args) > 1 && os.Args[1] == "bench" {
		os.Exit(Main(os.Args[1:], System()))
	}
	os.Exit(m.Run())
}

// TestBenchRefusesBeforeItMeasures: a context that the model does not have costs no minutes of other measurements.
func TestBenchRefusesBeforeItMeasures(t *testing.T) {
	command(
		t,
		"",
		"bench",
		tinyFile(t, ""),
		"--depth",
		"99999",
	).oneErrorLine(t, exitFailed, "is more than the model's 2048")
}

// fullDisk takes room bytes and no more.
type fullDisk struct{ room int }

func (d *fullDisk) Write(b []byte) (int, error) {
	n := min(d.room, len(b))
	if d.room -= n; n < len(b) {
		return n, errors.New("no space left")
	}
	return n, nil
}

// TestLostOutputIsAFailure: what does not arrive on standard output was not done.
func TestLostOutputIsAFailure(t *testing.T) {
	model := tinyFile(t, testTemplate)
	for _, args := range [][]string{
		{"version"},
		{"version", "--json"},
		{"--help"},
		{"run", "--help"},
		{"completion", "bash"},
		{"list", "--all"},
		{"doctor", "--quick"},
		{"show", model},
		{"show", model, "--template"},
		{"pull", model},
		{"tokenize", model, "hello"},
		{"detokenize", model, "60", "61", "62", "63"},
		{"run", model, "hello", "-n", "2"},
		{"keys", "add", "mine"},
	} {
		for _, room := range []int{0, 2} {
			var errs bytes.Buffer
			status := Main(
				args,
				IO{
					In:      strings.NewReader(""),
					Out:     &fullDisk{room},
					Err:     &errs,
					Environ: []string{"BALEEN_HOME=" + t.TempDir(), "BALEEN_THREADS=1"},
				},
			)
			if status != exitFailed || strings.Count(errs.String(), "no space left") != 1 {
				t.Errorf("%q: status %d, %q", args, status, errs.String())
			}
		}
	}
}

func TestTextIsUTF8(t *testing.T) {
	model := tinyFile(t, testTemplate)
	command(t, "", "tokenize", model, "a\xff").oneErrorLine(t, exitFailed, "not UTF-8")
	command(t, "", "run", model, "a\xff").oneErrorLine(t, exitUsage, "not UTF-8")
	command(t, "", "run", model, "a", "--system", "\xff").oneErrorLine(t, exitUsage, "not UTF-8")
}

// TestBadFilesGiveOneLine opens what is no model, or one no longer.
func TestBadFilesGiveOneLine(t *testing.T) {
	good, err := os.ReadFile(tinyFile(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	mutate := func(at int, b ...byte) []byte {
		c := bytes.Clone(good)
		copy(c[at:], b)
		return c
	}
	for name, path := range map[string]string{
		"empty":         write("empty.gguf", nil),
		"text":          write("text.gguf", []byte("hello\x1b[31m\n")),
		"truncated":     write("truncated.gguf", good[:len(good)/2]),
		"header only":   write("header.gguf", good[:24]),
		"many tensors":  write("tensors.gguf", mutate(8, 255, 255, 255, 255, 255, 255, 255, 127)),
		"many keys":     write("keys.gguf", mutate(16, 255, 255, 255, 255, 255, 255, 255, 127)),
		"other version": write("version.gguf", mutate(4, 99)),
		"empty folder":  t.TempDir(),
	} {
		t.Run(name, func(t *testing.T) {
			command(t, "", "run", path, "hi").oneErrorLine(t, exitFailed, "")
			command(t, "", "pull", path).oneErrorLine(t, exitFailed, "")
			command(t, "", "cp", path, "mine").oneErrorLine(t, exitFailed, "")
			command(t, "", "verify", path, "--reference", path).oneErrorLine(t, exitFailed, "")
			text := write("t.txt", []byte(strings.Repeat("word ", 2000)))
			command(t, "", "eval", path, "--text", text).oneErrorLine(t, exitFailed, "")
		})
	}
}

func TestRunContinuesText(t *testing.T) {
	model := tinyFile(t, "")
	o := command(t, "", "run", model, "once upon a time", "-n", "5", "--temp", "0", "--stats")
	if o.status != exitOK || strings.TrimSpace(o.out) == "" {
		t.Fatalf("%+v", o)
	}
	for _, want := range []string{"a base model without a chat template", "cut off after 5 tokens", "answer 5 tokens"} {
		if !strings.Contains(o.err, want) {
			t.Errorf("standard error has no %q: %q", want, o.err)
		}
	}
	if again := command(t, "once upon a time\n", "run", model, "-n", "5", "--temp", "0"); again.out != o.out {
		t.Errorf("piped: %q, as an argument: %q", again.out, o.out)
	}
	if raw := command(t, "", "run", model, "once upon a time", "-n", "5", "--temp", "0", "--raw"); raw.out != o.out ||
		strings.Contains(raw.err, "template") {
		t.Errorf("--raw: %+v", raw)
	}
	if strings.Contains(o.out+o.err, "\x1b") {
		t.Errorf("escape codes on a pipe: %q %q", o.out, o.err)
	}
}

func TestRunJSON(t *testing.T) {
	model := tinyFile(t, testTemplate)
	args := []string{"run", model, "hello", "--json", "--stats", "-n", "6", "--temperature", "1", "--seed", "5"}
	var a, b runResult
	for _, r := range []*runResult{&a, &b} {
		o := command(t, "", args...)
		if o.status != exitOK || !strings.Contains(o.err, "answer 6 tokens") {
			t.Fatalf("%+v", o)
		}
		if err := json.Unmarshal([]byte(o.out), r); err != nil {
			t.Fatal(err)
		}
	}
	if a.Text != b.Text || len(a.Tokens) != 6 || a.Finish != "length" || a.Seed != 5 || a.Usage.Generated != 6 ||
		a.Usage.Prompt == 0 {
		t.Errorf("%+v and %+v", a, b)
	}
}

func TestPromptTooLongSaysTheCounts(t *testing.T) {
	model := tinyFile(t, "")
	command(
		t,
		strings.Repeat("word ", 400),
		"run",
		model,
		"--raw",
		"--context",
		"64",
	).oneErrorLine(t, exitFailed, "and the context of this model is 64 tokens")
}

func TestChatKeepsTheConversation(t *testing.T) {
	model := tinyFile(t, testTemplate)
	var out, errs bytes.Buffer
	in := "hello\n\n/help\nsecond \\\nline\n/clear\nthird\n/exit\nnever\n"
	status := Main([]string{"run", model, "-n", "4", "--stats", "--threads", "1"}, IO{
		In: strings.NewReader(
			in,
		), Out: &out, Err: &errs, InTTY: true, Environ: []string{"BALEEN_HOME=" + t.TempDir(), "TERM=dumb"},
	})
	if status != exitOK {
		t.Fatalf("status %d: %s", status, errs.String())
	}
	var prompts []string
	for line := range strings.Lines(errs.String()) {
		if _, rest, ok := strings.Cut(line, "baleen: prompt "); ok {
			prompts = append(prompts, rest)
		}
	}
	if len(prompts) != 3 {
		t.Fatalf("%d answers: %s", len(prompts), errs.String())
	}
	if strings.Contains(prompts[0], "from the cache") || !strings.Contains(prompts[1], "from the cache") {
		t.Errorf("the second prompt does not reuse the first: %q", prompts)
	}
	for _, want := range []string{"Ctrl-C stops", "The conversation is forgotten"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("no %q in %q", want, errs.String())
		}
	}
}

func TestVerifyCommand(t *testing.T) {
	const dir = "../family/testdata/goldens/"
	var first map[string]any
	for i, extra := range [][]string{nil, {"--batch", "3", "--chunk", "7"}, {"--threads", "2", "--cpu", "generic"}} {
		o := command(
			t,
			"",
			append(
				[]string{"verify", dir + "llama", "--reference", dir + "llama/golden.safetensors", "--json"},
				extra...)...)
		if o.status != exitOK {
			t.Fatalf("%+v", o)
		}
		var r map[string]any
		if err := json.Unmarshal([]byte(o.out), &r); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"family", "max_abs_error", "rms_error", "argmax_agreement", "greedy_agreement", "logits_sha256", "pass"} {
			if _, ok := r[key]; !ok {
				t.Errorf("the report has no %s", key)
			}
		}
		if i == 0 {
			first = r
		}
		if r["pass"] != true || r["family"] != "llama" || r["logits_sha256"] != first["logits_sha256"] {
			t.Errorf("%v: %v", extra, r)
		}
	}
	o := command(t, "", "verify", dir+"llama", "--reference", dir+"qwen2/golden.safetensors")
	if o.status != exitFailed || !(strings.HasSuffix(o.out, "FAIL\n") || strings.Contains(o.err, "the reference has")) {
		t.Errorf("another model's reference: %+v", o)
	}
}

func TestEvalCommand(t *testing.T) {
	model := tinyFile(t, "")
	text := filepath.Join(t.TempDir(), "t.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("the quick brown fox jumps over the lazy dog. ", 60)), 0o644); err != nil {
		t.Fatal(err)
	}
	var results []float64
	for _, extra := range [][]string{nil, {"--chunk", "5"}} {
		o := command(t, "", append([]string{"eval", model, "--text", text, "--ctx", "128", "--json"}, extra...)...)
		var r struct {
			Perplexity float64
			Windows    int
		}
		if err := json.Unmarshal([]byte(o.out), &r); err != nil || o.status != exitOK {
			t.Fatalf("%+v: %v", o, err)
		}
		if r.Windows < 2 || r.Perplexity < 10 || r.Perplexity > 1e5 { // random weights know nothing
			t.Errorf("%+v", r)
		}
		results = append(results, r.Perplexity)
	}
	if results[0] != results[1] {
		t.Errorf("chunks change the perplexity: %v", results)
	}
}

func TestSynthCommand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.gguf")
	if o := command(t, "", "synth", path, "--shape", "Tiny-MoE", "--quant", "q4_k_m"); o.status != exitOK ||
		!strings.Contains(o.out, "tiny-moe Q4_K_M") {
		t.Fatalf("%+v", o)
	}
	if o := command(t, "", "run", path, "hello", "-n", "3"); o.status != exitOK {
		t.Errorf("%+v", o)
	}
	left, _ := filepath.Glob(path + ".*")
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	command(t, "", "synth", filepath.Join(path, "y"), "--shape", "tiny").oneErrorLine(t, exitFailed, "")
}

func TestVersionJSON(t *testing.T) {
	o := command(t, "", "version", "--json", "--cpu", "generic")
	var v buildInfo
	if err := json.Unmarshal([]byte(o.out), &v); err != nil || v.Version == "" || v.CPU != "generic" {
		t.Errorf("%+v: %v", o, err)
	}
	command(t, "", "version", "now").oneErrorLine(t, exitUsage, "got 1 argument")
}

// TestHelpFitsATerminal: what is not a table or an example has lines of at most 80 characters.
func TestHelpFitsATerminal(t *testing.T) {
	var check func(cmd *cobra.Command, path []string)
	check = func(cmd *cobra.Command, path []string) {
		flags := false
		for line := range strings.Lines(command(t, "", append(path, "--help")...).out) {
			flags = flags || line == "Flags:\n"
			if n := len(line) - 1; n > helpWidth && (flags || !strings.HasPrefix(line, " ")) {
				t.Errorf("%v: %d characters: %s", path, n, line)
			}
		}
		for _, c := range cmd.Commands() {
			check(c, append(slices.Clone(path), c.Name()))
		}
	}
	check((&app{}).rootCommand(), nil)
	if got := fill("a b\nc\n\n  table  x\nd"); got != "a b c\n\n  table  x\nd" {
		t.Errorf("%q", got)
	}
}

func TestEveryCommandHasHelpWithExamples(t *testing.T) {
	root := (&app{}).rootCommand()
	for _, c := range root.Commands() {
		if c.Name() == "help" || c.Name() == "completion" || c.Name() == "version" || c.Name() == "environment" {
			continue
		}
		if c.Long == "" || c.Example == "" || c.Short == "" {
			t.Errorf("%s: help, example or summary is missing", c.Name())
		}
		for line := range strings.Lines(c.Long + "\n" + c.Example) {
			if len(strings.TrimRight(line, "\n")) > 110 {
				t.Errorf("%s: a help line of %d characters", c.Name(), len(line))
			}
		}
	}
}

func TestLineProgress(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := &lineProgress{w: &out, now: func() time.Time { return now }}
	p.Start("X", 100e6, 500e6)
	for range 40 {
		now = now.Add(time.Second)
		p.Set(p.done + 10e6)
	}
	p.Stop()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if lines[0] != "Fetching X (500 MB, continuing at 100 MB)" || len(lines) < 6 || len(lines) > 10 {
		t.Errorf("lines %q", lines)
	}
	if !strings.Contains(out.String(), "10 MB/s") || !strings.Contains(out.String(), "35s left") {
		t.Errorf("no speed or time left: %q", lines)
	}
}

func TestBarProgress(t *testing.T) {
	var out bytes.Buffer
	synctest.Test(t, func(*testing.T) { // it draws at most some times a second
		a := &app{io: IO{Err: &out, ErrTTY: true}}
		p := a.progress()
		p.Start("X", 0, 500e6)
		time.Sleep(time.Second)
		p.Set(250e6)
		time.Sleep(time.Second)
		p.Set(500e6)
		p.Stop()
	})
	for _, want := range []string{"Fetching X (500 MB)", "50%", "100%", "250/500 MB"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %q", want, out.String())
		}
	}
}

func TestErrorsAreOnePlainLine(t *testing.T) {
	err := errors.Join(errors.New("first \x1b[31mred"), errors.New("second\r\n\x00line\u009b"))
	if got, want := oneLine(err), "first ?[31mred; second?; ?line?"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	long := oneLine(errors.New(strings.Repeat("é", maxLine) + "tail")) // a file may hold names of megabytes
	if want := strings.Repeat("é", maxLine) + "..."; long != want {
		t.Errorf("%d bytes, want %d", len(long), len(want))
	}
}

func TestModelsCannotSteerTheTerminal(t *testing.T) {
	a := &app{io: IO{OutTTY: true}}
	if got := a.printable("a\x1b]0;title\x07b\tc\n\u009bd"); got != "a]0;titleb\tc\nd" {
		t.Errorf("%q", got)
	}
	a.io.OutTTY = false
	if got := a.printable("\x1b"); got != "\x1b" {
		t.Errorf("a pipe got %q", got)
	}
}

// TestInterruptEndsQuietly stops an answer as Ctrl-C does.
func TestInterruptEndsQuietly(t *testing.T) {
	if model := os.Getenv("BALEEN_TEST_INTERRUPT"); model != "" {
		sys := System()
		sys.In = strings.NewReader("")
		os.Exit(Main([]string{"run", model, "--raw", "once", "--threads", "1", "--temperature", "0"}, sys))
	}
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	child := exec.Command(os.Args[0], "-test.run=^TestInterruptEndsQuietly$")
	child.Env = append(os.Environ(), "BALEEN_TEST_INTERRUPT="+tinyFile(t, ""), "BALEEN_HOME="+t.TempDir())
	var errs bytes.Buffer
	child.Stderr = &errs
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 1)
	if _, err := io.ReadFull(out, first); err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	if err := child.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	got := child.ProcessState.ExitCode()
	finished := strings.Contains(errs.String(), "context of 2048 tokens is full") // it was faster than the signal
	if !(got == exitSignal && errs.Len() == 0) && !(got == exitOK && finished) {
		t.Errorf("status %d, standard error %q", got, errs.String())
	}
}
