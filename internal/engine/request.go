package engine

import (
	"fmt"
	"time"

	"github.com/baleenrun/baleen/internal/sample"
)

// A Request asks for the continuation of a list of tokens. It must not change until its stream has ended.
// RATIONALE: Why does the engine know no text?
type Request struct {
	// Tokens is the whole prompt, at least one token. Sessions resend what was said before: the prefix that is
	// cached is found by its tokens and not computed again.
	Tokens []int32
	// MaxTokens bounds the generated tokens. 0: until the context is full. Negative: none is generated, the
	// prompt is only computed.
	MaxTokens int

	Sampling sample.Params
	// Answered is how many tokens at the end of Tokens belong to the answer already: presence and frequency
	// penalties count them as generated.
	Answered int
	// NoPenalty, where not nil, says before each draw whether penalties are left out of it. last is the token that
	// was drawn before, -1 at the first draw. It is called on the engine's goroutine, once for each draw and in
	// order, whatever the batch; what it says must follow from these tokens alone. It must not call the engine.
	NoPenalty func(last int32) bool
	// Mask restricts the tokens of this request; nil: none forbidden. It may be a sample.Preparer and a sample.Forcer.
	// It is the engine's from Generate on, also after the stream's end.
	Mask sample.Mask

	StopTokens []int32 // ids that end the generation; nil: the model's (Options.StopTokens)
	IgnoreEOS  bool    // no id ends the generation

	// LogProbs asks for the log probability of each token (1) and of the LogProbs-1 most probable
	// alternatives: 0 means none, 1 the token's own, n the n-1 best too. They are those of the model: before
	// mask, bias, penalties and temperature.
	LogProbs int

	// PromptLogits is called on the engine's goroutine with the logits of every prompt position from
	// LogitsFrom on, in order; logits is valid during the call. Positions from LogitsFrom on are always
	// computed, never taken from the cache. PromptLogits must not call the engine.
	PromptLogits func(pos int, logits []float32)
	LogitsFrom   int

	// Progress asks for an event after each step that computed a part of the prompt, and one at admission.
	Progress bool

	CacheSalt string // requests share cached prefixes only with those of the same salt
	// Caller is whose request it is. Callers take turns at being admitted, and none can take the others' places in the
	// queue: see package fairshare. It changes no token.
	Caller string
	// Priority: a waiting request of a higher one is admitted first. One above 0 is not refused because too many wait:
	// it goes on with what was begun.
	Priority int
}

// FinishReason says why a stream ended.
type FinishReason uint8

const (
	FinishNone      FinishReason = iota // not finished
	FinishStop                          // a stop token
	FinishLength                        // MaxTokens reached, or the context is full
	FinishCancelled                     // the context was cancelled or the stream closed
	FinishError                         // see Event.Err
)

func (r FinishReason) String() string {
	return [...]string{"none", "stop", "length", "cancelled", "error"}[r]
}

// An Event is one generated token, a report of how far the prompt is, or the end of a stream. Every stream ends with
// exactly one event that has Done set, after an error too.
type Event struct {
	Token int32 // the token, -1 in a Done event

	LogProb float32          // log probability of Token, where asked for
	Top     []sample.LogProb // the most probable tokens, best first, where asked for

	// Prefill is not nil in reports, which have no token (-1).
	Prefill *Prefill

	Done      bool
	Reason    FinishReason
	StopToken int32 // the id that ended the generation, else -1
	Err       error // with FinishError, and the context's error with FinishCancelled
	Usage     Usage
}

// Prefill says how much of a prompt is ready.
type Prefill struct {
	Ready  int // tokens computed or taken from the cache
	Cached int // of these, taken from the cache
	Total  int // of the prompt
}

// Usage counts what a request took.
type Usage struct {
	Prompt    int // prompt tokens
	Cached    int // of these, not computed but found in the cache
	Generated int // generated tokens, the stop token included
	Swaps     int // times that the request was moved out of the cache under memory pressure

	Queue time.Duration // from Generate to admission
	First time.Duration // from Generate to the first token
	Total time.Duration // from Generate to the end
	Seed  uint64        // the seed that was used
}

// PromptTooLong refuses a prompt that the context, or the memory set aside for it, cannot hold.
type PromptTooLong struct {
	Tokens  int // of the prompt
	Context int // positions that one sequence can have
}

func (e *PromptTooLong) Error() string {
	return fmt.Sprintf("prompt %s tokens, context %s: shorten the prompt or load the model with a larger context",
		thousands(e.Tokens), thousands(e.Context))
}

// BadToken refuses a token id that the model does not have.
type BadToken struct {
	Token    int32
	Position int // in the prompt; -1: in the logit bias
	Vocab    int
}

func (e *BadToken) Error() string {
	where := fmt.Sprintf("prompt position %d", e.Position)
	if e.Position < 0 {
		where = "logit bias"
	}
	return fmt.Sprintf("token %d at %s: the model has %s tokens", e.Token, where, thousands(e.Vocab))
}

// BadRequest refuses a request that contradicts itself.
type BadRequest struct{ Field, Problem string }

func (e *BadRequest) Error() string { return e.Field + ": " + e.Problem }

// QueueFull refuses a request because too many wait.
type QueueFull struct {
	Waiting, Limit int
	Shared         bool // other callers wait, too: this one has its share of the places already
}

func (e *QueueFull) Error() string {
	if e.Shared {
		return fmt.Sprintf(
			"%d requests wait, at most %d may, and this caller has its share of them: try again later",
			e.Waiting,
			e.Limit,
		)
	}
	return fmt.Sprintf("%d requests wait, at most %d may: try again later", e.Waiting, e.Limit)
}

// CallbackPanic ends a request one of whose functions panicked.
type CallbackPanic struct {
	Value any    // that it panicked with
	Stack []byte // where
}

func (e *CallbackPanic) Error() string {
	return fmt.Sprintf("a function of the request panicked: %v", e.Value)
}

// thousands formats n with commas.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
