package keeper_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/keeper"
	"github.com/baleenrun/baleen/internal/server/modeladmin"
	"github.com/baleenrun/baleen/internal/server/models"
	"github.com/baleenrun/baleen/internal/server/servertest"
	"github.com/baleenrun/baleen/internal/store"
)

// A home is a keeper of a folder, with a model in it.
type home struct {
	*keeper.Keeper
	dir, digest string
	file        []byte
}

func newHome(t *testing.T, dir string) home {
	t.Helper()
	st := store.Open(dir)
	h := home{Keeper: &keeper.Keeper{Store: st, Catalog: models.New(st), Spare: 1}, dir: dir}
	path := filepath.Join(st.Models(), "whale.gguf")
	if err := os.MkdirAll(st.Models(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := (servertest.Checkpoint{}).Write(path); err != nil {
		t.Fatal(err)
	}
	var err error
	if h.file, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(h.file)
	h.digest = hex.EncodeToString(sum[:])
	return h
}

// TestLeftovers removes what killed processes left, and nothing that a process is at work on.
func TestLeftovers(t *testing.T) {
	h := newHome(t, t.TempDir())
	old := time.Now().Add(-time.Hour)
	write := func(name string) string {
		path := filepath.Join(h.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		return path
	}
	young := write("blobs/.upload-2")
	if err := os.Chtimes(young, time.Now(), time.Now()); err != nil {
		t.Fatal(err)
	}
	write("models/.half.copy/half.gguf")
	gone := []string{write("blobs/.upload-1"), write("derived/.new-1"), filepath.Join(h.dir, "models", ".half.copy")}
	if err := os.Chtimes(gone[2], old, old); err != nil {
		t.Fatal(err)
	}
	stay := []string{young, write("blobs/README"), write("derived/mine.json"), write("models/.half.pull")}

	// An upload in work, of another server on the store.
	body, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- h.PutBlob(t.Context(), h.digest, int64(len(h.file)), body) }()
	if _, err := w.Write(h.file[:100]); err != nil {
		t.Fatal(err)
	}
	other := newHome(t, h.dir)
	if err := other.SweepLeftovers(time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, p := range gone {
		if _, err := os.Lstat(p); err == nil {
			t.Errorf("%s is still there", p)
		}
	}
	for _, p := range stay {
		if _, err := os.Lstat(p); err != nil {
			t.Errorf("%s is gone", p)
		}
	}
	if err := other.SweepLeftovers(time.Now().Add(time.Hour)); err != nil { // when the upload is no longer young
		t.Fatal(err)
	}
	if _, err := w.Write(h.file[100:]); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if err := <-done; err != nil {
		t.Errorf("an upload in work was swept: %v", err)
	}
}

// TestUploadsAreBounded refuses what is too large, before it is read where the size is told.
func TestUploadsAreBounded(t *testing.T) {
	h := newHome(t, t.TempDir())
	h.MaxUpload = int64(len(h.file)) - 1
	unread := strings.NewReader("unread")
	if err := h.PutBlob(t.Context(), h.digest, int64(len(h.file)), unread); kindOf(err) != chat.BodyTooLarge ||
		unread.Len() != 6 {
		t.Errorf("of a size that is told: %v", err)
	}
	if err := h.PutBlob(t.Context(), h.digest, -1, bytes.NewReader(h.file)); kindOf(err) != chat.BodyTooLarge {
		t.Errorf("of a size that is not told: %v", err)
	}
	h.MaxUpload, h.Spare = 0, 1<<62
	if err := h.PutBlob(t.Context(), h.digest, 5<<20, unread); kindOf(err) != chat.NoSpace || unread.Len() != 6 ||
		!strings.Contains(err.Error(), "no space left on") {
		t.Errorf("without room: %v", err)
	}
	h.Spare = 1
	if err := h.PutBlob(t.Context(), h.digest, int64(len(h.file)), bytes.NewReader(h.file)); err != nil {
		t.Error(err)
	}
	if list, err := os.ReadDir(filepath.Join(h.dir, "blobs")); err != nil || len(list) != 1 {
		t.Errorf("%v %v", list, err)
	}
}

// TestTheLastNameUnloads removes names of weights: only with the last of them must the weights go.
func TestTheLastNameUnloads(t *testing.T) {
	h := newHome(t, t.TempDir())
	put := func(name, from string) {
		t.Helper()
		c := modeladmin.Creation{Name: name, From: from}
		if from == "" {
			if err := h.PutBlob(t.Context(), h.digest, -1, bytes.NewReader(h.file)); err != nil {
				t.Fatal(err)
			}
			c.Files = map[string]string{"m.gguf": h.digest}
		}
		if err := h.Create(t.Context(), c, quiet); err != nil {
			t.Fatal(err)
		}
	}
	put("up", "")
	put("second", "up")
	put("calf", "whale")
	for _, c := range []struct {
		name    string
		removes bool
	}{{"up", false}, {"second", true}, {"calf", false}, {"whale", true}} {
		removes := false
		if err := h.Delete(t.Context(), c.name, func() { removes = true }); err != nil || removes != c.removes {
			t.Errorf("%s: %v, its weights go: %v, want %v", c.name, err, removes, c.removes)
		}
	}
}
