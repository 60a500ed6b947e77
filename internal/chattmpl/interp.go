package chattmpl

import (
	"context"
	"errors"
	"time"
)

// interp is the state of one rendering.
type interp struct {
	// fixed for the rendering
	ctx context.Context
	src *source
	lim Limits
	now func() time.Time

	// moving
	steps, depth int
	given        map[string]Value // variables and globals
	exported     map[string]Value // names set at the top of the template
	act          *activation
	out          *builder
}

// activation holds the variables of one running function. A nil slot is a
// variable without a value.
type activation struct {
	slots  []Value
	parent *activation
}

func newActivation(fn *funcInfo, parent *activation) *activation {
	return &activation{slots: make([]Value, len(fn.slots)), parent: parent}
}

func (in *interp) cell(r varRef) *Value {
	a := in.act
	for i := 0; i < r.hops; i++ {
		a = a.parent
	}
	return &a.slots[r.slot]
}

func (in *interp) resolve(name string) Value {
	if v, ok := in.exported[name]; ok {
		return v
	}
	return in.given[name]
}

func (in *interp) enter(f frameOps) {
	for i := range f.loads {
		op := &f.loads[i]
		switch op.kind {
		case loadResolve:
			in.act.slots[op.slot] = in.resolve(op.name)
		case loadAlias:
			in.act.slots[op.slot] = *in.cell(op.from)
		case loadUndefined:
			in.act.slots[op.slot] = nil
		}
	}
}

func (in *interp) leave(f frameOps) {
	for i := range f.loads {
		in.act.slots[f.loads[i].slot] = nil
	}
}

// ---- budgets

// checkEvery is the number of steps between looks at the context.
const checkEvery = 1024

func (in *interp) step() error { return in.charge(1) }

// charge counts n steps of work.
func (in *interp) charge(n int) error {
	before := in.steps / checkEvery
	in.steps += n
	if in.steps > in.lim.Steps || n < 0 {
		return limitErrf("the template needs more than %d steps", in.lim.Steps)
	}
	if in.steps/checkEvery != before {
		return in.ctx.Err()
	}
	return nil
}

// bytesPerStep is how much copied text counts as one step.
const bytesPerStep = 64

func (in *interp) chargeBytes(n int) error { return in.charge(n/bytesPerStep + 1) }

// chargeText charges for reading a value that may be a long string.
func (in *interp) chargeText(v Value) error {
	if s, ok := v.(Str); ok {
		return in.chargeBytes(len(s.s))
	}
	return nil
}

// down enters one more level of calls or nested values; up leaves it.
func (in *interp) down() error {
	if in.depth >= in.lim.Depth {
		return limitErrf("calls or values nested more than %d deep", in.lim.Depth)
	}
	in.depth++
	return nil
}

func (in *interp) up() { in.depth-- }

// newBuilder makes a builder that stops growing at the limit for one string.
func (in *interp) newBuilder() *builder { return &builder{max: in.lim.StringBytes} }

// finish returns what was built and charges for it.
func (in *interp) finish(b *builder) (Str, error) {
	if b.over {
		return Str{}, limitErrf("a string grew over %d bytes", b.max)
	}
	if err := in.charge(len(b.buf)/bytesPerStep + len(b.taint) + 1); err != nil {
		return Str{}, err
	}
	return b.done(), nil
}

// write appends to the current output.
func (in *interp) write(s Str) error {
	in.out.str(s)
	if in.out.over {
		return limitErrf("the output grew over %d bytes", in.out.max)
	}
	return in.chargeBytes(len(s.s))
}

// capture runs f with an output of its own and returns what it wrote.
func (in *interp) capture(f func() error) (Str, error) {
	saved := in.out
	b := in.newBuilder()
	in.out = b
	err := f()
	in.out = saved
	if err != nil {
		return Str{}, err
	}
	return in.finish(b)
}

// located gives an error its place, unless it has one.
func (in *interp) located(pos int, err error) error {
	if _, ok := err.(*Error); ok {
		return err
	}
	line, col := in.src.place(pos)
	e := &Error{Name: in.src.name, Line: line, Col: col, Msg: err.Error(), Err: err}
	var ee *evalError
	if errors.As(err, &ee) {
		e.Err = ee.err
		if ee.kind != "TemplateError" {
			e.Msg = ee.kind + ": " + ee.msg
		}
	}
	return e
}

// ---- statements

func (in *interp) execAll(list []stmt) (signal, error) {
	for _, s := range list {
		if err := in.step(); err != nil {
			return sigNone, in.located(s.pos(), err)
		}
		sig, err := s.exec(in)
		if err != nil {
			return sigNone, in.located(s.pos(), err)
		}
		if sig != sigNone {
			return sig, nil
		}
	}
	return sigNone, nil
}

func (s *outputStmt) exec(in *interp) (signal, error) {
	if s.x == nil {
		return sigNone, in.write(lit(s.text))
	}
	v, err := in.eval(s.x)
	if err != nil {
		return sigNone, err
	}
	text, err := in.str(v)
	if err != nil {
		return sigNone, err
	}
	return sigNone, in.write(text)
}

func (s *setStmt) exec(in *interp) (signal, error) {
	if err := in.checkNamespaces(s.target); err != nil {
		return sigNone, err
	}
	v, err := in.eval(s.x)
	if err != nil {
		return sigNone, err
	}
	if err := in.assign(s.target, v); err != nil {
		return sigNone, err
	}
	in.export(s.exported)
	return sigNone, nil
}

func (in *interp) export(names []*nameExpr) {
	for _, n := range names {
		if v := *in.cell(n.ref); v != nil {
			in.exported[n.name] = v
		}
	}
}

// checkNamespaces makes sure that targets like ns.x name a namespace.
func (in *interp) checkNamespaces(target expr) error {
	switch x := target.(type) {
	case *nsRef:
		if _, ok := (*in.cell(x.ns.ref)).(*namespace); !ok {
			return &evalError{kind: "TemplateRuntimeError", msg: "cannot assign attribute on non-namespace object"}
		}
	case *tupleExpr:
		for _, it := range x.items {
			if err := in.checkNamespaces(it); err != nil {
				return err
			}
		}
	}
	return nil
}

func (in *interp) assign(target expr, v Value) error {
	switch x := target.(type) {
	case *nameExpr:
		*in.cell(x.ref) = v
	case *nsRef:
		ns, ok := (*in.cell(x.ns.ref)).(*namespace)
		if !ok {
			return typeErrf("cannot assign attribute on non-namespace object")
		}
		if err := checkNamespaceName(x.attr); err != nil {
			return err
		}
		return ns.attrs.set(lit(x.attr), v)
	case *tupleExpr:
		return in.unpack(x, v)
	}
	return nil
}

func (in *interp) unpack(t *tupleExpr, v Value) error {
	it, err := in.iter(v)
	if err != nil {
		if errors.Is(err, ErrLimit) {
			return err
		}
		return typeErrf("cannot unpack non-iterable %s object", v.typeName())
	}
	vals := make([]Value, 0, len(t.items))
	for range t.items {
		x, ok, err := it.next()
		if err != nil {
			return err
		}
		if !ok {
			return valueErrf("not enough values to unpack (expected %d, got %d)", len(t.items), len(vals))
		}
		vals = append(vals, x)
	}
	if _, ok, err := it.next(); err != nil {
		return err
	} else if ok {
		return valueErrf("too many values to unpack (expected %d)", len(t.items))
	}
	for i, target := range t.items {
		if err := in.assign(target, vals[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *setBlockStmt) exec(in *interp) (signal, error) {
	in.enter(s.frame)
	sig, text, err := in.captureBody(s.body)
	if err != nil || sig != sigNone {
		return sig, err
	}
	var v Value = text
	if s.filter != nil {
		if v, err = s.filter.apply(in, v); err != nil {
			return sigNone, in.located(s.filter.at, err)
		}
	}
	if err := in.checkNamespaces(s.target); err != nil {
		return sigNone, err
	}
	if err := in.assign(s.target, v); err != nil {
		return sigNone, err
	}
	in.export(s.exported)
	in.leave(s.frame)
	return sigNone, nil
}

// captureBody runs statements and returns what they wrote.
func (in *interp) captureBody(body []stmt) (sig signal, text Str, err error) {
	text, err = in.capture(func() (err error) {
		sig, err = in.execAll(body)
		return err
	})
	return sig, text, err
}

func (s *ifStmt) exec(in *interp) (signal, error) {
	for i, test := range s.tests {
		v, err := in.eval(test)
		if err != nil {
			return sigNone, err
		}
		if truth(v) {
			return in.execAll(s.bodies[i])
		}
	}
	return in.execAll(s.els)
}

func (s *macroStmt) exec(in *interp) (signal, error) {
	m := &macro{def: &s.def, name: s.name.name, act: in.act}
	*in.cell(s.name.ref) = m
	if s.exported {
		in.exported[m.name] = m
	}
	return sigNone, nil
}

func (s *callStmt) exec(in *interp) (signal, error) {
	m := &macro{def: &s.def, act: in.act}
	var v Value
	var err error
	if s.call == nil {
		v, err = m.call(in, &args{})
	} else {
		v, err = s.call.call(in, m)
		if err != nil {
			err = in.located(s.call.at, err)
		}
	}
	if err != nil {
		return sigNone, err
	}
	text, err := in.str(v)
	if err != nil {
		return sigNone, err
	}
	return sigNone, in.write(text)
}

func (s *filterStmt) exec(in *interp) (signal, error) {
	in.enter(s.frame)
	sig, text, err := in.captureBody(s.body)
	if err != nil || sig != sigNone {
		return sig, err
	}
	v, err := s.filter.apply(in, text)
	if err != nil {
		return sigNone, in.located(s.filter.at, err)
	}
	text, err = in.str(v)
	if err != nil {
		return sigNone, err
	}
	in.leave(s.frame)
	return sigNone, in.write(text)
}

func (s *withStmt) exec(in *interp) (signal, error) {
	in.enter(s.frame)
	for i, target := range s.targets {
		v, err := in.eval(s.vals[i])
		if err != nil {
			return sigNone, err
		}
		if err := in.assign(target, v); err != nil {
			return sigNone, err
		}
	}
	sig, err := in.execAll(s.body)
	if err == nil && sig == sigNone {
		in.leave(s.frame)
	}
	return sig, err
}

func (s *scopeStmt) exec(in *interp) (signal, error) {
	in.enter(s.frame)
	sig, err := in.execAll(s.body)
	if err == nil && sig == sigNone {
		in.leave(s.frame)
	}
	return sig, err
}

func (s *blockStmt) exec(in *interp) (signal, error) {
	if err := in.down(); err != nil {
		return sigNone, err
	}
	defer in.up()
	exported, act := in.exported, in.act
	defer func() { in.exported, in.act = exported, act }()
	if s.scoped {
		seen := make(map[string]Value, len(exported)+len(s.visible))
		for k, v := range exported {
			seen[k] = v
		}
		for _, n := range s.visible {
			if v := *in.cell(n.ref); v != nil {
				seen[n.name] = v
			}
		}
		in.exported = seen
	}
	in.act = newActivation(s.fn, nil)
	in.enter(s.frame)
	return in.execAll(s.body)
}

func (s *refusedStmt) exec(*interp) (signal, error) {
	return sigNone, &evalError{
		kind: "SecurityError",
		msg:  s.tag + " is refused: a chat template cannot load other templates",
	}
}

func (*breakStmt) exec(*interp) (signal, error)    { return sigBreak, nil }
func (*continueStmt) exec(*interp) (signal, error) { return sigContinue, nil }
