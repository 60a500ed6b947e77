package cpu

import (
	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/backend/cpu/matmul"
	"github.com/baleenrun/baleen/internal/backend/cpu/vec"
	"github.com/baleenrun/baleen/internal/plan"
	"github.com/baleenrun/baleen/internal/quant"
)

// sizes are the bytes of working memory that a plan takes besides weights, pages and slots. They are found before
// anything is allocated, so that Memory tells what Compile takes.
type sizes struct {
	layout
	buffers  []int // by buffer
	acts     []int // by activation format: quantized rows
	thread   int   // scratch of each thread
	tileRows int   // rows of a tile of attention; 0 without attention
	parts    int   // partial results of attention
	ropes    []int // by table: cosines or sines
	experts  expertSizes
}

// expertSizes are those of the memory that all expert passes share, in bytes.
type expertSizes struct{ in, mid, gate, down int }

func (s expertSizes) total() int { return s.in + s.mid + 2*s.gate + s.down }

// actOf is the form in which weights of a format want their input.
func actOf(t quant.Type) matmul.Act {
	switch t {
	case quant.F32, quant.F16, quant.BF16:
		return matmul.ActF32
	}
	return matmul.ActQ8
}

func measure(p *plan.Plan, o backend.Options) sizes {
	s := sizes{layout: newLayout(p, o.KV), acts: make([]int, matmul.ActQ8+1)}
	for i, rows := range p.BufferRows(o.MaxRows, o.MaxOut) {
		s.buffers = append(s.buffers, 4*p.Buffers[i].Width*rows)
	}
	for _, r := range p.Ropes {
		n := 4 * p.Context * len(r.InvFreq)
		if s.ropes = append(s.ropes, n); r.Long != nil {
			s.ropes = append(s.ropes, n)
		}
	}
	for _, op := range p.Ops {
		switch op := op.(type) {
		case *plan.Embed:
			if w := &p.Weights[op.W]; w.Parts != nil {
				n, _ := w.Type.RowBytes(w.K) // refused when it is compiled
				s.thread = max(s.thread, n)
			}
		case *plan.MatMul:
			for _, id := range op.W {
				s.act(&p.Weights[id], o.MaxRows)
			}
		case *plan.HeadMatMul:
			s.act(&p.Weights[op.W], o.MaxRows*max(1, p.Weights[op.W].Experts))
		case *plan.Experts:
			s.expert(p, op, o.MaxRows)
		case *plan.Attention:
			s.attention(op, p.Context)
		case *plan.DeltaScan:
			s.thread = max(s.thread, 4*vec.DeltaScratch(op.KDim, op.VDim))
		case *plan.Router:
			s.thread = max(s.thread, 4*vec.RouteScratch(p.Routes[op.Route].Experts))
		}
	}
	return s
}

func (s *sizes) act(w *plan.Weight, rows int) {
	if a := actOf(w.Type); a != matmul.ActF32 {
		s.acts[a] = max(s.acts[a], rows*a.Bytes(w.K))
	}
}

func (s *sizes) expert(p *plan.Plan, o *plan.Experts, rows int) {
	gate, up, down := &p.Weights[o.Gate], &p.Weights[o.Up], &p.Weights[o.Down]
	s.act(gate, rows)
	s.act(up, rows)
	slots := rows * p.Routes[o.Route].TopK
	e := &s.experts
	e.in = max(e.in, slots*actOf(gate.Type).Bytes(gate.K))
	e.mid = max(e.mid, slots*actOf(down.Type).Bytes(down.K))
	e.gate = max(e.gate, 4*slots*gate.Rows)
	e.down = max(e.down, 4*slots*down.Rows)
}

// mostParts bounds the memory for partial results of attention. Where they do not fit, whole work items are computed.
const mostParts = 16 << 20

func (s *sizes) attention(o *plan.Attention, context int) {
	l := s.groups[o.Group].layers[o.Layer]
	if l.Heads <= 0 || o.Heads < l.Heads {
		return // refused when it is compiled
	}
	heads := o.Heads / l.Heads
	rows := vec.TileRows(heads)
	if s.tileRows == 0 || rows < s.tileRows {
		s.tileRows = rows
	}
	s.thread = max(s.thread, vec.AttendScratchBytes(rows, heads, l.KDim, l.VDim))
	chunks := (context + vec.ChunkTokens - 1) / vec.ChunkTokens
	s.parts = max(s.parts, min(mostParts, 2*4*vec.PartFloats(rows, o.Heads, l.VDim)*chunks)) // two tiles of all heads
}

// scratch is all of it, for so many threads.
func (s *sizes) scratch(threads int) int64 {
	n := threads*s.thread + s.parts + s.experts.total()
	for _, b := range s.buffers {
		n += b
	}
	for _, b := range s.acts {
		n += b
	}
	for _, b := range s.ropes {
		n += 2 * b
	}
	return int64(n)
}
