package chattmpl

import "strconv"

// Scoping. Names are resolved once, after parsing, to slots of the function
// (template, macro, call block, recursive loop, loop filter, block) that owns
// them, by the rules of Jinja2's compiler:
//
//   - a name that a scope assigns lives in that scope; where an outer scope has
//     it too, it starts as a copy of the outer one when the scope is entered;
//   - a name that a scope only reads is looked up outwards, and at last in the
//     variables given to the template, at the time the scope is entered;
//   - if-branches share their scope: a name assigned in a branch only starts as
//     the outer or given one.
//
// An inner function reads the slots of its surroundings when it runs.

// funcInfo is a function's layout of variable slots.
type funcInfo struct {
	parent *funcInfo
	depth  int
	slots  map[string]int
}

func newFunc(parent *funcInfo) *funcInfo {
	f := &funcInfo{parent: parent, slots: map[string]int{}}
	if parent != nil {
		f.depth = parent.depth + 1
	}
	return f
}

func (f *funcInfo) slot(level int, name string) int {
	key := strconv.Itoa(level) + "." + name
	i, ok := f.slots[key]
	if !ok {
		i = len(f.slots)
		f.slots[key] = i
	}
	return i
}

// varRef addresses a slot: hops functions outwards.
type varRef struct{ hops, slot int }

type loadKind uint8

const (
	loadParam loadKind = iota
	loadResolve
	loadAlias
	loadUndefined
)

// loadOp fills a slot when a scope is entered.
type loadOp struct {
	kind loadKind
	slot int
	name string // of loadResolve
	from varRef // of loadAlias
}

// frameOps is what entering and leaving a scope does.
type frameOps struct{ loads []loadOp }

// scope is the set of names of one scope while its template is bound.
type scope struct {
	level  int
	parent *scope
	fn     *funcInfo
	refs   map[string]bool
	loads  map[string]scopeLoad
	order  []string // keys of loads in order of first definition
	stores map[string]bool
	work   *int // names copied so far, over all scopes of a template
}

// maxScopeWork bounds the copying of names, which is quadratic in the number
// of branches that set names of their own.
const maxScopeWork = 5_000_000

type scopeLoad struct {
	kind loadKind
	from *scope // of loadAlias: the scope that has the name
}

func newScope(parent *scope, fn *funcInfo) *scope {
	s := &scope{
		parent: parent,
		fn:     fn,
		refs:   map[string]bool{},
		loads:  map[string]scopeLoad{},
		stores: map[string]bool{},
	}
	if parent != nil {
		s.level, s.work = parent.level+1, parent.work
	} else {
		s.work = new(int)
	}
	return s
}

func (s *scope) find(name string) *scope {
	for ; s != nil; s = s.parent {
		if s.refs[name] {
			return s
		}
	}
	return nil
}

func (s *scope) define(name string, l scopeLoad) {
	s.refs[name] = true
	if _, ok := s.loads[name]; !ok {
		s.order = append(s.order, name)
	}
	s.loads[name] = l
}

func (s *scope) store(name string) {
	s.stores[name] = true
	if s.refs[name] {
		return
	}
	if outer := s.parent.find(name); outer != nil {
		s.define(name, scopeLoad{loadAlias, outer})
		return
	}
	s.define(name, scopeLoad{kind: loadUndefined})
}

func (s *scope) param(name string) {
	s.stores[name] = true
	s.define(name, scopeLoad{kind: loadParam})
}

func (s *scope) load(name string) {
	if s.find(name) == nil {
		s.define(name, scopeLoad{kind: loadResolve})
	}
}

func (s *scope) copy() *scope {
	c := newScope(s.parent, s.fn)
	c.level, c.work = s.level, s.work
	c.mergeFrom(s)
	return c
}

func (s *scope) mergeFrom(o *scope) {
	if *s.work += len(o.refs) + len(o.order) + len(o.stores); *s.work > maxScopeWork {
		panic(
			syntaxError{
				&Error{Line: 1, Col: 1, Msg: "template has too many branches that set variables", Err: ErrSyntax},
			},
		)
	}
	for n := range o.refs {
		s.refs[n] = true
	}
	for _, n := range o.order {
		if _, ok := s.loads[n]; !ok {
			s.order = append(s.order, n)
		}
		s.loads[n] = o.loads[n]
	}
	for n := range o.stores {
		s.stores[n] = true
	}
}

func (s *scope) mergeBranches(branches ...*scope) {
	fresh := map[string]bool{}
	for _, b := range branches {
		for n := range b.stores {
			if !s.stores[n] {
				fresh[n] = true
			}
		}
	}
	for _, b := range branches {
		s.mergeFrom(b)
	}
	for n := range fresh {
		if outer := s.parent.find(n); outer != nil {
			s.define(n, scopeLoad{loadAlias, outer})
		} else {
			s.define(n, scopeLoad{kind: loadResolve})
		}
	}
}

// ref is the address of a name for code of function fn.
func (s *scope) ref(fn *funcInfo, name string) (varRef, bool) {
	owner := s.find(name)
	if owner == nil {
		return varRef{}, false
	}
	return varRef{fn.depth - owner.fn.depth, owner.fn.slot(owner.level, name)}, true
}

func (s *scope) ops() frameOps {
	var f frameOps
	for _, n := range s.order {
		l := s.loads[n]
		op := loadOp{kind: l.kind, slot: s.fn.slot(s.level, n), name: n}
		if l.kind == loadAlias {
			op.from = varRef{s.fn.depth - l.from.fn.depth, l.from.fn.slot(l.from.level, n)}
		}
		f.loads = append(f.loads, op)
	}
	return f
}

// ---- which names a scope uses

func (s *scope) useTarget(e expr, param bool) {
	switch x := e.(type) {
	case *nameExpr:
		if param {
			s.param(x.name)
		} else {
			s.store(x.name)
		}
	case *nsRef:
		s.load(x.ns.name)
	case *tupleExpr:
		for _, it := range x.items {
			s.useTarget(it, param)
		}
	}
}

func (s *scope) useExpr(e expr) {
	walkNames(e, func(n *nameExpr) { s.load(n.name) })
}

func (s *scope) useStmts(list []stmt) {
	for _, st := range list {
		s.useStmt(st)
	}
}

// useStmt notes the names that a statement uses in the scope it stands in.
func (s *scope) useStmt(st stmt) {
	switch x := st.(type) {
	case *outputStmt:
		s.useExpr(x.x)
	case *setStmt:
		s.useExpr(x.x)
		s.useTarget(x.target, false)
	case *setBlockStmt:
		s.useTarget(x.target, false)
	case *ifStmt:
		s.useIf(x.tests, x.bodies, x.els)
	case *forStmt:
		s.useExpr(x.iter)
	case *macroStmt:
		s.store(x.name.name)
	case *callStmt:
		if x.call != nil {
			s.useExpr(x.call)
		}
	case *filterStmt:
		s.useExpr(x.filter)
	case *withStmt:
		for _, v := range x.vals {
			s.useExpr(v)
		}
	}
}

func (s *scope) useIf(tests []expr, bodies [][]stmt, els []stmt) {
	s.useExpr(tests[0])
	body := s.copy()
	body.useStmts(bodies[0])
	elifs := s.copy()
	for i := 1; i < len(tests); i++ {
		elifs.useIf(tests[i:i+1], bodies[i:i+1], nil)
	}
	last := s.copy()
	last.useStmts(els)
	s.mergeBranches(body, elifs, last)
}

func (s *scope) useMacro(d *macroDef) {
	for _, p := range d.params {
		s.param(p.name)
	}
	for _, e := range d.defaults {
		s.useExpr(e)
	}
	s.useStmts(d.body)
}

// walkNames visits the names that an expression reads, in order.
func walkNames(e expr, f func(*nameExpr)) {
	walkExprs(e, func(e expr) {
		if n, ok := e.(*nameExpr); ok {
			f(n)
		}
	})
}

// walkExprs visits an expression and all of its parts.
func walkExprs(e expr, f func(expr)) {
	if e == nil {
		return
	}
	f(e)
	eachChild(e, func(k expr) { walkExprs(k, f) })
}

// undeclared finds which of the given names a body reads before it assigns them.
type undeclared struct {
	want  map[string]bool
	found map[string]bool
}

func findUndeclared(body []stmt, names ...string) map[string]bool {
	u := &undeclared{want: map[string]bool{}, found: map[string]bool{}}
	for _, n := range names {
		u.want[n] = true
	}
	u.stmts(body)
	return u.found
}

func (u *undeclared) expr(e expr) {
	walkNames(e, func(n *nameExpr) {
		if u.want[n.name] {
			u.found[n.name] = true
		}
	})
}

func (u *undeclared) target(e expr) {
	walkNames(e, func(n *nameExpr) {
		if !u.found[n.name] {
			delete(u.want, n.name)
		}
	})
}

func (u *undeclared) macro(d *macroDef) {
	for _, p := range d.params {
		u.target(p)
	}
	for _, e := range d.defaults {
		u.expr(e)
	}
	u.stmts(d.body)
}

func (u *undeclared) stmts(list []stmt) {
	for _, st := range list {
		switch x := st.(type) {
		case *outputStmt:
			u.expr(x.x)
		case *setStmt:
			u.target(x.target)
			u.expr(x.x)
		case *setBlockStmt:
			u.target(x.target)
			if x.filter != nil {
				u.expr(x.filter)
			}
			u.stmts(x.body)
		case *ifStmt:
			for i := range x.tests {
				u.expr(x.tests[i])
				u.stmts(x.bodies[i])
			}
			u.stmts(x.els)
		case *forStmt:
			u.target(x.target)
			u.expr(x.iter)
			u.stmts(x.body)
			u.stmts(x.els)
			u.expr(x.test)
		case *macroStmt:
			u.macro(&x.def)
		case *callStmt:
			if x.call != nil {
				u.expr(x.call)
			}
			u.macro(&x.def)
		case *filterStmt:
			u.stmts(x.body)
			u.expr(x.filter)
		case *withStmt:
			for _, t := range x.targets {
				u.target(t)
			}
			for _, v := range x.vals {
				u.expr(v)
			}
			u.stmts(x.body)
		case *scopeStmt:
			u.stmts(x.body)
		}
	}
}
