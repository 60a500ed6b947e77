package cpu

import (
	"fmt"

	"github.com/baleenrun/baleen/internal/backend/cpu/matmul"
	"github.com/baleenrun/baleen/internal/plan"
)

// A rowFunc computes an operation for rows [r0,r1) on one thread.
type rowFunc func(worker, r0, r1 int)

// rowPass runs consecutive row-wise operations. cost is a row's work in values touched; below serialCost in all,
// one thread is faster than dividing.
type rowPass struct {
	fns  []rowFunc
	cost int
	each func(worker, lo, hi int)
}

const serialCost = 16 << 10

func (p *rowPass) run(e *exec) {
	if e.rows*p.cost <= serialCost {
		p.each(0, 0, e.rows)
		return
	}
	e.pool.run(e.rows, max(1, serialCost/4/max(1, p.cost)), p.each)
}

// compiler turns operations into passes.
type compiler struct {
	e    *exec
	rows *rowPass // open pass of row-wise operations

	quant map[matmul.Act]plan.Val // what each format's buffer holds at this point
}

func (e *exec) compile() error {
	c := &compiler{e: e, quant: map[matmul.Act]plan.Val{}}
	for i, op := range e.plan.Ops {
		if err := c.op(op); err != nil {
			return fmt.Errorf("cpu: operation %d (%T): %w", i, op, err)
		}
	}
	c.flush()
	return nil
}

// row adds a row-wise operation to the open pass.
func (c *compiler) row(cost int, f rowFunc) {
	if c.rows == nil {
		c.rows = &rowPass{}
	}
	c.rows.fns = append(c.rows.fns, f)
	c.rows.cost += cost
}

// flush closes the open pass.
func (c *compiler) flush() {
	p := c.rows
	if p == nil {
		return
	}
	c.rows = nil
	fns := p.fns
	p.each = func(worker, lo, hi int) {
		for r := lo; r < hi; r++ { // row by row: a row's values stay in the cache
			for _, f := range fns {
				f(worker, r, r+1)
			}
		}
	}
	c.e.passes = append(c.e.passes, p)
}

func (c *compiler) pass(p pass) {
	c.flush()
	c.e.passes = append(c.e.passes, p)
}

// overwritten forgets quantized rows of values that an operation changes.
func (c *compiler) overwritten(vs []plan.Val) {
	for a, q := range c.quant {
		for _, v := range vs {
			if v.Buf == q.Buf && v.Off < q.Off+q.Width && q.Off < v.Off+v.Width {
				delete(c.quant, a)
			}
		}
	}
}

func (c *compiler) op(op plan.Op) error {
	e := c.e
	switch o := op.(type) {
	case *plan.MatMul:
		return c.matMul(o)
	case *plan.HeadMatMul:
		return c.headMatMul(o)
	case *plan.Attention:
		return c.attention(o)
	case *plan.Experts:
		return c.experts(o)
	case *plan.ShortConv:
		return c.shortConv(o)
	case *plan.DeltaScan:
		return c.deltaScan(o)
	case *plan.Gather:
		vals := o.Vals
		c.pass(passFunc(func() { e.gather(vals) }))
		clear(c.quant)
	default:
		f, cost, err := c.rowOp(op)
		if err != nil {
			return err
		}
		if _, stores := op.(*plan.StoreKV); !stores && len(plan.Values(op)) == 0 {
			return fmt.Errorf("package plan does not say what it reads and writes")
		}
		c.row(cost, f)
	}
	c.overwritten(plan.Writes(op))
	return nil
}

type passFunc func()

func (f passFunc) run(*exec) { f() }

// gather moves the rows with logits to the front. They ascend, so that moving in order overwrites none that is
// still needed.
func (e *exec) gather(vals []plan.Val) {
	for _, v := range vals {
		for i, r := range e.batch.Out {
			if int(r) != i {
				copy(e.at(v, i), e.at(v, int(r)))
			}
		}
	}
	e.rows = len(e.batch.Out)
}
