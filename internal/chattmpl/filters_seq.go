package chattmpl

import (
	"sort"
	"strings"
)

type getter func(Value) (Value, error)

// attrGetter reads a dotted path, whose all-digit parts are indices.
func (in *interp) attrGetter(attr Value, def Value) (getter, error) {
	parts, err := attrPath(attr)
	if err != nil {
		return nil, err
	}
	return func(v Value) (Value, error) {
		for _, p := range parts {
			var err error
			if v, err = in.getItem(v, p); err != nil {
				return nil, err
			}
			if _, u := v.(undefined); u && def != nil {
				v = def
			}
		}
		return v, nil
	}, nil
}

func attrPath(attr Value) ([]Value, error) {
	s, ok := attr.(Str)
	if !ok {
		if isNone(attr) {
			return nil, nil
		}
		return []Value{attr}, nil
	}
	var parts []Value
	for _, p := range strings.Split(s.s, ".") {
		if p != "" && strings.IndexFunc(p, func(r rune) bool { return !isDigitRune(r) }) < 0 {
			n, ok := parseInt(p, 10)
			if !ok {
				return nil, valueErrf("invalid literal for int() with base 10: '%s'", p)
			}
			parts = append(parts, n)
			continue
		}
		parts = append(parts, lit(p))
	}
	return parts, nil
}

// folded lowers strings for comparisons that ignore case.
func folded(v Value) Value {
	if s, ok := v.(Str); ok {
		return lowerStr(s)
	}
	return v
}

func caseSensitive(v Value) bool { return v != nil && truth(v) }

// sortBy sorts items stably by keys, which must be comparable.
func (in *interp) sortBy(items []Value, key getter, reverse bool) ([]Value, error) {
	type pair struct{ key, item Value }
	pairs := make([]pair, len(items))
	for i, it := range items {
		k, err := key(it)
		if err != nil {
			return nil, err
		}
		pairs[i] = pair{k, it}
	}
	var failed error
	sort.SliceStable(pairs, func(i, j int) bool {
		if failed != nil {
			return false
		}
		a, b := pairs[i].key, pairs[j].key
		if reverse {
			a, b = b, a
		}
		c, ordered, err := in.order("<", a, b)
		if err == nil {
			err = in.step()
		}
		if err != nil {
			failed = err
		}
		return ordered && c < 0
	})
	out := make([]Value, len(pairs))
	for i, p := range pairs {
		out[i] = p.item
	}
	return out, failed
}

func filterSort(in *interp, x Value, a *args) (Value, error) {
	v, err := a.bind("sort", "reverse?", "case_sensitive?", "attribute?")
	if err != nil {
		return nil, err
	}
	var getters []getter
	attrs := []Value{v[2]}
	if s, ok := v[2].(Str); ok {
		attrs = nil
		for _, p := range strings.Split(s.s, ",") {
			attrs = append(attrs, lit(p))
		}
	}
	for _, at := range attrs {
		g, err := in.attrGetter(at, nil)
		if err != nil {
			return nil, err
		}
		getters = append(getters, g)
	}
	items, err := in.items(x)
	if err != nil {
		return nil, err
	}
	out, err := in.sortBy(items, func(it Value) (Value, error) {
		key := make([]Value, len(getters))
		for i, g := range getters {
			k, err := g(it)
			if err != nil {
				return nil, err
			}
			if !caseSensitive(v[1]) {
				k = folded(k)
			}
			key[i] = k
		}
		return &List{items: key}, nil
	}, v[0] != nil && truth(v[0]))
	return &List{items: out}, err
}

func filterDictSort(in *interp, x Value, a *args) (Value, error) {
	v, err := a.bind("dictsort", "case_sensitive?", "by?", "reverse?")
	if err != nil {
		return nil, err
	}
	pos := 0
	if v[1] != nil {
		by, _ := v[1].(Str)
		switch by.s {
		case "key":
		case "value":
			pos = 1
		default:
			return nil, &evalError{kind: "FilterArgumentError", msg: "you can only sort by either \"key\" or \"value\""}
		}
	}
	d, ok := x.(*Dict)
	if !ok {
		if u, isU := x.(undefined); isU {
			return nil, u.fail()
		}
		return nil, &evalError{kind: "AttributeError", msg: "'" + x.typeName() + "' object has no attribute 'items'"}
	}
	items, err := in.items(&dictView{d, "items"})
	if err != nil {
		return nil, err
	}
	out, err := in.sortBy(items, func(it Value) (Value, error) {
		k := it.(*Tuple).items[pos]
		if !caseSensitive(v[0]) {
			k = folded(k)
		}
		return k, nil
	}, v[2] != nil && truth(v[2]))
	return &List{items: out}, err
}

func filterGroupBy(in *interp, x Value, a *args) (Value, error) {
	v, err := a.bind("groupby", "attribute", "default?", "case_sensitive?")
	if err != nil {
		return nil, err
	}
	def := v[1]
	if isNone(def) {
		def = nil
	}
	get, err := in.attrGetter(v[0], def)
	if err != nil {
		return nil, err
	}
	key := func(it Value) (Value, error) {
		k, err := get(it)
		if err == nil && !caseSensitive(v[2]) {
			k = folded(k)
		}
		return k, err
	}
	items, err := in.items(x)
	if err != nil {
		return nil, err
	}
	if items, err = in.sortBy(items, key, false); err != nil {
		return nil, err
	}
	out := &List{}
	var last Value
	for _, it := range items {
		k, err := key(it)
		if err != nil {
			return nil, err
		}
		if last != nil {
			same, err := in.equal(last, k)
			if err != nil {
				return nil, err
			}
			if same {
				group := out.items[len(out.items)-1].(*Tuple).items[1].(*List)
				group.items = append(group.items, it)
				continue
			}
		}
		last = k
		shown, err := get(it)
		if err != nil {
			return nil, err
		}
		out.items = append(
			out.items,
			&Tuple{items: []Value{shown, &List{items: []Value{it}}}, names: []string{"grouper", "list"}},
		)
	}
	return out, nil
}

func filterUnique(in *interp, x Value, a *args) (Value, error) {
	v, err := a.bind("unique", "case_sensitive?", "attribute?")
	if err != nil {
		return nil, err
	}
	get, err := in.attrGetter(v[1], nil)
	if err != nil {
		return nil, err
	}
	var it *iterator
	seen := map[hashKey]bool{}
	return &iterator{in: in, f: func() (Value, bool, error) {
		if it == nil {
			if it, err = in.iter(x); err != nil {
				return nil, false, err
			}
		}
		for {
			item, ok, err := it.next()
			if err != nil || !ok {
				return nil, false, err
			}
			k, err := get(item)
			if err != nil {
				return nil, false, err
			}
			if !caseSensitive(v[0]) {
				k = folded(k)
			}
			if err := in.chargeText(k); err != nil {
				return nil, false, err
			}
			h, err := hashOf(k)
			if err != nil {
				return nil, false, err
			}
			if !seen[h] {
				seen[h] = true
				return item, true, nil
			}
		}
	}}, nil
}

func extreme(in *interp, x Value, a *args, name string) (Value, error) {
	v, err := a.bind(name, "case_sensitive?", "attribute?")
	if err != nil {
		return nil, err
	}
	get, err := in.attrGetter(v[1], nil)
	if err != nil {
		return nil, err
	}
	items, err := in.items(x)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return undefined{hint: "No aggregated item, sequence was empty."}, nil
	}
	var best, bestKey Value
	op := map[string]string{"min": "<", "max": ">"}[name]
	for _, it := range items {
		k, err := get(it)
		if err != nil {
			return nil, err
		}
		if !caseSensitive(v[0]) {
			k = folded(k)
		}
		if best == nil {
			best, bestKey = it, k
			continue
		}
		better, err := in.compare(op, k, bestKey)
		if err != nil {
			return nil, err
		}
		if truth(better) {
			best, bestKey = it, k
		}
	}
	return best, nil
}

func filterMin(in *interp, x Value, a *args) (Value, error) { return extreme(in, x, a, "min") }
func filterMax(in *interp, x Value, a *args) (Value, error) { return extreme(in, x, a, "max") }

func filterSum(in *interp, x Value, a *args) (Value, error) {
	v, err := a.bind("sum", "attribute?", "start?")
	if err != nil {
		return nil, err
	}
	var total Value = Int(0)
	if v[1] != nil {
		total = v[1]
	}
	if _, isStr := total.(Str); isStr {
		return nil, typeErrf("sum() can't sum strings")
	}
	get, err := in.attrGetter(v[0], nil)
	if err != nil {
		return nil, err
	}
	it, err := in.iter(x)
	if err != nil {
		return nil, err
	}
	for {
		item, ok, err := it.next()
		if err != nil || !ok {
			return total, err
		}
		if item, err = get(item); err != nil {
			return nil, err
		}
		if total, err = in.binary("+", total, item); err != nil {
			return nil, err
		}
	}
}

func filterFirst(in *interp, x Value, a *args) (Value, error) {
	if _, err := a.bind("first"); err != nil {
		return nil, err
	}
	it, err := in.iter(x)
	if err != nil {
		return nil, err
	}
	v, ok, err := it.next()
	if err == nil && !ok {
		return undefined{hint: "No first item, sequence was empty."}, nil
	}
	return v, err
}

func filterLast(in *interp, x Value, a *args) (Value, error) {
	if _, err := a.bind("last"); err != nil {
		return nil, err
	}
	items, err := in.reversible(x)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return undefined{hint: "No last item, sequence was empty."}, nil
	}
	return items[len(items)-1], nil
}

// reversible reads what Python's reversed() accepts.
func (in *interp) reversible(x Value) ([]Value, error) {
	switch x.(type) {
	case Str, *List, *Tuple, *Dict, *dictView, *rangeVal:
		return in.items(x)
	case undefined:
		return nil, nil
	}
	return nil, typeErrf("'%s' object is not reversible", x.typeName())
}

func filterReverse(in *interp, x Value, a *args) (Value, error) {
	if _, err := a.bind("reverse"); err != nil {
		return nil, err
	}
	if s, ok := x.(Str); ok {
		return in.slice(s, [3]Value{nil, nil, Int(-1)})
	}
	items, err := in.items(x)
	if err != nil {
		return nil, &evalError{kind: "FilterArgumentError", msg: "argument must be iterable", err: err}
	}
	if err := in.charge(len(items)); err != nil {
		return nil, err
	}
	out := make([]Value, len(items))
	for i, it := range items {
		out[len(items)-1-i] = it
	}
	switch x.(type) {
	case *iterator:
		return &List{items: out}, nil
	}
	it := in.sliceIter(out)
	it.name = "reversed"
	return it, nil
}

func filterList(in *interp, x Value, a *args) (Value, error) {
	if _, err := a.bind("list"); err != nil {
		return nil, err
	}
	items, err := in.items(x)
	return &List{items: items}, err
}

func filterItems(in *interp, x Value, a *args) (Value, error) {
	if _, err := a.bind("items"); err != nil {
		return nil, err
	}
	var it *iterator
	return &iterator{in: in, f: func() (Value, bool, error) {
		if it == nil {
			switch d := x.(type) {
			case undefined:
				return nil, false, nil
			case *Dict:
				it, _ = in.iter(&dictView{d, "items"})
			default:
				return nil, false, typeErrf("Can only get item pairs from a mapping.")
			}
		}
		return it.next()
	}}, nil
}

// lazily applies f to each item; a false value gives no items, as in Jinja2.
func (in *interp) lazily(x Value, prepare func() (func(Value) (Value, bool, error), error)) Value {
	var it *iterator
	var f func(Value) (Value, bool, error)
	return &iterator{in: in, f: func() (Value, bool, error) {
		var err error
		if f == nil {
			if !truth(x) {
				return nil, false, nil
			}
			if f, err = prepare(); err != nil {
				return nil, false, err
			}
			if it, err = in.iter(x); err != nil {
				return nil, false, err
			}
		}
		for {
			item, ok, err := it.next()
			if err != nil || !ok {
				return nil, false, err
			}
			out, keep, err := f(item)
			if err != nil || keep {
				return out, true, err
			}
		}
	}}
}

func filterMap(in *interp, x Value, a *args) (Value, error) {
	return in.lazily(x, func() (func(Value) (Value, bool, error), error) {
		var attr, def Value
		for _, kv := range a.kw {
			switch kv.Key {
			case "attribute":
				attr = kv.Value
			case "default":
				def = kv.Value
			}
		}
		if len(a.pos) == 0 && attr != nil {
			for _, kv := range a.kw {
				if kv.Key != "attribute" && kv.Key != "default" {
					return nil, &evalError{
						kind: "FilterArgumentError",
						msg:  "unexpected keyword argument '" + kv.Key + "'",
					}
				}
			}
			if isNone(def) {
				def = nil
			}
			get, err := in.attrGetter(attr, def)
			if err != nil {
				return nil, err
			}
			return func(v Value) (Value, bool, error) {
				out, err := get(v)
				return out, true, err
			}, nil
		}
		if len(a.pos) == 0 {
			return nil, &evalError{kind: "FilterArgumentError", msg: "map requires a filter argument"}
		}
		name, _ := a.pos[0].(Str)
		f := filterTable[name.s]
		if f == nil {
			return nil, &evalError{kind: "TemplateRuntimeError", msg: "no filter named '" + name.s + "'"}
		}
		rest := &args{pos: a.pos[1:], kw: a.kw}
		return func(v Value) (Value, bool, error) {
			out, err := f(in, v, rest)
			return out, true, err
		}, nil
	}), nil
}

// selector makes select, reject, selectattr and rejectattr.
func selector(name string, byAttr, want bool) filterFunc {
	return func(in *interp, x Value, a *args) (Value, error) {
		return in.lazily(x, func() (func(Value) (Value, bool, error), error) {
			pos := a.pos
			get := func(v Value) (Value, error) { return v, nil }
			if byAttr {
				if len(pos) == 0 {
					return nil, &evalError{kind: "FilterArgumentError", msg: "missing parameter for attribute name"}
				}
				var err error
				if get, err = in.attrGetter(pos[0], nil); err != nil {
					return nil, err
				}
				pos = pos[1:]
			}
			check := func(v Value) (Value, error) { return Bool(truth(v)), nil }
			if len(pos) > 0 {
				test, _ := pos[0].(Str)
				f := testTable[test.s]
				if f == nil {
					return nil, &evalError{kind: "TemplateRuntimeError", msg: "no test named '" + test.s + "'"}
				}
				rest := &args{pos: pos[1:], kw: a.kw}
				check = func(v Value) (Value, error) { return f(in, v, rest) }
			}
			return func(item Value) (Value, bool, error) {
				v, err := get(item)
				if err != nil {
					return nil, false, err
				}
				ok, err := check(v)
				if err != nil {
					return nil, false, err
				}
				return item, truth(ok) == want, nil
			}, nil
		}), nil
	}
}

func filterBatch(in *interp, x Value, a *args) (Value, error) {
	v, err := a.bind("batch", "linecount", "fill_with?")
	if err != nil {
		return nil, err
	}
	var it *iterator
	var pending Value
	return &iterator{in: in, f: func() (Value, bool, error) {
		if it == nil {
			if it, err = in.iter(x); err != nil {
				return nil, false, err
			}
		}
		var row []Value
		if pending != nil {
			row, pending = append(row, pending), nil
		}
		size, _ := asFloat(v[0])
		for {
			item, ok, err := it.next()
			if err != nil {
				return nil, false, err
			}
			if !ok {
				break
			}
			if isNumber(v[0]) && float64(len(row)) == size {
				pending = item
				return &List{items: row}, true, nil
			}
			row = append(row, item)
		}
		if len(row) == 0 {
			return nil, false, nil
		}
		if !isNone(v[1]) {
			n, err := indexInt(v[0], "linecount")
			if err != nil {
				return nil, false, err
			}
			if missing := n - int64(len(row)); missing > 0 {
				fill, err := in.repeat(&List{items: []Value{v[1]}}, Int(missing))
				if err != nil {
					return nil, false, err
				}
				row = append(row, fill.(*List).items...)
			}
		}
		return &List{items: row}, true, nil
	}}, nil
}

func filterSlice(in *interp, x Value, a *args) (Value, error) {
	v, err := a.bind("slice", "slices", "fill_with?")
	if err != nil {
		return nil, err
	}
	var items []Value
	i, offset := int64(-1), int64(0)
	var n int64
	return &iterator{in: in, f: func() (Value, bool, error) {
		if i < 0 {
			if items, err = in.items(x); err != nil {
				return nil, false, err
			}
			if n, err = indexInt(v[0], "slices"); err != nil {
				return nil, false, err
			}
			if n == 0 {
				return nil, false, &evalError{kind: "ZeroDivisionError", msg: "integer division or modulo by zero"}
			}
			i = 0
		}
		if i >= n {
			return nil, false, nil
		}
		per, extra := int64(len(items))/n, int64(len(items))%n
		start := offset + i*per
		if i < extra {
			offset++
		}
		end := offset + (i+1)*per
		row := append([]Value(nil), items[start:end]...)
		if !isNone(v[1]) && i >= extra {
			row = append(row, v[1])
		}
		i++
		return &List{items: row}, true, in.charge(len(row))
	}}, nil
}

// filterRandom is refused: the same request must give the same prompt.
func filterRandom(in *interp, x Value, a *args) (Value, error) {
	return nil, &evalError{
		kind: "SecurityError",
		msg:  "the filter 'random' is refused: a prompt must not depend on chance",
	}
}
