package tokenizer

import (
	"errors"
	"fmt"
)

// maxPattern bounds the length of a regular expression, in bytes, and
// maxProgram what it compiles to, in instructions.
const (
	maxPattern = 1 << 14
	maxProgram = 1 << 15
)

// What a text may cost: a regular expression that backtracks can need time that
// grows with the square of a text or faster. Steps are counted, not time, so
// that a text is encoded or refused alike on every machine and under any load.
// Patterns in use take fewer than a hundred steps per byte.
const (
	baseSteps    = 1 << 26
	stepsPerByte = 128
)

// ErrTooManySteps is the error of a text on which a tokenizer's regular
// expression backtracks without end. Its ids are unknown, so there are none.
var ErrTooManySteps = errors.New("the tokenizer's regular expression backtracks too often on this text")

// A budget is what is left of the steps of one call. When it has run out, what
// matchers return is worthless.
// RATIONALE: Why is the tokenizers' matcher of regular expressions our own?
type budget struct{ left int64 }

func newBudget(bytes int) *budget { return &budget{baseSteps + stepsPerByte*int64(bytes)} }

func (b *budget) err(bytes int) error {
	if b.left >= 0 {
		return nil
	}
	return fmt.Errorf("%w: more than %d steps for %d bytes; shorten its longest run of digits, spaces or letters",
		ErrTooManySteps, baseSteps+stepsPerByte*int64(bytes), bytes)
}

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

func (m scanMatcher) matches(_ *budget, out []int, s string) []int {
	for i := 0; i < len(s); {
		end := m(s, i)
		out = append(out, i, end)
		i = end
	}
	return out
}
