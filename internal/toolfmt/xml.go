package toolfmt

import "strings"

// A tag is what stands between a mark like <parameter and its >.
type tag struct {
	name  string
	flag  string // of the attribute string="…"
	typed bool   // it has that attribute
}

// maxTag bounds a tag, in bytes.
const maxTag = 300

// readTag reads a tag behind its mark, at s[i]: =NAME or name="NAME", with white space and line breaks anywhere.
// Models forget the >; then the tag ends behind the name. known tells names that may be meant. end is where the text
// behind the tag begins.
func readTag(s string, i int, known func(string) bool, eof bool) (t tag, end int, st status) {
	k := strings.IndexAny(s[i:], "<>")
	if k < 0 {
		if k = len(s) - i; k <= maxTag && !eof {
			return t, 0, more
		}
	}
	k = min(k, maxTag)
	body, end := s[i:i+k], i+k
	t, n := parseTag(body, known)
	if end < len(s) && s[end] == '>' {
		if n == len(body) {
			return t, end + 1, accepted
		}
		words := strings.Fields(strings.Trim(body, "= \n\r\t\"'")) // a name in pieces
		for _, sep := range []string{"", "_"} {
			if name := strings.Join(words, sep); known(name) {
				return tag{name: name}, end + 1, accepted
			}
		}
	}
	if end = i + n; end == len(s) || !known(t.name) {
		return t, i + k, rejected // cut inside the tag, or text
	}
	for end < len(s) && (s[end] == ' ' || s[end] == '\t') {
		end++
	}
	return t, end, accepted
}

// parseTag reads a tag's text as far as it can be one: n bytes.
func parseTag(body string, known func(string) bool) (t tag, n int) {
	i := skipSpace(body, 0)
	if i < len(body) && body[i] == '=' {
		t.name, n = tagValue(body, i+1)
	}
	for {
		i = skipSpace(body, n)
		if i == len(body) {
			return t, i
		}
		k := i
		for k < len(body) && isNameByte(body[k]) {
			k++
		}
		word, eq := body[i:k], skipSpace(body, k)
		switch {
		case k > i && eq < len(body) && body[eq] == '=':
			v, end := tagValue(body, eq+1)
			if word == "string" {
				t.flag, t.typed = v, true
			} else if t.name == "" && word == "name" {
				t.name = v
			}
			n = end
		case k > i && t.name == "" && known(word):
			t.name, n = word, k
		default:
			return t, n
		}
	}
}

// tagValue reads what stands behind an equals sign, with or without quotes.
func tagValue(s string, i int) (v string, end int) {
	i = skipSpace(s, i)
	if i < len(s) && (s[i] == '"' || s[i] == '\'') {
		if k := strings.IndexByte(s[i+1:], s[i]); k >= 0 {
			return strings.TrimSpace(s[i+1 : i+1+k]), i + k + 2
		}
	}
	end = i
	for end < len(s) && !isSpace(s[end]) {
		end++
	}
	return strings.Trim(s[i:end], `"'`), end
}

// plainKey tells whether a name that is not declared may be a key: markup is none.
func plainKey(s string) bool { return s != "" && !strings.ContainsAny(s, "<>=\"'/\n\r") }

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
	invokeTags   = tagNames{
		"<invoke ",
		"</invoke>",
		"<parameter",
		"</parameter>",
		[]string{"</minimax:tool_call>", "</function_calls>"},
	}
	dsmlTags = tagNames{
		"<｜DSML｜invoke ",
		"</｜DSML｜invoke>",
		"<｜DSML｜parameter",
		"</｜DSML｜parameter>",
		[]string{"</｜DSML｜function_calls>", "</｜DSML｜tool_calls>"},
	}
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
func (p *Parser) readTagJSON(t *toolInfo, s string, i int, tags tagNames, eof bool) (found, int, status) {
	var r relaxer
	k := i
	for k < len(s) && r.push(s[k]) {
		k++
	}
	if r.state != finished {
		if r.state == failed || eof && (p.cut || !r.finish()) {
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
		case rest == "" && eof && !p.cut && len(ms) > 0:
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
		if m, ok := t.fromText(strings.TrimSpace(key), value); ok {
			ms = put(ms, m)
		}
		i = len(s) - len(tail)
	}
}
