package plan

// BufferRows returns for each buffer how many rows it must hold, given the rows of a step and those with logits: what
// only operations after Gather touch needs no more than the latter.
func (p *Plan) BufferRows(maxRows, maxOut int) []int {
	rows := make([]int, len(p.Buffers))
	need := maxRows
	for _, op := range p.Ops {
		if _, ok := op.(*Gather); ok {
			need = maxOut
		}
		for _, v := range Values(op) {
			rows[v.Buf] = max(rows[v.Buf], need)
		}
	}
	return rows
}

// Multiplied reports for each weight whether an operation multiplies by it. The others are only looked up.
func (p *Plan) Multiplied() []bool {
	u := make([]bool, len(p.Weights))
	mark := func(ids ...WeightID) {
		for _, id := range ids {
			if id != None {
				u[id] = true
			}
		}
	}
	for _, op := range p.Ops {
		switch o := op.(type) {
		case *MatMul:
			mark(o.W...)
		case *HeadMatMul:
			mark(o.W)
		case *Experts:
			mark(o.Gate, o.Up, o.Down)
		}
	}
	return u
}

// Values lists the views that an operation reads or writes.
func Values(op Op) []Val {
	in, out := Reads(op), Writes(op)
	return append(append(make([]Val, 0, len(in)+len(out)), in...), out...)
}

// Reads lists the views that an operation reads.
func Reads(op Op) []Val {
	switch o := op.(type) {
	case *Norm:
		return []Val{o.In}
	case *MatMul:
		return []Val{o.In}
	case *HeadMatMul:
		return []Val{o.In}
	case *RopeOp:
		return []Val{o.X}
	case *StoreKV:
		if o.V.Width == 0 {
			return []Val{o.K}
		}
		return []Val{o.K, o.V}
	case *Attention:
		return []Val{o.Q}
	case *Act:
		return []Val{o.In}
	case *GLU:
		return []Val{o.Gate, o.Up}
	case *Gate:
		return []Val{o.X, o.G}
	case *Add:
		return []Val{o.In, o.Out}
	case *Scale:
		return []Val{o.X}
	case *SoftCap:
		return []Val{o.X}
	case *PosScale:
		return []Val{o.X}
	case *Clamp:
		return []Val{o.X}
	case *CopyHeads:
		return []Val{o.In}
	case *Copy:
		return []Val{o.In}
	case *Router:
		return []Val{o.In}
	case *Experts:
		return []Val{o.In}
	case *ShortConv:
		return []Val{o.In}
	case *DeltaScan:
		return []Val{o.Q, o.K, o.V, o.Decay, o.Beta}
	case *Decay:
		return []Val{o.X}
	case *Gather:
		return o.Vals
	}
	return nil
}

// Writes lists the views that an operation writes.
func Writes(op Op) []Val {
	switch o := op.(type) {
	case *Embed:
		return []Val{o.Out}
	case *Norm:
		return []Val{o.Out}
	case *MatMul:
		return o.Out
	case *HeadMatMul:
		return []Val{o.Out}
	case *RopeOp:
		return []Val{o.X}
	case *Attention:
		return []Val{o.Out}
	case *Act:
		return []Val{o.Out}
	case *GLU:
		return []Val{o.Out}
	case *Gate:
		return []Val{o.Out}
	case *Add:
		return []Val{o.Out}
	case *Scale:
		return []Val{o.X}
	case *SoftCap:
		return []Val{o.X}
	case *PosScale:
		return []Val{o.X}
	case *Clamp:
		return []Val{o.X}
	case *CopyHeads:
		return []Val{o.Out}
	case *Copy:
		return []Val{o.Out}
	case *Experts:
		return []Val{o.Out}
	case *ShortConv:
		return []Val{o.Out}
	case *DeltaScan:
		return []Val{o.Out}
	case *Decay:
		return []Val{o.Out}
	case *Gather:
		return o.Vals
	}
	return nil
}
