package toolfmt

import "strings"

// gemmaQuotes stand around strings.
var gemmaQuotes = []string{`<|"|>`, "<escape>"}

// gemmaReader reads call:NAME{key:value,…} with its own quotes, bare keys and bare words.
type gemmaReader struct {
	pyReader
}

// readGemma reads one call or several in a row.
func (p *Parser) readGemma(s string, eof bool) ([]found, int, status) {
	r := &gemmaReader{pyReader{s: s, i: len("call:")}}
	t := p.tools.resolve(strings.TrimSpace(r.toolName()))
	wait := more
	if eof {
		wait = rejected
	}
	if r.i == len(s) {
		return nil, r.i, wait
	}
	if t == nil {
		return nil, r.i, rejected
	}
	v, ok := r.object()
	if !ok {
		if !r.short {
			wait = rejected
		}
		return nil, r.i, wait
	}
	args, ok := t.arguments(v)
	if !ok {
		return nil, r.i, rejected
	}
	return []found{{t, args}}, r.i, accepted
}

// toolName reads up to the brace.
func (r *gemmaReader) toolName() string {
	start := r.i
	for r.i < len(r.s) && (isNameByte(r.s[r.i]) || r.s[r.i] == ' ') && r.i-start < 200 {
		r.i++
	}
	return r.s[start:r.i]
}

func (r *gemmaReader) object() (string, bool) {
	if !r.accept('{') {
		return "", false
	}
	if r.depth++; r.depth > maxDepth {
		return "", false
	}
	defer func() { r.depth-- }()
	var ms []member
	for !r.accept('}') {
		if len(ms) > 0 && !r.accept(',') {
			return "", false
		}
		if r.accept('}') {
			break
		}
		key, ok := r.key()
		if !ok || !r.accept(':') {
			return "", false
		}
		v, ok := r.value()
		if !ok {
			return "", false
		}
		ms = put(ms, member{key, v})
	}
	return object(ms), true
}

func (r *gemmaReader) key() (string, bool) {
	r.space()
	if s, ok := r.quoted(); ok {
		return unquote([]byte(s))
	}
	if c := r.peek(); c == '"' || c == '\'' {
		s, ok := r.str(c)
		if !ok {
			return "", false
		}
		return unquote([]byte(s))
	}
	start := r.i
	for r.i < len(r.s) && isNameByte(r.s[r.i]) && r.s[r.i] != ':' {
		r.i++
	}
	return r.s[start:r.i], r.i > start
}

// quoted reads a string between the family's own quotes.
func (r *gemmaReader) quoted() (string, bool) {
	for _, q := range gemmaQuotes {
		rest := r.s[r.i:]
		if partial(rest, q) {
			r.short = true
		}
		if !strings.HasPrefix(rest, q) {
			continue
		}
		end := strings.Index(rest[len(q):], q)
		if end < 0 {
			r.short = true
			return "", false
		}
		r.i += end + 2*len(q)
		return quote(rest[len(q) : len(q)+end]), true
	}
	return "", false
}

func (r *gemmaReader) value() (string, bool) {
	r.space()
	if s, ok := r.quoted(); ok {
		return s, true
	}
	switch c := r.peek(); c {
	case '"', '\'':
		return r.str(c)
	case '{':
		return r.object()
	case '[':
		return r.array()
	case '<', 0:
		return "", false
	}
	start := r.i
	for r.i < len(r.s) && strings.IndexByte(",{}[]\n<", r.s[r.i]) < 0 {
		r.i++
	}
	if r.i == len(r.s) {
		r.short = true
		return "", false
	}
	w := strings.TrimSpace(r.s[start:r.i])
	if v, ok := literal(w); ok {
		return v, true
	}
	return quote(w), w != ""
}

func (r *gemmaReader) array() (string, bool) {
	if r.depth++; r.depth > maxDepth {
		return "", false
	}
	defer func() { r.depth-- }()
	r.i++
	var items []string
	for !r.accept(']') {
		if len(items) > 0 && !r.accept(',') {
			return "", false
		}
		if r.accept(']') {
			break
		}
		v, ok := r.value()
		if !ok {
			return "", false
		}
		items = append(items, v)
	}
	return "[" + strings.Join(items, ", ") + "]", true
}
