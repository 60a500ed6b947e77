package chattmpl

import "fmt"

// loopCtx is the variable loop inside a for block.
type loopCtx struct {
	in       *interp
	iterable Value
	it       *iterator
	index0   int
	after    Value // peeked item; nil if none was peeked or none is left
	current  Value
	before   Value
	length   int // -1 until known
	changed  []Value
	called   bool
	recurse  func(v Value, depth int) (Value, error)
	depth0   int
}

func (*loopCtx) typeName() string { return "LoopContext" }

func newLoopCtx(in *interp, iterable Value) (*loopCtx, error) {
	it, err := in.iter(iterable)
	if err != nil {
		return nil, err
	}
	return &loopCtx{in: in, iterable: iterable, it: it, index0: -1, length: -1}, nil
}

func (l *loopCtx) next() (Value, bool, error) {
	v := l.after
	l.after = nil
	if v == nil {
		var ok bool
		var err error
		if v, ok, err = l.it.next(); err != nil || !ok {
			return nil, false, err
		}
	}
	l.index0++
	l.before, l.current = l.current, v
	return v, true, nil
}

func (l *loopCtx) peek() (Value, error) {
	if l.after == nil {
		v, ok, err := l.it.next()
		if err != nil {
			return nil, err
		}
		if ok {
			l.after = v
		}
	}
	return l.after, nil
}

// len is the number of items, for which a lazy iterable is read to its end.
func (l *loopCtx) len() (int, error) {
	if l.length >= 0 {
		return l.length, nil
	}
	if n, ok := lengthOf(l.iterable); ok {
		l.length = n
		return n, nil
	}
	rest, err := l.in.drain(l.it)
	if err != nil {
		return 0, err
	}
	l.it = l.in.sliceIter(rest)
	l.length = len(rest) + l.index0 + 1
	if l.after != nil {
		l.length++
	}
	return l.length, nil
}

// attr returns an attribute, or nil if there is none of that name.
func (l *loopCtx) attr(name string) (Value, error) {
	switch name {
	case "index":
		return Int(l.index0 + 1), nil
	case "index0":
		return Int(l.index0), nil
	case "first":
		return Bool(l.index0 == 0), nil
	case "depth":
		return Int(l.depth0 + 1), nil
	case "depth0":
		return Int(l.depth0), nil
	case "length", "revindex", "revindex0":
		n, err := l.len()
		switch name {
		case "revindex":
			n -= l.index0
		case "revindex0":
			n -= l.index0 + 1
		}
		return Int(n), err
	case "last":
		v, err := l.peek()
		return Bool(v == nil), err
	case "nextitem":
		v, err := l.peek()
		if v == nil && err == nil {
			v = undefined{hint: "there is no next item"}
		}
		return v, err
	case "previtem":
		if l.index0 == 0 || l.before == nil {
			return undefined{hint: "there is no previous item"}, nil
		}
		return l.before, nil
	case "cycle":
		return &callable{"cycle", l.cycle}, nil
	case "changed":
		return &callable{"changed", l.hasChanged}, nil
	}
	return nil, nil
}

func (l *loopCtx) cycle(in *interp, a *args) (Value, error) {
	if err := a.noKeywords("cycle"); err != nil {
		return nil, err
	}
	if len(a.pos) == 0 {
		return nil, typeErrf("no items for cycling given")
	}
	return a.pos[l.index0%len(a.pos)], nil
}

func (l *loopCtx) hasChanged(in *interp, a *args) (Value, error) {
	if err := a.noKeywords("changed"); err != nil {
		return nil, err
	}
	if l.called {
		same, err := in.equalItems(l.changed, a.pos)
		if err != nil {
			return nil, err
		}
		if same {
			return Bool(false), nil
		}
	}
	l.called, l.changed = true, a.pos
	return Bool(true), nil
}

func (l *loopCtx) repr() (string, error) {
	n, err := l.len()
	return fmt.Sprintf("<LoopContext %d/%d>", l.index0+1, n), err
}

func (s *forStmt) exec(in *interp) (signal, error) {
	v, err := in.eval(s.iter)
	if err != nil {
		return sigNone, err
	}
	if !s.recursive {
		return s.run(in, v, nil, 0)
	}
	outer := in.act
	var recurse func(v Value, depth int) (Value, error)
	recurse = func(v Value, depth int) (Value, error) {
		if err := in.down(); err != nil {
			return nil, err
		}
		defer in.up()
		saved := in.act
		in.act = newActivation(s.bodyFn, outer)
		defer func() { in.act = saved }()
		return in.capture(func() error {
			_, err := s.run(in, v, recurse, depth)
			return err
		})
	}
	text, err := recurse(v, 0)
	if err != nil {
		return sigNone, err
	}
	return sigNone, in.write(text.(Str))
}

// run goes through the items in the current activation.
func (s *forStmt) run(in *interp, v Value, recurse func(Value, int) (Value, error), depth int) (signal, error) {
	var err error
	if s.test != nil {
		if v, err = s.filtered(in, v); err != nil {
			return sigNone, in.located(s.iter.pos(), err)
		}
	}
	var next func() (Value, bool, error)
	if s.loop != nil {
		l, err := newLoopCtx(in, v)
		if err != nil {
			return sigNone, in.located(s.iter.pos(), err)
		}
		l.recurse, l.depth0 = recurse, depth
		*in.cell(s.loop.ref) = l
		next = l.next
	} else {
		it, err := in.iter(v)
		if err != nil {
			return sigNone, in.located(s.iter.pos(), err)
		}
		next = it.next
	}
	loop := Value(nil)
	if s.loop != nil {
		loop = *in.cell(s.loop.ref)
		*in.cell(s.loop.ref) = nil
	}
	// As in Jinja2, the else branch runs unless some round reached its end.
	empty := true
	for {
		item, ok, err := next()
		if err != nil {
			return sigNone, err
		}
		if !ok {
			break
		}
		if err := in.assign(s.target, item); err != nil {
			return sigNone, err
		}
		if loop != nil {
			*in.cell(s.loop.ref) = loop
		}
		in.enter(s.bodyFrame)
		sig, err := in.execAll(s.body)
		if err != nil {
			return sigNone, err
		}
		if sig == sigBreak {
			break
		}
		if sig == sigNone {
			empty = false
		}
	}
	in.leave(s.bodyFrame)
	if !empty || s.els == nil {
		return sigNone, nil
	}
	in.enter(s.elsFrame)
	sig, err := in.execAll(s.els)
	in.leave(s.elsFrame)
	return sig, err
}

// filtered is the lazy sequence of the items that pass the loop's condition.
func (s *forStmt) filtered(in *interp, v Value) (Value, error) {
	it, err := in.iter(v)
	if err != nil {
		return nil, err
	}
	outer := in.act
	var act *activation
	return &iterator{in: in, f: func() (Value, bool, error) {
		saved := in.act
		defer func() { in.act = saved }()
		if act == nil {
			act = newActivation(s.testFn, outer)
			in.act = act
			in.enter(s.testFrame)
		}
		in.act = act
		for {
			item, ok, err := it.next()
			if err != nil || !ok {
				return nil, false, err
			}
			if err := in.assign(s.testTarget, item); err != nil {
				return nil, false, err
			}
			pass, err := in.eval(s.test)
			if err != nil {
				return nil, false, err
			}
			if truth(pass) {
				return item, true, nil
			}
		}
	}}, nil
}
