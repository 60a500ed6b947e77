package chattmpl

import (
	"strings"
	"unicode"
)

// Case mapping of whole strings, with the mappings of one character to several
// that Unicode's SpecialCasing lists and Go's package unicode leaves out.

var specialUpper = map[rune]string{
	'ß': "SS", 'ŉ': "ʼN", 'ǰ': "J̌", 'ΐ': "Ϊ́", 'ΰ': "Ϋ́", 'և': "ԵՒ", 'ẖ': "H̱", 'ẗ': "T̈", 'ẘ': "W̊", 'ẙ': "Y̊", 'ẚ': "Aʾ",
	'ﬀ': "FF", 'ﬁ': "FI", 'ﬂ': "FL", 'ﬃ': "FFI", 'ﬄ': "FFL", 'ﬅ': "ST", 'ﬆ': "ST",
	'ﬓ': "ՄՆ", 'ﬔ': "ՄԵ", 'ﬕ': "ՄԻ", 'ﬖ': "ՎՆ", 'ﬗ': "ՄԽ",
}

var specialTitle = map[rune]string{
	'ß': "Ss", 'և': "Եւ", 'ﬀ': "Ff", 'ﬁ': "Fi", 'ﬂ': "Fl", 'ﬃ': "Ffi", 'ﬄ': "Ffl", 'ﬅ': "St", 'ﬆ': "St",
	'ﬓ': "Մն", 'ﬔ': "Մե", 'ﬕ': "Մի", 'ﬖ': "Վն", 'ﬗ': "Մխ",
}

func upperRune(b *builder, r rune, t bool) {
	if s, ok := specialUpper[r]; ok {
		b.mark(s, t)
		return
	}
	b.rune(unicode.ToUpper(r), t)
}

func titleRune(b *builder, r rune, t bool) {
	if s, ok := specialTitle[r]; ok {
		b.mark(s, t)
		return
	}
	if s, ok := specialUpper[r]; ok {
		b.mark(s, t)
		return
	}
	b.rune(unicode.ToTitle(r), t)
}

// lowerRune lowers the character at off of s; a sigma at the end of a word has
// a form of its own.
func lowerRune(b *builder, s string, off int, r rune, t bool) {
	switch r {
	case 'İ':
		b.mark("i̇", t)
	case 'Σ':
		if finalSigma(s, off) {
			b.rune('ς', t)
			return
		}
		b.rune('σ', t)
	default:
		b.rune(unicode.ToLower(r), t)
	}
}

// finalSigma tells whether a sigma follows a letter and no letter follows it.
func finalSigma(s string, off int) bool {
	ignorable := func(r rune) bool {
		return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk) ||
			strings.ContainsRune("'.:·’", r)
	}
	before := strings.TrimRightFunc(s[:off], ignorable)
	after := strings.TrimLeftFunc(s[off+len("Σ"):], ignorable)
	prev, next := false, false
	for _, r := range before[max(0, len(before)-4):] {
		prev = isCased(r)
	}
	for _, r := range after {
		next = isCased(r)
		break
	}
	return prev && !next
}

func upperStr(s Str) Str {
	return mapRunes(s, func(b *builder, _ int, r rune, t bool) { upperRune(b, r, t) })
}

func lowerStr(s Str) Str {
	return mapRunes(s, func(b *builder, off int, r rune, t bool) { lowerRune(b, s.s, off, r, t) })
}

func foldStr(s Str) Str {
	return mapRunes(s, func(b *builder, _ int, r rune, t bool) {
		if up, ok := specialUpper[r]; ok {
			b.mark(strings.ToLower(up), t)
			return
		}
		switch r {
		case 'ς':
			r = 'σ'
		case 'ẞ':
			b.mark("ss", t)
			return
		}
		b.rune(unicode.ToLower(r), t)
	})
}

func swapStr(s Str) Str {
	return mapRunes(s, func(b *builder, off int, r rune, t bool) {
		switch {
		case unicode.IsUpper(r):
			lowerRune(b, s.s, off, r, t)
		case unicode.IsLower(r):
			upperRune(b, r, t)
		default:
			b.rune(r, t)
		}
	})
}

func capitalizeStr(s Str) Str {
	return mapRunes(s, func(b *builder, off int, r rune, t bool) {
		if off == 0 {
			titleRune(b, r, t)
			return
		}
		lowerRune(b, s.s, off, r, t)
	})
}

// titleStr is str.title: a word starts after anything without case.
func titleStr(s Str) Str {
	inWord := false
	return mapRunes(s, func(b *builder, off int, r rune, t bool) {
		if inWord {
			lowerRune(b, s.s, off, r, t)
		} else {
			titleRune(b, r, t)
		}
		inWord = isCased(r)
	})
}

// titleFilter is the filter title: a word starts after space, -, (, {, [ or <.
func titleFilter(s Str) Str {
	start := true
	return mapRunes(s, func(b *builder, off int, r rune, t bool) {
		if isSpace(r) || strings.ContainsRune("-({[<", r) {
			b.rune(r, t)
			start = true
			return
		}
		if start {
			upperRune(b, r, t)
		} else {
			lowerRune(b, s.s, off, r, t)
		}
		start = false
	})
}
