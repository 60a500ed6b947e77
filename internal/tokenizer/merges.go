package tokenizer

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// mergeBuilder fills the merges of a bpe, whose ranks are their order.
type mergeBuilder struct {
	vocab *vocab
	m     *bpe
	rank  uint32
	limit int
	line  []byte
	left  []byte
	both  []byte
	// strict: a merge of tokens that are not in the vocabulary is an error, as
	// in tokenizer.json; in GGUF it is left out.
	strict bool
}

func newMergeBuilder(v *vocab, m *bpe, count int) *mergeBuilder {
	m.merges = newPairTable(count)
	return &mergeBuilder{vocab: v, m: m, limit: count, strict: true}
}

// addString adds a merge written as "left right".
func (b *mergeBuilder) addString(line string) error {
	b.line = append(b.line[:0], line...)
	return b.addLine(b.line)
}

func (b *mergeBuilder) addLine(line []byte) error {
	k := bytes.IndexByte(line[min(1, len(line)):], ' ') + 1
	if k == 0 {
		return fmt.Errorf("merge %d %q is not two tokens and a space", b.rank, line)
	}
	return b.add(line[:k], line[k+1:])
}

func (b *mergeBuilder) add(left, right []byte) error {
	if int(b.rank) >= b.limit {
		return fmt.Errorf("more than %d merges", b.limit)
	}
	rank := b.rank
	b.rank++
	tokens := b.vocab.tokens
	var l, r, both int32
	var ok1, ok2, ok3 bool
	if b.vocab.bytes {
		b.left, ok1 = appendRaw(b.left[:0], left)
		n := len(b.left)
		b.both, ok2 = appendRaw(append(b.both[:0], b.left...), right)
		if ok1 && ok2 {
			l, ok1 = tokens.findBytes(b.left)
			r, ok2 = tokens.findBytes(b.both[n:])
			both, ok3 = tokens.findBytes(b.both)
		}
	} else {
		tail := bytes.TrimPrefix(right, []byte(b.m.prefix))
		b.both = append(append(b.both[:0], left...), tail...)
		l, ok1 = tokens.findBytes(left)
		r, ok2 = tokens.findBytes(right)
		both, ok3 = tokens.findBytes(b.both)
	}
	if !ok1 || !ok2 || !ok3 {
		if b.strict {
			return fmt.Errorf("merge %d of %q and %q names a token that is not in the vocabulary", rank, left, right)
		}
		return nil
	}
	b.m.merges.add(l, r, rank, both)
	return nil
}

// prepare derives what encoding needs from the vocabulary. find knows the
// tokens of bytes.
func (m *bpe) prepare(find func(name string) (int32, bool)) {
	for b := range m.byteIDs {
		m.byteIDs[b] = idUnknown
		name := byteTokenName(byte(b))
		if m.bytes {
			name = string([]byte{byte(b)})
		}
		if id, ok := find(name); ok {
			m.byteIDs[b] = id
		}
	}
	m.vanish = m.merges != nil && m.unk < 0 && !m.byteFallback
	if !m.bytes {
		m.findSpaceCuts()
	}
}

// findSpaceCuts finds the characters behind which a token may hold "▁".
func (m *bpe) findSpaceCuts() {
	if _, ok := m.tokens.find(spaceMark); !ok || m.prefix != "" || m.suffix != "" {
		return
	}
	m.spaceCut = true
	m.joined = map[rune]bool{}
	mark := []byte(spaceMark)
	for id := range int32(m.tokens.len()) {
		s := m.tokens.get(id)
		for at := 1; at < len(s); {
			k := bytes.Index(s[at:], mark)
			if k < 0 {
				break
			}
			at += k
			r, _ := utf8.DecodeLastRune(s[:at])
			m.joined[r] = true
			at += len(mark)
		}
	}
}
