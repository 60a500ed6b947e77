package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// maxVocab bounds the ids that a file may name.
const maxVocab = 1 << 24

// FromJSON builds a tokenizer from the contents of a tokenizer.json.
func FromJSON(r []byte) (*Tokenizer, error) {
	t, err := fromJSON(r)
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	t.finish(nil)
	return t, nil
}

func fromJSON(r []byte) (*Tokenizer, error) {
	file, err := rawObject(bytes.TrimPrefix(r, []byte("\xef\xbb\xbf")))
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{bos: -1}
	if t.norm, err = jsonNormalizers(file["normalizer"]); err != nil {
		return nil, fmt.Errorf("normalizer: %w", err)
	}
	pre, err := jsonPreTokenizers(file["pre_tokenizer"])
	if err != nil {
		return nil, fmt.Errorf("pre_tokenizer: %w", err)
	}
	if err := checkGrowth(t.norm, pre); err != nil {
		return nil, err
	}
	if err := t.jsonModel(file["model"], pre); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if err := t.jsonAdded(file["added_tokens"]); err != nil {
		return nil, fmt.Errorf("added_tokens: %w", err)
	}
	if t.post, err = t.jsonPost(file["post_processor"]); err != nil {
		return nil, fmt.Errorf("post_processor: %w", err)
	}
	if t.steps, err = jsonDecoder(file["decoder"]); err != nil {
		return nil, fmt.Errorf("decoder: %w", err)
	}
	return t, nil
}

// setPre installs the pre-tokenizers, as scanners where that is possible.
func (t *Tokenizer) setPre(pre []preTokenizer) {
	if scan, ok := compilePre(pre); ok {
		t.scan = scan
	} else {
		t.pre = pre
	}
}

// jsonKind returns the "type" of a component; none for a missing one.
func jsonKind(raw json.RawMessage) (string, error) {
	if isNull(raw) {
		return "", nil
	}
	var v struct {
		Type string `json:"type"`
	}
	if err := unmarshal(raw, &v); err != nil {
		return "", err
	}
	return v.Type, nil
}

// unmarshal is json.Unmarshal with errors that name what the file holds, not the types that hold it here.
func unmarshal(raw []byte, v any) error {
	err := json.Unmarshal(raw, v)
	var kind *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &kind):
		return err
	case kind.Field == "":
		return fmt.Errorf("%s is not what belongs there", kind.Value)
	}
	return fmt.Errorf("%s: %s is not what belongs there", kind.Field, kind.Value)
}

func isNull(raw json.RawMessage) bool {
	return len(bytes.TrimSpace(raw)) == 0 || string(bytes.TrimSpace(raw)) == "null"
}

// jsonPattern is a pattern of Split or Replace: a fixed string or a regular expression.
type jsonPattern struct {
	String *string
	Regex  *string
}

func (p jsonPattern) matcher() (matcher, error) {
	switch {
	case p.String != nil:
		return literal(*p.String), nil
	case p.Regex != nil:
		return compileMatcher(*p.Regex)
	}
	return nil, errors.New("a pattern needs String or Regex")
}

// splitter returns the pre-tokenizer that splits at the pattern.
func (p jsonPattern) splitter(b behavior, invert bool) (*splitter, error) {
	s := &splitter{behavior: b, invert: invert}
	var err error
	if p.Regex != nil && b == isolated { // inverting changes nothing then
		s.pattern, s.scan, err = compilePattern(*p.Regex)
	} else {
		s.pattern, err = p.matcher()
	}
	return s, err
}

type jsonBPE struct {
	Dropout   *float64 `json:"dropout"`
	Unk       *string  `json:"unk_token"`
	Prefix    *string  `json:"continuing_subword_prefix"`
	Suffix    *string  `json:"end_of_word_suffix"`
	FuseUnk   bool     `json:"fuse_unk"`
	Fallback  bool     `json:"byte_fallback"`
	IgnoreMrg bool     `json:"ignore_merges"`
}

// jsonModel reads the model and, as it decides how the vocabulary is kept,
// installs the pre-tokenizers.
func (t *Tokenizer) jsonModel(raw json.RawMessage, pre []preTokenizer) error {
	m, err := rawObject(raw)
	if err != nil {
		return err
	}
	kind, err := jsonKind(raw)
	if err != nil {
		return err
	}
	if kind == "" { // files of early versions
		switch {
		case m["merges"] != nil:
			kind = "BPE"
		case m["max_input_chars_per_word"] != nil:
			kind = "WordPiece"
		case bytes.HasPrefix(bytes.TrimSpace(m["vocab"]), []byte("[")):
			kind = "Unigram"
		}
	}
	switch kind {
	case "BPE":
		rawBytes := false
		if n := len(pre); n > 0 {
			if b, ok := pre[n-1].(*byteLevel); ok {
				b.raw, rawBytes = true, true
			}
		}
		err = t.jsonBPE(raw, m, rawBytes)
	default:
		err = t.jsonOtherModel(kind, raw, m)
	}
	t.setPre(pre)
	return err
}

func (t *Tokenizer) jsonBPE(raw json.RawMessage, fields map[string]json.RawMessage, rawBytes bool) error {
	var o jsonBPE
	for name, v := range map[string]any{
		"dropout": &o.Dropout, "unk_token": &o.Unk, "continuing_subword_prefix": &o.Prefix, "end_of_word_suffix": &o.Suffix,
		"fuse_unk": &o.FuseUnk, "byte_fallback": &o.Fallback, "ignore_merges": &o.IgnoreMrg,
	} {
		if f := fields[name]; !isNull(f) {
			if err := unmarshal(f, v); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	if o.Dropout != nil && *o.Dropout != 0 {
		return fmt.Errorf("dropout %g makes results random: set it to null", *o.Dropout)
	}
	if err := t.jsonVocab(fields["vocab"], rawBytes); err != nil {
		return fmt.Errorf("vocab: %w", err)
	}
	m := &bpe{
		tokens:       t.vocab.tokens,
		unk:          -1,
		fuseUnk:      o.FuseUnk,
		byteFallback: o.Fallback,
		ignoreMerges: o.IgnoreMrg,
		bytes:        rawBytes,
	}
	if o.Prefix != nil {
		m.prefix = *o.Prefix
	}
	if o.Suffix != nil {
		m.suffix = *o.Suffix
	}
	if rawBytes && (m.prefix != "" || m.suffix != "") {
		return errors.New("continuing_subword_prefix or end_of_word_suffix on a byte-level vocabulary is not supported")
	}
	if o.Unk != nil {
		id, ok := t.vocab.modelID(*o.Unk)
		if !ok {
			return fmt.Errorf("unk_token %q is not in the vocabulary", *o.Unk)
		}
		m.unk = id
	}
	if err := t.jsonMerges(fields["merges"], m); err != nil {
		return fmt.Errorf("merges: %w", err)
	}
	m.prepare(t.vocab.tokens.find)
	t.model = m
	return nil
}

// jsonVocab reads {"token": id, …}.
func (t *Tokenizer) jsonVocab(raw json.RawMessage, rawBytes bool) error {
	type entry struct{ start, end, id int }
	j := &jsonScanner{s: raw}
	text := make([]byte, 0, len(raw)/2)
	entries := make([]entry, 0, len(raw)/16)
	last := -1
	err := j.object(func(key []byte) error {
		start := len(text)
		text = append(text, key...)
		id, err := j.integer()
		if err != nil {
			return err
		}
		if id >= maxVocab {
			return fmt.Errorf("id %d of %q is too large", id, text[start:])
		}
		entries = append(entries, entry{start, len(text), id})
		last = max(last, id)
		return nil
	})
	if err != nil {
		return err
	}
	if last > 8*len(entries)+1<<16 {
		return fmt.Errorf("%d tokens with ids up to %d", len(entries), last)
	}
	byID := make([]int32, last+1)
	for i, e := range entries {
		byID[e.id] = int32(i + 1)
	}
	table := newStringTable(last+1, len(text))
	t.vocab = newVocab(table, rawBytes)
	var buf []byte
	for _, k := range byID {
		if k == 0 {
			table.add(nil, false)
			continue
		}
		t.vocab.add(text[entries[k-1].start:entries[k-1].end], &buf)
	}
	return nil
}

// add appends the next token of the model.
func (v *vocab) add(token []byte, buf *[]byte) int32 {
	if !v.bytes {
		return v.tokens.add(token, len(token) > 0)
	}
	raw, ok := appendRaw((*buf)[:0], token)
	return v.addRaw(raw, ok, buf)
}

// addString does the same for a token of a byte-level vocabulary.
func (v *vocab) addString(token string, buf *[]byte) int32 {
	raw, ok := appendRaw((*buf)[:0], token)
	return v.addRaw(raw, ok, buf)
}

func (v *vocab) addRaw(raw []byte, ok bool, buf *[]byte) int32 {
	*buf = raw
	id := v.tokens.add(raw, ok && len(raw) > 0)
	if !ok {
		v.literal[id] = true
	}
	return id
}

// jsonMerges reads merges as ["a b", …] or [["a", "b"], …].
func (t *Tokenizer) jsonMerges(raw json.RawMessage, m *bpe) error {
	if isNull(raw) {
		return errors.New("missing")
	}
	count := bytes.Count(raw, []byte(`"`)) / 2
	b := newMergeBuilder(t.vocab, m, count)
	j := &jsonScanner{s: raw}
	var left []byte
	return j.array(func() error {
		if j.peek() != '[' {
			s, err := j.str()
			if err != nil {
				return err
			}
			return b.addLine(s)
		}
		n := 0
		err := j.array(func() error {
			s, err := j.str()
			if n++; n == 1 {
				left = append(left[:0], s...)
			} else if n == 2 && err == nil {
				err = b.add(left, s)
			}
			return err
		})
		if err == nil && n != 2 {
			err = j.fail("a pair of strings")
		}
		return err
	})
}
