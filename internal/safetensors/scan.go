package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// scanner reads the small part of JSON that headers and indexes use, in one pass over bytes that stay where they are.
// The standard decoder would let duplicate names through, and is slow on headers of many megabytes.
type scanner struct {
	b   []byte
	off int
}

func (s *scanner) errorf(format string, args ...any) error {
	return fmt.Errorf("at byte %d: %w", s.off, fmt.Errorf(format, args...))
}

func (s *scanner) space() {
	for s.off < len(s.b) {
		switch s.b[s.off] {
		case ' ', '\t', '\n', '\r':
			s.off++
		default:
			return
		}
	}
}

// next skips space and returns the next byte without taking it; 0 at the end.
func (s *scanner) next() byte {
	s.space()
	if s.off == len(s.b) {
		return 0
	}
	return s.b[s.off]
}

// expect takes the byte c.
func (s *scanner) expect(c byte) error {
	if got := s.next(); got != c || s.off == len(s.b) {
		if s.off == len(s.b) {
			return s.errorf("the text ends where %q is expected", c)
		}
		return s.errorf("%q where %q is expected", got, c)
	}
	s.off++
	return nil
}

// end checks that nothing but space follows.
func (s *scanner) end() error {
	if s.space(); s.off != len(s.b) {
		return s.errorf("text after the end of the object")
	}
	return nil
}

// object reads an object; member reads the value of each name.
func (s *scanner) object(member func(name string) error) error {
	if err := s.expect('{'); err != nil {
		return err
	}
	if s.next() == '}' {
		s.off++
		return nil
	}
	for {
		name, err := s.str()
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		if err := member(name); err != nil {
			return err
		}
		if s.next() != ',' {
			return s.expect('}')
		}
		s.off++
	}
}

// array reads an array; element reads each value.
func (s *scanner) array(element func() error) error {
	if err := s.expect('['); err != nil {
		return err
	}
	if s.next() == ']' {
		s.off++
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		if s.next() != ',' {
			return s.expect(']')
		}
		s.off++
	}
}

// str reads a string.
func (s *scanner) str() (string, error) {
	if err := s.expect('"'); err != nil {
		return "", err
	}
	start, escaped := s.off, false
	for ; s.off < len(s.b); s.off++ {
		switch c := s.b[s.off]; {
		case c == '"':
			raw := s.b[start:s.off]
			s.off++
			return s.unquote(raw, escaped)
		case c == '\\':
			escaped = true
			s.off++
		case c < ' ':
			return "", s.errorf("a control character in a string")
		}
	}
	s.off = len(s.b)
	return "", s.errorf("a string does not end")
}

func (s *scanner) unquote(raw []byte, escaped bool) (string, error) {
	if !utf8.Valid(raw) {
		return "", s.errorf("a string is not UTF-8")
	}
	if !escaped {
		return string(raw), nil
	}
	quoted := bytes.Join([][]byte{nil, raw, nil}, []byte{'"'})
	var out string
	if err := json.Unmarshal(quoted, &out); err != nil {
		return "", s.errorf("%w", err)
	}
	return out, nil
}

// ints reads an array of at most limit sizes.
func (s *scanner) ints(limit int) ([]int, error) {
	out := []int{}
	err := s.array(func() error {
		if len(out) == limit {
			return s.errorf("more than %d numbers", limit)
		}
		s.space()
		start := s.off
		for s.off < len(s.b) && s.b[s.off] >= '0' && s.b[s.off] <= '9' {
			s.off++
		}
		n, err := parseInt(s.b[start:s.off])
		if err != nil {
			return s.errorf("%w", err)
		}
		out = append(out, n)
		return nil
	})
	return out, err
}

// stringMap reads an object of strings without duplicate names.
func (s *scanner) stringMap() (map[string]string, error) {
	out := make(map[string]string)
	err := s.object(func(name string) error {
		if _, ok := out[name]; ok {
			return s.errorf("%q is there twice", name)
		}
		value, err := s.str()
		out[name] = value
		return err
	})
	return out, err
}

// skip passes over any value.
func (s *scanner) skip(depth int) error {
	if depth > 32 {
		return errors.New("values are nested more than 32 deep")
	}
	switch c := s.next(); c {
	case '{':
		return s.object(func(string) error { return s.skip(depth + 1) })
	case '[':
		return s.array(func() error { return s.skip(depth + 1) })
	case '"':
		_, err := s.str()
		return err
	}
	start := s.off
	for s.off < len(s.b) && !bytes.ContainsRune([]byte(" \t\r\n,]}"), rune(s.b[s.off])) {
		s.off++
	}
	if !json.Valid(s.b[start:s.off]) {
		return s.errorf("%q is not a value", s.b[start:s.off])
	}
	return nil
}
