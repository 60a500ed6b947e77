package fields

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
)

// A Value is a JSON value with its place in the request.
type Value struct {
	Raw  json.RawMessage
	Path string // such as "messages[2].content"; "" is the body itself

	notes  *Notes // of the request; may be nil
	limits Limits
}

type member struct {
	name  string
	value Value
}

func (v Value) path(name string) string {
	if v.Path == "" {
		return name
	}
	return v.Path + "." + name
}

// Kind is the JSON type: "null", "boolean", "number", "string", "array" or "object".
func (v Value) Kind() string { return kindWord(v.Raw) }

func kindWord(raw []byte) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "null"
	}
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// kindOf is the JSON type with its article.
func kindOf(raw []byte) string {
	switch k := kindWord(raw); k {
	case "null":
		return k
	case "array", "object":
		return "an " + k
	default:
		return "a " + k
	}
}

func (v Value) wrong(want string) error {
	return chat.Invalidf(v.Path, "got %s, want %s", kindOf(v.Raw), want)
}

// MaxDepth bounds the nesting of schemas: chat templates walk through them, and need some levels for themselves.
const MaxDepth = 150

// Schema returns a JSON Schema as it stands, or refuses one that is nested too deeply.
func (v Value) Schema() (json.RawMessage, error) {
	depth, most, inString := 0, 0, false
	for i := 0; i < len(v.Raw); i++ {
		switch c := v.Raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
			most = max(most, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	if most > MaxDepth {
		return nil, chat.Invalidf(v.Path, "the schema is nested too deeply: %d levels, want at most %d", most, MaxDepth)
	}
	return v.Raw, nil
}

// IsNull reports null.
func (v Value) IsNull() bool { return v.Kind() == "null" }

// equals compares with a JSON text.
func (v Value) equals(text string) bool {
	var a, b bytes.Buffer
	return json.Compact(&a, v.Raw) == nil && json.Compact(&b, []byte(text)) == nil && bytes.Equal(a.Bytes(), b.Bytes())
}

// String returns a string; "" for other types, which Type has refused before.
func (v Value) String() string {
	var s string
	if json.Unmarshal(v.Raw, &s) != nil {
		return ""
	}
	return s
}

// Bool returns a boolean.
func (v Value) Bool() bool { return string(bytes.TrimSpace(v.Raw)) == "true" }

// Float returns a number.
func (v Value) Float() float64 {
	f, err := strconv.ParseFloat(string(bytes.TrimSpace(v.Raw)), 64)
	if err != nil {
		return 0
	}
	return f
}

// Float32 returns a number for the sampling settings.
func (v Value) Float32() *float32 { f := float32(v.Float()); return &f }

// Int returns a whole number; 1e3 and 5.0 are whole, too.
func (v Value) Int() int {
	n, _ := v.integer()
	return n
}

func (v Value) integer() (int, bool) {
	raw := string(bytes.TrimSpace(v.Raw))
	if n, err := strconv.ParseInt(raw, 10, 64); err == nil {
		return int(n), true
	}
	f, err := strconv.ParseFloat(raw, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int(f), true
}

// Truncated returns a number's whole part. Of whole numbers from 2^63 to 2^64 the bits are kept; others beyond those of
// int are the nearest one.
func (v Value) Truncated() int {
	if n, ok := v.integer(); ok {
		return n
	}
	if n, err := strconv.ParseUint(string(bytes.TrimSpace(v.Raw)), 10, 64); err == nil {
		return int(n)
	}
	f := math.Trunc(v.Float())
	switch {
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	}
	return int(f)
}

// KeepAlive returns how long a model is to stay loaded: seconds, or a text such as 10m. Negative is for good, as -1.
func KeepAlive(v Value) (*time.Duration, error) {
	d := time.Duration(-1)
	if v.Kind() == "number" {
		if s := v.Float(); s >= 0 {
			d = time.Duration(min(s*float64(time.Second), math.MaxInt64/2))
		}
		return &d, nil
	}
	text := v.String()
	if s, err := strconv.ParseFloat(text, 64); err == nil && s-s == 0 { // seconds without their unit
		if s >= 0 {
			d = time.Duration(min(s*float64(time.Second), math.MaxInt64/2))
		}
		return &d, nil
	}
	p, err := time.ParseDuration(text)
	if err != nil {
		return nil, chat.Invalidf(
			v.Path,
			"%q is no duration: want seconds as a number, or a text such as 10m or 24h",
			text,
		)
	}
	return new(max(p, d)), nil
}

// Strings returns a list of strings, or the one string that stands instead of it.
func (v Value) Strings() []string {
	if v.Kind() == "string" {
		return []string{v.String()}
	}
	var out []string
	if json.Unmarshal(v.Raw, &out) != nil {
		return nil
	}
	return out
}

// Members calls f for each member of an object, in order.
func (v Value) Members(f func(name string, v Value) error) error {
	ms, err := v.members()
	if err != nil {
		return err
	}
	for _, m := range ms {
		if err := f(m.name, m.value); err != nil {
			return err
		}
	}
	return nil
}

// A Type is what a value must be, for decoding and for the documents.
type Type struct {
	kinds    []string
	enum     []string
	lo, hi   float64
	bounded  bool
	items    *Type
	minItems int
	maxItems int // 0: no bound
	ref      string
	oneOf    []Type
	where    map[string]any
	only     []any
	takes    string // which values are taken, where part is set
	part     bool
}

// String is any string.
func String() Type { return Type{kinds: []string{"string"}} }

// Bool is true or false.
func Bool() Type { return Type{kinds: []string{"boolean"}} }

// Any is any value.
func Any() Type { return Type{} }

// Object is any object; name refers to the table that it is decoded with, if one is.
func Object(name string) Type { return Type{kinds: []string{"object"}, ref: name} }

// Enum is one of some strings.
func Enum(values ...string) Type { return Type{kinds: []string{"string"}, enum: values} }

// Number is a number from lo to hi.
func Number(lo, hi float64) Type {
	return Type{kinds: []string{"number"}, lo: lo, hi: hi, bounded: true}
}

// Int is a whole number from lo to hi.
func Int(lo, hi float64) Type {
	return Type{kinds: []string{"integer"}, lo: lo, hi: hi, bounded: true}
}

// List is an array.
func List(items Type) Type { return Type{kinds: []string{"array"}, items: &items} }

// Len bounds the elements of a list; hi 0 is no bound.
func (t Type) Len(lo, hi int) Type { t.minItems, t.maxItems = lo, hi; return t }

// Where adds keywords of JSON Schema that say what Set checks beyond the type: for the OpenAPI document alone.
func (t Type) Where(keywords map[string]any) Type {
	t.where = maps.Clone(t.where)
	if t.where == nil {
		t.where = map[string]any{}
	}
	maps.Copy(t.where, keywords)
	return t
}

// NotEmpty says of a string that Set refuses the empty one.
func (t Type) NotEmpty() Type { return t.Where(map[string]any{"minLength": 1}) }

// Pattern says of a string what regular expression Set asks for. It should have anchors.
func (t Type) Pattern(re string) Type { return t.Where(map[string]any{"pattern": re}) }

// Only says that Set refuses all values but these, though they are documented ones.
func (t Type) Only(values ...any) Type {
	t.only = values
	return t
}

// Takes says in words which values Set takes, where it refuses others that are documented; "" is none.
func (t Type) Takes(words string) Type {
	t.takes, t.part = words, true
	return t
}

// taken says which values are taken of a type that is refused in part.
func (t Type) taken() (words string, part bool) {
	if t.part || len(t.only) == 0 {
		return t.takes, t.part
	}
	var list []string
	for _, v := range t.only {
		if v != nil && v != "" {
			list = append(list, fmt.Sprint(v))
		}
	}
	return strings.Join(list, ", "), true
}

// Duration is a string that time.ParseDuration reads, such as 10m, or one of seconds without a unit; Set reads it.
func Duration() Type {
	return String().Pattern(`^[-+]?([0-9]{1,9}(\.[0-9]{1,6})?|(([0-9]{1,5}(\.[0-9]{1,6})?|\.[0-9]{1,6})(ns|us|ms|s|m|h)){1,4})$`)
}

// Base64 is a string that Set decodes.
func Base64() Type {
	return String().Pattern(`^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`)
}

// Or allows either type.
func (t Type) Or(other Type) Type {
	if len(t.oneOf) == 0 {
		return Type{oneOf: []Type{t, other}}
	}
	return Type{oneOf: append(append([]Type(nil), t.oneOf...), other)}
}

// Text describes the type for people.
func (t Type) Text() string {
	switch {
	case len(t.oneOf) > 0:
		parts := make([]string, len(t.oneOf))
		for i, o := range t.oneOf {
			parts[i] = o.Text()
		}
		return strings.Join(parts, " or ")
	case len(t.kinds) == 0:
		return "any"
	case len(t.enum) > 0:
		return strings.Join(t.enum, ", ")
	case t.items != nil:
		s := "list of " + t.items.Text()
		if t.maxItems > 0 {
			s += fmt.Sprintf(" (at most %d)", t.maxItems)
		}
		return s
	case t.bounded:
		return t.kinds[0] + " " + bound(t.lo) + " to " + bound(t.hi)
	case t.ref != "":
		return t.ref
	}
	return t.kinds[0]
}

func bound(f float64) string {
	if math.Abs(f) >= 1<<53-1 {
		return "any"
	}
	return strconv.FormatFloat(f, 'g', 12, 64)
}

// ObjectKey is the key under which Schema names the table of an object, for those who know the tables.
const ObjectKey = "x-object"

// Schema is the type as a JSON Schema.
func (t Type) Schema() map[string]any {
	if len(t.only) > 0 {
		return map[string]any{"enum": t.only}
	}
	s := map[string]any{}
	switch {
	case len(t.oneOf) > 0:
		list := make([]any, len(t.oneOf))
		for i, o := range t.oneOf {
			list[i] = o.Schema()
		}
		s["anyOf"] = list
	case len(t.kinds) > 0:
		s["type"] = t.kinds[0]
	}
	if len(t.enum) > 0 {
		s["enum"] = t.enum
	}
	if t.bounded {
		s["minimum"], s["maximum"] = jsonBound(t.lo), jsonBound(t.hi)
	}
	if t.items != nil {
		s["items"] = t.items.Schema()
	}
	if t.ref != "" {
		s[ObjectKey] = t.ref
	}
	if t.minItems > 0 {
		s["minItems"] = t.minItems
	}
	if t.maxItems > 0 {
		s["maxItems"] = t.maxItems
	}
	maps.Copy(s, t.where)
	return s
}

// jsonBound writes a bound; those of the whole range mean that of 64-bit integers.
func jsonBound(f float64) any {
	switch {
	case f <= -1<<63:
		return json.Number("-9223372036854775808")
	case f >= 1<<64:
		return json.Number("18446744073709551615")
	case f >= 1<<63:
		return json.Number("9223372036854775807")
	}
	return f
}

// check refuses a value of another type.
func (t Type) check(v Value) error {
	if v.Kind() == "array" {
		if err := t.checkLen(v); err != nil {
			return err
		}
	}
	if len(t.oneOf) > 0 {
		return t.checkAny(v)
	}
	if len(t.kinds) == 0 {
		return nil
	}
	want := t.kinds[0]
	if v.Kind() != want && !(want == "integer" && v.Kind() == "number") {
		return v.wrong(article(t))
	}
	switch want {
	case "string":
		return t.checkEnum(v)
	case "integer":
		if _, ok := v.integer(); !ok {
			return t.notInteger(v)
		}
		return t.checkBounds(v)
	case "number":
		return t.checkBounds(v)
	case "array":
		return t.checkItems(v)
	}
	return nil
}

// notInteger says why a number is no integer that fits into 64 bits.
func (t Type) notInteger(v Value) error {
	f, _ := strconv.ParseFloat(string(bytes.TrimSpace(v.Raw)), 64) // an infinity where it is too large
	lo, hi := -float64(1<<63), float64(1<<63)
	if t.bounded {
		lo, hi = t.lo, t.hi
	}
	switch {
	case f != math.Trunc(f):
		return chat.Invalidf(v.Path, "%s is not a whole number", v.short())
	case math.Abs(f) < 1<<63 && f >= lo && f <= hi:
		return chat.Invalidf(
			v.Path,
			"%s is too large for a fraction or an exponent: write all of its digits",
			v.short(),
		)
	}
	return chat.Invalidf(
		v.Path,
		"%s is out of range: want a whole number from %v to %v",
		v.short(),
		limit(lo),
		limit(hi),
	)
}

// limit writes a bound of an integer in full.
func limit(f float64) any {
	if n := jsonBound(f); n != any(f) {
		return n
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// checkAny finds the alternative of the value's own type, so that the error is about what was meant.
func (t Type) checkAny(v Value) error {
	for _, o := range t.oneOf {
		if len(o.kinds) == 0 || o.kinds[0] == v.Kind() || o.kinds[0] == "integer" && v.Kind() == "number" {
			if o.items != nil && t.sameKind(o.kinds[0]) > 1 && o.check(v) != nil {
				continue
			}
			return o.check(v)
		}
	}
	if first, ok := v.First(); ok { // of several kinds of lists the one that was meant says what is wrong with it
		for _, o := range t.oneOf {
			if o.items != nil && len(o.items.kinds) > 0 &&
				first.Kind() == strings.Replace(o.items.kinds[0], "integer", "number", 1) {
				return o.check(v)
			}
		}
	}
	return v.wrong(t.Text())
}

func (t Type) sameKind(kind string) (n int) {
	for _, o := range t.oneOf {
		if len(o.kinds) > 0 && o.kinds[0] == kind {
			n++
		}
	}
	return n
}

func (t Type) checkEnum(v Value) error {
	if len(t.enum) == 0 {
		return nil
	}
	s := v.String()
	for _, e := range t.enum {
		if s == e {
			return nil
		}
	}
	return chat.Invalidf(v.Path, "%s is not one of %s", v.short(), strings.Join(t.enum, ", "))
}

func (t Type) checkBounds(v Value) error {
	f, err := strconv.ParseFloat(string(bytes.TrimSpace(v.Raw)), 64)
	if err != nil || t.bounded && (f < t.lo || f > t.hi || beyond(v.Raw, t.lo, t.hi)) {
		if len(t.kinds) > 0 && t.kinds[0] == "integer" {
			return chat.Invalidf(v.Path, "%s is outside %v to %v", v.short(), limit(t.lo), limit(t.hi))
		}
		if math.Abs(t.lo) >= 1<<53-1 || math.Abs(t.hi) >= 1<<53-1 {
			return chat.Invalidf(v.Path, "%s is outside %v to %v", v.short(), limit(t.lo), limit(t.hi))
		}
		return chat.Invalidf(v.Path, "%s is outside %s to %s", v.short(), bound(t.lo), bound(t.hi))
	}
	return nil
}

// beyond compares a whole number with bounds that are the ends of 64-bit integers, which no float tells from their
// neighbours.
func beyond(raw []byte, lo, hi float64) bool {
	n, ok := new(big.Int).SetString(string(bytes.TrimSpace(raw)), 10)
	if !ok || n.IsInt64() {
		return false
	}
	for _, b := range []struct {
		bound float64
		sign  int
	}{{lo, -1}, {hi, 1}} {
		text, exact := jsonBound(b.bound).(json.Number)
		if end, ok := new(big.Int).SetString(string(text), 10); exact && ok && n.Cmp(end) == b.sign {
			return true
		}
	}
	return false
}

// most is how many elements a list may have; 0: the type has no lists.
func (t Type) most(l Limits) (n int) {
	switch {
	case len(t.oneOf) > 0:
		for _, o := range t.oneOf {
			n = max(n, o.most(l))
		}
		return n
	case t.maxItems > 0:
		return t.maxItems
	case len(t.kinds) > 0 && t.kinds[0] != "array":
		return 0
	}
	return l.entries()
}

// checkLen refuses an array that has more elements than any list of the type.
func (t Type) checkLen(v Value) error {
	most := t.most(v.limits)
	n := count(v.Raw, math.MaxInt)
	switch {
	case n <= most || most == 0:
		return nil
	case most != v.limits.entries():
		return chat.Invalidf(v.Path, "%d elements, want at most %d", n, most)
	}
	return chat.Invalidf(v.Path, "%d elements, want at most %d: no context of this server has room for more", n, most)
}

func (t Type) checkItems(v Value) error {
	if n := count(v.Raw, t.minItems); n < t.minItems {
		return chat.Invalidf(v.Path, "%d elements, want at least %d", n, t.minItems)
	}
	var err error
	n := 0
	each(v.Raw, func(_, value []byte) bool {
		it := Value{Raw: value, notes: v.notes, limits: v.limits}
		if err = t.items.check(it); err != nil { // again, for an error with the path
			it.Path = v.Path + "[" + strconv.Itoa(n) + "]"
			err = t.items.check(it)
		}
		n++
		return err == nil
	})
	return err
}

// short is the value for an error message.
func (v Value) short() string {
	s := string(bytes.TrimSpace(v.Raw))
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:57], "") + "..."
	}
	return s
}

func article(t Type) string {
	switch s := t.Text(); {
	case len(t.enum) > 0:
		return "one of " + s
	case strings.HasPrefix(s, "a") || strings.HasPrefix(s, "o") || strings.HasPrefix(s, "i"):
		return "an " + s
	default:
		return "a " + s
	}
}
