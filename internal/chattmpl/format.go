package chattmpl

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// spec is a format specification, [[fill]align][sign][#][0][width][,][.prec][type].
type spec struct {
	fill   Str
	align  byte // < > ^ =, 0 for the type's own
	sign   byte // + - or space, 0 for -
	alt    bool
	width  int
	group  byte // , or _
	prec   int  // -1 if not given
	kind   byte // 0 if not given
	zeroed bool
}

// maxWidth bounds widths and precisions in formats.
const maxWidth = 1 << 16

func readInt(s string, i int) (n, end int, err error) {
	for end = i; end < len(s) && isDigit(s[end]); end++ {
		if n = n*10 + int(s[end]-'0'); n > maxWidth {
			return 0, 0, limitErrf("width or precision in a format is over %d", maxWidth)
		}
	}
	return n, end, nil
}

func parseSpec(text Str) (spec, error) {
	s := text.s
	f := spec{fill: lit(" "), prec: -1}
	i := 0
	if _, n := utf8.DecodeRuneInString(s); n > 0 && n < len(s) && strings.IndexByte("<>=^", s[n]) >= 0 {
		f.fill, f.align, i = text.sub(0, n).plain(), s[n], n+1
	} else if s != "" && strings.IndexByte("<>=^", s[0]) >= 0 {
		f.align, i = s[0], 1
	}
	if i < len(s) && strings.IndexByte("+- ", s[i]) >= 0 {
		f.sign = s[i]
		i++
	}
	if i < len(s) && s[i] == '#' {
		f.alt = true
		i++
	}
	if i < len(s) && s[i] == '0' {
		f.zeroed = true
		if f.align == 0 {
			f.fill, f.align = lit("0"), '='
		}
		i++
	}
	var err error
	if f.width, i, err = readInt(s, i); err != nil {
		return f, err
	}
	if i < len(s) && (s[i] == ',' || s[i] == '_') {
		f.group = s[i]
		i++
	}
	if i < len(s) && s[i] == '.' {
		start := i + 1
		if f.prec, i, err = readInt(s, start); err != nil {
			return f, err
		}
		if i == start {
			return f, valueErrf("Format specifier missing precision")
		}
	}
	if i < len(s) {
		f.kind = s[i]
		i++
	}
	if i < len(s) {
		return f, valueErrf("Invalid format specifier '%s'", s)
	}
	return f, nil
}

// place pads text to the width; digits start after the sign and prefix for '='.
func (f *spec) place(s Str, def byte, signLen int) Str {
	n := f.width - runeLen(s.s)
	if n <= 0 {
		return s
	}
	align := f.align
	if align == 0 {
		align = def
	}
	fill := func(k int) Str { return fully(strings.Repeat(f.fill.s, k), f.fill.tainted()) }
	switch align {
	case '<':
		return concat(s, fill(n))
	case '^':
		return concat(fill(n/2), s, fill(n-n/2))
	case '=':
		return concat(s.sub(0, signLen), fill(n), s.sub(signLen, len(s.s)))
	}
	return concat(fill(n), s)
}

// formatValue is Python's format(value, spec).
func (in *interp) formatValue(v Value, specText Str) (Str, error) {
	if specText.s == "" {
		return in.str(v)
	}
	f, err := parseSpec(specText)
	if err != nil {
		return Str{}, err
	}
	switch x := v.(type) {
	case Str:
		if f.kind != 0 && f.kind != 's' {
			return Str{}, valueErrf("Unknown format code '%c' for object of type 'str'", f.kind)
		}
		if f.sign != 0 || f.align == '=' && !f.zeroed {
			return Str{}, valueErrf("Sign or '=' alignment not allowed in string format specifier")
		}
		if f.align == '=' {
			f.align = '<'
		}
		s := x.plain()
		if f.prec >= 0 {
			s = s.sub(0, byteAt(s.s, f.prec))
		}
		return f.place(s, '<', 0), in.chargeBytes(len(s.s) + f.width)
	case Bool, Int, BigInt:
		return f.integer(v)
	case Float:
		return f.float(float64(x))
	}
	return Str{}, typeErrf("unsupported format string passed to %s.__format__", v.typeName())
}

func (f *spec) integer(v Value) (Str, error) {
	b, _ := asBig(v)
	base, prefix := 10, ""
	switch f.kind {
	case 0, 'd', 'n':
	case 'b':
		base, prefix = 2, "0b"
	case 'o':
		base, prefix = 8, "0o"
	case 'x':
		base, prefix = 16, "0x"
	case 'X':
		base, prefix = 16, "0X"
	case 'c':
		if !b.IsInt64() || b.Sign() < 0 || b.Int64() > utf8.MaxRune {
			return Str{}, &evalError{kind: "OverflowError", msg: "%c arg not in range(0x110000)"}
		}
		// A character made from a number could be any: it counts as input.
		return f.place(inputStr(string(rune(b.Int64()))), '<', 0), nil
	case 'e', 'E', 'f', 'F', 'g', 'G', '%':
		x, _ := asFloat(v)
		return f.float(x)
	default:
		return Str{}, valueErrf("Unknown format code '%c' for object of type '%s'", f.kind, v.typeName())
	}
	if f.prec >= 0 {
		return Str{}, valueErrf("Precision not allowed in integer format specifier")
	}
	digits := new(big.Int).Abs(b).Text(base)
	if base == 10 && len(digits) > maxIntDigits {
		return Str{}, valueErrf("exceeds the limit (%d digits) for integer string conversion", maxIntDigits)
	}
	if f.kind == 'X' {
		digits = strings.ToUpper(digits)
	}
	if !f.alt {
		prefix = ""
	}
	every := 3
	if base != 10 {
		every = 4
	}
	return f.number(f.signOf(b.Sign() < 0)+prefix, digits, "", every), nil
}

func (f *spec) signOf(negative bool) string {
	switch {
	case negative:
		return "-"
	case f.sign == '+' || f.sign == ' ':
		return string(f.sign)
	}
	return ""
}

// number puts sign, grouped digits and the rest together and pads them.
func (f *spec) number(sign, digits, rest string, every int) Str {
	if f.group != 0 {
		room := 0
		if f.align == '=' && f.fill.s == "0" {
			room = f.width - len(sign) - len(rest)
		}
		digits = groupDigits(digits, f.group, every, room)
	}
	return f.place(lit(sign+digits+rest), '>', len(sign))
}

// groupDigits separates digits, and fills up to room with grouped zeros.
func groupDigits(digits string, sep byte, every, room int) string {
	for room > 0 && len(digits)+(len(digits)-1)/every < room {
		digits = "0" + digits
	}
	var b strings.Builder
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%every == 0 {
			b.WriteByte(sep)
		}
		b.WriteByte(digits[i])
	}
	return b.String()
}

func (f *spec) float(x float64) (Str, error) {
	neg := math.Signbit(x)
	var body string
	kind := f.kind
	switch kind {
	case 0, 'e', 'E', 'f', 'F', 'g', 'G', 'n', '%':
	default:
		return Str{}, valueErrf("Unknown format code '%c' for object of type 'float'", kind)
	}
	abs := math.Abs(x)
	if math.IsNaN(x) {
		neg = false
	}
	body = floatDigits(abs, kind, f.prec, f.alt)
	intPart, rest := body, ""
	if i := strings.IndexFunc(body, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		intPart, rest = body[:i], body[i:]
	}
	return f.number(f.signOf(neg), intPart, rest, 3), nil
}

// floatDigits formats a non-negative float as format() and % do.
func floatDigits(x float64, kind byte, prec int, alt bool) string {
	upper := kind == 'E' || kind == 'F' || kind == 'G'
	fix := func(s string) string {
		if upper {
			return strings.ToUpper(s)
		}
		return s
	}
	if math.IsInf(x, 0) || math.IsNaN(x) {
		s := fix(floatRepr(x))
		if kind == '%' {
			s += "%"
		}
		return s
	}
	switch kind {
	case 'e', 'E', 'f', 'F', '%':
		if prec < 0 {
			prec = 6
		}
		c := byte('f')
		if kind == 'e' || kind == 'E' {
			c = 'e'
		}
		if kind == '%' {
			return strconv.FormatFloat(x*100, 'f', prec, 64) + "%"
		}
		return fix(strconv.FormatFloat(x, c, prec, 64))
	case 0:
		if prec < 0 {
			return floatRepr(x)
		}
	}
	if prec < 0 {
		prec = 6
	}
	if prec == 0 {
		prec = 1
	}
	s := strconv.FormatFloat(x, 'e', prec-1, 64)
	exp, _ := strconv.Atoi(s[strings.IndexByte(s, 'e')+1:])
	limit := prec
	if kind == 0 {
		limit = prec - 1 // keeps one digit after the point
	}
	mant, tail := s[:strings.IndexByte(s, 'e')], s[strings.IndexByte(s, 'e'):]
	if exp >= -4 && exp < limit {
		mant, tail = strconv.FormatFloat(x, 'f', max(prec-1-exp, 0), 64), ""
	}
	if !alt && strings.Contains(mant, ".") {
		mant = strings.TrimRight(strings.TrimRight(mant, "0"), ".")
	}
	if kind == 0 && tail == "" && !strings.Contains(mant, ".") {
		mant += ".0"
	}
	return fix(mant + tail)
}

// ---- str.format

// formatter fills the replacement fields of one format string.
type formatter struct {
	in   *interp
	a    *args
	kw   Value // where named fields are looked up
	auto int   // next automatic index, -1 once explicit ones were used
	out  *builder
}

func (in *interp) format(s Str, a *args) (Value, error) {
	d := &Dict{}
	for _, kv := range a.kw {
		if err := d.set(lit(kv.Key), kv.Value); err != nil {
			return nil, err
		}
	}
	return in.vformat(s, a, d)
}

func strFormatMap(in *interp, v Value, a *args) (Value, error) {
	p, err := a.bind("format_map", "mapping", "/")
	if err != nil {
		return nil, err
	}
	return in.vformat(v.(Str), &args{}, p[0])
}

func (in *interp) vformat(s Str, a *args, kw Value) (Value, error) {
	f := &formatter{in: in, a: a, kw: kw, out: in.newBuilder()}
	if err := f.run(s, 2, f.out); err != nil {
		return nil, err
	}
	out, err := in.finish(f.out)
	out.markup = s.markup
	return out, err
}

// run formats s into b; fields may hold fields in their specification once.
func (f *formatter) run(s Str, depth int, b *builder) error {
	if depth == 0 {
		return valueErrf("Max string recursion exceeded")
	}
	if err := f.in.chargeBytes(len(s.s)); err != nil {
		return err
	}
	for i := 0; i < len(s.s); {
		j := strings.IndexAny(s.s[i:], "{}")
		if j < 0 {
			b.sub(s, i, len(s.s))
			return nil
		}
		b.sub(s, i, i+j)
		i += j
		if i+1 < len(s.s) && s.s[i+1] == s.s[i] {
			b.sub(s, i, i+1)
			i += 2
			continue
		}
		if s.s[i] == '}' {
			return valueErrf("Single '}' encountered in format string")
		}
		end := matchBrace(s.s, i)
		if end < 0 {
			return valueErrf("expected '}' before end of string")
		}
		if err := f.field(s.sub(i+1, end), depth, b, s.markup); err != nil {
			return err
		}
		i = end + 1
	}
	return nil
}

// matchBrace finds the brace that closes the one at i.
func matchBrace(s string, i int) int {
	depth, bracket := 0, false
	for k := i; k < len(s); k++ {
		switch s[k] {
		case '[':
			bracket = depth == 1
		case ']':
			bracket = false
		case '{':
			if !bracket {
				depth++
			}
		case '}':
			if !bracket {
				if depth--; depth == 0 {
					return k
				}
			}
		}
	}
	return -1
}

func (f *formatter) field(s Str, depth int, b *builder, markup bool) error {
	name, conv, specText := s.s, byte(0), Str{}
	cut := -1
	for k, inBracket := 0, false; k < len(s.s) && cut < 0; k++ {
		switch s.s[k] {
		case '[':
			inBracket = true
		case ']':
			inBracket = false
		case ':', '!':
			if !inBracket {
				cut = k
			}
		}
	}
	if cut >= 0 {
		name = s.s[:cut]
		rest := cut
		if s.s[cut] == '!' {
			if cut+1 >= len(s.s) {
				return valueErrf("unmatched '{' in format spec")
			}
			conv, rest = s.s[cut+1], cut+2
			if rest < len(s.s) && s.s[rest] != ':' {
				return valueErrf("expected ':' after conversion specifier")
			}
		}
		if rest < len(s.s) {
			specText = s.sub(rest+1, len(s.s))
		}
	}
	v, err := f.lookup(name)
	if err != nil {
		return err
	}
	wasMarkup := false
	if m, ok := v.(Str); ok {
		wasMarkup = m.markup
	}
	switch conv {
	case 0:
	case 's':
		v, err = f.in.str(v)
	case 'r':
		v, err = f.in.repr(v)
	case 'a':
		v, err = f.in.repr(v)
		if err == nil {
			v = asciiOnly(v.(Str))
		}
	default:
		return valueErrf("Unknown conversion specifier %c", conv)
	}
	if err != nil {
		return err
	}
	sb := f.in.newBuilder()
	if err := f.run(specText, depth-1, sb); specText.s != "" && err != nil {
		return err
	}
	sp, err := f.in.finish(sb)
	if err != nil {
		return err
	}
	text, err := f.in.formatValue(v, sp)
	if err != nil {
		return err
	}
	if markup && !wasMarkup {
		text = escapeHTML(text)
	}
	b.str(text)
	if b.over {
		return limitErrf("a string grew over %d bytes", b.max)
	}
	return nil
}

// asciiOnly escapes everything outside ASCII.
func asciiOnly(s Str) Str {
	return mapRunes(s, func(b *builder, _ int, r rune, t bool) {
		switch {
		case r < utf8.RuneSelf:
			b.rune(r, t)
		case r < 0x100:
			b.mark(`\x`+hex(r, 2), t)
		case r < 0x10000:
			b.mark(`\u`+hex(r, 4), t)
		default:
			b.mark(`\U`+hex(r, 8), t)
		}
	})
}

// lookup resolves a field name such as 0, name, a.b or a[key].
func (f *formatter) lookup(name string) (Value, error) {
	end := strings.IndexAny(name, ".[")
	first := name
	if end >= 0 {
		first = name[:end]
	}
	v, err := f.first(first)
	if err != nil {
		return nil, err
	}
	for rest := name[len(first):]; rest != ""; {
		if rest[0] == '.' {
			n := strings.IndexAny(rest[1:], ".[")
			if n < 0 {
				n = len(rest) - 1
			}
			if n == 0 {
				return nil, valueErrf("Empty attribute in format string")
			}
			if v, err = f.in.getAttr(v, rest[1:1+n]); err != nil {
				return nil, err
			}
			rest = rest[1+n:]
			continue
		}
		if rest[0] != '[' {
			return nil, valueErrf("Only '.' or '[' may follow ']' in format field specifier")
		}
		n := strings.IndexByte(rest, ']')
		if n < 0 {
			return nil, valueErrf("Missing ']' in format string")
		}
		if n == 1 {
			return nil, valueErrf("Empty attribute in format string")
		}
		var key Value = lit(rest[1:n])
		if k, err := strconv.ParseInt(rest[1:n], 10, 64); err == nil && k >= 0 && rest[1] != '+' {
			key = Int(k)
		}
		if v, err = f.in.getItem(v, key); err != nil {
			return nil, err
		}
		rest = rest[n+1:]
	}
	return v, nil
}

func (f *formatter) first(name string) (Value, error) {
	idx := -1
	if name == "" {
		if f.auto < 0 {
			return nil, valueErrf("cannot switch from manual field specification to automatic field numbering")
		}
		idx = f.auto
		f.auto++
	} else if n, err := strconv.ParseUint(name, 10, 31); err == nil {
		if f.auto > 0 {
			return nil, valueErrf("cannot switch from automatic field numbering to manual field specification")
		}
		f.auto, idx = -1, int(n)
	}
	if idx >= 0 {
		if idx >= len(f.a.pos) {
			return nil, &evalError{
				kind: "IndexError",
				msg:  fmt.Sprintf("Replacement index %d out of range for positional args tuple", idx),
			}
		}
		return f.a.pos[idx], nil
	}
	v, err := f.in.subscript(f.kw, lit(name))
	if err != nil {
		return nil, err
	}
	if v == nil {
		return nil, &evalError{kind: "KeyError", msg: "'" + name + "'"}
	}
	return v, nil
}
