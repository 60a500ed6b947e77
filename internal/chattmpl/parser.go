package chattmpl

import (
	"fmt"
	"strings"
)

// MaxSource is how many bytes a template may have; Parse refuses longer ones.
const MaxSource = 4 << 20

const (
	maxParseDepth = 200  // nested brackets, tags and unary operators
	maxTreeDepth  = 1000 // height of one expression's tree
)

// parser is a recursive-descent parser over the tokens of a template.
type parser struct {
	src   *source
	toks  []token
	i     int
	depth int
	ends  [][]string // what the open tags are waiting for
	tags  []string   // the open tags
	loops int        // open loops in the current function
	fors  int        // open loops, whatever the function
	block map[string]bool
}

// syntaxError carries an *Error through panics inside the parser only.
type syntaxError struct{ err *Error }

func parse(src *source) (body []stmt, err error) {
	if len(src.text) > MaxSource {
		return nil, src.errorf(0, "template has %d bytes, the most is %d", len(src.text), MaxSource)
	}
	toks, err := lex(src)
	if err != nil {
		return nil, err
	}
	p := &parser{src: src, toks: toks, block: map[string]bool{}}
	defer func() {
		if r := recover(); r != nil {
			se, ok := r.(syntaxError)
			if !ok {
				panic(r)
			}
			body, err = nil, se.err
		}
	}()
	return p.statements(nil), nil
}

func (p *parser) fail(pos int, format string, a ...any) {
	panic(syntaxError{p.src.errorf(pos, format, a...)})
}

func (p *parser) cur() token  { return p.toks[p.i] }
func (p *parser) peek() token { return p.toks[min(p.i+1, len(p.toks)-1)] }

func (p *parser) next() token {
	t := p.toks[p.i]
	if p.i < len(p.toks)-1 {
		p.i++
	}
	return t
}

func (p *parser) enter() {
	p.depth++
	if p.depth > maxParseDepth {
		p.fail(p.cur().pos, "nested more than %d levels deep", maxParseDepth)
	}
}

func (p *parser) leave() { p.depth-- }

func (p *parser) isOp(op string) bool {
	t := p.cur()
	return t.kind == tokOp && t.text == op
}

func (p *parser) isName(name string) bool {
	t := p.cur()
	return t.kind == tokName && t.text == name
}

func (p *parser) skipOp(op string) bool {
	if p.isOp(op) {
		p.next()
		return true
	}
	return false
}

func (p *parser) skipName(name string) bool {
	if p.isName(name) {
		p.next()
		return true
	}
	return false
}

func (p *parser) expectOp(op string) token {
	if !p.isOp(op) {
		p.fail(p.cur().pos, "expected %q, got %q", op, p.cur().describe())
	}
	return p.next()
}

func (p *parser) expect(k tokKind) token {
	if p.cur().kind != k {
		p.fail(p.cur().pos, "expected %s, got %q", (token{kind: k, text: "a name"}).describe(), p.cur().describe())
	}
	return p.next()
}

func (p *parser) expectName(name string) token {
	if !p.isName(name) {
		p.fail(p.cur().pos, "expected %q, got %q", name, p.cur().describe())
	}
	return p.next()
}

// node fills in the place and height of a new expression node.
func (p *parser) node(pos int, kids ...expr) base {
	d := 1
	for _, k := range kids {
		if k != nil {
			d = max(d, k.depth()+1)
		}
	}
	if d > maxTreeDepth {
		p.fail(pos, "expression has more than %d steps in a row", maxTreeDepth)
	}
	return base{pos, d}
}

func (p *parser) callNode(pos int, x expr, a *callArgs) base {
	kids := []expr{x}
	a.each(func(e expr) { kids = append(kids, e) })
	return p.node(pos, kids...)
}

// ---- statements

// statements reads until one of the end tags, which stays current, or the end.
func (p *parser) statements(ends []string) []stmt {
	p.enter()
	defer p.leave()
	if ends != nil {
		p.ends = append(p.ends, ends)
		defer func() { p.ends = p.ends[:len(p.ends)-1] }()
	}
	var body []stmt
	for {
		t := p.cur()
		switch t.kind {
		case tokEOF:
			if ends != nil {
				p.failUnclosed(t.pos, "")
			}
			return body
		case tokData:
			p.next()
			body = append(body, &outputStmt{stmtBase: stmtBase{t.pos}, text: t.text})
		case tokVarBegin:
			p.next()
			x := p.tuple(tupleOpts{cond: true})
			p.expect(tokVarEnd)
			body = append(body, &outputStmt{stmtBase: stmtBase{x.pos()}, x: x})
		case tokBlockBegin:
			p.next()
			if p.cur().kind == tokName {
				for _, e := range ends {
					if p.cur().text == e {
						return body
					}
				}
			}
			body = append(body, p.statement()...)
			p.expect(tokBlockEnd)
		default:
			p.fail(t.pos, "unexpected %q", t.describe())
		}
	}
}

func (p *parser) failUnclosed(pos int, tag string) {
	msg := "unexpected end of template"
	if tag != "" {
		msg = fmt.Sprintf("unknown tag %q", tag)
	}
	if n := len(p.ends); n > 0 {
		msg += fmt.Sprintf(", expected %s", strings.Join(p.ends[n-1], " or "))
	}
	open := p.tags
	if tag != "" {
		open = open[:len(open)-1] // the last is the unknown tag itself
	}
	if n := len(open); n > 0 {
		msg += fmt.Sprintf(" to close %q", open[n-1])
	}
	p.fail(pos, "%s", msg)
}

// body reads the rest of an opening tag and its content up to an end tag.
func (p *parser) body(ends ...string) []stmt {
	p.skipOp(":")
	p.expect(tokBlockEnd)
	return p.statements(ends)
}

// closed is body with its only end tag consumed.
func (p *parser) closed(end string) []stmt {
	b := p.body(end)
	p.next()
	return b
}

func (p *parser) statement() []stmt {
	t := p.cur()
	if t.kind != tokName {
		p.fail(t.pos, "expected the name of a tag, got %q", t.describe())
	}
	p.tags = append(p.tags, t.text)
	defer func() { p.tags = p.tags[:len(p.tags)-1] }()
	at := stmtBase{t.pos}
	switch t.text {
	case "for":
		return []stmt{p.parseFor()}
	case "if":
		return []stmt{p.parseIf()}
	case "set":
		return []stmt{p.parseSet()}
	case "macro":
		return []stmt{p.parseMacro()}
	case "call":
		return []stmt{p.parseCall()}
	case "generation":
		p.next()
		return []stmt{
			&callStmt{
				stmtBase: at,
				def:      macroDef{body: p.function(func() []stmt { return p.closed("endgeneration") })},
			},
		}
	case "filter":
		p.next()
		f := p.filters(nil, true).(*filterExpr)
		return []stmt{&filterStmt{stmtBase: at, filter: f, body: p.closed("endfilter")}}
	case "with":
		return []stmt{p.parseWith()}
	case "block":
		return []stmt{p.parseBlock()}
	case "print":
		p.next()
		var out []stmt
		for p.cur().kind != tokBlockEnd {
			if out != nil {
				p.expectOp(",")
			}
			x := p.expression(true)
			out = append(out, &outputStmt{stmtBase: stmtBase{x.pos()}, x: x})
		}
		return out
	case "autoescape":
		p.next()
		x := p.expression(true)
		if c, ok := x.(*constExpr); !ok || truth(c.v) {
			p.fail(t.pos, "autoescape other than false is not supported in chat templates")
		}
		return []stmt{&scopeStmt{stmtBase: at, body: p.closed("endautoescape")}}
	case "break", "continue":
		p.next()
		if p.loops == 0 {
			p.fail(t.pos, "%q outside of a loop", t.text)
		}
		if t.text == "break" {
			return []stmt{&breakStmt{at}}
		}
		return []stmt{&continueStmt{at}}
	case "include", "import", "from", "extends":
		p.next()
		p.expression(true)
		for p.cur().kind == tokName || p.isOp(",") {
			p.next()
		}
		return []stmt{&refusedStmt{at, t.text}}
	}
	p.failUnclosed(t.pos, t.text)
	return nil
}

// function reads a body that is a function of its own: no break leaves it.
func (p *parser) function(f func() []stmt) []stmt {
	saved := p.loops
	p.loops = 0
	defer func() { p.loops = saved }()
	return f()
}

func (p *parser) parseFor() stmt {
	s := &forStmt{stmtBase: stmtBase{p.next().pos}}
	p.fors++
	defer func() { p.fors-- }()
	save := p.i
	s.target = p.target(targetOpts{end: "in"})
	p.expectName("in")
	s.iter = p.tuple(tupleOpts{end: "recursive"})
	if p.skipName("if") {
		s.test = p.expression(true)
		after := p.i
		p.i = save
		s.testTarget = p.target(targetOpts{end: "in"})
		p.i = after
	}
	s.recursive = p.skipName("recursive")
	loops := p.loops
	if s.recursive {
		p.loops = 0
	}
	p.loops++
	s.body = p.body("endfor", "else")
	p.loops = loops
	if s.recursive {
		p.loops = 0
	}
	if p.next().text == "else" {
		s.els = p.closed("endfor")
	}
	p.loops = loops
	return s
}

func (p *parser) parseIf() stmt {
	s := &ifStmt{stmtBase: stmtBase{p.next().pos}}
	for {
		s.tests = append(s.tests, p.tuple(tupleOpts{}))
		s.bodies = append(s.bodies, p.body("elif", "else", "endif"))
		switch p.next().text {
		case "elif":
			continue
		case "else":
			s.els = p.closed("endif")
		}
		return s
	}
}

func (p *parser) parseSet() stmt {
	at := stmtBase{p.next().pos}
	target := p.target(targetOpts{ns: true})
	if p.skipOp("=") {
		return &setStmt{stmtBase: at, target: target, x: p.tuple(tupleOpts{cond: true})}
	}
	s := &setBlockStmt{stmtBase: at, target: target}
	if f, ok := p.filters(nil, false).(*filterExpr); ok {
		s.filter = f
	}
	s.body = p.closed("endset")
	return s
}

func (p *parser) signature(d *macroDef) {
	p.expectOp("(")
	seen := map[string]bool{}
	for !p.isOp(")") {
		if len(d.params) > 0 {
			p.expectOp(",")
		}
		arg := p.nameTarget()
		if seen[arg.name] {
			p.fail(arg.at, "duplicate argument %q", arg.name)
		}
		seen[arg.name] = true
		if p.skipOp("=") {
			d.defaults = append(d.defaults, p.expression(true))
		} else if len(d.defaults) > 0 {
			p.fail(arg.at, "non-default argument follows default argument")
		}
		d.params = append(d.params, arg)
	}
	p.expectOp(")")
}

func (p *parser) parseMacro() stmt {
	s := &macroStmt{stmtBase: stmtBase{p.next().pos}}
	s.name = p.nameTarget()
	p.signature(&s.def)
	s.def.body = p.function(func() []stmt { return p.closed("endmacro") })
	return s
}

func (p *parser) parseCall() stmt {
	s := &callStmt{stmtBase: stmtBase{p.next().pos}}
	if p.isOp("(") {
		p.signature(&s.def)
	}
	call, ok := p.expression(true).(*callExpr)
	if !ok {
		p.fail(s.at, "expected a call after the call tag")
	}
	s.call = call
	s.def.body = p.function(func() []stmt { return p.closed("endcall") })
	return s
}

func (p *parser) parseWith() stmt {
	s := &withStmt{stmtBase: stmtBase{p.next().pos}}
	for p.cur().kind != tokBlockEnd {
		if len(s.targets) > 0 {
			p.expectOp(",")
		}
		s.targets = append(s.targets, p.target(targetOpts{param: true}))
		p.expectOp("=")
		s.vals = append(s.vals, p.expression(true))
	}
	s.body = p.closed("endwith")
	return s
}

func (p *parser) parseBlock() stmt {
	s := &blockStmt{stmtBase: stmtBase{p.next().pos}}
	t := p.expect(tokName)
	s.name = t.text
	if p.block[s.name] {
		p.fail(t.pos, "block %q defined twice", s.name)
	}
	p.block[s.name] = true
	s.scoped = p.skipName("scoped")
	s.required = p.skipName("required")
	if s.required {
		p.fail(s.at, "required blocks need a child template, and chat templates have none")
	}
	s.body = p.function(func() []stmt { return p.closed("endblock") })
	p.skipName(s.name)
	return s
}

// ---- assignment targets

type targetOpts struct {
	end string // a name that ends the tuple
	ns  bool   // allow ns.attr

	param bool // a name of a with block
}

func (p *parser) nameTarget() *nameExpr {
	t := p.expect(tokName)
	n := &nameExpr{base: base{t.pos, 1}, name: t.text}
	p.checkTarget(n)
	return n
}

func (p *parser) target(o targetOpts) expr {
	e := p.tuple(tupleOpts{simple: true, end: o.end, ns: o.ns})
	p.checkTarget(e)
	if p.fors > 0 && !o.param {
		walkNames(e, func(n *nameExpr) {
			if n.name == "loop" {
				p.fail(n.at, "can't assign to the special variable loop inside a loop")
			}
		})
	}
	return e
}

func (p *parser) checkTarget(e expr) {
	switch x := e.(type) {
	case *nameExpr:
		switch x.name {
		case "true", "false", "none", "True", "False", "None":
			p.fail(x.at, "can't assign to %q", x.name)
		}
	case *nsRef:
	case *tupleExpr:
		for _, it := range x.items {
			p.checkTarget(it)
		}
	default:
		p.fail(e.pos(), "can't assign to an expression")
	}
}
