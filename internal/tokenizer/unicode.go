package tokenizer

import (
	_ "embed"
	"encoding/binary"
	"sort"
	"unicode/utf8"
)

// unicodeTab holds the character classes and mappings of Hugging Face's
// tokenizers, extracted by testdata/gen/unicode_tables.py (Unicode 16), so that
// results do not depend on the Unicode version of the Go toolchain.
//
//go:embed unicode.tab
var unicodeTab string

// A charSet is a set of general categories, one bit each, with two bits for
// properties that are no category.
type charSet uint32

const (
	catCn charSet = 1 << iota
	catLu
	catLl
	catLt
	catLm
	catLo
	catMn
	catMc
	catMe
	catNd
	catNl
	catNo
	catPc
	catPd
	catPs
	catPe
	catPi
	catPf
	catPo
	catSm
	catSc
	catSk
	catSo
	catZs
	catZl
	catZp
	catCc
	catCf
	catCo
	propSpace // White_Space
	propHan   // Script=Han

	catL = catLu | catLl | catLt | catLm | catLo
	catM = catMn | catMc | catMe
	catN = catNd | catNl | catNo
	catP = catPc | catPd | catPs | catPe | catPi | catPf | catPo
	catS = catSm | catSc | catSk | catSo
	catZ = catZs | catZl | catZp
	catC = catCn | catCc | catCf | catCo
)

// Bits of the second table.
const (
	flagPunct    = 1 << iota // punctuation to the Bert and Punctuation pre-tokenizers
	flagCleaned              // removed by the Bert normalizer's clean_text
	flagAccent               // removed by StripAccents
	flagNumeric              // a number to the Digits pre-tokenizer
	flagWord                 // \w of added tokens with single_word
	flagBertMark             // removed by the Bert normalizer's strip_accents
	flagCompat               // changes under NFKD
	flagNFC                  // may change under NFC
)

// Bits of the fourth table, about grapheme clusters (UAX #29).
const (
	flagExtend  = 1 << iota // belongs to the character before
	flagPrepend             // belongs to the character behind
	flagControl             // a cluster of its own
)

const (
	stageIndex  = 2 * 0x1100
	flagDecomp  = 0x80 // of the first table: changes under NFD
	hangulFirst = 0xAC00
	hangulCount = 11172
)

type (
	stage     struct{ index, blocks string }
	stringMap struct{ keys, ends, text string }
)

var (
	tabCategory, tabFlags, tabClass, tabCluster stage
	mapDecomp, mapCompat, mapLower              stringMap
	mapCompose                                  string
	asciiSet                                    [utf8.RuneSelf]charSet
	_                                           = readUnicode()
)

// readUnicode slices the embedded file; it copies nothing.
func readUnicode() bool {
	s := unicodeTab
	take := func(n int) string {
		part := s[:n]
		s = s[n:]
		return part
	}
	for _, t := range []*stage{&tabCategory, &tabFlags, &tabClass, &tabCluster} {
		t.index = take(stageIndex)
		n := take(2)
		t.blocks = take(256 * (int(n[0]) | int(n[1])<<8))
	}
	for _, m := range []*stringMap{&mapDecomp, &mapCompat, &mapLower} {
		n := int(load32(take(4), 0))
		m.keys, m.ends = take(4*n), take(4*n)
		m.text = take(int(load32(m.ends, n-1)))
	}
	mapCompose = take(12 * int(load32(take(4), 0)))
	for c := range asciiSet {
		asciiSet[c] = setOf(rune(c))
	}
	return true
}

func load32(s string, i int) uint32 {
	return binary.LittleEndian.Uint32([]byte(s[4*i : 4*i+4]))
}

func (t *stage) at(r rune) byte {
	if uint32(r) > utf8.MaxRune {
		return 0
	}
	i := int(r>>8) * 2
	block := int(t.index[i]) | int(t.index[i+1])<<8
	return t.blocks[block<<8|int(r&0xff)]
}

// setOf returns the category and properties of a code point.
func setOf(r rune) charSet {
	b := tabCategory.at(r)
	return 1<<(b&31) | charSet(b&0x60)<<(29-5)
}

// setAt returns the set and length of the character at s[i], which must exist.
// A byte that is not UTF-8 counts as U+FFFD.
func setAt(s string, i int) (charSet, int) {
	if c := s[i]; c < utf8.RuneSelf {
		return asciiSet[c], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return setOf(r), n
}

func isSpace(r rune) bool { return tabCategory.at(r)&0x20 != 0 }

func (m *stringMap) find(r rune) (string, bool) {
	n := len(m.keys) / 4
	i := sort.Search(n, func(i int) bool { return load32(m.keys, i) >= uint32(r) })
	if i == n || load32(m.keys, i) != uint32(r) {
		return "", false
	}
	start := uint32(0)
	if i > 0 {
		start = load32(m.ends, i-1)
	}
	return m.text[start:load32(m.ends, i)], true
}

// composeRunes returns the primary composite of two characters.
func composeRunes(a, b rune) (rune, bool) {
	n := len(mapCompose) / 12
	i := sort.Search(n, func(i int) bool {
		x, y := load32(mapCompose, 3*i), load32(mapCompose, 3*i+1)
		return x > uint32(a) || x == uint32(a) && y >= uint32(b)
	})
	if i == n || load32(mapCompose, 3*i) != uint32(a) || load32(mapCompose, 3*i+1) != uint32(b) {
		return 0, false
	}
	return rune(load32(mapCompose, 3*i+2)), true
}
