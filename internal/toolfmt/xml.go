package toolfmt

import "strings"

// attribute returns the value behind NAME= in a tag's text, with or without quotes.
func attribute(tag, name string) (string, bool) {
	i := strings.Index(tag, name+"=")
	if i < 0 {
		return "", false
	}
	v := tag[i+len(name)+1:]
	if v != "" && (v[0] == '"' || v[0] == '\'') {
		end := strings.IndexByte(v[1:], v[0])
		if end < 0 {
			return "", false
		}
		return v[1 : 1+end], true
	}
	if end := strings.IndexAny(v, " >"); end >= 0 {
		v = v[:end]
	}
	return v, v != ""
}

// trimLines takes one line break off each end: the format puts it there.
func trimLines(v string) string {
	v = strings.TrimPrefix(strings.TrimPrefix(v, "\r"), "\n")
	return strings.TrimSuffix(strings.TrimSuffix(v, "\n"), "\r")
}

// tagNames are the spellings of one XML-like form.
type tagNames struct {
	call, callEnd   string
	param, paramEnd string
	ends            []string // other marks before which the call may end
}

var (
	functionTags = tagNames{"<function", "</function>", "<parameter", "</parameter>", []string{"</tool_call>"}}
	paramTags    = tagNames{"<function", "</function>", "<param ", "</param>", []string{"</tool_call>"}}
	invokeTags   = tagNames{"<invoke ", "</invoke>", "<parameter ", "</parameter>", []string{"</minimax:tool_call>", "</function_calls>"}}
	dsmlTags     = tagNames{"<｜DSML｜invoke ", "</｜DSML｜invoke>", "<｜DSML｜parameter ", "</｜DSML｜parameter>", []string{"</｜DSML｜function_calls>", "</｜DSML｜tool_calls>"}}
)

// put adds a member; one that repeats a key takes its place.
func put(ms []member, m member) []member {
	for i := range ms {
		if ms[i].key == m.key {
			ms[i] = m
			return ms
		}
	}
	return append(ms, m)
}

// readTagJSON reads arguments in JSON between the call's tags.
func readTagJSON(t *toolInfo, s string, i int, tags tagNames, eof bool) (found, int, status) {
	var r relaxer
	k := i
	for k < len(s) && r.push(s[k]) {
		k++
	}
	if r.state != finished {
		if r.state == failed || eof && !r.finish() {
			return found{}, k, rejected
		}
		if !eof {
			return found{}, len(s), more
		}
	}
	args, ok := t.arguments(strings.TrimSpace(string(r.out)))
	if !ok {
		return found{}, k, rejected
	}
	end := skipSpace(s, k)
	switch {
	case strings.HasPrefix(s[end:], tags.callEnd):
		k = end + len(tags.callEnd)
	case partial(s[end:], tags.callEnd) && !eof:
		return found{}, len(s), more
	}
	return found{t, args}, k, accepted
}

// relaxAny reads any relaxed JSON value, scalars too.
func relaxAny(s string) (string, bool) {
	v, ok := relax("[" + s + "]")
	if !ok || len(v) < 2 {
		return "", false
	}
	v = strings.TrimSpace(v[1 : len(v)-1])
	return v, v != "" && validJSON(v)
}

// valueEnd finds where a value ends: at the closing tag that another tag of the call follows, for code may
// hold such a tag itself. It returns where the text goes on behind it, too.
func valueEnd(s string, from int, tags tagNames, eof bool) (end, next int, st status) {
	follow := append([]string{tags.param, tags.callEnd}, tags.ends...)
	for at := from; ; {
		i := strings.Index(s[at:], tags.paramEnd)
		if i < 0 {
			break
		}
		end, next = at+i, at+i+len(tags.paramEnd)
		rest := s[skipSpace(s, next):]
		if rest == "" && eof {
			return end, next, accepted
		}
		for _, f := range follow {
			if strings.HasPrefix(rest, f) {
				return end, next, accepted
			}
			if partial(rest, f) && !eof {
				return 0, 0, more
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
		if i := strings.Index(s[from:], "\n"+f); i >= 0 && (best < 0 || i < best) {
			best = i
		}
	}
	if best < 0 {
		return 0, 0, rejected
	}
	return from + best, from + best, accepted
}

// readArgTags reads NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>…
func (p *Parser) readArgTags(s string, eof bool) ([]found, int, status) {
	k := 0
	for k < len(s) && isNameByte(s[k]) {
		k++
	}
	t := p.tools.resolve(trimCallIndex(s[:k]))
	if t == nil {
		return nil, len(s), rejected
	}
	const keyOpen, keyEnd, valOpen, valEnd, end = "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "</tool_call>"
	var ms []member
	for i := k; ; {
		i = skipSpace(s, i)
		rest := s[i:]
		switch {
		case strings.HasPrefix(rest, end):
			return []found{{t, t.shape(ms)}}, i, accepted // the mark itself is the block's
		case rest == "" && eof && len(ms) > 0:
			return []found{{t, t.shape(ms)}}, i, accepted
		case (partial(rest, end) || partial(rest, keyOpen)) && !eof:
			return nil, len(s), more
		case !strings.HasPrefix(rest, keyOpen):
			return nil, i, rejected
		}
		key, after, ok := strings.Cut(rest[len(keyOpen):], keyEnd)
		if ok {
			after = after[skipSpace(after, 0):]
			if !strings.HasPrefix(after, valOpen) && !(partial(after, valOpen) && !eof) {
				return nil, i + len(rest) - len(after), rejected
			}
		}
		value, tail, closed := strings.Cut(strings.TrimPrefix(after, valOpen), valEnd)
		if !ok || !closed {
			if eof {
				return nil, len(s), rejected
			}
			return nil, len(s), more
		}
		ms = put(ms, t.fromText(strings.TrimSpace(key), value))
		i = len(s) - len(tail)
	}
}
