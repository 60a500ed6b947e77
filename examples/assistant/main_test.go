package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// script calls the tool that the question is about, and then says what came back.
func script(prompt string) string {
	last := prompt[strings.LastIndex(prompt, "<|im_start|>user"):]
	switch {
	case strings.Contains(last, "<tool_response>"):
		_, result, _ := strings.Cut(last, "<tool_response>\n")
		result, _, _ = strings.Cut(result, "\n</tool_response>")
		return "<think>\nSo that is it.\n</think>\n\nIt says: " + result
	case strings.Contains(last, "6 times 7"):
		return servertest.ToolCall("calculate", `{"a": 6, "operation": "*", "b": 7}`)
	case strings.Contains(last, "notes"):
		return servertest.ToolCall("read_file", `{"path": "notes.txt"}`)
	case strings.Contains(last, "secret"):
		return servertest.ToolCall("read_file", `{"path": "../secret.txt"}`)
	}
	return "I do not know."
}

func TestAssistant(t *testing.T) {
	dir := t.TempDir()
	folder, checkpoint := filepath.Join(dir, "folder"), filepath.Join(dir, "scripted.gguf")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{filepath.Join(folder, "notes.txt"): "buy milk", filepath.Join(dir, "secret.txt"): "abracadabra"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := (servertest.Checkpoint{}).Write(checkpoint); err != nil {
		t.Fatal(err)
	}
	b, err := servertest.NewBackend(checkpoint, script)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(lines string) (out, log string) {
		t.Helper()
		var o, l bytes.Buffer
		args := []string{"-model", checkpoint, "-folder", folder, "-session", filepath.Join(dir, "talk.json")}
		if err := run(model.WithBackend(t.Context(), b), args, strings.NewReader(lines), &o, &l); err != nil {
			t.Fatalf("%v: %s", err, l.String())
		}
		return o.String(), l.String()
	}
	out, log := ask("How much is 6 times 7?\nWhat do my notes say?\nAnd the secret?\n")
	if !strings.Contains(out, "It says: 42\n") || !strings.Contains(out, "It says: buy milk\n") {
		t.Errorf("answered %q", out)
	}
	if strings.Contains(out, "abracadabra") || !strings.Contains(out, "It says: Error") {
		t.Errorf("a path led out of the folder: %q", out)
	}
	if strings.Contains(out, "So that is it") || !strings.Contains(log, "So that is it") ||
		!strings.Contains(log, `(calculate {"a": 6`) {
		t.Errorf("beside the answers: %q", log)
	}
	if _, _ = ask("Anything else?\n"); !strings.Contains(
		string(read(t, filepath.Join(dir, "talk.json"))),
		"6 times 7",
	) {
		t.Error("the conversation did not go on")
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestAssistantWithARealModel asks one that is on this machine.
func TestAssistantWithARealModel(t *testing.T) {
	if os.Getenv("BALEEN_TEST_MODELS") == "" {
		t.Skip("BALEEN_TEST_MODELS is not set")
	}
	var out, log bytes.Buffer
	if err := run(t.Context(), []string{"-model", "smollm2-135m"}, strings.NewReader("Say hello.\n"), &out, &log); err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(out.String()) == "" || !strings.Contains(log.String(), " tokens)") {
		t.Errorf("%q, beside it %q", out.String(), log.String())
	}
}
