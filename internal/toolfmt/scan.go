package toolfmt

import "strings"

// fenceWords may stand behind an opening fence of calls.
var fenceWords = []string{
	"",
	"json",
	"jsonc",
	"json5",
	"tool_call",
	"tool_calls",
	"tool_code",
	"tool",
	"tools",
	"python",
	"xml",
	"text",
	"plaintext",
	"javascript",
}

// scan sends out text up to the next place where something else may begin, and begins it.
func (p *Parser) scan(eof bool) bool {
	plain := p.kind == Text && (p.tools == nil || p.done) && (p.f.think.open == "" || !p.fresh)
	if plain || p.kind == Reasoning && p.tools == nil && p.f.think.close == "" {
		p.text(len(p.buf))
		return false
	}
	line := p.line
	for i := 0; i < len(p.buf); i++ {
		c := p.buf[i]
		if line || p.first[c] {
			switch d := p.look(i, line, eof); d {
			case wait:
				p.text(p.trimmed(i))
				return false
			case began:
				return true
			}
		}
		if c == '\n' {
			line = true
		} else if c != ' ' && c != '\t' && c != '\r' {
			line = false
		}
	}
	if eof {
		p.text(len(p.buf))
		return false
	}
	p.text(p.trimmed(len(p.buf)))
	return false
}

// trimmed returns i less the white space before it: that may be part of what follows.
func (p *Parser) trimmed(i int) int {
	for i > 0 && isSpace(p.buf[i-1]) {
		i--
	}
	return i
}

// decision is what a place in the text turned out to be.
type decision uint8

const (
	nothing decision = iota // text
	wait                    // not to be told yet
	began                   // something began; the text before it is out
)

// look decides whether something begins at buf[i].
func (p *Parser) look(i int, line, eof bool) decision {
	s := p.buf[i:]
	c := s[0]
	if d := p.lookThink(i, s, eof); d != nothing {
		return d
	}
	if p.tools == nil || p.done {
		return nothing
	}
	if p.kind == Reasoning && !line {
		return nothing
	}
	if b, w := p.opener(s, eof); b != nil {
		p.start(i, i, &candidate{blk: b, body: -1})
		return began
	} else if w {
		return wait
	}
	if eof && line && len(s) >= halfMark && (c == '<' || c == '[') {
		for _, b := range p.blocks {
			if partial(s, b.open) {
				return p.dropHalf(i)
			}
		}
	}
	if p.kind == Reasoning {
		return nothing
	}
	switch {
	case c == '`' && line:
		return p.lookFence(i, s, eof)
	case p.code:
		return nothing
	case c == '{' || c == '[':
		return p.lookBare(i, s, line, eof)
	case line && isNameByte(c):
		return p.lookPython(i, s, eof)
	}
	return nothing
}

// start sends out the text before buf[at] but for its trailing white space and begins a candidate at buf[body].
func (p *Parser) start(at, body int, c *candidate) {
	n := p.trimmed(at)
	p.text(n)
	p.begin(body-n, c)
}

// halfMark is how much of a mark must stand at the end of an output to be taken for one that was cut: such a piece is
// no content. Less may be a sign of its own.
const halfMark = 3

// dropHalf ends the text before the piece of a mark at buf[i].
func (p *Parser) dropHalf(i int) decision {
	p.text(p.trimmed(i))
	p.span("mark", len(p.buf))
	return began
}

func (p *Parser) lookThink(i int, s string, eof bool) decision {
	t := p.f.think
	if p.kind == Reasoning {
		if t.close == "" {
			return nothing
		}
		if strings.HasPrefix(s, t.close) {
			p.text(p.trimmed(i))
			p.span("mark", skipSpace(p.buf, 0)+len(t.close))
			p.kind, p.trim, p.fresh, p.line = Text, true, true, true
			return began
		}
		return p.half(i, s, t.close, eof)
	}
	if t.open == "" || !p.fresh || strings.TrimSpace(p.buf[:i]) != "" {
		return nothing
	}
	open := strings.TrimRight(t.open, "\n")
	if strings.HasPrefix(s, open) {
		p.span("mark", i+len(open))
		p.kind, p.trim = Reasoning, true
		return began
	}
	return p.half(i, s, open, eof)
}

// half decides on what may be the beginning of a mark, at buf[i].
func (p *Parser) half(i int, s, mark string, eof bool) decision {
	switch {
	case !partial(s, mark):
		return nothing
	case !eof:
		return wait
	case len(s) >= halfMark:
		return p.dropHalf(i)
	}
	return nothing
}

// lookFence decides what a fence at a line's start opens or closes.
func (p *Parser) lookFence(i int, s string, eof bool) decision {
	if partial(s, "```") {
		if eof {
			return nothing
		}
		return wait
	}
	if !strings.HasPrefix(s, "```") {
		return nothing
	}
	if p.fence {
		p.text(i + 3)
		p.fence, p.code = false, false
		return began
	}
	end := strings.IndexByte(s, '\n')
	if end < 0 && !eof && len(s) < 40 {
		return wait
	}
	if end < 0 {
		end = len(s)
	}
	word := strings.ToLower(strings.TrimSpace(s[3:end]))
	if len(word) > 1 && (word[0] == '{' || word[0] == '[') { // no line break behind the fence
		word, end = "", 3
	}
	if oneOf(word, fenceWords) {
		at := skipSpace(s, end)
		if at == len(s) && !eof {
			return wait
		}
		if d := p.inFence(i, i+at, word, eof); d != nothing {
			return d
		}
	}
	p.text(i + end)
	p.fence, p.code = true, word != "" && word != "json" && word != "tool_call" && word != "xml"
	return began
}

// inFence begins a candidate at buf[at], behind a fence at buf[i].
func (p *Parser) inFence(i, at int, word string, eof bool) decision {
	s := p.buf[at:]
	if s == "" {
		return nothing
	}
	if b, w := p.opener(s, eof); b != nil {
		p.start(i, at, &candidate{blk: b, body: -1})
		return began
	} else if w {
		return wait
	}
	calls := word == "tool_code" || word == "python" && p.f.spec.python
	first := s
	if calls && s[0] == '[' {
		if first = s[skipSpace(s, 1):]; first == "" {
			if eof {
				return nothing
			}
			return wait
		}
	}
	switch {
	case first[0] == '{' || first[0] == '[':
		switch p.mayBeJSON(s, eof) {
		case wait:
			return wait
		case began:
			p.start(i, at, &candidate{blk: &fenceBlock, body: -1, fit: true})
			return began
		}
	case isNameByte(first[0]) && calls:
		switch p.namesCall(first, eof) {
		case wait:
			return wait
		case began:
			p.start(i, at, &candidate{blk: &fenceBlock, body: -1, bare: true, fit: true, all: word == "python"})
			return began
		}
	}
	return nothing
}

// mayBeJSON looks at the first bytes of what may be calls in JSON: an object with a key, perhaps in doubled braces, or
// a list that begins with one. began means that it may.
func (p *Parser) mayBeJSON(s string, eof bool) decision {
	i := 0
	for i < len(s) && (s[i] == '[' && i == 0 || isSpace(s[i])) {
		i++
	}
	if i < len(s) && s[i] == '{' {
		i = skipSpace(s, i+1)
		if i < len(s) && s[i] == '{' { // doubled braces
			i = skipSpace(s, i+1)
		}
		if i < len(s) {
			c := s[i]
			if c == '"' || c == '\'' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '}' && p.forced != nil {
				return began
			}
			return nothing
		}
	} else if i < len(s) {
		return nothing
	}
	if eof {
		return nothing
	}
	return wait
}

// lookBare decides on a bracket in text.
func (p *Parser) lookBare(i int, s string, line, eof bool) decision {
	before := p.last
	if i > 0 {
		before = p.buf[i-1]
	}
	if before == '`' || before == '{' { // quoted code, or inside what is none
		return nothing
	}
	switch p.mayBeJSON(s, eof) {
	case wait:
		return wait
	case began:
		p.start(i, i, &candidate{body: -1, fit: true})
		return began
	}
	if s[0] != '[' || !line {
		return nothing
	}
	k := skipSpace(s, 1)
	if k == len(s) {
		if eof {
			return nothing
		}
		return wait
	}
	switch p.namesCall(s[k:], eof) {
	case wait:
		return wait
	case began:
		p.start(i, i, &candidate{body: -1, fit: true, bare: true})
		return began
	}
	return nothing
}

// lookPython decides on a word at a line's start.
func (p *Parser) lookPython(i int, s string, eof bool) decision {
	switch p.namesCall(s, eof) {
	case wait:
		return wait
	case began:
		p.start(i, i, &candidate{body: -1, fit: true, bare: true})
		return began
	}
	return nothing
}

// namesCall tells whether s begins with an offered tool's exact name and a bracket: began, wait while it may.
func (p *Parser) namesCall(s string, eof bool) decision {
	d := nothing
	for _, t := range p.tools.list {
		for _, before := range []string{"", "default_api.", "print(", "print(default_api."} {
			full := before + t.name + "("
			if strings.HasPrefix(s, full) {
				return began
			}
			if partial(s, full) && !eof {
				d = wait
			}
		}
	}
	return d
}
