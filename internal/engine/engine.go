// Package engine runs requests on one loaded model: many at once, in ragged batches, over one cache.
//
// It owns the scheduler, the steps, the streams and the counts of a loaded model. One goroutine drives the
// executor. It knows tokens and, through a Detokenizer, text; it knows no templates, dialects, files or HTTP.
//
// What a request generates depends on the model, the request and its seed alone. Timing decides how much of a
// prompt is computed in a step, never what comes out.
package engine

import (
	"context"
	"errors"
	"time"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/plan"
)

// A Decoder turns the tokens of one stream into text and holds back incomplete UTF-8.
type Decoder interface {
	Next(id int32) string // the text that became complete with id
	Flush() string        // what was held back
}

// A Detokenizer makes decoders. It is safe for concurrent use.
type Detokenizer interface {
	NewDecoder(skipSpecial bool) Decoder
}

// Decoders makes a Detokenizer of a function such as a tokenizer's NewDecoder method.
func Decoders[D Decoder](f func(skipSpecial bool) D) Detokenizer { return decoders[D](f) }

type decoders[D Decoder] func(bool) D

func (f decoders[D]) NewDecoder(skipSpecial bool) Decoder { return f(skipSpecial) }

// Options say how an engine runs. Exec must be what the executor was compiled with.
type Options struct {
	Exec backend.Options // MaxRows, MaxSeqs, MaxOut, Pages and Slots are used

	StopTokens    []int32 // end generations that name no stop tokens of their own
	MaxQueue      int     // waiting requests; 0: 512
	SnapshotEvery int     // positions between snapshots of recurrent states; 0: 512
	SwapBytes     int64   // host memory for sequences that are swapped out; 0: 1 GiB; negative: none

	// Stretch is how much longer a step may take than one without prompt tokens, while streams run.
	// 0: 1.9.
	Stretch float64

	Now func() time.Time // 0: time.Now; tests bring their own clock
}

// ErrClosed ends the streams of an engine that is closed, and refuses new ones.
var ErrClosed = errors.New("engine: closed")

// An Engine runs requests on one compiled plan.
type Engine struct{}

// New starts an engine. It owns x from now on and closes it in Close. Without a Detokenizer events have no text.
func New(x backend.Exec, p *plan.Plan, d Detokenizer, o Options) (*Engine, error) {
	return nil, errors.New("engine: not built yet")
}

// Generate starts a request. A request that can never run is refused with a *PromptTooLong, *BadToken,
// *BadRequest, *QueueFull or *sample.ParamError, or with ErrClosed. When ctx ends, the request is cancelled at
// the next step.
func (e *Engine) Generate(ctx context.Context, r *Request) (*Stream, error) { return nil, ErrClosed }

// Stats returns the counters as of the last step.
func (e *Engine) Stats() Stats { return Stats{} }

// Close ends all streams with ErrClosed and closes the executor.
func (e *Engine) Close() error { return nil }

// A Stream is the output of one request. Its methods are for one goroutine, except Close.
type Stream struct{}

// Next waits for the next event. It returns false after the Done event.
func (s *Stream) Next() (Event, bool) { return Event{}, false }

// All yields the events up to and including the Done event. Leaving the loop early closes the stream.
func (s *Stream) All() func(yield func(Event) bool) {
	return func(yield func(Event) bool) {
		for {
			ev, ok := s.Next()
			if !ok || !yield(ev) {
				s.Close()
				return
			}
		}
	}
}

// Close cancels the request at the next step if it still runs. The Done event can still be read.
func (s *Stream) Close() {}

// Stats are counters and levels of an engine.
type Stats struct {
	Steps     int64 // steps run
	Rows      int64 // rows computed in them
	Prompt    int64 // prompt tokens of admitted requests
	Cached    int64 // of these, found in the cache
	Generated int64 // tokens drawn
	Swaps     int64 // sequences moved out under pressure

	Running, Waiting, Swapped         int // requests now
	Groups                            []PageStats
	SlotsFree, SlotsCached, SlotsHeld int
	SwapBytes                         int64 // host memory in use

	ChunkRows int           // prompt rows that a step takes now while streams run
	StepTime  time.Duration // of the last step
}

// PageStats counts the pages of one group: Free + Cached + Held = Total.
type PageStats struct{ Window, Total, Free, Cached, Held int }
