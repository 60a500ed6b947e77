package tool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A text is a file as a model sees it: UTF-8 with \n at the ends of lines. How the file has it is kept, so that bytes
// that no edit touches stay what they were.
type text struct {
	s string

	bom    string // the bytes in front
	utf16  byteOrder
	crlf   bool // all lines end so
	latin1 bool // a byte is a character
}

type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

const utf8BOM = "\xef\xbb\xbf"

// errBinary is returned for files that are no text.
var errBinary = errors.New("it is a binary file")

// damaged + b stands for a byte b that is no UTF-8, in a file that is UTF-8 but for such bytes.
const damaged = 0x10FF00

// decodeText reads a file's bytes.
func decodeText(b []byte) (text, error) {
	var t text
	switch {
	case bytes.HasPrefix(b, []byte(utf8BOM)):
		t.bom, b = utf8BOM, b[3:]
	case bytes.HasPrefix(b, []byte("\xff\xfe")) && len(b)%2 == 0:
		t.bom, t.utf16, b = "\xff\xfe", binary.LittleEndian, b[2:]
	case bytes.HasPrefix(b, []byte("\xfe\xff")) && len(b)%2 == 0:
		t.bom, t.utf16, b = "\xfe\xff", binary.BigEndian, b[2:]
	}
	switch {
	case t.utf16 != nil:
		units := make([]uint16, len(b)/2)
		for i := range units {
			units[i] = t.utf16.Uint16(b[2*i:])
		}
		t.s = string(utf16.Decode(units))
		if back, err := t.encode(); err != nil || !bytes.Equal(back[2:], b) {
			return t, errBinary // halves of pairs would be lost
		}
	case bytes.IndexByte(b, 0) >= 0:
		return t, errBinary
	case utf8.Valid(b):
		t.s = string(b)
	default:
		var good, bad, control int
		for i := 0; i < len(b); {
			r, n := utf8.DecodeRune(b[i:])
			switch {
			case r == utf8.RuneError && n == 1:
				bad++
			case n > 1:
				good++
			case r < ' ' && r != '\n' && r != '\r' && r != '\t' && r != '\f' && r != 0x1b:
				control++
			}
			i += n
		}
		if control > len(b)/20 {
			return t, errBinary
		}
		t.latin1 = good < bad
		var s strings.Builder
		for i := 0; i < len(b); {
			r, n := utf8.DecodeRune(b[i:])
			if t.latin1 {
				r, n = rune(b[i]), 1
			} else if r == utf8.RuneError && n == 1 {
				r = damaged + rune(b[i])
			}
			s.WriteRune(r)
			i += n
		}
		t.s = s.String()
	}
	if n := strings.Count(t.s, "\r\n"); n > 0 && n == strings.Count(t.s, "\n") && n == strings.Count(t.s, "\r") {
		t.crlf, t.s = true, strings.ReplaceAll(t.s, "\r\n", "\n")
	}
	return t, nil
}

// encode returns the bytes of a text that was decoded, and perhaps changed.
func (t text) encode() ([]byte, error) {
	s := t.s
	if t.crlf {
		s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
	}
	out := []byte(t.bom)
	switch {
	case t.utf16 != nil:
		for _, u := range utf16.Encode([]rune(s)) {
			out = t.utf16.AppendUint16(out, u)
		}
	case t.latin1:
		for _, r := range s {
			if r > 0xff {
				return nil, fmt.Errorf("the file is Latin-1, which has no %q: write it another way, or convert the file first", r)
			}
			out = append(out, byte(r))
		}
	case strings.ContainsRune(s, utf8.MaxRune) || strings.IndexFunc(s, isDamaged) >= 0:
		for _, r := range s {
			if isDamaged(r) {
				out = append(out, byte(r-damaged))
			} else {
				out = utf8.AppendRune(out, r)
			}
		}
	default:
		out = append(out, s...)
	}
	return out, nil
}

func isDamaged(r rune) bool { return r >= damaged+0x80 && r <= damaged+0xff }

// with returns a text of other words, kept as this one is.
func (t text) with(s string) text {
	t.s = s
	return t
}

// note says what is unusual about a file; "": nothing.
func (t text) note() string {
	var out []string
	switch {
	case t.utf16 != nil:
		out = append(out, "UTF-16")
	case t.latin1:
		out = append(out, "Latin-1")
	case strings.IndexFunc(t.s, isDamaged) >= 0:
		out = append(out, "some bytes are no UTF-8")
	}
	if t.crlf {
		out = append(out, "CRLF, kept")
	} else if strings.Contains(t.s, "\r\n") {
		out = append(out, "CRLF and LF mixed, kept")
	}
	return strings.Join(out, ", ")
}

// lines splits a text into lines without their ends; an end behind the last one makes no line.
func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}
