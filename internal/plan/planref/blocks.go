package planref

import (
	"math"
	"sort"

	"github.com/baleenrun/baleen/internal/plan"
)

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func softplus(x float64) float64 {
	if x > 0 {
		return x + math.Log1p(math.Exp(-x))
	}
	return math.Log1p(math.Exp(x))
}

// act is every activation function but the gated one of gpt-oss.
func act(kind plan.ActKind, x float64) float64 {
	switch kind {
	case plan.ActSiLU:
		return x * sigmoid(x)
	case plan.ActGELU:
		return x * 0.5 * (1 + math.Erf(x/math.Sqrt2))
	case plan.ActGELUTanh:
		return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	case plan.ActReLU:
		return max(x, 0)
	case plan.ActReLU2:
		return max(x, 0) * max(x, 0)
	case plan.ActSigmoid:
		return sigmoid(x)
	case plan.ActTanh:
		return math.Tanh(x)
	case plan.ActSoftplus:
		return softplus(x)
	case plan.ActExp:
		return math.Exp(x)
	}
	return x
}

func glu(kind plan.ActKind, gate, up float64, limit, alpha float32) float64 {
	if kind == plan.ActSwiGLUOAI {
		l := float64(limit)
		gate, up = min(gate, l), max(min(up, l), -l)
		return (up + 1) * gate * sigmoid(float64(alpha)*gate)
	}
	return act(kind, gate) * up
}

// router fills one row of the route.
func (m *machine) router(op *plan.Router, r int) {
	spec := m.p.Routes[op.Route]
	logits, bias := m.row(op.In, r), m.vector(op.Bias)
	weights := gateScores(op.Kind, logits)
	choice := make([]float64, spec.Experts)
	for e := range choice {
		choice[e] = weights[e]
		if bias != nil {
			choice[e] += float64(bias[e])
		}
	}
	allowed := allowedExperts(op, choice)
	order := make([]int, 0, spec.Experts)
	for e := range choice {
		if allowed[e] {
			order = append(order, e)
		}
	}
	sort.SliceStable(order, func(a, b int) bool { return choice[order[a]] > choice[order[b]] })
	order = order[:spec.TopK]

	picked := make([]float64, spec.TopK)
	var sum float64
	for i, e := range order {
		picked[i] = weights[e]
		if op.Kind == plan.GateTopKSoftmax {
			picked[i] = math.Exp(weights[e] - weights[order[0]])
		}
		sum += picked[i]
	}
	for i := range picked {
		switch {
		case op.Kind == plan.GateTopKSoftmax:
			picked[i] /= sum
		case op.Norm:
			picked[i] /= sum + float64(op.NormEps)
		}
		picked[i] *= float64(op.Scale)
	}
	route := &m.routes[op.Route]
	if len(route.experts) != m.rows {
		route.experts, route.weights = make([][]int, m.rows), make([][]float64, m.rows)
	}
	route.experts[r], route.weights[r] = order, picked
}

func gateScores(kind plan.GateKind, logits []float32) []float64 {
	scores := make([]float64, len(logits))
	top := math.Inf(-1)
	for e, l := range logits {
		scores[e] = float64(l)
		top = max(top, scores[e])
	}
	switch kind {
	case plan.GateSigmoid:
		for e := range scores {
			scores[e] = sigmoid(scores[e])
		}
	case plan.GateSoftmax:
		var sum float64
		for e := range scores {
			scores[e] = math.Exp(scores[e] - top)
			sum += scores[e]
		}
		for e := range scores {
			scores[e] /= sum
		}
	}
	return scores
}

// allowedExperts marks the experts of the best groups.
func allowedExperts(op *plan.Router, choice []float64) []bool {
	allowed := make([]bool, len(choice))
	if op.Groups <= 1 {
		for e := range allowed {
			allowed[e] = true
		}
		return allowed
	}
	size := len(choice) / op.Groups
	score := make([]float64, op.Groups)
	order := make([]int, op.Groups)
	for g := range score {
		members := append([]float64(nil), choice[g*size:][:size]...)
		sort.Sort(sort.Reverse(sort.Float64Slice(members)))
		score[g], order[g] = members[0], g
		if op.GroupSum2 {
			score[g] += members[1]
		}
	}
	sort.SliceStable(order, func(a, b int) bool { return score[order[a]] > score[order[b]] })
	for _, g := range order[:op.GroupTopK] {
		for e := range size {
			allowed[g*size+e] = true
		}
	}
	return allowed
}

func (m *machine) experts(op *plan.Experts, r int) {
	in, out := m.row(op.In, r), m.row(op.Out, r)
	route := m.routes[op.Route]
	hidden := m.p.Weights[op.Gate].Rows
	total := make([]float64, len(out))
	for i, e := range route.experts[r] {
		weight := route.weights[r][i]
		x := append([]float32(nil), in...)
		if op.WeightInput {
			for j := range x {
				x[j] = float32(float64(x[j]) * weight)
			}
			weight = 1
		}
		gate, up := make([]float32, hidden), make([]float32, hidden)
		m.matVec(gate, x, op.Gate, e, m.expertBias(op.GateB, e, hidden))
		m.matVec(up, x, op.Up, e, m.expertBias(op.UpB, e, hidden))
		for j := range gate {
			gate[j] = float32(glu(op.Kind, float64(gate[j]), float64(up[j]), op.Limit, op.Alpha))
		}
		y := make([]float32, len(out))
		m.matVec(y, gate, op.Down, e, m.expertBias(op.DownB, e, len(out)))
		for j, v := range y {
			total[j] += weight * float64(v)
		}
	}
	for j, v := range total {
		out[j] = float32(v)
	}
}

func (m *machine) expertBias(id plan.VectorID, expert, rows int) []float32 {
	if id == plan.None {
		return nil
	}
	return m.vector(id)[expert*rows:][:rows]
}

func (m *machine) shortConv(op *plan.ShortConv) {
	w, b := m.vector(op.W), m.vector(op.B)
	channels := op.In.Width
	results := make([][]float32, m.rows)
	for r := range m.rows {
		results[r] = make([]float32, channels)
		for c := range channels {
			var sum float64
			for j := range op.Kernel {
				if t := r - op.Kernel + 1 + j; t >= 0 {
					sum += float64(w[c*op.Kernel+j]) * float64(m.row(op.In, t)[c])
				}
			}
			if b != nil {
				sum += float64(b[c])
			}
			results[r][c] = float32(act(op.Kind, sum))
		}
	}
	for r := range m.rows { // only now: Out may be In
		copy(m.row(op.Out, r), results[r])
	}
}

func (m *machine) decay(op *plan.Decay, r int) {
	x, out := m.row(op.X, r), m.row(op.Out, r)
	alog, bias := m.vector(op.ALog), m.vector(op.Bias)
	slice := len(x) / len(alog)
	for i := range out {
		v := float64(x[i])
		if bias != nil {
			v += float64(bias[i])
		}
		a := float64(alog[i/slice])
		if !op.AIsNeg {
			a = -math.Exp(a)
		}
		out[i] = float32(a * softplus(v))
	}
}

func (m *machine) deltaScan(op *plan.DeltaScan) {
	for h := range op.VHeads {
		state := make([]float64, op.KDim*op.VDim)
		kh := h / (op.VHeads / op.KHeads)
		if op.Tiled {
			kh = h % op.KHeads
		}
		for r := range m.rows {
			q := m.row(op.Q, r)[kh*op.KDim:][:op.KDim]
			k := m.row(op.K, r)[kh*op.KDim:][:op.KDim]
			v := m.row(op.V, r)[h*op.VDim:][:op.VDim]
			beta := float64(m.row(op.Beta, r)[h])
			decay := m.row(op.Decay, r)
			for i := range op.KDim {
				d := decay[h%len(decay)]
				if op.PerChannel {
					d = decay[h*op.KDim+i]
				}
				for j := range op.VDim {
					state[i*op.VDim+j] *= math.Exp(float64(d))
				}
			}
			out := m.row(op.Out, r)[h*op.VDim:][:op.VDim]
			for j := range op.VDim {
				var read float64
				for i := range op.KDim {
					read += state[i*op.VDim+j] * float64(k[i])
				}
				u := beta * (float64(v[j]) - read)
				var y float64
				for i := range op.KDim {
					state[i*op.VDim+j] += float64(k[i]) * u
					y += state[i*op.VDim+j] * float64(q[i]) * float64(op.Scale)
				}
				out[j] = float32(y)
			}
		}
	}
}
