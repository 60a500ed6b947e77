package store

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/mmap"
)

// A Place is a folder in which another program keeps models. It is only read.
type Place struct {
	Kind string // "Ollama", "Hugging Face" or "LM Studio"
	Dir  string
}

const (
	ownPlace    = "baleen"
	ollamaPlace = "Ollama"
	hubPlace    = "Hugging Face"
	studioPlace = "LM Studio"
)

// Places lists where other programs keep models on this machine, whether they are there or not. getenv is os.Getenv
// outside tests.
func Places(getenv func(string) string) []Place {
	home := getenv("HOME")
	if home == "" && runtime.GOOS == "windows" {
		home = getenv("USERPROFILE")
	}
	below := func(parts ...string) string {
		if home == "" {
			return ""
		}
		return filepath.Join(append([]string{home}, parts...)...)
	}
	var out []Place
	add := func(kind string, dirs ...string) {
		for _, d := range dirs {
			if p := (Place{kind, d}); d != "" && !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	if dir := getenv("OLLAMA_MODELS"); dir != "" {
		add(ollamaPlace, dir)
	} else {
		add(ollamaPlace, below(".ollama", "models"))
		if runtime.GOOS == "linux" && home != "" {
			add(ollamaPlace, "/usr/share/ollama/.ollama/models")
		}
	}
	cache := getenv("XDG_CACHE_HOME")
	if !filepath.IsAbs(cache) {
		cache = below(".cache")
	}
	switch {
	case getenv("HF_HUB_CACHE") != "":
		add(hubPlace, getenv("HF_HUB_CACHE"))
	case getenv("HUGGINGFACE_HUB_CACHE") != "":
		add(hubPlace, getenv("HUGGINGFACE_HUB_CACHE"))
	case getenv("HF_HOME") != "":
		add(hubPlace, filepath.Join(getenv("HF_HOME"), "hub"))
	case cache != "":
		add(hubPlace, filepath.Join(cache, "huggingface", "hub"))
	}
	if home != "" {
		add(studioPlace, studioFolder(home), below(".lmstudio", "models"), below(".cache", "lm-studio", "models"))
	}
	return out
}

// studioFolder is the folder that LM Studio's settings name, "" where they name none.
func studioFolder(home string) string {
	for _, dir := range []string{".lmstudio", filepath.Join(".cache", "lm-studio")} {
		b, err := readSmall(filepath.Join(home, dir, "settings.json"))
		if err != nil {
			continue
		}
		var settings struct {
			Folder string `json:"downloadsFolder"`
		}
		if json.Unmarshal(b, &settings) == nil && filepath.IsAbs(settings.Folder) {
			return settings.Folder
		}
	}
	return ""
}

// root is the folder whose entries are models, or folders of them.
func (p Place) root() string {
	if p.Kind == ollamaPlace {
		return filepath.Join(p.Dir, "manifests")
	}
	return p.Dir
}

// list returns the place's models. What is not a model is left out; one that is damaged has a Problem.
func (p Place) list() []Model {
	var out []Model
	switch p.Kind {
	case ollamaPlace:
		out = ollamaModels(p.Dir)
	case hubPlace:
		out = hubModels(p.Dir)
	case studioPlace:
		out = studioModels(p.Dir)
	}
	for i := range out {
		out[i].Where = p.Kind
	}
	return out
}

// manifest is an Ollama manifest, as container registries have it.
type manifest struct {
	Layers []Layer `json:"layers"`
}

// A Layer is a blob that an Ollama manifest names.
type Layer struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"` // sha256:HEX
	Size      int64  `json:"size"`
}

const layerPrefix = "application/vnd.ollama.image."

// Kind is the layer's role: "model", "template", "license", ...
func (l Layer) Kind() string {
	kind, ok := strings.CutPrefix(l.MediaType, layerPrefix)
	if !ok {
		return ""
	}
	return kind
}

// Sum is the SHA-256 of the layer, "" where the digest is none.
func (l Layer) Sum() string {
	if hex, ok := strings.CutPrefix(l.Digest, "sha256:"); ok && sha256RE.MatchString(hex) {
		return hex
	}
	return ""
}

// ParseOllama reads an Ollama manifest. problem says why its model cannot run here, "" where nothing stands against it.
func ParseOllama(b []byte) (layers []Layer, problem string, err error) {
	var m manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, "", fmt.Errorf("not a manifest: %w", err)
	}
	models, tensors, adapters := 0, 0, 0
	for _, l := range m.Layers {
		if l.Sum() == "" || l.Size < 0 {
			return nil, "", fmt.Errorf("not a manifest: digest %q with size %d", l.Digest, l.Size)
		}
		switch l.Kind() {
		case "model":
			models++
		case "tensor":
			tensors++
		case "adapter":
			adapters++
		}
	}
	switch {
	case adapters > 0:
		problem = "it has an adapter, and without it would answer as another model; merge it into the weights"
	case tensors > 0:
		problem = "Ollama keeps it tensor by tensor; fetch it from Hugging Face instead"
	case models == 0:
		problem = "it has no weights on this machine (a cloud model?)"
	case models > 1:
		problem = fmt.Sprintf("its weights are in %d layers; fetch it from Hugging Face instead", models)
	}
	return m.Layers, problem, nil
}

// ollamaModels reads manifests/HOST/NAMESPACE/MODEL/TAG.
func ollamaModels(dir string) []Model {
	root := filepath.Join(dir, "manifests")
	paths, err := filepath.Glob(filepath.Join(globQuote(root), "*", "*", "*", "*"))
	if err != nil {
		return nil
	}
	var out []Model
	for _, path := range paths {
		rel, err := filepath.Rel(root, path)
		if err != nil {
			continue
		}
		parts := strings.Split(filepath.ToSlash(rel), "/")
		if !ollamaTag.MatchString(parts[3]) {
			continue // what file managers and editors leave
		}
		if m, ok := ollamaModel(dir, path, parts); ok {
			out = append(out, m)
		}
	}
	return out
}

// ollamaTag is what may be a tag, and so the name of a manifest.
var ollamaTag = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)

var globSpecial = regexp.MustCompile(`[*?\[\\]`)

// globQuote makes a path that a pattern takes literally.
func globQuote(path string) string {
	if runtime.GOOS == "windows" {
		return path
	}
	return globSpecial.ReplaceAllString(path, `\$0`)
}

func ollamaModel(dir, path string, parts []string) (Model, bool) {
	m := Model{Name: ollamaName(parts), Path: path}
	fi, err := os.Stat(path)
	if err == nil && fi.IsDir() {
		return m, false
	}
	var layers []Layer
	if err == nil {
		m.Modified = fi.ModTime()
		layers, m.Problem, err = readOllama(path)
	}
	if err != nil {
		m.Problem = fmt.Sprintf("its manifest cannot be read (%v); ollama pull mends that", err)
		return m, true
	}
	for _, l := range layers {
		blob := filepath.Join(dir, "blobs", "sha256-"+l.Sum())
		switch l.Kind() {
		case "model":
			m.Path, m.Digest = blob, l.Sum()
			if fi, err := os.Stat(blob); err != nil || fi.Size() != l.Size {
				m.Problem = "its weights are missing or cut off; ollama pull mends that"
			}
			m.Size += l.Size
		case "projector", "adapter", "tensor":
			m.Size += l.Size
		default:
			m.take(l.Kind(), blob, l.Size)
		}
	}
	return m, true
}

func readOllama(path string) (layers []Layer, problem string, err error) {
	b, err := readSmall(path)
	if err != nil {
		return nil, "", err
	}
	return ParseOllama(b)
}

// LayerFile is the name under which a layer of a kind lies in a folder of the store, "" where none is kept.
func LayerFile(kind string) string {
	return map[string]string{
		"model": "model.gguf", "template": "template.ollama", "system": "system.txt", "params": "params.json", "messages": "messages.json", "license": "LICENSE",
	}[kind]
}

// takeFolder takes over what the layers of a folder say beside the weights.
func (m *Model) takeFolder(dir string, man Manifest) {
	at := func(name string) int {
		return slices.IndexFunc(man.Files, func(f File) bool { return f.Name == name })
	}
	if man.Link == "" { // files of these names mean something else in other places
		if e, ok, err := Remote(man.Source, false); err != nil || !ok || e.Sources[0].Ollama == nil {
			return
		}
	}
	for _, kind := range []string{"template", "system", "params", "messages", "license"} {
		if i := at(LayerFile(kind)); i >= 0 {
			m.take(kind, filepath.Join(dir, man.Files[i].Name), man.Files[i].Size)
		}
	}
}

// take takes over what a layer says beside the weights. Settings that cannot be read are a problem: without them the
// model would answer otherwise than it was made to.
func (m *Model) take(kind, path string, size int64) {
	var err error
	var b []byte
	if LayerFile(kind) != "" {
		b, err = readSmall(path)
		if err == nil && int64(len(b)) != size {
			err = io.ErrUnexpectedEOF
		}
	}
	switch kind {
	case "system":
		m.System = string(b)
	case "params":
		if err == nil {
			err = json.Unmarshal(b, &m.Params)
		}
	case "messages":
		if err == nil {
			err = json.Unmarshal(b, &m.Messages)
		}
	case "template":
		m.Template, err = string(b), nil // in a language that is not read here
	case "license":
		if m.Licence == "" {
			m.Licence = firstLine(string(b))
		}
		err = nil
	}
	if err != nil && m.Problem == "" {
		m.Problem = fmt.Sprintf("its %s cannot be read: %v", kind, err)
	}
}

// ollamaName is how Ollama shows a name: what is usual is left out, the tag is not.
func ollamaName(parts []string) string {
	name := parts[2] + ":" + parts[3]
	if parts[1] != "library" {
		name = parts[1] + "/" + name
	}
	if parts[0] != defaultRegistry {
		name = parts[0] + "/" + name
	}
	return name
}

func firstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			if len(line) > 60 {
				line = strings.ToValidUTF8(line[:60], "")
			}
			return line
		}
	}
	return ""
}

// hubModels reads models--ORG--REPO/snapshots/REVISION: of each repository the revision that main names, else the
// newest.
func hubModels(dir string) []Model {
	repos, err := filepath.Glob(filepath.Join(globQuote(dir), "models--*"))
	if err != nil {
		return nil
	}
	var out []Model
	for _, r := range repos {
		name := strings.ReplaceAll(strings.TrimPrefix(filepath.Base(r), "models--"), "--", "/")
		if snap := snapshot(r); snap != "" {
			out = append(out, folderModels(snap, name)...)
		}
	}
	return out
}

func snapshot(repo string) string {
	if b, err := readSmall(filepath.Join(repo, "refs", "main")); err == nil {
		rev := strings.TrimSpace(string(b))
		dir := filepath.Join(repo, "snapshots", rev)
		if fi, err := os.Stat(dir); err == nil && fi.IsDir() && filepath.IsLocal(rev) && rev != "" {
			return dir
		}
	}
	entries, err := os.ReadDir(filepath.Join(repo, "snapshots"))
	if err != nil {
		return ""
	}
	best, newest := "", int64(0)
	for _, e := range entries {
		if fi, err := e.Info(); err == nil && e.IsDir() && fi.ModTime().UnixNano() > newest {
			best, newest = filepath.Join(repo, "snapshots", e.Name()), fi.ModTime().UnixNano()
		}
	}
	return best
}

// studioModels reads PUBLISHER/REPO.
func studioModels(dir string) []Model {
	folders, err := filepath.Glob(filepath.Join(globQuote(dir), "*", "*"))
	if err != nil {
		return nil
	}
	var out []Model
	for _, f := range folders {
		if fi, err := os.Stat(f); err == nil && fi.IsDir() {
			out = append(out, folderModels(f, filepath.Base(filepath.Dir(f))+"/"+filepath.Base(f))...)
		}
	}
	return out
}

var shardName = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.gguf$`)

// shards lists the parts of the split model that path is one of, or path alone.
func shards(path string) []string {
	m := shardName.FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return []string{path}
	}
	var n int
	if _, err := fmt.Sscanf(m[3], "%d", &n); err != nil || n < 1 || n > 10000 {
		return []string{path}
	}
	out := make([]string, n)
	for i := range out {
		out[i] = filepath.Join(filepath.Dir(path), fmt.Sprintf("%s-%05d-of-%s.gguf", m[1], i+1, m[3]))
	}
	return out
}

// folderModels finds the models of a folder: one of safetensors, and each GGUF file, where a split one counts once.
// With several, the file's name without what it shares with the folder's stands behind a colon.
func folderModels(dir, name string) []Model {
	var out []Model
	if m, ok := tensorsFolder(dir, name); ok {
		out = append(out, m)
	}
	var files []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // what cannot be read is left out
		}
		rel, rerr := filepath.Rel(dir, path)
		if d.IsDir() && (rerr != nil || strings.Count(rel, string(filepath.Separator)) > 1) {
			return fs.SkipDir
		}
		if m := shardName.FindStringSubmatch(d.Name()); m != nil && m[2] != "00001" {
			return nil
		}
		if strings.HasSuffix(strings.ToLower(d.Name()), ".gguf") &&
			!strings.Contains(strings.ToLower(d.Name()), "mmproj") {
			files = append(files, path)
		}
		return nil
	})
	for _, f := range files {
		m := Model{Name: name, Path: f}
		if len(files) > 1 || len(out) > 0 && len(files) > 0 && out[0].Path == dir {
			m.Name = name + ":" + stem(f)
		}
		fi, err := os.Stat(f)
		if err != nil {
			m.Problem = "its file is missing"
			m.Modified = modified(dir)
		} else {
			m.Modified = fi.ModTime()
		}
		for _, s := range shards(f) {
			if fi, err := os.Stat(s); err == nil {
				m.Size += fi.Size()
			} else {
				m.Problem = "not all of its parts are there: " + filepath.Base(s) + " is missing"
			}
		}
		out = append(out, m)
	}
	return out
}

// stem is a GGUF file's name without its end and its number.
func stem(path string) string {
	base := filepath.Base(path)
	if m := shardName.FindStringSubmatch(base); m != nil {
		return m[1]
	}
	return base[:len(base)-len(".gguf")]
}

func tensorsFolder(dir, name string) (Model, bool) {
	if _, err := os.Stat(filepath.Join(dir, "config.json")); err != nil {
		return Model{}, false
	}
	files, err := filepath.Glob(filepath.Join(globQuote(dir), "*.safetensors"))
	if err != nil || len(files) == 0 {
		return Model{}, false
	}
	m := Model{Name: name, Path: dir, Modified: modified(dir)}
	for _, f := range files {
		if fi, err := os.Stat(f); err == nil {
			m.Size += fi.Size()
		} else {
			m.Problem = "not all of its files are there: " + filepath.Base(f) + " is missing"
		}
	}
	if p := missingShard(dir); p != "" {
		m.Problem = "not all of its files are there: " + p + " is missing"
	}
	return m, true
}

// missingShard names a file of the index that is not there.
func missingShard(dir string) string {
	b, err := readIndex(filepath.Join(dir, "model.safetensors.index.json"))
	if err != nil {
		return ""
	}
	var index struct {
		Map map[string]string `json:"weight_map"`
	}
	if json.Unmarshal(b, &index) != nil {
		return ""
	}
	var missing []string
	seen := map[string]bool{}
	for _, file := range index.Map {
		if seen[file] || !filepath.IsLocal(file) {
			continue
		}
		seen[file] = true
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			missing = append(missing, file)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return slices.Min(missing)
}

// readIndex reads a list of tensors, which may be longer than a manifest.
func readIndex(path string) ([]byte, error) { return mmap.ReadSmall(path, 64<<20) }

func sortModels(m []Model) {
	slices.SortStableFunc(m, func(a, b Model) int {
		return cmp.Or(
			cmp.Compare(placeRank(a.Where), placeRank(b.Where)),
			cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Path, b.Path),
		)
	})
}

func placeRank(where string) int {
	return slices.Index([]string{ownPlace, ollamaPlace, hubPlace, studioPlace}, where)
}

func modified(path string) time.Time {
	fi, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return fi.ModTime()
}
