package tokenizer

import (
	"errors"
	"fmt"
	"strings"
)

// loadOther reads the models that are no BPE.
func (src *ggufSource) loadOther(t *Tokenizer, kind string) error {
	switch kind {
	case "bert":
		return src.loadBert(t)
	case "t5":
		return src.loadUnigram(t)
	}
	return errors.New("not supported; supported are gpt2, gemma4, llama, bert and t5")
}

// loadSPM reads a SentencePiece BPE: the pair that makes the token with the
// highest score is merged first.
func (src *ggufSource) loadSPM(t *Tokenizer) error {
	if pre, ok := src.keys.String(ggufPrefix + "pre"); ok && pre != "default" && pre != "llama" && pre != "llama-spm" {
		return fmt.Errorf("unknown pre-tokenizer %q in tokenizer.ggml.pre", pre)
	}
	src.addBOS = true
	m, err := src.spm(spmBPE, 0)
	if err != nil {
		return err
	}
	m.extraSpaces = !src.flag("remove_extra_whitespaces", false)
	m.byteFallback = true
	return m.build(t)
}

// loadUnigram reads a SentencePiece unigram model, as T5 and XLM-R have it.
func (src *ggufSource) loadUnigram(t *Tokenizer) error {
	src.addEOS = true
	m, err := src.spm(spmUnigram, 2)
	if err != nil {
		return err
	}
	m.extraSpaces = !src.flag("remove_extra_whitespaces", false)
	for id := range m.tokens {
		m.byteFallback = m.byteFallback || m.typeOf(id) == typeByte
	}
	if chars, ok := src.keys.Ints(ggufPrefix + "precompiled_charsmap"); ok {
		m.charsmap = make([]byte, len(chars))
		for i, c := range chars {
			m.charsmap[i] = byte(c)
		}
	}
	return m.build(t)
}

func (src *ggufSource) spm(kind int, unk int32) (*spmModel, error) {
	if src.scores == nil {
		return nil, errors.New("the key tokenizer.ggml.scores is missing")
	}
	m := &spmModel{kind: kind, tokens: src.tokens, scores: src.scores[:len(src.tokens)], types: src.types, unk: unk}
	if id := src.id("unknown_token_id"); id >= 0 {
		m.unk = id
	}
	if int(m.unk) >= len(m.tokens) {
		m.unk = -1
	}
	m.dummyPrefix = src.flag("add_space_prefix", true)
	return m, nil
}

// loadBert reads a WordPiece vocabulary, in which GGUF marks the tokens that
// begin a word with "▁" and leaves out the "##" of the others.
func (src *ggufSource) loadBert(t *Tokenizer) error {
	src.fillVocab(t, false)
	unk := src.idOr("unknown_token_id", 100)
	if unk < 0 {
		return errors.New("the key tokenizer.ggml.unknown_token_id is missing")
	}
	lower := src.flag("normalizer.lowercase", true)
	t.norm = []normalizer{bertNormalizer{true, true, src.flag("normalizer.strip_accents", lower), lower}}
	t.setPre([]preTokenizer{
		&splitter{pattern: charMatcher(isSpace), behavior: removed},
		&splitter{pattern: charMatcher(isPunct), behavior: isolated},
	})
	t.model = newWordPiece(t.vocab.tokens, func(id int32, token string) (string, bool, bool) {
		kind := src.typeOf(int(id))
		text, starts := strings.CutPrefix(token, spaceMark)
		return text, !starts, kind != typeControl && kind != typeUnknown
	}, unk, 100)
	t.steps = []decodeStep{{kind: decodeWordStart, old: spaceMark, cleanup: true}}

	cls, sep := src.idOr("bos_token_id", 101), src.idOr("seperator_token_id", 102) // the key is spelled so
	if cls >= 0 && src.flag("add_bos_token", true) {
		t.post.before = []int32{cls}
	}
	if sep >= 0 && src.flag("add_sep_token", true) {
		t.post.after = []int32{sep}
	}
	src.postDone = true
	return nil
}
