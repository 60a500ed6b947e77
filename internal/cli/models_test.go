package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/server/keeper"
	"github.com/baleenrun/baleen/internal/server/models"
	"github.com/baleenrun/baleen/internal/server/servertest"
	"github.com/baleenrun/baleen/internal/store"
)

// TestJSONKeys: what is printed as JSON has keys of small letters, and lists that are never null.
func TestJSONKeys(t *testing.T) {
	model := tinyFile(t, testTemplate)
	var check func(where string, v any)
	check = func(where string, v any) {
		switch v := v.(type) {
		case nil:
			t.Errorf("%s is null", where)
		case map[string]any:
			for k, sub := range v {
				if k != strings.ToLower(k) || strings.ContainsAny(k, " -") {
					t.Errorf("%s has the key %q", where, k)
				}
				check(where+"."+k, sub)
			}
		case []any:
			for _, sub := range v {
				check(where+"[]", sub)
			}
		}
	}
	for _, args := range [][]string{
		{"list", "--json"},
		{"list", "--all", "--json"},
		{"show", model, "--json"},
		{"doctor", "--quick", "--json"},
		{"run", model, "once", "-n", "2", "--json"},
	} {
		o := command(t, "", args...)
		var v any
		if err := json.Unmarshal([]byte(o.out), &v); err != nil {
			t.Fatalf("%v: %v: %+v", args, err, o)
		}
		check(args[0], v)
	}
}

// TestIllFormedLines: what is no text, or no list of ids, is refused and not replaced by something near it.
func TestIllFormedLines(t *testing.T) {
	model := tinyFile(t, "")
	for line, ok := range map[string]bool{
		`"a"`: true, `"\ud83d\udc0b"`: true, `"\\ud83d"`: true, `"\\\\ud83d"`: true, `"\ufffd"`: true, "\"\ufffd\"": true,
		`"\ud83d"`: false, `"\udc0b"`: false, `"\ud83d\n"`: false, `"\ud83d\ud83d"`: false, `"\\\ud83d"`: false, "\"a\xffb\"": false,
	} {
		o := command(t, line+"\n", "tokenize", model, "--jsonl")
		if ok && o.status != exitOK {
			t.Errorf("%s: %+v", line, o)
		} else if !ok {
			o.oneErrorLine(t, exitFailed, "no text")
		}
	}
	for _, line := range []string{`[1,null,2]`, `null`, `[1.5]`, `["1"]`, `[-1]`} {
		command(t, line+"\n", "detokenize", model, "--jsonl").oneErrorLine(t, exitFailed, "token id")
	}
}

// TestOneOutput: flags that each ask for another output exclude each other.
func TestOneOutput(t *testing.T) {
	model := tinyFile(t, testTemplate)
	for _, args := range [][]string{
		{"show", model, "--json", "--template"},
		{"show", model, "--json", "--licence"},
		{"show", model, "--template", "--licence"},
		{"tokenize", model, "x", "--pieces", "--count"},
	} {
		command(t, "", args...).oneErrorLine(t, exitUsage, "exclude each other")
	}
}

// TestRealModels runs the default model as a newcomer does. It is for runs that may fetch: BALEEN_TEST_MODELS=1.
func TestRealModels(t *testing.T) {
	if os.Getenv("BALEEN_TEST_MODELS") == "" {
		t.Skip("BALEEN_TEST_MODELS is not set")
	}
	run := func(stdin string, args ...string) (string, string) {
		t.Helper()
		var out, errs bytes.Buffer
		if status := Main(args, IO{In: strings.NewReader(stdin), Out: &out, Err: &errs, Environ: os.Environ()}); status != exitOK {
			t.Fatalf("%q: status %d: %s", args, status, errs.String())
		}
		return out.String(), errs.String()
	}
	t.Run("capital", func(t *testing.T) {
		if out, _ := run("", "run", "What is the capital of France?", "-n", "24", "--temp", "0"); !strings.Contains(
			out,
			"Paris",
		) {
			t.Errorf("answered %q", out)
		}
	})
	t.Run("piped with a system prompt", func(t *testing.T) {
		out, _ := run(
			"def add(a, b):\n    return a + b\n",
			"run",
			"What does this function do?",
			"--system",
			"Answer in one short sentence.",
			"--json",
			"-n",
			"40",
			"--temp",
			"0",
		)
		var r runResult
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.ToLower(r.Text), "add") && !strings.Contains(strings.ToLower(r.Text), "sum") {
			t.Errorf("answered %q", r.Text)
		}
	})
	// What llama.cpp continues greedily as well.
	t.Run("base model", func(t *testing.T) {
		out, errs := run("", "run", "gemma3-270m", "The capital of France is", "-n", "12", "--temp", "0")
		if !strings.Contains(out, "capital of the country") || !strings.Contains(errs, "without a chat template") {
			t.Errorf("continued %q and said %q", out, errs)
		}
	})
}

// TestMisspeltModels names models nearly right; nothing may be fetched for these.
func TestMisspeltModels(t *testing.T) {
	for _, args := range [][]string{
		{"run", "smolm2-135m"},
		{"run", "smolm2-135m", "hello"},
		{"show", "smolm2-135m"},
		{"cp", "smolm2-135m", "x"},
		{"pull", "smolm2-135m"},
		{"bench", "smolm2-135m"},
		{"tokenize", "smolm2-135m", "x"},
		{"serve", "--model", "smolm2-135m", "--port", "0"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			command(
				t,
				"",
				args...).oneErrorLine(t, exitFailed, `there is no model "smolm2-135m"; did you mean "smollm2-135m"?`)
		})
	}
	env := []string{"BALEEN_HOME=" + t.TempDir()}
	if o := commandEnv(t, env, "", "cp", tinyFile(t, ""), "helper"); o.status != exitOK {
		t.Fatalf("%+v", o)
	}
	for _, args := range [][]string{{"rm", "helpr"}, {"show", "helpr"}, {"run", "helpr"}} {
		commandEnv(t, env, "", args...).oneErrorLine(t, exitFailed, `there is no model "helpr"; did you mean "helper"?`)
	}
}

func TestSharesOfNothingAreLeftOut(t *testing.T) {
	format := func(name string, bytes int64) model.Format { return model.Format{Name: name, Bytes: bytes} }
	for _, c := range []struct {
		formats []model.Format
		want    string
	}{
		{[]model.Format{format("F16", 9990), format("F32", 10)}, "F16"},
		{[]model.Format{format("F16", 9950), format("F32", 50)}, "F16"},
		{[]model.Format{format("F16", 9949), format("F32", 51)}, "F16 99 %, F32 1 %"},
		{[]model.Format{format("Q4_K", 600), format("Q6_K", 399), format("F32", 1)}, "Q4_K 60 %, Q6_K 40 %"},
		{[]model.Format{format("F32", 0)}, "F32"},
		{nil, ""},
	} {
		if got := mostly(model.Role{Formats: c.formats}).Quantization(); got != c.want {
			t.Errorf("%v: %q, want %q", c.formats, got, c.want)
		}
	}
}

// TestModelsMadeForServers wants the command line to know what clients of a server made: it lists and removes that, and
// leaves the weights alone that it was made of.
func TestModelsMadeForServers(t *testing.T) {
	home := t.TempDir()
	env := []string{"BALEEN_HOME=" + home}
	path := filepath.Join(home, "models", "weights.gguf")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := (servertest.Checkpoint{}).Write(path); err != nil {
		t.Fatal(err)
	}
	run := func(status int, want string, args ...string) {
		t.Helper()
		if o := commandEnv(t, env, "", args...); o.status != status || !strings.Contains(o.out+o.err, want) {
			t.Errorf("%v: status %d, want %q: %s%s", args, o.status, want, o.out, o.err)
		}
	}
	st := store.Open(home)
	k := &keeper.Keeper{Store: st, Catalog: models.New(st)}
	if err := k.Copy(t.Context(), "weights", "mine:v1"); err != nil {
		t.Fatal(err)
	}
	run(exitOK, "made of weights", "list")
	run(exitOK, `"parent": "weights"`, "list", "--json")
	run(exitFailed, "mine:v1 was made of weights, and only run and serve know its settings", "tokenize", "mine:v1", "x")
	run(exitOK, "", "run", "mine:v1", "hi", "-n", "2")
	run(exitOK, "", "cp", "mine:v1", "yours")
	if d, ok, err := k.Catalog.Derived("yours"); err != nil || !ok || d.Parent != "weights" {
		t.Errorf("the copy: %+v, %v", d, err)
	}
	run(exitOK, "", "cp", "mine:v1", "yours:latest") // as create, it replaces what was made
	run(exitFailed, "there is a model yours already", "cp", "weights", "yours")
	run(exitFailed, "there is a model weights already", "cp", "yours", "weights")
	run(exitUsage, "cannot be a model's name", "cp", "yours", "../x")
	run(exitOK, "", "run", "yours", "hi", "-n", "2")
	run(exitOK, "removed yours", "rm", "yours")
	run(exitFailed, "needs its weights", "rm", "weights")
	run(exitOK, "removed mine:v1", "rm", "mine:v1")
	run(exitOK, "removed weights", "rm", "weights")
	run(exitOK, "there are no models", "list")
}
