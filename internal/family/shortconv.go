package family

import "github.com/baleenrun/baleen/internal/plan"

// shortConv is LFM2's mixer: out(c * conv(b * x)), where b, c and x are parts of one projection.
type shortConv struct {
	kernel int
	bias   bias
}

func (s *shortConv) lower(b *builder, in plan.Val) plan.Val {
	n := b.m.hidden
	all := b.buffer("conv_in", 3*n)
	b.linear("shortconv.in_proj", in, all, s.bias)
	gate, c, x := all.Slice(0, n), all.Slice(n, n), all.Slice(2*n, n)
	b.emit(&plan.GLU{Gate: gate, Up: x, Out: x, Kind: plan.ActNone})
	b.emit(&plan.ShortConv{
		In: x, Out: x, W: b.vector("shortconv.conv", ".weight", n*s.kernel), B: b.optional("shortconv.conv", n, s.bias),
		Kernel: s.kernel, Kind: plan.ActNone, State: b.state("convolution", (s.kernel-1)*n),
	})
	b.gather(c, x)
	b.emit(&plan.GLU{Gate: c, Up: x, Out: x, Kind: plan.ActNone})
	y := b.buffer("y", n)
	b.linear("shortconv.out_proj", x, y, s.bias)
	return y
}
