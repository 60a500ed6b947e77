// Package tokenizer turns text into token ids and back.
//
// It owns one pipeline, normalizer → added tokens → pre-tokenizer → model →
// post-processor → decoder, and the readers that fill it from tokenizer.json,
// tokenizer.model (SentencePiece), tiktoken rank files and GGUF keys. It knows
// nothing of containers, chat templates, models or HTTP: GGUF keys come in
// through the Keys interface.
package tokenizer

import "sync"

// Keys gives access to the metadata keys of a GGUF file; ok is false when the
// key is missing or has another type. Ints takes arrays of any integer width,
// Uint any integer that is not negative.
type Keys interface {
	String(key string) (string, bool)
	Strings(key string) ([]string, bool)
	Floats(key string) ([]float32, bool)
	Ints(key string) ([]int64, bool)
	Uint(key string) (uint64, bool)
	Int(key string) (int64, bool)
	Float(key string) (float64, bool)
	Bool(key string) (bool, bool)
}

// Options say how a text is encoded. The zero value encodes plain text: nothing
// is added and nothing in the text becomes a control token.
type Options struct {
	// AddSpecial adds what the post-processor adds, such as BOS and EOS.
	AddSpecial bool
	// ParseSpecial turns control tokens that are written out in the text into
	// their ids. When false, they are encoded as ordinary text.
	ParseSpecial bool
}

// Part is a stretch of a rendered prompt. Only Special parts, which came from a
// template, may contain control tokens.
type Part struct {
	Text    string
	Special bool
}

// Tokenizer is one tokenizer, ready for use. It is immutable and safe for
// concurrent use.
type Tokenizer struct {
	// Fixed at load.
	vocab *vocab
	added *addedTokens
	norm  []normalizer
	pre   []preTokenizer
	scan  []scanner // with pre nil: the same as hand-written scanners
	model model
	post  postProcessor
	steps []decodeStep
	// rawDecode: the steps are byte-level alone and the vocabulary is raw bytes.
	rawDecode bool
	control   []uint64 // bit per id: hidden by skipSpecial, only parsed on request
	size      int
	bos       int32 // -1: none
	eos       []int32

	states sync.Pool // *state: scratch memory and word caches of encoders
	ends   endIndex
}

// Size returns the number of ids, the largest id plus one.
func (t *Tokenizer) Size() int { return t.size }

// BOS returns the id that begins a sequence.
func (t *Tokenizer) BOS() (int32, bool) { return t.bos, t.bos >= 0 }

// EOS returns all ids that end a generation, the model's own end first. The
// caller must not change the slice.
func (t *Tokenizer) EOS() []int32 { return t.eos }

// IsSpecial reports whether id is a control token.
func (t *Tokenizer) IsSpecial(id int32) bool {
	return id >= 0 && int(id>>6) < len(t.control) && t.control[id>>6]>>(id&63)&1 != 0
}

func (t *Tokenizer) setControl(id int32) {
	for int(id>>6) >= len(t.control) {
		t.control = append(t.control, 0)
	}
	t.control[id>>6] |= 1 << (id & 63)
}

// Around returns how many tokens Options.AddSpecial adds before and behind a text.
func (t *Tokenizer) Around() (before, after int) { return len(t.post.before), len(t.post.after) }

// Token returns the vocabulary's own spelling of id, such as "Ġthe" or "▁the".
func (t *Tokenizer) Token(id int32) (text string, ok bool) { return t.vocab.text(id) }

// ID returns the id of a token in the vocabulary's own spelling.
func (t *Tokenizer) ID(token string) (int32, bool) { return t.vocab.id(token) }
