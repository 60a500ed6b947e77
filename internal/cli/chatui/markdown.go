package chatui

import (
	"regexp"
	"slices"
	"strings"
)

// markdown draws an answer line by line, as it comes: a line of the answer becomes lines of the terminal as soon as it
// is complete, so that nothing of an answer waits off the screen for its end, and nothing of it is drawn twice. Tables
// alone are kept until they end, since any row may widen a column. No character of text is ever left out, but what
// Markdown itself uses up: marks of emphasis, code, headings and tables.
// RATIONALE: Why is Markdown drawn line by line, and not by glamour?
type markdown struct {
	look  look
	width int  // of the lines that are drawn: less than the terminal's, so that none fills its last column
	off   bool // draw text as it is
	face  face // of everything: reasoning is dimmed

	begun bool // what is drawn is not complete: it is drawn again soon, and is not worth colouring code
	began bool // something was drawn
	blank bool // an empty line is due before what comes next

	fence  string // what ends the block of code, "" outside of one
	inset  int    // columns before the fence
	lang   string
	code   []string // lines of the block so far, without tabs
	held   []string // lines of a table, or the one that may be its header
	inList bool
	quote  *markdown // of the quotation that is open
}

// maxWidth is how wide lines of text get: longer ones are hard to read. Code and tables take the whole width.
const maxWidth = 120

// minWidth is the least that anything is drawn for.
const minWidth = 8

func newMarkdown(l look, width int, off bool) *markdown {
	return &markdown{look: l, width: max(width-1, minWidth), off: off}
}

// feed takes a line and returns what it completes.
func (r *markdown) feed(line string) []string { return r.spaced(r.draw(untab(line))) }

// end returns what is left.
func (r *markdown) end() []string {
	out := append(r.endQuote(), r.endTable()...)
	r.fence, r.code, r.inList, r.blank = "", nil, false, false
	return r.spaced(out)
}

// preview returns what the lines so far, and the beginning of another one, look like at this moment.
func (r *markdown) preview(begun string) []string {
	c := r.clone()
	c.begun = true
	var out []string
	if begun != "" {
		out = c.feed(begun)
	}
	return append(out, c.end()...)
}

func (r *markdown) clone() *markdown {
	c := *r
	c.code, c.held = slices.Clip(r.code), slices.Clip(r.held)
	if r.quote != nil {
		c.quote = r.quote.clone()
	}
	return &c
}

// spaced puts the empty line that is due before what is drawn.
func (r *markdown) spaced(out []string) []string {
	if len(out) == 0 {
		return nil
	}
	if r.blank && r.began {
		out = append([]string{""}, out...)
	}
	r.began, r.blank = true, false
	return out
}

var (
	headingLine = regexp.MustCompile(`^(#{1,6})(?:\s+(.*?))?(?:\s+#+)?$`)
	ruleLine    = regexp.MustCompile(`^(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})$`)
	itemLine    = regexp.MustCompile(`^([-*+]|[0-9]{1,9}[.)])(?: +(.*))?$`)
	fenceLine   = regexp.MustCompile("^(```+|~~~+)(.*)$")
)

func (r *markdown) draw(line string) []string {
	if r.off || r.face&dimmed != 0 {
		return r.asItIs(line)
	}
	line = strings.TrimRight(line, " ")
	indent := indentOf(line)
	body := line[indent:]
	if r.fence != "" {
		return r.codeLine(line, body)
	}
	if r.held != nil {
		if out, ok := r.tableLine(body); ok {
			return out
		}
		// The table ended, or it was none: its lines come before this one.
		out := r.spaced(r.endTable())
		return append(out, r.spaced(r.draw(line))...)
	}
	if r.quote != nil && !strings.HasPrefix(body, ">") {
		out := r.spaced(r.endQuote())
		return append(out, r.spaced(r.draw(line))...)
	}
	if body == "" {
		r.blank = true
		return nil
	}
	listed := r.inList
	r.inList = listed && (indent > 0 || !r.blank)
	if m := fenceLine.FindStringSubmatch(body); m != nil && !strings.Contains(m[2], "`") {
		r.fence, r.inset, r.lang, r.code = m[1], indent, strings.TrimSpace(m[2]), nil
		r.inList = listed && indent > 0
		return nil
	}
	if !r.inList && indent >= tabWidth { // code without a fence
		return r.lines(
			cut([]run{{body, code}}, r.width-min(indent, r.width/2)),
			strings.Repeat(" ", min(indent, r.width/2)),
			"",
		)
	}
	pad := strings.Repeat(" ", min(indent, r.width/2))
	switch {
	case strings.HasPrefix(body, ">"):
		if r.quote == nil {
			r.quote = newMarkdown(r.look, r.width-1, false) // the bar takes 2 columns
		}
		return r.quoted(r.quote.feed(strings.TrimPrefix(body[1:], " ")))
	case ruleLine.MatchString(body):
		return []string{r.look.paint(strings.Repeat("─", min(r.width, maxWidth)), dimmed)}
	}
	if out, ok := r.marked(body, pad); ok {
		return out
	}
	if strings.Contains(body, "|") {
		r.held = []string{line}
		return nil
	}
	return r.text(inline(body, 0), pad, pad)
}

// marked draws a line that begins with the mark of a heading or of an item of a list.
func (r *markdown) marked(body, pad string) (out []string, ok bool) {
	if m := headingLine.FindStringSubmatch(body); m != nil {
		return r.text(inline(m[2], heading), pad, pad), true
	}
	m := itemLine.FindStringSubmatch(body)
	if m == nil {
		return nil, false
	}
	r.inList = true
	mark := m[1]
	if strings.Contains("-*+", mark) {
		mark = "•"
	}
	return r.text(inline(m[2], 0), pad+mark+" ", pad+strings.Repeat(" ", len([]rune(mark))+1)), true
}

// asItIs draws a line that is not Markdown.
func (r *markdown) asItIs(line string) []string {
	line = strings.TrimRight(line, " ")
	if line == "" {
		r.blank = true
		return nil
	}
	indent := min(indentOf(line), r.width/2)
	pad := strings.Repeat(" ", indent)
	return r.text([]run{{strings.TrimLeft(line, " "), r.face}}, pad, pad)
}

// codeLine draws a line of a block of code.
func (r *markdown) codeLine(line, body string) []string {
	if strings.HasPrefix(body, r.fence) && strings.Trim(body, r.fence[:1]) == "" {
		r.fence, r.code = "", nil
		return nil
	}
	if line == "" {
		r.code = append(r.code, "")
		r.blank = true
		return nil
	}
	line = line[min(r.inset, indentOf(line)):]
	r.code = append(r.code, line)
	left := strings.Repeat(" ", min(r.inset+2, r.width/2))
	runs := []run{{line, code}}
	if !r.begun {
		runs = highlight(r.lang, r.code)
	}
	return r.lines(cut(runs, r.width-len(left)), left, left)
}

// tableLine takes a line behind one that may be, or is, a table's header. ok is false where no table goes on.
func (r *markdown) tableLine(body string) (out []string, ok bool) {
	if len(r.held) == 1 {
		if !isDelimiter(body, len(cells(r.held[0]))) {
			return nil, false
		}
	} else if !strings.Contains(body, "|") {
		return nil, false
	}
	r.held = append(r.held, body)
	return nil, true
}

func (r *markdown) endTable() []string {
	held := r.held
	r.held = nil
	switch len(held) {
	case 0:
		return nil
	case 1: // a line with a bar
		pad := strings.Repeat(" ", min(indentOf(held[0]), r.width/2))
		return r.text(inline(held[0], 0), pad, pad)
	}
	return r.table(held)
}

func (r *markdown) endQuote() []string {
	if r.quote == nil {
		return nil
	}
	q := r.quote
	r.quote = nil
	return r.quoted(q.end())
}

func (r *markdown) quoted(lines []string) []string {
	for i, l := range lines {
		lines[i] = r.look.paint("│ ", dimmed) + l
	}
	return lines
}

// text draws a line of text below a first and a further prefix.
func (r *markdown) text(runs []run, first, more string) []string {
	return r.lines(wrap(runs, min(r.width, maxWidth)-len([]rune(first))), first, more)
}

// lines draws lines behind prefixes.
func (r *markdown) lines(all [][]run, first, more string) []string {
	var out []string
	for i, l := range all {
		p := more
		if i == 0 {
			p = first
		}
		out = append(out, p+r.look.line(l))
	}
	return out
}
