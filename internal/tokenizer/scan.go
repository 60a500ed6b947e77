package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// A scanner returns the end of the word that starts at s[i], i < len(s). It
// does what a Split pre-tokenizer with behaviour "isolated" does for one
// regular expression, by hand: matches are words, and so is the text between
// two matches. Each runs in time linear in the text.
type scanner func(s string, i int) int

// wordRules describe the patterns that descend from GPT-4's cl100k:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
//	 ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
type wordRules struct {
	letters  charSet // characters of words
	noPrefix charSet // characters that cannot stand before a word's first letter
	symbols  charSet // characters that are no symbols
	digits   int     // longest run of digits
	cases    bool    // words end where lower case is followed by upper case (o200k)
	suffix   bool    // contractions end a word instead of being one (o200k)
	apart    bool    // contractions are words
	tail     string  // what may follow symbols, besides newlines
	han      bool    // runs of Chinese characters are words, and no part of others
	symTail  bool    // symbols take the newlines that follow
}

func (w *wordRules) scan(s string, i int) int {
	set, n := setAt(s, i)
	if w.han && set&propHan != 0 {
		return runOf(s, i, propHan, -1)
	}
	if set&propSpace == 0 || set&w.letters != 0 {
		if s[i] == '\'' && w.apart {
			if m := contraction(s[i:]); m > 0 {
				return i + m
			}
		}
		if end := w.word(s, i, set, n); end > i {
			return end
		}
		if set&catN != 0 {
			return runOf(s, i+n, catN, w.digits-1)
		}
		return w.symbolsFrom(s, i)
	}
	// A space or another character before a word.
	if j := i + n; j < len(s) {
		if s[i] != '\r' && s[i] != '\n' {
			if end := w.word(s, i, set, n); end > i {
				return end
			}
		}
		if s[i] == ' ' {
			if next, _ := setAt(s, j); next&w.symbols == 0 {
				return w.symbolsFrom(s, j)
			}
		}
	}
	return spaces(s, i)
}

// word matches an optional character and the letters of a word; it returns i
// when there is none.
func (w *wordRules) word(s string, i int, set charSet, n int) int {
	if w.cases {
		return w.casedWord(s, i, set, n)
	}
	j := i
	if set&w.letters == 0 {
		if set&w.noPrefix != 0 || s[i] == '\r' || s[i] == '\n' {
			return i
		}
		j += n
	}
	if end := runOf(s, j, w.letters, -1); end > j {
		return end
	}
	return i
}

const (
	upperSet = catLu | catLt | catLm | catLo | catM
	lowerSet = catLl | catLm | catLo | catM
)

// casedWord matches o200k's two alternatives, [upper]*[lower]+ and
// [upper]+[lower]*, each with an optional character before it.
func (w *wordRules) casedWord(s string, i int, set charSet, n int) int {
	prefixed := set&(catL|catN) == 0 && s[i] != '\r' && s[i] != '\n'
	var starts [2]int
	k := 0
	if prefixed {
		starts[0], k = i+n, 1
	}
	starts[k] = i
	var not charSet
	if w.han {
		not = propHan
	}
	for _, j := range starts[:k+1] {
		if end := lowerWord(s, j, not); end > j {
			return w.withSuffix(s, end)
		}
	}
	for _, j := range starts[:k+1] {
		if end := runWithout(s, j, upperSet, not); end > j {
			return w.withSuffix(s, end)
		}
	}
	return i
}

// lowerWord matches [upper]*[lower]+ as a backtracking matcher would: when no
// lower-case run follows, the last character that is both is given back.
func lowerWord(s string, i int, not charSet) int {
	both := i
	for i < len(s) {
		set, n := setAt(s, i)
		if set&upperSet == 0 || set&not != 0 {
			break
		}
		i += n
		if set&lowerSet != 0 {
			both = i
		}
	}
	if end := runWithout(s, i, lowerSet, not); end > i {
		return end
	}
	return both
}

// runWithout returns the end of the run of characters in set but not in not.
func runWithout(s string, i int, set, not charSet) int {
	for i < len(s) {
		c, n := setAt(s, i)
		if c&set == 0 || c&not != 0 {
			break
		}
		i += n
	}
	return i
}

func (w *wordRules) withSuffix(s string, i int) int {
	if w.suffix && i < len(s) && s[i] == '\'' {
		i += contraction(s[i:])
	}
	return i
}

// symbolsFrom matches one or more symbols and what may follow them.
func (w *wordRules) symbolsFrom(s string, i int) int {
	for i < len(s) {
		set, n := setAt(s, i)
		if set&w.symbols != 0 {
			break
		}
		i += n
	}
	for i < len(s) {
		if !(w.symTail && (s[i] == '\r' || s[i] == '\n')) && strings.IndexByte(w.tail, s[i]) < 0 {
			break
		}
		i++
	}
	return i
}

// spaces matches \s*[\r\n]+|\s+(?!\S)|\s+ at a white-space character. As \s* is
// greedy, a match ends behind the last line break of the run.
func spaces(s string, i int) int {
	lineEnd, last, j := -1, i, i
	for j < len(s) {
		set, n := setAt(s, j)
		if set&propSpace == 0 {
			break
		}
		last = j
		if s[j] == '\r' || s[j] == '\n' {
			lineEnd = j + 1
		}
		j += n
	}
	if lineEnd > 0 {
		return lineEnd
	}
	if j == len(s) || last == i {
		return j
	}
	return last
}

// trailingSpaces matches \s+(?!\S)|\s+ at a white-space character.
func trailingSpaces(s string, i int) int {
	last, j := i, i
	for j < len(s) {
		set, n := setAt(s, j)
		if set&propSpace == 0 {
			break
		}
		last = j
		j += n
	}
	if j == len(s) || last == i {
		return j
	}
	return last
}

// runOf returns the end of the run of characters in set at i, at most limit of
// them when limit is not negative.
func runOf(s string, i int, set charSet, limit int) int {
	for i < len(s) && limit != 0 {
		c, n := setAt(s, i)
		if c&set == 0 {
			break
		}
		i += n
		limit--
	}
	return i
}

// contraction returns the length of (?i:'s|'t|'re|'ve|'m|'ll|'d) at the start
// of s, which begins with an apostrophe. U+017F folds to s.
func contraction(s string) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if len(s) > 2 && s[2]|0x20 == 'e' {
			return 3
		}
	case 'l':
		if len(s) > 2 && s[2]|0x20 == 'l' {
			return 3
		}
	}
	if strings.HasPrefix(s[1:], "\u017f") {
		return 3
	}
	return 0
}

// scanGPT2 matches 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func scanGPT2(s string, i int) int {
	if s[i] == '\'' && len(s) > i+1 {
		switch s[i+1] {
		case 's', 't', 'm', 'd':
			return i + 2
		case 'r', 'v':
			if len(s) > i+2 && s[i+2] == 'e' {
				return i + 3
			}
		case 'l':
			if len(s) > i+2 && s[i+2] == 'l' {
				return i + 3
			}
		}
	}
	j := i
	if s[i] == ' ' {
		j++
		if j == len(s) {
			return j
		}
	}
	set, n := setAt(s, j)
	switch {
	case set&catL != 0:
		return runOf(s, j+n, catL, -1)
	case set&catN != 0:
		return runOf(s, j+n, catN, -1)
	case set&propSpace != 0:
		return trailingSpaces(s, i)
	}
	for j += n; j < len(s); j += n {
		if set, n = setAt(s, j); set&(propSpace|catL|catN) != 0 {
			break
		}
	}
	return j
}

// runScanner isolates runs of one set of characters, at most limit long.
func runScanner(set charSet, limit int) scanner {
	return func(s string, i int) int {
		c, n := setAt(s, i)
		if c&set != 0 {
			return runOf(s, i+n, set, limit-1)
		}
		for i += n; i < len(s); i += n {
			if c, n = setAt(s, i); c&set != 0 {
				break
			}
		}
		return i
	}
}

// scanCJK isolates runs of [一-龥぀-ゟ゠-ヿ] (DeepSeek V3).
func scanCJK(s string, i int) int {
	start, in := i, false
	for i < len(s) {
		if s[i] < utf8.RuneSelf {
			if in {
				return i
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		cjk := r >= 0x4E00 && r <= 0x9FA5 || r >= 0x3040 && r <= 0x30FF
		if cjk != in {
			if i > start {
				return i
			}
			in = cjk
		}
		i += n
	}
	return i
}

// scanDeepSeek matches DeepSeek V3's last pattern:
//
//	[!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|
//	\s*[\r\n]+|\s+(?!\S)|\s+
func scanDeepSeek(s string, i int) int {
	if end := matchDeepSeek(s, i); end > i {
		return end
	}
	// Control characters and the like belong to no alternative; a run of them
	// is what lies between two matches.
	for {
		_, n := setAt(s, i)
		i += n
		if i >= len(s) || matchDeepSeek(s, i) > i {
			return i
		}
	}
}

func matchDeepSeek(s string, i int) int {
	set, n := setAt(s, i)
	if c := s[i]; c < utf8.RuneSelf && set&(catP|catS) != 0 && i+1 < len(s) && isASCIILetter(s[i+1]) {
		for i++; i < len(s) && isASCIILetter(s[i]); i++ {
		}
		return i
	}
	if set&(catL|catP|catS) == 0 && s[i] != '\r' && s[i] != '\n' {
		if end := runOf(s, i+n, catL|catM, -1); end > i+n {
			return end
		}
	}
	if end := runOf(s, i, catL|catM, -1); end > i {
		return end
	}
	j := i
	if s[i] == ' ' {
		j++
	}
	if end := runOf(s, j, catP|catS, -1); end > j {
		for end < len(s) && (s[end] == '\r' || s[end] == '\n') {
			end++
		}
		return end
	}
	if set&propSpace != 0 {
		return spaces(s, i)
	}
	return i
}

func isASCIILetter(c byte) bool { c |= 0x20; return c >= 'a' && c <= 'z' }
