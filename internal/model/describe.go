package model

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/baleenrun/baleen/internal/family"
	"github.com/baleenrun/baleen/internal/mmap"
	"github.com/baleenrun/baleen/internal/tokenizer"
)

// A Description is what can be said of a model without loading it.
type Description struct {
	Info      family.Info
	FileBytes int64 // of the tensors
	Roles     []Role
	Licence   string // as the file says it; "" where it does not
	Tokens    int    // size of the vocabulary; 0 where the tokenizer cannot be read
	Keys      int    // number of metadata keys

	Sampling       family.Sampling // how tokens are drawn where a request does not say so
	SamplingSource string          // who says that

	Memory  Need
	Context int   // that Memory is for
	Problem error // why it cannot run here, apart from memory; nil: it can
}

// A Role is a kind of weights with the formats that they are stored in.
type Role struct {
	Name    string   `json:"name"` // such as "attention"
	Formats []Format `json:"formats"`
}

// A Format counts the weights of one storage format.
type Format struct {
	Name       string `json:"name"` // such as "Q4_K"
	Parameters int64  `json:"parameters"`
	Bytes      int64  `json:"bytes"`
}

// Need is the memory that a model takes, in bytes.
type Need struct {
	Weights int64 `json:"weights"`
	Scratch int64 `json:"scratch"`
	Cache   int64 `json:"cache"`
}

// Total is the sum.
func (n Need) Total() int64 { return n.Weights + n.Scratch + n.Cache }

// Describe reads what is known of the model at path. o says how it would be opened. A model that cannot run is
// described too: Problem says why.
func Describe(path string, o Options) (*Description, error) {
	c, err := family.Open(path)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	d := &Description{Info: c.Info()}
	d.Sampling, d.SamplingSource = c.DefaultSampling()
	if err := d.weights(c); err != nil {
		return nil, err
	}
	if f := c.GGUF(); f != nil {
		d.Licence, _ = f.String("general.license")
		d.Keys = len(f.Keys())
	}
	tok, err := loadTokenizer(c)
	if err == nil {
		d.Tokens = tok.Size()
	}
	d.Problem = errors.Join(err, d.need(c, o))
	return d, nil
}

// Check tells whether there is a model at path, by what its files say of themselves. It reads no weights.
func Check(path string) error {
	c, err := family.Open(path)
	if err != nil {
		return err
	}
	return c.Close()
}

// CheckContext is Check, and tells whether the model has a context of so many tokens.
func CheckContext(path string, tokens int) error {
	c, err := family.Open(path)
	if err != nil {
		return err
	}
	_, err = contextFor(c.Info(), tokens)
	return errors.Join(err, c.Close())
}

func (d *Description) need(c *family.Checkpoint, o Options) (err error) {
	if d.Context, err = contextFor(d.Info, o.Context); err != nil {
		return err
	}
	p, err := c.Lower(family.Options{Context: d.Context})
	if err != nil {
		return err
	}
	o.Seqs = orDefault(o.Seqs, 1)
	be, err := o.BackendFor(p)
	if err != nil {
		return err
	}
	size, err := measure(be, p, d.Context, o)
	if err != nil {
		return err
	}
	d.Memory = Need{Weights: size.memory.Weights, Scratch: size.memory.Scratch, Cache: size.one}
	return nil
}

// weights sums the tensors by role and format.
func (d *Description) weights(c *family.Checkpoint) error {
	sums := map[string]map[string]*Format{}
	add := func(tensor, format string, elements, bytes int64) {
		role := roleOf(tensor)
		if sums[role] == nil {
			sums[role] = map[string]*Format{}
		}
		f := sums[role][format]
		if f == nil {
			f = &Format{Name: format}
			sums[role][format] = f
		}
		f.Parameters += elements
		f.Bytes += bytes
		d.FileBytes += bytes
	}
	if f := c.GGUF(); f != nil {
		for _, t := range f.Tensors() {
			add(t.Name, t.Type.String(), int64(t.Elements()), int64(t.Size()))
		}
	} else {
		for _, t := range c.Safetensors().Tensors() {
			add(t.Name, t.DType, int64(t.Elements()), int64(t.Size()))
		}
	}
	for name, formats := range sums {
		r := Role{Name: name}
		for _, f := range formats {
			r.Formats = append(r.Formats, *f)
		}
		slices.SortFunc(
			r.Formats,
			func(a, b Format) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name)) },
		)
		d.Roles = append(d.Roles, r)
	}
	slices.SortFunc(d.Roles, func(a, b Role) int { return cmp.Compare(roleRank(a.Name), roleRank(b.Name)) })
	return nil
}

// Roles of weights, in the order in which they are shown.
var roles = []string{
	"embedding",
	"attention",
	"feed-forward",
	"experts",
	"recurrent",
	"output",
	"norms and biases",
	"other",
}

func roleRank(name string) int { return slices.Index(roles, name) }

// roleOf sorts a tensor by its name, which both containers choose from few words.
func roleOf(name string) string {
	name = strings.ToLower(name)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(name, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("norm", ".bias", "layernorm", "rope_freqs", "sinks"):
		return "norms and biases"
	case has("token_embd", "embed_tokens", "word_embeddings", "embeddings", "wte.", "wpe.", "token_types", "position_embd"):
		return "embedding"
	case has("_exps", "experts"):
		return "experts"
	case has("ssm", "linear_attn", "mamba", "mixer", "shortconv", "conv"):
		return "recurrent"
	case has("attn", "attention", "_proj_qkv", "q_proj", "k_proj", "v_proj", "o_proj"):
		return "attention"
	case has("ffn", "mlp", "feed_forward", "gate_proj", "up_proj", "down_proj", "intermediate", "output.dense"):
		return "feed-forward"
	case has("lm_head") || strings.HasPrefix(name, "output."):
		return "output"
	}
	return "other"
}

// LoadTokenizer reads the tokenizer of a model, or of a folder that has only a tokenizer's files.
func LoadTokenizer(path string) (*tokenizer.Tokenizer, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		switch base := filepath.Base(path); {
		case base == "tokenizer.json":
			return tokenizer.FromDir(filepath.Dir(path))
		case strings.HasSuffix(base, ".json") && base != "model.safetensors.index.json" && base != "config.json":
			b, err := mmap.ReadSmall(path, maxTokenizer)
			if err != nil {
				return nil, err
			}
			return tokenizer.FromJSON(b)
		}
	} else if hasTokenizer(path) {
		return tokenizer.FromDir(path)
	}
	c, err := family.Open(path)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return loadTokenizer(c)
}

func hasTokenizer(dir string) bool {
	for _, name := range []string{"tokenizer.json", "tokenizer.model", "tiktoken.model"} {
		if fi, err := os.Stat(filepath.Join(dir, name)); err == nil && !fi.IsDir() {
			return true
		}
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.tiktoken"))
	return err == nil && len(found) > 0
}

// maxTokenizer bounds the file that a tokenizer may come from, in bytes.
const maxTokenizer = 1 << 29

// A TemplateSource is a chat template with the spellings that it wants as variables.
type TemplateSource struct {
	Text     string
	BOS, EOS string
}

// LoadTemplate reads the chat template of a model, or of a folder that has only a tokenizer's files.
func LoadTemplate(path string) (TemplateSource, error) {
	var s TemplateSource
	if tok, err := LoadTokenizer(path); err == nil {
		if id, ok := tok.BOS(); ok {
			s.BOS, _ = tok.Token(id)
		}
		if ids := tok.EOS(); len(ids) > 0 {
			s.EOS, _ = tok.Token(ids[0])
		}
	}
	if fi, err := os.Stat(path); err == nil && fi.IsDir() {
		if s.Text, err = family.FolderTemplate(path); err != nil || s.Text != "" {
			return s, err
		}
	}
	c, err := family.Open(path)
	if err != nil {
		return s, err
	}
	defer c.Close()
	if s.Text = c.Info().ChatTemplate; s.Text == "" {
		return s, ErrNoTemplate
	}
	return s, nil
}

// Quantization describes the formats of a role for people.
func (r Role) Quantization() string {
	var total int64
	for _, f := range r.Formats {
		total += f.Bytes
	}
	var parts []string
	for _, f := range r.Formats {
		if len(r.Formats) == 1 {
			return f.Name
		}
		parts = append(parts, fmt.Sprintf("%s %.0f %%", f.Name, 100*float64(f.Bytes)/float64(max(total, 1))))
	}
	return strings.Join(parts, ", ")
}
