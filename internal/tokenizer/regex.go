package tokenizer

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// regexTimeout ends a single search of a backtracking regular expression.
const regexTimeout = 2 * time.Second

// maxPattern bounds the length of a regular expression, in bytes.
const maxPattern = 1 << 14

// compilePattern returns what isolates the matches of a split pattern: for the
// common ones a scanner, for the rest a backtracking matcher.
func compilePattern(pattern string) (matcher, scanner, error) {
	if scan := scanners[pattern]; scan != nil {
		return nil, scan, nil
	}
	if pattern == patternAFMoE {
		return digitGroups{}, nil, nil
	}
	m, err := newRegex(pattern)
	return m, nil, err
}

// compileMatcher returns what finds the matches of a pattern.
func compileMatcher(pattern string) (matcher, error) {
	if coversAll[pattern] {
		return scanMatcher(scanners[pattern]), nil
	}
	return newRegex(pattern)
}

// scanMatcher finds the words of a scanner whose pattern leaves no gaps.
type scanMatcher scanner

func (m scanMatcher) matches(out []int, s string) []int {
	for i := 0; i < len(s); {
		end := m(s, i)
		out = append(out, i, end)
		i = end
	}
	return out
}

// regex is a backtracking regular expression.
type regex struct{ re *regexp2.Regexp }

func newRegex(pattern string) (*regex, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("regular expression of %d bytes, limit %d", len(pattern), maxPattern)
	}
	pinned, err := pinClasses(pattern)
	if err != nil {
		return nil, fmt.Errorf("regular expression %q: %w", pattern, err)
	}
	re, err := regexp2.Compile(pinned, regexp2.Multiline) // ^ and $ are those of lines, as in Oniguruma
	if err != nil {
		return nil, fmt.Errorf("regular expression %q: %w", pattern, err)
	}
	re.MatchTimeout = regexTimeout
	return &regex{re: re}, nil
}

// matches appends the matches in s. A search that runs out of time leaves the
// rest of the text in one piece, which the model still encodes.
func (r *regex) matches(out []int, s string) []int {
	found, err := r.re.FindAllStringIndex(s, -1)
	if err != nil {
		return out
	}
	for _, m := range found {
		out = append(out, m[0], m[1])
	}
	return out
}

var classSets = map[string]charSet{
	"L": catL, "Lu": catLu, "Ll": catLl, "Lt": catLt, "Lm": catLm, "Lo": catLo,
	"M": catM, "Mn": catMn, "Mc": catMc, "Me": catMe,
	"N": catN, "Nd": catNd, "Nl": catNl, "No": catNo,
	"P": catP, "Pc": catPc, "Pd": catPd, "Ps": catPs, "Pe": catPe, "Pi": catPi, "Pf": catPf, "Po": catPo,
	"S": catS, "Sm": catSm, "Sc": catSc, "Sk": catSk, "So": catSo,
	"Z": catZ, "Zs": catZs, "Zl": catZl, "Zp": catZp,
	"C": catC, "Cc": catCc, "Cf": catCf, "Co": catCo, "Cn": catCn,
	"Han": propHan, "Letter": catL, "Number": catN, "Punctuation": catP, "Symbol": catS, "Mark": catM,
}

// A runeClass tells the members of a character class.
type runeClass func(r rune) bool

// isWordRune is Oniguruma's \w.
func isWordRune(r rune) bool {
	switch r {
	case 0xB2, 0xB3, 0xB9, 0xBC, 0xBD, 0xBE:
		return true
	case 0x200C, 0x200D:
		return false
	}
	return tabFlags.at(r)&flagWord != 0
}

func isHexDigit(r rune) bool {
	if r >= utf8.RuneSelf {
		return false
	}
	_, ok := hexDigit(byte(r))
	return ok
}

// pinClasses translates a pattern from Oniguruma, Hugging Face's regular
// expressions: classes become ranges of the pinned Unicode tables. What the
// matcher would read in another way is an error.
func pinClasses(pattern string) (string, error) {
	var b strings.Builder
	inClass := false
	for i := 0; i < len(pattern); i++ {
		rest := pattern[i:]
		switch c := pattern[i]; {
		case c == '\\' && i+1 < len(pattern):
			n := writeEscape(&b, rest, inClass)
			i += n - 1
			continue
		case c == '[' && inClass:
			return "", fmt.Errorf("a class inside a class, at byte %d, is not supported", i)
		case strings.HasPrefix(rest, "&&") && inClass:
			return "", fmt.Errorf("an intersection of classes, at byte %d, is not supported", i)
		case c == '[':
			inClass = true
			if strings.HasPrefix(rest, "[^") {
				b.WriteString("[^")
				i++
				rest = rest[1:]
			} else {
				b.WriteByte('[')
			}
			if strings.HasPrefix(rest[1:], "]") {
				b.WriteString("\\]")
				i++
			}
			continue
		case c == ']':
			inClass = false
		}
		b.WriteByte(pattern[i])
	}
	return b.String(), nil
}

// writeEscape translates the escape at the start of s and returns its length.
func writeEscape(b *strings.Builder, s string, inClass bool) int {
	if !inClass && (s[1] == 'b' || s[1] == 'B') {
		word := classRanges(isWordRune, false)
		first, second := "=", "!" // a word character on one side only
		if s[1] == 'B' {
			fmt.Fprintf(b, "(?:(?<=[%s])(?=[%s])|(?<![%s])(?![%s]))", word, word, word, word)
			return 2
		}
		fmt.Fprintf(b, "(?:(?<%s[%s])(?%s[%s])|(?<%s[%s])(?%s[%s]))", first, word, second, word, second, word, first, word)
		return 2
	}
	class, n, negate := classAt(s)
	if n == 0 {
		b.WriteString(s[:2])
		return 2
	}
	if !inClass {
		b.WriteByte('[')
	}
	b.WriteString(classRanges(class, negate))
	if !inClass {
		b.WriteByte(']')
	}
	return n
}

// classAt reads a class escape at the start of s; n is 0 if it is another one.
func classAt(s string) (class runeClass, n int, negate bool) {
	inSet := func(set charSet) runeClass { return func(r rune) bool { return setOf(r)&set != 0 } }
	switch s[1] {
	case 's', 'S':
		return isSpace, 2, s[1] == 'S'
	case 'd', 'D':
		return inSet(catNd), 2, s[1] == 'D'
	case 'w', 'W':
		return isWordRune, 2, s[1] == 'W'
	case 'h', 'H':
		return isHexDigit, 2, s[1] == 'H'
	case 'p', 'P':
		end := strings.IndexByte(s, '}')
		if len(s) < 4 || s[2] != '{' || end < 0 {
			return nil, 0, false
		}
		name := strings.TrimPrefix(s[3:end], "^")
		set, ok := classSets[name]
		if !ok {
			return nil, 0, false
		}
		return inSet(set), end + 1, (s[1] == 'P') != (len(name) != end-3)
	}
	return nil, 0, false
}

// classRanges writes a class as the inside of a bracket expression.
func classRanges(class runeClass, negate bool) string {
	var b strings.Builder
	put := func(r rune) {
		if r < utf8.RuneSelf && !isASCIILetter(byte(r)) && (r < '0' || r > '9') {
			fmt.Fprintf(&b, "\\x%02x", r)
		} else {
			b.WriteRune(r)
		}
	}
	start := rune(-1)
	for r := rune(0); r <= utf8.MaxRune+1; r++ {
		surrogate := r >= 0xD800 && r <= 0xDFFF
		in := r <= utf8.MaxRune && !surrogate && class(r) != negate
		switch {
		case in && start < 0:
			start = r
		case !in && start >= 0:
			put(start)
			if last := r - 1; last > start {
				b.WriteByte('-')
				put(last)
			}
			start = -1
		}
	}
	return b.String()
}
