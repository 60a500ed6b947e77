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
		case st == rejected && x.live:
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
	gt := strings.IndexByte(s, '>')
	if gt < 0 {
		if eof || len(s) > 300 {
			return len(s), rejected
		}
		return 0, more
	}
	name, ok := attribute(s[:gt], "name")
	if !ok {
		name, _ = attribute(s[:gt], "function")
	}
	if x.tool = x.p.tools.resolve(name); x.tool == nil {
		return gt + 1, rejected
	}
	x.pos = gt + 1
	return 0, accepted
}

// between reads what stands between two values: a tag, or the end.
func (x *xmlCall) between(s string, eof bool) (st status, over bool) {
	if x.inValue {
		return accepted, false
	}
	i := skipSpace(s, x.pos)
	rest := s[i:]
	if x.tags.param == functionTags.param && len(x.ms) == 0 && strings.HasPrefix(rest, paramTags.param) {
		x.tags = paramTags
	}
	switch {
	case strings.HasPrefix(rest, x.tags.callEnd):
		x.pos = i + len(x.tags.callEnd)
		x.finish(false)
		return accepted, true
	case rest == "" && eof:
		x.pos = i
		x.finish(false)
		return accepted, true
	case strings.HasPrefix(rest, x.tags.param):
		return x.param(s, i, eof), false
	case len(x.ms) == 0 && !x.live && rest != "" && rest[0] == '{':
		c, n, st := readTagJSON(x.tool, s, i, x.tags, eof)
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
		if partial(rest, m) && !eof {
			return more, false
		}
	}
	x.pos = max(i, 1)
	return rejected, false
}

// param reads <parameter=KEY> at s[i].
func (x *xmlCall) param(s string, i int, eof bool) status {
	gt := strings.IndexByte(s[i:], '>')
	if gt < 0 {
		if eof || len(s)-i > 300 {
			x.pos = len(s)
			return rejected
		}
		return more
	}
	tag := s[i : i+gt]
	key, ok := attribute(tag, "name")
	if !ok {
		key, ok = attribute(tag, "parameter")
	}
	if !ok {
		x.pos = i + gt + 1
		return rejected
	}
	x.flag, x.raw = attribute(tag, "string")
	x.key, x.pos, x.inValue, x.begun = key, i+gt+1, true, false
	k := x.tool.key(key)
	p := x.tool.props[k]
	x.stream = p != nil && p.onlyString() && len(p.enum) == 0 && x.flag != "false" && !x.sent[k] && !has(x.ms, k)
	if x.stream {
		x.goLive()
		x.write(k, `"`)
	}
	return accepted
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
	end, next, st := valueEnd(s, x.pos, x.tags, eof)
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
		x.text(s[x.pos:])
		x.p.callArgs(`"`)
		x.pos, x.stream = len(s), false
	case st == rejected:
		x.pos = len(s)
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
	m := x.member(text)
	if !x.live {
		x.ms = put(x.ms, m)
		return
	}
	if !x.sent[m.key] {
		x.write(m.key, m.value)
	}
}

// member makes an argument of a whole value.
func (x *xmlCall) member(text string) member {
	switch {
	case x.flag == "true":
		return member{x.tool.key(x.key), quote(text)}
	case x.raw:
		if v, ok := relaxAny(text); ok {
			return member{x.tool.key(x.key), v}
		}
	}
	return x.tool.fromText(x.key, trimLines(text))
}

// text sends a piece of a string out.
func (x *xmlCall) text(s string) {
	if s != "" {
		q := encode(s)
		x.p.callArgs(q[1 : len(q)-1])
	}
}

// safe returns how far the text from pos surely belongs to the value: up to what may be its end.
func (x *xmlCall) safe(s string) int {
	follow := append([]string{x.tags.param, x.tags.callEnd}, x.tags.ends...)
	for h := x.pos; h < len(s); h++ {
		if c := s[h]; c != '\r' && c != '\n' && c != '<' {
			continue
		}
		k := h
		if s[k] == '\r' {
			k++
		}
		line := k < len(s) && s[k] == '\n'
		if line {
			k++
		}
		rest := s[k:]
		if partial(rest, x.tags.paramEnd) || strings.HasPrefix(rest, x.tags.paramEnd) && mayFollow(rest[len(x.tags.paramEnd):], follow) {
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

func (x *xmlCall) finish(cut bool) {
	if !x.live {
		x.p.call(found{x.tool, x.tool.shape(x.ms)})
		return
	}
	x.p.callArgs("}")
	x.p.endCall(cut)
}
