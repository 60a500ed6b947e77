package chat

import (
	"time"
	"unicode/utf8"

	"github.com/baleenrun/baleen/internal/engine"
)

// DeltaKind says what a Delta carries.
type DeltaKind uint8

// Kinds of deltas. A call is one CallStart, any number of CallArgs and one CallEnd with nothing of the same answer
// in between. Each answer ends with one Finish; a stream ends with one Done, whatever happens.
const (
	TextDelta      DeltaKind = iota // Text (may be empty where only log probabilities come), Tokens
	ReasoningDelta                  // Text
	CallStart                       // Call with ID and Name, Index
	CallArgs                        // Text is the next piece of the arguments' JSON, Index
	CallEnd                         // Call is whole unless it is Cut, Index
	Finish                          // Reason, StopString
	Done                            // Usage, Err
	PrefillDelta                    // Prefill: only where Request.Progress asked, before everything else
)

// A Reason says why an answer ended.
type Reason uint8

// Reasons.
const (
	Stop         Reason = iota // the model ended it
	StopSequence               // one of Request.Stop; see Delta.StopString
	Length                     // MaxTokens, or the context is full
	ToolCalls                  // the model called tools
	Failed                     // see the Done delta's Err
)

// String names the reason in logs.
func (r Reason) String() string {
	return [...]string{"stop", "stop sequence", "length", "tool calls", "error"}[r]
}

// A Delta is one piece of a stream.
type Delta struct {
	Kind   DeltaKind
	Choice int // of the answer, from 0
	Text   string
	Call   *Call
	Index  int // of the call in its answer, from 0
	Tokens []TokenLog

	Prefill engine.Prefill

	Reason     Reason
	StopString string

	Usage Usage
	Err   *Error // nil: the stream ended well
}

// A TokenLog is a token with its log probability.
type TokenLog struct {
	ID      int32
	Text    string // may end inside a character
	LogProb float32
	Top     []TokenLog // the most probable ones, best first
	Offset  int        // characters of text before it, in the prompt or in the answer
}

// SetOffsets sets where tokens in a row begin, the first at character number at. A token that begins inside a character
// has that character's place: it counts once, with the token that completes it, as in OpenAI's text_offset. open is
// what tokens before have of a character, and what these have of one is returned.
func SetOffsets(tokens []TokenLog, at int, open []byte) []byte {
	for i := range tokens {
		tokens[i].Offset = at
		open = append(open, tokens[i].Text...)
		for len(open) > 0 && utf8.FullRune(open) {
			_, n := utf8.DecodeRune(open)
			open = open[n:]
			at++
		}
	}
	return open
}

// Usage counts what a request took.
type Usage struct {
	Prompt    int // tokens; those of a second prompt that were not in the cache included, see Concluded
	Cached    int // of these, found in the cache
	Generated int // of all answers, reasoning and the tokens that ended them included
	Reasoning int // of these, reasoning
	Concluded int // answers that are not what the model wrote first, see Request.Conclude

	Load    time.Duration // until the model was ready
	Queue   time.Duration // until the engine admitted it
	Prefill time.Duration // from admission to the first token
	First   time.Duration // from Run to the first token
	Decode  time.Duration // from the first to the last token
	Total   time.Duration
	Seed    uint64 // of the first answer
}
