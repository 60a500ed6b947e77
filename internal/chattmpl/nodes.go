package chattmpl

// expr is an expression. pos is its offset in the source; depth the height of
// its tree, which the parser bounds so that no walk overflows the stack.
type expr interface {
	pos() int
	depth() int
	eval(in *interp) (Value, error)
}

type base struct{ at, d int }

func (b *base) pos() int   { return b.at }
func (b *base) depth() int { return b.d }

type (
	constExpr struct {
		base
		v Value
	}
	// nameExpr reads or, as a target, writes a variable.
	nameExpr struct {
		base
		name string
		ref  varRef
	}
	// nsRef is the target ns.attr of an assignment.
	nsRef struct {
		base
		ns   *nameExpr
		attr string
	}
	tupleExpr struct {
		base
		items []expr
	}
	listExpr struct {
		base
		items []expr
	}
	dictExpr struct {
		base
		keys, vals []expr
	}
	unaryExpr struct {
		base
		op string // not, -, +
		x  expr
	}
	binExpr struct {
		base
		op   string // + - * / // % ** and or
		x, y expr
	}
	concatExpr struct {
		base
		parts []expr
	}
	compareExpr struct {
		base
		x   expr
		ops []string
		ys  []expr
	}
	condExpr struct {
		base
		test, then, els expr // els may be nil
	}
	attrExpr struct {
		base
		x    expr
		name string
	}
	itemExpr struct {
		base
		x, key expr
	}
	sliceExpr struct { // x[lo:hi:step]
		base
		x, lo, hi, step expr // bounds may be nil
	}
	// sliceKey is a slice inside a subscript with several parts.
	sliceKey struct {
		base
		lo, hi, step expr
	}
	callExpr struct {
		base
		x    expr
		args callArgs
	}
	// filterExpr applies a filter; x is nil in filter and set blocks.
	filterExpr struct {
		base
		x    expr
		name string
		fn   filterFunc // nil when there is none of that name
		args callArgs
	}
	testExpr struct {
		base
		x    expr
		name string
		fn   testFunc
		args callArgs
	}
)

// callArgs are the arguments of a call as written.
type callArgs struct {
	pos      []expr
	kwNames  []string
	kwVals   []expr
	star     expr
	starStar expr
}

func (c *callArgs) each(f func(expr)) {
	for _, e := range c.pos {
		f(e)
	}
	for _, e := range c.kwVals {
		f(e)
	}
	if c.star != nil {
		f(c.star)
	}
	if c.starStar != nil {
		f(c.starStar)
	}
}

// stmt is a statement.
type stmt interface {
	pos() int
	exec(in *interp) (signal, error)
}

// signal says how a statement ended.
type signal uint8

const (
	sigNone signal = iota
	sigBreak
	sigContinue
)

type stmtBase struct{ at int }

func (b *stmtBase) pos() int { return b.at }

type (
	// outputStmt writes one piece of literal text or one expression.
	outputStmt struct {
		stmtBase
		text string
		x    expr // nil for literal text
	}
	setStmt struct {
		stmtBase
		target   expr
		x        expr
		exported []*nameExpr // names that also become visible to blocks
	}
	setBlockStmt struct {
		stmtBase
		target   expr
		filter   *filterExpr
		body     []stmt
		frame    frameOps
		exported []*nameExpr
	}
	ifStmt struct {
		stmtBase
		tests  []expr
		bodies [][]stmt
		els    []stmt
	}
	forStmt struct {
		stmtBase
		target     expr
		testTarget expr // the target once more, bound in the filter's own scope
		iter, test expr
		body, els  []stmt
		recursive  bool
		loop       *nameExpr // where the loop object goes; nil if unused
		testFn     *funcInfo
		bodyFn     *funcInfo // of a recursive loop
		bodyFrame  frameOps
		testFrame  frameOps
		elsFrame   frameOps
	}
	macroStmt struct {
		stmtBase
		name     *nameExpr
		def      macroDef
		exported bool
	}
	callStmt struct {
		stmtBase
		call *callExpr // nil for a generation block
		def  macroDef
	}
	filterStmt struct {
		stmtBase
		filter *filterExpr
		body   []stmt
		frame  frameOps
	}
	withStmt struct {
		stmtBase
		targets []expr
		vals    []expr
		body    []stmt
		frame   frameOps
	}
	scopeStmt struct { // autoescape with a constant false
		stmtBase
		body  []stmt
		frame frameOps
	}
	blockStmt struct {
		stmtBase
		name     string
		scoped   bool
		required bool
		body     []stmt
		fn       *funcInfo
		frame    frameOps
		visible  []*nameExpr // what a scoped block sees of its surroundings
	}
	// refusedStmt is a tag that loads another template: it fails when it runs.
	refusedStmt struct {
		stmtBase
		tag string
	}
	breakStmt    struct{ stmtBase }
	continueStmt struct{ stmtBase }
)

// macroDef is the body of a macro or call block.
type macroDef struct {
	params   []*nameExpr
	defaults []expr // of the last params
	body     []stmt
	fn       *funcInfo
	frame    frameOps
	caller   *nameExpr // implicit parameters, nil if not used
	kwargs   *nameExpr
	varargs  *nameExpr
}
