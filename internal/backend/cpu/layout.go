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
