package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/baleenrun/baleen/internal/mmap"
)

// maxFile bounds the files that are read, in bytes.
const maxFile = 1 << 29

// FromDir builds a tokenizer from the files of a model folder: tokenizer.json,
// else tokenizer.model (SentencePiece or tiktoken), else tiktoken.model or
// *.tiktoken. tokenizer_config.json, special_tokens_map.json and
// generation_config.json add what begins and ends a sequence.
func FromDir(dir string) (*Tokenizer, error) {
	c, err := readDirConfig(dir)
	if err != nil {
		return nil, err
	}
	t, name, err := fromDirFile(dir, c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
	}
	if t.bos < 0 {
		t.bos = -1
		if id, ok := t.ID(string(c.BOS)); ok && c.BOS != "" {
			t.bos = id
		}
	}
	var eos []int32
	if id, ok := t.ID(string(c.EOS)); ok && c.EOS != "" {
		eos = append(eos, id)
	}
	t.finish(append(eos, c.ends...))
	return t, nil
}

func fromDirFile(dir string, c *dirConfig) (*Tokenizer, string, error) {
	names := []string{"tokenizer.json", "tokenizer.model", "tiktoken.model"}
	more, err := filepath.Glob(filepath.Join(globEscape(dir), "*.tiktoken"))
	if err != nil {
		return nil, "", err
	}
	for _, m := range more {
		names = append(names, filepath.Base(m))
	}
	for _, name := range names {
		data, err := readFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, name, err
		}
		var t *Tokenizer
		switch {
		case name == "tokenizer.json":
			t, err = fromJSON(data)
		case looksTiktoken(data):
			t, err = fromTiktoken(data, c.added())
			if err == nil {
				c.around(t, false, false)
			}
		default:
			t, err = c.fromSPM(data)
		}
		return t, name, err
	}
	return nil, "", errors.New("no tokenizer.json, tokenizer.model, tiktoken.model or *.tiktoken in this folder")
}

func globEscape(dir string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}

func readFile(path string) ([]byte, error) { return mmap.ReadSmall(path, maxFile) }

// tokenName is a token in a configuration: a string or an object with content.
type tokenName string

func (n *tokenName) UnmarshalJSON(raw []byte) error {
	var s string
	if unmarshal(raw, &s) == nil {
		*n = tokenName(s)
		return nil
	}
	var o struct {
		Content string `json:"content"`
	}
	err := unmarshal(raw, &o)
	*n = tokenName(o.Content)
	return err
}

// dirConfig is what the configuration files say.
type dirConfig struct {
	BOS     tokenName `json:"bos_token"`
	EOS     tokenName `json:"eos_token"`
	AddBOS  *bool     `json:"add_bos_token"`
	AddEOS  *bool     `json:"add_eos_token"`
	Class   string    `json:"tokenizer_class"`
	Decoder map[string]struct {
		Content    string `json:"content"`
		SingleWord bool   `json:"single_word"`
		Lstrip     bool   `json:"lstrip"`
		Rstrip     bool   `json:"rstrip"`
		Normalized bool   `json:"normalized"`
		Special    bool   `json:"special"`
	} `json:"added_tokens_decoder"`

	ends []int32 // of generation_config.json
}

// readDirConfig reads the files that are there.
func readDirConfig(dir string) (*dirConfig, error) {
	c := &dirConfig{}
	var names struct {
		BOS tokenName `json:"bos_token"`
		EOS tokenName `json:"eos_token"`
	}
	var generation struct {
		EOS json.RawMessage `json:"eos_token_id"`
	}
	for _, f := range []struct {
		name string
		v    any
	}{{"tokenizer_config.json", c}, {"special_tokens_map.json", &names}, {"generation_config.json", &generation}} {
		data, err := readFile(filepath.Join(dir, f.name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = unmarshal(data, f.v)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(dir, f.name), err)
		}
	}
	if c.BOS == "" {
		c.BOS = names.BOS
	}
	if c.EOS == "" {
		c.EOS = names.EOS
	}
	var one int32
	if isNull(generation.EOS) {
		return c, nil
	}
	if unmarshal(generation.EOS, &one) == nil {
		c.ends = []int32{one}
	} else if err := unmarshal(generation.EOS, &c.ends); err != nil {
		return nil, fmt.Errorf("%s: eos_token_id: %w", filepath.Join(dir, "generation_config.json"), err)
	}
	return c, nil
}

// added returns the tokens of added_tokens_decoder.
func (c *dirConfig) added() []addedToken {
	var out []addedToken
	for key, a := range c.Decoder {
		id, err := strconv.Atoi(key)
		if err != nil || id < 0 || id >= maxVocab || a.Content == "" {
			continue
		}
		out = append(
			out,
			addedToken{
				int32(id),
				a.Content,
				a.Special || looksControl(a.Content),
				a.Normalized,
				a.SingleWord,
				a.Lstrip,
				a.Rstrip,
			},
		)
	}
	slices.SortFunc(out, func(a, b addedToken) int { return int(a.id - b.id) })
	return out
}

// around sets what is put around a sequence, by the configuration or else by
// the defaults given.
func (c *dirConfig) around(t *Tokenizer, bos, eos bool) {
	if c.AddBOS != nil {
		bos = *c.AddBOS
	}
	if c.AddEOS != nil {
		eos = *c.AddEOS
	}
	if id, ok := t.vocab.id(string(c.BOS)); ok && bos && c.BOS != "" {
		t.post.before = []int32{id}
	}
	if id, ok := t.vocab.id(string(c.EOS)); ok && eos && c.EOS != "" {
		t.post.after = []int32{id}
	}
}

// fromSPM builds a tokenizer from a SentencePiece model and the configuration.
func (c *dirConfig) fromSPM(data []byte) (*Tokenizer, error) {
	class := strings.TrimSuffix(c.Class, "Fast")
	if class == "XLMRobertaTokenizer" || class == "CamembertTokenizer" || class == "MBartTokenizer" ||
		class == "NllbTokenizer" {
		return nil, fmt.Errorf(
			"%s numbers tokens differently from its SentencePiece model: a tokenizer.json is needed",
			class,
		)
	}
	m, err := parseSPM(data)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{bos: m.bos}
	if err := m.build(t); err != nil {
		return nil, err
	}
	added := c.added()
	for id, s := range m.tokens {
		kind := m.typeOf(id)
		known := slices.ContainsFunc(added, func(a addedToken) bool { return int(a.id) == id || a.text == s })
		if s != "" && !known && (kind == typeControl || kind == typeUserDefined || kind == typeUnknown) {
			added = append(
				added,
				addedToken{id: int32(id), text: s, control: kind != typeUserDefined || looksControl(s)},
			)
		}
	}
	for _, a := range added {
		t.vocab.addExtra(a.id, a.text)
		if a.control {
			t.setControl(a.id)
		}
	}
	if t.added, err = newAddedTokens(added, t.norm); err != nil {
		return nil, err
	}
	if c.BOS == "" && m.bos >= 0 {
		c.BOS = tokenName(m.tokens[m.bos])
	}
	if c.EOS == "" && m.eos >= 0 {
		c.EOS = tokenName(m.tokens[m.eos])
	}
	t5 := class == "T5Tokenizer" || m.kind == spmUnigram
	c.around(t, !t5, class == "T5Tokenizer")
	return t, nil
}
