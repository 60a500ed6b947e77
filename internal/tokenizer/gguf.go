package tokenizer

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Token types of GGUF.
const (
	typeNormal      = 1
	typeUnknown     = 2
	typeControl     = 3
	typeUserDefined = 4
	typeUnused      = 5
	typeByte        = 6
)

const ggufPrefix = "tokenizer.ggml."

// FromGGUF builds a tokenizer from the keys tokenizer.ggml.* of a GGUF file.
func FromGGUF(k Keys) (*Tokenizer, error) {
	typed := &typedKeys{Keys: k}
	t, err := fromGGUF(typed)
	if typed.err != nil { // then what is said to be missing is not
		err = typed.err
	}
	if err != nil {
		return nil, fmt.Errorf("tokenizer in GGUF: %w", err)
	}
	return t, nil
}

// ggufSource is what the models of GGUF have in common.
type ggufSource struct {
	keys   Keys
	tokens []string
	types  []int64
	scores []float32

	addBOS, addEOS bool // unless the file says otherwise
	addSEP         bool
	postDone       bool // the post-processor is set
}

func fromGGUF(k Keys) (*Tokenizer, error) {
	kind, ok := k.String(ggufPrefix + "model")
	if !ok {
		return nil, errors.New("the key tokenizer.ggml.model is missing: this file has no tokenizer")
	}
	src := &ggufSource{keys: k}
	if src.tokens, ok = k.Strings(ggufPrefix + "tokens"); !ok || len(src.tokens) == 0 {
		return nil, errors.New("the key tokenizer.ggml.tokens is missing or empty")
	}
	if len(src.tokens) > maxVocab {
		return nil, fmt.Errorf("%d tokens, limit %d", len(src.tokens), maxVocab)
	}
	if src.types, ok = k.Ints(ggufPrefix + "token_type"); ok && len(src.types) < len(src.tokens) {
		return nil, fmt.Errorf(
			"tokenizer.ggml.token_type has %d entries for %d tokens",
			len(src.types),
			len(src.tokens),
		)
	}
	if src.scores, ok = k.Floats(ggufPrefix + "scores"); ok && len(src.scores) < len(src.tokens) {
		return nil, fmt.Errorf("tokenizer.ggml.scores has %d entries for %d tokens", len(src.scores), len(src.tokens))
	}
	t := &Tokenizer{bos: -1}
	var err error
	switch kind {
	case "gpt2", "gemma4":
		err = src.loadBPE(t, kind)
	case "llama":
		err = src.loadSPM(t)
	default:
		err = src.loadOther(t, kind)
	}
	if err != nil {
		return nil, fmt.Errorf("model %q: %w", kind, err)
	}
	return t, src.finish(t)
}

func (src *ggufSource) typeOf(id int) int64 {
	if id < len(src.types) {
		return src.types[id]
	}
	return typeNormal
}

func (src *ggufSource) flag(name string, def bool) bool {
	if v, ok := src.keys.Bool(ggufPrefix + name); ok {
		return v
	}
	return def
}

// id returns the id that a key names; -1 for none.
func (src *ggufSource) id(name string) int32 {
	if v, ok := src.keys.Uint(ggufPrefix + name); ok && v < uint64(len(src.tokens)) {
		return int32(v)
	}
	return -1
}

// idOr returns the id that a key names, else def if that is a token.
func (src *ggufSource) idOr(name string, def int32) int32 {
	if id := src.id(name); id >= 0 {
		return id
	}
	if int(def) < len(src.tokens) {
		return def
	}
	return -1
}

func (src *ggufSource) finish(t *Tokenizer) error {
	isEnd := func(s string) bool { return slices.Contains(endNames, s) }
	var added []addedToken
	for id, s := range src.tokens {
		kind := src.typeOf(id)
		if kind != typeControl && kind != typeUserDefined && kind != typeUnknown || s == "" {
			continue
		}
		// Files often give end and turn tokens the wrong type.
		control := kind != typeUserDefined || looksControl(s) || isEnd(s)
		if control {
			t.setControl(int32(id))
		}
		t.vocab.addExtra(int32(id), s)
		added = append(added, addedToken{id: int32(id), text: s, control: control})
	}
	var err error
	if t.added, err = newAddedTokens(added, nil); err != nil {
		return err
	}
	eos := src.id("eos_token_id")
	t.bos = src.id("bos_token_id")
	if !src.postDone {
		src.setPost(t, eos)
	}
	t.finish([]int32{eos, src.id("eot_token_id"), src.id("eom_token_id")})
	return nil
}

func (src *ggufSource) setPost(t *Tokenizer, eos int32) {
	if t.bos >= 0 && src.flag("add_bos_token", src.addBOS) {
		t.post.before = append(t.post.before, t.bos)
	}
	if sep := src.id("seperator_token_id"); src.flag("add_sep_token", src.addSEP) && sep >= 0 {
		t.post.after = append(t.post.after, sep)
	} else if eos >= 0 && src.flag("add_eos_token", src.addEOS) {
		t.post.after = append(t.post.after, eos)
	}
}

// loadBPE reads a byte-level BPE, or one over characters (gemma4).
func (src *ggufSource) loadBPE(t *Tokenizer, kind string) error {
	name, ok := src.keys.String(ggufPrefix + "pre")
	if kind == "gemma4" {
		name = "gemma4"
	} else if !ok {
		name = "default"
	}
	pre, ok := ggufPres[name]
	if !ok {
		return fmt.Errorf(
			"unknown pre-tokenizer %q in tokenizer.ggml.pre: it would cut words in another way than the model learned",
			name,
		)
	}
	var parts []preTokenizer
	for _, p := range pre.patterns {
		m, scan, err := compilePattern(p)
		if err != nil {
			return err
		}
		parts = append(parts, &splitter{pattern: m, scan: scan})
	}
	parts = append(parts, &byteLevel{raw: true})
	t.setPre(parts)
	t.norm = pre.norm
	src.addBOS, src.addSEP = pre.addBOS, pre.addSEP

	merges, ok := src.keys.Strings(ggufPrefix + "merges")
	if !ok && name != "kimi-k2" {
		return errors.New("the key tokenizer.ggml.merges is missing")
	}
	if len(merges) > 4*maxVocab {
		return fmt.Errorf("%d merges, limit %d", len(merges), 4*maxVocab)
	}
	src.fillVocab(t, !pre.characters)
	m := &bpe{
		tokens:       t.vocab.tokens,
		bytes:        !pre.characters,
		byteFallback: pre.characters,
		unk:          src.id("unknown_token_id"),
		ignoreMerges: pre.ignoreMerges,
	}
	if m.bytes {
		m.unk = -1
	}
	if ok {
		if err := src.addMerges(t, m, merges); err != nil {
			return err
		}
	} else {
		m.ranks = idRanks(len(src.tokens))
	}
	m.prepare(t.vocab.tokens.find)
	t.model = m
	t.steps = []decodeStep{{kind: decodeByteLevel}}
	if pre.characters {
		t.steps = []decodeStep{
			{kind: decodeReplace, old: spaceMark, new: " "},
			{kind: decodeByteFallback},
			{kind: decodeFuse},
		}
	}
	return nil
}

func (src *ggufSource) addMerges(t *Tokenizer, m *bpe, merges []string) error {
	b := newMergeBuilder(t.vocab, m, len(merges))
	b.strict = false
	for _, line := range merges {
		if err := b.addString(line); err != nil {
			return fmt.Errorf("tokenizer.ggml.merges: %w", err)
		}
	}
	return nil
}

// idRanks ranks tokens by their ids, as tiktoken does.
func idRanks(n int) []uint32 {
	ranks := make([]uint32, n)
	for i := range ranks {
		ranks[i] = uint32(i)
	}
	return ranks
}

// fillVocab adds all tokens; the model can produce those of normal, byte and
// unused types.
func (src *ggufSource) fillVocab(t *Tokenizer, bytes bool) {
	total := 0
	for _, s := range src.tokens {
		total += len(s)
	}
	table := newStringTable(len(src.tokens), total)
	t.vocab = newVocab(table, bytes)
	var buf []byte
	for id, s := range src.tokens {
		switch kind := src.typeOf(id); {
		case !bytes:
			table.add([]byte(s), s != "")
		case kind == typeNormal || kind == typeByte || kind == typeUnused:
			t.vocab.addString(s, &buf)
		default:
			t.vocab.literal[table.add([]byte(s), false)] = true
		}
	}
}

// scoreRanks orders tokens by falling score; equal scores have equal ranks.
func scoreRanks(scores []float32) ([]uint32, error) {
	order := make([]uint64, len(scores))
	for id, s := range scores {
		if s != s {
			return nil, fmt.Errorf("the score of token %d is not a number", id)
		}
		order[id] = uint64(^sortable(s))<<32 | uint64(id)
	}
	slices.Sort(order)
	ranks := make([]uint32, len(scores))
	rank := uint32(0)
	for i, e := range order {
		if i > 0 && e>>32 != order[i-1]>>32 {
			rank++
		}
		ranks[uint32(e)] = rank
	}
	return ranks, nil
}

// sortable maps floats to integers of the same order.
func sortable(f float32) uint32 {
	if f == 0 {
		f = 0 // one zero
	}
	b := math.Float32bits(f)
	if b>>31 != 0 {
		return ^b
	}
	return b | 1<<31
}
