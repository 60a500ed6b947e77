package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// jsonOtherModel reads the models other than BPE.
func (t *Tokenizer) jsonOtherModel(kind string, raw json.RawMessage, m map[string]json.RawMessage) error {
	switch kind {
	case "WordPiece":
		return t.jsonWordPiece(m)
	case "WordLevel":
		return t.jsonWordLevel(m)
	case "Unigram":
		return t.jsonUnigram(m)
	}
	return fmt.Errorf("unknown type %q", kind)
}

// field decodes one field if it is there.
func field(m map[string]json.RawMessage, name string, v any) error {
	if isNull(m[name]) {
		return nil
	}
	if err := unmarshal(m[name], v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (t *Tokenizer) jsonWordPiece(m map[string]json.RawMessage) error {
	unk, prefix, limit := "[UNK]", "##", 100
	err := errors.Join(field(m, "unk_token", &unk), field(m, "continuing_subword_prefix", &prefix),
		field(m, "max_input_chars_per_word", &limit), t.jsonVocab(m["vocab"], false))
	if err != nil {
		return err
	}
	id, ok := t.vocab.modelID(unk)
	if !ok {
		return fmt.Errorf("unk_token %q is not in the vocabulary", unk)
	}
	if prefix == "" {
		return errors.New("continuing_subword_prefix is empty")
	}
	t.model = newWordPiece(t.vocab.tokens, func(_ int32, token string) (string, bool, bool) {
		text, continues := strings.CutPrefix(token, prefix)
		return text, continues, true
	}, id, limit)
	return nil
}

func (t *Tokenizer) jsonWordLevel(m map[string]json.RawMessage) error {
	unk := "<unk>"
	if err := errors.Join(field(m, "unk_token", &unk), t.jsonVocab(m["vocab"], false)); err != nil {
		return err
	}
	id, ok := t.vocab.modelID(unk)
	if !ok {
		id = -1
	}
	t.model = &wordLevel{t.vocab.tokens, id}
	return nil
}

func (t *Tokenizer) jsonUnigram(m map[string]json.RawMessage) error {
	var unk *int32
	var fallback bool
	if err := errors.Join(field(m, "unk_id", &unk), field(m, "byte_fallback", &fallback)); err != nil {
		return err
	}
	var tokens []string
	var scores []float64
	j := &jsonScanner{s: m["vocab"]}
	table := newStringTable(len(j.s)/24, len(j.s)/2)
	err := j.array(func() error {
		token, score, err := j.scored()
		if err != nil {
			return err
		}
		table.add([]byte(token), token != "")
		tokens, scores = append(tokens, token), append(scores, score)
		return nil
	})
	if err != nil {
		return fmt.Errorf("vocab: %w", err)
	}
	if len(tokens) == 0 {
		return errors.New("vocab: empty")
	}
	id := int32(-1)
	if unk != nil {
		if *unk < 0 || int(*unk) >= len(tokens) {
			return fmt.Errorf("unk_id %d of %d tokens", *unk, len(tokens))
		}
		id = *unk
	}
	t.vocab = newVocab(table, false)
	u := newUnigram(tokens, scores, id)
	if fallback {
		u.setFallback(t.vocab.modelID)
	}
	t.model = u
	return nil
}

// scored reads ["token", score].
func (j *jsonScanner) scored() (token string, score float64, err error) {
	n := 0
	err = j.array(func() error {
		n++
		if n == 1 {
			s, err := j.str()
			token = string(s)
			return err
		}
		raw, err := j.raw()
		if err != nil {
			return err
		}
		return unmarshal(raw, &score)
	})
	if err == nil && n != 2 {
		err = j.fail("a token and a score")
	}
	return token, score, err
}
