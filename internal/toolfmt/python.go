package toolfmt

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

func validJSON(s string) bool { return json.Valid([]byte(s)) }

// brackets follows the nesting of Python text as it comes.
type brackets struct {
	depth  int
	quote  byte // of the string that is open
	long   bool // it has three
	run    int  // quotes in a row
	escape bool
}

// closed goes on with text and tells whether no bracket was open at some place in it.
func (b *brackets) closed(text string) bool {
	zero := false
	for i := 0; i < len(text); i++ {
		b.next(text[i])
		zero = zero || b.depth == 0 && b.quote == 0
	}
	return zero
}

func (b *brackets) next(c byte) {
	if b.quote == 0 {
		switch c {
		case '"', '\'':
			if b.depth > 0 {
				b.quote, b.run, b.long = c, 1, false
			}
		case '(', '[', '{':
			b.depth++
		case ')', ']', '}':
			b.depth = max(0, b.depth-1)
		}
		return
	}
	switch {
	case b.escape:
		b.escape, b.run = false, 0
	case c == b.quote && b.run > 0 && !b.long: // directly behind the opening quote
		if b.run++; b.run == 3 {
			b.long, b.run = true, 0
		}
	case b.run == 2 && !b.long: // it was an empty string
		b.quote = 0
		b.next(c)
	case c == b.quote && !b.long:
		b.quote = 0
	case c == b.quote:
		if b.run++; b.run == 3 {
			b.quote = 0
		}
	default:
		b.escape, b.run = c == '\\', 0
	}
}

// pyReader reads Python calls and literals.
type pyReader struct {
	s     string
	i     int
	short bool // the text ended where more was needed
	depth int
}

func (r *pyReader) space() { r.i = skipSpace(r.s, r.i) }

// peek returns the next byte, 0 at the end of the text.
func (r *pyReader) peek() byte {
	if r.i < len(r.s) {
		return r.s[r.i]
	}
	r.short = true
	return 0
}

func (r *pyReader) accept(c byte) bool {
	r.space()
	if r.peek() == c {
		r.i++
		return true
	}
	return false
}

func (r *pyReader) name() string {
	start := r.i
	for r.i < len(r.s) && isNameByte(r.s[r.i]) && r.s[r.i] != ':' {
		r.i++
	}
	if r.i == len(r.s) {
		r.short = true
	}
	return r.s[start:r.i]
}

// readPython reads [NAME(key=value), …], or calls one after another. bare tells that no marks stand around
// them: then names must be exact, arguments must fit, and nothing else may stand on the line.
func (p *Parser) readPython(s string, eof bool, bare bool) ([]found, int, status) {
	r := &pyReader{s: s}
	wait := func() status {
		if r.short && !eof {
			return more
		}
		return rejected
	}
	list := r.accept('[')
	var calls []found
	for {
		r.space()
		c, ok := p.pythonCall(r, bare)
		if !ok {
			return nil, r.i, wait()
		}
		calls = append(calls, c)
		if !list {
			break
		}
		if r.accept(']') {
			break
		}
		if !r.accept(',') {
			if r.short && eof {
				break // the list's end is missing
			}
			return nil, r.i, wait()
		}
	}
	end := r.i
	if bare && !list { // alone on its line
		for end < len(s) && (s[end] == ' ' || s[end] == '\t' || s[end] == ';') {
			end++
		}
		switch {
		case end == len(s) && !eof:
			return nil, end, more
		case end == len(s) && p.cut && !p.owed(): // the line may have gone on
			return nil, end, rejected
		case end < len(s) && s[end] != '\n' && s[end] != '\r':
			return nil, end, rejected
		}
	}
	if p.opt.SingleCall {
		calls = calls[:1]
	}
	return calls, end, accepted
}

// readPythonLines reads calls without marks: one, or with all set every line up to the end of the fence.
func (p *Parser) readPythonLines(s string, eof, all bool) (calls []found, n int, st status) {
	for {
		c, k, st := p.readPython(s[n:], eof, true)
		if st != accepted {
			return nil, n + k, st
		}
		calls, n = append(calls, c...), n+k
		if !all {
			return calls, n, accepted
		}
		at := skipSpace(s, n)
		switch rest := s[at:]; {
		case strings.HasPrefix(rest, "```") || rest == "" && eof && (!p.cut || p.owed()):
			if p.opt.SingleCall {
				calls = calls[:1]
			}
			return calls, n, accepted
		case partial(rest, "```") && !eof:
			return nil, at, more
		}
		n = at
	}
}

func (p *Parser) pythonCall(r *pyReader, bare bool) (found, bool) {
	start := r.i
	name := r.name()
	if name == "print" && r.accept('(') {
		r.space()
		c, ok := p.pythonCall(r, bare)
		return c, ok && r.accept(')')
	}
	var t *toolInfo
	if bare {
		t = p.tools.exact[strings.TrimPrefix(name, "default_api.")]
	} else {
		t = p.tools.resolve(name)
	}
	if t == nil || !r.accept('(') {
		if t == nil && r.i < len(r.s) {
			r.short = false
		}
		r.i = max(r.i, start)
		return found{}, false
	}
	var ms []member
	for !r.accept(')') {
		if len(ms) > 0 && !r.accept(',') {
			return found{}, false
		}
		if r.accept(')') { // a trailing comma
			break
		}
		m, ok := t.pythonArg(r, len(ms) == 0)
		if !ok {
			return found{}, false
		}
		ms = put(ms, m)
	}
	ms = t.shape(ms)
	return found{t, ms}, !bare || p.owed() || t.fits(ms)
}

// pythonArg reads key=value. A value alone is taken where the tool has only one argument that it can be.
func (t *toolInfo) pythonArg(r *pyReader, first bool) (member, bool) {
	r.space()
	start := r.i
	key := r.name()
	if key != "" && r.accept('=') {
		v, ok := r.value()
		return member{key, v}, ok
	}
	r.i = start
	only := ""
	switch {
	case len(t.required) == 1:
		only = t.required[0]
	case len(t.order) == 1:
		only = t.order[0]
	}
	if !first || only == "" {
		return member{}, false
	}
	v, ok := r.value()
	return member{only, v}, ok
}

// value reads a literal and returns it as JSON.
func (r *pyReader) value() (string, bool) {
	r.space()
	if r.depth++; r.depth > maxDepth {
		return "", false
	}
	defer func() { r.depth-- }()
	switch c := r.peek(); {
	case c == '"' || c == '\'':
		return r.str(c)
	case c == '[' || c == '(':
		return r.list(c)
	case c == '{':
		return r.dict()
	case (c == 'r' || c == 'f' || c == 'b') && r.i+1 < len(r.s) && (r.s[r.i+1] == '"' || r.s[r.i+1] == '\''):
		return "", false // not a plain literal
	}
	start := r.i
	for r.i < len(r.s) && isWordByte(r.s[r.i]) {
		r.i++
	}
	if r.i == len(r.s) {
		r.short = true
	}
	return literal(r.s[start:r.i])
}

func (r *pyReader) list(open byte) (string, bool) {
	end := byte(']')
	if open == '(' {
		end = ')'
	}
	r.i++
	var items []string
	for !r.accept(end) {
		if len(items) > 0 && !r.accept(',') {
			return "", false
		}
		if r.accept(end) {
			break
		}
		v, ok := r.value()
		if !ok {
			return "", false
		}
		items = append(items, v)
	}
	if open == '(' && len(items) == 1 { // brackets around one value
		return items[0], true
	}
	return "[" + strings.Join(items, ", ") + "]", true
}

func (r *pyReader) dict() (string, bool) {
	r.i++
	var ms []member
	for !r.accept('}') {
		if len(ms) > 0 && !r.accept(',') {
			return "", false
		}
		if r.accept('}') {
			break
		}
		k, ok := r.value()
		if !ok || !r.accept(':') {
			return "", false
		}
		key, ok := unquote([]byte(k))
		if !ok {
			key = k
		}
		v, ok := r.value()
		if !ok {
			return "", false
		}
		ms = put(ms, member{key, v})
	}
	return object(ms), true
}

// str reads a string, and any that follow it directly.
func (r *pyReader) str(q byte) (string, bool) {
	var b strings.Builder
	for {
		if !r.oneString(q, &b) {
			return "", false
		}
		at := r.i
		r.space()
		if q = r.peek(); q != '"' && q != '\'' {
			r.i = at
			return quote(b.String()), true
		}
	}
}

func (r *pyReader) oneString(q byte, b *strings.Builder) bool {
	long := strings.Repeat(string(q), 3)
	mark := string(q)
	if strings.HasPrefix(r.s[r.i:], long) {
		mark = long
	} else if partial(r.s[r.i:], long) {
		r.short = true
	}
	r.i += len(mark)
	for r.i < len(r.s) {
		switch c := r.s[r.i]; {
		case strings.HasPrefix(r.s[r.i:], mark):
			r.i += len(mark)
			return true
		case c == '\\' && r.i+1 < len(r.s):
			r.i++
			r.escape(b)
		default:
			b.WriteByte(c)
			r.i++
		}
	}
	r.short = true
	return false
}

var pyEscapes = map[byte]string{
	'n':  "\n",
	't':  "\t",
	'r':  "\r",
	'\\': "\\",
	'\'': "'",
	'"':  `"`,
	'\n': "",
	'0':  "\x00",
	'a':  "\a",
	'b':  "\b",
	'f':  "\f",
	'v':  "\v",
}

func (r *pyReader) escape(b *strings.Builder) {
	c := r.s[r.i]
	r.i++
	if e, ok := pyEscapes[c]; ok {
		b.WriteString(e)
		return
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	if digits == 0 || r.i+digits > len(r.s) {
		b.WriteByte('\\')
		b.WriteByte(c)
		return
	}
	var v rune
	for _, h := range []byte(r.s[r.i : r.i+digits]) {
		if !isHex(h) {
			b.WriteByte('\\')
			b.WriteByte(c)
			return
		}
		d := rune(h & 15)
		if h > '9' {
			d += 9
		}
		v = v<<4 | d
	}
	r.i += digits
	if !utf8.ValidRune(v) {
		v = utf8.RuneError
	}
	b.WriteRune(v)
}
