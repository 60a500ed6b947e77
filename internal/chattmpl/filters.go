package chattmpl

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

type filterFunc func(in *interp, x Value, a *args) (Value, error)

// filterTable is filled in init because filters like map look filters up.
var filterTable map[string]filterFunc

func init() {
	filterTable = map[string]filterFunc{
		"abs": filterAbs, "attr": filterAttr, "batch": filterBatch, "capitalize": textFilter("capitalize", capitalizeStr),
		"center": filterCenter, "count": filterLength, "d": filterDefault, "default": filterDefault,
		"dictsort": filterDictSort, "e": filterEscape, "escape": filterEscape, "filesizeformat": filterFileSize,
		"first": filterFirst, "float": filterFloat, "forceescape": filterForceEscape, "format": filterFormat,
		"groupby": filterGroupBy, "indent": filterIndent, "int": filterInt, "items": filterItems, "join": filterJoin,
		"last": filterLast, "length": filterLength, "list": filterList, "lower": textFilter("lower", lowerStr),
		"map": filterMap, "max": filterMax, "min": filterMin, "pprint": filterPprint, "random": filterRandom,
		"reject": selector("reject", false, false), "rejectattr": selector("rejectattr", true, false),
		"replace": filterReplace, "reverse": filterReverse, "round": filterRound, "safe": filterSafe,
		"select": selector("select", false, true), "selectattr": selector("selectattr", true, true),
		"slice": filterSlice, "sort": filterSort, "string": filterString, "striptags": filterStripTags,
		"sum": filterSum, "title": textFilter("title", titleFilter), "tojson": filterToJSON, "trim": filterTrim,
		"truncate": filterTruncate, "unique": filterUnique, "upper": textFilter("upper", upperStr),
		"urlencode": filterURLEncode, "wordcount": filterWordCount, "wordwrap": filterWordWrap, "xmlattr": filterXMLAttr,
	}
}

// soft is a value as text, with markup kept.
func (in *interp) soft(v Value) (Str, error) {
	if s, ok := v.(Str); ok {
		return s, nil
	}
	return in.str(v)
}

func textFilter(name string, f func(Str) Str) filterFunc {
	return func(in *interp, x Value, a *args) (Value, error) {
		if _, err := a.bind(name); err != nil {
			return nil, err
		}
		s, err := in.soft(x)
		if err != nil {
			return nil, err
		}
		out := f(s)
		out.markup = s.markup
		return out, in.chargeBytes(len(s.s))
	}
}

func filterAbs(in *interp, x Value, a *args) (Value, error) {
	if _, err := a.bind("abs"); err != nil {
		return nil, err
	}
	switch v := x.(type) {
	case Float:
		return Float(math.Abs(float64(v))), nil
	case undefined:
		return nil, typeErrf("bad operand type for abs(): 'Undefined'")
	}
	if b, ok := asBig(x); ok {
		return normInt(new(big.Int).Abs(b)), nil
	}
	return nil, typeErrf("bad operand type for abs(): '%s'", x.typeName())
}

func filterAttr(in *interp, x Value, a *args) (Value, error) {
	v, err := a.bind("attr", "name")
	if err != nil {
		return nil, err
	}
	name, ok := v[0].(Str)
	if !ok {
		return nil, typeErrf("attribute name must be string, not '%s'", v[0].typeName())
	}
	at, err := in.pythonAttr(x, name.s)
	if err != nil {
		return nil, err
	}
	if at == nil {
		return undefined{owner: ownerName(x), name: "'" + name.s + "'"}, nil
	}
	return in.getAttr(x, name.s)
}

func filterCenter(in *interp, x Value, a *args) (Value, error) {
	v, err := a.bind("center", "width?")
	if err != nil {
		return nil, err
	}
	width := int64(80)
	if v[0] != nil {
		if width, err = indexInt(v[0], "width"); err != nil {
			return nil, err
		}
	}
	s, err := in.soft(x)
	if err != nil {
		return nil, err
	}
	return in.pad(s, width, lit(" "), "center")
}

func filterLength(in *interp, x Value, a *args) (Value, error) {
	if _, err := a.bind("length"); err != nil {
		return nil, err
	}
	if n, ok := lengthOf(x); ok {
		return Int(n), in.chargeText(x)
	}
	if l, ok := x.(*loopCtx); ok {
		n, err := l.len()
		return Int(n), err
	}
	return nil, typeErrf("object of type '%s' has no len()", x.typeName())
}

func filterDefault(in *interp, x Value, a *args) (Value, error) {
	v, err := a.bind("default", "default_value?", "boolean?")
	if err != nil {
		return nil, err
	}
	_, missing := x.(undefined)
	if missing || v[1] != nil && truth(v[1]) && !truth(x) {
		if v[0] == nil {
			return lit(""), nil
		}
		return v[0], nil
	}
	return x, nil
}

func filterEscape(in *interp, x Value, a *args) (Value, error) {
	if _, err := a.bind("escape", "/"); err != nil {
		return nil, err
	}
	s, err := in.soft(x)
	if err != nil {
		return nil, err
	}
	return escapeHTML(s), in.chargeBytes(len(s.s))
}

func filterForceEscape(in *interp, x Value, a *args) (Value, error) {
	if _, err := a.bind("forceescape"); err != nil {
		return nil, err
	}
	s, err := in.str(x)
	if err != nil {
		return nil, err
	}
	return escapeHTML(s), in.chargeBytes(len(s.s))
}

func filterSafe(in *interp, x Value, a *args) (Value, error) {
	if _, err := a.bind("safe"); err != nil {
		return nil, err
	}
	s, err := in.str(x)
	return s.asMarkup(), err
}

func filterString(in *interp, x Value, a *args) (Value, error) {
	if _, err := a.bind("string"); err != nil {
		return nil, err
	}
	return in.soft(x)
}

func filterFormat(in *interp, x Value, a *args) (Value, error) {
	s, err := in.soft(x)
	if err != nil {
		return nil, err
	}
	if len(a.pos) > 0 && len(a.kw) > 0 {
		return nil, &evalError{
			kind: "FilterArgumentError",
			msg:  "can't handle positional and keyword arguments at the same time",
		}
	}
	if len(a.kw) > 0 {
		d := &Dict{}
		for _, kv := range a.kw {
			if err := d.set(lit(kv.Key), kv.Value); err != nil {
				return nil, err
			}
		}
		return in.percent(s, d)
	}
	return in.percent(s, &Tuple{items: a.pos})
}

func filterIndent(in *interp, x Value, a *args) (Value, error) {
	v, err := a.bind("indent", "width?", "first?", "blank?")
	if err != nil {
		return nil, err
	}
	s, ok := x.(Str)
	if !ok {
		if u, isU := x.(undefined); isU {
			return nil, u.fail()
		}
		return nil, typeErrf("unsupported operand type(s) for +=: '%s' and 'str'", x.typeName())
	}
	indent := lit("    ")
	if v[0] != nil {
		if w, isStr := v[0].(Str); isStr {
			indent = w
		} else {
			n, err := indexInt(v[0], "width")
			if err != nil {
				return nil, err
			}
			if n > maxIndent {
				return nil, limitErrf("indent %d is over %d", n, maxIndent)
			}
			indent = lit(strings.Repeat(" ", int(max(n, 0))))
		}
	}
	first := v[1] != nil && truth(v[1])
	blank := v[2] != nil && truth(v[2])
	b := in.newBuilder()
	lines, err := in.lines(concat(s, lit("\n")), false)
	if err != nil {
		return nil, err
	}
	for i, line := range lines {
		if i > 0 {
			b.lit("\n")
		}
		if i == 0 && first || i > 0 && (blank || line.s != "") {
			b.str(indent)
		}
		b.str(line)
	}
	out, err := in.finish(b)
	out.markup = s.markup
	return out, err
}

func filterJoin(in *interp, x Value, a *args) (Value, error) {
	v, err := a.bind("join", "d?", "attribute?")
	if err != nil {
		return nil, err
	}
	var sep Str
	if v[0] != nil {
		if sep, err = in.str(v[0]); err != nil {
			return nil, err
		}
	}
	get := func(v Value) (Value, error) { return v, nil }
	if !isNone(v[1]) {
		if get, err = in.attrGetter(v[1], nil); err != nil {
			return nil, err
		}
	}
	it, err := in.iter(x)
	if err != nil {
		return nil, err
	}
	b := in.newBuilder()
	for i := 0; ; i++ {
		item, ok, err := it.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			return in.finish(b)
		}
		if item, err = get(item); err != nil {
			return nil, err
		}
		s, err := in.str(item)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.str(sep)
		}
		b.str(s)
	}
}

func filterReplace(in *interp, x Value, a *args) (Value, error) {
	v, err := a.bind("replace", "old", "new", "count?")
	if err != nil {
		return nil, err
	}
	var parts [3]Str
	for i, p := range []Value{x, v[0], v[1]} {
		if parts[i], err = in.str(p); err != nil {
			return nil, err
		}
	}
	count := v[2]
	if isNone(count) {
		count = Int(-1)
	}
	return in.replace(parts[0], parts[1], parts[2], count)
}

func filterTrim(in *interp, x Value, a *args) (Value, error) {
	v, err := a.bind("trim", "chars?")
	if err != nil {
		return nil, err
	}
	s, err := in.soft(x)
	if err != nil {
		return nil, err
	}
	return in.strip(s, v[0], true, true)
}

func filterTruncate(in *interp, x Value, a *args) (Value, error) {
	v, err := a.bind("truncate", "length?", "killwords?", "end?", "leeway?")
	if err != nil {
		return nil, err
	}
	length, leeway := int64(255), int64(5)
	if v[0] != nil {
		if length, err = indexInt(v[0], "length"); err != nil {
			return nil, err
		}
	}
	if !isNone(v[3]) {
		if leeway, err = indexInt(v[3], "leeway"); err != nil {
			return nil, err
		}
	}
	end := lit("...")
	if v[2] != nil {
		var ok bool
		if end, ok = v[2].(Str); !ok {
			return nil, typeErrf("object of type '%s' has no len()", v[2].typeName())
		}
	}
	keep := length - int64(runeLen(end.s))
	if keep < 0 || leeway < 0 {
		return nil, &evalError{
			kind: "AssertionError",
			msg:  "truncate needs a length of at least that of its end and no negative leeway",
		}
	}
	s, ok := x.(Str)
	if !ok {
		if u, isU := x.(undefined); isU {
			return u, nil
		}
		if n, ok := lengthOf(x); ok && int64(n) <= length+leeway {
			return x, nil
		}
		return nil, typeErrf("truncate needs a string, not '%s'", x.typeName())
	}
	if err := in.chargeBytes(len(s.s)); err != nil {
		return nil, err
	}
	if n := int64(runeLen(s.s)); n <= length || n-length <= leeway {
		return s, nil
	}
	cut := s.sub(0, byteAt(s.s, int(keep)))
	if v[1] == nil || !truth(v[1]) {
		if i := strings.LastIndexByte(cut.s, ' '); i >= 0 {
			cut = cut.sub(0, i)
		}
	}
	return in.addStr(cut, end)
}

func filterWordCount(in *interp, x Value, a *args) (Value, error) {
	if _, err := a.bind("wordcount"); err != nil {
		return nil, err
	}
	s, err := in.soft(x)
	if err != nil {
		return nil, err
	}
	n, inWord := 0, false
	for _, r := range s.s {
		word := r == '_' || isAlpha(r) || isNumeric(r)
		if word && !inWord {
			n++
		}
		inWord = word
	}
	return Int(n), in.chargeBytes(len(s.s))
}

func filterURLEncode(in *interp, x Value, a *args) (Value, error) {
	if _, err := a.bind("urlencode"); err != nil {
		return nil, err
	}
	var pairs []Value
	switch v := x.(type) {
	case *Dict:
		for i := range v.entries {
			pairs = append(pairs, (&dictView{v, "items"}).at(i))
		}
	default:
		it, err := in.iter(x)
		if _, isStr := x.(Str); isStr || err != nil {
			s, err := in.str(x)
			if err != nil {
				return nil, err
			}
			return quoteURL(s, false), in.chargeBytes(len(s.s))
		}
		if pairs, err = in.drain(it); err != nil {
			return nil, err
		}
	}
	b := in.newBuilder()
	for i, p := range pairs {
		kv, err := in.items(p)
		if err != nil {
			return nil, err
		}
		if len(kv) != 2 {
			return nil, valueErrf("urlencode needs pairs")
		}
		if i > 0 {
			b.lit("&")
		}
		for k, part := range kv {
			s, err := in.str(part)
			if err != nil {
				return nil, err
			}
			if k == 1 {
				b.lit("=")
			}
			b.str(quoteURL(s, true))
		}
	}
	return in.finish(b)
}

func quoteURL(s Str, query bool) Str {
	return mapRunes(s.plain(), func(b *builder, _ int, r rune, t bool) {
		switch {
		case r < 0x80 && (isAlpha(r) || isDigit(byte(r)) || strings.ContainsRune("_.-~", r)), r == '/' && !query:
			b.rune(r, t)
		case r == ' ' && query:
			b.mark("+", t)
		default:
			for _, c := range []byte(string(r)) {
				b.mark("%"+strings.ToUpper(hex(rune(c), 2)), t)
			}
		}
	})
}

func filterXMLAttr(in *interp, x Value, a *args) (Value, error) {
	v, err := a.bind("xmlattr", "autospace?")
	if err != nil {
		return nil, err
	}
	d, ok := x.(*Dict)
	if !ok {
		return nil, typeErrf("xmlattr needs a mapping, not '%s'", x.typeName())
	}
	b := in.newBuilder()
	for _, e := range d.entries {
		if _, isU := e.val.(undefined); isU || isNone(e.val) {
			continue
		}
		k, ok := e.key.(Str)
		if !ok {
			return nil, typeErrf("expected string or bytes-like object, got '%s'", e.key.typeName())
		}
		if strings.ContainsAny(k.s, " \t\n\r\f\v/>=") {
			return nil, valueErrf("invalid character in attribute name: '%s'", k.s)
		}
		val, err := in.soft(e.val)
		if err != nil {
			return nil, err
		}
		if b.len() > 0 || v[0] == nil || truth(v[0]) {
			b.lit(" ")
		}
		b.str(escapeHTML(k))
		b.lit("=\"")
		b.str(escapeHTML(val))
		b.lit("\"")
	}
	return in.finish(b)
}

func filterFileSize(in *interp, x Value, a *args) (Value, error) {
	v, err := a.bind("filesizeformat", "binary?")
	if err != nil {
		return nil, err
	}
	size, ok, err := toFloat(x)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, valueErrf("could not convert to float")
	}
	base, infix := 1000.0, "B"
	if v[0] != nil && truth(v[0]) {
		base, infix = 1024, "iB"
	}
	switch {
	case size == 1:
		return lit("1 Byte"), nil
	case size < base:
		return lit(strconv.FormatFloat(math.Trunc(size), 'f', 0, 64) + " Bytes"), nil
	}
	prefixes := "kMGTPEZY"
	if base == 1024 {
		prefixes = "KMGTPEZY"
	}
	for i := range prefixes {
		unit := math.Pow(base, float64(i+2))
		if size < unit || i == len(prefixes)-1 {
			return lit(strconv.FormatFloat(base*size/unit, 'f', 1, 64) + " " + prefixes[i:i+1] + infix), nil
		}
	}
	return nil, valueErrf("size is not a number")
}

func filterStripTags(in *interp, x Value, a *args) (Value, error) {
	if _, err := a.bind("striptags"); err != nil {
		return nil, err
	}
	s, err := in.str(x)
	if err != nil {
		return nil, err
	}
	if err := in.chargeBytes(4 * len(s.s)); err != nil {
		return nil, err
	}
	s = cutBetween(cutBetween(s, "<!--", "-->"), "<", ">")
	b := in.newBuilder()
	for i, c := range fields(s.s, -1, false) {
		if i > 0 {
			b.lit(" ")
		}
		b.sub(s, c.lo, c.hi)
	}
	out, err := in.finish(b)
	if err != nil {
		return nil, err
	}
	return unescapeHTML(out), nil
}

// cutBetween removes every stretch from open to the next end.
func cutBetween(s Str, open, end string) Str {
	var b builder
	pos := 0
	for {
		i := strings.Index(s.s[pos:], open)
		if i < 0 {
			break
		}
		j := strings.Index(s.s[pos+i:], end)
		if j < 0 {
			break
		}
		b.sub(s, pos, pos+i)
		pos += i + j + len(end)
	}
	b.sub(s, pos, len(s.s))
	return b.done()
}

var entities = map[string]string{
	"amp":    "&",
	"lt":     "<",
	"gt":     ">",
	"quot":   "\"",
	"apos":   "'",
	"nbsp":   "\u00a0",
	"#34":    "\"",
	"#39":    "'",
	"copy":   "©",
	"hellip": "…",
}

// unescapeHTML decodes the common entities. What an entity stands for has the
// origin of the entity's text.
func unescapeHTML(s Str) Str {
	var b builder
	pos := 0
	for {
		i := strings.IndexByte(s.s[pos:], '&')
		if i < 0 {
			break
		}
		i += pos
		j := strings.IndexByte(s.s[i:min(len(s.s), i+12)], ';')
		if j < 0 {
			b.sub(s, pos, i+1)
			pos = i + 1
			continue
		}
		text, ok := decodeEntity(s.s[i+1 : i+j])
		if !ok {
			b.sub(s, pos, i+1)
			pos = i + 1
			continue
		}
		b.sub(s, pos, i)
		b.mark(text, s.sub(i, i+j+1).tainted())
		pos = i + j + 1
	}
	b.sub(s, pos, len(s.s))
	return b.done()
}

func decodeEntity(name string) (string, bool) {
	if t, ok := entities[name]; ok {
		return t, true
	}
	if !strings.HasPrefix(name, "#") {
		return "", false
	}
	num, base := name[1:], 10
	if strings.HasPrefix(num, "x") || strings.HasPrefix(num, "X") {
		num, base = num[1:], 16
	}
	n, err := strconv.ParseUint(num, base, 32)
	if err != nil || n == 0 || n > unicode.MaxRune {
		return "", false
	}
	return string(rune(n)), true
}
