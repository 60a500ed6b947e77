package chattmpl

import (
	"fmt"
	"math/big"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokKind uint8

const (
	tokEOF tokKind = iota
	tokData
	tokVarBegin
	tokVarEnd
	tokBlockBegin
	tokBlockEnd
	tokName
	tokString
	tokInt
	tokFloat
	tokOp
)

type token struct {
	kind tokKind
	text string // data, name, operator or decoded string
	num  Value  // of tokInt and tokFloat
	pos  int    // byte offset in the normalized source
}

func (t token) describe() string {
	switch t.kind {
	case tokEOF:
		return "end of template"
	case tokData:
		return "template data"
	case tokVarBegin:
		return "begin of print statement"
	case tokVarEnd:
		return "end of print statement"
	case tokBlockBegin:
		return "begin of statement block"
	case tokBlockEnd:
		return "end of statement block"
	case tokString:
		return "string"
	case tokInt:
		return "integer"
	case tokFloat:
		return "float"
	}
	return t.text
}

// source is a template's text with line ends normalized to \n.
type source struct {
	name, text string
	lines      []int // offsets of line starts
}

func newSource(name, text string) *source {
	if strings.Contains(text, "\r") {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	}
	s := &source{name: name, text: strings.TrimSuffix(text, "\n"), lines: []int{0}}
	for i := 0; i < len(s.text); i++ {
		if s.text[i] == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	return s
}

// place converts a byte offset to a line and a column in characters, both from 1.
func (s *source) place(pos int) (line, col int) {
	pos = min(pos, len(s.text))
	line = sort.SearchInts(s.lines, pos+1)
	return line, utf8.RuneCountInString(s.text[s.lines[line-1]:pos]) + 1
}

func (s *source) errorf(pos int, format string, a ...any) *Error {
	line, col := s.place(pos)
	return &Error{Name: s.name, Line: line, Col: col, Msg: fmt.Sprintf(format, a...), Err: ErrSyntax}
}

// lexer turns a template into tokens: literal text between tags, trimmed as
// trim_blocks, lstrip_blocks and the signs in the tags ask for, and the tokens
// inside the tags.
type lexer struct {
	src       *source
	text      string
	pos       int
	toks      []token
	lineStart bool // the last match ended a line
}

func lex(src *source) ([]token, error) {
	l := &lexer{src: src, text: src.text, lineStart: true}
	for l.pos < len(l.text) {
		if err := l.root(); err != nil {
			return nil, err
		}
	}
	l.emit(token{kind: tokEOF, pos: len(l.text)})
	return l.toks, nil
}

func (l *lexer) emit(t token) { l.toks = append(l.toks, t) }

// root reads literal text and the tag after it.
func (l *lexer) root() error {
	start := l.pos
	i := l.nextTag(start)
	if i < 0 {
		l.emit(token{kind: tokData, text: l.text[start:], pos: start})
		l.pos = len(l.text)
		return nil
	}
	kind := l.text[i+1]
	end := i + 2
	sign := byte(0)
	if end < len(l.text) && (l.text[end] == '-' || l.text[end] == '+') {
		sign = l.text[end]
		end++
	}
	l.data(start, i, sign, kind != '{')
	switch kind {
	case '#':
		l.advance(end)
		return l.comment(i)
	case '{':
		l.emit(token{kind: tokVarBegin, pos: i})
		l.advance(end)
		return l.tag(i, "}}", tokVarEnd)
	}
	if rawEnd := matchRaw(l.text, end); rawEnd >= 0 {
		l.advance(rawEnd)
		return l.raw(i)
	}
	l.emit(token{kind: tokBlockBegin, pos: i})
	l.advance(end)
	return l.tag(i, "%}", tokBlockEnd)
}

// advance moves to pos and notes whether what was read ended a line.
func (l *lexer) advance(pos int) {
	l.lineStart = pos > l.pos && l.text[pos-1] == '\n'
	l.pos = pos
}

func (l *lexer) nextTag(from int) int {
	for {
		i := strings.IndexByte(l.text[from:], '{')
		if i < 0 || from+i+1 >= len(l.text) {
			return -1
		}
		from += i
		switch l.text[from+1] {
		case '{', '%', '#':
			return from
		}
		from++
	}
}

// data emits literal text, cut at its end as the following tag asks for.
func (l *lexer) data(start, end int, sign byte, strips bool) {
	text := l.text[start:end]
	switch {
	case sign == '-':
		text = strings.TrimRightFunc(text, isSpace)
	case sign != '+' && strips:
		nl := strings.LastIndexByte(text, '\n') + 1
		if (nl > 0 || l.lineStart) && nl < len(text) && strings.TrimLeftFunc(text[nl:], isSpace) == "" {
			text = text[:nl]
		}
	}
	if text != "" {
		l.emit(token{kind: tokData, text: text, pos: start})
	}
}

func skipSpace(s string, i int) int {
	return len(s) - len(strings.TrimLeftFunc(s[i:], isSpace))
}

// matchRaw recognizes the rest of a raw tag and returns its end, or -1.
func matchRaw(s string, i int) int {
	i = skipSpace(s, i)
	if !strings.HasPrefix(s[i:], "raw") {
		return -1
	}
	i = skipSpace(s, i+3)
	if strings.HasPrefix(s[i:], "-%}") {
		return skipSpace(s, i+3)
	}
	if strings.HasPrefix(s[i:], "%}") {
		return i + 2
	}
	return -1
}

// matchEnd recognizes the end of a block-like tag at i, or returns -1.
func matchEnd(s string, i int, end string) int {
	rest := s[i:]
	switch {
	case strings.HasPrefix(rest, end):
		i += len(end)
		if end != "}}" && i < len(s) && s[i] == '\n' {
			i++
		}
		return i
	case strings.HasPrefix(rest, "-"+end):
		return skipSpace(s, i+1+len(end))
	case end != "}}" && strings.HasPrefix(rest, "+"+end):
		return i + 1 + len(end)
	}
	return -1
}

func (l *lexer) comment(begin int) error {
	for i := l.pos; i < len(l.text); i++ {
		j := strings.IndexByte(l.text[i:], '#')
		if j < 0 {
			break
		}
		i += j
		if i+1 >= len(l.text) || l.text[i+1] != '}' {
			continue
		}
		if i > l.pos && (l.text[i-1] == '-' || l.text[i-1] == '+') {
			i--
		}
		l.advance(matchEnd(l.text, i, "#}"))
		return nil
	}
	return l.src.errorf(begin, "missing end of comment tag")
}

func (l *lexer) raw(begin int) error {
	for i := l.pos; ; {
		j := strings.Index(l.text[i:], "{%")
		if j < 0 {
			return l.src.errorf(begin, "missing end of raw directive: no endraw follows")
		}
		tag := i + j
		k, sign := tag+2, byte(0)
		if k < len(l.text) && (l.text[k] == '-' || l.text[k] == '+') {
			sign = l.text[k]
			k++
		}
		k = skipSpace(l.text, k)
		if strings.HasPrefix(l.text[k:], "endraw") {
			k = skipSpace(l.text, k+len("endraw"))
			if end := matchEnd(l.text, k, "%}"); end >= 0 {
				l.data(l.pos, tag, sign, true)
				l.advance(end)
				return nil
			}
		}
		i = tag + 2
	}
}

// operators, longest first.
var operators = []string{
	"//", "**", "==", "!=", ">=", "<=",
	"+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";",
}

var closers = map[string]string{"(": ")", "[": "]", "{": "}"}

// tag reads the tokens of one tag up to and including its end.
func (l *lexer) tag(begin int, end string, endKind tokKind) error {
	var open []string
	for l.pos < len(l.text) {
		if len(open) == 0 {
			if e := matchEnd(l.text, l.pos, end); e >= 0 {
				l.emit(token{kind: endKind, pos: l.pos})
				l.advance(e)
				return nil
			}
		}
		if e := skipSpace(l.text, l.pos); e > l.pos {
			l.advance(e)
			continue
		}
		op, err := l.token()
		if err != nil {
			return err
		}
		switch op {
		case "(", "[", "{":
			open = append(open, closers[op])
		case ")", "]", "}":
			pos := l.pos - 1
			if len(open) == 0 {
				return l.src.errorf(pos, "unexpected %q", op)
			}
			if want := open[len(open)-1]; want != op {
				return l.src.errorf(pos, "unexpected %q, expected %q", op, want)
			}
			open = open[:len(open)-1]
		}
	}
	return l.src.errorf(begin, "this tag is never closed with %q", end)
}

// token reads one token inside a tag and returns its text if it is an operator.
func (l *lexer) token() (string, error) {
	s, pos := l.text, l.pos
	c := s[pos]
	if isDigit(c) {
		return "", l.number()
	}
	if c == '\'' || c == '"' {
		return "", l.str(c)
	}
	if e := scanName(s, pos); e > pos {
		if r, _ := utf8.DecodeRuneInString(s[pos:]); r != '_' && !unicode.IsLetter(r) {
			return "", l.src.errorf(pos, "invalid character in identifier")
		}
		l.emit(token{kind: tokName, text: s[pos:e], pos: pos})
		l.advance(e)
		return "", nil
	}
	for _, op := range operators {
		if strings.HasPrefix(s[pos:], op) {
			l.emit(token{kind: tokOp, text: op, pos: pos})
			l.advance(pos + len(op))
			return op, nil
		}
	}
	r, _ := utf8.DecodeRuneInString(s[pos:])
	return "", l.src.errorf(pos, "unexpected character %q", r)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func scanName(s string, i int) int {
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r != '_' && !unicode.In(r, unicode.L, unicode.N, unicode.Mn, unicode.Mc) {
			break
		}
		i += n
	}
	return i
}

// scanDigits reads digits with single underscores between them.
func scanDigits(s string, i int, ok func(byte) bool) int {
	if i >= len(s) || !ok(s[i]) {
		return i
	}
	for i < len(s) {
		switch {
		case ok(s[i]):
			i++
		case s[i] == '_' && i+1 < len(s) && ok(s[i+1]):
			i += 2
		default:
			return i
		}
	}
	return i
}

func (l *lexer) number() error {
	s, pos := l.text, l.pos
	if pos == 0 || s[pos-1] != '.' {
		if e := scanFloat(s, pos); e > pos {
			f, _ := strconv.ParseFloat(strings.ReplaceAll(s[pos:e], "_", ""), 64)
			l.emit(token{kind: tokFloat, num: Float(f), pos: pos})
			l.advance(e)
			return nil
		}
	}
	e, base := pos, 10
	if s[pos] == '0' {
		e = scanDigits(s, pos, func(c byte) bool { return c == '0' })
		if pos+2 < len(s) {
			var ok func(byte) bool
			switch s[pos+1] | 0x20 {
			case 'b':
				base, ok = 2, func(c byte) bool { return c == '0' || c == '1' }
			case 'o':
				base, ok = 8, func(c byte) bool { return c >= '0' && c <= '7' }
			case 'x':
				base, ok = 16, isHex
			}
			if ok != nil {
				from := pos + 2
				if s[from] == '_' {
					from++
				}
				if end := scanDigits(s, from, ok); end > from {
					e = end
				} else {
					base = 10
				}
			}
		}
	} else {
		e = scanDigits(s, pos, isDigit)
	}
	digits := strings.ReplaceAll(s[pos:e], "_", "")
	if base != 10 {
		digits = digits[2:]
	}
	if len(digits) > maxIntDigits {
		return l.src.errorf(pos, "integer of %d digits is too long, the most is %d", len(digits), maxIntDigits)
	}
	n, ok := new(big.Int).SetString(digits, base)
	if !ok {
		return l.src.errorf(pos, "malformed number %q", s[pos:e])
	}
	l.emit(token{kind: tokInt, num: normInt(n), pos: pos})
	l.advance(e)
	return nil
}

// maxIntDigits is the longest decimal that Python converts to or from an integer.
const maxIntDigits = 4300

func isHex(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// scanFloat returns the end of a number with a fraction or an exponent, or pos.
func scanFloat(s string, pos int) int {
	i := scanDigits(s, pos, isDigit)
	frac := false
	if i+1 < len(s) && s[i] == '.' && isDigit(s[i+1]) {
		i = scanDigits(s, i+1, isDigit)
		frac = true
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		if e := scanDigits(s, j, isDigit); e > j {
			return e
		}
	}
	if frac {
		return i
	}
	return pos
}

func (l *lexer) str(quote byte) error {
	pos := l.pos
	i := pos + 1
	for i < len(l.text) && l.text[i] != quote {
		if l.text[i] == '\\' {
			i++
		}
		i++
	}
	if i >= len(l.text) {
		return l.src.errorf(pos, "this string is never closed with %c", quote)
	}
	text, err := unescape(l.text[pos+1 : i])
	if err != nil {
		return l.src.errorf(pos, "%v", err)
	}
	l.emit(token{kind: tokString, text: text, pos: pos})
	l.advance(i + 1)
	return nil
}

var simpleEscapes = map[byte]string{
	'\n': "", '\\': "\\", '\'': "'", '"': "\"", 'a': "\a", 'b': "\b",
	'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v",
}

// unescape decodes the escapes of a Python string literal.
func unescape(s string) (string, error) {
	if !strings.Contains(s, "\\") {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		c := s[i]
		if r, ok := simpleEscapes[c]; ok {
			b.WriteString(r)
			continue
		}
		switch {
		case c >= '0' && c <= '7':
			n := 0
			for k := 0; k < 3 && i < len(s) && s[i] >= '0' && s[i] <= '7'; k++ {
				n = n*8 + int(s[i]-'0')
				i++
			}
			i--
			b.WriteRune(rune(n))
		case c == 'x' || c == 'u' || c == 'U':
			width := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			if i+1+width > len(s) {
				return "", fmt.Errorf(`truncated \%c escape in string`, c)
			}
			n, err := strconv.ParseUint(s[i+1:i+1+width], 16, 32)
			if err != nil || n > unicode.MaxRune {
				return "", fmt.Errorf(`malformed \%c escape in string`, c)
			}
			b.WriteRune(rune(n))
			i += width
		case c == 'N':
			return "", fmt.Errorf(`\N escapes in strings are not supported, write the character or \u`)
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}
