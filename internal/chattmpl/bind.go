package chattmpl

import "sort"

// binder resolves every name of a template to its slot and every scope to what
// entering it does, and reports filters and tests that do not exist.
type binder struct{ src *source }

// bindFrame is where the binder stands.
type bindFrame struct {
	sc   *scope
	fn   *funcInfo
	top  bool // directly in the template or in a block, if-branches included
	soft bool // under a condition: a missing filter fails only when it runs
}

func (f bindFrame) inner() bindFrame { return bindFrame{sc: newScope(f.sc, f.fn), fn: f.fn} }

func (f bindFrame) function() bindFrame {
	fn := newFunc(f.fn)
	return bindFrame{sc: newScope(f.sc, fn), fn: fn}
}

// bind prepares a parsed template and returns its outermost function and scope.
func bind(src *source, body []stmt) (fn *funcInfo, ops frameOps, err error) {
	defer func() {
		if r := recover(); r != nil {
			se, ok := r.(syntaxError)
			if !ok {
				panic(r)
			}
			se.err.Name = src.name
			err = se.err
		}
	}()
	b := &binder{src}
	fn = newFunc(nil)
	f := bindFrame{sc: newScope(nil, fn), fn: fn, top: true}
	f.sc.useStmts(body)
	b.stmts(body, f)
	return fn, f.sc.ops(), nil
}

func (b *binder) fail(pos int, format string, a ...any) {
	panic(syntaxError{b.src.errorf(pos, format, a...)})
}

func (b *binder) name(n *nameExpr, f bindFrame) {
	ref, ok := f.sc.ref(f.fn, n.name)
	if !ok {
		b.fail(n.at, "name %q cannot be used here", n.name)
	}
	n.ref = ref
}

func (b *binder) target(e expr, f bindFrame) {
	switch x := e.(type) {
	case *nameExpr:
		b.name(x, f)
	case *nsRef:
		b.name(x.ns, f)
	case *tupleExpr:
		for _, it := range x.items {
			b.target(it, f)
		}
	}
}

// exports lists the names in a target that blocks of the template may see.
func exports(e expr) []*nameExpr {
	var out []*nameExpr
	walkNames(e, func(n *nameExpr) { out = append(out, n) })
	return out
}

// expr binds an expression, whose conditional parts are soft.
func (b *binder) expr(e expr, f bindFrame) {
	if e == nil {
		return
	}
	if c, ok := e.(*condExpr); ok {
		f.soft = true
		b.expr(c.test, f)
		b.expr(c.then, f)
		b.expr(c.els, f)
		return
	}
	switch x := e.(type) {
	case *nameExpr:
		b.name(x, f)
	case *filterExpr:
		if x.fn == nil && !f.soft {
			b.fail(x.at, "no filter named %q", x.name)
		}
	case *testExpr:
		if x.fn == nil && !f.soft {
			b.fail(x.at, "no test named %q", x.name)
		}
	}
	eachChild(e, func(k expr) { b.expr(k, f) })
}

// eachChild visits the direct parts of an expression.
func eachChild(e expr, f func(expr)) {
	visit := func(k expr) {
		if k != nil {
			f(k)
		}
	}
	each := func(list []expr) {
		for _, k := range list {
			visit(k)
		}
	}
	switch x := e.(type) {
	case *tupleExpr:
		each(x.items)
	case *listExpr:
		each(x.items)
	case *dictExpr:
		for i := range x.keys {
			visit(x.keys[i])
			visit(x.vals[i])
		}
	case *unaryExpr:
		visit(x.x)
	case *binExpr:
		visit(x.x)
		visit(x.y)
	case *concatExpr:
		each(x.parts)
	case *compareExpr:
		visit(x.x)
		each(x.ys)
	case *condExpr:
		visit(x.test)
		visit(x.then)
		visit(x.els)
	case *attrExpr:
		visit(x.x)
	case *itemExpr:
		visit(x.x)
		visit(x.key)
	case *sliceExpr:
		each([]expr{x.x, x.lo, x.hi, x.step})
	case *sliceKey:
		each([]expr{x.lo, x.hi, x.step})
	case *callExpr:
		visit(x.x)
		x.args.each(visit)
	case *filterExpr:
		visit(x.x)
		x.args.each(visit)
	case *testExpr:
		visit(x.x)
		x.args.each(visit)
	}
}

func (b *binder) stmts(list []stmt, f bindFrame) {
	for _, st := range list {
		b.stmt(st, f)
	}
}

func (b *binder) stmt(st stmt, f bindFrame) {
	switch x := st.(type) {
	case *outputStmt:
		b.expr(x.x, f)
	case *setStmt:
		b.expr(x.x, f)
		b.target(x.target, f)
		if f.top {
			x.exported = exports(x.target)
		}
	case *setBlockStmt:
		in := f.inner()
		in.sc.useStmts(x.body)
		b.stmts(x.body, in)
		b.target(x.target, f)
		if x.filter != nil {
			b.expr(x.filter, in)
		}
		x.frame = in.sc.ops()
		if f.top {
			x.exported = exports(x.target)
		}
	case *ifStmt:
		f.soft = true
		for i := range x.tests {
			b.expr(x.tests[i], f)
			b.stmts(x.bodies[i], f)
		}
		b.stmts(x.els, f)
	case *forStmt:
		b.forLoop(x, f)
	case *macroStmt:
		b.macro(&x.def, f)
		b.name(x.name, f)
		x.exported = f.top
	case *callStmt:
		b.macro(&x.def, f)
		if x.call != nil {
			b.expr(x.call, f)
		}
	case *filterStmt:
		in := f.inner()
		in.sc.useStmts(x.body)
		in.sc.useExpr(x.filter)
		b.stmts(x.body, in)
		b.expr(x.filter, in)
		x.frame = in.sc.ops()
	case *withStmt:
		in := f.inner()
		for _, t := range x.targets {
			in.sc.useTarget(t, true)
		}
		in.sc.useStmts(x.body)
		for i := range x.targets {
			b.target(x.targets[i], in)
			b.expr(x.vals[i], f)
		}
		b.stmts(x.body, in)
		x.frame = in.sc.ops()
	case *scopeStmt:
		in := f.inner()
		in.sc.useStmts(x.body)
		b.stmts(x.body, in)
		x.frame = in.sc.ops()
	case *blockStmt:
		b.block(x, f)
	}
}

func (b *binder) forLoop(x *forStmt, f bindFrame) {
	body := f.inner()
	if x.recursive {
		body = f.function()
		x.bodyFn = body.fn
	}
	els := bindFrame{sc: newScope(f.sc, body.fn), fn: body.fn}
	extended := x.recursive || findUndeclared(x.body, "loop")["loop"] || hasScopedBlock(x.body)
	if extended {
		body.sc.param("loop")
		x.loop = &nameExpr{base: base{x.at, 1}, name: "loop"}
		b.name(x.loop, body)
	}
	body.sc.useTarget(x.target, true)
	body.sc.useStmts(x.body)
	els.sc.useStmts(x.els)
	if x.test != nil {
		// The filter is a function of its own, beside the body.
		test := f.function()
		test.sc.level = body.sc.level
		x.testFn = test.fn
		test.sc.useTarget(x.testTarget, true)
		test.sc.useExpr(x.test)
		b.target(x.testTarget, test)
		b.expr(x.test, test)
		x.testFrame = test.sc.ops()
	}
	b.target(x.target, body)
	b.expr(x.iter, f)
	b.stmts(x.body, body)
	b.stmts(x.els, els)
	x.bodyFrame = body.sc.ops()
	x.elsFrame = els.sc.ops()
}

func hasScopedBlock(list []stmt) bool {
	for _, st := range list {
		switch x := st.(type) {
		case *blockStmt:
			if x.scoped || hasScopedBlock(x.body) {
				return true
			}
		case *ifStmt:
			for _, body := range x.bodies {
				if hasScopedBlock(body) {
					return true
				}
			}
			if hasScopedBlock(x.els) {
				return true
			}
		case *forStmt:
			if hasScopedBlock(x.body) || hasScopedBlock(x.els) {
				return true
			}
		case *withStmt:
			if hasScopedBlock(x.body) {
				return true
			}
		}
	}
	return false
}

func (b *binder) macro(d *macroDef, f bindFrame) {
	in := f.function()
	d.fn = in.fn
	in.sc.useMacro(d)
	used := findUndeclared(d.body, "caller", "kwargs", "varargs")
	named := map[string]int{}
	for i, p := range d.params {
		named[p.name] = i + 1
	}
	implicit := func(name string) *nameExpr {
		in.sc.param(name)
		n := &nameExpr{name: name}
		b.name(n, in)
		return n
	}
	if used["caller"] {
		if i := named["caller"]; i == 0 {
			d.caller = implicit("caller")
		} else if i <= len(d.params)-len(d.defaults) {
			b.fail(d.params[i-1].at, "the special argument \"caller\" must be omitted or have a default")
		}
	}
	if used["kwargs"] && named["kwargs"] == 0 {
		d.kwargs = implicit("kwargs")
	}
	if used["varargs"] && named["varargs"] == 0 {
		d.varargs = implicit("varargs")
	}
	in.sc.useMacro(d)
	for _, p := range d.params {
		b.name(p, in)
	}
	for _, e := range d.defaults {
		b.expr(e, in)
	}
	b.stmts(d.body, in)
	d.frame = in.sc.ops()
}

// block binds a block, which sees exported names and, if scoped, its surroundings.
func (b *binder) block(x *blockStmt, f bindFrame) {
	if x.scoped {
		seen := map[string]bool{}
		for s := f.sc; s != nil; s = s.parent {
			names := make([]string, 0, len(s.stores))
			for n := range s.stores {
				names = append(names, n)
			}
			sort.Strings(names)
			for _, n := range names {
				if !seen[n] {
					seen[n] = true
					v := &nameExpr{base: base{x.at, 1}, name: n}
					b.name(v, f)
					x.visible = append(x.visible, v)
				}
			}
		}
	}
	fn := newFunc(nil)
	in := bindFrame{sc: newScope(nil, fn), fn: fn}
	in.sc.work = f.sc.work
	in.sc.useStmts(x.body)
	b.stmts(x.body, in)
	x.fn, x.frame = fn, in.sc.ops()
}
