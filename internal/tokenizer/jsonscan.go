package tokenizer

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonScanner walks the large parts of a tokenizer.json, the vocabulary and
// the merges, without building them as values first.
type jsonScanner struct {
	s   []byte
	i   int
	buf []byte // unescaped string
}

func (j *jsonScanner) fail(want string) error {
	return fmt.Errorf("byte %d: want %s", j.i, want)
}

func (j *jsonScanner) peek() byte {
	for j.i < len(j.s) {
		switch c := j.s[j.i]; c {
		case ' ', '\t', '\r', '\n':
			j.i++
		default:
			return c
		}
	}
	return 0
}

// take consumes c if it comes next.
func (j *jsonScanner) take(c byte) bool {
	if j.peek() != c {
		return false
	}
	j.i++
	return true
}

// str reads a string. The result is valid until the next call.
func (j *jsonScanner) str() ([]byte, error) {
	if !j.take('"') {
		return nil, j.fail("a string")
	}
	start := j.i
	for j.i < len(j.s) {
		switch c := j.s[j.i]; {
		case c == '"':
			j.i++
			return j.s[start : j.i-1], nil
		case c == '\\':
			return j.escaped(start)
		case c < 0x20:
			return nil, j.fail("no control character in a string")
		}
		j.i++
	}
	return nil, j.fail("the end of a string")
}

func (j *jsonScanner) escaped(start int) ([]byte, error) {
	j.buf = append(j.buf[:0], j.s[start:j.i]...)
	for j.i < len(j.s) {
		c := j.s[j.i]
		j.i++
		switch {
		case c == '"':
			return j.buf, nil
		case c < 0x20:
			return nil, j.fail("no control character in a string")
		case c != '\\':
			j.buf = append(j.buf, c)
			continue
		}
		if j.i == len(j.s) {
			break
		}
		c = j.s[j.i]
		j.i++
		switch c {
		case '"', '\\', '/':
			j.buf = append(j.buf, c)
		case 'b':
			j.buf = append(j.buf, '\b')
		case 'f':
			j.buf = append(j.buf, '\f')
		case 'n':
			j.buf = append(j.buf, '\n')
		case 'r':
			j.buf = append(j.buf, '\r')
		case 't':
			j.buf = append(j.buf, '\t')
		case 'u':
			r, ok := j.hex4()
			if !ok {
				return nil, j.fail("four hexadecimal digits")
			}
			if utf16.IsSurrogate(r) {
				r = j.lowSurrogate(r)
			}
			j.buf = utf8.AppendRune(j.buf, r)
		default:
			return nil, j.fail("an escape")
		}
	}
	return nil, j.fail("the end of a string")
}

func (j *jsonScanner) lowSurrogate(high rune) rune {
	if j.i+1 < len(j.s) && j.s[j.i] == '\\' && j.s[j.i+1] == 'u' {
		back := j.i
		j.i += 2
		if low, ok := j.hex4(); ok {
			if r := utf16.DecodeRune(high, low); r != utf8.RuneError {
				return r
			}
		}
		j.i = back
	}
	return utf8.RuneError
}

func (j *jsonScanner) hex4() (rune, bool) {
	if j.i+4 > len(j.s) {
		return 0, false
	}
	r, err := strconv.ParseUint(string(j.s[j.i:j.i+4]), 16, 32)
	j.i += 4
	return rune(r), err == nil
}

// integer reads a non-negative integer.
func (j *jsonScanner) integer() (int, error) {
	j.peek()
	n, start := 0, j.i
	for j.i < len(j.s) && j.s[j.i] >= '0' && j.s[j.i] <= '9' && n < 1<<40 {
		n = n*10 + int(j.s[j.i]-'0')
		j.i++
	}
	if start == j.i {
		return 0, j.fail("an integer")
	}
	return n, nil
}

// raw skips one value and returns its text.
func (j *jsonScanner) raw() ([]byte, error) {
	c := j.peek()
	start, depth := j.i, 0
	if c == '"' {
		_, err := j.str()
		return j.s[start:j.i], err
	}
	for j.i < len(j.s) {
		switch c := j.s[j.i]; c {
		case '"':
			if depth == 0 {
				return nil, j.fail("a value")
			}
			if _, err := j.str(); err != nil {
				return nil, err
			}
			continue
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth == 0 {
				if j.i == start {
					return nil, j.fail("a value")
				}
				return j.s[start:j.i], nil
			}
			if c != ',' {
				if depth--; depth == 0 {
					j.i++
					return j.s[start:j.i], nil
				}
			}
		}
		j.i++
	}
	if depth > 0 || j.i == start {
		return nil, j.fail("the end of a value")
	}
	return j.s[start:j.i], nil
}

// object calls field for each key; field consumes the value.
func (j *jsonScanner) object(field func(key []byte) error) error {
	if !j.take('{') {
		return j.fail("an object")
	}
	if j.take('}') {
		return nil
	}
	for {
		key, err := j.str()
		if err != nil {
			return err
		}
		if !j.take(':') {
			return j.fail("a colon")
		}
		if err := field(key); err != nil {
			return err
		}
		if j.take('}') {
			return nil
		}
		if !j.take(',') {
			return j.fail("a comma or }")
		}
	}
}

// array calls element for each element; element consumes it.
func (j *jsonScanner) array(element func() error) error {
	if !j.take('[') {
		return j.fail("an array")
	}
	if j.take(']') {
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		if j.take(']') {
			return nil
		}
		if !j.take(',') {
			return j.fail("a comma or ]")
		}
	}
}

// rawObject splits an object into its fields.
func rawObject(s []byte) (map[string]json.RawMessage, error) {
	j := &jsonScanner{s: s}
	out := map[string]json.RawMessage{}
	err := j.object(func(key []byte) error {
		name := string(key)
		v, err := j.raw()
		out[name] = v
		return err
	})
	if err == nil && j.peek() != 0 {
		err = j.fail("the end")
	}
	return out, err
}
