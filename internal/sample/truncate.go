package sample

import "math"

// A candidate is a token that may be drawn. Its weight is its probability up to a factor common to all.
type candidate struct {
	w   float64
	key float64 // order of a truncation, lowest first
	x   float32 // logit
	id  int32
}

// before orders candidates by key, then by id.
func before(a, b *candidate) bool { return a.key < b.key || a.key == b.key && a.id < b.id }

// all returns every token that is not forbidden, by id.
func all(c []candidate, logits []float32) []candidate {
	inf := float32(math.Inf(-1))
	for i, x := range logits {
		if x > inf {
			c = append(c, candidate{x: x, id: int32(i)})
		}
	}
	return c
}

// selectTop returns the k tokens of the highest logits, best first, ties to the lower id. It keeps a heap of
// the k best so far whose root is the worst of them, so most tokens cost one comparison.
func selectTop(c []candidate, logits []float32, k int) []candidate {
	inf := float32(math.Inf(-1))
	i := 0
	for ; i < len(logits) && len(c) < k; i++ {
		if x := logits[i]; x > inf {
			// The key's order is that of a heap of the worst: lowest logit first. Among equal logits the
			// highest id is the worst, so ids are negated while they are in the heap.
			c = append(c, candidate{key: float64(x), x: x, id: -int32(i)})
		}
	}
	heapify(c)
	if len(c) == k {
		worst := c[0].x
		for ; i < len(logits); i++ {
			if x := logits[i]; x > worst {
				c[0] = candidate{key: float64(x), x: x, id: -int32(i)}
				down(c, 0)
				worst = c[0].x
			}
		}
	}
	for n := len(c) - 1; n > 0; n-- { // worst to the end
		c[0], c[n] = c[n], c[0]
		down(c[:n], 0)
	}
	for i := range c {
		c[i].id = -c[i].id
	}
	return c
}

// weigh sets the weights exp((x-top)/temperature).
func weigh(c []candidate, top, temperature float32) {
	t := float64(temperature)
	for i := range c {
		c[i].w = exp((float64(c[i].x) - float64(top)) / t)
	}
}

func sum(c []candidate) float64 {
	s := 0.0
	for i := range c {
		s += c[i].w
	}
	return s
}

// typical keeps the candidates whose information is closest to the entropy (Meister et al., "Locally typical
// sampling", 2023): the fewest that reach probability p.
func typical(c []candidate, p float64, top, temperature float32) []candidate {
	z, t := sum(c), float64(temperature)
	logZ := log(z)
	h := 0.0
	for i := range c {
		if c[i].w > 0 {
			h += float64(c[i].w / z * (logZ - (float64(c[i].x)-float64(top))/t))
		}
	}
	for i := range c {
		c[i].key = math.Abs(logZ - (float64(c[i].x)-float64(top))/t - h)
	}
	return lowest(c, float64(p*z))
}

// nucleus keeps the most probable candidates (Holtzman et al., "The curious case of neural text degeneration",
// 2020): the fewest that reach probability p.
func nucleus(c []candidate, p float64) []candidate {
	z := sum(c)
	// Candidates below this share add up to less than 1-p, so none of them is needed.
	least := float64((1-p)*z) / float64(len(c)) * 0.999
	n := 0
	for i := range c {
		if c[i].w >= least {
			c[n] = c[i]
			c[n].key = -c[i].w
			n++
		}
	}
	return lowest(c[:n], float64(p*z))
}

// lowest moves the candidates of the lowest keys to the end of c, as many as it takes to reach the weight, and
// returns them.
func lowest(c []candidate, weight float64) []candidate {
	heapify(c)
	n, acc := len(c), 0.0
	for n > 0 && (acc < weight || n == len(c)) {
		acc += c[0].w
		n--
		c[0], c[n] = c[n], c[0]
		down(c[:n], 0)
	}
	return c[n:]
}

// atLeast keeps the candidates of at least p times the weight of the best (Nguyen et al., "Turning up the heat:
// min-p sampling", 2024).
func atLeast(c []candidate, p float64) []candidate {
	best := 0.0
	for i := range c {
		best = max(best, c[i].w)
	}
	least := float64(p * best)
	n := 0
	for i := range c {
		if c[i].w >= least {
			c[n] = c[i]
			n++
		}
	}
	return c[:n]
}

func heapify(c []candidate) {
	for i := len(c)/2 - 1; i >= 0; i-- {
		down(c, i)
	}
}

// down restores the heap below i, lowest first.
func down(c []candidate, i int) {
	for {
		l := 2*i + 1
		if l >= len(c) {
			return
		}
		if l+1 < len(c) && before(&c[l+1], &c[l]) {
			l++
		}
		if !before(&c[l], &c[i]) {
			return
		}
		c[i], c[l] = c[l], c[i]
		i = l
	}
}
