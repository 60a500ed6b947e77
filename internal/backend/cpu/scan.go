package cpu

import (
	"fmt"

	"github.com/baleenrun/baleen/internal/backend/cpu/vec"
	"github.com/baleenrun/baleen/internal/plan"
)

// state returns a sequence's own copy of a recurrent state.
func (e *exec) state(s *span, id plan.StateID) []float32 {
	return e.slot(s.Slot)[e.sizes.stateOff[id]:][:e.plan.States[id].Size]
}

// convBlock is the number of channels that a thread takes at once.
const convBlock = 256

// shortConv compiles a convolution: sequences and blocks of channels are independent, rows follow each other.
func (c *compiler) shortConv(o *plan.ShortConv) error {
	e := c.e
	channels := o.In.Width
	if o.Kernel < 1 || len(e.vector(o.W)) != channels*o.Kernel || e.plan.States[o.State].Size != (o.Kernel-1)*channels {
		return fmt.Errorf("kernel of %d over %d channels has %d weights", o.Kernel, channels, len(e.vector(o.W)))
	}
	w := vec.TransposeConv(e.vector(o.W), channels, o.Kernel)
	blocks := (channels + convBlock - 1) / convBlock
	each := func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			s := &e.spans[i/blocks]
			a := vec.ConvArgs{
				Rows: s.Rows, Lo: i % blocks * convBlock, W: w, B: e.vector(o.B),
				Channels: channels, Kernel: o.Kernel, Kind: o.Kind, State: e.state(s, o.State),
			}
			a.Hi = min(a.Lo+convBlock, channels)
			a.In, a.InStride = e.from(o.In, s.row)
			a.Out, a.OutStride = e.from(o.Out, s.row)
			e.vec.ShortConv(&a)
		}
	}
	c.pass(passFunc(func() { e.pool.run(len(e.spans)*blocks, 1, each) }))
	c.overwritten([]plan.Val{o.Out})
	return nil
}

// deltaScan compiles a delta rule: sequences and value heads are independent.
func (c *compiler) deltaScan(o *plan.DeltaScan) error {
	e := c.e
	if o.KHeads < 1 || o.VHeads%o.KHeads != 0 || e.plan.States[o.State].Size != o.VHeads*o.KDim*o.VDim {
		return fmt.Errorf(
			"%d value heads over %d key heads, state of %d values",
			o.VHeads,
			o.KHeads,
			e.plan.States[o.State].Size,
		)
	}
	need := vec.DeltaScratch(o.KDim, o.VDim)
	each := func(worker, lo, hi int) {
		for i := lo; i < hi; i++ {
			s, h := &e.spans[i/o.VHeads], i%o.VHeads
			kh := h / (o.VHeads / o.KHeads)
			if o.Tiled {
				kh = h % o.KHeads
			}
			size := o.KDim * o.VDim
			a := vec.DeltaArgs{
				Rows: s.Rows, KDim: o.KDim, VDim: o.VDim, Scale: o.Scale, PerChannel: o.PerChannel,
				State: e.state(s, o.State)[h*size : (h+1)*size], Scratch: floats(e.scratch[worker])[:need],
			}
			head := func(v plan.Val, i, n int) ([]float32, int) { return e.from(v.Slice(i*n, n), s.row) }
			a.Q, a.QStride = head(o.Q, kh, o.KDim)
			a.K, a.KStride = head(o.K, kh, o.KDim)
			a.V, a.VStride = head(o.V, h, o.VDim)
			a.Beta, a.BetaStride = head(o.Beta, h, 1)
			a.Out, a.OutStride = head(o.Out, h, o.VDim)
			decay := 1
			if o.PerChannel {
				decay = o.KDim
			}
			a.Decay, a.DecayStride = head(o.Decay, h, decay)
			e.vec.DeltaScan(&a)
		}
	}
	c.pass(passFunc(func() { e.pool.run(len(e.spans)*o.VHeads, 1, each) }))
	c.overwritten([]plan.Val{o.Out})
	return nil
}
