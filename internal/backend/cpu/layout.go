package cpu

import (
	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/plan"
)

// layout says where the states of a plan lie. A page of a group holds, layer by layer and head by head, the keys
// of PageTokens positions in blocks of 16 ([PageTokens/16][KDim][16]) and their values ([PageTokens][VDim]). In
// memory each layer has its own region, in which the layer's parts of all pages follow each other: attention reads
// one layer at a time, and pages taken one after the other are then one run of memory. A slot holds the recurrent
// states one after the other.
type layout struct {
	elem       int // bytes of a cached value
	groups     []groupLayout
	slotFloats int
	stateOff   []int // in floats, by state
}

type groupLayout struct {
	pageBytes int
	layers    []layerLayout
}

type layerLayout struct {
	plan.KVLayer
	off       int // of the layer in a page; times the number of pages, of its region
	bytes     int // of the layer in a page
	headBytes int // of one head's keys and values
	vOff      int // of the values after the keys
}

func newLayout(p *plan.Plan, kv backend.KVType) layout {
	l := layout{elem: 2}
	if kv == backend.KVF32 {
		l.elem = 4
	}
	for _, g := range p.Groups {
		var gl groupLayout
		for _, kl := range g.Layers {
			ll := layerLayout{KVLayer: kl, off: gl.pageBytes}
			ll.vOff = roundUp(backend.PageTokens*kl.KDim*l.elem, align)
			ll.headBytes = ll.vOff
			if !kl.VInK {
				ll.headBytes += roundUp(backend.PageTokens*kl.VDim*l.elem, align)
			}
			ll.bytes = kl.Heads * ll.headBytes
			gl.pageBytes += ll.bytes
			gl.layers = append(gl.layers, ll)
		}
		l.groups = append(l.groups, gl)
	}
	for _, s := range p.States {
		l.stateOff = append(l.stateOff, l.slotFloats)
		l.slotFloats += roundUp(s.Size, align/4)
	}
	return l
}

// bufferRows returns for each buffer how many rows it must hold: those that only operations after the plan's
// Gather touch need no more than the rows with logits.
func bufferRows(p *plan.Plan, o backend.Options) []int {
	rows := make([]int, len(p.Buffers))
	gathered := false
	for _, op := range p.Ops {
		if _, ok := op.(*plan.Gather); ok {
			gathered = true
		}
		need := o.MaxRows
		if gathered {
			need = o.MaxOut
		}
		for _, v := range values(op) {
			if v.Width > 0 {
				rows[v.Buf] = max(rows[v.Buf], need)
			}
		}
	}
	return rows
}

// values lists the views that an operation reads or writes.
func values(op plan.Op) []plan.Val {
	in, out := reads(op), writes(op)
	return append(append(make([]plan.Val, 0, len(in)+len(out)), in...), out...)
}

func reads(op plan.Op) []plan.Val {
	switch o := op.(type) {
	case *plan.Norm:
		return []plan.Val{o.In}
	case *plan.MatMul:
		return []plan.Val{o.In}
	case *plan.HeadMatMul:
		return []plan.Val{o.In}
	case *plan.RopeOp:
		return []plan.Val{o.X}
	case *plan.StoreKV:
		return []plan.Val{o.K, o.V}
	case *plan.Attention:
		return []plan.Val{o.Q}
	case *plan.Act:
		return []plan.Val{o.In}
	case *plan.GLU:
		return []plan.Val{o.Gate, o.Up}
	case *plan.Gate:
		return []plan.Val{o.X, o.G}
	case *plan.Add:
		return []plan.Val{o.In, o.Out}
	case *plan.Scale:
		return []plan.Val{o.X}
	case *plan.SoftCap:
		return []plan.Val{o.X}
	case *plan.PosScale:
		return []plan.Val{o.X}
	case *plan.Clamp:
		return []plan.Val{o.X}
	case *plan.CopyHeads:
		return []plan.Val{o.In}
	case *plan.Copy:
		return []plan.Val{o.In}
	case *plan.Router:
		return []plan.Val{o.In}
	case *plan.Experts:
		return []plan.Val{o.In}
	case *plan.ShortConv:
		return []plan.Val{o.In}
	case *plan.DeltaScan:
		return []plan.Val{o.Q, o.K, o.V, o.Decay, o.Beta}
	case *plan.Decay:
		return []plan.Val{o.X}
	case *plan.Gather:
		return o.Vals
	}
	return nil
}

func writes(op plan.Op) []plan.Val {
	switch o := op.(type) {
	case *plan.Embed:
		return []plan.Val{o.Out}
	case *plan.Norm:
		return []plan.Val{o.Out}
	case *plan.MatMul:
		return o.Out
	case *plan.HeadMatMul:
		return []plan.Val{o.Out}
	case *plan.RopeOp:
		return []plan.Val{o.X}
	case *plan.Attention:
		return []plan.Val{o.Out}
	case *plan.Act:
		return []plan.Val{o.Out}
	case *plan.GLU:
		return []plan.Val{o.Out}
	case *plan.Gate:
		return []plan.Val{o.Out}
	case *plan.Add:
		return []plan.Val{o.Out}
	case *plan.Scale:
		return []plan.Val{o.X}
	case *plan.SoftCap:
		return []plan.Val{o.X}
	case *plan.PosScale:
		return []plan.Val{o.X}
	case *plan.Clamp:
		return []plan.Val{o.X}
	case *plan.CopyHeads:
		return []plan.Val{o.Out}
	case *plan.Copy:
		return []plan.Val{o.Out}
	case *plan.Experts:
		return []plan.Val{o.Out}
	case *plan.ShortConv:
		return []plan.Val{o.Out}
	case *plan.DeltaScan:
		return []plan.Val{o.Out}
	case *plan.Decay:
		return []plan.Val{o.Out}
	case *plan.Gather:
		return o.Vals
	}
	return nil
}
