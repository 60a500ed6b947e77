package chat

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// LoneSurrogate returns where in a JSON text an escape stands that is half of a surrogate pair, and the escape; at is
// -1 where there is none. Decoders put U+FFFD in its place: a model would read another text than the one that was
// sent.
func LoneSurrogate(text []byte) (at int, escape string) {
	unit := func(i int) rune { // of \uXXXX at i
		if i+6 > len(text) || text[i] != '\\' || text[i+1] != 'u' {
			return 0
		}
		n, err := strconv.ParseUint(string(text[i+2:i+6]), 16, 16)
		if err != nil {
			return 0
		}
		return rune(n)
	}
	for i := 0; ; i++ {
		k := bytes.IndexByte(text[i:], '\\')
		if k < 0 {
			return -1, ""
		}
		i += k
		if r := unit(i); utf16.IsSurrogate(r) {
			if utf16.DecodeRune(r, unit(i+6)) == utf8.RuneError {
				return i, string(text[i : i+6])
			}
			i += 6
		}
		if i++; i >= len(text) { // what is escaped begins nothing
			return -1, ""
		}
	}
}

// HalfCharacter is the refusal of a field's text for what LoneSurrogate found.
func HalfCharacter(field, escape string) error {
	return Invalidf(field, "%s is half of a surrogate pair, which stands for no character: "+
		"the text was cut inside of one, leave it out", escape)
}

// checkSurrogates refuses JSON texts inside a request that decoders would change.
func (r *Request) checkSurrogates() error {
	for i := range r.Tools {
		if at, escape := LoneSurrogate(r.Tools[i].Parameters); at >= 0 {
			field := r.Tools[i].Field
			if field == "" {
				field = fmt.Sprintf("tools[%d]", i)
			}
			return HalfCharacter(field, escape)
		}
	}
	for i := range r.Messages {
		for j := range r.Messages[i].Calls {
			if at, escape := LoneSurrogate([]byte(r.Messages[i].Calls[j].Arguments)); at >= 0 {
				field := r.Messages[i].Field
				if field == "" {
					field = fmt.Sprintf("messages[%d]", i)
				}
				return HalfCharacter(fmt.Sprintf("%s.tool_calls[%d]", field, j), escape)
			}
		}
	}
	return nil
}
