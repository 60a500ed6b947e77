package schema

import (
	"fmt"
	"io"
	"strings"

	"github.com/baleenrun/baleen/internal/grammar/regular"
)

// Spell writes a JSON value without blanks, with the fewest escapes and with plain numbers.
func Spell(doc []byte, w *strings.Builder) error {
	v, err := parseJSON(doc)
	if err != nil {
		return err
	}
	spell(v, w)
	return nil
}

func spell(v *value, w *strings.Builder) {
	switch v.kind {
	case null:
		w.WriteString("null")
	case boolean:
		fmt.Fprint(w, v.truth)
	case number:
		if d, err := regular.ParseDecimal(v.str); err == nil {
			w.WriteString(d.String())
		} else {
			w.WriteString(v.str)
		}
	case text:
		spellText(v.str, w)
	case array:
		w.WriteByte('[')
		for i, x := range v.items {
			if i > 0 {
				w.WriteByte(',')
			}
			spell(x, w)
		}
		w.WriteByte(']')
	case object:
		w.WriteByte('{')
		for i, k := range v.keys {
			if i > 0 {
				w.WriteByte(',')
			}
			spellText(k, w)
			w.WriteByte(':')
			spell(v.items[i], w)
		}
		w.WriteByte('}')
	}
}

func spellText(s string, w io.StringWriter) {
	const special = "\"\\\b\f\n\r\t"
	w.WriteString(`"`)
	for _, r := range s {
		switch i := strings.IndexRune(special, r); {
		case i >= 0:
			w.WriteString(`\` + `"\bfnrt`[i:i+1])
		case r < 0x20:
			w.WriteString(fmt.Sprintf(`\u%04x`, r))
		default:
			w.WriteString(string(r))
		}
	}
	w.WriteString(`"`)
}
