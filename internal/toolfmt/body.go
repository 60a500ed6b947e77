package toolfmt

import "strings"

// status is how far a reader has come.
type status uint8

const (
	more     status = iota // it may be a call: wait
	accepted               // it is
	rejected               // it cannot be
)

// bodyKind is the way in which a body between marks is written.
type bodyKind uint8

const (
	bodyJSON   bodyKind = iota // an object or list
	bodyNamed                  // arguments alone; the name stood before
	bodyXML                    // <function=NAME>…
	bodyInvoke                 // <invoke name="NAME">…
	bodyTags                   // NAME<arg_key>…
	bodyPython                 // NAME(…) or [NAME(…), …]
	bodyGemma                  // call:NAME{…}
)

// head is what the beginning of a body tells.
type head struct {
	kind bodyKind
	at   int       // where the kind's own text begins
	tool *toolInfo // of bodyNamed
}

// lead marks stand before a call inside a section of calls, or before its name.
var leadMarks = []string{
	"<tool_call>", "<｜tool▁call▁begin｜>", "<|tool_call_begin|>", "function<｜tool▁sep｜>", "<|python_start|>", "```json", "```",
}

// maxLead bounds the marks and white space before a call.
const maxLead = 400

// nameEnds may follow a name, before arguments in JSON.
var nameEnds = []string{
	"<｜tool▁sep｜>",
	"<|tool_call_argument_begin|>",
	"<|constrain|>json",
	"<|message|>",
	"[ARGS]",
	"```json",
	"```",
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.' ||
		c == ':' ||
		c == '/'
}

// skipSpace returns the first place at or after i that is no white space.
func skipSpace(s string, i int) int {
	for i < len(s) && isSpace(s[i]) {
		i++
	}
	return i
}

// partial tells whether s ends inside mark: whether it is a proper beginning of it.
func partial(s, mark string) bool { return len(s) < len(mark) && strings.HasPrefix(mark, s) }

// skipMarks goes over white space and any of the marks. ok is false when s ends where a mark may be.
func skipMarks(s string, i int, marks []string) (int, bool) {
	for {
		i = skipSpace(s, i)
		rest, moved := s[i:], false
		for _, m := range marks {
			if strings.HasPrefix(rest, m) {
				i, moved = i+len(m), true
				break
			}
			if partial(rest, m) {
				return i, false
			}
		}
		if !moved {
			return i, true
		}
	}
}

// classify finds out how a body is written, from as little of it as possible. At the end of the text what is
// still open is no call.
func (p *Parser) classify(s string, eof bool) (head, status) {
	wait := more
	if eof {
		wait = rejected
	}
	i, ok := skipMarks(s, 0, leadMarks)
	if i > maxLead {
		return head{}, rejected
	}
	rest := s[i:]
	if !ok && !eof || rest == "" {
		return head{}, wait
	}
	for _, m := range []struct {
		mark string
		kind bodyKind
	}{{"{", bodyJSON}, {"<function=", bodyXML}, {"<function ", bodyXML}, {"<invoke ", bodyInvoke}, {"<｜DSML｜invoke ", bodyInvoke}, {"call:", bodyGemma}} {
		if strings.HasPrefix(rest, m.mark) {
			return head{kind: m.kind, at: i}, accepted
		}
		if partial(rest, m.mark) && !eof {
			return head{}, more
		}
	}
	if rest[0] == '[' {
		k := skipSpace(rest, 1)
		switch {
		case k == len(rest):
			return head{}, wait
		case rest[k] == '{':
			return head{kind: bodyJSON, at: i}, accepted
		case isNameByte(rest[k]):
			return head{kind: bodyPython, at: i}, accepted
		}
		return head{}, rejected
	}
	return p.classifyNamed(s, i, eof)
}

// classifyNamed reads a body that begins with a name.
func (p *Parser) classifyNamed(s string, i int, eof bool) (head, status) {
	wait := more
	if eof {
		wait = rejected
	}
	k := i
	for k < len(s) && isNameByte(s[k]) {
		k++
	}
	if k == i || k-i > 200 {
		return head{}, rejected
	}
	if k == len(s) {
		return head{}, wait
	}
	name := s[i:k]
	if s[k] == '(' {
		return head{kind: bodyPython, at: i}, accepted
	}
	tool := p.tools.resolve(trimCallIndex(name))
	if tool == nil {
		return head{}, rejected
	}
	after := skipSpace(s, k)
	if id := s[after:]; strings.HasPrefix(id, "[CALL_ID]") {
		end := strings.Index(id, "[ARGS]")
		if end < 0 {
			if len(id) > 100 {
				return head{}, rejected
			}
			return head{}, wait
		}
		after += end
	} else if partial(id, "[CALL_ID]") && id != "" && !eof {
		return head{}, more
	}
	for _, m := range []string{"<arg_key>", "</tool_call>"} {
		if rest := s[after:]; strings.HasPrefix(rest, m) {
			return head{kind: bodyTags, at: i, tool: tool}, accepted
		} else if partial(rest, m) && !eof {
			return head{}, more
		}
	}
	after, ok := skipMarks(s, after, nameEnds)
	switch {
	case !ok && !eof || after == len(s):
		return head{}, wait
	case s[after] == '{':
		return head{kind: bodyNamed, at: after, tool: tool}, accepted
	}
	return head{}, rejected
}

// trimCallIndex takes the number off names like "functions.NAME:0".
func trimCallIndex(name string) string {
	i := strings.LastIndexByte(name, ':')
	if i < 0 || i == len(name)-1 || strings.Trim(name[i+1:], "0123456789") != "" {
		return name
	}
	return name[:i]
}

// read reads a whole body of a kind that is not streamed. n bytes of s are its.
func (p *Parser) read(k bodyKind, s string, eof bool) (calls []found, n int, st status) {
	switch k {
	case bodyTags:
		return p.readArgTags(s, eof)
	case bodyPython:
		return p.readPython(s, eof, false)
	case bodyGemma:
		return p.readGemma(s, eof)
	}
	return nil, len(s), rejected
}
