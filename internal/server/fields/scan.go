package fields

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"github.com/baleenrun/baleen/internal/chat"
)

// Limits bound how many small things a request may hold, so that it is refused, by the field that has too many of them,
// before anything is built: a byte of JSON can cost a hundred bytes of memory.
type Limits struct {
	// Tokens is the most tokens that a model takes. Each message, part, id and tool is at least one, so no list needs
	// more elements. 0: 131,072.
	Tokens int
}

const (
	usualTokens  = 1 << 17
	leastEntries = 1 << 12 // lists may be as long as this, however short contexts are
	leastValues  = 1 << 18
	mostValues   = 1 << 22
	mapEntries   = 1 << 16 // of objects: a logit bias may ban a whole alphabet
)

func (l Limits) entries() int {
	if l.Tokens <= 0 {
		return usualTokens
	}
	return max(l.Tokens, leastEntries)
}

// values bounds all values of a request together: a conversation that fills a context has some fields for each message,
// and a request may have 64 prompts that fill one.
func (l Limits) values() int { return min(max(72*l.entries(), leastValues), mostValues) }

// Bytes bounds a text that is put together of parts that lie here already: more than any context's tokens stand for.
func (l Limits) Bytes() int { return 128 * l.entries() }

// each calls f for the elements of an array, or for the members of an object with their names as they are written,
// until it returns false. raw must be valid JSON. What f gets are parts of raw.
func each(raw []byte, f func(name, value []byte) bool) {
	i := space(raw, 0)
	if i == len(raw) || raw[i] != '[' && raw[i] != '{' {
		return
	}
	object := raw[i] == '{'
	for i = space(raw, i+1); i < len(raw) && raw[i] != ']' && raw[i] != '}'; {
		var name []byte
		if object {
			end := skip(raw, i)
			name = raw[i:end]
			i = space(raw, space(raw, end)+1) // behind the colon
		}
		end := skip(raw, i)
		if !f(name, raw[i:end]) {
			return
		}
		if i = space(raw, end); i < len(raw) && raw[i] == ',' {
			i = space(raw, i+1)
		}
	}
}

// space returns the place of the next byte that is no white space.
func space(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\r' || raw[i] == '\t') {
		i++
	}
	return i
}

// skip returns the end of the value that begins at i.
func skip(raw []byte, i int) int {
	depth := 0
	for i < len(raw) {
		switch raw[i] {
		case '"':
			i = skipString(raw, i)
		case '[', '{':
			depth++
			i++
		case ']', '}':
			depth--
			i++
		case ',', ':', ' ', '\n', '\r', '\t':
			i++
			continue
		default:
			for i < len(raw) && !endsWord(raw[i]) {
				i++
			}
		}
		if depth <= 0 {
			return i
		}
	}
	return len(raw)
}

// endsWord reports whether a byte stands behind a number or a word.
func endsWord(c byte) bool {
	switch c {
	case ',', ':', ']', '}', ' ', '\n', '\r', '\t':
		return true
	}
	return false
}

func skipString(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}

// count returns the number of an array's elements or an object's members, or more than most where there are more.
func count(raw []byte, most int) (n int) {
	each(raw, func(_, _ []byte) bool {
		n++
		return n <= most
	})
	return n
}

// values counts the values inside a value, or more than most where there are more.
func values(raw []byte, most int) int {
	n := 1
	for i := 0; i < len(raw) && n <= most; i++ {
		switch raw[i] {
		case '"':
			i = skipString(raw, i) - 1
		case ',', '[', '{':
			n++
		}
	}
	return n
}

// members returns an object's members in order. Their values are parts of the object's text.
func (v Value) members() ([]member, error) {
	if v.Kind() != "object" {
		return nil, v.wrong("an object")
	}
	most := max(v.limits.entries(), mapEntries)
	if n := count(v.Raw, most); n > most {
		return nil, chat.Invalidf(v.Path, "it has more than %d members", most)
	}
	var out []member
	each(v.Raw, func(name, value []byte) bool {
		text := unquote(name)
		out = append(out, member{text, Value{value, v.path(text), v.notes, v.limits}})
		return true
	})
	return out, nil
}

// unquote returns the text of a JSON string.
func unquote(raw []byte) string {
	if len(raw) >= 2 && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// Items returns an array's elements, none of another value. They are parts of its text: what is kept for longer than
// the request must be copied.
func (v Value) Items() []Value {
	if v.Kind() != "array" {
		return nil
	}
	out := make([]Value, 0, count(v.Raw, math.MaxInt))
	each(v.Raw, func(_, value []byte) bool {
		out = append(out, Value{value, v.Path + "[" + strconv.Itoa(len(out)) + "]", v.notes, v.limits})
		return true
	})
	return out
}

// First returns an array's first element.
func (v Value) First() (first Value, ok bool) {
	if v.Kind() != "array" {
		return Value{}, false
	}
	each(v.Raw, func(_, value []byte) bool {
		first, ok = Value{value, v.Path + "[0]", v.notes, v.limits}, true
		return false
	})
	return first, ok
}

// Int32s returns the whole numbers of an array, which Type has checked.
func (v Value) Int32s() []int32 {
	if v.Kind() != "array" {
		return nil
	}
	out := make([]int32, 0, count(v.Raw, math.MaxInt))
	each(v.Raw, func(_, value []byte) bool {
		n, _ := Value{Raw: value}.integer()
		out = append(out, int32(n))
		return true
	})
	return out
}

// Get returns an object's member; of several with one name the last, and none where that is null.
func (v Value) Get(name string) (found Value, ok bool) {
	if v.Kind() != "object" {
		return Value{}, false
	}
	each(v.Raw, func(n, value []byte) bool {
		if len(n) == len(name)+2 && string(n[1:len(n)-1]) == name ||
			bytes.IndexByte(n, '\\') >= 0 && unquote(n) == name {
			found, ok = Value{value, v.path(name), v.notes, v.limits}, true
		}
		return true
	})
	return found, ok && !found.IsNull()
}

// pathTo is the path of the value inside raw that byte number at is in, such as "messages[1].content"; for one in a
// name, that of the object.
func pathTo(raw []byte, at int) (path string) {
	for found := true; found; {
		n := 0
		found = false
		each(raw, func(name, value []byte) bool {
			from := cap(raw) - cap(value) // it is a part of raw
			if found = at >= from && at < from+len(value); !found {
				n++
				return from <= at
			}
			switch {
			case name == nil:
				path += "[" + strconv.Itoa(n) + "]"
			case path == "":
				path = unquote(name)
			default:
				path += "." + unquote(name)
			}
			raw, at = value, at-from
			return false
		})
	}
	return path
}
