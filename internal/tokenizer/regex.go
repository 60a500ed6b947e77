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

// compilePattern returns what finds a split pattern: for the common ones a
// scanner, for the rest a backtracking matcher.
func compilePattern(pattern string) (matcher, scanner, error) {
	if scan := scanners[pattern]; scan != nil {
		if coversAll[pattern] {
			return scanMatcher(scan), scan, nil
		}
		m, err := newRegex(pattern)
		return m, scan, err
	}
	if pattern == patternAFMoE {
		return digitGroups{}, nil, nil
	}
	m, err := newRegex(pattern)
	return m, nil, err
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
	re, err := regexp2.Compile(pinClasses(pattern))
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

// pinClasses writes the classes of a pattern as ranges of the pinned Unicode
// tables: \p{L}, \s, \w, \d and their complements.
func pinClasses(pattern string) string {
	var b strings.Builder
	inClass := false
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		switch {
		case c == '\\' && i+1 < len(pattern):
			set, n, negate := classAt(pattern[i:])
			if n == 0 {
				b.WriteString(pattern[i : i+2])
				i++
				continue
			}
			ranges := classRanges(set, negate)
			if !inClass {
				ranges = "[" + ranges + "]"
			}
			b.WriteString(ranges)
			i += n - 1
			continue
		case c == '[' && !inClass:
			inClass = true
			b.WriteByte(c)
			if rest := pattern[i+1:]; strings.HasPrefix(rest, "^]") {
				b.WriteString("^\\]")
				i += 2
			} else if strings.HasPrefix(rest, "]") {
				b.WriteString("\\]")
				i++
			}
			continue
		case c == ']':
			inClass = false
		}
		b.WriteByte(c)
	}
	return b.String()
}

// classAt reads a class escape at the start of s; n is 0 if it is another one.
func classAt(s string) (set charSet, n int, negate bool) {
	switch s[1] {
	case 's', 'S':
		return propSpace, 2, s[1] == 'S'
	case 'd', 'D':
		return catNd, 2, s[1] == 'D'
	case 'w', 'W':
		return catL | catM | catNd | catPc, 2, s[1] == 'W'
	case 'p', 'P':
		end := strings.IndexByte(s, '}')
		if len(s) < 4 || s[2] != '{' || end < 0 {
			return 0, 0, false
		}
		name := strings.TrimPrefix(s[3:end], "^")
		set, ok := classSets[name]
		if !ok {
			return 0, 0, false
		}
		return set, end + 1, (s[1] == 'P') != (len(name) != end-3)
	}
	return 0, 0, false
}

// classRanges writes a set as the inside of a character class.
func classRanges(set charSet, negate bool) string {
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
		in := r <= utf8.MaxRune && !surrogate && (setOf(r)&set != 0) != negate
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
