package chattmpl

import (
	"errors"
	"math"
	"strings"
	"unicode/utf8"
)

// method is a method of a builtin type.
type method func(in *interp, self Value, a *args) (Value, error)

// mutators are the methods that the immutable sandbox hides.
var mutators = map[string]map[string]bool{
	"list": {
		"append":  true,
		"clear":   true,
		"pop":     true,
		"reverse": true,
		"insert":  true,
		"sort":    true,
		"extend":  true,
		"remove":  true,
	},
	"dict": {"clear": true, "pop": true, "popitem": true, "setdefault": true, "update": true},
}

// objectAttrs are attributes that every Python object has, all of them unsafe.
var objectAttrs = map[string]bool{
	"__class__": true, "__delattr__": true, "__dir__": true, "__doc__": true, "__eq__": true, "__format__": true,
	"__ge__": true, "__getattribute__": true, "__getstate__": true, "__gt__": true, "__hash__": true, "__init__": true,
	"__init_subclass__": true, "__le__": true, "__lt__": true, "__ne__": true, "__new__": true, "__reduce__": true,
	"__reduce_ex__": true, "__repr__": true, "__setattr__": true, "__sizeof__": true, "__str__": true, "__subclasshook__": true,
}

// pythonAttr is getattr(): nil where there is no such attribute.
func (in *interp) pythonAttr(v Value, name string) (Value, error) {
	if objectAttrs[name] {
		return unsafeAttr(v, name), nil
	}
	var table map[string]method
	switch x := v.(type) {
	case undefined:
		if strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") {
			return nil, nil
		}
		return nil, x.fail()
	case Str:
		table = strMethods
	case *List:
		if mutators["list"][name] {
			return unsafeAttr(v, name), nil
		}
		table = listMethods
	case *Tuple:
		for i, n := range x.names {
			if n == name {
				return x.items[i], nil
			}
		}
		table = tupleMethods
	case *Dict:
		if mutators["dict"][name] {
			return unsafeAttr(v, name), nil
		}
		table = dictMethods
	case *dictView:
		if name == "mapping" {
			return x.d, nil
		}
		table = viewMethods
	case *namespace:
		return x.attrs.getStr(name), nil
	case *loopCtx:
		return x.attr(name)
	case *macro:
		return x.attr(name), nil
	case *cycler:
		return x.attr(name), nil
	case *rangeVal:
		switch name {
		case "start":
			return Int(x.start), nil
		case "stop":
			return Int(x.stop), nil
		case "step":
			return Int(x.step), nil
		}
		table = tupleMethods
	case Bool, Int, BigInt:
		switch name {
		case "real", "numerator":
			return in.unary("+", v)
		case "imag":
			return Int(0), nil
		case "denominator":
			return Int(1), nil
		}
		table = intMethods
	case Float:
		switch name {
		case "real":
			return v, nil
		case "imag":
			return Float(0), nil
		}
		table = floatMethods
	case *callable:
		if name == "fromkeys" && x.name == "dict" {
			return &callable{"fromkeys", dictFromKeys}, nil
		}
	}
	if m, ok := table[name]; ok {
		return &callable{name, func(in *interp, a *args) (Value, error) { return m(in, v, a) }}, nil
	}
	return nil, nil
}

func unsafeAttr(v Value, name string) Value {
	return undefined{
		hint:     "access to attribute '" + name + "' of '" + v.typeName() + "' object is unsafe.",
		security: true,
	}
}

// getAttr is v.name: the attribute, else the item of that name.
func (in *interp) getAttr(v Value, name string) (Value, error) {
	a, err := in.pythonAttr(v, name)
	if err != nil {
		return nil, err
	}
	if a == nil {
		if d, ok := v.(*Dict); ok {
			a = d.getStr(name)
		}
		if a != nil {
			return a, nil
		}
		if u, ok := v.(undefined); ok {
			return nil, u.fail()
		}
		return undefined{owner: ownerName(v), name: "'" + name + "'"}, nil
	}
	if _, isUndef := a.(undefined); !isUndef && strings.HasPrefix(name, "_") {
		return unsafeAttr(v, name), nil
	}
	return a, nil
}

// getItem is v[key]: the item, else the attribute of that name.
func (in *interp) getItem(v, key Value) (Value, error) {
	item, err := in.subscript(v, key)
	if err != nil || item != nil {
		return item, err
	}
	if s, ok := key.(Str); ok {
		a, err := in.pythonAttr(v, s.s)
		if err != nil {
			return nil, err
		}
		if a != nil {
			if _, isUndef := a.(undefined); !isUndef && strings.HasPrefix(s.s, "_") {
				return unsafeAttr(v, s.s), nil
			}
			return a, nil
		}
		return undefined{owner: ownerName(v), name: "'" + s.s + "'"}, nil
	}
	r, err := in.repr(key)
	if err != nil {
		return nil, err
	}
	return undefined{owner: ownerName(v), name: r.s, byIndex: true}, nil
}

// subscript is Python's v[key], nil where that raises TypeError or LookupError.
func (in *interp) subscript(v, key Value) (Value, error) {
	switch x := v.(type) {
	case undefined:
		return nil, x.fail()
	case *Dict:
		if err := in.chargeText(key); err != nil {
			return nil, err
		}
		item, err := x.get(key)
		if errors.Is(err, ErrLimit) {
			return nil, err
		}
		return item, nil // an unhashable key has no item
	}
	n, ok := asInt(key)
	if !ok {
		return nil, nil
	}
	switch x := v.(type) {
	case *List:
		return at(x.items, n), nil
	case *Tuple:
		return at(x.items, n), nil
	case *rangeVal:
		if n < 0 {
			n += x.n
		}
		if n < 0 || n >= x.n {
			return nil, nil
		}
		return Int(x.start + n*x.step), nil
	case Str:
		size := runeLen(x.s)
		if err := in.chargeBytes(len(x.s)); err != nil {
			return nil, err
		}
		if n < 0 {
			n += int64(size)
		}
		if n < 0 || n >= int64(size) {
			return nil, nil
		}
		lo := byteAt(x.s, int(n))
		_, w := utf8.DecodeRuneInString(x.s[lo:])
		return x.sub(lo, lo+w), nil
	}
	return nil, nil
}

func at(items []Value, n int64) Value {
	if n < 0 {
		n += int64(len(items))
	}
	if n < 0 || n >= int64(len(items)) {
		return nil
	}
	return items[n]
}

// slice is v[lo:hi:step], whose errors are not turned into undefined values.
func (in *interp) slice(v Value, bounds [3]Value) (Value, error) {
	if u, ok := v.(undefined); ok {
		return nil, u.fail()
	}
	n, ok := lengthOf(v)
	switch v.(type) {
	case *Dict, *dictView:
		ok = false
	}
	if !ok {
		if _, isDict := v.(*Dict); isDict {
			return nil, typeErrf("unhashable type: 'slice'")
		}
		return nil, typeErrf("'%s' object is not subscriptable", v.typeName())
	}
	start, step, count, err := sliceRange(bounds, n)
	if err != nil {
		return nil, err
	}
	switch x := v.(type) {
	case *List:
		items, err := in.pick(x.items, start, step, count)
		return &List{items: items}, err
	case *Tuple:
		items, err := in.pick(x.items, start, step, count)
		return &Tuple{items: items}, err
	case *rangeVal:
		first := x.start + int64(start)*x.step
		st := x.step * int64(step)
		return &rangeVal{first, first + int64(count)*st, st, int64(count)}, nil
	}
	s := v.(Str)
	if err := in.chargeBytes(len(s.s)); err != nil {
		return nil, err
	}
	if step == 1 {
		lo := byteAt(s.s, start)
		return s.sub(lo, lo+byteAt(s.s[lo:], count)), nil
	}
	offs := make([]int, 0, n+1)
	for off := range s.s {
		offs = append(offs, off)
	}
	offs = append(offs, len(s.s))
	b := in.newBuilder()
	for i, k := 0, start; i < count; i, k = i+1, k+step {
		b.sub(s, offs[k], offs[k+1])
	}
	out, err := in.finish(b)
	out.markup = s.markup
	return out, err
}

func (in *interp) pick(items []Value, start, step, count int) ([]Value, error) {
	if step == 1 {
		return items[start : start+count : start+count], nil
	}
	if err := in.charge(count); err != nil {
		return nil, err
	}
	out := make([]Value, count)
	for i := range out {
		out[i] = items[start+i*step]
	}
	return out, nil
}

// sliceRange turns slice bounds into a start, a step and a count of items.
func sliceRange(bounds [3]Value, n int) (start, step, count int, err error) {
	var b [3]int64
	var set [3]bool
	for i, v := range bounds {
		if v == nil {
			continue
		}
		if _, none := v.(None); none {
			continue
		}
		if !isInteger(v) {
			return 0, 0, 0, typeErrf("slice indices must be integers or None or have an __index__ method")
		}
		if b[i], err = indexInt(v, "slice index"); err != nil {
			return 0, 0, 0, err
		}
		set[i] = true
	}
	st := int64(1)
	if set[2] {
		st = max(b[2], -math.MaxInt64)
	}
	if st == 0 {
		return 0, 0, 0, valueErrf("slice step cannot be zero")
	}
	size := int64(n)
	low, high := int64(0), size
	if st < 0 {
		low, high = -1, size-1
	}
	clamp := func(i int, def int64) int64 {
		if !set[i] {
			return def
		}
		k := b[i]
		if k < 0 {
			k = max(k+size, low)
		}
		return min(k, high)
	}
	lo, hi := clamp(0, low), clamp(1, high)
	if st < 0 {
		lo, hi = clamp(0, high), clamp(1, low)
	}
	cnt := int64(0)
	if st > 0 && lo < hi {
		cnt = (hi-lo-1)/st + 1
	} else if st < 0 && hi < lo {
		cnt = (lo-hi-1)/-st + 1
	}
	if cnt <= 1 {
		st = 1 // a step that is never taken must not overflow
	}
	if cnt == 0 {
		lo = 0
	}
	return int(lo), int(st), int(cnt), nil
}

// ---- methods of lists, tuples, mappings and numbers

func indexOf(in *interp, items []Value, a *args, what string) (Value, error) {
	v, err := a.bind("index", "value", "start?", "stop?", "/")
	if err != nil {
		return nil, err
	}
	bounds := [3]Value{v[1], v[2], nil}
	lo, _, n, err := sliceRange(bounds, len(items))
	if err != nil {
		return nil, err
	}
	for i := lo; i < lo+n; i++ {
		eq, err := in.equal(items[i], v[0])
		if err != nil {
			return nil, err
		}
		if eq {
			return Int(i), nil
		}
	}
	return nil, valueErrf("value is not in %s", what)
}

func countOf(in *interp, self Value, a *args) (Value, error) {
	v, err := a.bind("count", "value", "/")
	if err != nil {
		return nil, err
	}
	items, err := in.items(self)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, it := range items {
		eq, err := in.equal(it, v[0])
		if err != nil {
			return nil, err
		}
		if eq {
			n++
		}
	}
	return Int(n), nil
}

func index(in *interp, self Value, a *args) (Value, error) {
	items, err := in.items(self)
	if err != nil {
		return nil, err
	}
	return indexOf(in, items, a, self.typeName())
}

func copyOf(in *interp, self Value, a *args) (Value, error) {
	if _, err := a.bind("copy"); err != nil {
		return nil, err
	}
	if d, ok := self.(*Dict); ok {
		c := *d // values are immutable, so the parts may be shared
		return &c, nil
	}
	return &List{items: self.(*List).items}, nil
}

var (
	listMethods  = map[string]method{"count": countOf, "index": index, "copy": copyOf}
	tupleMethods = map[string]method{"count": countOf, "index": index}
	dictMethods  = map[string]method{
		"copy": copyOf, "fromkeys": func(in *interp, _ Value, a *args) (Value, error) { return dictFromKeys(in, a) },
		"get": func(in *interp, self Value, a *args) (Value, error) {
			v, err := a.bind("get", "key", "default?", "/")
			if err != nil {
				return nil, err
			}
			if err := in.chargeText(v[0]); err != nil {
				return nil, err
			}
			item, err := self.(*Dict).get(v[0])
			if item == nil && err == nil {
				if item = v[1]; item == nil {
					item = None{}
				}
			}
			return item, err
		},
		"items": viewOf("items"), "keys": viewOf("keys"), "values": viewOf("values"),
	}
	viewMethods = map[string]method{}
	intMethods  = map[string]method{
		"bit_length": func(_ *interp, self Value, a *args) (Value, error) {
			_, err := a.bind("bit_length")
			b, _ := asBig(self)
			return Int(b.BitLen()), err
		},
		"conjugate": func(in *interp, self Value, a *args) (Value, error) {
			if _, err := a.bind("conjugate"); err != nil {
				return nil, err
			}
			return in.unary("+", self)
		},
	}
	floatMethods = map[string]method{
		"is_integer": func(_ *interp, self Value, a *args) (Value, error) {
			_, err := a.bind("is_integer")
			f := float64(self.(Float))
			return Bool(f == math.Trunc(f) && !math.IsInf(f, 0)), err
		},
	}
)

func viewOf(kind string) method {
	return func(_ *interp, self Value, a *args) (Value, error) {
		if _, err := a.bind(kind); err != nil {
			return nil, err
		}
		return &dictView{self.(*Dict), kind}, nil
	}
}
