package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// classes runs the program over texts and returns its lines.
func classes(t *testing.T, run func(files []string, out *bytes.Buffer) error, texts ...string) []result {
	t.Helper()
	dir := t.TempDir()
	var files []string
	for i, text := range texts {
		files = append(files, filepath.Join(dir, string(rune('a'+i))+".txt"))
		if err := os.WriteFile(files[i], []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files = append(files, filepath.Join(dir, "missing.txt"))
	var out bytes.Buffer
	if err := run(files, &out); err != nil {
		t.Fatal(err)
	}
	var got []result
	for dec := json.NewDecoder(&out); dec.More(); {
		var r result
		if err := dec.Decode(&r); err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
	}
	if len(got) != len(files) {
		t.Fatalf("%d lines for %d files: %+v", len(got), len(files), got)
	}
	if last := got[len(texts)]; last.Error == "" || last.Class != "" {
		t.Errorf("a file that is not there: %+v", last)
	}
	return got
}

func TestClassify(t *testing.T) {
	checkpoint := filepath.Join(t.TempDir(), "scripted.gguf")
	if err := (servertest.Checkpoint{Context: 4096}).Write(checkpoint); err != nil {
		t.Fatal(err)
	}
	b, err := servertest.NewBackend(checkpoint, func(prompt string) string {
		if strings.Contains(prompt, "goal") {
			return "B"
		}
		return "A"
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx := model.WithBackend(t.Context(), b)
	got := classes(t, func(files []string, out *bytes.Buffer) error {
		return run(ctx, append([]string{"-model", checkpoint, "-classes", "news, sport"}, files...), out)
	}, "An election.", "What a goal!", "goal "+strings.Repeat("on and on ", 2000))
	for i, want := range []string{"news", "sport", "sport"} {
		if r := got[i]; r.Class != want || r.Probability < 0.5 || r.Cut != (i == 2) || r.Error != "" {
			t.Errorf("%+v, want %s", r, want)
		}
	}
	if err := run(ctx, []string{"file"}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "usage") {
		t.Errorf("without classes: %v", err)
	}
}

// TestClassifyWithARealModel asks one that is on this machine.
func TestClassifyWithARealModel(t *testing.T) {
	if os.Getenv("BALEEN_TEST_MODELS") == "" {
		t.Skip("BALEEN_TEST_MODELS is not set")
	}
	got := classes(t, func(files []string, out *bytes.Buffer) error {
		return run(
			t.Context(),
			append([]string{"-model", "qwen2.5-coder-0.5b", "-classes", "sport,cooking"}, files...),
			out,
		)
	}, "The striker scored in the last minute and the stadium cheered.", "Fry the onions in butter, then add the "+
		"flour.")
	for i, want := range []string{"sport", "cooking"} {
		if r := got[i]; r.Class != want || r.Probability <= 0.5 {
			t.Errorf("%+v, want %s", r, want)
		}
	}
}
