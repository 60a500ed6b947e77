package bench

import (
	"github.com/baleenrun/baleen/internal/backend/cpu/matmul"
	"github.com/baleenrun/baleen/internal/plan"
)

// BytesPerToken counts what decoding one token of one stream reads: the packed weights that the token uses, of
// mixtures the chosen experts only, and the keys and values of so many positions with kvBytes per number. The
// activations stay in the processor's caches.
func BytesPerToken(p *plan.Plan, kvBytes, positions int) (int64, error) {
	c := &counter{p: p}
	for _, op := range p.Ops {
		switch op := op.(type) {
		case *plan.MatMul:
			for _, w := range op.W {
				c.matrix(w, 1)
			}
		case *plan.HeadMatMul:
			c.matrix(op.W, p.Weights[op.W].Experts)
		case *plan.Experts:
			for _, w := range []plan.WeightID{op.Gate, op.Up, op.Down} {
				if w != plan.None {
					c.matrix(w, p.Routes[op.Route].TopK)
				}
			}
		case *plan.Embed:
			c.row(op.W)
		}
	}
	for _, g := range p.Groups {
		n := positions
		if g.Window > 0 {
			n = min(n, g.Window)
		}
		for _, l := range g.Layers {
			per := l.KDim + l.VDim
			if l.VInK {
				per = l.KDim
			}
			c.bytes += int64(n) * int64(l.Heads*per*kvBytes)
		}
	}
	for _, s := range p.States {
		c.bytes += int64(8 * s.Size) // read and written
	}
	return c.bytes, c.err
}

type counter struct {
	p     *plan.Plan
	bytes int64
	err   error
}

func (c *counter) matrix(id plan.WeightID, n int) {
	w := c.p.Weights[id]
	size, err := matmul.PackedBytes(w.Type, w.Rows, w.K)
	if err != nil {
		c.err = err
	}
	c.bytes += int64(size) * int64(max(n, 1))
}

func (c *counter) row(id plan.WeightID) {
	w := c.p.Weights[id]
	size, err := w.Type.RowBytes(w.K)
	if err != nil {
		c.err = err
	}
	c.bytes += int64(size)
}
