package models

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/store"
)

// TestServeRefusesOneNameForTwo wants no model to be out of reach behind another one's name.
func TestServeRefusesOneNameForTwo(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "a", "tiny.gguf"), filepath.Join(dir, "b", "Tiny.gguf")
	c := New(store.Open(filepath.Join(dir, "store")))
	if name, err := c.Serve(first, first); err != nil || name != "tiny" {
		t.Fatalf("%q %v", name, err)
	}
	if _, err := c.Serve(second, second); err == nil || !strings.Contains(err.Error(), first) ||
		!strings.Contains(err.Error(), second) {
		t.Errorf("a second model of one name: %v", err)
	}
	if _, err := c.Serve(first, first); err == nil || !strings.Contains(err.Error(), "named twice: "+first) {
		t.Errorf("one model twice: %v", err)
	}
	other := filepath.Join(dir, "b", "other.gguf")
	if name, err := c.Serve(other, other); err != nil || name != "other" {
		t.Errorf("%q %v", name, err)
	}
	list, err := c.List(t.Context())
	if err != nil || len(list) != 2 || list[0].Path != first || list[1].Path != other {
		t.Errorf("%v %v", list, err)
	}
}

// TestMisspeltNames wants the names that may have been meant, of what is here and of what can be fetched by name.
func TestMisspeltNames(t *testing.T) {
	dir := t.TempDir()
	c := New(store.Open(filepath.Join(dir, "store")))
	if _, err := c.Serve(filepath.Join(dir, "narwhal.gguf"), filepath.Join(dir, "narwhal.gguf")); err != nil {
		t.Fatal(err)
	}
	listed := store.Catalog()[0].Name
	for name, want := range map[string]string{"narwal": "narwhal", "Narwhall:latest": "narwhal", listed + "x": listed, listed: "", "elephant": ""} {
		_, err := c.Resolve(t.Context(), name)
		e := chat.AsError(err)
		if e == nil || e.Kind != chat.UnknownModel || want == "" && len(e.Near) > 0 ||
			want != "" && !slices.Contains(e.Near, want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// TestWeightsAreCalledByTheirOwnName wants a file's own name before those of models that were made of it, by which
// lists of loaded models call it otherwise.
func TestWeightsAreCalledByTheirOwnName(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "models", "whale.gguf")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("GGUF"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := New(store.Open(home))
	for _, name := range []string{"a", "b:v1"} {
		if err := c.Derive(Derived{Spec: chat.Spec{Name: name, Path: path}, Parent: "whale"}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := c.List(t.Context())
	if err != nil || len(list) != 3 || chat.ByPath(list)[path].Name != "whale" {
		t.Errorf("%+v %v", list, err)
	}
}

// TestSettingsBesideWeights takes over what a manifest of Ollama says of a model.
func TestSettingsBesideWeights(t *testing.T) {
	s := SpecOf(store.Model{
		System: "Be brief.", Messages: []store.Message{{Role: "user", Content: "hi"}, {Role: "assistant", Content: "hello"}},
		Params: map[string]any{
			"seed":        7.0,
			"temperature": 0.5,
			"top_k":       3.0,
			"num_predict": 9.0,
			"num_ctx":     64.0,
			"stop":        []any{"x", ""},
		},
	})
	switch {
	case s.System != "Be brief.",
		len(s.Messages) != 2,
		s.Messages[1].Role != chat.Assistant,
		s.Messages[1].Parts[0].Text != "hello",
		s.Sampling.Seed == nil,
		*s.Sampling.Seed != 7,
		*s.Sampling.Temperature != 0.5,
		*s.Sampling.TopK != 3,
		s.MaxTokens != 9,
		!slices.Equal(s.Stop, []string{"x"}):
		t.Errorf("%+v", s)
	}
	if s.Context != 64 {
		t.Errorf("a context of %d", s.Context)
	}
	if s := SpecOf(store.Model{Params: map[string]any{"seed": -1.0}}); s.Sampling.Seed != nil {
		t.Errorf("seed %d", *s.Sampling.Seed)
	}
}

// TestStoreThatCannotBeRead asks for a model where the models cannot be listed: it is not known that it is not there.
func TestStoreThatCannotBeRead(t *testing.T) {
	st := store.Open(t.TempDir())
	if err := os.WriteFile(st.Models(), nil, 0o600); err != nil { // no folder
		t.Fatal(err)
	}
	if _, err := New(st).Resolve(t.Context(), "elephant"); chat.AsError(err).Kind != chat.Internal {
		t.Errorf("%v", err)
	}
}
