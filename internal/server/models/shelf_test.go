package models

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/store"
)

// TestChangesOnDiskAreSeen changes what lies on disk as other processes do, and asks for the list after each change. In
// between nothing is read. The clock of the test is far from the files' times, so these count as settled.
func TestChangesOnDiskAreSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home, ollama := t.TempDir(), t.TempDir()
		c := New(store.Open(home, store.Place{Kind: "Ollama", Dir: ollama}))
		other := New(store.Open(home)) // of another process
		write := func(path, text string) func() {
			return func() {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		remove := func(path string) func() {
			return func() {
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
			}
		}
		derive := func(name string) func() {
			return func() {
				if err := other.Derive(Derived{Spec: chat.Spec{Name: name, Path: "/x"}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		const digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
		manifest := `{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:` + digest + `","size":3}]}`
		tag := filepath.Join(ollama, "manifests", "registry.ollama.ai", "library", "orca", "1b")
		blob := filepath.Join(ollama, "blobs", "sha256-"+digest)
		for _, step := range []struct {
			what   string
			change func()
			want   []string
		}{
			{"nothing is there", func() {}, nil},
			{"a file", write(filepath.Join(home, "models", "whale.gguf"), "abc"), []string{"whale"}},
			{"another file", write(filepath.Join(home, "models", "seal.gguf"), "abc"), []string{"seal", "whale"}},
			{"a derived model", derive("calf"), []string{"calf", "seal", "whale"}},
			{"a file is removed", remove(filepath.Join(home, "models", "seal.gguf")), []string{"calf", "whale"}},
			{"a derived model is removed", func() { other.Forget("calf") }, []string{"whale"}}, //nolint:errcheck // seen below
			{"another program's model", func() { write(blob, "abc")(); write(tag, manifest)() }, []string{"orca:1b", "whale"}},
			{"its weights are cut off in place", func() { os.Truncate(blob, 1) }, []string{"whale"}}, //nolint:errcheck // seen below
			{"they are whole again", write(blob, "abc"), []string{"orca:1b", "whale"}},
			{"its manifest is removed", remove(tag), []string{"whale"}},
			{"a folder", func() {
				write(filepath.Join(home, "models", "ray", "model.gguf"), "abc")()
				if err := store.WriteManifest(filepath.Join(home, "models", "ray"), store.Manifest{Name: "ray", Files: []store.File{{Name: "model.gguf", Size: 3}}}); err != nil {
					t.Fatal(err)
				}
			}, []string{"ray", "whale"}},
			{"a part of it is cut off", func() { os.Truncate(filepath.Join(home, "models", "ray", "model.gguf"), 1) }, []string{"whale"}}, //nolint:errcheck // seen below
			{"all is removed", remove(home), nil},
		} {
			step.change()
			time.Sleep(fresh)
			specs, err := c.List(t.Context())
			if err != nil {
				t.Fatal(step.what, err)
			}
			var names []string
			for _, s := range specs {
				names = append(names, s.Name)
				if got, err := c.Resolve(t.Context(), s.Name+":latest"); s.Name != "orca:1b" &&
					(err != nil || got.Path != s.Path) {
					t.Errorf("%s: %s is %+v: %v", step.what, s.Name, got, err)
				}
			}
			if slices.Sort(names); !slices.Equal(names, step.want) {
				t.Errorf("%s: %v, want %v", step.what, names, step.want)
			}
			seen := c.seen
			time.Sleep(fresh)
			if _, err := c.Resolve(t.Context(), "nobody"); chat.AsError(err).Kind != chat.UnknownModel ||
				c.seen != seen {
				t.Errorf("%s: all is read again without a change: %v", step.what, err)
			}
		}
	})
}

// TestOwnChangesAreSeenAtOnce makes and removes a model in this process.
func TestOwnChangesAreSeenAtOnce(t *testing.T) {
	c := New(store.Open(t.TempDir()))
	for range 3 {
		if _, err := c.Resolve(t.Context(), "calf"); chat.AsError(err).Kind != chat.UnknownModel {
			t.Errorf("%v", err)
		}
		if err := c.Derive(Derived{Spec: chat.Spec{Name: "calf", Path: "/x"}}); err != nil {
			t.Fatal(err)
		}
		if s, err := c.Resolve(t.Context(), "calf"); err != nil || s.Path != "/x" {
			t.Errorf("%+v %v", s, err)
		}
		if was, err := c.Forget("calf"); !was || err != nil {
			t.Errorf("%v %v", was, err)
		}
	}
}

// TestYoungFilesAreReadAgain holds files' times to be no sign of being unchanged until they have settled.
func TestYoungFilesAreReadAgain(t *testing.T) {
	home := t.TempDir()
	st := store.Open(home)
	if err := os.MkdirAll(st.Models(), 0o755); err != nil {
		t.Fatal(err)
	}
	if st.Watch().Unchanged() {
		t.Error("a folder that was just made counts as settled")
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(st.Models(), old, old); err != nil {
		t.Fatal(err)
	}
	if !st.Watch().Unchanged() {
		t.Error("a folder that was left alone for an hour does not count as settled")
	}
}
