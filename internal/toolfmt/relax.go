package toolfmt

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// relaxer reads JSON as small models write it, byte by byte, and writes strict JSON. What is strict already
// passes unchanged. It repairs what has one meaning only: trailing and missing commas, quotes of other kinds,
// Python's words, keys without quotes, comments, raw control characters and unknown escapes in strings, doubled
// braces. All else makes it fail at the byte that it cannot place.
type relaxer struct {
	out   []byte
	stack []level
	state relaxState
	quote byte   // the string's quote
	long  bool   // the string has three quotes
	isKey bool   // the string or word is a key
	tail  []byte // held back inside a string: what may be its closing quote
	word  []byte
	comma bool   // a comma was read and is not written yet
	held  []byte // white space after that comma
	back  relaxState
	start int  // of the current string or word in out
	brace bool // a second brace may close the doubled object before
	watch watcher
}

// level is one open object or array.
type level struct {
	object bool
	double bool   // opened by two braces, as templates of Python's format write one
	key    string // the current member's
	start  int    // where the object or array begins in out
}

// watcher is told of values as they begin and end. Depth counts the open objects and arrays around the value.
type watcher interface {
	begin(depth int, key string, first byte)
	end(depth int, key string, value []byte)
}

type relaxState uint8

const (
	wantValue relaxState = iota
	wantItem             // a value or ]
	wantKey              // a key or }
	wantColon
	wantNext // a comma or the end of the object or array
	inString
	inEscape
	maybeClosed // behind a quote that ends the string unless text follows
	inWord
	inComment
	inLongComment
	finished
	failed
)

const maxDepth = 200

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '+' ||
		c == '.' ||
		c == '$'
}

// push takes one byte. It returns false when the value was complete before it, or cannot go on with it.
func (r *relaxer) push(c byte) bool {
	switch r.state {
	case finished, failed:
		return false
	case inString:
		return r.inside(c)
	case inEscape:
		return r.escape(c)
	case maybeClosed:
		return r.afterQuote(c)
	case inWord:
		if isWordByte(c) && len(r.word) < 400 {
			r.word = append(r.word, c)
			return true
		}
		if !r.endWord() {
			return r.fail()
		}
		return r.push(c)
	case inComment:
		if c == '\n' {
			r.state = r.back
		}
		return true
	case inLongComment:
		if c == '/' && len(r.word) == 1 {
			r.state = r.back
		}
		r.word = r.word[:0]
		if c == '*' {
			r.word = append(r.word, c)
		}
		return true
	}
	if isSpace(c) {
		if r.comma {
			r.held = append(r.held, c)
		} else {
			r.out = append(r.out, c)
		}
		return true
	}
	if (c == '/' || c == '#') && len(r.stack) > 0 {
		return r.comment(c)
	}
	switch {
	case len(r.word) == 0:
		return r.token(c)
	case c == '*':
		r.word = r.word[:0]
		r.back, r.state = r.state, inLongComment
		return true
	}
	return r.fail() // a single slash
}

func (r *relaxer) comment(c byte) bool {
	if c == '/' && len(r.word) == 0 {
		r.word = append(r.word, c)
		return true
	}
	r.word = r.word[:0]
	r.back, r.state = r.state, inComment
	return true
}

func (r *relaxer) token(c byte) bool {
	switch r.state {
	case wantValue, wantItem:
		if c == ']' && r.state == wantItem {
			return r.close(c)
		}
		r.sep()
		return r.value(c)
	case wantKey:
		if c == '}' {
			return r.close(c)
		}
		if top := &r.stack[len(r.stack)-1]; c == '{' && !r.comma && !top.double &&
			strings.TrimSpace(string(r.out[top.start:])) == "{" {
			top.double = true
			return true
		}
		r.sep()
		r.start = len(r.out)
		r.isKey = true
		switch {
		case c == '"' || c == '\'' || c == '`':
			r.openString(c)
		case isWordByte(c):
			r.word, r.state = append(r.word[:0], c), inWord
		default:
			return r.fail()
		}
		return true
	case wantColon:
		if c != ':' && c != '=' {
			return r.fail()
		}
		r.out = append(r.out, ':')
		r.state = wantValue
		return true
	case wantNext:
		top := &r.stack[len(r.stack)-1]
		second := r.brace && c == '}'
		r.brace = false
		switch {
		case second:
			return true
		case c == ',':
			if r.comma {
				return r.fail()
			}
			r.comma = true
			r.state = wantItem
			if top.object {
				r.state = wantKey
			}
			return true
		case c == '}' || c == ']':
			return r.close(c)
		case top.object && c == '"': // a comma is missing
			r.comma, r.state = true, wantKey
			return r.token(c)
		case !top.object && c == '{':
			r.comma, r.state = true, wantItem
			return r.token(c)
		}
	}
	return r.fail()
}

// sep writes the comma that was held back.
func (r *relaxer) sep() {
	if r.comma {
		r.out = append(append(r.out, ','), r.held...)
		r.comma, r.held = false, r.held[:0]
	}
}

func (r *relaxer) value(c byte) bool {
	if r.watch != nil && len(r.stack) > 0 {
		r.watch.begin(len(r.stack), r.stack[len(r.stack)-1].key, c)
	}
	r.start = len(r.out)
	r.isKey = false
	switch {
	case c == '{' || c == '[':
		if len(r.stack) >= maxDepth {
			return r.fail()
		}
		r.stack = append(r.stack, level{object: c == '{', start: len(r.out)})
		r.out = append(r.out, c)
		r.state = wantItem
		if c == '{' {
			r.state = wantKey
		}
	case len(r.stack) == 0:
		return r.fail()
	case c == '"' || c == '\'' || c == '`':
		r.openString(c)
	case isWordByte(c):
		r.word, r.state = append(r.word[:0], c), inWord
	default:
		return r.fail()
	}
	return true
}

func (r *relaxer) close(c byte) bool {
	top := r.stack[len(r.stack)-1]
	if top.object != (c == '}') {
		return r.fail()
	}
	r.comma = false
	r.out = append(append(r.out, r.held...), c)
	r.held = r.held[:0]
	r.stack = r.stack[:len(r.stack)-1]
	r.brace = top.double
	r.endValue(top.start)
	return true
}

// endValue goes on behind a value that begins at start.
func (r *relaxer) endValue(start int) {
	if len(r.stack) == 0 {
		r.state = finished
		return
	}
	r.state = wantNext
	if r.watch != nil {
		r.watch.end(len(r.stack), r.stack[len(r.stack)-1].key, r.out[start:])
	}
}

func (r *relaxer) openString(c byte) {
	r.quote, r.long, r.state = c, false, inString
	r.tail = r.tail[:0]
	r.out = append(r.out, '"')
}

// inside takes one byte of a string.
func (r *relaxer) inside(c byte) bool {
	if r.long && c != r.quote && len(r.tail) > 0 {
		r.flushQuotes()
	}
	switch {
	case c == r.quote:
		if r.long {
			if r.tail = append(r.tail, c); len(r.tail) == 3 {
				r.tail = r.tail[:0]
				r.endString()
			}
			return true
		}
		r.tail = append(r.tail[:0], c)
		r.state = maybeClosed
	case c == '\\':
		r.state = inEscape
	case c < 0x20:
		r.out = append(r.out, controlEscape(c)...)
	case c == '"':
		r.out = append(r.out, '\\', '"')
	default:
		r.out = append(r.out, c)
	}
	return true
}

// flushQuotes writes quotes inside a string with three quotes.
func (r *relaxer) flushQuotes() {
	for _, q := range r.tail {
		if q == '"' {
			r.out = append(r.out, '\\')
		}
		r.out = append(r.out, q)
	}
	r.tail = r.tail[:0]
}

func controlEscape(c byte) string {
	switch c {
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	const hex = "0123456789abcdef"
	return `\u00` + string(hex[c>>4]) + string(hex[c&15])
}

// afterQuote decides whether a quote ended its string. In strict JSON punctuation follows; where anything else
// does, the model forgot to escape a quote or wrote an apostrophe.
func (r *relaxer) afterQuote(c byte) bool {
	if c == r.quote && len(r.tail) == 1 && len(r.out) == r.start+1 { // the third in a row
		r.long, r.state, r.tail = true, inString, r.tail[:0]
		return true
	}
	line := strings.IndexByte(string(r.tail), '\n') >= 0
	if strings.IndexByte(",:}]", c) >= 0 || line && (c == '"' || c == '/' || c == '#') {
		return r.closeTail(c)
	}
	if isSpace(c) && len(r.tail) < 64 {
		r.tail = append(r.tail, c)
		return true
	}
	// a quote inside the string
	held := append([]byte(nil), r.tail...)
	r.tail, r.state = r.tail[:0], inString
	for i, h := range held {
		if i == 0 {
			if h == '"' {
				r.out = append(r.out, '\\')
			}
			r.out = append(r.out, h)
			continue
		}
		r.inside(h)
	}
	return r.inside(c)
}

// closeTail ends the string and reads again what was held behind its quote.
func (r *relaxer) closeTail(c byte) bool {
	var spaces []byte
	for _, h := range r.tail {
		if isSpace(h) {
			spaces = append(spaces, h)
		}
	}
	r.tail = r.tail[:0]
	r.endString()
	for _, h := range spaces {
		r.push(h)
	}
	return r.push(c)
}

func (r *relaxer) endString() {
	r.out = append(r.out, '"')
	r.endScalar()
}

// endScalar goes on behind a string or word, which may be a key.
func (r *relaxer) endScalar() {
	if !r.isKey {
		r.endValue(r.start)
		return
	}
	key, _ := unquote(r.out[r.start:])
	r.stack[len(r.stack)-1].key = key
	r.state = wantColon
}

func (r *relaxer) escape(c byte) bool {
	if len(r.tail) > 0 { // the digits of \u
		if isHex(c) {
			if r.tail = append(r.tail, c); len(r.tail) == 5 {
				r.out = append(append(r.out, '\\'), r.tail...)
				r.tail, r.state = r.tail[:0], inString
			}
			return true
		}
		r.out = append(append(r.out, '\\', '\\'), r.tail...)
		r.tail, r.state = r.tail[:0], inString
		return r.inside(c)
	}
	r.state = inString
	switch {
	case c == 'u':
		r.tail, r.state = append(r.tail, c), inEscape
	case strings.IndexByte(`"\/bfnrt`, c) >= 0:
		r.out = append(r.out, '\\', c)
	case c == '\'' || c == '`':
		r.out = append(r.out, c)
	case c == '\n': // a line goes on
		r.out = append(r.out, '\\', 'n')
	default: // the backslash stands for itself, as in "\d+"
		r.out = append(r.out, '\\', '\\')
		return r.inside(c)
	}
	return true
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}

// endWord ends a word: a bare key, a number, or one of the names of JSON and Python.
func (r *relaxer) endWord() bool {
	w := string(r.word)
	if r.isKey {
		r.word = r.word[:0]
		r.out = append(r.out, quote(w)...)
		r.endScalar()
		return true
	}
	lit, ok := literal(w)
	if !ok {
		return false
	}
	r.word = r.word[:0]
	r.out = append(r.out, lit...)
	r.endScalar()
	return true
}

// literal returns the JSON of a number, true, false or null as JSON or Python spells them.
func literal(w string) (string, bool) {
	switch w {
	case "true", "false", "null":
		return w, true
	case "True":
		return "true", true
	case "False":
		return "false", true
	case "None":
		return "null", true
	}
	w = strings.TrimPrefix(w, "+")
	if isNumber(w) {
		return w, true
	}
	return "", false
}

// isNumber tells whether w is a JSON number.
func isNumber(w string) bool {
	s := strings.TrimPrefix(w, "-")
	digits := func() int {
		n := 0
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		s = s[n:]
		return n
	}
	lead := s
	n := digits()
	if n == 0 || n > 1 && lead[0] == '0' {
		return false
	}
	if strings.HasPrefix(s, ".") {
		if s = s[1:]; digits() == 0 {
			return false
		}
	}
	if s != "" && s[0]|0x20 == 'e' {
		s = s[1:]
		if s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		if digits() == 0 {
			return false
		}
	}
	if s != "" {
		return false
	}
	_, err := strconv.ParseFloat(w, 64)
	return err == nil
}

func (r *relaxer) fail() bool {
	r.state = failed
	return false
}

// finish tells that nothing follows. It closes what is open and returns false where that would be guessing:
// inside a string, or where a value is missing.
func (r *relaxer) finish() bool {
	switch r.state {
	case finished:
		return true
	case inWord:
		if r.isKey || !r.endWord() {
			return r.fail()
		}
	case maybeClosed:
		r.tail = r.tail[:0]
		r.endString()
	case inComment:
		r.state = r.back
	}
	for r.state != finished {
		ok := r.state == wantNext || r.comma && (r.state == wantKey || r.state == wantItem)
		if !ok || len(r.stack) == 0 {
			return r.fail()
		}
		c := byte(']')
		if r.stack[len(r.stack)-1].object {
			c = '}'
		}
		r.close(c)
	}
	return true
}

// unquote reads a strict JSON string.
func unquote(s []byte) (string, bool) {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return "", false
	}
	body := string(s[1 : len(s)-1])
	if strings.IndexByte(body, '\\') < 0 && utf8.ValidString(body) {
		return body, true
	}
	var v string
	if err := unmarshal(string(s), &v); err != nil {
		return "", false
	}
	return v, true
}

// relax turns one relaxed object or array into strict JSON. All of s must be it.
func relax(s string) (string, bool) {
	var r relaxer
	for i := 0; i < len(s); i++ {
		if !r.push(s[i]) {
			rest := strings.Trim(s[i:], " \n\t\r")
			if r.state == finished && (rest == "" || r.brace && rest == "}") {
				break
			}
			return "", false
		}
	}
	if !r.finish() {
		return "", false
	}
	return strings.TrimSpace(string(r.out)), true
}
