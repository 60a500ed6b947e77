package chattmpl

import (
	"math"
	"strconv"
	"strings"
	"unicode"
)

// str is Python's str(): the text that printing a value writes.
func (in *interp) str(v Value) (Str, error) {
	switch x := v.(type) {
	case Str:
		return x.plain(), nil
	case undefined:
		return Str{}, nil
	case Int:
		return lit(strconv.FormatInt(int64(x), 10)), nil
	}
	return in.repr(v)
}

// repr is Python's repr().
func (in *interp) repr(v Value) (Str, error) {
	b := in.newBuilder()
	if err := in.reprTo(b, v); err != nil {
		return Str{}, err
	}
	return in.finish(b)
}

func (in *interp) reprTo(b *builder, v Value) error {
	if err := in.step(); err != nil {
		return err
	}
	if b.over {
		return limitErrf("a string grew over %d bytes", b.max)
	}
	switch x := v.(type) {
	case None:
		b.lit("None")
	case Bool:
		if x {
			b.lit("True")
		} else {
			b.lit("False")
		}
	case Int:
		b.lit(strconv.FormatInt(int64(x), 10))
	case BigInt:
		s, err := bigText(x)
		if err != nil {
			return err
		}
		b.lit(s)
	case Float:
		b.lit(floatRepr(float64(x)))
	case Str:
		if err := in.chargeBytes(len(x.s)); err != nil {
			return err
		}
		if x.markup {
			b.lit("Markup(")
		}
		reprStr(b, x)
		if x.markup {
			b.lit(")")
		}
	case undefined:
		b.lit("Undefined")
	case *List:
		return in.reprItems(b, "[", x.items, "]")
	case *Tuple:
		if len(x.items) == 1 {
			return in.reprItems(b, "(", x.items, ",)")
		}
		return in.reprItems(b, "(", x.items, ")")
	case *Dict:
		return in.reprDict(b, x)
	case *dictView:
		items, err := in.items(x)
		if err != nil {
			return err
		}
		return in.reprItems(b, "dict_"+x.kind+"([", items, "])")
	case *rangeVal:
		b.lit("range(" + strconv.FormatInt(x.start, 10) + ", " + strconv.FormatInt(x.stop, 10))
		if x.step != 1 {
			b.lit(", " + strconv.FormatInt(x.step, 10))
		}
		b.lit(")")
	case *namespace:
		b.lit("<Namespace ")
		if err := in.reprDict(b, &x.attrs); err != nil {
			return err
		}
		b.lit(">")
	case *loopCtx:
		s, err := x.repr()
		if err != nil {
			return err
		}
		b.lit(s)
	case *macro:
		b.lit(x.repr())
	default:
		b.lit("<" + v.typeName() + " object>")
	}
	return nil
}

func bigText(x BigInt) (string, error) {
	s := x.v.String()
	if len(strings.TrimPrefix(s, "-")) > maxIntDigits {
		return "", valueErrf("exceeds the limit (%d digits) for integer string conversion", maxIntDigits)
	}
	return s, nil
}

func (in *interp) reprItems(b *builder, open string, items []Value, end string) error {
	if err := in.down(); err != nil {
		return err
	}
	defer in.up()
	b.lit(open)
	for i, it := range items {
		if i > 0 {
			b.lit(", ")
		}
		if err := in.reprTo(b, it); err != nil {
			return err
		}
	}
	b.lit(end)
	return nil
}

func (in *interp) reprDict(b *builder, d *Dict) error {
	if err := in.down(); err != nil {
		return err
	}
	defer in.up()
	b.lit("{")
	for i, e := range d.entries {
		if i > 0 {
			b.lit(", ")
		}
		if err := in.reprTo(b, e.key); err != nil {
			return err
		}
		b.lit(": ")
		if err := in.reprTo(b, e.val); err != nil {
			return err
		}
	}
	b.lit("}")
	return nil
}

// reprStr writes a string literal: single quotes unless only they occur inside.
func reprStr(b *builder, s Str) {
	quote := byte('\'')
	if strings.Contains(s.s, "'") && !strings.Contains(s.s, "\"") {
		quote = '"'
	}
	b.lit(string(quote))
	c := taintCursor{r: s.taint}
	for off, r := range s.s {
		t := c.at(off)
		switch {
		case r == rune(quote) || r == '\\':
			b.mark("\\"+string(r), t)
		case r == '\n':
			b.mark(`\n`, t)
		case r == '\r':
			b.mark(`\r`, t)
		case r == '\t':
			b.mark(`\t`, t)
		case printable(r):
			b.rune(r, t)
		case r < 0x100:
			b.mark(`\x`+hex(r, 2), t)
		case r < 0x10000:
			b.mark(`\u`+hex(r, 4), t)
		default:
			b.mark(`\U`+hex(r, 8), t)
		}
	}
	b.lit(string(quote))
}

// printable is Python's str.isprintable of one character.
func printable(r rune) bool {
	if r < 0x7f {
		return r >= 0x20
	}
	return unicode.IsPrint(r) && !unicode.In(r, unicode.Zs)
}

func hex(r rune, width int) string {
	s := strconv.FormatInt(int64(r), 16)
	return strings.Repeat("0", max(width-len(s), 0)) + s
}

// floatRepr is the shortest text that reads back as the same double.
func floatRepr(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	s := strconv.FormatFloat(f, 'e', -1, 64)
	exp, _ := strconv.Atoi(s[strings.IndexByte(s, 'e')+1:])
	if exp < -4 || exp >= 16 {
		return s
	}
	s = strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
