package tokenizer

import (
	"slices"
	"unicode/utf8"
)

// form is a Unicode normalization form (UAX #15) over the pinned tables.
// RATIONALE: Why is Unicode normalization our own?
type form struct{ compat, compose bool }

var (
	nfc  = form{compose: true}
	nfd  = form{}
	nfkc = form{compat: true, compose: true}
	nfkd = form{compat: true}
)

func (f form) apply(_ *budget, s string) string {
	if f.unchanged(s) {
		return s
	}
	var runes []rune
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			r = -1 - rune(s[i]) // a byte that is not UTF-8 stays what it is
		}
		runes = f.decompose(runes, r)
		i += n
	}
	orderMarks(runes)
	if f.compose {
		runes = composeAll(runes)
	}
	out := make([]byte, 0, len(s)+8)
	for _, r := range runes {
		if r < 0 {
			out = append(out, byte(-1-r))
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return string(out)
}

// unchanged reports, without false positives, that s is in the form already.
func (f form) unchanged(s string) bool {
	last := byte(0)
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			last = 0
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		flags := tabFlags.at(r)
		if f.compose && flags&flagNFC != 0 || f.compat && flags&flagCompat != 0 ||
			!f.compose && tabCategory.at(r)&flagDecomp != 0 {
			return false
		}
		class := tabClass.at(r)
		if class != 0 && class < last {
			return false
		}
		last = class
	}
	return true
}

// decompose appends the full decomposition of a character.
func (f form) decompose(out []rune, r rune) []rune {
	if r < utf8.RuneSelf {
		return append(out, r)
	}
	if k := r - hangulFirst; k >= 0 && k < hangulCount {
		out = append(out, 0x1100+k/588, 0x1161+k%588/28)
		if k%28 != 0 {
			out = append(out, 0x11A7+k%28)
		}
		return out
	}
	if f.compat && tabFlags.at(r)&flagCompat != 0 {
		if s, ok := mapCompat.find(r); ok {
			return append(out, []rune(s)...)
		}
	}
	if tabCategory.at(r)&flagDecomp != 0 {
		if s, ok := mapDecomp.find(r); ok {
			return append(out, []rune(s)...)
		}
	}
	return append(out, r)
}

// orderMarks sorts runs of combining marks by their class.
func orderMarks(runes []rune) {
	class := func(r rune) byte {
		if r < 0x300 {
			return 0
		}
		return tabClass.at(r)
	}
	for i := 0; i < len(runes); i++ {
		if class(runes[i]) == 0 {
			continue
		}
		end := i + 1
		for end < len(runes) && class(runes[end]) != 0 {
			end++
		}
		slices.SortStableFunc(runes[i:end], func(a, b rune) int { return int(class(a)) - int(class(b)) })
		i = end
	}
}

// composeAll joins characters to their primary composites, in place.
func composeAll(runes []rune) []rune {
	starter, last := -1, -1 // index of the last starter; class of the mark before, -1 right behind it
	n := 0
	for _, r := range runes {
		class := 0
		if r >= 0x300 {
			class = int(tabClass.at(r))
		}
		if starter >= 0 && last < class {
			if c, ok := composePair(runes[starter], r); ok {
				runes[starter] = c
				continue
			}
		}
		if class == 0 {
			starter, last = n, -1
		} else {
			last = class
		}
		runes[n] = r
		n++
	}
	return runes[:n]
}

func composePair(a, b rune) (rune, bool) {
	if b < 0x300 || a < 0 {
		return 0, false
	}
	if a >= 0x1100 && a < 0x1113 && b >= 0x1161 && b < 0x1176 {
		return hangulFirst + (a-0x1100)*588 + (b-0x1161)*28, true
	}
	if k := a - hangulFirst; k >= 0 && k < hangulCount && k%28 == 0 && b > 0x11A7 && b < 0x11C3 {
		return a + b - 0x11A7, true
	}
	return composeRunes(a, b)
}
