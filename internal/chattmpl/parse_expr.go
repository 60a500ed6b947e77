package chattmpl

type tupleOpts struct {
	simple bool   // only names and literals
	cond   bool   // allow x if y else z without brackets
	end    string // a name that ends the tuple
	paren  bool   // inside explicit brackets: may be empty
	ns     bool
}

func (p *parser) tupleEnd(o tupleOpts) bool {
	switch t := p.cur(); t.kind {
	case tokVarEnd, tokBlockEnd:
		return true
	case tokOp:
		return t.text == ")"
	case tokName:
		return o.end != "" && t.text == o.end
	}
	return false
}

// tuple reads an expression or, where commas follow, a tuple.
func (p *parser) tuple(o tupleOpts) expr {
	p.enter()
	defer p.leave()
	pos := p.cur().pos
	var items []expr
	isTuple := false
	for {
		if items != nil {
			p.expectOp(",")
		}
		if p.tupleEnd(o) {
			break
		}
		if o.simple {
			items = append(items, p.primary(o.ns))
		} else {
			items = append(items, p.expression(o.cond))
		}
		if !p.isOp(",") {
			break
		}
		isTuple = true
	}
	if !isTuple {
		if items != nil {
			return items[0]
		}
		if !o.paren {
			p.fail(p.cur().pos, "expected an expression, got %q", p.cur().describe())
		}
	}
	return &tupleExpr{base: p.node(pos, items...), items: items}
}

func (p *parser) expression(cond bool) expr {
	p.enter()
	defer p.leave()
	if cond {
		return p.condExpr()
	}
	return p.or()
}

func (p *parser) condExpr() expr {
	p.enter()
	defer p.leave()
	x := p.or()
	for p.isName("if") {
		pos := p.next().pos
		test := p.or()
		var els expr
		if p.skipName("else") {
			els = p.condExpr()
		}
		x = &condExpr{base: p.node(pos, test, x, els), test: test, then: x, els: els}
	}
	return x
}

func (p *parser) or() expr {
	x := p.and()
	for p.isName("or") {
		pos := p.next().pos
		y := p.and()
		x = &binExpr{base: p.node(pos, x, y), op: "or", x: x, y: y}
	}
	return x
}

func (p *parser) and() expr {
	x := p.not()
	for p.isName("and") {
		pos := p.next().pos
		y := p.not()
		x = &binExpr{base: p.node(pos, x, y), op: "and", x: x, y: y}
	}
	return x
}

func (p *parser) not() expr {
	if !p.isName("not") {
		return p.compare()
	}
	p.enter()
	defer p.leave()
	pos := p.next().pos
	x := p.not()
	return &unaryExpr{base: p.node(pos, x), op: "not", x: x}
}

func (p *parser) compare() expr {
	x := p.add()
	var ops []string
	var ys []expr
	pos := p.cur().pos
	for {
		t := p.cur()
		switch {
		case t.kind == tokOp && isCompareOp(t.text):
			p.next()
			ops = append(ops, t.text)
		case p.isName("in"):
			p.next()
			ops = append(ops, "in")
		case p.isName("not") && p.peek().kind == tokName && p.peek().text == "in":
			p.next()
			p.next()
			ops = append(ops, "not in")
		default:
			if ops == nil {
				return x
			}
			kids := append([]expr{x}, ys...)
			return &compareExpr{base: p.node(pos, kids...), x: x, ops: ops, ys: ys}
		}
		ys = append(ys, p.add())
	}
}

func isCompareOp(op string) bool {
	switch op {
	case "==", "!=", "<", "<=", ">", ">=":
		return true
	}
	return false
}

func (p *parser) binary(ops []string, sub func() expr) expr {
	x := sub()
next:
	for {
		for _, op := range ops {
			if p.isOp(op) {
				pos := p.next().pos
				y := sub()
				x = &binExpr{base: p.node(pos, x, y), op: op, x: x, y: y}
				continue next
			}
		}
		return x
	}
}

var (
	addOps = []string{"+", "-"}
	mulOps = []string{"*", "/", "//", "%"}
	powOps = []string{"**"}
)

func (p *parser) add() expr { return p.binary(addOps, p.concat) }

func (p *parser) concat() expr {
	pos := p.cur().pos
	parts := []expr{p.mul()}
	for p.skipOp("~") {
		parts = append(parts, p.mul())
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return &concatExpr{base: p.node(pos, parts...), parts: parts}
}

func (p *parser) mul() expr { return p.binary(mulOps, p.pow) }

func (p *parser) pow() expr { return p.binary(powOps, func() expr { return p.unary(true) }) }

func (p *parser) unary(filters bool) expr {
	var x expr
	switch {
	case p.isOp("-"), p.isOp("+"):
		p.enter()
		t := p.next()
		y := p.unary(false)
		p.leave()
		x = &unaryExpr{base: p.node(t.pos, y), op: t.text, x: y}
	default:
		x = p.primary(false)
	}
	x = p.postfix(x)
	if filters {
		x = p.filterExpr(x)
	}
	return x
}

func (p *parser) primary(ns bool) expr {
	t := p.cur()
	at := base{t.pos, 1}
	switch t.kind {
	case tokName:
		p.next()
		switch t.text {
		case "true", "True":
			return &constExpr{at, Bool(true)}
		case "false", "False":
			return &constExpr{at, Bool(false)}
		case "none", "None":
			return &constExpr{at, None{}}
		}
		n := &nameExpr{base: at, name: t.text}
		if ns && p.skipOp(".") {
			attr := p.expect(tokName)
			return &nsRef{base: at, ns: n, attr: attr.text}
		}
		return n
	case tokString:
		text := ""
		for p.cur().kind == tokString {
			text += p.next().text
		}
		return &constExpr{at, lit(text)}
	case tokInt, tokFloat:
		p.next()
		return &constExpr{at, t.num}
	case tokOp:
		switch t.text {
		case "(":
			p.next()
			x := p.tuple(tupleOpts{cond: true, paren: true})
			p.expectOp(")")
			return x
		case "[":
			return p.list()
		case "{":
			return p.dict()
		}
	}
	p.fail(t.pos, "unexpected %q", t.describe())
	return nil
}

func (p *parser) list() expr {
	p.enter()
	defer p.leave()
	pos := p.next().pos
	var items []expr
	for !p.isOp("]") {
		if items != nil {
			p.expectOp(",")
			if p.isOp("]") {
				break
			}
		}
		items = append(items, p.expression(true))
	}
	p.expectOp("]")
	return &listExpr{base: p.node(pos, items...), items: items}
}

func (p *parser) dict() expr {
	p.enter()
	defer p.leave()
	pos := p.next().pos
	var keys, vals []expr
	for !p.isOp("}") {
		if keys != nil {
			p.expectOp(",")
			if p.isOp("}") {
				break
			}
		}
		keys = append(keys, p.expression(true))
		p.expectOp(":")
		vals = append(vals, p.expression(true))
	}
	p.expectOp("}")
	kids := append(append([]expr{}, keys...), vals...)
	return &dictExpr{base: p.node(pos, kids...), keys: keys, vals: vals}
}

func (p *parser) postfix(x expr) expr {
	for {
		switch {
		case p.isOp("."), p.isOp("["):
			x = p.subscript(x)
		case p.isOp("("):
			x = p.call(x)
		default:
			return x
		}
	}
}

func (p *parser) filterExpr(x expr) expr {
	for {
		switch {
		case p.isOp("|"):
			x = p.filters(x, false)
		case p.isName("is"):
			x = p.test(x)
		case p.isOp("("):
			x = p.call(x)
		default:
			return x
		}
	}
}

func (p *parser) subscript(x expr) expr {
	t := p.next()
	if t.text == "." {
		a := p.next()
		switch a.kind {
		case tokName:
			return &attrExpr{base: p.node(a.pos, x), x: x, name: a.text}
		case tokInt:
			return &itemExpr{base: p.node(a.pos, x), x: x, key: &constExpr{base{a.pos, 1}, a.num}}
		}
		p.fail(a.pos, "expected a name or number after the dot, got %q", a.describe())
	}
	var keys []expr
	for !p.isOp("]") {
		if keys != nil {
			p.expectOp(",")
		}
		keys = append(keys, p.subscribed())
	}
	p.expectOp("]")
	if len(keys) == 1 {
		if s, ok := keys[0].(*sliceKey); ok {
			return &sliceExpr{base: p.node(t.pos, x, s), x: x, lo: s.lo, hi: s.hi, step: s.step}
		}
		return &itemExpr{base: p.node(t.pos, x, keys[0]), x: x, key: keys[0]}
	}
	key := &tupleExpr{base: p.node(t.pos, keys...), items: keys}
	return &itemExpr{base: p.node(t.pos, x, key), x: x, key: key}
}

func (p *parser) subscribed() expr {
	pos := p.cur().pos
	var part [3]expr
	if !p.isOp(":") {
		x := p.expression(true)
		if !p.isOp(":") {
			return x
		}
		part[0] = x
	}
	p.expectOp(":")
	if !p.isOp(":") && !p.isOp("]") && !p.isOp(",") {
		part[1] = p.expression(true)
	}
	if p.skipOp(":") && !p.isOp("]") && !p.isOp(",") {
		part[2] = p.expression(true)
	}
	return &sliceKey{base: p.node(pos, part[0], part[1], part[2]), lo: part[0], hi: part[1], step: part[2]}
}

func (p *parser) call(x expr) expr {
	pos := p.cur().pos
	a := p.callArgs()
	return &callExpr{base: p.callNode(pos, x, &a), x: x, args: a}
}

func (p *parser) callArgs() callArgs {
	p.enter()
	defer p.leave()
	open := p.expectOp("(")
	var a callArgs
	ensure := func(ok bool) {
		if !ok {
			p.fail(open.pos, "invalid order of arguments in a call")
		}
	}
	for first := true; !p.isOp(")"); first = false {
		if !first {
			p.expectOp(",")
			if p.isOp(")") {
				break
			}
		}
		switch {
		case p.isOp("*"):
			ensure(a.star == nil && a.starStar == nil)
			p.next()
			a.star = p.expression(true)
		case p.isOp("**"):
			ensure(a.starStar == nil)
			p.next()
			a.starStar = p.expression(true)
		case p.cur().kind == tokName && p.peek().kind == tokOp && p.peek().text == "=":
			ensure(a.starStar == nil)
			t := p.next()
			p.next()
			for _, k := range a.kwNames {
				if k == t.text {
					p.fail(t.pos, "argument %q given twice", k)
				}
			}
			a.kwNames = append(a.kwNames, t.text)
			a.kwVals = append(a.kwVals, p.expression(true))
		default:
			ensure(a.star == nil && a.starStar == nil && a.kwNames == nil)
			a.pos = append(a.pos, p.expression(true))
		}
	}
	p.expectOp(")")
	return a
}

func (p *parser) dottedName() token {
	t := p.expect(tokName)
	for p.skipOp(".") {
		t.text += "." + p.expect(tokName).text
	}
	return t
}

// filters reads a chain of filters; inline means that the first has no bar.
func (p *parser) filters(x expr, inline bool) expr {
	for inline || p.isOp("|") {
		if !inline {
			p.next()
		}
		inline = false
		t := p.dottedName()
		var a callArgs
		if p.isOp("(") {
			a = p.callArgs()
		}
		x = &filterExpr{base: p.callNode(t.pos, x, &a), x: x, name: t.text, fn: filterTable[t.text], args: a}
	}
	return x
}

func (p *parser) test(x expr) expr {
	p.next()
	negated := p.skipName("not")
	t := p.dottedName()
	var a callArgs
	c := p.cur()
	switch {
	case p.isOp("("):
		a = p.callArgs()
	case c.kind == tokName && (c.text == "else" || c.text == "or" || c.text == "and"):
	case c.kind == tokName, c.kind == tokString, c.kind == tokInt, c.kind == tokFloat, p.isOp("["), p.isOp("{"):
		if p.isName("is") {
			p.fail(c.pos, "tests cannot be chained with is")
		}
		a.pos = []expr{p.postfix(p.primary(false))}
	}
	var out expr = &testExpr{base: p.callNode(t.pos, x, &a), x: x, name: t.text, fn: testTable[t.text], args: a}
	if negated {
		out = &unaryExpr{base: p.node(t.pos, out), op: "not", x: out}
	}
	return out
}
