package sample

// A LogProb is a token with the logarithm of its probability.
type LogProb struct {
	Token   int32
	LogProb float32
}
