package tokenizer

import "strings"

// piece is a stretch of normalized text on its way to the model.
type piece struct {
	text    string
	atStart bool // begins the whole input
}

// A preTokenizer cuts pieces into smaller ones, which it appends to out.
type preTokenizer interface {
	split(b *budget, out, in []piece) []piece
}

// behavior says what becomes of the matches of a split.
type behavior uint8

const (
	isolated behavior = iota
	removed
	mergedWithPrevious
	mergedWithNext
	contiguous
)

// A matcher appends the matches of a pattern in s to out as pairs of start and
// end, in order and without overlap. It takes its steps from the budget; once
// that is spent, matches are missing and the text must be refused.
type matcher interface {
	matches(b *budget, out []int, s string) []int
}

// splitter cuts at the matches of a pattern.
type splitter struct {
	pattern  matcher
	scan     scanner // not nil: the same, for behaviour isolated without invert
	behavior behavior
	invert   bool
}

func (p *splitter) split(b *budget, out, in []piece) []piece {
	var found []int
	for _, w := range in {
		if p.scan != nil {
			for i := 0; i < len(w.text); {
				end := p.scan(w.text, i)
				out = append(out, piece{w.text[i:end], w.atStart && i == 0})
				i = end
			}
			continue
		}
		found = p.pattern.matches(b, found[:0], w.text)
		for _, s := range cut(w.text, found, p.behavior, p.invert) {
			if s.end > s.start {
				out = append(out, piece{w.text[s.start:s.end], w.atStart && s.start == 0})
			}
		}
	}
	return out
}

// cut returns the stretches of s that remain, given the matches in it.
func cut(s string, found []int, b behavior, invert bool) []span {
	type part struct {
		span
		match bool
	}
	var parts []part
	done := 0
	for i := 0; i < len(found); i += 2 {
		if done < found[i] {
			parts = append(parts, part{span{done, found[i]}, invert})
		}
		parts = append(parts, part{span{found[i], found[i+1]}, !invert})
		done = found[i+1]
	}
	if done < len(s) {
		parts = append(parts, part{span{done, len(s)}, invert})
	}
	var out []span
	last := func() *span { return &out[len(out)-1] }
	switch b {
	case isolated:
		for _, p := range parts {
			out = append(out, p.span)
		}
	case removed:
		for _, p := range parts {
			if !p.match {
				out = append(out, p.span)
			}
		}
	case contiguous:
		for i, p := range parts {
			if i > 0 && parts[i-1].match == p.match {
				last().end = p.end
			} else {
				out = append(out, p.span)
			}
		}
	case mergedWithPrevious:
		for i, p := range parts {
			if p.match && i > 0 && !parts[i-1].match {
				last().end = p.end
			} else {
				out = append(out, p.span)
			}
		}
	case mergedWithNext:
		for i, p := range parts {
			if !p.match && i > 0 && parts[i-1].match {
				last().end = p.end
			} else {
				out = append(out, p.span)
			}
		}
	}
	return out
}

// literal matches a fixed string.
type literal string

func (l literal) matches(_ *budget, out []int, s string) []int {
	for at := 0; l != ""; {
		k := strings.Index(s[at:], string(l))
		if k < 0 {
			break
		}
		out = append(out, at+k, at+k+len(l))
		at += k + len(l)
	}
	return out
}

// byteLevel cuts as GPT-2 does and writes bytes in the byte-level alphabet.
type byteLevel struct {
	addPrefixSpace bool
	useRegex       bool
	raw            bool // bytes stay as they are, for a model over raw bytes
}

func (b *byteLevel) split(_ *budget, out, in []piece) []piece {
	for _, w := range in {
		s := w.text
		if b.addPrefixSpace && !strings.HasPrefix(s, " ") {
			s = " " + s
		}
		for i := 0; i < len(s); {
			end := len(s)
			if b.useRegex {
				end = scanGPT2(s, i)
			}
			word := s[i:end]
			if !b.raw {
				word = string(appendAlphabet(nil, word))
			}
			out = append(out, piece{word, w.atStart && i == 0})
			i = end
		}
	}
	return out
}

// compilePre returns the scanners that do the same as pre, if scanners can.
func compilePre(pre []preTokenizer) ([]scanner, bool) {
	scan := []scanner{}
	for _, p := range pre {
		switch p := p.(type) {
		case *splitter:
			if p.scan == nil {
				return nil, false
			}
			scan = append(scan, p.scan)
		case *byteLevel:
			if p.addPrefixSpace || !p.raw {
				return nil, false
			}
			if p.useRegex {
				scan = append(scan, scanGPT2)
			}
		default:
			return nil, false
		}
	}
	return scan, true
}
