package plan

import "testing"

// TestFlowNamesEveryOperation: backends order, fuse and allocate by what operations read and write, so an operation
// that says nothing would be computed at the wrong time.
func TestFlowNamesEveryOperation(t *testing.T) {
	v := Val{Width: 1}
	for _, c := range []struct {
		op            Op
		reads, writes int
	}{
		{&Embed{Out: v}, 0, 1},
		{&Norm{In: v, Out: v}, 1, 1},
		{&MatMul{In: v, Out: []Val{v, v}}, 1, 2},
		{&HeadMatMul{In: v, Out: v}, 1, 1},
		{&RopeOp{X: v}, 1, 1},
		{&StoreKV{K: v, V: v}, 2, 0},
		{&StoreKV{K: v}, 1, 0}, // latent attention stores no values
		{&Attention{Q: v, Out: v}, 1, 1},
		{&Act{In: v, Out: v}, 1, 1},
		{&GLU{Gate: v, Up: v, Out: v}, 2, 1},
		{&Gate{X: v, G: v, Out: v}, 2, 1},
		{&Add{In: v, Out: v}, 2, 1},
		{&Scale{X: v}, 1, 1},
		{&SoftCap{X: v}, 1, 1},
		{&PosScale{X: v}, 1, 1},
		{&Clamp{X: v}, 1, 1},
		{&CopyHeads{In: v, Out: v}, 1, 1},
		{&Copy{In: v, Out: v}, 1, 1},
		{&Router{In: v}, 1, 0},
		{&Experts{In: v, Out: v}, 1, 1},
		{&ShortConv{In: v, Out: v}, 1, 1},
		{&DeltaScan{Q: v, K: v, V: v, Decay: v, Beta: v, Out: v}, 5, 1},
		{&Decay{X: v, Out: v}, 1, 1},
		{&Gather{Vals: []Val{v}}, 1, 1},
	} {
		if r, w := len(Reads(c.op)), len(Writes(c.op)); r != c.reads || w != c.writes {
			t.Errorf("%T reads %d and writes %d views, want %d and %d", c.op, r, w, c.reads, c.writes)
		}
	}
}
