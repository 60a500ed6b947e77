// Package tokenizer turns text into token ids and back.
//
// It owns one pipeline, normalizer → added tokens → pre-tokenizer → model →
// post-processor → decoder, and the readers that fill it from tokenizer.json,
// tokenizer.model (SentencePiece), tiktoken rank files and GGUF keys. It knows
// nothing of containers, chat templates, models or HTTP: GGUF keys come in
// through the Keys interface.
package tokenizer

import "errors"

// Keys gives access to the metadata keys of a GGUF file; ok is false when the
// key is missing or has another type. Arrays of any integer width are Ints.
type Keys interface {
	String(key string) (string, bool)
	Strings(key string) ([]string, bool)
	Floats(key string) ([]float32, bool)
	Ints(key string) ([]int64, bool)
	Uint(key string) (uint64, bool)
	Bool(key string) (bool, bool)
}

// Options say how a text is encoded.
type Options struct {
	// AddSpecial adds what the post-processor adds, such as BOS and EOS.
	AddSpecial bool
	// ParseSpecial turns control tokens written out in the text into their ids.
	ParseSpecial bool
}

// Part is a stretch of a rendered prompt. Only Special parts, which came from a
// template, may contain control tokens.
type Part struct {
	Text    string
	Special bool
}

var errPending = errors.New("tokenizer: reader not available")

// Tokenizer is one tokenizer, immutable and safe for concurrent use.
type Tokenizer struct{}

// Decoder turns ids into text one by one and holds back incomplete UTF-8.
type Decoder struct{}

// FromGGUF builds a tokenizer from GGUF keys.
func FromGGUF(k Keys) (*Tokenizer, error) { return nil, errPending }

// FromJSON builds a tokenizer from the contents of a tokenizer.json.
func FromJSON(r []byte) (*Tokenizer, error) { return nil, errPending }

// FromDir builds a tokenizer from the files of a model folder.
func FromDir(dir string) (*Tokenizer, error) { return nil, errPending }

// Encode appends the ids of text to dst.
func (t *Tokenizer) Encode(dst []int32, text string, o Options) []int32 { return dst }

// EncodeParts encodes a rendered prompt.
func (t *Tokenizer) EncodeParts(dst []int32, parts []Part, o Options) []int32 { return dst }

// Decode returns the text of ids.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string { return "" }

// NewDecoder starts a streaming decoder.
func (t *Tokenizer) NewDecoder(skipSpecial bool) *Decoder { return &Decoder{} }

// Next returns the text that became complete with id.
func (d *Decoder) Next(id int32) string { return "" }

// Flush returns the text that was held back.
func (d *Decoder) Flush() string { return "" }

// Token returns the vocabulary's own spelling of id.
func (t *Tokenizer) Token(id int32) (text string, ok bool) { return "", false }

// ID returns the id of a token in the vocabulary's own spelling.
func (t *Tokenizer) ID(token string) (int32, bool) { return 0, false }

// Bytes returns the raw bytes that a token stands for.
func (t *Tokenizer) Bytes(id int32) []byte { return nil }

// Size returns the number of ids, the largest id plus one.
func (t *Tokenizer) Size() int { return 0 }

// BOS returns the id that begins a sequence.
func (t *Tokenizer) BOS() (int32, bool) { return 0, false }

// EOS returns all ids that end a generation.
func (t *Tokenizer) EOS() []int32 { return nil }

// IsSpecial reports whether id is a control token.
func (t *Tokenizer) IsSpecial(id int32) bool { return false }
