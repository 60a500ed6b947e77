package keeper_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/fetch"
	"github.com/baleenrun/baleen/internal/server/keeper"
	"github.com/baleenrun/baleen/internal/server/modeladmin"
	"github.com/baleenrun/baleen/internal/server/models"
	"github.com/baleenrun/baleen/internal/server/servertest"
	"github.com/baleenrun/baleen/internal/store"
)

func quiet(modeladmin.Progress) {}

func kindOf(err error) chat.Kind {
	if err == nil {
		return 255
	}
	return chat.AsError(err).Kind
}

func TestMakeCopyDelete(t *testing.T) {
	home := t.TempDir()
	st := store.Open(home)
	cat := models.New(st)
	k := &keeper.Keeper{Store: st, Catalog: cat}
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := (servertest.Checkpoint{}).Write(path); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(file)
	digest := hex.EncodeToString(sum[:])
	if has, err := k.HasBlob(t.Context(), digest); has || err != nil {
		t.Errorf("%v %v", has, err)
	}
	if err := k.PutBlob(t.Context(), digest, -1, strings.NewReader("other bytes")); kindOf(err) != chat.Invalid {
		t.Errorf("wrong bytes: %v", err)
	}
	if err := k.PutBlob(t.Context(), "../../etc", -1, bytes.NewReader(file)); kindOf(err) != chat.Invalid {
		t.Errorf("wrong digest: %v", err)
	}
	if err := k.PutBlob(t.Context(), digest, -1, bytes.NewReader(file)); err != nil {
		t.Fatal(err)
	}
	if has, _ := k.HasBlob(t.Context(), digest); !has {
		t.Error("the file is not there")
	}
	for _, name := range []string{"../x.gguf", "a/b.gguf", `a\b.gguf`, "..", ""} {
		if err := k.Create(t.Context(), modeladmin.Creation{Name: "up", Files: map[string]string{name: digest}}, quiet); kindOf(
			err,
		) != chat.Invalid {
			t.Errorf("file %q: %v", name, err)
		}
	}
	for _, name := range []string{"../up", "", "a b\n"} {
		if err := k.Create(t.Context(), modeladmin.Creation{Name: name, Files: map[string]string{"m.gguf": digest}}, quiet); kindOf(
			err,
		) != chat.Invalid {
			t.Errorf("name %q: %v", name, err)
		}
	}
	if err := k.Create(t.Context(), modeladmin.Creation{Name: "Up:latest", Files: map[string]string{"m.gguf": digest}, System: "Be kind.", Stop: []string{"END"}}, quiet); err != nil {
		t.Fatal(err)
	}
	up, err := models.New(store.Open(home)).Resolve(t.Context(), "up") // another process sees it
	if err != nil || up.System != "Be kind." || up.Size != int64(len(file)) || up.Digest != digest {
		t.Fatalf("%+v %v", up, err)
	}
	if b, err := os.ReadFile(up.Path); err != nil || !bytes.Equal(b, file) {
		t.Errorf("%v", err)
	}
	hot := float32(0.5)
	if err := k.Create(t.Context(), modeladmin.Creation{Name: "child", From: "up", Sampling: chat.Sampling{Temperature: &hot}, Licences: []string{"MIT"}}, quiet); err != nil {
		t.Fatal(err)
	}
	child, err := cat.Resolve(t.Context(), "CHILD")
	if err != nil || child.Path != up.Path || child.System != "Be kind." || *child.Sampling.Temperature != 0.5 ||
		child.Stop[0] != "END" {
		t.Errorf("%+v %v", child, err)
	}
	if err := k.Copy(t.Context(), "child", "ns/third:v1"); err != nil {
		t.Fatal(err)
	}
	if a, err := k.About(t.Context(), "ns/third:v1"); err != nil || a.Licence != "MIT" || a.Parent != "Up" {
		t.Errorf("%+v %v", a, err)
	}
	if err := k.Create(t.Context(), modeladmin.Creation{Name: "ns/third:v1", From: "ns/third:v1", System: "Be brief."}, quiet); err != nil {
		t.Fatal(err)
	}
	if a, err := k.About(t.Context(), "ns/third:v1"); err != nil || a.Parent != "Up" {
		t.Errorf("made of itself, with other words: %+v %v", a, err)
	}
	if list, err := cat.List(t.Context()); err != nil || len(list) != 3 {
		t.Errorf("%v %v", list, err)
	}
	for _, name := range []string{"up", "child"} {
		if err := k.Delete(t.Context(), name, func() {}); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(up.Path); err != nil {
			t.Errorf("the file that another name needs is gone: %v", err)
		}
	}
	if err := k.Delete(t.Context(), "ns/third:v1", func() {}); err != nil {
		t.Error(err)
	}
	for f, err := range map[string]error{
		"copy": k.Copy(t.Context(), "up", "x"), "delete": k.Delete(t.Context(), "up", func() {}),
		"create": k.Create(t.Context(), modeladmin.Creation{Name: "x", From: "up"}, quiet),
	} {
		if kindOf(err) != chat.UnknownModel {
			t.Errorf("%s of what is not there: %v", f, err)
		}
	}
	for _, dir := range []string{"derived", "uploaded"} {
		if left, err := filepath.Glob(filepath.Join(home, dir, "*")); err != nil || len(left) != 0 {
			t.Errorf("%v is left", left)
		}
	}
}

func TestSweepRemovesWhatNobodyUses(t *testing.T) {
	home := t.TempDir()
	st := store.Open(home)
	k := &keeper.Keeper{Store: st, Catalog: models.New(st)}
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := (servertest.Checkpoint{}).Write(path); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	put := func(b []byte) string {
		sum := sha256.Sum256(b)
		digest := hex.EncodeToString(sum[:])
		if err := k.PutBlob(t.Context(), digest, -1, bytes.NewReader(b)); err != nil {
			t.Fatal(err)
		}
		return digest
	}
	used, unused := put(file), put([]byte("nobody uses this"))
	if err := k.Create(t.Context(), modeladmin.Creation{Name: "up", Files: map[string]string{"m.gguf": used}}, quiet); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(home, "uploaded", "model-left")
	foreign := filepath.Join(home, "blobs", "README")
	if err := os.Mkdir(left, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{foreign, filepath.Join(left, "half.gguf")} {
		if err := os.WriteFile(p, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	there := func(digest string) bool {
		_, err := os.Stat(filepath.Join(home, "blobs", "sha256-"+digest))
		return err == nil
	}
	if err := k.Sweep(time.Now().Add(-time.Hour)); err != nil || !there(used) || !there(unused) {
		t.Errorf("what is new is gone: %v", err)
	}
	soon := time.Now().Add(time.Hour)
	if err := k.Sweep(soon); err != nil || !there(used) || there(unused) {
		t.Errorf("after a while: %v, used %v, unused %v", err, there(used), there(unused))
	}
	if _, err := os.Stat(left); err == nil {
		t.Errorf("%s is still there", left)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Error("a file that is no upload is gone")
	}
	if err := k.Delete(t.Context(), "up", func() {}); err != nil {
		t.Fatal(err)
	}
	if err := k.Sweep(soon); err != nil || there(used) {
		t.Errorf("the file of a model that was removed is still there: %v", err)
	}
}

// TestDamagedModelKeepsItsFiles damages what is kept of a model: it must be told, and its uploaded files must stay.
func TestDamagedModelKeepsItsFiles(t *testing.T) {
	for what, damage := range map[string]func(path string) error{
		"torn":       func(p string) error { return os.WriteFile(p, []byte(`{"spec": {"na`), 0o600) },
		"empty":      func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"nameless":   func(p string) error { return os.WriteFile(p, []byte("{}"), 0o600) },
		"unreadable": func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o755)) },
	} {
		t.Run(what, func(t *testing.T) {
			home := t.TempDir()
			st := store.Open(home)
			var log bytes.Buffer
			cat := models.New(st)
			cat.Log = slog.New(slog.NewTextHandler(&log, nil))
			k := &keeper.Keeper{Store: st, Catalog: cat}
			path := filepath.Join(t.TempDir(), "m.gguf")
			if err := (servertest.Checkpoint{}).Write(path); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(b)
			digest := hex.EncodeToString(sum[:])
			if err := k.PutBlob(t.Context(), digest, -1, bytes.NewReader(b)); err != nil {
				t.Fatal(err)
			}
			if err := k.Create(t.Context(), modeladmin.Creation{Name: "up", Files: map[string]string{"m.gguf": digest}}, quiet); err != nil {
				t.Fatal(err)
			}
			up, err := cat.Resolve(t.Context(), "up")
			if err != nil {
				t.Fatal(err)
			}
			if err := k.Create(t.Context(), modeladmin.Creation{Name: "child", From: "up"}, quiet); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(home, "derived", "child.json")
			whole, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := damage(file); err != nil {
				t.Fatal(err)
			}
			list, err := cat.List(t.Context())
			if err != nil || len(list) != 1 || list[0].Name != "up" || !strings.Contains(log.String(), "child.json") {
				t.Errorf("list %v %v, log %q", list, err, log.String())
			}
			_, resolved := cat.Resolve(t.Context(), "child")
			for f, err := range map[string]error{
				"resolve": resolved, "delete": k.Delete(t.Context(), "child", func() {}), "copy over": k.Copy(t.Context(), "up", "child"),
				"create": k.Create(t.Context(), modeladmin.Creation{Name: "child", From: "up"}, quiet),
			} {
				if kindOf(err) != chat.Internal || !strings.Contains(err.Error(), "child") {
					t.Errorf("%s: %v", f, err)
				}
			}
			if err := k.Delete(t.Context(), "up", func() {}); err != nil {
				t.Error(err)
			}
			soon := time.Now().Add(time.Hour)
			if err := k.Sweep(soon); err == nil || !strings.Contains(err.Error(), "child.json") {
				t.Errorf("sweep: %v", err)
			}
			for _, p := range []string{up.Path, filepath.Join(home, "blobs", "sha256-"+digest)} {
				if _, err := os.Stat(p); err != nil {
					t.Errorf("the damaged model's file is gone: %v", err)
				}
			}
			if err := errors.Join(os.Remove(file), os.WriteFile(file, whole, 0o600)); err != nil { // repaired
				t.Fatal(err)
			}
			if err := errors.Join(k.Sweep(soon), k.Delete(t.Context(), "child", func() {})); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(up.Path); err == nil {
				t.Error("the file outlives its last model")
			}
		})
	}
}

// TestFailedPulls wants an error's kind to say whose fault it is.
func TestFailedPulls(t *testing.T) {
	status := http.StatusNotFound
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer hub.Close()
	st := store.Open(t.TempDir())
	k := &keeper.Keeper{Store: st, Catalog: models.New(st), Fetcher: func(p fetch.Progress) *fetch.Fetcher {
		return &fetch.Fetcher{Store: st, Progress: p, HFEndpoint: hub.URL}
	}}
	for _, c := range []struct {
		name   string
		status int
		kind   chat.Kind
	}{
		{"hf.co/nobody/nothing", 404, chat.UnknownModel},
		{"hf.co/nobody/nothing", 401, chat.UnknownModel},
		{"hf.co/nobody/nothing", 410, chat.Upstream},
		{"hf.co/nobody/", 404, chat.Invalid},
		{"no-such-name-at-all!", 404, chat.UnknownModel},
	} {
		status = c.status
		if err := k.Pull(t.Context(), c.name, quiet); kindOf(err) != c.kind {
			t.Errorf("%s with status %d: %v, kind %v, want %v", c.name, c.status, err, kindOf(err), c.kind)
		}
	}
}
