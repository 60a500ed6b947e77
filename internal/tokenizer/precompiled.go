package tokenizer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// charsMap is SentencePiece's compiled character map: a double-array trie
// (Yata 2007) from strings to offsets of their replacements.
type charsMap struct {
	units []uint32
	text  string // replacements, each ended by a zero byte
}

func newCharsMap(blob []byte) (*charsMap, error) {
	if len(blob) == 0 {
		return nil, nil
	}
	if len(blob) < 4 {
		return nil, errors.New("character map of less than 4 bytes")
	}
	n := binary.LittleEndian.Uint32(blob)
	if uint64(n)+4 > uint64(len(blob)) || n%4 != 0 || n == 0 {
		return nil, fmt.Errorf("character map of %d bytes says that its trie has %d", len(blob), n)
	}
	m := &charsMap{units: make([]uint32, n/4), text: string(blob[4+n:])}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(blob[4+4*i:])
	}
	return m, nil
}

// prefixes calls found for each key at the start of s, the shortest first,
// until it returns false.
func (m *charsMap) prefixes(s string, found func(value uint32, n int) bool) {
	offset := func(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }
	at := offset(m.units[0])
	for i := range len(s) {
		at ^= uint32(s[i])
		if int64(at) >= int64(len(m.units)) {
			return
		}
		unit := m.units[at]
		if unit&(1<<31|0xFF) != uint32(s[i]) {
			return
		}
		at ^= offset(unit)
		if unit>>8&1 == 1 {
			if int64(at) >= int64(len(m.units)) || !found(m.units[at]&(1<<31-1), i+1) {
				return
			}
		}
	}
}

// replacement returns the text at an offset.
func (m *charsMap) replacement(value uint32) string {
	if int64(value) >= int64(len(m.text)) {
		return ""
	}
	s := m.text[value:]
	if k := strings.IndexByte(s, 0); k >= 0 {
		s = s[:k]
	}
	return s
}

// shortest returns what the shortest key at the start of s maps to.
func (m *charsMap) shortest(s string) (string, bool) {
	out, ok := "", false
	m.prefixes(s, func(value uint32, _ int) bool {
		out, ok = m.replacement(value), true
		return false
	})
	return out, ok
}

// longest returns what the longest key at the start of s maps to, and the
// length of the key; 0 if there is none.
func (m *charsMap) longest(s string) (out string, n int) {
	m.prefixes(s, func(value uint32, size int) bool {
		out, n = m.replacement(value), size
		return true
	})
	return out, n
}

// precompiled applies a character map as Hugging Face's tokenizers does: to
// grapheme clusters below 6 bytes as a whole, else to characters, and for each
// by its shortest key.
type precompiled struct{ chars *charsMap }

func (p precompiled) apply(_ *budget, s string) string {
	out := make([]byte, 0, len(s)+len(s)/8)
	for i := 0; i < len(s); {
		end := clusterEnd(s, i)
		cluster := s[i:end]
		i = end
		if len(cluster) < 6 {
			if r, ok := p.chars.shortest(cluster); ok {
				out = append(out, r...)
				continue
			}
		}
		for k := 0; k < len(cluster); {
			_, n := utf8.DecodeRuneInString(cluster[k:])
			if r, ok := p.chars.shortest(cluster[k : k+n]); ok {
				out = append(out, r...)
			} else {
				out = append(out, cluster[k:k+n]...)
			}
			k += n
		}
	}
	return string(out)
}

// clusterEnd returns the end of the grapheme cluster at i. Emoji sequences and
// flags are cut into their characters, which changes nothing for clusters of
// so few bytes.
func clusterEnd(s string, i int) int {
	r, n := utf8.DecodeRuneInString(s[i:])
	i += n
	if r == '\r' && i < len(s) && s[i] == '\n' {
		return i + 1
	}
	flags := tabCluster.at(r)
	if flags&flagControl != 0 || r < ' ' {
		return i
	}
	for i < len(s) {
		next, n := utf8.DecodeRuneInString(s[i:])
		f := tabCluster.at(next)
		if f&flagControl != 0 || f&flagExtend == 0 && flags&flagPrepend == 0 && !hangulJoins(r, next) {
			break
		}
		i += n
		r, flags = next, f
	}
	return i
}

// hangulJoins reports whether two parts of a Hangul syllable follow each other
// (rules GB6 to GB8).
func hangulJoins(a, b rune) bool {
	const l, v, t, lv, lvt = 1, 2, 3, 4, 5
	kind := func(r rune) int {
		switch {
		case r >= 0x1100 && r <= 0x115F || r >= 0xA960 && r <= 0xA97C:
			return l
		case r >= 0x1160 && r <= 0x11A7 || r >= 0xD7B0 && r <= 0xD7C6:
			return v
		case r >= 0x11A8 && r <= 0x11FF || r >= 0xD7CB && r <= 0xD7FB:
			return t
		case r >= hangulFirst && r < hangulFirst+hangulCount:
			if (r-hangulFirst)%28 == 0 {
				return lv
			}
			return lvt
		}
		return 0
	}
	x, y := kind(a), kind(b)
	switch x {
	case l:
		return y == l || y == v || y == lv || y == lvt
	case v, lv:
		return y == v || y == t
	case t, lvt:
		return y == t
	}
	return false
}
