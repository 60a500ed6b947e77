package toolfmt

import "strings"

// owed tells whether the prompt began a call which has not come out yet.
func (p *Parser) owed() bool { return p.prefix != "" && p.calls == 0 }

// callAnyway sends out a call that the prompt began and that could not be read, with the arguments that could. At the
// end of the output the rest of it is of its arguments; elsewhere it is text.
func (p *Parser) callAnyway(c *candidate, eof bool) bool {
	p.buf = c.lead + c.s
	n := min(len(p.prefix), len(p.buf))
	args, k, whole := p.firstMembers(c.kind, p.buf[n:])
	n += k
	rest := ""
	if p.cut && eof && !whole {
		rest, n = p.buf[n:], len(p.buf)
	}
	p.span("call", n)
	p.kind, p.fresh, p.line, p.last = Text, true, true, 0
	p.startCall(p.forced.name)
	if whole {
		p.callArgs(object(p.forced.shape(args)))
	} else {
		p.callArgs(begun(p.forced.shape(args), rest))
	}
	p.endCall(!whole)
	if p.channel != nil {
		p.channel.content = true
	}
	return true
}

// begun writes members as the begin of a JSON object, and behind them what the model wrote of the next one.
func begun(ms []member, rest string) string {
	s := strings.TrimSuffix(object(ms), "}")
	if len(ms) > 0 && strings.TrimSpace(rest) != "" {
		s += ", "
	}
	return s + strings.TrimLeft(rest, " \t\r\n")
}

// firstMembers reads the arguments behind the prefix of a call as far as they are whole: n bytes of s. whole tells that
// all of them are.
func (p *Parser) firstMembers(k bodyKind, s string) (ms []member, n int, whole bool) {
	r := &gemmaReader{pyReader{s: s}}
	var next func() (member, bool)
	switch k {
	case bodyTags:
		return p.firstTags(s)
	case bodyPython:
		next = func() (member, bool) { return p.forced.pythonArg(&r.pyReader, len(ms) == 0) }
	case bodyGemma:
		next = r.member
	default:
		if !strings.HasSuffix(p.prefix, "{") {
			return nil, 0, false
		}
		return firstJSON(s)
	}
	for {
		m, ok := next()
		if !ok || r.i == len(s) { // the value may go on
			return ms, n, false
		}
		ms, n = put(ms, m), r.i
		if !r.accept(',') {
			return ms, n, false
		}
		n = r.i
	}
}

// member reads KEY:VALUE.
func (r *gemmaReader) member() (member, bool) {
	key, ok := r.key()
	if !ok || !r.accept(':') {
		return member{}, false
	}
	v, ok := r.value()
	return member{key, v}, ok
}

// firstTags reads arguments as readArgTags does.
func (p *Parser) firstTags(s string) (ms []member, n int, whole bool) {
	for {
		at := skipSpace(s, n)
		body, after, ok := strings.Cut(s[at:], "</arg_value>")
		key, value, is := strings.Cut(body, "</arg_key>")
		key, isKey := strings.CutPrefix(key, "<arg_key>")
		value, isValue := strings.CutPrefix(value[skipSpace(value, 0):], "<arg_value>")
		if !ok || !is || !isKey || !isValue {
			return ms, n, false
		}
		if m, ok := p.forced.fromText(strings.TrimSpace(key), value); ok {
			ms = put(ms, m)
		}
		n = len(s) - len(after)
	}
}

// firstJSON reads the members of an object behind its brace.
func firstJSON(s string) (ms []member, n int, whole bool) {
	w := &memberWatch{}
	w.r.watch = w
	w.r.push('{')
	for i := 0; i < len(s) && w.r.push(s[i]); i++ {
		if w.r.state == finished {
			return w.ms, i + 1, true
		}
		if len(w.ms) > len(ms) {
			ms, n = w.ms, i
			if s[i] == ',' {
				n++
			}
		}
	}
	return ms, n, false
}

// memberWatch collects the members of the outermost object.
type memberWatch struct {
	r  relaxer
	ms []member
}

func (w *memberWatch) begin(int, string, byte) {}

func (w *memberWatch) end(depth int, key string, value []byte) {
	if depth == 1 {
		w.ms = put(w.ms, member{key, string(value)})
	}
}

// unwritten is what was read of a value and is not in out, because what follows was to decide on it.
func (r *relaxer) unwritten() string {
	switch r.state {
	case inEscape:
		return `\` + string(r.tail)
	case maybeClosed:
		return `"` + string(r.tail[1:])
	case inString:
		return strings.Repeat(`\"`, len(r.tail))
	case inComment, inLongComment:
		return ""
	}
	if r.comma {
		return "," + string(r.held)
	}
	return string(r.word)
}
