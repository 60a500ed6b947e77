package models

import (
	"path/filepath"
	"strings"
	"testing"

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
	if _, err := c.Serve(second, second); err == nil || !strings.Contains(err.Error(), first) || !strings.Contains(err.Error(), second) {
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
