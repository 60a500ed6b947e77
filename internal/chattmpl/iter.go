package chattmpl

import "unicode/utf8"

// iterator is a lazy sequence that can be read once, like a Python generator.
type iterator struct {
	in   *interp
	f    func() (Value, bool, error)
	done bool
	name string // as Python names its type; generator if empty
}

func (it *iterator) typeName() string {
	if it.name != "" {
		return it.name
	}
	return "generator"
}

// next returns the next item. Chains of lazy filters nest, so each level counts.
func (it *iterator) next() (Value, bool, error) {
	if it.done {
		return nil, false, nil
	}
	if err := it.in.step(); err != nil {
		return nil, false, err
	}
	if err := it.in.down(); err != nil {
		return nil, false, err
	}
	v, ok, err := it.f()
	it.in.up()
	if !ok || err != nil {
		it.done = true
	}
	return v, ok, err
}

func (in *interp) sliceIter(items []Value) *iterator {
	i := 0
	return &iterator{in: in, f: func() (Value, bool, error) {
		if i >= len(items) {
			return nil, false, nil
		}
		i++
		return items[i-1], true, nil
	}}
}

// iter is Python's iter().
func (in *interp) iter(v Value) (*iterator, error) {
	switch x := v.(type) {
	case *List:
		return in.sliceIter(x.items), nil
	case *Tuple:
		return in.sliceIter(x.items), nil
	case *Dict:
		return in.iter(&dictView{x, "keys"})
	case *dictView:
		i := 0
		return &iterator{in: in, f: func() (Value, bool, error) {
			if i >= len(x.d.entries) {
				return nil, false, nil
			}
			i++
			return x.at(i - 1), true, nil
		}}, nil
	case *rangeVal:
		i := int64(0)
		return &iterator{in: in, f: func() (Value, bool, error) {
			if i >= x.n {
				return nil, false, nil
			}
			i++
			return Int(x.start + (i-1)*x.step), true, nil
		}}, nil
	case Str:
		i := 0
		return &iterator{in: in, f: func() (Value, bool, error) {
			if i >= len(x.s) {
				return nil, false, nil
			}
			_, n := utf8.DecodeRuneInString(x.s[i:])
			c := x.sub(i, i+n).plain()
			i += n
			return c, true, nil
		}}, nil
	case *iterator:
		return x, nil
	case *loopCtx:
		return &iterator{in: in, f: func() (Value, bool, error) {
			item, ok, err := x.next()
			if !ok || err != nil {
				return nil, false, err
			}
			return &Tuple{items: []Value{item, x}}, true, nil
		}}, nil
	case undefined:
		return in.sliceIter(nil), nil
	}
	return nil, typeErrf("'%s' object is not iterable", v.typeName())
}

// items reads an iterable to its end. The result must not be changed.
func (in *interp) items(v Value) ([]Value, error) {
	switch x := v.(type) {
	case *List:
		return x.items, nil
	case *Tuple:
		return x.items, nil
	}
	it, err := in.iter(v)
	if err != nil {
		return nil, err
	}
	return in.drain(it)
}

func (in *interp) drain(it *iterator) ([]Value, error) {
	var out []Value
	for {
		v, ok, err := it.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			return out, nil
		}
		out = append(out, v)
	}
}

// lengthOf is Python's len() of what has one.
func lengthOf(v Value) (int, bool) {
	switch x := v.(type) {
	case Str:
		return runeLen(x.s), true
	case *List:
		return len(x.items), true
	case *Tuple:
		return len(x.items), true
	case *Dict:
		return len(x.entries), true
	case *dictView:
		return len(x.d.entries), true
	case *rangeVal:
		return int(x.n), true
	case undefined:
		return 0, true
	}
	return 0, false
}
