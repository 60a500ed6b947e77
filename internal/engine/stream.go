package engine

import (
	"sync"
	"sync/atomic"
)

// A Stream is the output of one request. Its methods are for one goroutine, except Close and Ended. The engine never
// waits for a reader: events queue up.
type Stream struct {
	cancelled atomic.Bool
	wake      func() // the engine's

	more chan struct{} // holds one token when there may be something new
	done chan struct{} // closed with the Done event

	mu     sync.Mutex
	events []Event // a ring
	head   int
	count  int
	ended  bool // the Done event is in the ring or was read
}

func newStream(wake func()) *Stream {
	return &Stream{wake: wake, more: make(chan struct{}, 1), done: make(chan struct{}), events: make([]Event, 32)}
}

// push adds an event; the engine calls it.
func (s *Stream) push(ev Event) {
	s.mu.Lock()
	if s.count == len(s.events) {
		grown := make([]Event, 2*len(s.events))
		n := copy(grown, s.events[s.head:])
		copy(grown[n:], s.events[:s.head])
		s.events, s.head = grown, 0
	}
	s.events[(s.head+s.count)%len(s.events)] = ev
	s.count++
	if ev.Done && !s.ended {
		s.ended = true
		close(s.done)
	}
	s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// Ended is closed when the engine works on the request no more. Events may be left to be read. Any goroutine may wait
// for it.
func (s *Stream) Ended() <-chan struct{} { return s.done }

// Next waits for the next event. It returns false after the Done event.
func (s *Stream) Next() (Event, bool) {
	for {
		s.mu.Lock()
		if s.count > 0 {
			ev := s.events[s.head]
			s.events[s.head] = Event{}
			s.head = (s.head + 1) % len(s.events)
			s.count--
			s.mu.Unlock()
			return ev, true
		}
		ended := s.ended
		s.mu.Unlock()
		if ended {
			return Event{}, false
		}
		<-s.more
	}
}

// All yields the events up to and including the Done event. Leaving the loop early closes the stream, by a panic too.
func (s *Stream) All() func(yield func(Event) bool) {
	return func(yield func(Event) bool) {
		defer s.Close()
		for {
			if ev, ok := s.Next(); !ok || !yield(ev) {
				return
			}
		}
	}
}

// Close cancels the request at the next step if it still runs. The Done event can still be read.
func (s *Stream) Close() {
	if !s.cancelled.Swap(true) {
		s.wake()
	}
}
