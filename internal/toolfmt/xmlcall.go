package toolfmt

import (
	"strings"
	"unicode/utf8"
)

// xmlCall reads one call in an XML-like form. The values of strings come out as they are read.
type xmlCall struct {
	p    *Parser
	tags tagNames
	tool *toolInfo
	pos  int // bytes of s that are decided
	ms   []member
	sent map[string]bool // the members that are out
	live bool            // CallStart is out

	inValue bool
	key     string // of the value being read, as the model wrote it
	flag    string // of its attribute string="…"
	raw     bool   // the line breaks around it are its own
	stream  bool   // it is written as it comes
	begun   bool   // its first line break has been looked at
	last    byte   // of its text that is out
	opens   int    // tags of arguments in that text
	closes  int    // and their closing tags
	calls   int    // and tags of calls
	begins  bool   // the output ended inside a value that is not out
	left    string // what there is of it
}

func (x *xmlCall) settle() int {
	if !x.live {
		return 0
	}
	n := x.pos
	x.pos = 0
	return n
}

// advance reads on in s, which begins with the call's tag, or with what settle left of it.
func (x *xmlCall) advance(s string, eof bool) (int, status) {
	if x.tool == nil {
		if n, st := x.opening(s, eof); st != accepted {
			return n, st
		}
	}
	for {
		st, over := x.between(s, eof)
		if x.inValue {
			st, over = x.value(s, eof)
		}
		switch {
		case st == rejected && (x.live || x.p.owed()):
			x.finish(true)
			return x.pos, accepted
		case st != accepted:
			return x.pos, st
		case over:
			return x.pos, accepted
		}
	}
}

// opening reads the call's own tag.
func (x *xmlCall) opening(s string, eof bool) (int, status) {
	tool := func(name string) bool { return x.p.tools.resolve(name) != nil }
	t, end, st := readTag(s, min(len(x.tags.call), len(s)), tool, eof)
	if st != accepted {
		return end, st
	}
	if x.tool = x.p.tools.resolve(t.name); x.tool == nil {
		return end, rejected
	}
	x.pos = end
	return 0, accepted
}

// between reads what stands between two values: a tag, or the end.
func (x *xmlCall) between(s string, eof bool) (st status, over bool) {
	if x.inValue {
		return accepted, false
	}
	i := skipSpace(s, x.pos)
	rest := s[i:]
	if x.tags.callEnd == functionTags.callEnd && len(x.ms) == 0 && strings.HasPrefix(rest, paramTags.param) {
		x.tags = paramTags
	}
	switch {
	case strings.HasPrefix(rest, x.tags.callEnd):
		x.pos = i + len(x.tags.callEnd)
		x.finish(false)
		return accepted, true
	case rest == "" && eof:
		x.pos = i
		x.finish(x.p.cut)
		return accepted, true
	case strings.HasPrefix(rest, x.tags.param):
		return x.param(s, i, eof), false
	case len(x.ms) == 0 && !x.live && rest != "" && rest[0] == '{':
		c, n, st := x.p.readTagJSON(x.tool, s, i, x.tags, eof)
		if st != more {
			x.pos = n
		}
		if st == accepted {
			x.p.call(c)
		}
		return st, true
	}
	for _, e := range x.tags.ends {
		if strings.HasPrefix(rest, e) {
			x.pos = i
			x.finish(false)
			return accepted, true
		}
	}
	for _, m := range append([]string{x.tags.callEnd, x.tags.param, paramTags.param}, x.tags.ends...) {
		switch {
		case !partial(rest, m):
		case !eof:
			return more, false
		case x.p.cut: // inside the mark
			x.pos = len(s)
			return rejected, false
		}
	}
	x.pos = max(i, 1)
	return rejected, false
}

// param reads <parameter=KEY> at s[i].
func (x *xmlCall) param(s string, i int, eof bool) status {
	t, end, st := readTag(s, i+len(x.tags.param), x.declared, eof)
	if st != accepted {
		if st == rejected {
			x.pos = end
		}
		return st
	}
	if t.name == "" {
		t.name = x.soleMissing()
	}
	if !x.declared(t.name) && !plainKey(t.name) {
		x.pos = end
		return rejected
	}
	x.flag, x.raw = t.flag, t.typed
	x.key, x.pos, x.inValue, x.begun = t.name, end, true, false
	x.last, x.opens, x.closes, x.calls = 0, 0, 0, 0
	k := x.tool.key(t.name)
	p := x.tool.props[k]
	x.stream = p != nil && p.onlyString() && len(p.enum) == 0 && x.flag != "false" && !x.given(k)
	if x.stream {
		x.goLive()
		x.write(k, `"`)
	}
	return accepted
}

// declared tells whether the tool has an argument of this name.
func (x *xmlCall) declared(name string) bool { return x.tool.props[x.tool.key(name)] != nil }

// given tells whether an argument was read already.
func (x *xmlCall) given(key string) bool { return x.sent[key] || has(x.ms, key) }

// soleMissing returns the argument that one without a name must be, "" where several may be meant.
func (x *xmlCall) soleMissing() string {
	var required, all []string
	for _, k := range x.tool.order {
		if x.given(k) {
			continue
		}
		if all = append(all, k); x.tool.requires(k) {
			required = append(required, k)
		}
	}
	switch {
	case len(required) == 1:
		return required[0]
	case len(required) == 0 && len(all) == 1:
		return all[0]
	}
	return ""
}

func has(ms []member, key string) bool {
	for _, m := range ms {
		if m.key == key {
			return true
		}
	}
	return false
}

// goLive sends the call's beginning out, with the values read so far.
func (x *xmlCall) goLive() {
	if x.live {
		return
	}
	x.live = true
	x.sent = map[string]bool{}
	x.p.startCall(x.tool.name)
	for _, m := range x.tool.shape(x.ms) {
		x.write(m.key, m.value)
	}
}

func (x *xmlCall) write(key, value string) {
	sep := ", "
	if len(x.sent) == 0 {
		sep = "{"
	}
	x.sent[key] = true
	x.p.callArgs(sep + quote(key) + ": " + value)
}

// value reads on in a value.
func (x *xmlCall) value(s string, eof bool) (st status, over bool) {
	if !x.inValue {
		return more, false
	}
	if x.stream && !x.begun && !x.raw {
		k := x.pos
		if k < len(s) && s[k] == '\r' {
			k++
		}
		if k == len(s) && !eof {
			return more, false
		}
		if k < len(s) && s[k] == '\n' {
			x.pos = k + 1
		}
	}
	x.begun = true
	end, next, st := x.valueEnd(s, eof)
	switch {
	case st == accepted:
		x.endValue(s[x.pos:end])
		x.pos = next
		return accepted, false
	case st == more && x.stream:
		safe := x.safe(s)
		x.text(s[x.pos:safe])
		x.pos = safe
	case st == rejected && x.stream: // cut inside the string
		end := x.safe(s)
		if mark := strings.TrimLeft(s[end:], "\r\n"); len(mark) < 2 || !x.halfMark(mark) {
			end = len(s)
		}
		x.text(s[x.pos:end])
		x.pos, x.stream = len(s), false
	case st == rejected:
		x.begins, x.left, x.pos = true, trimLines(s[x.pos:]), len(s)
	}
	return st, false
}

func (x *xmlCall) endValue(text string) {
	x.inValue = false
	if x.stream {
		if !x.raw {
			text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
		}
		x.text(text)
		x.p.callArgs(`"`)
		return
	}
	m, ok := x.member(text)
	if !ok {
		return
	}
	if !x.live {
		x.ms = put(x.ms, m)
		return
	}
	if !x.sent[m.key] {
		x.write(m.key, m.value)
	}
}

// member makes an argument of a whole value; ok is false where it is none.
func (x *xmlCall) member(text string) (m member, ok bool) {
	switch {
	case x.flag == "true":
		return member{x.tool.key(x.key), quote(text)}, true
	case x.raw:
		if v, ok := relaxAny(text); ok {
			return member{x.tool.key(x.key), v}, true
		}
	}
	return x.tool.fromText(x.key, trimLines(text))
}

// text sends a piece of a string out.
func (x *xmlCall) text(s string) {
	if s != "" {
		x.last = s[len(s)-1]
		x.opens += strings.Count(s, x.tags.param)
		x.closes += strings.Count(s, x.tags.paramEnd)
		x.calls += strings.Count(s, x.tags.call)
		q := encode(s)
		x.p.callArgs(q[1 : len(q)-1])
	}
}

// follow lists the marks that may stand behind a value.
func (x *xmlCall) follow() []string {
	return append([]string{x.tags.param, x.tags.callEnd}, x.tags.ends...)
}

// halfMark tells whether s is the beginning of a mark that ends a value.
func (x *xmlCall) halfMark(s string) bool {
	for _, m := range append(x.follow(), x.tags.paramEnd) {
		if partial(s, m) {
			return true
		}
	}
	return false
}

// touches tells whether text of the value stands right before s[h], without a space.
func (x *xmlCall) touches(s string, h int) bool {
	last := x.last
	if h > x.pos {
		last = s[h-1]
	}
	return last != ' ' && last != '\t'
}

// valueEnd finds where the value that begins at x.pos ends: at the closing tag that another tag of the call follows,
// for code may hold such a tag itself, or before what shows that its own is missing. next is where the text goes on.
func (x *xmlCall) valueEnd(s string, eof bool) (end, next int, st status) {
	follow := x.follow()
	last := -1 // closing tag so far
	for at := x.pos; ; {
		i := strings.Index(s[at:], x.tags.paramEnd)
		if i < 0 {
			break
		}
		end, next = at+i, at+i+len(x.tags.paramEnd)
		last = end
		rest := s[skipSpace(s, next):]
		done := rest == "" && eof
		for _, f := range follow {
			if partial(rest, f) && !eof {
				return 0, 0, more
			}
			done = done || strings.HasPrefix(rest, f)
		}
		if done {
			if k := x.unclosed(s, end); k >= 0 {
				return k, k, accepted
			}
			if st := x.nested(s, end, rest, eof); st != rejected {
				return end, next, st
			}
		}
		at = next
	}
	if !eof {
		return 0, 0, more
	}
	// the closing tag is missing: the value ends before the next tag that stands on a line of its own
	best := -1
	for _, f := range follow {
		if i := strings.Index(s[x.pos:], "\n"+f); i >= 0 && (best < 0 || i < best) {
			best = i
		}
	}
	switch {
	case best >= 0:
		return x.pos + best, x.pos + best, accepted
	case last >= 0 && !x.stream: // other text follows it
		return last, last + len(x.tags.paramEnd), accepted
	}
	return 0, 0, rejected
}

// marks counts the tags of arguments in the value up to here.
func (x *xmlCall) marks(rest string) (opens, closes int) {
	return x.opens + strings.Count(rest, x.tags.param), x.closes + strings.Count(rest, x.tags.paramEnd)
}

// nested tells whether a closing tag at end, behind which rest stands, is the value's although the value holds tags
// that are still open: rejected where the call that ends there is an example within the value, behind which text goes
// on.
func (x *xmlCall) nested(s string, end int, rest string, eof bool) status {
	value := s[x.pos:end]
	after, isEnd := strings.CutPrefix(rest, x.tags.callEnd)
	if opens, closes := x.marks(value); !isEnd || opens <= closes {
		return accepted
	}
	if after = after[skipSpace(after, 0):]; after == "" {
		if eof {
			return accepted
		}
		return more
	}
	for _, e := range x.tags.ends {
		if strings.HasPrefix(after, e) {
			return accepted
		}
		if partial(after, e) && !eof {
			return more
		}
	}
	return rejected
}

// unclosed returns where the value ends if the closing tag at end is another's, because its own is missing: before the
// tag of an argument that is still to come, or before the end of the call. Otherwise it is -1.
func (x *xmlCall) unclosed(s string, end int) int {
	value := s[x.pos:end]
	opens, closes := x.marks(value)
	for at := 0; opens > closes; {
		i := strings.Index(value[at:], x.tags.param)
		if i < 0 {
			break
		}
		i += at
		at = i + len(x.tags.param)
		t, _, st := readTag(s, x.pos+at, x.declared, true)
		k := x.tool.key(t.name)
		if st == accepted && x.declared(k) && k != x.tool.key(x.key) && !x.given(k) && x.touches(s, x.pos+i) {
			return x.pos + i
		}
	}
	for at := 0; ; {
		i := strings.Index(value[at:], "\n"+x.tags.callEnd)
		if i < 0 || x.calls > 0 || strings.Contains(value[:at+i], x.tags.call) {
			return -1
		}
		i += at
		at = i + 1 + len(x.tags.callEnd)
		for _, e := range x.tags.ends {
			if strings.HasPrefix(value[skipSpace(value, at):], e) {
				return x.pos + i
			}
		}
	}
}

// safe returns how far the text from pos surely belongs to the value: up to what may be its end.
func (x *xmlCall) safe(s string) int {
	follow := x.follow()
	for h := x.pos; h < len(s); h++ {
		if c := s[h]; c != '\r' && c != '\n' && c != '<' {
			continue
		}
		rest := s[h:] // marks are written whole, so that they can be counted
		if partial(rest, x.tags.param) || partial(rest, x.tags.call) ||
			strings.HasPrefix(rest, x.tags.param) && x.touches(s, h) {
			return h
		}
		k := h
		if s[k] == '\r' {
			k++
		}
		line := k < len(s) && s[k] == '\n'
		if line {
			k++
		}
		rest = s[k:]
		if partial(rest, x.tags.paramEnd) ||
			strings.HasPrefix(rest, x.tags.paramEnd) && mayFollow(rest[len(x.tags.paramEnd):], follow) {
			return h
		}
		if line && mayFollow(rest, follow) {
			return h
		}
	}
	for n := 1; n < utf8.UTFMax && n <= len(s)-x.pos; n++ { // no half of a character
		if c := s[len(s)-n]; c >= utf8.RuneSelf && utf8.RuneStart(c) && !utf8.FullRuneInString(s[len(s)-n:]) {
			return len(s) - n
		}
	}
	return len(s)
}

// mayFollow tells whether one of the marks stands at the beginning of s, behind white space, or may.
func mayFollow(s string, marks []string) bool {
	rest := s[skipSpace(s, 0):]
	for _, m := range marks {
		if strings.HasPrefix(rest, m) || partial(rest, m) {
			return true
		}
	}
	return false
}

// finish ends the call. One that is cut has what was read of its arguments, and nothing closes them.
func (x *xmlCall) finish(cut bool) {
	if !x.live && !cut {
		x.p.startCall(x.tool.name)
		x.p.callArgs(object(x.tool.shape(x.ms)))
		x.p.endCall(false)
		return
	}
	x.goLive()
	if x.begins {
		if p := x.tool.props[x.tool.key(x.key)]; x.flag == "true" || p != nil && p.onlyString() {
			q := encode(x.left)
			x.left = q[:len(q)-1]
		}
		x.write(x.tool.key(x.key), x.left)
	}
	switch {
	case !cut:
		x.p.callArgs("}")
	case len(x.sent) == 0:
		x.p.callArgs("{")
	}
	x.p.endCall(cut)
}
