package fetch

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/baleenrun/baleen/internal/store"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

// fakeHub is a Hugging Face with one repository. Files that end in .gguf or .safetensors are large, the others are
// Git's own.
type fakeHub struct {
	t     *testing.T
	files map[string][]byte
	pages int                       // of the list of files
	lie   func(h *hubFile)          // changes the list
	deny  func(r *http.Request) int // a status to answer with
}

func (h *fakeHub) list() []hubFile {
	var out []hubFile
	for name, data := range h.files {
		sum := sha256.Sum256(data)
		git := sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(data)), data...))
		f := hubFile{Type: "file", Path: name, Size: int64(len(data)), OID: hex.EncodeToString(git[:])}
		if strings.HasSuffix(name, ".gguf") || strings.HasSuffix(name, ".safetensors") {
			f.Size = 130 // of the pointer
			f.LFS = &struct {
				OID  string `json:"oid"`
				Size int64  `json:"size"`
			}{hex.EncodeToString(sum[:]), int64(len(data))}
		}
		if h.lie != nil {
			h.lie(&f)
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b hubFile) int { return strings.Compare(a.Path, b.Path) })
	return append(out, hubFile{Type: "directory", Path: "onnx"})
}

func (h *fakeHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.deny != nil {
		if status := h.deny(r); status != 0 {
			w.WriteHeader(status)
			return
		}
	}
	switch {
	case strings.HasPrefix(r.URL.Path, "/api/models/org/repo/revision/"):
		if rev := strings.TrimPrefix(r.URL.Path, "/api/models/org/repo/revision/"); rev != "main" && rev != "v1.0" &&
			rev != commit {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, `{"sha":%q,"cardData":{"license":"mit"}}`, commit)
	case r.URL.Path == "/api/models/org/repo/tree/"+commit:
		all := h.list()
		page, _ := fmt.Sscan(r.URL.Query().Get("page"), new(int))
		if h.pages > 1 && page == 0 {
			w.Header().Set("Link", fmt.Sprintf(`<http://%s%s?page=1>; rel="next"`, r.Host, r.URL.Path))
			json.NewEncoder(w).Encode(all[:len(all)/2])
			return
		}
		if h.pages > 1 {
			all = all[len(all)/2:]
		}
		json.NewEncoder(w).Encode(all)
	default:
		name := strings.TrimPrefix(r.URL.Path, "/org/repo/resolve/"+commit+"/")
		data, ok := h.files[name]
		if !ok {
			http.NotFound(w, r)
			return
		}
		serve(data)(w, r)
	}
}

func repoEntry(t *testing.T, address string) store.Entry {
	t.Helper()
	e, ok, err := store.Remote(address, true)
	if !ok || err != nil {
		t.Fatalf("%s: %v", address, err)
	}
	return e
}

// folder reads a published folder.
func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[filepath.ToSlash(rel)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRepositoryOfGGUF(t *testing.T) {
	files := map[string][]byte{
		"README.md": []byte(
			"x",
		), "m-Q8_0.gguf": content(900), "m-Q4_K_M.gguf": content(700), "m-UD-Q4_K_XL.gguf": content(600),
		"mmproj-F16.gguf": content(
			10,
		), "big/m-BF16-00001-of-00002.gguf": content(500), "big/m-BF16-00002-of-00002.gguf": content(400),
	}
	for address, want := range map[string][]string{
		"org/repo":                                     {"m-Q4_K_M.gguf"},
		"org/repo:q8_0":                                {"m-Q8_0.gguf"},
		"org/repo:Q4_K_XL@v1.0":                        {"m-UD-Q4_K_XL.gguf"},
		"hf.co/org/repo:m-Q8_0.gguf":                   {"m-Q8_0.gguf"},
		"hf:org/repo:BF16":                             {"m-BF16-00001-of-00002.gguf", "m-BF16-00002-of-00002.gguf"},
		"https://huggingface.co/org/repo":              {"m-Q4_K_M.gguf"},
		"https://hf.co/org/repo/blob/main/m-Q8_0.gguf": {"m-Q8_0.gguf"},
		"org/repo:F32":                                 nil,
		"org/repo@none":                                nil,
		"org/else":                                     nil,
	} {
		t.Run(address, func(t *testing.T) {
			f, _ := newFetcher(t, (&fakeHub{t: t, files: files, pages: 2}).ServeHTTP)
			path, err := f.Fetch(t.Context(), repoEntry(t, address))
			if want == nil {
				if err == nil ||
					!strings.Contains(err.Error(), "there") && !strings.Contains(err.Error(), "there is no") {
					t.Errorf("error %v", err)
				}
				if left, _ := os.ReadDir(f.Store.Models()); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Base(path) != want[0] {
				t.Errorf("the path is %s", path)
			}
			got := folder(t, filepath.Dir(path))
			for _, name := range want {
				original := files[name]
				if original == nil {
					original = files["big/"+name]
				}
				if got[name] != string(original) {
					t.Errorf("%s has %d bytes", name, len(got[name]))
				}
			}
			if len(got) != len(want)+1 {
				t.Errorf("%d files", len(got))
			}
			onlyThere(t, f, filepath.Base(filepath.Dir(path)))
			m, err := store.ReadManifest(filepath.Dir(path))
			if err != nil || m.Revision != commit || m.Licence != "mit" || len(m.Files[0].SHA256) != 64 {
				t.Errorf("%+v, %v", m, err)
			}
		})
	}
}

func TestRepositoryOfSafetensors(t *testing.T) {
	files := map[string][]byte{
		"config.json": []byte("{}"), "tokenizer.json": []byte("{ }"), "model.safetensors.index.json": []byte("{\n}"),
		"model-00001-of-00002.safetensors": content(3000), "model-00002-of-00002.safetensors": content(2000),
		"1_Pooling/config.json": []byte("{  }"), "onnx/model.onnx": content(9), "consolidated.safetensors": content(10),
		"pytorch_model.bin": content(11), "README.md": []byte("x"),
	}
	f, _ := newFetcher(t, (&fakeHub{t: t, files: files}).ServeHTTP)
	path, err := f.Fetch(t.Context(), repoEntry(t, "org/repo"))
	if err != nil {
		t.Fatal(err)
	}
	got := folder(t, path)
	for _, gone := range []string{"onnx/model.onnx", "consolidated.safetensors", "pytorch_model.bin", "README.md"} {
		delete(files, gone)
	}
	for name, data := range files {
		if got[name] != string(data) {
			t.Errorf("%s has %d bytes", name, len(got[name]))
		}
	}
	if len(got) != len(files)+1 {
		t.Errorf("%d files, want %d and the manifest", len(got), len(files))
	}
}

func TestRepositoriesThatLie(t *testing.T) {
	gguf := map[string][]byte{"m.gguf": content(5000)}
	folder := map[string][]byte{"config.json": []byte("{}"), "model.safetensors": content(3000)}
	for name, tc := range map[string]struct {
		hub  fakeHub
		want string
	}{
		"other sum": {fakeHub{files: gguf, lie: func(h *hubFile) {
			if h.LFS != nil {
				h.LFS.OID = strings.Repeat("a", 64)
			}
		}}, "wrong checksum: SHA-256"},
		"other Git sum": {fakeHub{files: folder, lie: func(h *hubFile) {
			if h.LFS == nil {
				h.OID = strings.Repeat("b", 40)
			}
		}}, "config.json: wrong checksum: Git's SHA-1"},
		"no sum": {fakeHub{files: gguf, lie: func(h *hubFile) { h.LFS, h.OID = nil, "" }}, "gives no checksum for " +
			"m.gguf"},
		"larger": {fakeHub{files: gguf, lie: func(h *hubFile) { h.LFS.Size++ }}, "has 5000 bytes (range"},
		"outside": {fakeHub{files: folder, lie: func(h *hubFile) {
			if h.LFS != nil {
				h.Path = "../" + "x.gguf"
			}
		}}, "404"},
		"outside, served": {fakeHub{files: folder, lie: func(h *hubFile) {
			if h.Path == "config.json" {
				h.Path = "1_Pooling\\..\\..\\_Pooling/config.json"
			}
		}}, "config.json"},
		"gated":     {fakeHub{files: gguf, deny: func(*http.Request) int { return 401 }}, "set HF_TOKEN"},
		"part gone": {fakeHub{files: map[string][]byte{"m-00001-of-00003.gguf": content(10)}}, "has 1 of 00003 parts"},
		"nothing": {fakeHub{files: map[string][]byte{"README.md": content(10)}}, "neither GGUF files nor " +
			"config.json"},
		"not JSON": {fakeHub{files: map[string][]byte{}, deny: func(*http.Request) int { return 200 }}, "does not answer as expected"},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := newFetcher(t, tc.hub.ServeHTTP)
			e := repoEntry(t, "org/repo")
			_, err := f.Fetch(t.Context(), e)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if f.Store.Has(e) {
				t.Error("it was published all the same")
			}
		})
	}
}

func TestFileNamesOfSources(t *testing.T) {
	for name, good := range map[string]bool{
		"a.gguf": true, "1_Pooling/config.json": true, "../a": false, "/a": false, "a/../b": false, "a//b": false, "": false, ".": false,
		`a\b`: false, "c:x": false, "a\x00": false, "baleen.json": false, "x.part": false, "x.part.json": false, "a/b/c/d/e": false, "a\nb": false,
	} {
		if err := checkFileName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestOllamaRegistry(t *testing.T) {
	weights, template, licence := content(300000), []byte("{{ .Prompt }}"), []byte("MIT License\nand so on")
	blobs := map[string][]byte{}
	layer := func(kind string, data []byte) string {
		sum := sha256.Sum256(data)
		digest := "sha256:" + hex.EncodeToString(sum[:])
		blobs[digest] = data
		return fmt.Sprintf(
			`{"mediaType":"application/vnd.ollama.image.%s","digest":%q,"size":%d}`,
			kind,
			digest,
			len(data),
		)
	}
	good := `{"schemaVersion":2,"layers":[` + layer(
		"model",
		weights,
	) + "," + layer(
		"template",
		template,
	) + "," + layer(
		"license",
		licence,
	) +
		"," + layer(
		"system",
		[]byte("Be brief."),
	) + "," + layer(
		"params",
		[]byte(`{"stop":["x"]}`),
	) + "]}"
	manifest := good
	cdn := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serve(blobs[strings.TrimPrefix(r.URL.Path, "/")])(w, r)
	}))
	defer cdn.Close()
	handler := func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v2/library/tiny/manifests/1b":
			fmt.Fprint(w, manifest)
		case strings.HasPrefix(r.URL.Path, "/v2/library/tiny/blobs/"):
			http.Redirect(w, r, cdn.URL+"/"+filepath.Base(r.URL.Path), http.StatusTemporaryRedirect)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}
	f, _ := newFetcher(t, handler)
	f.OllamaEndpoint = f.HFEndpoint
	path, err := f.Fetch(t.Context(), repoEntry(t, "ollama:tiny:1b"))
	if err != nil {
		t.Fatal(err)
	}
	got := folder(t, filepath.Dir(path))
	if got["model.gguf"] != string(weights) || got["template.ollama"] != string(template) ||
		got["LICENSE"] != string(licence) ||
		len(got) != 6 {
		t.Errorf("%d files", len(got))
	}
	if m, ok := f.Store.Find("tiny:1b"); !ok || m.Path != path || m.System != "Be brief." ||
		m.Template != string(template) ||
		fmt.Sprint(m.Params["stop"]) != "[x]" {
		t.Errorf("found %+v", m) // as in Ollama's own store
	}
	for want, text := range map[string]string{
		"tensor by tensor":   strings.ReplaceAll(good, "image.model", "image.tensor"),
		"adapter":            strings.Replace(good, `{"mediaType"`, layer("adapter", []byte("lora"))+`,{"mediaType"`, 1),
		"no weights":         `{"layers":[]}`,
		"not a manifest":     `{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:../../etc/passwd","size":1}]}`,
		"does not answer as": `<html>`,
		"wrong checksum":     strings.Replace(good, hexOf(weights), hexOf([]byte("other")), 1),
	} {
		manifest = text
		blobs["sha256:"+hexOf([]byte("other"))] = bytes.Repeat([]byte{1}, len(weights))
		f, _ := newFetcher(t, handler)
		f.OllamaEndpoint = f.HFEndpoint
		if _, err := f.Fetch(t.Context(), repoEntry(t, "tiny:1b")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
	if _, err := f.Fetch(t.Context(), repoEntry(t, "tiny:2b")); err == nil ||
		!strings.Contains(err.Error(), "the registry has no ollama:tiny:2b") {
		t.Errorf("error %v", err)
	}
}

func hexOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func TestPlainAddresses(t *testing.T) {
	data := content(1 << 20)
	srv := httptest.NewServer(serve(data))
	defer srv.Close()
	f, _ := newFetcher(t, nil)
	f.Piece = 100 << 10
	path, err := f.Fetch(t.Context(), repoEntry(t, srv.URL+"/a/tiny.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); !bytes.Equal(got, data) {
		t.Errorf("%d bytes", len(got))
	}
	if m, err := store.ReadManifest(filepath.Dir(path)); err != nil || m.Files[0].SHA256 != hexOf(data) {
		t.Errorf("%+v, %v", m, err)
	}
	f, _ = newFetcher(t, nil)
	if _, err := f.Fetch(t.Context(), repoEntry(t, srv.URL+"/tiny.gguf#sha256="+hexOf(data))); err != nil {
		t.Error(err)
	}
	f, _ = newFetcher(t, nil)
	_, err = f.Fetch(t.Context(), repoEntry(t, srv.URL+"/tiny.gguf#sha256="+strings.Repeat("a", 64)))
	var bad *ChecksumError
	if !errors.As(err, &bad) {
		t.Errorf("another sum: %v", err)
	}
	f, _ = newFetcher(t, nil)
	path, err = f.Fetch(t.Context(), repoEntry(t, srv.URL+"/t-00001-of-00003.gguf"))
	if err != nil || filepath.Base(path) != "t-00001-of-00003.gguf" || len(folder(t, filepath.Dir(path))) != 4 {
		t.Errorf("a split file: %s, %v", path, err)
	}
}

// TestChangedFileIsNotMixed changes the file at an address, whose sum nobody knows, between two tries.
func TestChangedFileIsNotMixed(t *testing.T) {
	old, now := content(1<<20), bytes.Repeat([]byte("GGUFnew!"), 1<<17)
	var changed atomic.Bool
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, tag := old, `"old"`
		if changed.Load() {
			data, tag = now, `"now"`
		}
		w.Header().Set("ETag", tag)
		if !changed.Load() && r.Header.Get("Range") != "bytes=0-65535" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		serve(data)(w, r)
	}))
	defer srv.Close()
	f, _ := newFetcher(t, nil)
	f.Piece = 64 << 10
	e := repoEntry(t, srv.URL+"/tiny.gguf")
	if _, err := f.Fetch(t.Context(), e); err == nil {
		t.Fatal("the first try went well")
	}
	changed.Store(true)
	path, err := f.Fetch(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); !bytes.Equal(got, now) {
		t.Error("old and new bytes are mixed")
	}
}

// TestLyingAddresses: of an address nothing is known before, and what it sends may be anything.
func TestLyingAddresses(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"more than any model": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 0-16777215/9223372036854775807")
			w.WriteHeader(http.StatusPartialContent)
			w.Write([]byte("GGUF"))
		}, "more than any model"},
		"a page":    {func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>sign in</html>")) }, `begins with "<htm"`},
		"nothing":   {func(http.ResponseWriter, *http.Request) {}, `begins with ""`},
		"a refusal": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, "404"},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := newFetcher(t, nil)
			srv := httptest.NewServer(tc.answer)
			defer srv.Close()
			e, ok, err := store.Remote(srv.URL+"/m.gguf", true)
			if err != nil || !ok {
				t.Fatal(err)
			}
			if _, err := f.Fetch(t.Context(), e); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			if left, err := os.ReadDir(f.Store.Models()); err != nil || len(left) != 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}
