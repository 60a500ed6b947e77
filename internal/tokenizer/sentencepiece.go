package tokenizer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Model types of SentencePiece.
const (
	spmUnigram = 1
	spmBPE     = 2
)

// spmModel is a SentencePiece model, from a tokenizer.model or from GGUF keys.
// Token types are those of GGUF, which are SentencePiece's own.
type spmModel struct {
	kind          int
	tokens        []string
	scores        []float32
	types         []int64 // nil: all are normal
	charsmap      []byte
	unk, bos, eos int32 // -1: none
	byteFallback  bool
	dummyPrefix   bool // a space before the text
	extraSpaces   bool // runs of spaces and spaces at the ends stay
	suffixSpaces  bool // spaces end words instead of beginning them
}

func (m *spmModel) typeOf(id int) int64 {
	if id < len(m.types) {
		return m.types[id]
	}
	return typeNormal
}

// produced reports whether segmentation can yield a token.
func (m *spmModel) produced(id int) bool {
	switch m.typeOf(id) {
	case typeNormal, typeUserDefined, typeUnused:
		return m.tokens[id] != ""
	}
	return false
}

// build fills the vocabulary, normalizer, model and decoder of t.
func (m *spmModel) build(t *Tokenizer) error {
	if m.suffixSpaces {
		return errors.New("treat_whitespace_as_suffix is not supported")
	}
	chars, err := newCharsMap(m.charsmap)
	if err != nil {
		return err
	}
	t.scan = []scanner{}
	total := 0
	for _, s := range m.tokens {
		total += len(s)
	}
	table := newStringTable(len(m.tokens), total)
	bytes := map[string]int32{}
	for id, s := range m.tokens {
		table.add([]byte(s), m.produced(id))
		if m.typeOf(id) == typeByte || m.types == nil && len(s) == 6 && s[:3] == "<0x" {
			bytes[s] = int32(id)
		}
	}
	t.vocab = newVocab(table, false)
	find := func(name string) (int32, bool) { id, ok := bytes[name]; return id, ok }
	switch m.kind {
	case spmBPE:
		err = m.buildBPE(t, find)
	case spmUnigram:
		err = m.buildUnigram(t, find)
	default:
		err = fmt.Errorf("SentencePiece model type %d is not supported (1 is unigram, 2 is BPE)", m.kind)
	}
	if chars != nil {
		err = errors.Join(err, checkGrowth([]normalizer{precompiled{chars}}, nil))
	}
	if chars != nil || m.dummyPrefix || !m.extraSpaces {
		t.norm = []normalizer{spmNormalizer{chars, m.dummyPrefix, m.extraSpaces}}
	} else {
		t.norm = []normalizer{replaceString{" ", spaceMark}}
	}
	t.steps = []decodeStep{
		{kind: decodeReplace, old: spaceMark, new: " "},
		{kind: decodeByteFallback},
		{kind: decodeFuse},
	}
	if m.dummyPrefix {
		t.steps = append(t.steps, decodeStep{kind: decodeStrip, old: " ", start: 1})
	}
	return err
}

func (m *spmModel) buildBPE(t *Tokenizer, find func(string) (int32, bool)) error {
	ranks, err := scoreRanks(m.scores)
	if err != nil {
		return err
	}
	b := &bpe{tokens: t.vocab.tokens, ranks: ranks, byteFallback: m.byteFallback, fuseUnk: true, unk: m.unk}
	b.prepare(find)
	t.model = b
	return nil
}

func (m *spmModel) buildUnigram(t *Tokenizer, find func(string) (int32, bool)) error {
	tokens := make([]string, len(m.tokens))
	scores := make([]float64, len(m.tokens))
	least := math.Inf(1)
	for id, s := range m.scores {
		if s != s {
			return fmt.Errorf("the score of token %d is not a number", id)
		}
		scores[id] = float64(s)
		if m.typeOf(id) == typeNormal {
			least = min(least, float64(s))
		}
		if m.produced(id) && m.typeOf(id) != typeUnused {
			tokens[id] = m.tokens[id]
		}
	}
	u := newUnigram(tokens, scores, m.unk)
	if !math.IsInf(least, 1) {
		u.unkScore = least - unkPenalty
	}
	// Where two ways to cut a word are almost equally probable, rounding of the
	// sum decides: it starts anew with each word, as in Hugging Face's form of
	// these models. SentencePiece's own sum is that of the text so far.
	if !slices.ContainsFunc(tokens, spansWords) {
		t.scan = []scanner{spmWord}
	}
	if m.byteFallback {
		u.setFallback(find)
	}
	t.model = u
	return nil
}

// spansWords reports whether a token goes on past the start of a word.
func spansWords(token string) bool { return strings.LastIndex(token, spaceMark) > 0 }

// spmWord ends a word before the next mark.
func spmWord(s string, i int) int {
	if n := strings.Index(s[i+1:], spaceMark); n >= 0 {
		return i + 1 + n
	}
	return len(s)
}

// spmNormalizer does what SentencePiece does to a text before segmentation.
type spmNormalizer struct {
	chars       *charsMap // nil: none
	dummyPrefix bool
	extraSpaces bool
}

func (n spmNormalizer) apply(_ *budget, s string) string {
	out := make([]byte, 0, len(s)+len(s)/4+4)
	space := !n.extraSpaces // leading spaces go as if one stood before
	started := false
	for i := 0; i < len(s); {
		piece, size := n.next(s[i:])
		i += size
		for space && strings.HasPrefix(piece, " ") {
			piece = piece[1:]
		}
		if piece == "" {
			continue
		}
		if !started && n.dummyPrefix {
			out = append(out, spaceMark...)
		}
		started = true
		for k := range len(piece) {
			if piece[k] == ' ' {
				out = append(out, spaceMark...)
			} else {
				out = append(out, piece[k])
			}
		}
		space = !n.extraSpaces && strings.HasSuffix(piece, " ")
	}
	if !n.extraSpaces {
		for strings.HasSuffix(string(out[max(0, len(out)-len(spaceMark)):]), spaceMark) {
			out = out[:len(out)-len(spaceMark)]
		}
	}
	return string(out)
}

// next returns what the start of s becomes and how long that start is.
func (n spmNormalizer) next(s string) (string, int) {
	if n.chars != nil {
		if out, size := n.chars.longest(s); size > 0 {
			return out, size
		}
	}
	r, size := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && size == 1 {
		return s[:1], 1
	}
	return s[:size], size
}

// parseSPM reads a SentencePiece ModelProto.
func parseSPM(data []byte) (*spmModel, error) {
	m := &spmModel{kind: spmUnigram, unk: 0, bos: 1, eos: 2, dummyPrefix: true}
	err := protoFields(data, func(field int, v protoValue) error {
		switch field {
		case 1:
			return m.parsePiece(v.bytes)
		case 2:
			return protoFields(v.bytes, m.trainerField)
		case 3:
			return protoFields(v.bytes, m.normalizerField)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(m.tokens) == 0 {
		return nil, errors.New("no pieces: not a SentencePiece model")
	}
	for _, id := range []*int32{&m.unk, &m.bos, &m.eos} {
		if int(*id) >= len(m.tokens) || *id < 0 {
			*id = -1
		}
	}
	return m, nil
}

func (m *spmModel) parsePiece(data []byte) error {
	token, score, kind := "", float32(0), int64(typeNormal)
	err := protoFields(data, func(field int, v protoValue) error {
		switch field {
		case 1:
			token = string(v.bytes)
		case 2:
			score = math.Float32frombits(uint32(v.number))
		case 3:
			kind = int64(v.number)
		}
		return nil
	})
	if len(m.tokens) >= maxVocab {
		return fmt.Errorf("more than %d pieces", maxVocab)
	}
	m.tokens, m.scores, m.types = append(m.tokens, token), append(m.scores, score), append(m.types, kind)
	return err
}

func (m *spmModel) trainerField(field int, v protoValue) error {
	switch field {
	case 3:
		m.kind = int(v.number)
	case 24:
		m.suffixSpaces = v.number != 0
	case 35:
		m.byteFallback = v.number != 0
	case 40:
		m.unk = int32(v.number)
	case 41:
		m.bos = int32(v.number)
	case 42:
		m.eos = int32(v.number)
	}
	return nil
}

func (m *spmModel) normalizerField(field int, v protoValue) error {
	switch field {
	case 2:
		m.charsmap = v.bytes
	case 3:
		m.dummyPrefix = v.number != 0
	case 4:
		m.extraSpaces = v.number == 0
	case 5:
		if v.number == 0 {
			return errors.New("escape_whitespaces false is not supported")
		}
	}
	return nil
}

// protoValue is the value of a protobuf field: a number or bytes.
type protoValue struct {
	number uint64
	bytes  []byte
}

// protoFields calls f for each field of a protobuf message.
func protoFields(data []byte, f func(field int, v protoValue) error) error {
	total := len(data)
	for len(data) > 0 {
		at := total - len(data)
		tag, n := binary.Uvarint(data)
		if n <= 0 {
			return fmt.Errorf("protobuf: bad tag at byte %d", at)
		}
		data = data[n:]
		var v protoValue
		size := 0
		switch tag & 7 {
		case 0:
			v.number, size = binary.Uvarint(data)
		case 1:
			if size = 8; len(data) >= 8 {
				v.number = binary.LittleEndian.Uint64(data)
			}
		case 2:
			length, n := binary.Uvarint(data)
			if n <= 0 || length > uint64(len(data)-n) {
				return fmt.Errorf("protobuf: field at byte %d is longer than the message", at)
			}
			size = n + int(length)
			v.bytes = data[n:size]
		case 5:
			if size = 4; len(data) >= 4 {
				v.number = uint64(binary.LittleEndian.Uint32(data))
			}
		}
		if size <= 0 || size > len(data) {
			return fmt.Errorf("protobuf: bad field at byte %d", at)
		}
		data = data[size:]
		if err := f(int(tag>>3), v); err != nil {
			return err
		}
	}
	return nil
}
