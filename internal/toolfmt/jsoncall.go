package toolfmt

import "strings"

// jsonCall reads a call, or a list of calls, written as JSON. Where the marks around it say that it is a call,
// the arguments come out as they are read; elsewhere only when all of it fits.
type jsonCall struct {
	p     *Parser
	fit   bool      // nothing but its content tells that it is a call
	named *toolInfo // its name stood before: the value is the arguments alone
	r     relaxer
	pos   int // bytes read

	count   int       // members begun of the outermost object
	tool    *toolInfo // named by the object so far
	argKey  string    // the key whose value is being streamed
	inArgs  bool
	live    bool // CallStart is out
	ended   bool // and CallEnd too
	refused bool // it cannot be a call

	sent   map[string]bool // the members that are out
	key    string          // the member being read, as it will be written
	skip   bool            // it repeats one that is out: leave it out
	stream bool            // its string is written as it comes
	from   int             // how far of r.out is written
	upto   int             // where in r.out the members that are out end
	last   string          // the last whole member of the outermost object
}

func newJSONCall(p *Parser, fit bool, named *toolInfo) *jsonCall {
	j := &jsonCall{p: p, fit: fit, named: named, tool: named, inArgs: named != nil}
	j.r.watch = j
	return j
}

// argDepth is the depth of the arguments' own members.
func (j *jsonCall) argDepth() int {
	if j.named != nil {
		return 1
	}
	return 2
}

func (j *jsonCall) begin(depth int, key string, first byte) {
	if j.named == nil && depth == 1 && j.r.stack[0].object {
		j.count++
		if j.count == 1 && j.fit && j.p.forced == nil && !wrapperKey(key) && j.p.tools.plain(key) == nil {
			j.refused = true
		}
		if j.tool != nil && !j.fit && !j.live && first == '{' && oneOf(key, argKeys) {
			j.inArgs, j.argKey = true, key
		}
	}
	if !j.inArgs || j.ended || depth != j.argDepth() || !j.r.stack[depth-1].object {
		return
	}
	if !j.live {
		if j.named == nil && j.tool.props[j.tool.key(key)] == nil && (!j.tool.open || j.tool.silent) {
			j.inArgs = false // perhaps a schema, perhaps nonsense: judged as a whole
			return
		}
		j.live = true
		j.upto = j.r.stack[depth-1].start
		j.sent = map[string]bool{}
		j.p.startCall(j.tool.name)
	}
	j.beginMember(key, first)
}

func (j *jsonCall) beginMember(key string, first byte) {
	j.key = key
	if k := j.tool.key(key); !j.sent[k] {
		j.key = k
	}
	if j.skip = j.sent[j.key]; j.skip {
		return
	}
	p := j.tool.props[j.key]
	j.stream = (p == nil || p.onlyString() && len(p.enum) == 0) && (first == '"' || first == '\'' || first == '`')
	if j.stream {
		j.writeKey()
		j.from = len(j.r.out)
	}
}

func (j *jsonCall) writeKey() {
	sep := "{"
	if len(j.sent) > 0 {
		sep = ", "
	}
	j.sent[j.key] = true
	j.p.callArgs(sep + quote(j.key) + ": ")
}

func (j *jsonCall) end(depth int, key string, value []byte) {
	if j.named == nil && depth == 1 && j.r.stack[0].object {
		j.last = key
		j.nameRead(key, value)
	}
	if !j.inArgs || !j.live || j.ended {
		return
	}
	switch {
	case depth == j.argDepth():
		j.endMember(string(value))
	case j.named == nil && depth == 1 && key == j.argKey:
		j.endArgs(false)
	}
}

func (j *jsonCall) nameRead(key string, value []byte) {
	if !oneOf(key, nameKeys) || len(value) == 0 || value[0] != '"' {
		return
	}
	s, _ := unquote(value)
	t := j.p.tools.resolve(s)
	switch {
	case t != nil && j.tool == nil:
		j.tool = t
	case t == nil && key == "name" && j.p.forced == nil:
		j.refused = true
	}
}

func (j *jsonCall) endMember(value string) {
	switch {
	case j.skip:
	case j.stream:
		j.flush()
	default:
		j.writeKey()
		if p := j.tool.props[j.key]; p != nil {
			value = p.coerce(value)
		}
		j.p.callArgs(value)
	}
	j.stream = false
	j.upto = len(j.r.out)
}

// flush writes what a streamed string has grown by.
func (j *jsonCall) flush() {
	if j.stream && len(j.r.out) > j.from {
		j.p.callArgs(string(j.r.out[j.from:]))
		j.from = len(j.r.out)
	}
}

func (j *jsonCall) endArgs(cut bool) {
	switch {
	case cut:
		if j.stream {
			j.upto = j.from
		}
		j.p.callArgs(string(j.r.out[j.upto:]) + j.r.unwritten())
	case len(j.sent) == 0:
		j.p.callArgs("{}")
	default:
		j.p.callArgs("}")
	}
	j.p.endCall(cut)
	j.ended, j.inArgs, j.stream = true, false, false
}

func (j *jsonCall) settle() int {
	if !j.live {
		return 0
	}
	n := j.pos
	j.pos = 0
	return n
}

// advance reads on in s, which begins where the value does. On accepted and rejected, n bytes of s are its.
func (j *jsonCall) advance(s string, eof bool) (n int, st status) {
	for j.pos < len(s) {
		if j.r.state == finished || !j.r.push(s[j.pos]) {
			break
		}
		j.pos++
		if j.refused {
			return j.pos, rejected
		}
	}
	switch {
	case j.r.state == finished:
		return j.complete()
	case j.r.state == failed:
		return j.broken()
	case eof:
		if (!j.p.cut || j.whole()) && j.r.finish() && !j.refused {
			return j.complete()
		}
		return j.broken()
	}
	j.flush()
	return 0, more
}

// whole tells whether all calls that were begun are whole, so that brackets around them may be closed.
func (j *jsonCall) whole() bool {
	return j.ended || j.named == nil && len(j.r.stack) == 1 && (!j.r.stack[0].object || oneOf(j.last, argKeys))
}

func (j *jsonCall) complete() (int, status) {
	if j.live {
		if !j.ended {
			j.endArgs(false)
		}
		return j.pos, accepted
	}
	v := strings.TrimSpace(string(j.r.out))
	if j.named != nil {
		args, ok := j.named.arguments(v)
		if !ok || j.fit && !j.named.fits(args) {
			return j.pos, rejected
		}
		j.p.call(found{j.named, args})
		return j.pos, accepted
	}
	calls, ok := j.p.callsIn(v, j.fit, 0)
	if !ok {
		return j.pos, rejected
	}
	if j.p.opt.SingleCall {
		calls = calls[:1] // the request wants no more
	}
	for _, c := range calls {
		j.p.call(c)
	}
	return j.pos, accepted
}

// broken ends a value that cannot go on. A call that is already out keeps what was read of it.
func (j *jsonCall) broken() (int, status) {
	if !j.live {
		return j.pos, rejected
	}
	if !j.ended {
		j.endArgs(true)
	}
	return j.pos, accepted
}
