package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// mapRunes rewrites text character by character; f appends what becomes of one.
// Bytes that are not UTF-8 stay.
func mapRunes(s string, f func(dst []byte, r rune) []byte) string {
	out := make([]byte, 0, len(s)+len(s)/8)
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			out = append(out, s[i])
		} else {
			out = f(out, r)
		}
		i += n
	}
	return string(out)
}

// bertNormalizer is the text cleaning of BERT.
type bertNormalizer struct {
	cleanText, chineseChars, stripAccents, lowercase bool
}

func (b bertNormalizer) apply(_ *budget, s string) string {
	if b.cleanText || b.chineseChars {
		s = mapRunes(s, func(dst []byte, r rune) []byte {
			switch {
			case b.cleanText && tabFlags.at(r)&flagCleaned != 0:
				return dst
			case b.cleanText && isSpace(r):
				return append(dst, ' ')
			case b.chineseChars && isChinese(r):
				dst = utf8.AppendRune(append(dst, ' '), r)
				return append(dst, ' ')
			}
			return utf8.AppendRune(dst, r)
		})
	}
	if b.stripAccents {
		s = dropFlag(nfd.apply(nil, s), flagBertMark)
	}
	if b.lowercase {
		s = lowercase{}.apply(nil, s)
	}
	return s
}

// isChinese holds BERT's blocks of Chinese characters, with the gap that
// Hugging Face's has between U+2B820 and U+2B91F.
func isChinese(r rune) bool {
	return r >= 0x4E00 && r <= 0x9FFF || r >= 0x3400 && r <= 0x4DBF || r >= 0x20000 && r <= 0x2A6DF ||
		r >= 0x2A700 && r <= 0x2B73F || r >= 0x2B740 && r <= 0x2B81F || r >= 0x2B920 && r <= 0x2CEAF ||
		r >= 0xF900 && r <= 0xFAFF || r >= 0x2F800 && r <= 0x2FA1F
}

// dropFlag removes the characters with a flag.
func dropFlag(s string, flag byte) string {
	if strings.IndexFunc(s, func(r rune) bool { return tabFlags.at(r)&flag != 0 }) < 0 {
		return s
	}
	return mapRunes(s, func(dst []byte, r rune) []byte {
		if tabFlags.at(r)&flag != 0 {
			return dst
		}
		return utf8.AppendRune(dst, r)
	})
}

type lowercase struct{}

func (lowercase) apply(_ *budget, s string) string {
	return mapRunes(s, func(dst []byte, r rune) []byte {
		if r < utf8.RuneSelf {
			if r >= 'A' && r <= 'Z' {
				r |= 0x20
			}
			return append(dst, byte(r))
		}
		if low, ok := mapLower.find(r); ok {
			return append(dst, low...)
		}
		return utf8.AppendRune(dst, r)
	})
}

// stripAccents removes combining marks; it is meant to stand behind NFD.
type stripAccents struct{}

func (stripAccents) apply(_ *budget, s string) string { return dropFlag(s, flagAccent) }

// stripSpace removes white space at the ends.
type stripSpace struct{ left, right bool }

func (t stripSpace) apply(_ *budget, s string) string {
	if t.left {
		s = strings.TrimLeftFunc(s, isSpace)
	}
	if t.right {
		s = strings.TrimRightFunc(s, isSpace)
	}
	return s
}

// nmt removes control characters and makes odd spaces plain, as Google's NMT
// preprocessing does.
type nmt struct{}

func (nmt) apply(_ *budget, s string) string {
	return mapRunes(s, func(dst []byte, r rune) []byte {
		switch {
		case r >= 1 && r <= 8, r == 0xB, r >= 0xE && r <= 0x1F, r == 0x7F, r == 0x8F, r == 0x9F:
			return dst
		case r == 9, r == 0xA, r == 0xC, r == 0xD, r == 0x1680, r >= 0x200B && r <= 0x200F, r == 0x2028, r == 0x2029,
			r == 0x2581, r == 0xFEFF, r == 0xFFFD:
			return append(dst, ' ')
		}
		return utf8.AppendRune(dst, r)
	})
}

// alphabet writes text in the byte-level alphabet.
type alphabet struct{}

func (alphabet) apply(_ *budget, s string) string { return string(appendAlphabet(nil, s)) }

// replaceRegex replaces the matches of a pattern.
type replaceRegex struct {
	pattern matcher
	new     string
}

func (r replaceRegex) apply(b *budget, s string) string {
	found := r.pattern.matches(b, nil, s)
	if len(found) == 0 {
		return s
	}
	var out strings.Builder
	done := 0
	for i := 0; i < len(found); i += 2 {
		out.WriteString(s[done:found[i]])
		out.WriteString(r.new)
		done = found[i+1]
	}
	out.WriteString(s[done:])
	return out.String()
}
