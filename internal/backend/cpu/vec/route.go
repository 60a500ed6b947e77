package vec

import (
	"math"

	"github.com/baleenrun/baleen/internal/plan"
)

// RouteScratch is the number of float32 values of scratch memory that Route needs.
func RouteScratch(experts int) int { return 3 * experts }

// Route chooses len(ids) experts for one row of logits and writes their numbers and weights, in descending order of
// the score that decides; ties go to the lower number, and a NaN counts as minus infinity. The bias (nil: none) has
// one value per expert. There are at least len(ids) experts in the groups that r allows.
func (k *Kernels) Route(logits []float32, r *plan.Router, bias []float32, ids []int32, weights, scratch []float32) {
	n := len(logits)
	score, choice := scratch[:n], scratch[n:2*n]
	switch r.Kind {
	case plan.GateSoftmax:
		copy(score, logits)
		k.Softmax(score)
	case plan.GateSigmoid:
		k.Act(plan.ActSigmoid, score, logits)
	default:
		copy(score, logits)
	}
	for i, s := range score {
		if bias != nil {
			s += bias[i]
		}
		if s != s {
			s = float32(math.Inf(-1))
		}
		choice[i] = s
	}
	allowed := n
	if r.Groups > 1 {
		keepGroups(choice, scratch[2*n:], r)
		allowed = n / r.Groups * r.GroupTopK
	}
	for i := range ids {
		best := -1
		for e, s := range choice {
			if s == s && (best < 0 || s > choice[best]) {
				best = e
			}
		}
		if best < 0 || i >= allowed {
			ids[i], weights[i] = 0, 0
			continue
		}
		ids[i], weights[i] = int32(best), score[best]
		choice[best] = float32(math.NaN()) // taken
	}
	if r.Kind == plan.GateTopKSoftmax {
		k.Softmax(weights[:len(ids)]) // their sum is 1
	} else if r.Norm {
		normalizeSum(weights[:len(ids)], r.NormEps)
	}
	for i := range ids {
		weights[i] *= r.Scale
	}
}

// normalizeSum divides w by the sum of its values, added in order, plus eps.
func normalizeSum(w []float32, eps float32) {
	var sum float32
	for _, x := range w {
		sum += x
	}
	sum += eps
	for i := range w {
		w[i] /= sum
	}
}

// keepGroups marks the experts outside the best groups as taken (NaN).
func keepGroups(choice, ratings []float32, r *plan.Router) {
	size := len(choice) / r.Groups
	group := func(g int) []float32 { return choice[g*size:][:size] }
	rate := func(g int) float32 {
		first, second := float32(math.Inf(-1)), float32(math.Inf(-1))
		for _, s := range group(g) {
			if s > first {
				first, second = s, first
			} else if s > second {
				second = s
			}
		}
		if r.GroupSum2 {
			return first + second
		}
		return first
	}
	ratings = ratings[:r.Groups]
	for g := range ratings {
		ratings[g] = rate(g)
	}
	// A group stays if fewer than GroupTopK others beat it.
	for g, own := range ratings {
		better := 0
		for h, s := range ratings {
			if s > own || s == own && h < g {
				better++
			}
		}
		if better >= r.GroupTopK {
			for i := range group(g) {
				group(g)[i] = float32(math.NaN())
			}
		}
	}
}

// Softmax replaces x by exp(x-max) divided by their sum (over the lanes and the tree).
func (k *Kernels) Softmax(x []float32) {
	m := float32(math.Inf(-1))
	for _, v := range x {
		m = maxf(m, v)
	}
	map1f(x, x, m, k.ops.subConst)
	map1(x, x, k.ops.unary[uExp])
	sum := reduce(x, k.ops.sum)
	for i := range x {
		x[i] /= sum
	}
}
