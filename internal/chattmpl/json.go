package chattmpl

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"sort"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxJSONDepth bounds the nesting of a JSON document.
const maxJSONDepth = 500

// ParseJSON reads a JSON document into an ordered tree whose strings count as
// input text. Integers stay integers, a later duplicate key replaces the value
// of the earlier one, NaN and Infinity are read as Python does, and an unpaired
// surrogate escape becomes U+FFFD. The error says at which byte it stands.
func ParseJSON(b []byte) (Value, error) {
	if !utf8.Valid(b) {
		return nil, errors.New("chattmpl: JSON is not valid UTF-8")
	}
	d := jsonReader{s: string(b)}
	d.space()
	v, err := d.value(0)
	if err == nil {
		d.space()
		if d.i < len(d.s) {
			err = errors.New("text after the end of the document")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("chattmpl: JSON at byte %d: %w", d.i, err)
	}
	return v, nil
}

type jsonReader struct {
	s string
	i int
}

func (d *jsonReader) space() {
	for d.i < len(d.s) && strings.IndexByte(" \t\r\n", d.s[d.i]) >= 0 {
		d.i++
	}
}

func (d *jsonReader) accept(c byte) bool {
	d.space()
	if d.i < len(d.s) && d.s[d.i] == c {
		d.i++
		return true
	}
	return false
}

var jsonWords = []struct {
	word string
	v    Value
}{
	{"null", None{}},
	{"true", Bool(true)},
	{"false", Bool(false)},
	{"NaN", Float(math.NaN())},
	{"Infinity", Float(math.Inf(1))},
	{"-Infinity", Float(math.Inf(-1))},
}

func (d *jsonReader) value(depth int) (Value, error) {
	if depth > maxJSONDepth {
		return nil, fmt.Errorf("nested more than %d levels deep", maxJSONDepth)
	}
	if d.i >= len(d.s) {
		return nil, errors.New("a value is missing")
	}
	switch c := d.s[d.i]; {
	case c == '{':
		return d.object(depth)
	case c == '[':
		return d.array(depth)
	case c == '"':
		s, err := d.str()
		return inputStr(s), err
	}
	for _, w := range jsonWords {
		if strings.HasPrefix(d.s[d.i:], w.word) {
			d.i += len(w.word)
			return w.v, nil
		}
	}
	return d.number()
}

func (d *jsonReader) array(depth int) (Value, error) {
	d.i++
	l := &List{}
	if d.accept(']') {
		return l, nil
	}
	for {
		d.space()
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		l.items = append(l.items, v)
		if d.accept(']') {
			return l, nil
		}
		if !d.accept(',') {
			return nil, errors.New("expected ',' or ']'")
		}
	}
}

func (d *jsonReader) object(depth int) (Value, error) {
	d.i++
	o := &Dict{}
	if d.accept('}') {
		return o, nil
	}
	for {
		d.space()
		if d.i >= len(d.s) || d.s[d.i] != '"' {
			return nil, errors.New("expected a key in double quotes")
		}
		k, err := d.str()
		if err != nil {
			return nil, err
		}
		if !d.accept(':') {
			return nil, errors.New("expected ':'")
		}
		d.space()
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if err := o.set(inputStr(k), v); err != nil {
			return nil, err
		}
		if d.accept('}') {
			return o, nil
		}
		if !d.accept(',') {
			return nil, errors.New("expected ',' or '}'")
		}
	}
}

func (d *jsonReader) number() (Value, error) {
	start := d.i
	digits := func() int {
		n := d.i
		for d.i < len(d.s) && isDigit(d.s[d.i]) {
			d.i++
		}
		return d.i - n
	}
	if d.i < len(d.s) && d.s[d.i] == '-' {
		d.i++
	}
	lead := d.i
	n := digits()
	if n == 0 {
		d.i = start
		return nil, errors.New("expected a value")
	}
	if n > 1 && d.s[lead] == '0' {
		d.i = start
		return nil, errors.New("number with a leading zero")
	}
	isFloat := false
	if d.i < len(d.s) && d.s[d.i] == '.' {
		d.i++
		isFloat = true
		if digits() == 0 {
			return nil, errors.New("digits are missing after the point")
		}
	}
	if d.i < len(d.s) && d.s[d.i]|0x20 == 'e' {
		d.i++
		isFloat = true
		if d.i < len(d.s) && (d.s[d.i] == '+' || d.s[d.i] == '-') {
			d.i++
		}
		if digits() == 0 {
			return nil, errors.New("digits are missing in the exponent")
		}
	}
	text := d.s[start:d.i]
	if isFloat {
		f, _ := strconv.ParseFloat(text, 64) // out of range gives an infinity, as in Python
		return Float(f), nil
	}
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return Int(i), nil
	}
	if n > maxIntDigits {
		return nil, fmt.Errorf("integer of %d digits, the most is %d", n, maxIntDigits)
	}
	v, _ := new(big.Int).SetString(text, 10)
	return BigInt{v}, nil
}

var jsonEscapes = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func (d *jsonReader) str() (string, error) {
	d.i++
	start := d.i
	for d.i < len(d.s) && d.s[d.i] != '"' && d.s[d.i] != '\\' && d.s[d.i] >= 0x20 {
		d.i++
	}
	if d.i < len(d.s) && d.s[d.i] == '"' {
		d.i++
		return d.s[start : d.i-1], nil
	}
	b := []byte(d.s[start:d.i])
	for d.i < len(d.s) {
		c := d.s[d.i]
		switch {
		case c == '"':
			d.i++
			return string(b), nil
		case c < 0x20:
			return "", errors.New("control character in a string")
		case c != '\\':
			b = append(b, c)
			d.i++
			continue
		}
		d.i++
		if d.i >= len(d.s) {
			break
		}
		c = d.s[d.i]
		if e, ok := jsonEscapes[c]; ok {
			b = append(b, e)
			d.i++
			continue
		}
		if c != 'u' {
			return "", fmt.Errorf("unknown escape \\%c", c)
		}
		d.i++
		r, err := d.hex4()
		if err != nil {
			return "", err
		}
		if utf16.IsSurrogate(r) && strings.HasPrefix(d.s[d.i:], `\u`) {
			save := d.i
			d.i += 2
			low, err := d.hex4()
			if err != nil {
				return "", err
			}
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				d.i = save
			}
		}
		b = utf8.AppendRune(b, r)
	}
	return "", errors.New("string without an end")
}

func (d *jsonReader) hex4() (rune, error) {
	if d.i+4 > len(d.s) {
		return 0, errors.New("truncated \\u escape")
	}
	n, err := strconv.ParseUint(d.s[d.i:d.i+4], 16, 16)
	if err != nil || d.s[d.i] == '+' {
		return 0, errors.New("malformed \\u escape")
	}
	d.i += 4
	return rune(n), nil
}

// ---- writing

// jsonWriter writes as Python's json.dumps does.
type jsonWriter struct {
	in       *interp
	b        *builder
	ascii    bool
	sortKeys bool
	pretty   bool
	indent   Str
	itemSep  Str
	keySep   Str
}

func (w *jsonWriter) newline(level int) {
	if !w.pretty {
		return
	}
	w.b.lit("\n")
	for i := 0; i < level; i++ {
		w.b.str(w.indent)
	}
}

func (w *jsonWriter) value(v Value, level int) error {
	if err := w.in.step(); err != nil {
		return err
	}
	if w.b.over {
		return limitErrf("a string grew over %d bytes", w.b.max)
	}
	switch x := v.(type) {
	case Str:
		if err := w.in.chargeBytes(len(x.s)); err != nil {
			return err
		}
		w.str(x)
	case *List:
		return w.array(x.items, level)
	case *Tuple:
		return w.array(x.items, level)
	case *Dict:
		return w.object(x, level)
	default:
		s, ok, err := jsonScalar(v)
		if err != nil {
			return err
		}
		if !ok {
			return typeErrf("object of type %s is not JSON serializable", v.typeName())
		}
		w.b.lit(s)
	}
	return nil
}

func jsonScalar(v Value) (string, bool, error) {
	switch x := v.(type) {
	case None:
		return "null", true, nil
	case Bool:
		return strconv.FormatBool(bool(x)), true, nil
	case Int:
		return strconv.FormatInt(int64(x), 10), true, nil
	case BigInt:
		s, err := bigText(x)
		return s, true, err
	case Float:
		f := float64(x)
		switch {
		case math.IsNaN(f):
			return "NaN", true, nil
		case math.IsInf(f, 1):
			return "Infinity", true, nil
		case math.IsInf(f, -1):
			return "-Infinity", true, nil
		}
		return floatRepr(f), true, nil
	}
	return "", false, nil
}

func (w *jsonWriter) array(items []Value, level int) error {
	if err := w.in.down(); err != nil {
		return err
	}
	defer w.in.up()
	if len(items) == 0 {
		w.b.lit("[]")
		return nil
	}
	w.b.lit("[")
	for i, it := range items {
		if i > 0 {
			w.b.str(w.itemSep)
		}
		w.newline(level + 1)
		if err := w.value(it, level+1); err != nil {
			return err
		}
	}
	w.newline(level)
	w.b.lit("]")
	return nil
}

func (w *jsonWriter) object(d *Dict, level int) error {
	if err := w.in.down(); err != nil {
		return err
	}
	defer w.in.up()
	if len(d.entries) == 0 {
		w.b.lit("{}")
		return nil
	}
	entries := d.entries
	if w.sortKeys {
		var err error
		if entries, err = w.sorted(entries); err != nil {
			return err
		}
	}
	w.b.lit("{")
	for i, e := range entries {
		if i > 0 {
			w.b.str(w.itemSep)
		}
		w.newline(level + 1)
		if k, ok := e.key.(Str); ok {
			if err := w.in.chargeBytes(len(k.s)); err != nil {
				return err
			}
			w.str(k)
		} else {
			s, ok, err := jsonScalar(e.key)
			if err != nil {
				return err
			}
			if !ok {
				return typeErrf("keys must be str, int, float, bool or None, not %s", e.key.typeName())
			}
			w.b.lit("\"" + s + "\"")
		}
		w.b.str(w.keySep)
		if err := w.value(e.val, level+1); err != nil {
			return err
		}
	}
	w.newline(level)
	w.b.lit("}")
	return nil
}

func (w *jsonWriter) sorted(entries []entry) ([]entry, error) {
	if err := w.in.charge(len(entries)); err != nil {
		return nil, err
	}
	out := append([]entry(nil), entries...)
	var failed error
	sort.SliceStable(out, func(i, j int) bool {
		c, _, err := w.in.order("<", out[i].key, out[j].key)
		if err != nil && failed == nil {
			failed = err
		}
		return c < 0
	})
	return out, failed
}

func (w *jsonWriter) str(s Str) {
	b := w.b
	b.lit("\"")
	c := taintCursor{r: s.taint}
	from := 0 // start of text not yet copied
	for off := 0; off < len(s.s); {
		r, n := rune(s.s[off]), 1
		if r >= utf8.RuneSelf {
			if !w.ascii {
				off++
				continue
			}
			r, n = utf8.DecodeRuneInString(s.s[off:])
		}
		esc := jsonEscape(r)
		if r == 0x7f && w.ascii {
			esc = `\u007f`
		}
		if esc == "" {
			off++
			continue
		}
		b.sub(s, from, off)
		b.mark(esc, c.at(off))
		off += n
		from = off
	}
	b.sub(s, from, len(s.s))
	b.lit("\"")
}

// jsonEscape returns the escape of a character, empty if it needs none.
func jsonEscape(r rune) string {
	switch r {
	case '"':
		return `\"`
	case '\\':
		return `\\`
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	case '\f':
		return `\f`
	case '\b':
		return `\b`
	}
	switch {
	case r < 0x20:
		return `\u` + hex(r, 4)
	case r < utf8.RuneSelf:
		return ""
	case r < 0x10000:
		return `\u` + hex(r, 4)
	}
	hi, lo := utf16.EncodeRune(r)
	return `\u` + hex(hi, 4) + `\u` + hex(lo, 4)
}

// filterToJSON is the tojson filter of transformers.
func filterToJSON(in *interp, x Value, a *args) (Value, error) {
	v, err := a.bind("tojson", "ensure_ascii?", "indent?", "separators?", "sort_keys?")
	if err != nil {
		return nil, err
	}
	w := &jsonWriter{in: in, b: in.newBuilder(), itemSep: lit(", "), keySep: lit(": ")}
	w.ascii = v[0] != nil && truth(v[0])
	w.sortKeys = v[3] != nil && truth(v[3])
	switch ind := v[1].(type) {
	case nil, None:
	case Str:
		w.pretty, w.indent = true, ind
	default:
		n, err := indexInt(ind, "indent")
		if err != nil {
			return nil, err
		}
		if n > maxIndent {
			return nil, limitErrf("indent %d is over %d", n, maxIndent)
		}
		w.pretty, w.indent = true, lit(strings.Repeat(" ", int(max(n, 0))))
	}
	if w.pretty {
		w.itemSep = lit(",")
	}
	if v[2] != nil {
		if _, none := v[2].(None); !none {
			if w.itemSep, w.keySep, err = in.separators(v[2]); err != nil {
				return nil, err
			}
		}
	}
	if err := w.value(x, 0); err != nil {
		return nil, err
	}
	return in.finish(w.b)
}

// maxIndent bounds the spaces of one level of indentation.
const maxIndent = 1000

func (in *interp) separators(v Value) (item, key Str, err error) {
	parts, err := in.items(v)
	if err != nil {
		return Str{}, Str{}, err
	}
	if len(parts) != 2 {
		return Str{}, Str{}, valueErrf("separators must be two strings, got %d", len(parts))
	}
	item, ok1 := parts[0].(Str)
	key, ok2 := parts[1].(Str)
	if !ok1 || !ok2 {
		return Str{}, Str{}, typeErrf("separators must be two strings")
	}
	return item, key, nil
}
