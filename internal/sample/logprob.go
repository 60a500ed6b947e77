package sample

import "math"

// A LogProb is a token with the natural logarithm of its probability.
type LogProb struct {
	Token   int32
	LogProb float32
}

// logNorm returns m and l such that the log probability of token i is logits[i]-m-l: the largest logit and the
// logarithm of the sum of exp(logits[i]-m).
func logNorm(logits []float32) (m, l float64) {
	top := float32(math.Inf(-1))
	for _, x := range logits {
		top = max(top, x)
	}
	m = float64(top)
	s := 0.0
	for _, x := range logits {
		s += exp(float64(x) - m)
	}
	return m, log(s)
}

// LogProbs returns the log probability of token under the softmax of a row of logits, and appends those of the n
// most probable tokens to dst, best first, ties to the lower id. The row is not changed.
func LogProbs(w *Scratch, dst []LogProb, logits []float32, token int32, n int) (float32, []LogProb) {
	m, l := logNorm(logits)
	if n > 0 {
		w.cand = selectTop(w.cand[:0], logits, min(n, len(logits)))
		for i := range w.cand {
			dst = append(dst, LogProb{w.cand[i].id, float32(float64(w.cand[i].x) - m - l)})
		}
	}
	return float32(float64(logits[token]) - m - l), dst
}
