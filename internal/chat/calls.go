package chat

import (
	"maps"
	"math"

	"github.com/baleenrun/baleen/internal/toolfmt"
)

// calling is what an answer knows of its tool calls.
type calling struct {
	calls   int // handed out
	cutCall bool
	// withheld are the pieces of a call to a strict tool, until it is complete.
	withheld []toolfmt.Event
	ids      map[int]string
}

// callEvent takes a piece of a call; it reports whether that ended the answer, or began it anew.
func (c *choice) callEvent(ev toolfmt.Event) bool {
	if ev.Kind == toolfmt.CallStart && c.sayRest() {
		return true
	}
	out, v := c.guard.call(ev)
	for _, ev := range out {
		pieces, text := c.strictly(ev)
		for _, ev := range pieces {
			c.hand(ev)
		}
		if text != "" && c.sayUntilStop(text) {
			return true
		}
	}
	return c.obey(v)
}

// hand turns a piece of a call into a delta.
func (c *choice) hand(ev toolfmt.Event) {
	switch ev.Kind {
	case toolfmt.CallStart:
		c.logs = nil
		c.flushStop()
		c.ids[ev.Index] = NewID("call_")
		c.push(Delta{Kind: CallStart, Index: ev.Index, Call: &Call{ID: c.ids[ev.Index], Name: ev.Call.Name}})
	case toolfmt.CallArgs:
		c.push(Delta{Kind: CallArgs, Index: ev.Index, Text: ev.Text})
	case toolfmt.CallEnd:
		c.calls++
		c.cutCall = c.cutCall || ev.Cut
		whole := &Call{ID: c.ids[ev.Index], Name: ev.Call.Name, Arguments: ev.Call.Arguments, Cut: ev.Cut}
		c.push(Delta{Kind: CallEnd, Index: ev.Index, Call: whole})
	}
}

// sayRest hands out text that the guard still holds; it reports whether that ended the answer.
func (c *choice) sayRest() bool {
	t := c.guard.rest()
	return t != "" && c.sayUntilStop(t)
}

// obey does with the answer what the guard says; it reports whether that ended it, or began it anew.
func (c *choice) obey(v verdict) bool {
	switch v {
	case goOn:
		return false
	case endHere:
		c.guarded = true
		c.s.trace.Notice("concluded: the model made a call of this answer again, which ends it here")
		c.drain()
		c.end(ToolCalls, "", nil)
		return true
	case askWithoutToken:
		c.forbid(c.out[0])
	}
	c.s.trace.Notice("concluded: the model repeated a call and was asked again, to answer now")
	c.askAgain()
	return true
}

// forbid keeps a token out of the rest of the answer.
func (c *choice) forbid(token int32) {
	bias := maps.Clone(c.params.LogitBias)
	if bias == nil {
		bias = map[int32]float32{}
	}
	bias[token] = float32(math.Inf(-1))
	c.params.LogitBias = bias
}

// askAgain begins the answer anew behind the prompt that asks for it in words.
func (c *choice) askAgain() {
	c.drain()
	c.flushStop() // what comes next is another answer: no stop string reaches into it
	c.gap = c.runes > 0
	s := c.s
	spent := len(c.out)
	c.guard.asked()
	c.guarded, c.again, c.logs = true, true, nil
	again := s.prompt.again()
	if again.err != nil {
		c.end(Failed, "", AsError(again.err))
		return
	}
	c.tokens = again.tokens
	if c.index == 0 {
		s.recordRaw()
		s.trace.record("prompt.txt", []byte(again.text))
	}
	c.out, c.stopped, c.cut = nil, nil, false
	c.decoder = s.lease.Model.Tokenizer.NewDecoder(false)
	c.parser = s.newParser()
	if c.limit >= 0 {
		c.limit -= spent
		if s.r.Context > 0 { // the line, too, takes room
			c.limit = min(c.limit, s.Context()-len(c.tokens))
		}
		if c.limit <= 0 {
			c.end(Length, "", nil)
			return
		}
	}
	if err := c.start(); err != nil {
		c.end(Failed, "", AsError(engineError(err)))
	}
}
