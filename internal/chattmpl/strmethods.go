package chattmpl

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// strMethods are the methods of str. Those of a markup string escape the
// strings given to them and return markup.
var strMethods map[string]method

func init() {
	strMethods = map[string]method{
		"upper":      caseMethod("upper", upperStr),
		"lower":      caseMethod("lower", lowerStr),
		"casefold":   caseMethod("casefold", foldStr),
		"title":      caseMethod("title", titleStr),
		"capitalize": caseMethod("capitalize", capitalizeStr),
		"swapcase":   caseMethod("swapcase", swapStr),

		"strip":        stripMethod("strip", true, true),
		"lstrip":       stripMethod("lstrip", true, false),
		"rstrip":       stripMethod("rstrip", false, true),
		"removeprefix": strRemovePrefix,
		"removesuffix": strRemoveSuffix,

		"split":      func(in *interp, v Value, a *args) (Value, error) { return strSplit(in, v.(Str), a, false) },
		"rsplit":     func(in *interp, v Value, a *args) (Value, error) { return strSplit(in, v.(Str), a, true) },
		"splitlines": strSplitLines,
		"partition":  func(in *interp, v Value, a *args) (Value, error) { return strPartition(in, v.(Str), a, false) },
		"rpartition": func(in *interp, v Value, a *args) (Value, error) { return strPartition(in, v.(Str), a, true) },
		"join":       strJoin,
		"replace":    strReplace,

		"startswith": func(in *interp, v Value, a *args) (Value, error) { return strAffix(in, v.(Str), a, "startswith") },
		"endswith":   func(in *interp, v Value, a *args) (Value, error) { return strAffix(in, v.(Str), a, "endswith") },
		"find":       findMethod("find", false, false),
		"rfind":      findMethod("rfind", true, false),
		"index":      findMethod("index", false, true),
		"rindex":     findMethod("rindex", true, true),
		"count":      strCount,

		"center":     padMethod("center"),
		"ljust":      padMethod("ljust"),
		"rjust":      padMethod("rjust"),
		"zfill":      strZfill,
		"expandtabs": strExpandTabs,

		"format":     func(in *interp, v Value, a *args) (Value, error) { return in.format(v.(Str), a) },
		"format_map": strFormatMap,

		"isalnum":      isMethod("isalnum", func(r rune) bool { return isAlpha(r) || isNumeric(r) }),
		"isalpha":      isMethod("isalpha", isAlpha),
		"isdecimal":    isMethod("isdecimal", func(r rune) bool { return unicode.Is(unicode.Nd, r) }),
		"isdigit":      isMethod("isdigit", isDigitRune),
		"isnumeric":    isMethod("isnumeric", isNumeric),
		"isspace":      isMethod("isspace", isSpace),
		"isascii":      allMethod("isascii", func(r rune) bool { return r < utf8.RuneSelf }),
		"isprintable":  allMethod("isprintable", printable),
		"isupper":      strIs("isupper", isUpper),
		"islower":      strIs("islower", isLower),
		"istitle":      strIs("istitle", isTitle),
		"isidentifier": strIs("isidentifier", isIdentifier),
	}
}

// strArg reads a string argument; a markup receiver escapes it.
func strArg(self Str, v Value, what string) (Str, error) {
	s, ok := v.(Str)
	if !ok {
		if u, isU := v.(undefined); isU {
			return Str{}, typeErrf("%s must be str, not %s", what, u.typeName())
		}
		return Str{}, typeErrf("%s must be str, not %s", what, v.typeName())
	}
	if self.markup {
		return escapeHTML(s), nil
	}
	return s, nil
}

func isNone(v Value) bool {
	_, ok := v.(None)
	return v == nil || ok
}

func caseMethod(name string, f func(Str) Str) method {
	return func(in *interp, v Value, a *args) (Value, error) {
		if _, err := a.bind(name); err != nil {
			return nil, err
		}
		s := v.(Str)
		if err := in.chargeBytes(len(s.s)); err != nil {
			return nil, err
		}
		out := f(s)
		out.markup = s.markup
		return out, nil
	}
}

func stripMethod(name string, left, right bool) method {
	return func(in *interp, v Value, a *args) (Value, error) {
		p, err := a.bind(name, "chars?", "/")
		if err != nil {
			return nil, err
		}
		return in.strip(v.(Str), p[0], left, right)
	}
}

func (in *interp) strip(s Str, chars Value, left, right bool) (Value, error) {
	f := isSpace
	if !isNone(chars) {
		set, err := strArg(s, chars, "strip arg")
		if err != nil {
			return nil, err
		}
		if err := in.charge((len(set.s) + 1) * (len(s.s)/64 + 1)); err != nil {
			return nil, err
		}
		f = func(r rune) bool { return strings.ContainsRune(set.s, r) }
	}
	if err := in.chargeBytes(len(s.s)); err != nil {
		return nil, err
	}
	if left {
		s = s.trimLeft(f)
	}
	if right {
		s = s.trimRight(f)
	}
	return s, nil
}

func strRemovePrefix(_ *interp, v Value, a *args) (Value, error) {
	p, err := a.bind("removeprefix", "prefix", "/")
	if err != nil {
		return nil, err
	}
	s := v.(Str)
	x, err := strArg(s, p[0], "prefix")
	if err == nil && strings.HasPrefix(s.s, x.s) {
		s = s.sub(len(x.s), len(s.s))
	}
	return s, err
}

func strRemoveSuffix(_ *interp, v Value, a *args) (Value, error) {
	p, err := a.bind("removesuffix", "suffix", "/")
	if err != nil {
		return nil, err
	}
	s := v.(Str)
	x, err := strArg(s, p[0], "suffix")
	if err == nil && strings.HasSuffix(s.s, x.s) {
		s = s.sub(0, len(s.s)-len(x.s))
	}
	return s, err
}

// strSplit is split and, from the right, rsplit.
func strSplit(in *interp, s Str, a *args, right bool) (Value, error) {
	v, err := a.bind("split", "sep?", "maxsplit?")
	if err != nil {
		return nil, err
	}
	limit := int64(-1)
	if v[1] != nil {
		if limit, err = indexInt(v[1], "maxsplit"); err != nil {
			return nil, err
		}
	}
	if err := in.chargeBytes(len(s.s)); err != nil {
		return nil, err
	}
	var cuts []rng
	if isNone(v[0]) {
		if err := in.charge(stepsPerPart * countFields(s.s)); err != nil {
			return nil, err
		}
		cuts = fields(s.s, limit, right)
	} else {
		sep, ok := v[0].(Str)
		if !ok {
			return nil, typeErrf("must be str or None, not %s", v[0].typeName())
		}
		if sep.s == "" {
			return nil, valueErrf("empty separator")
		}
		if err := in.charge(stepsPerPart * strings.Count(s.s, sep.s)); err != nil {
			return nil, err
		}
		cuts = splitAt(s.s, sep.s, limit, right)
	}
	out := make([]Value, len(cuts))
	for i, c := range cuts {
		out[i] = s.sub(c.lo, c.hi)
	}
	return &List{items: out}, nil
}

func splitAt(s, sep string, limit int64, right bool) []rng {
	var out []rng
	if !right {
		pos := 0
		for limit != 0 {
			i := strings.Index(s[pos:], sep)
			if i < 0 {
				break
			}
			out = append(out, rng{pos, pos + i})
			pos += i + len(sep)
			limit--
		}
		return append(out, rng{pos, len(s)})
	}
	end := len(s)
	for limit != 0 {
		i := strings.LastIndex(s[:end], sep)
		if i < 0 {
			break
		}
		out = append(out, rng{i + len(sep), end})
		end = i
		limit--
	}
	return reversed(append(out, rng{0, end}))
}

func reversed(r []rng) []rng {
	for i, j := 0, len(r)-1; i < j; i, j = i+1, j-1 {
		r[i], r[j] = r[j], r[i]
	}
	return r
}

// fields splits at runs of white space.
func fields(s string, limit int64, right bool) []rng {
	var out []rng
	if !right {
		pos := skipSpace(s, 0)
		for pos < len(s) {
			if limit == 0 {
				return append(out, rng{pos, len(s)})
			}
			end := strings.IndexFunc(s[pos:], isSpace)
			if end < 0 {
				return append(out, rng{pos, len(s)})
			}
			out = append(out, rng{pos, pos + end})
			pos = skipSpace(s, pos+end)
			limit--
		}
		return out
	}
	end := len(strings.TrimRightFunc(s, isSpace))
	for end > 0 {
		if limit == 0 {
			out = append(out, rng{0, end})
			break
		}
		start := strings.LastIndexFunc(s[:end], isSpace)
		if start >= 0 {
			_, n := utf8.DecodeRuneInString(s[start:])
			start += n
		} else {
			start = 0
		}
		out = append(out, rng{start, end})
		end = len(strings.TrimRightFunc(s[:start], isSpace))
		limit--
	}
	return reversed(out)
}

func strSplitLines(in *interp, v Value, a *args) (Value, error) {
	p, err := a.bind("splitlines", "keepends?")
	if err != nil {
		return nil, err
	}
	lines, err := in.lines(v.(Str), p[0] != nil && truth(p[0]))
	if err != nil {
		return nil, err
	}
	l := &List{items: make([]Value, len(lines))}
	for i, line := range lines {
		l.items[i] = line
	}
	return l, nil
}

// stepsPerPart is the charge for each part that a string is cut into, made
// before it is cut.
const stepsPerPart = 4

// lines is splitLines with its cost charged first.
func (in *interp) lines(s Str, keep bool) ([]Str, error) {
	n := 0
	for _, r := range s.s {
		if r >= '\n' && r <= '\r' || r >= 0x1c && r <= 0x1e || r == 0x85 || r == 0x2028 || r == 0x2029 {
			n++
		}
	}
	if err := in.charge(stepsPerPart*n + len(s.s)/bytesPerStep); err != nil {
		return nil, err
	}
	return s.splitLines(keep), nil
}

// countFields is the number of words between white space.
func countFields(s string) int {
	n, inWord := 0, false
	for _, r := range s {
		space := isSpace(r)
		if !space && !inWord {
			n++
		}
		inWord = !space
	}
	return n
}

func strPartition(in *interp, s Str, a *args, right bool) (Value, error) {
	v, err := a.bind("partition", "sep", "/")
	if err != nil {
		return nil, err
	}
	if err := in.chargeBytes(len(s.s)); err != nil {
		return nil, err
	}
	sep, err := strArg(s, v[0], "separator")
	if err != nil {
		return nil, err
	}
	if sep.s == "" {
		return nil, valueErrf("empty separator")
	}
	i := strings.Index(s.s, sep.s)
	if right {
		i = strings.LastIndex(s.s, sep.s)
	}
	none := Str{markup: s.markup}
	if i < 0 {
		if right {
			return &Tuple{items: []Value{none, none, s}}, nil
		}
		return &Tuple{items: []Value{s, none, none}}, nil
	}
	end := i + len(sep.s)
	return &Tuple{items: []Value{s.sub(0, i), s.sub(i, end), s.sub(end, len(s.s))}}, nil
}

func strJoin(in *interp, v Value, a *args) (Value, error) {
	p, err := a.bind("join", "iterable", "/")
	if err != nil {
		return nil, err
	}
	items, err := in.items(p[0])
	if err != nil {
		return nil, err
	}
	s := v.(Str)
	b := in.newBuilder()
	for i, it := range items {
		if i > 0 {
			b.str(s)
		}
		if s.markup {
			t, err := in.str(it)
			if err != nil {
				return nil, err
			}
			if m, ok := it.(Str); ok {
				t.markup = m.markup
			}
			b.str(escapeHTML(t))
			continue
		}
		t, ok := it.(Str)
		if !ok {
			return nil, typeErrf("sequence item %d: expected str instance, %s found", i, it.typeName())
		}
		b.str(t)
	}
	out, err := in.finish(b)
	out.markup = s.markup
	return out, err
}

func strReplace(in *interp, v Value, a *args) (Value, error) {
	p, err := a.bind("replace", "old", "new", "count?", "/")
	if err != nil {
		return nil, err
	}
	s := v.(Str)
	from, err := strArg(s, p[0], "replace() argument 1")
	if err != nil {
		return nil, err
	}
	to, err := strArg(s, p[1], "replace() argument 2")
	if err != nil {
		return nil, err
	}
	out, err := in.replace(s, from, to, p[2])
	out.markup = s.markup
	return out, err
}

func (in *interp) replace(s, from, to Str, count Value) (Str, error) {
	n := int64(-1)
	if count != nil {
		var err error
		if n, err = indexInt(count, "count"); err != nil {
			return Str{}, err
		}
	}
	if err := in.chargeBytes(len(s.s)); err != nil {
		return Str{}, err
	}
	b := in.newBuilder()
	s.replaceInto(b, from.s, to, int(max(min(n, 1<<40), -1)))
	return in.finish(b)
}

// window is the part of a string that start and end arguments select, in bytes.
func window(s string, start, end Value) (lo, hi int, ok bool, err error) {
	n := runeLen(s)
	b := [2]int{0, n}
	for i, v := range []Value{start, end} {
		if isNone(v) {
			continue
		}
		k, err := indexInt(v, "slice index")
		if err != nil {
			return 0, 0, false, err
		}
		if k < 0 {
			k = max(k+int64(n), 0)
		}
		b[i] = int(min(k, int64(n)+1))
	}
	if b[0] > n || b[0] > b[1] {
		return 0, 0, false, nil
	}
	lo = byteAt(s, b[0])
	return lo, max(lo, byteAt(s, min(b[1], n))), true, nil
}

func strAffix(in *interp, s Str, a *args, name string) (Value, error) {
	v, err := a.bind(name, "prefix", "start?", "end?", "/")
	if err != nil {
		return nil, err
	}
	if err := in.chargeBytes(len(s.s)); err != nil {
		return nil, err
	}
	lo, hi, ok, err := window(s.s, v[1], v[2])
	if err != nil {
		return nil, err
	}
	var options []Value
	switch x := v[0].(type) {
	case Str:
		options = []Value{x}
	case *Tuple:
		options = x.items
	default:
		return nil, typeErrf("%s first arg must be str or a tuple of str, not %s", name, v[0].typeName())
	}
	for _, o := range options {
		p, isStr := o.(Str)
		if !isStr {
			return nil, typeErrf("tuple for %s must only contain str, not %s", name, o.typeName())
		}
		if !ok {
			continue
		}
		if name == "startswith" && strings.HasPrefix(s.s[lo:hi], p.s) ||
			name == "endswith" && strings.HasSuffix(s.s[lo:hi], p.s) {
			return Bool(true), nil
		}
	}
	return Bool(false), nil
}

func findMethod(name string, right, fails bool) method {
	return func(in *interp, v Value, a *args) (Value, error) {
		p, err := a.bind(name, "sub", "start?", "end?", "/")
		if err != nil {
			return nil, err
		}
		s := v.(Str).s
		sub, ok := p[0].(Str)
		if !ok {
			return nil, typeErrf("must be str, not %s", p[0].typeName())
		}
		if err := in.chargeBytes(len(s)); err != nil {
			return nil, err
		}
		lo, hi, ok, err := window(s, p[1], p[2])
		if err != nil {
			return nil, err
		}
		i := -1
		if ok {
			if i = strings.Index(s[lo:hi], sub.s); right {
				i = strings.LastIndex(s[lo:hi], sub.s)
			}
		}
		if i < 0 {
			if fails {
				return nil, valueErrf("substring not found")
			}
			return Int(-1), nil
		}
		return Int(runeLen(s[:lo+i])), nil
	}
}

func strCount(in *interp, v Value, a *args) (Value, error) {
	p, err := a.bind("count", "sub", "start?", "end?", "/")
	if err != nil {
		return nil, err
	}
	s := v.(Str).s
	sub, ok := p[0].(Str)
	if !ok {
		return nil, typeErrf("must be str, not %s", p[0].typeName())
	}
	lo, hi, ok, err := window(s, p[1], p[2])
	if err != nil || !ok {
		return Int(0), err
	}
	return Int(strings.Count(s[lo:hi], sub.s)), in.chargeBytes(len(s))
}

// pad writes n copies of a fill string.
func pad(b *builder, fill Str, n int) {
	for i := 0; i < n && !b.over; i++ {
		b.str(fill)
	}
}

func padMethod(name string) method {
	return func(in *interp, v Value, a *args) (Value, error) {
		p, err := a.bind(name, "width", "fillchar?", "/")
		if err != nil {
			return nil, err
		}
		s := v.(Str)
		fill := lit(" ")
		if p[1] != nil {
			if fill, err = strArg(s, p[1], "the fill character"); err != nil {
				return nil, err
			}
			if runeLen(fill.s) != 1 {
				return nil, typeErrf("the fill character must be exactly one character long")
			}
		}
		width, err := indexInt(p[0], "width")
		if err != nil {
			return nil, err
		}
		return in.pad(s, width, fill, name)
	}
}

func (in *interp) pad(s Str, width int64, fill Str, how string) (Value, error) {
	if width > int64(in.lim.StringBytes) {
		return nil, limitErrf("a string grew over %d bytes", in.lim.StringBytes)
	}
	if err := in.chargeBytes(len(s.s)); err != nil {
		return nil, err
	}
	n := int(width) - runeLen(s.s)
	if n <= 0 {
		return s, nil
	}
	left, right := 0, n
	switch how {
	case "rjust":
		left, right = n, 0
	case "center":
		left = n/2 + n&int(width)&1
		right = n - left
	}
	b := in.newBuilder()
	pad(b, fill, left)
	b.str(s)
	pad(b, fill, right)
	out, err := in.finish(b)
	out.markup = s.markup
	return out, err
}

func strZfill(in *interp, v Value, a *args) (Value, error) {
	p, err := a.bind("zfill", "width", "/")
	if err != nil {
		return nil, err
	}
	width, err := indexInt(p[0], "width")
	if err != nil {
		return nil, err
	}
	s := v.(Str)
	sign := 0
	if s.s != "" && (s.s[0] == '+' || s.s[0] == '-') {
		sign = 1
	}
	padded, err := in.pad(s.sub(sign, len(s.s)), width-int64(sign), lit("0"), "rjust")
	if err != nil {
		return nil, err
	}
	out := concat(s.sub(0, sign), padded.(Str))
	out.markup = s.markup
	return out, nil
}

func strExpandTabs(in *interp, v Value, a *args) (Value, error) {
	p, err := a.bind("expandtabs", "tabsize?")
	if err != nil {
		return nil, err
	}
	size := int64(8)
	if p[0] != nil {
		if size, err = indexInt(p[0], "tabsize"); err != nil {
			return nil, err
		}
	}
	s := v.(Str)
	b := in.newBuilder()
	col := int64(0)
	c := taintCursor{r: s.taint}
	for off, r := range s.s {
		t := c.at(off)
		switch r {
		case '\t':
			if size > 0 {
				n := size - col%size
				if n > int64(in.lim.StringBytes) {
					return nil, limitErrf("a string grew over %d bytes", in.lim.StringBytes)
				}
				for i := int64(0); i < n && !b.over; i++ {
					b.mark(" ", t)
				}
				col += n
			}
			continue
		case '\n', '\r':
			col = -1
		}
		col++
		b.rune(r, t)
	}
	return in.finish(b)
}

// ---- character classes

func isAlpha(r rune) bool { return unicode.IsLetter(r) }

func isDigitRune(r rune) bool {
	return unicode.Is(unicode.Nd, r) || unicode.Is(unicode.No, r) && isSuperOrCircled(r)
}

// isSuperOrCircled covers the digits outside Nd: superscripts, subscripts,
// circled and parenthesized digits.
func isSuperOrCircled(r rune) bool {
	switch {
	case r == 0xb2, r == 0xb3, r == 0xb9, r == 0x2070, r >= 0x2074 && r <= 0x2079, r >= 0x2080 && r <= 0x2089,
		r >= 0x2460 && r <= 0x2468, r >= 0x2474 && r <= 0x247c, r >= 0x2488 && r <= 0x2490, r == 0x24ea,
		r >= 0x24f5 && r <= 0x24fd, r == 0x24ff, r >= 0x2776 && r <= 0x277e, r >= 0x2780 && r <= 0x2788,
		r >= 0x278a && r <= 0x2792, r >= 0x1369 && r <= 0x1371, r == 0x19da:
		return true
	}
	return false
}

func isNumeric(r rune) bool {
	return unicode.IsNumber(r) || strings.ContainsRune("一二三四五六七八九十百千万億兆零〇壹貳參肆伍陸柒捌玖拾", r)
}

// isMethod holds for non-empty strings of which every character passes.
func isMethod(name string, f func(rune) bool) method {
	return strIs(name, func(s string) bool {
		return s != "" && strings.IndexFunc(s, func(r rune) bool { return !f(r) }) < 0
	})
}

// allMethod is isMethod with the empty string included.
func allMethod(name string, f func(rune) bool) method {
	return strIs(name, func(s string) bool {
		return strings.IndexFunc(s, func(r rune) bool { return !f(r) }) < 0
	})
}

func strIs(name string, f func(string) bool) method {
	return func(in *interp, v Value, a *args) (Value, error) {
		if _, err := a.bind(name); err != nil {
			return nil, err
		}
		s := v.(Str).s
		return Bool(f(s)), in.chargeBytes(len(s))
	}
}

func isCased(r rune) bool { return unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r) }

func isUpper(s string) bool {
	cased := false
	for _, r := range s {
		if unicode.IsLower(r) || unicode.IsTitle(r) {
			return false
		}
		cased = cased || unicode.IsUpper(r)
	}
	return cased
}

func isLower(s string) bool {
	cased := false
	for _, r := range s {
		if unicode.IsUpper(r) || unicode.IsTitle(r) {
			return false
		}
		cased = cased || unicode.IsLower(r)
	}
	return cased
}

func isTitle(s string) bool {
	cased, prev := false, false
	for _, r := range s {
		switch {
		case unicode.IsUpper(r), unicode.IsTitle(r):
			if prev {
				return false
			}
			cased, prev = true, true
		case unicode.IsLower(r):
			if !prev {
				return false
			}
			cased = true
		default:
			prev = false
		}
	}
	return cased
}

func isIdentifier(s string) bool {
	for i, r := range s {
		start := r == '_' || unicode.IsLetter(r) || unicode.Is(unicode.Nl, r)
		if !start && (i == 0 || !unicode.In(r, unicode.Nd, unicode.Mn, unicode.Mc, unicode.Pc)) {
			return false
		}
	}
	return s != ""
}
