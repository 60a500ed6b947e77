package chattmpl

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
)

// Value is a value of the template language: None, Bool, Int, BigInt, Float,
// Str, *List, *Tuple, *Dict and the internal kinds that templates make.
// Values are immutable once a template can see them.
type Value interface{ typeName() string }

// None is Python's None and JSON's null.
type None struct{}

// Bool is a truth value; in arithmetic it counts as 0 or 1.
type Bool bool

// Int is an integer that fits 64 bits.
type Int int64

// BigInt is an integer that does not fit 64 bits.
type BigInt struct{ v *big.Int }

// Float is a double.
type Float float64

// List is an ordered list.
type List struct{ items []Value }

// Tuple is an immutable list; names gives its fields names where a filter does.
type Tuple struct {
	items []Value
	names []string
}

// Dict is a mapping in insertion order.
type Dict struct {
	entries []entry
	index   map[hashKey]int // nil while few entries
}

type entry struct {
	key, val Value
	hash     hashKey
}

func (None) typeName() string   { return "NoneType" }
func (Bool) typeName() string   { return "bool" }
func (Int) typeName() string    { return "int" }
func (BigInt) typeName() string { return "int" }
func (Float) typeName() string  { return "float" }
func (s Str) typeName() string {
	if s.markup {
		return "Markup"
	}
	return "str"
}
func (*List) typeName() string  { return "list" }
func (*Tuple) typeName() string { return "tuple" }
func (*Dict) typeName() string  { return "dict" }

// Text makes a string value that counts as template text.
func Text(s string) Value { return Str{s: s} }

// InputText makes a string value that counts as input text.
func InputText(s string) Value { return inputStr(s) }

// NewList makes a list of the given items.
func NewList(items ...Value) Value { return &List{items: items} }

// NewDict makes a mapping with text keys, which count as input text; a later
// duplicate key replaces the value of the earlier one.
func NewDict(pairs ...KV) Value {
	d := &Dict{}
	for _, p := range pairs {
		d.set(inputStr(p.Key), p.Value)
	}
	return d
}

// hashKey identifies a value as a mapping key: equal keys are equal in Python.
type hashKey struct {
	kind byte // s string, i integer, f float, b big, n None, t tuple, u undefined, p pointer
	s    string
	n    int64
	p    any
}

// Bounds of a tuple used as a key: its nesting, and its size when spelled out,
// which shared parts can make exponential.
const (
	maxKeyDepth = 50
	maxKeyBytes = 1 << 16
)

func hashOf(v Value) (hashKey, error) { return hashDepth(v, 0) }

func hashDepth(v Value, depth int) (hashKey, error) {
	switch x := v.(type) {
	case Str:
		return hashKey{kind: 's', s: x.s}, nil
	case Bool:
		if x {
			return hashKey{kind: 'i', n: 1}, nil
		}
		return hashKey{kind: 'i'}, nil
	case Int:
		return hashKey{kind: 'i', n: int64(x)}, nil
	case BigInt:
		return hashKey{kind: 'b', s: x.v.String()}, nil
	case Float:
		f := float64(x)
		if f == math.Trunc(f) && math.Abs(f) < 1<<63 {
			return hashKey{kind: 'i', n: int64(f)}, nil
		}
		return hashKey{kind: 'f', n: int64(math.Float64bits(f))}, nil
	case None:
		return hashKey{kind: 'n'}, nil
	case undefined:
		return hashKey{kind: 'u'}, nil
	case *Tuple:
		if depth > maxKeyDepth {
			return hashKey{}, limitErrf("tuple nested too deep for a mapping key")
		}
		b := []byte{}
		for _, it := range x.items {
			k, err := hashDepth(it, depth+1)
			if err != nil {
				return hashKey{}, err
			}
			b = append(b, k.kind)
			if k.p != nil {
				b = fmt.Appendf(b, "%p", k.p)
			}
			b = strconv.AppendInt(b, k.n, 10)
			b = append(b, ':')
			b = strconv.AppendInt(b, int64(len(k.s)), 10)
			b = append(b, ':')
			b = append(b, k.s...)
			if len(b) > maxKeyBytes {
				return hashKey{}, limitErrf("tuple too large for a mapping key")
			}
		}
		return hashKey{kind: 't', s: string(b)}, nil
	case *List, *Dict, *dictView:
		return hashKey{}, typeErrf("unhashable type: '%s'", v.typeName())
	}
	return hashKey{kind: 'p', p: v}, nil
}

// indexFrom is the number of entries from which a Dict keeps an index.
const indexFrom = 12

func (d *Dict) find(h hashKey) int {
	if d.index != nil {
		if i, ok := d.index[h]; ok {
			return i
		}
		return -1
	}
	for i := range d.entries {
		if d.entries[i].hash == h {
			return i
		}
	}
	return -1
}

// set stores a value; an existing key keeps its place and its first key object.
func (d *Dict) set(key, val Value) error {
	h, err := hashOf(key)
	if err != nil {
		return err
	}
	if i := d.find(h); i >= 0 {
		d.entries[i].val = val
		return nil
	}
	d.entries = append(d.entries, entry{key, val, h})
	if d.index != nil {
		d.index[h] = len(d.entries) - 1
	} else if len(d.entries) >= indexFrom {
		d.index = make(map[hashKey]int, 2*len(d.entries))
		for i := range d.entries {
			d.index[d.entries[i].hash] = i
		}
	}
	return nil
}

// get returns the value of a key, or nil. The error is that of an unhashable key.
func (d *Dict) get(key Value) (Value, error) {
	h, err := hashOf(key)
	if err != nil {
		return nil, err
	}
	if i := d.find(h); i >= 0 {
		return d.entries[i].val, nil
	}
	return nil, nil
}

func (d *Dict) getStr(key string) Value {
	if i := d.find(hashKey{kind: 's', s: key}); i >= 0 {
		return d.entries[i].val
	}
	return nil
}

// undefined is what a missing name, attribute or element evaluates to.
type undefined struct {
	hint     string // the whole message, if set
	name     string // the missing name, as Python's repr
	owner    string // what the name was looked up in; empty for a variable
	byIndex  bool
	security bool
}

func (undefined) typeName() string { return "Undefined" }

// fail is the error of doing anything forbidden with the undefined value.
func (u undefined) fail() error {
	kind := "UndefinedError"
	if u.security {
		kind = "SecurityError"
	}
	switch {
	case u.hint != "":
		return &evalError{kind: kind, msg: u.hint}
	case u.owner == "":
		return &evalError{kind: kind, msg: u.name + " is undefined"}
	case u.byIndex:
		return &evalError{kind: kind, msg: u.owner + " has no element " + u.name}
	}
	return &evalError{kind: kind, msg: "'" + u.owner + "' has no attribute " + u.name}
}

// ownerName describes an object in messages about missing attributes.
func ownerName(v Value) string {
	if _, ok := v.(None); ok {
		return "None"
	}
	return v.typeName() + " object"
}

// namespace is the one mutable kind: what namespace() returns.
type namespace struct{ attrs Dict }

func (*namespace) typeName() string { return "Namespace" }

// callable is a function or bound method.
type callable struct {
	name string
	fn   func(in *interp, a *args) (Value, error)
}

func (*callable) typeName() string { return "builtin_function_or_method" }

// dictView is the result of keys, values and items.
type dictView struct {
	d    *Dict
	kind string // keys, values, items
}

func (v *dictView) typeName() string { return "dict_" + v.kind }

func (v *dictView) at(i int) Value {
	e := v.d.entries[i]
	switch v.kind {
	case "keys":
		return e.key
	case "values":
		return e.val
	}
	return &Tuple{items: []Value{e.key, e.val}}
}

// rangeVal is the result of range().
type rangeVal struct{ start, stop, step, n int64 }

func (*rangeVal) typeName() string { return "range" }

// normInt makes the canonical integer value of a big integer.
func normInt(v *big.Int) Value {
	if v.IsInt64() {
		return Int(v.Int64())
	}
	return BigInt{v}
}

// truth is Python's bool().
func truth(v Value) bool {
	switch x := v.(type) {
	case Bool:
		return bool(x)
	case None, undefined:
		return false
	case Int:
		return x != 0
	case Float:
		return x != 0
	case Str:
		return x.s != ""
	case *List:
		return len(x.items) > 0
	case *Tuple:
		return len(x.items) > 0
	case *Dict:
		return len(x.entries) > 0
	case *dictView:
		return len(x.d.entries) > 0
	case *rangeVal:
		return x.n > 0
	}
	return true
}

// evalError is an error of evaluation before it knows its place.
type evalError struct {
	kind string // the Python exception it corresponds to
	msg  string
	err  error
}

func (e *evalError) Error() string { return e.msg }
func (e *evalError) Unwrap() error { return e.err }

func typeErrf(format string, a ...any) error {
	return &evalError{kind: "TypeError", msg: fmt.Sprintf(format, a...)}
}

func valueErrf(format string, a ...any) error {
	return &evalError{kind: "ValueError", msg: fmt.Sprintf(format, a...)}
}

func limitErrf(format string, a ...any) error {
	return &evalError{kind: "LimitError", msg: fmt.Sprintf(format, a...), err: ErrLimit}
}
