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

// above returns the tokens of at least a logit, by id.
func above(c []candidate, logits []float32, least float32) []candidate {
	for i, x := range logits {
		if x >= least {
			c = append(c, candidate{x: x, id: int32(i)})
		}
	}
	return c
}

// atWeight returns a logit that every token of at least a weight reaches.
func atWeight(weight float64, top, temperature float32) float32 {
	x := float64(top) + float64(log(max(weight, 1e-300))*float64(temperature))
	return float32(x - float64(1e-6*max(math.Abs(x), math.Abs(float64(top)), 1))) // rounding does no harm
}

// weight is a token's probability up to a factor common to all tokens.
func weight(x, top, temperature float32) float64 {
	return exp((float64(x) - float64(top)) / float64(temperature))
}

// weigh sets the weights.
func weigh(c []candidate, top, temperature float32) {
	for i := range c {
		c[i].w = weight(c[i].x, top, temperature)
	}
}

// blockTokens is how many tokens are summed at a time over a whole vocabulary.
const blockTokens = 64

// total returns the sum of all tokens' weights, and in w.block that of each block.
func total(w *Scratch, logits []float32, top, temperature float32) float64 {
	w.block = w.block[:0]
	z := 0.0
	for len(logits) > 0 {
		n := min(blockTokens, len(logits))
		b := 0.0
		for _, x := range logits[:n] {
			b += weight(x, top, temperature)
		}
		w.block = append(w.block, b)
		z += b
		logits = logits[n:]
	}
	return z
}

// pickAny draws from all tokens.
func pickAny(w *Scratch, logits []float32, top, temperature float32, u float64) int32 {
	r := float64(u * total(w, logits, top, temperature))
	acc, last := 0.0, int32(-1)
	for b, sum := range w.block {
		if sum == 0 {
			continue
		}
		at := acc
		if acc += sum; acc <= r && b+1 < len(w.block) {
			continue
		}
		for i := b * blockTokens; i < min((b+1)*blockTokens, len(logits)); i++ {
			if v := weight(logits[i], top, temperature); v > 0 {
				at += v
				last = int32(i)
				if at > r {
					return last
				}
			}
		}
	}
	if last >= 0 {
		return last // r is within a rounding of the sum
	}
	for i, x := range logits {
		if x == top {
			last = int32(i)
			break
		}
	}
	return last
}

// pick draws from weighted candidates.
func pick(c []candidate, u float64) int32 {
	r := float64(u * sum(c))
	acc, last := 0.0, c[0].id
	for i := range c {
		if c[i].w == 0 {
			continue
		}
		acc += c[i].w
		last = c[i].id
		if acc > r {
			break
		}
	}
	return last
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
// 2020): the fewest that reach probability p, where all tokens that there are, n of them, weigh z.
func nucleus(c []candidate, p, z float64, n int) []candidate {
	least := negligible(p, z, n)
	k := 0
	for i := range c {
		if c[i].w >= least {
			c[k] = c[i]
			c[k].key = -c[i].w
			k++
		}
	}
	return lowest(c[:k], float64(p*z))
}

// negligible returns a weight such that all of n tokens below it add up to less than 1-p of z: none of them is in
// the nucleus.
func negligible(p, z float64, n int) float64 { return float64((1-p)*z) / float64(n) * 0.999 }

// likely returns the nucleus of a whole vocabulary without weighing the many that are not in it twice.
func likely(w *Scratch, logits []float32, p float64, top, temperature float32) []candidate {
	z := total(w, logits, top, temperature)
	w.cand = above(w.cand[:0], logits, atWeight(negligible(p, z, len(logits)), top, temperature))
	weigh(w.cand, top, temperature)
	return nucleus(w.cand, p, z, len(logits))
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
