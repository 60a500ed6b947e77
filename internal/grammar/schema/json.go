// Package schema turns JSON Schema into a normal form: for each place of a document, which JSON values may stand
// there, as languages of numbers and strings and as shapes of arrays and objects whose members are places again. Every
// keyword is either taken into account exactly or refused by name and path. It knows no tokens and no automata that
// read documents; package grammar makes those of its result.
package schema

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// kind is the type of a JSON value.
type kind uint8

const (
	null kind = iota
	boolean
	number
	text
	array
	object
)

// A value is a JSON value that keeps the order of keys and the spelling of numbers.
type value struct {
	kind  kind
	truth bool
	str   string // text, or the spelling of a number
	items []*value
	keys  []string
	index map[string]int // key → place in items, for objects
}

func (v *value) get(key string) *value {
	if v.kind != object {
		return nil
	}
	if i, ok := v.index[key]; ok {
		return v.items[i]
	}
	return nil
}

const maxNesting = 500

// elementMark begins what stands for an element of an array in a parser's path.
const elementMark = "\x00"

type jsonParser struct {
	in    string
	at    int
	depth int
	path  []string // to the value that is being read: keys, and numbers of elements behind elementMark
}

func parseJSON(doc []byte) (*value, error) {
	p := &jsonParser{in: string(doc)}
	if !utf8.ValidString(p.in) {
		return nil, fmt.Errorf("not UTF-8")
	}
	v, err := p.value()
	if err != nil {
		return nil, err
	}
	if p.space(); p.at < len(p.in) {
		return nil, p.errorf("text after the value")
	}
	return v, nil
}

func (p *jsonParser) errorf(format string, args ...any) error {
	return fmt.Errorf("not JSON at byte %d: "+format, append([]any{p.at}, args...)...)
}

func (p *jsonParser) space() {
	for p.at < len(p.in) && strings.IndexByte(" \t\r\n", p.in[p.at]) >= 0 {
		p.at++
	}
}

func (p *jsonParser) value() (*value, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, p.errorf("nested more than %d deep", maxNesting)
	}
	defer func() { p.depth-- }()
	p.space()
	if p.at >= len(p.in) {
		return nil, p.errorf("it ends early")
	}
	switch c := p.in[p.at]; {
	case c == '{':
		return p.object()
	case c == '[':
		return p.array()
	case c == '"':
		s, err := p.text()
		return &value{kind: text, str: s}, err
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	case strings.HasPrefix(p.in[p.at:], "null"):
		p.at += 4
		return &value{kind: null}, nil
	case strings.HasPrefix(p.in[p.at:], "true"):
		p.at += 4
		return &value{kind: boolean, truth: true}, nil
	case strings.HasPrefix(p.in[p.at:], "false"):
		p.at += 5
		return &value{kind: boolean}, nil
	}
	return nil, p.errorf("no value")
}

func (p *jsonParser) number() (*value, error) {
	from := p.at
	for p.at < len(p.in) && strings.IndexByte("+-.eE0123456789", p.in[p.at]) >= 0 {
		p.at++
	}
	s := p.in[from:p.at]
	digits := strings.TrimPrefix(s, "-")
	if _, err := strconv.ParseFloat(s, 64); err != nil && !strings.Contains(err.Error(), "range") ||
		len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' || strings.HasPrefix(digits, ".") ||
		strings.HasSuffix(digits, ".") || strings.Contains(s, ".e") || strings.Contains(s, ".E") || s[0] == '+' {
		return nil, p.errorf("no number: %.40s", s)
	}
	return &value{kind: number, str: s}, nil
}

func (p *jsonParser) text() (string, error) {
	p.at++
	var b strings.Builder
	for p.at < len(p.in) {
		c := p.in[p.at]
		switch {
		case c == '"':
			p.at++
			return b.String(), nil
		case c < 0x20:
			return "", p.errorf("control character in a string")
		case c != '\\':
			b.WriteByte(c)
			p.at++
		default:
			if err := p.escape(&b); err != nil {
				return "", err
			}
		}
	}
	return "", p.errorf("a string does not end")
}

func (p *jsonParser) escape(b *strings.Builder) error {
	if p.at+1 >= len(p.in) {
		return p.errorf("a string does not end")
	}
	c := p.in[p.at+1]
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		b.WriteByte("\"\\/\b\f\n\r\t"[i])
		p.at += 2
		return nil
	}
	unit := func() (rune, bool) {
		if p.at+6 > len(p.in) || p.in[p.at] != '\\' || p.in[p.at+1] != 'u' {
			return 0, false
		}
		v, err := strconv.ParseUint(p.in[p.at+2:p.at+6], 16, 32)
		if err != nil {
			return 0, false
		}
		p.at += 6
		return rune(v), true
	}
	r, ok := unit()
	if !ok {
		return p.errorf("unknown escape")
	}
	if utf16.IsSurrogate(r) {
		lo, _ := unit()
		pair := utf16.DecodeRune(r, lo)
		if pair == utf8.RuneError {
			return p.half(r)
		}
		r = pair
	}
	b.WriteRune(r)
	return nil
}

// half is the error of a string with half of a surrogate pair: no text has it, and what stands in its place elsewhere,
// U+FFFD, is another string.
func (p *jsonParser) half(r rune) error {
	e := &Error{
		Keyword: "schema",
		Reason:  fmt.Sprintf(`\u%04x is half of a surrogate pair, which stands for no character`, r),
		Invalid: true,
	}
	for i := len(p.path) - 1; i >= 0; i-- {
		if !strings.HasPrefix(p.path[i], elementMark) {
			e.Keyword = p.path[i]
			for _, key := range p.path[:i] {
				e.Path += "/" + strings.NewReplacer(elementMark, "", "~", "~0", "/", "~1").Replace(key)
			}
			break
		}
	}
	return e
}

func (p *jsonParser) array() (*value, error) {
	v := &value{kind: array}
	p.at++
	if p.space(); p.at < len(p.in) && p.in[p.at] == ']' {
		p.at++
		return v, nil
	}
	for {
		p.path = append(p.path, elementMark+strconv.Itoa(len(v.items)))
		item, err := p.value()
		p.path = p.path[:len(p.path)-1]
		if err != nil {
			return nil, err
		}
		v.items = append(v.items, item)
		end, err := p.separator(']')
		if end || err != nil {
			return v, err
		}
	}
}

func (p *jsonParser) separator(end byte) (bool, error) {
	p.space()
	if p.at < len(p.in) {
		p.at++
		switch p.in[p.at-1] {
		case end:
			return true, nil
		case ',':
			return false, nil
		}
		p.at--
	}
	return false, p.errorf("neither , nor %c", end)
}

func (p *jsonParser) object() (*value, error) {
	v := &value{kind: object, index: map[string]int{}}
	p.at++
	if p.space(); p.at < len(p.in) && p.in[p.at] == '}' {
		p.at++
		return v, nil
	}
	for {
		if p.space(); p.at >= len(p.in) || p.in[p.at] != '"' {
			return nil, p.errorf("no key")
		}
		key, err := p.text()
		if err != nil {
			return nil, err
		}
		if p.space(); p.at >= len(p.in) || p.in[p.at] != ':' {
			return nil, p.errorf("no colon")
		}
		p.at++
		p.path = append(p.path, key)
		item, err := p.value()
		p.path = p.path[:len(p.path)-1]
		if err != nil {
			return nil, err
		}
		if i, ok := v.index[key]; ok {
			v.items[i] = item // the last one counts, as in every JSON library
		} else {
			v.index[key] = len(v.items)
			v.keys, v.items = append(v.keys, key), append(v.items, item)
		}
		end, err := p.separator('}')
		if end || err != nil {
			return v, err
		}
	}
}

func makeObject(pairs ...any) *value {
	v := &value{kind: object, index: map[string]int{}}
	for i := 0; i < len(pairs); i += 2 {
		v.index[pairs[i].(string)] = len(v.items)
		v.keys, v.items = append(v.keys, pairs[i].(string)), append(v.items, pairs[i+1].(*value))
	}
	return v
}
