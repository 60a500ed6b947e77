// Package sample turns one row of logits into one token.
//
// It owns the sampling parameters, the order in which they act, the random numbers and the arithmetic behind
// them. It knows token ids and float32 logits; it knows nothing of text, models, batches or requests.
//
// The order, after Hugging Face (temperature before truncation) and llama.cpp (order of the truncations):
//
//	mask → logit bias → repetition, frequency and presence penalties → temperature →
//	top-k → typical → top-p → min-p → draw
//
// Each truncation sees the probabilities of what the one before it left, normalized anew. Whatever is on, at
// least one token stays. Ties go to the lower token id everywhere.
//
// A draw depends on (seed, position) and the row's logits alone: the generator is counter-based (Philox4x32-10,
// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) and all arithmetic is float64 without fused
// operations, so every machine draws the same token.
package sample

import (
	"fmt"
	"math"
)

// Params say how tokens are chosen. A field's zero value switches it off; the zero Params choose greedily.
type Params struct {
	Temperature float32 // 0: the most probable token, always
	TopK        int     // keep the k most probable
	TopP        float32 // keep the most probable whose probabilities reach p; 1: off too
	MinP        float32 // keep what has at least p times the probability of the best
	TypicalP    float32 // locally typical sampling; 1: off too

	// RepetitionPenalty divides the positive and multiplies the negative logits of tokens among the last
	// RepeatLastN of prompt and output (0: 64, negative: all). 1: off too.
	RepetitionPenalty float32
	RepeatLastN       int
	// PresencePenalty is subtracted once from the logit of each token generated so far, FrequencyPenalty once
	// for each time.
	PresencePenalty  float32
	FrequencyPenalty float32

	LogitBias map[int32]float32 // added to logits; -Inf forbids a token

	Seed    uint64
	HasSeed bool // Seed was given; otherwise the caller of this package chooses one
}

// DefaultRepeatLastN is the reach of the repetition penalty where RepeatLastN is 0.
const DefaultRepeatLastN = 64

// A ParamError names a parameter outside its range.
type ParamError struct {
	Name  string
	Value float64
	Want  string
}

func (e *ParamError) Error() string {
	return fmt.Sprintf("sampling: %s is %v, must be %s", e.Name, e.Value, e.Want)
}

// Penalizes reports whether a penalty is on.
func (p *Params) Penalizes() bool {
	return p.RepetitionPenalty > 0 && p.RepetitionPenalty != 1 || p.PresencePenalty != 0 || p.FrequencyPenalty != 0
}

// Greedy reports whether the most probable token is always chosen.
func (p *Params) Greedy() bool { return p.Temperature == 0 }

// Validate returns a *ParamError for the first parameter outside its range.
func (p *Params) Validate() error {
	checks := []struct {
		name   string
		value  float64
		lo, hi float64
		want   string
	}{
		{"temperature", float64(p.Temperature), 0, 1e4, "0 (greedy) to 10000"},
		{"top_k", float64(p.TopK), 0, math.MaxInt32, "0 (off) or more"},
		{"top_p", float64(p.TopP), 0, 1, "0 (off) to 1"},
		{"min_p", float64(p.MinP), 0, 1, "0 (off) to 1"},
		{"typical_p", float64(p.TypicalP), 0, 1, "0 (off) to 1"},
		{"repetition_penalty", float64(p.RepetitionPenalty), 0, 1e4, "0 (off) to 10000"},
		{"repeat_last_n", float64(p.RepeatLastN), math.MinInt32, math.MaxInt32, "a 32-bit integer"},
		{"presence_penalty", float64(p.PresencePenalty), -100, 100, "-100 to 100"},
		{"frequency_penalty", float64(p.FrequencyPenalty), -100, 100, "-100 to 100"},
	}
	for _, c := range checks {
		if !(c.value >= c.lo && c.value <= c.hi) { // false for NaN
			return &ParamError{c.name, c.value, c.want}
		}
	}
	for id, b := range p.LogitBias {
		if id < 0 {
			return &ParamError{"logit_bias token", float64(id), "a token id"}
		}
		if b != b || b > 1e4 {
			return &ParamError{fmt.Sprintf("logit_bias of token %d", id), float64(b), "at most 10000"}
		}
	}
	return nil
}

// A Mask restricts which tokens may be drawn, as a grammar does. It belongs to one row and is called by one
// goroutine at a time. What it says follows from the tokens that were accepted alone.
type Mask interface {
	// Allowed returns one bit for each token id, bit id%64 of word id/64; ids beyond the slice are forbidden.
	// Nil allows every token. The slice is read before the next call of Accept and never written to.
	Allowed() []uint64
	// Accept says which token was drawn. An error ends the request.
	Accept(token int32) error
}

// A Preparer is a Mask whose Allowed takes its time: Prepare computes what the next Allowed returns. The engine calls
// it after each Accept, on a goroutine of its own beside the running step.
type Preparer interface {
	Mask
	Prepare()
}

// A Forcer is a Mask that knows at times what must come next.
type Forcer interface {
	Mask
	// Forced returns the tokens that come next whatever the model says, none where there is a choice. They are accepted
	// one by one like drawn ones, but not drawn: their rows are computed together.
	Forced() []int32
}
