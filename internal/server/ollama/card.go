package ollama

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/family"
	"github.com/baleenrun/baleen/internal/gguf"
	"github.com/baleenrun/baleen/internal/server/ollama/modelfile"
	"github.com/baleenrun/baleen/internal/toolfmt"
)

// A card is what a model's files say about it, without loading it.
type card struct {
	info         family.Info
	capabilities []string
	keys         map[string]any // as GGUF names them; lists are null
	embedding    int            // width of the model's vectors; 0: not known
	tensors      []tensorBody
	problem      error // why the rest is not all
}

// details are Ollama's few words on a model.
type details struct {
	Parent       string   `json:"parent_model"`
	Format       string   `json:"format"`
	Family       string   `json:"family"`
	Families     []string `json:"families"`
	Parameters   string   `json:"parameter_size"`
	Quantization string   `json:"quantization_level"`
	Context      int      `json:"context_length,omitempty"`
	Embedding    int      `json:"embedding_length,omitempty"`
}

type tensorBody struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Shape []int  `json:"shape"`
}

// cards keeps what was read, as long as the files do not change. The zero value is empty.
type cards struct {
	load func(chat.Spec) (card, error) // nil: readCard

	mu      sync.Mutex
	read    map[cardKey]card
	running map[cardKey]*reading
}

// A reading is a card that is being read; got is set when done is closed.
type reading struct {
	done chan struct{}
	got  card
}

type cardKey struct {
	path, template string
	size           int64
	time           time.Time
}

const maxCards = 256

// of reads the card of a model. A model whose files cannot be read has an empty one: it is listed all the same, and
// read again when it is asked for again. A file is read once for all that ask at the same time, and a slow one keeps
// nobody from the others.
func (c *cards) of(spec chat.Spec) card {
	key := cardKey{spec.Path, spec.Template, spec.Size, time.Time{}}
	if st, err := os.Stat(spec.Path); err == nil {
		key.size, key.time = st.Size(), st.ModTime()
	}
	c.mu.Lock()
	if k, ok := c.read[key]; ok {
		c.mu.Unlock()
		return k
	}
	if r, ok := c.running[key]; ok {
		c.mu.Unlock()
		<-r.done
		return r.got
	}
	r := &reading{done: make(chan struct{})}
	if c.running == nil {
		c.running = map[cardKey]*reading{}
	}
	c.running[key] = r
	c.mu.Unlock()
	c.fill(key, r, spec)
	return r.got
}

// fill reads one card and lets go of those that wait for it, whatever happens.
func (c *cards) fill(key cardKey, r *reading, spec chat.Spec) {
	keep := false
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.running, key)
		if keep {
			if c.read == nil || len(c.read) >= maxCards {
				c.read = map[cardKey]card{}
			}
			c.read[key] = r.got
		}
		close(r.done)
	}()
	load := c.load
	if load == nil {
		load = readCard
	}
	got, err := load(spec)
	got.problem = err
	r.got, keep = got, err == nil
}

// readCard reads what a model's files say; beside an error stands what could be read.
func readCard(spec chat.Spec) (card, error) {
	var c card
	p, err := family.Open(spec.Path)
	if err != nil {
		return c, err
	}
	defer p.Close()
	c.info = p.Info()
	tokens := map[string]bool{}
	f, err := gguf.Open(spec.Path)
	if err == nil {
		defer f.Close()
		c.fromGGUF(f, tokens)
	} else {
		c.keys = c.plainKeys()
		if c.info.Container != "gguf" {
			err = nil // a checkpoint of another container has no such file
		}
	}
	template := c.info.ChatTemplate
	if spec.Template != "" {
		template = spec.Template
	}
	c.capabilities = capabilities(c.info, template, func(t string) bool { return tokens[t] })
	return c, err
}

// fromGGUF reads keys and tensors.
func (c *card) fromGGUF(f *gguf.File, tokens map[string]bool) {
	c.keys = map[string]any{}
	for _, k := range f.Keys() {
		v, _ := f.Get(k)
		c.keys[k] = plain(v)
	}
	if n, ok := f.Uint(c.info.Type + ".embedding_length"); ok {
		c.embedding = int(min(n, 1<<31))
	}
	c.keys["general.parameter_count"] = c.info.Parameters
	list, _ := f.Strings("tokenizer.ggml.tokens")
	types, _ := f.Ints("tokenizer.ggml.token_type")
	for i, t := range list {
		if i >= len(types) || types[i] != 1 { // marks are no ordinary tokens
			tokens[t] = true
		}
	}
	for _, t := range f.Tensors() {
		c.tensors = append(c.tensors, tensorBody{t.Name, t.Type.String(), slices.Clone(t.Dims)})
	}
}

// plain is a metadata value for JSON: lists are left out, as Ollama does.
func plain(v gguf.Value) any {
	if s, ok := v.Text(); ok {
		return s
	}
	if n, ok := v.Int(); ok {
		return n
	}
	if n, ok := v.Uint(); ok {
		return n
	}
	if f, ok := v.Float(); ok && f-f == 0 { // JSON has neither NaN nor infinities
		return f
	}
	if b, ok := v.Bool(); ok {
		return b
	}
	return nil
}

// plainKeys says in GGUF's names what a checkpoint of another container is.
func (c *card) plainKeys() map[string]any {
	i := c.info
	return map[string]any{
		"general.architecture":     i.Type,
		"general.name":             i.Name,
		"general.parameter_count":  i.Parameters,
		i.Type + ".context_length": i.MaxContext,
		i.Type + ".block_count":    i.Layers,
		i.Type + ".vocab_size":     i.Vocab,
	}
}

// capabilities are Ollama's words for what a model can do.
func capabilities(info family.Info, template string, hasToken func(string) bool) []string {
	out := []string{"completion"}
	if template != "" {
		f := toolfmt.For(
			toolfmt.Hints{Template: template, Architecture: info.Type, Name: info.Name, HasToken: hasToken},
		)
		if f.TemplateRendersTools() {
			out = append(out, "tools")
		}
		if open, _ := f.ThinkTags(); open != "" || f.SupportsThinkingSwitch() {
			out = append(out, "thinking")
		}
	}
	if chat.FillsGaps(hasToken) {
		out = append(out, "insert")
	}
	return out
}

func (c *card) details(parent string) details {
	return details{
		Parent: parent, Format: c.info.Container, Family: c.info.Type, Families: []string{c.info.Type},
		Parameters: count(
			c.info.Parameters,
		), Quantization: c.info.Quantization, Context: c.info.MaxContext, Embedding: c.embedding,
	}
}

// count writes a number of parameters as Ollama does: 494.03M, 1.5B.
func count(n int64) string {
	f := float64(n)
	switch {
	case n >= 1e9:
		return strconv.FormatFloat(f/1e9, 'f', 1, 64) + "B"
	case n >= 1e6:
		return strconv.FormatFloat(f/1e6, 'f', 2, 64) + "M"
	case n >= 1e3:
		return strconv.FormatFloat(f/1e3, 'f', 2, 64) + "K"
	}
	return strconv.FormatInt(n, 10)
}

// digest identifies what a name stands for: the weights, by their checksum where it is known, else by place, size and
// time, and what was added to them.
func digest(s chat.Spec) string {
	h := sha256.New()
	if s.Digest != "" {
		fmt.Fprintf(h, "weights %s\n", s.Digest)
	} else {
		fmt.Fprintf(h, "file %q %d %d\n", s.Path, s.Size, s.Time.UnixNano())
	}
	added, err := json.Marshal([]any{s.System, s.Template, s.Messages, s.Stop, s.Sampling, s.MaxTokens, s.Context})
	if err == nil {
		h.Write(added)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// describe writes what a model is as a Modelfile.
func describe(name string, s chat.Spec, licence string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# To build on this model, replace FROM with:\n# FROM %s\n\nFROM %s\n", withTag(name), s.Path)
	line := func(command, text string) {
		if q, ok := modelfile.Quote(text); ok {
			fmt.Fprintf(&b, "%s %s\n", command, q)
		} else {
			fmt.Fprintf(&b, "# %s: no Modelfile can have this text, as a line in it ends in \"\"\"\n", command)
		}
	}
	if s.Template != "" {
		line("TEMPLATE", s.Template)
	}
	if s.System != "" {
		line("SYSTEM", s.System)
	}
	for _, p := range parameters(s) {
		if p.text {
			line("PARAMETER "+p.name, p.value)
		} else {
			fmt.Fprintf(&b, "PARAMETER %s %s\n", p.name, p.value)
		}
	}
	for _, m := range s.Messages {
		line("MESSAGE "+m.Role, textOf(m))
	}
	if licence != "" {
		line("LICENSE", licence)
	}
	return b.String()
}

func textOf(m chat.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

type parameter struct {
	name, value string
	text        bool // the value is one
}

// parameters lists what a model sets, as lines of a Modelfile name it.
func parameters(s chat.Spec) []parameter {
	var out []parameter
	number := func(name string, f *float32) {
		if f != nil {
			out = append(out, parameter{name: name, value: strconv.FormatFloat(float64(*f), 'g', -1, 32)})
		}
	}
	whole := func(name string, n int) { out = append(out, parameter{name: name, value: strconv.Itoa(n)}) }
	if s.Context > 0 {
		whole("num_ctx", s.Context)
	}
	if s.MaxTokens > 0 {
		whole("num_predict", s.MaxTokens)
	}
	number("temperature", s.Sampling.Temperature)
	if s.Sampling.TopK != nil {
		whole("top_k", *s.Sampling.TopK)
	}
	number("top_p", s.Sampling.TopP)
	number("min_p", s.Sampling.MinP)
	number("typical_p", s.Sampling.TypicalP)
	number("repeat_penalty", s.Sampling.RepetitionPenalty)
	if s.Sampling.RepeatLastN != nil {
		whole("repeat_last_n", *s.Sampling.RepeatLastN)
	}
	number("presence_penalty", s.Sampling.PresencePenalty)
	number("frequency_penalty", s.Sampling.FrequencyPenalty)
	if s.Sampling.Seed != nil {
		out = append(out, parameter{name: "seed", value: strconv.FormatInt(int64(*s.Sampling.Seed), 10)})
	}
	for _, t := range s.Stop {
		out = append(out, parameter{"stop", t, true})
	}
	return out
}
