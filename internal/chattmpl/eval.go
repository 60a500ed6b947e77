package chattmpl

// eval evaluates an expression; its error has a place in the template.
func (in *interp) eval(e expr) (Value, error) {
	if err := in.step(); err != nil {
		return nil, in.located(e.pos(), err)
	}
	v, err := e.eval(in)
	if err != nil {
		return nil, in.located(e.pos(), err)
	}
	return v, nil
}

func (in *interp) evalAll(list []expr) ([]Value, error) {
	out := make([]Value, len(list))
	for i, e := range list {
		v, err := in.eval(e)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (e *constExpr) eval(*interp) (Value, error) { return e.v, nil }

func (e *nameExpr) eval(in *interp) (Value, error) {
	if v := *in.cell(e.ref); v != nil {
		return v, nil
	}
	return undefined{name: "'" + e.name + "'"}, nil
}

func (e *nsRef) eval(in *interp) (Value, error) {
	return nil, typeErrf("a namespace target has no value")
}

func (e *tupleExpr) eval(in *interp) (Value, error) {
	items, err := in.evalAll(e.items)
	return &Tuple{items: items}, err
}

func (e *listExpr) eval(in *interp) (Value, error) {
	items, err := in.evalAll(e.items)
	return &List{items: items}, err
}

func (e *dictExpr) eval(in *interp) (Value, error) {
	d := &Dict{}
	for i := range e.keys {
		k, err := in.eval(e.keys[i])
		if err != nil {
			return nil, err
		}
		v, err := in.eval(e.vals[i])
		if err != nil {
			return nil, err
		}
		if err := in.chargeText(k); err != nil {
			return nil, err
		}
		if err := d.set(k, v); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (e *unaryExpr) eval(in *interp) (Value, error) {
	v, err := in.eval(e.x)
	if err != nil {
		return nil, err
	}
	if e.op == "not" {
		return Bool(!truth(v)), nil
	}
	return in.unary(e.op, v)
}

func (e *binExpr) eval(in *interp) (Value, error) {
	x, err := in.eval(e.x)
	if err != nil {
		return nil, err
	}
	switch e.op {
	case "and":
		if !truth(x) {
			return x, nil
		}
		return in.eval(e.y)
	case "or":
		if truth(x) {
			return x, nil
		}
		return in.eval(e.y)
	}
	y, err := in.eval(e.y)
	if err != nil {
		return nil, err
	}
	return in.binary(e.op, x, y)
}

func (e *concatExpr) eval(in *interp) (Value, error) {
	b := in.newBuilder()
	vals, err := in.evalAll(e.parts)
	if err != nil {
		return nil, err
	}
	for _, v := range vals {
		s, err := in.str(v)
		if err != nil {
			return nil, err
		}
		b.str(s)
	}
	return in.finish(b)
}

func (e *compareExpr) eval(in *interp) (Value, error) {
	x, err := in.eval(e.x)
	if err != nil {
		return nil, err
	}
	var last Value
	for i, op := range e.ops {
		y, err := in.eval(e.ys[i])
		if err != nil {
			return nil, err
		}
		if last, err = in.compare(op, x, y); err != nil {
			return nil, err
		}
		if !truth(last) {
			return last, nil
		}
		x = y
	}
	return last, nil
}

func (e *condExpr) eval(in *interp) (Value, error) {
	t, err := in.eval(e.test)
	if err != nil {
		return nil, err
	}
	if truth(t) {
		return in.eval(e.then)
	}
	if e.els != nil {
		return in.eval(e.els)
	}
	return undefined{hint: "the inline if-expression evaluated to false and no else section was defined."}, nil
}

func (e *attrExpr) eval(in *interp) (Value, error) {
	x, err := in.eval(e.x)
	if err != nil {
		return nil, err
	}
	return in.getAttr(x, e.name)
}

func (e *itemExpr) eval(in *interp) (Value, error) {
	x, err := in.eval(e.x)
	if err != nil {
		return nil, err
	}
	k, err := in.eval(e.key)
	if err != nil {
		return nil, err
	}
	return in.getItem(x, k)
}

func (e *sliceKey) eval(in *interp) (Value, error) {
	return nil, typeErrf("a slice cannot be part of a longer subscript")
}

func (e *sliceExpr) eval(in *interp) (Value, error) {
	x, err := in.eval(e.x)
	if err != nil {
		return nil, err
	}
	var bounds [3]Value
	for i, b := range []expr{e.lo, e.hi, e.step} {
		if b == nil {
			continue
		}
		if bounds[i], err = in.eval(b); err != nil {
			return nil, err
		}
	}
	return in.slice(x, bounds)
}

func (e *filterExpr) eval(in *interp) (Value, error) {
	if e.x == nil {
		return nil, typeErrf("filter %q has nothing to filter", e.name)
	}
	x, err := in.eval(e.x)
	if err != nil {
		return nil, err
	}
	return e.apply(in, x)
}

// apply runs the filter on a value; filters of set and filter blocks chain
// down to the block's text.
func (e *filterExpr) apply(in *interp, x Value) (Value, error) {
	if inner, ok := e.x.(*filterExpr); ok && inner.bottomless() {
		var err error
		if x, err = inner.apply(in, x); err != nil {
			return nil, err
		}
	}
	if e.fn == nil {
		return nil, &evalError{kind: "TemplateRuntimeError", msg: "no filter named '" + e.name + "' found"}
	}
	a, err := in.args(&e.args)
	if err != nil {
		return nil, err
	}
	return e.fn(in, x, a)
}

// bottomless tells whether a chain of filters starts without a value.
func (e *filterExpr) bottomless() bool {
	for {
		switch x := e.x.(type) {
		case nil:
			return true
		case *filterExpr:
			e = x
		default:
			return false
		}
	}
}

func (e *testExpr) eval(in *interp) (Value, error) {
	x, err := in.eval(e.x)
	if err != nil {
		return nil, err
	}
	if e.fn == nil {
		return nil, &evalError{kind: "TemplateRuntimeError", msg: "no test named '" + e.name + "' found"}
	}
	a, err := in.args(&e.args)
	if err != nil {
		return nil, err
	}
	return e.fn(in, x, a)
}

func (e *callExpr) eval(in *interp) (Value, error) { return e.call(in, nil) }

// call makes the call, with a caller where a call block has one.
func (e *callExpr) call(in *interp, caller *macro) (Value, error) {
	f, err := in.eval(e.x)
	if err != nil {
		return nil, err
	}
	a, err := in.args(&e.args)
	if err != nil {
		return nil, err
	}
	if caller != nil {
		if err := a.addKeyword("caller", caller); err != nil {
			return nil, err
		}
	}
	return in.call(f, a)
}

func (in *interp) call(f Value, a *args) (Value, error) {
	if err := in.down(); err != nil {
		return nil, err
	}
	defer in.up()
	switch x := f.(type) {
	case *macro:
		return x.call(in, a)
	case *callable:
		return x.fn(in, a)
	case *loopCtx:
		if x.recurse == nil {
			return nil, typeErrf("the loop must have the 'recursive' marker to be called recursively")
		}
		v, err := a.bind("loop", "iterable")
		if err != nil {
			return nil, err
		}
		return x.recurse(v[0], x.depth0+1)
	case *joiner:
		if x.used {
			return x.sep, nil
		}
		x.used = true
		return lit(""), nil
	case undefined:
		return nil, x.fail()
	}
	return nil, typeErrf("'%s' object is not callable", f.typeName())
}

// args are the evaluated arguments of a call.
type args struct {
	pos []Value
	kw  []KV
}

func (in *interp) args(c *callArgs) (*args, error) {
	a := &args{}
	var err error
	if len(c.pos) > 0 {
		if a.pos, err = in.evalAll(c.pos); err != nil {
			return nil, err
		}
	}
	for i, name := range c.kwNames {
		v, err := in.eval(c.kwVals[i])
		if err != nil {
			return nil, err
		}
		a.kw = append(a.kw, KV{name, v})
	}
	if c.star != nil {
		v, err := in.eval(c.star)
		if err != nil {
			return nil, err
		}
		more, err := in.items(v)
		if err != nil {
			return nil, err
		}
		if err := in.charge(len(more)); err != nil {
			return nil, err
		}
		a.pos = append(a.pos, more...)
	}
	if c.starStar != nil {
		v, err := in.eval(c.starStar)
		if err != nil {
			return nil, err
		}
		d, ok := v.(*Dict)
		if !ok {
			return nil, typeErrf("argument after ** must be a mapping, not %s", v.typeName())
		}
		for _, e := range d.entries {
			k, ok := e.key.(Str)
			if !ok {
				return nil, typeErrf("keywords must be strings")
			}
			if err := in.step(); err != nil {
				return nil, err
			}
			if err := a.addKeyword(k.s, e.val); err != nil {
				return nil, err
			}
		}
	}
	return a, nil
}

func (a *args) addKeyword(name string, v Value) error {
	for _, kv := range a.kw {
		if kv.Key == name {
			return typeErrf("got multiple values for keyword argument '%s'", name)
		}
	}
	a.kw = append(a.kw, KV{name, v})
	return nil
}

func (a *args) noKeywords(fn string) error {
	if len(a.kw) > 0 {
		return typeErrf("%s() takes no keyword arguments", fn)
	}
	return nil
}

// bind matches arguments to parameters. A parameter "x?" may be missing and is
// then nil; "/" means that the parameters before it are positional only.
func (a *args) bind(fn string, params ...string) ([]Value, error) {
	names := make([]string, 0, len(params))
	optional := make([]bool, 0, len(params))
	posOnly := 0
	for _, p := range params {
		if p == "/" {
			posOnly = len(names)
			continue
		}
		opt := p[len(p)-1] == '?'
		if opt {
			p = p[:len(p)-1]
		}
		names, optional = append(names, p), append(optional, opt)
	}
	if len(a.pos) > len(names) {
		return nil, typeErrf("%s() takes at most %d arguments (%d given)", fn, len(names), len(a.pos))
	}
	out := make([]Value, len(names))
	copy(out, a.pos)
next:
	for _, kv := range a.kw {
		for i := posOnly; i < len(names); i++ {
			if names[i] == kv.Key {
				if out[i] != nil {
					return nil, typeErrf("%s() got multiple values for argument '%s'", fn, kv.Key)
				}
				out[i] = kv.Value
				continue next
			}
		}
		return nil, typeErrf("%s() got an unexpected keyword argument '%s'", fn, kv.Key)
	}
	for i := range out {
		if out[i] == nil && !optional[i] {
			return nil, typeErrf("%s() missing required argument '%s'", fn, names[i])
		}
	}
	return out, nil
}

// macro is a macro or a call block's body together with its surroundings.
type macro struct {
	def  *macroDef
	name string // empty for a call block's body
	act  *activation
}

func (*macro) typeName() string { return "Macro" }

func (m *macro) repr() string {
	if m.name == "" {
		return "<Macro anonymous>"
	}
	return "<Macro '" + m.name + "'>"
}

func (m *macro) attr(name string) Value {
	switch name {
	case "name":
		if m.name == "" {
			return None{}
		}
		return lit(m.name)
	case "arguments":
		t := &Tuple{}
		for _, p := range m.def.params {
			t.items = append(t.items, lit(p.name))
		}
		return t
	case "catch_kwargs":
		return Bool(m.def.kwargs != nil)
	case "catch_varargs":
		return Bool(m.def.varargs != nil)
	case "caller":
		return Bool(m.def.usesCaller())
	case "explicit_caller":
		return Bool(m.def.explicitCaller())
	}
	return nil
}

func (d *macroDef) explicitCaller() bool {
	for _, p := range d.params {
		if p.name == "caller" {
			return true
		}
	}
	return false
}

func (d *macroDef) usesCaller() bool { return d.caller != nil || d.explicitCaller() }

// call runs the macro and returns what it wrote.
func (m *macro) call(in *interp, a *args) (Value, error) {
	if err := in.down(); err != nil {
		return nil, err
	}
	defer in.up()
	d := m.def
	act := newActivation(d.fn, m.act)
	if err := m.bindArgs(act, a); err != nil {
		return nil, err
	}
	saved := in.act
	in.act = act
	defer func() { in.act = saved }()
	in.enter(d.frame)
	first := len(d.params) - len(d.defaults)
	for i, p := range d.params {
		if act.slots[p.ref.slot] != nil {
			continue
		}
		if i < first {
			act.slots[p.ref.slot] = undefined{hint: "parameter '" + p.name + "' was not provided"}
			continue
		}
		v, err := in.eval(d.defaults[i-first])
		if err != nil {
			return nil, err
		}
		act.slots[p.ref.slot] = v
	}
	_, text, err := in.captureBody(d.body)
	return text, err
}

func (m *macro) bindArgs(act *activation, a *args) error {
	d := m.def
	kw := append([]KV(nil), a.kw...)
	take := func(name string) Value {
		for i, kv := range kw {
			if kv.Key == name {
				kw = append(kw[:i], kw[i+1:]...)
				return kv.Value
			}
		}
		return nil
	}
	for i, p := range d.params {
		var v Value
		if i < len(a.pos) {
			v = a.pos[i]
		} else {
			v = take(p.name)
		}
		act.slots[p.ref.slot] = v
	}
	if d.caller != nil {
		c := take("caller")
		if _, none := c.(None); c == nil || none {
			c = undefined{hint: "No caller defined"}
		}
		act.slots[d.caller.ref.slot] = c
	}
	if d.kwargs != nil {
		rest := &Dict{}
		for _, kv := range kw {
			if err := rest.set(lit(kv.Key), kv.Value); err != nil {
				return err
			}
		}
		act.slots[d.kwargs.ref.slot] = rest
	} else if len(kw) > 0 {
		return typeErrf("macro '%s' takes no keyword argument '%s'", m.name, kw[0].Key)
	}
	if d.varargs != nil {
		rest := &Tuple{}
		if len(a.pos) > len(d.params) {
			rest.items = a.pos[len(d.params):]
		}
		act.slots[d.varargs.ref.slot] = rest
	} else if len(a.pos) > len(d.params) {
		return typeErrf("macro '%s' takes not more than %d argument(s)", m.name, len(d.params))
	}
	return nil
}
