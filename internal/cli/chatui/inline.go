package chatui

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/rivo/uniseg"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// A face is how a piece of text looks: a set of properties.
type face uint16

const (
	bold face = 1 << iota
	italic
	strike
	code
	link
	dimmed
	heading
	keyword
	literal
	remark
)

// A run is a piece of a line in one face.
type run struct {
	text string
	face face
}

// inlines reads what stands inside of one line of Markdown. It has no blocks, and none of HTML: what looks like a tag
// is text of the answer.
var inlines = parser.NewParser(
	parser.WithBlockParsers(util.Prioritized(parser.NewParagraphParser(), 1)),
	parser.WithInlineParsers(
		util.Prioritized(parser.NewCodeSpanParser(), 100), util.Prioritized(parser.NewLinkParser(), 200),
		util.Prioritized(parser.NewAutoLinkParser(), 300), util.Prioritized(parser.NewEmphasisParser(), 500),
		util.Prioritized(extension.NewStrikethroughParser(), 500),
	),
)

// inline reads one line of Markdown.
func inline(line string, base face) []run {
	lead := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	if line = line[len(lead):]; line == "" {
		return nil
	}
	src := []byte(line)
	var out []run
	add := func(s string, f face) {
		if n := len(out); n > 0 && out[n-1].face == f {
			out[n-1].text += s
		} else if s != "" {
			out = append(out, run{s, f})
		}
	}
	var walk func(n ast.Node, f face)
	walk = func(n ast.Node, f face) {
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			switch c := c.(type) {
			case *ast.Text:
				s := c.Segment.Value(src)
				if f&code == 0 {
					s = plainText(s)
				}
				add(string(s), f)
			case *ast.String:
				add(string(c.Value), f)
			case *ast.Emphasis:
				if c.Level == 1 {
					walk(c, f|italic)
				} else {
					walk(c, f|bold)
				}
			case *extast.Strikethrough:
				walk(c, f|strike)
			case *ast.CodeSpan:
				walk(c, f|code)
			case *ast.AutoLink:
				add(string(c.Label(src)), f|link)
			case *ast.Link:
				walk(c, f|link)
				address(add, c, src, f)
			case *ast.Image:
				walk(c, f|link)
				address(add, c, src, f)
			default:
				walk(c, f)
			}
		}
	}
	walk(inlines.Parse(text.NewReader(src)), base)
	return out
}

// plainText resolves what Markdown escapes.
func plainText(s []byte) []byte {
	return util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(s)))
}

// address writes where a link leads, where its text does not say it.
func address(add func(string, face), n ast.Node, src []byte, f face) {
	var to []byte
	switch n := n.(type) {
	case *ast.Link:
		to = n.Destination
	case *ast.Image:
		to = n.Destination
	}
	var label strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			label.Write(t.Segment.Value(src))
		}
	}
	if label.String() != string(to) && len(to) > 0 {
		add(" ("+string(to)+")", f|dimmed)
	}
}

// plain is the text of runs.
func plain(runs []run) string {
	var b strings.Builder
	for _, r := range runs {
		b.WriteString(r.text)
	}
	return b.String()
}

// wrap breaks text into lines of at most so many columns, between words where it can: where Unicode allows a break, so
// that Chinese and Japanese are broken too. Spaces at breaks are left out.
func wrap(runs []run, width int) [][]run {
	width = max(width, 2) // a wide character
	s := plain(runs)
	var lines [][]run
	begin, end, cols := 0, 0, 0 // of the line: end is behind its last character that is no space
	flush := func(next int) {
		lines = append(lines, slice(runs, begin, end))
		begin, end, cols = next, next, 0
	}
	state, at := -1, 0
	for rest := s; rest != ""; {
		var seg string
		seg, rest, _, state = uniseg.FirstLineSegmentInString(rest, state)
		word := strings.TrimRight(seg, " ")
		if cols > 0 && cols+columns(word) > width {
			flush(at)
		}
		for at0 := at; word != ""; { // a word that is longer than a line is cut
			head, n := fitting(word, width-cols)
			if n == 0 && cols == 0 {
				head = word // cannot be: a line has room for any character
			}
			at0 += len(head)
			end, cols = at0, cols+columns(head)
			if word = word[len(head):]; word != "" {
				flush(at0)
			}
		}
		at += len(seg)
		cols += len(seg) - len(strings.TrimRight(seg, " "))
	}
	if end > begin || len(lines) == 0 {
		flush(len(s))
	}
	return lines
}

// cut breaks text into lines of so many columns wherever they end, with all its spaces: as code is.
func cut(runs []run, width int) [][]run {
	width = max(width, 2)
	s := plain(runs)
	var lines [][]run
	for at := 0; at < len(s); {
		head, _ := fitting(s[at:], width)
		if head == "" {
			head = s[at:]
		}
		lines = append(lines, slice(runs, at, at+len(head)))
		at += len(head)
	}
	if lines == nil {
		lines = [][]run{nil}
	}
	return lines
}

// fitting is as much of s as so many columns hold, and how many it takes.
func fitting(s string, width int) (head string, cols int) {
	state, at := -1, 0
	for rest := s; rest != ""; {
		var g string
		g, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		w := columns(g)
		if cols+w > width {
			break
		}
		cols += w
		at += len(g)
	}
	return s[:at], cols
}

// slice is runs from one byte of their text to another.
func slice(runs []run, begin, end int) []run {
	var out []run
	at := 0
	for _, r := range runs {
		lo, hi := max(begin-at, 0), min(end-at, len(r.text))
		if lo < hi {
			out = append(out, run{r.text[lo:hi], r.face})
		}
		at += len(r.text)
	}
	return out
}

// untab writes tabs as the spaces to the next of the stops that are four columns apart.
func untab(s string) string {
	if !strings.Contains(s, "\t") {
		return s
	}
	var b strings.Builder
	col := 0
	for part, rest, more := strings.Cut(s, "\t"); ; part, rest, more = strings.Cut(rest, "\t") {
		b.WriteString(part)
		col += columns(part)
		if !more {
			return b.String()
		}
		n := tabWidth - col%tabWidth
		b.WriteString(strings.Repeat(" ", n))
		col += n
	}
}

const tabWidth = 4

// indentOf is how many columns of spaces a line without tabs begins with.
func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// lastRunes is at most so many bytes of the end of s, from a whole character on.
func lastRunes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	for s != "" && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	return s
}

// columns is how many columns a terminal takes for s. Terminals differ in what several code points that make one
// picture take; it is the most, so that no line is longer than it was thought to be.
func columns(s string) int { return max(ansi.StringWidth(s), ansi.StringWidthWc(s)) }
