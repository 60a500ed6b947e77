package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/mmap"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/synth"
)

// TestConversationOverAChangedFile: the message after the model's file was overwritten is answered by what it holds
// then.
func TestConversationOverAChangedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	write := func(path string, seed uint64) {
		t.Helper()
		s, err := synth.Lookup("tiny")
		if err != nil {
			t.Fatal(err)
		}
		r, err := synth.LookupRecipe("Q8_0")
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err = errors.Join(synth.Write(t.Context(), f, s, r, seed, nil), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	write(path, 1)
	svc, err := chat.OpenSingle(t.Context(), chat.Spec{Path: path}, model.Options{Threads: 1, Context: 128})
	if err != nil {
		t.Fatal(err)
	}
	h, err := newHere(t.Context(), svc)
	if err != nil {
		t.Fatal(err)
	}
	answer := func() (string, error) {
		a, err := h.answer(t.Context(), &chat.Request{
			Raw: true, PromptTokens: []int32{5, 9, 70}, MaxTokens: 8, Sampling: chat.Sampling{Temperature: new(float32(0))},
		}, func(bool, string) error { return nil })
		return a.text, err
	}
	one, err := answer()
	if err != nil {
		t.Fatal(err)
	}
	write(path+".new", 2)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	if got, err := answer(); err != nil || got != one {
		t.Errorf("replaced: %q %v, want %q", got, err, one)
	}
	write(path, 2) // what is loaded has no name any more
	if got, err := answer(); err != nil || got != one {
		t.Errorf("another file overwritten: %q %v, want %q", got, err, one)
	}
	h.close()
	if h, err = newHere(t.Context(), svc); err != nil {
		t.Fatal(err)
	}
	two, err := answer()
	if err != nil || two == one {
		t.Errorf("a new conversation: %q %v", two, err)
	}
	write(path, 1)
	if _, err := answer(); !errors.Is(err, mmap.ErrChanged) {
		t.Errorf("overwritten: %v", err)
	}
	for range 2 {
		if got, err := answer(); err != nil || got != one {
			t.Errorf("the next message: %q %v, want %q", got, err, one)
		}
	}
	if h.about().Context != 128 {
		t.Errorf("about: %+v", h.about())
	}
	h.close()
	if err := svc.Pool().Close(context.Background()); err != nil {
		t.Error(err)
	}
}
