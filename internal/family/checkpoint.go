package family

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/baleenrun/baleen/internal/gguf"
	"github.com/baleenrun/baleen/internal/mmap"
	"github.com/baleenrun/baleen/internal/plan"
	"github.com/baleenrun/baleen/internal/safetensors"
)

// Checkpoint is an open model in either container. Close ends the life of every plan lowered from it.
type Checkpoint struct {
	path string // as opened
	dir  string // folder with tokenizer and template files

	files files

	gguf *gguf.File       // nil: safetensors
	set  *safetensors.Set // nil: GGUF

	config     map[string]any // safetensors: config.json, with text_config in place of a wrapper
	generation map[string]any // safetensors: generation_config.json, nil if there is none
	template   string         // safetensors: the chat template, "" if there is none
	kind       string         // model_type or general.architecture
	wrapped    bool           // config is the text_config of a multimodal model
	fam        *family        // nil: not supported; Lower says so
}

// Options say what a checkpoint is lowered for.
type Options struct {
	// Context is the number of positions; 0 is the model's maximum.
	Context int
}

// maxJSON bounds the size of configuration files.
const maxJSON = 16 << 20

// Open opens a model: a GGUF file (any shard of it), a folder with config.json and safetensors, or a folder with one
// GGUF model. A model of a family that is not supported opens too, so that it can be described; Lower refuses it.
func Open(path string) (c *Checkpoint, err error) {
	err = mmap.Guard(func() error {
		c, err = open(path)
		return err
	})
	return c, shortened(err, path)
}

// shortened says which file an error of mmap.Guard is about.
func shortened(err error, path string) error {
	if errors.Is(err, mmap.ErrShortened) {
		return fmt.Errorf("family: %s: %w", path, err)
	}
	return err
}

func open(path string) (*Checkpoint, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("family: %w", err)
	}
	if !info.IsDir() {
		if strings.HasSuffix(path, ".safetensors") || strings.HasSuffix(path, ".json") {
			return openHF(path, filepath.Dir(path))
		}
		return openGGUF(path, path)
	}
	if _, err := os.Stat(filepath.Join(path, "config.json")); err == nil && holds(path, ".safetensors") {
		return openHF(path, path)
	}
	file, err := onlyGGUF(path)
	if err != nil {
		return nil, err
	}
	return openGGUF(path, file)
}

func holds(dir, suffix string) bool {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if err == nil && strings.HasSuffix(e.Name(), suffix) {
			return true
		}
	}
	return false
}

// onlyGGUF finds the one model of a folder; vision projectors and later shards do not count.
func onlyGGUF(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("family: %w", err)
	}
	var found []string
	for _, e := range entries {
		n := e.Name()
		later := strings.Contains(n, "-of-") && !strings.Contains(n, "-00001-of-")
		if strings.HasSuffix(n, ".gguf") && !strings.HasPrefix(strings.ToLower(n), "mmproj") && !later {
			found = append(found, n)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("family: %s holds neither config.json with safetensors nor a .gguf file", dir)
	case 1:
		return filepath.Join(dir, found[0]), nil
	}
	return "", fmt.Errorf("family: %s holds several models: %s; name one of them", dir, strings.Join(found, ", "))
}

// templateKey holds a GGUF file's chat template.
const templateKey = "tokenizer.chat_template"

func openGGUF(path, file string) (*Checkpoint, error) {
	f, err := gguf.Open(file)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{path: path, dir: filepath.Dir(file), gguf: f, files: files{names: f.Paths(), ids: f.Identities()}}
	arch, ok := f.String("general.architecture")
	if !ok {
		return nil, errors.Join(fmt.Errorf("family: %s does not say its general.architecture", file), f.Close())
	}
	if v, ok := f.Get(templateKey); ok {
		if c.template, ok = v.Text(); !ok { // a model that chats would count as one that only continues texts
			return nil, errors.Join(fmt.Errorf("family: %s: %s is no text", file, templateKey), f.Close())
		}
	}
	c.kind = arch
	c.fam = familyOf(arch, func(f *family) []string { return f.gguf })
	return c, nil
}

func openHF(path, dir string) (*Checkpoint, error) {
	c := &Checkpoint{path: path, dir: dir}
	var err error
	if c.files, err = filesIn(dir); err != nil {
		return nil, err
	}
	switch c.config, err = readJSON(filepath.Join(dir, "config.json")); {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("family: %s is no model: there is no config.json beside its weights", path)
	case err != nil:
		return nil, err
	}
	if c.generation, err = readJSON(filepath.Join(dir, "generation_config.json")); err != nil &&
		!errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if c.template, err = FolderTemplate(dir); err != nil {
		return nil, err
	}
	c.identify()
	if c.set, err = safetensors.Open(dir); err != nil {
		return nil, err
	}
	return c, nil
}

// identify finds the family that config.json names.
func (c *Checkpoint) identify() {
	c.kind, _ = c.config["model_type"].(string)
	c.unwrap()
	c.fam = familyOf(c.kind, func(f *family) []string { return f.hf })
}

// unwrap replaces a multimodal configuration by its text part.
func (c *Checkpoint) unwrap() {
	text, ok := c.config["text_config"].(map[string]any)
	own, known := wrappers[c.kind]
	if !ok || !known {
		return
	}
	for _, k := range []string{"tie_word_embeddings", "quantization_config", "quantization", "eos_token_id", "bos_token_id"} {
		if v, ok := c.config[k]; ok && text[k] == nil {
			text[k] = v
		}
	}
	c.config, c.kind, c.wrapped = text, own, true
	if t, ok := text["model_type"].(string); ok {
		c.kind = t
	}
}

// readJSON reads an object; numbers keep their digits.
func readJSON(path string) (map[string]any, error) {
	data, err := readSmall(path)
	if err != nil {
		return nil, err
	}
	v, err := decodeJSON(data)
	if err != nil {
		return nil, fmt.Errorf("family: %s is no JSON object: %w", path, err)
	}
	return v, nil
}

// readSmall reads a configuration file.
func readSmall(path string) ([]byte, error) {
	data, err := mmap.ReadSmall(path, maxJSON)
	if err != nil {
		return nil, fmt.Errorf("family: %w", err)
	}
	return data, nil
}

// decodeJSON reads one object. Its errors speak of JSON, not of the types that hold it here.
func decodeJSON(data []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v map[string]any
	err := d.Decode(&v)
	var other *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF):
		return nil, errors.New("it is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("it is cut off, fetch it again")
	case errors.As(err, &other):
		return nil, fmt.Errorf("it is of another kind (%s)", other.Value)
	case err != nil:
		return nil, err
	case v == nil:
		return nil, errors.New("it is null")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more behind it")
	}
	return v, nil
}

// Close closes the files.
func (c *Checkpoint) Close() error {
	if c.gguf != nil {
		return c.gguf.Close()
	}
	return c.set.Close()
}

// GGUF returns the open file, nil for other containers. It is closed with the checkpoint.
func (c *Checkpoint) GGUF() *gguf.File { return c.gguf }

// Safetensors returns the open files of a folder, nil for GGUF. They are closed with the checkpoint.
func (c *Checkpoint) Safetensors() *safetensors.Set { return c.set }

// Dir returns the folder that holds the model's files.
func (c *Checkpoint) Dir() string { return c.dir }

// Lower makes the plan. Its weights view the checkpoint's files where nothing had to be transformed. The error says
// which tensor or configuration key is missing, unknown or not supported.
func (c *Checkpoint) Lower(o Options) (p *plan.Plan, err error) {
	err = mmap.Guard(func() error {
		p, err = c.lower(o)
		return err
	})
	return p, shortened(err, c.path)
}

func (c *Checkpoint) lower(o Options) (p *plan.Plan, err error) {
	switch {
	case c.kind == "" && c.gguf == nil:
		return nil, fmt.Errorf("family: %s: config.json names no model_type", c.path)
	case c.fam == nil:
		return nil, fmt.Errorf(
			"family: %s: models of type %q are not supported; the families are %s",
			c.path,
			c.kind,
			strings.Join(Names(), ", "),
		)
	}
	if o.Context < 0 {
		return nil, fmt.Errorf("family: a context of %d positions", o.Context)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w (in %s)", err, c.path)
		}
	}()
	defer catch(&err)
	cfg := c.newConfig(o.Context)
	m := c.fam.spec(cfg)
	if cfg.gguf {
		cfg.finish("metadata of "+c.kind, harmlessGGUF, c.fam.harmless)
	} else {
		cfg.finish("config.json", harmlessHF, falseOnly, c.fam.harmless)
	}
	p = build(cfg, c.fam, m)
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("family: %w", err)
	}
	return p, nil
}

// newConfig makes the configuration that the family reads.
func (c *Checkpoint) newConfig(limit int) *config {
	cfg := &config{used: map[string]bool{}, limit: limit}
	if c.gguf != nil {
		cfg.gguf = true
		cfg.source = ggufSource{c.gguf}
		cfg.values = ggufValues(c.gguf, c.kind, c.fam.keys)
		return cfg
	}
	cfg.values = map[string]any{}
	for k, v := range c.config {
		cfg.values[k] = v
	}
	for k, v := range c.fam.defaults {
		cfg.used[k] = true
		if _, ok := cfg.values[k]; !ok {
			cfg.values[k] = v
		}
	}
	cfg.wrapped = c.wrapped
	cfg.source = &hfSource{set: c.set, quant: cfg.hfQuantization()}
	return cfg
}

// hfQuantization reads how weights are stored and refuses what cannot be decoded.
func (c *config) hfQuantization() hfQuant {
	q := hfQuant{blockRows: 128, blockCols: 128}
	d := c.dict("quantization_config")
	if m := c.dict("quantization"); m != nil {
		q.mlx = m
	}
	if d == nil {
		return q
	}
	method, _ := d["quant_method"].(string)
	switch method {
	case "fp8", "fbgemm_fp8", "mxfp4":
	case "compressed-tensors":
		if f, _ := d["format"].(string); f != "float-quantized" && f != "naive-quantized" && f != "dense" {
			c.fail("weights in the compressed-tensors format %q cannot be read", f)
		}
	case "":
		if q.mlx == nil {
			q.mlx = d // MLX writes both keys
		}
	default:
		c.fail("weights quantized by %q cannot be read; take the original, an FP8, MLX or GGUF version", method)
	}
	if block, ok := d["weight_block_size"].([]any); ok {
		if len(block) != 2 {
			c.fail("weight_block_size is %v", block)
		}
		q.blockRows = c.integer("weight_block_size", block[0], 1, 1<<20)
		q.blockCols = c.integer("weight_block_size", block[1], 1, 1<<20)
	}
	return q
}
