package chattmpl

import (
	"math"
	"math/big"
	"strings"
	"unicode/utf8"
)

// percent is Python's format % value.
func (in *interp) percent(s Str, v Value) (Value, error) {
	if err := in.chargeBytes(len(s.s)); err != nil {
		return nil, err
	}
	p := &percenter{in: in, s: s, b: in.newBuilder(), val: v}
	switch x := v.(type) {
	case *Tuple:
		p.items, p.tuple = x.items, true
	case *Dict, *List, undefined, *dictView, *rangeVal:
		p.mapping = true
	}
	if err := p.run(); err != nil {
		return nil, err
	}
	if !p.mapping && (p.tuple && p.used < len(p.items) || !p.tuple && p.used == 0) {
		return nil, typeErrf("not all arguments converted during string formatting")
	}
	out, err := in.finish(p.b)
	out.markup = s.markup
	return out, err
}

type percenter struct {
	in      *interp
	s       Str
	b       *builder
	val     Value
	items   []Value
	tuple   bool
	mapping bool // a mapping or list: extra arguments are no error
	used    int
}

// next is the next argument of a directive without a name.
func (p *percenter) next() (Value, error) {
	p.used++
	if p.tuple {
		if p.used > len(p.items) {
			return nil, typeErrf("not enough arguments for format string")
		}
		return p.items[p.used-1], nil
	}
	if p.used > 1 {
		return nil, typeErrf("not enough arguments for format string")
	}
	return p.val, nil
}

func (p *percenter) run() error {
	s := p.s.s
	for i := 0; i < len(s); {
		j := strings.IndexByte(s[i:], '%')
		if j < 0 {
			p.b.sub(p.s, i, len(s))
			return nil
		}
		p.b.sub(p.s, i, i+j)
		end, err := p.directive(i + j + 1)
		if err != nil {
			return err
		}
		if p.b.over {
			return limitErrf("a string grew over %d bytes", p.b.max)
		}
		i = end
	}
	return nil
}

// directive formats one argument; i is after the percent sign.
func (p *percenter) directive(i int) (end int, err error) {
	s, start := p.s.s, i
	f := spec{fill: lit(" "), prec: -1}
	var arg Value
	if i < len(s) && s[i] == '(' {
		depth, k := 1, i+1
		for ; k < len(s) && depth > 0; k++ {
			switch s[k] {
			case '(':
				depth++
			case ')':
				depth--
			}
		}
		if depth > 0 {
			return 0, valueErrf("incomplete format key")
		}
		if !p.mapping {
			return 0, typeErrf("format requires a mapping")
		}
		if arg, err = p.in.subscript(p.val, lit(s[i+1:k-1])); err != nil {
			return 0, err
		}
		if arg == nil {
			return 0, &evalError{kind: "KeyError", msg: "'" + s[i+1:k-1] + "'"}
		}
		i = k
	}
	left := false
	for ; i < len(s) && strings.IndexByte("#0- +", s[i]) >= 0; i++ {
		switch s[i] {
		case '#':
			f.alt = true
		case '0':
			f.zeroed = true
		case '-':
			left = true
		case '+':
			f.sign = '+'
		case ' ':
			if f.sign == 0 {
				f.sign = ' '
			}
		}
	}
	if f.width, i, err = p.number(i, &left); err != nil {
		return 0, err
	}
	if i < len(s) && s[i] == '.' {
		var neg bool
		if f.prec, i, err = p.number(i+1, &neg); err != nil {
			return 0, err
		}
		if neg {
			f.prec = 0
		}
	}
	for i < len(s) && strings.IndexByte("hlL", s[i]) >= 0 {
		i++
	}
	if i >= len(s) {
		return 0, valueErrf("incomplete format")
	}
	kind, n := utf8.DecodeRuneInString(s[i:])
	i += n
	if kind == '%' && i == start+1 {
		p.b.lit("%")
		return i, nil
	}
	if arg == nil {
		if arg, err = p.next(); err != nil {
			return 0, err
		}
	}
	text, signLen, err := p.convert(&f, kind, arg)
	if err != nil {
		return 0, err
	}
	if m, ok := arg.(Str); p.s.markup && !(ok && m.markup) {
		text = escapeHTML(text)
	}
	switch {
	case left:
		f.align = '<'
	case f.zeroed && signLen >= 0:
		f.fill, f.align = lit("0"), '='
	}
	p.b.str(f.place(text, '>', max(signLen, 0)))
	return i, nil
}

// number reads digits or an asterisk.
func (p *percenter) number(i int, negative *bool) (n, end int, err error) {
	if i >= len(p.s.s) || p.s.s[i] != '*' {
		return readInt(p.s.s, i)
	}
	v, err := p.next()
	if err != nil {
		return 0, 0, err
	}
	k, ok := asInt(v)
	if !ok {
		return 0, 0, typeErrf("* wants int")
	}
	if k < 0 {
		*negative, k = true, -k
	}
	if k < 0 || k > maxWidth {
		return 0, 0, limitErrf("width or precision in a format is over %d", maxWidth)
	}
	return int(k), i + 1, nil
}

// convert gives the text of an argument and the length of its sign and prefix,
// -1 for text that zeros do not pad.
func (p *percenter) convert(f *spec, kind rune, arg Value) (text Str, signLen int, err error) {
	switch kind {
	case 's', 'r', 'a':
		if kind == 's' {
			text, err = p.in.str(arg)
		} else {
			text, err = p.in.repr(arg)
		}
		if kind == 'a' {
			text = asciiOnly(text)
		}
		if f.prec >= 0 {
			text = text.sub(0, byteAt(text.s, f.prec))
		}
		return text, -1, err
	case 'c':
		if s, ok := arg.(Str); ok && runeLen(s.s) == 1 {
			return s.plain(), -1, nil
		}
		if !isInteger(arg) {
			return Str{}, 0, typeErrf("%%c requires int or char")
		}
		g := spec{kind: 'c', fill: lit(" ")}
		text, err = g.integer(arg)
		return text, -1, err
	case 'd', 'i', 'u', 'x', 'X', 'o':
		return percentInt(f, kind, arg)
	case 'e', 'E', 'f', 'F', 'g', 'G':
		x, ok, err := toFloat(arg)
		if _, isStr := arg.(Str); err != nil || !ok || isStr {
			if err == nil {
				err = typeErrf("must be real number, not %s", arg.typeName())
			}
			return Str{}, 0, err
		}
		sign := f.signOf(math.Signbit(x) && !math.IsNaN(x))
		return lit(sign + floatDigits(math.Abs(x), byte(kind), f.prec, f.alt)), len(sign), nil
	}
	return Str{}, 0, valueErrf("unsupported format character '%c'", kind)
}

func percentInt(f *spec, kind rune, arg Value) (Str, int, error) {
	b, ok := asBig(arg)
	if x, isFloat := arg.(Float); isFloat && strings.ContainsRune("diu", kind) {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return Str{}, 0, valueErrf("cannot convert float NaN or infinity to integer")
		}
		b, ok = asBig(truncFloat(float64(x)))
	}
	if !ok {
		if u, isU := arg.(undefined); isU {
			return Str{}, 0, u.fail()
		}
		return Str{}, 0, typeErrf("%%%c format: a real number is required, not %s", kind, arg.typeName())
	}
	sign := f.signOf(b.Sign() < 0)
	base := 10
	switch kind {
	case 'x', 'X':
		base = 16
	case 'o':
		base = 8
	}
	digits := new(big.Int).Abs(b).Text(base)
	if base == 10 && len(digits) > maxIntDigits {
		return Str{}, 0, valueErrf("exceeds the limit (%d digits) for integer string conversion", maxIntDigits)
	}
	if kind == 'X' {
		digits = strings.ToUpper(digits)
	}
	if f.alt && base != 10 {
		sign += "0" + string(kind)
	}
	if len(digits) < f.prec {
		digits = strings.Repeat("0", f.prec-len(digits)) + digits
	}
	return lit(sign + digits), len(sign), nil
}
