package chat

import (
	"maps"
	"math"
	"slices"

	"github.com/baleenrun/baleen/internal/toolfmt"
)

// Concluding says what becomes of a call that adds nothing: small models, when they get a result, make the same call
// again. Such a call is not handed out. The model is asked once more, with a line behind the result that says to answer
// the user now, and what it then says is handed out. Where it begins with the same call even then, it is asked a last
// time, without the token that began it.
type Concluding uint8

const (
	// ConcludeAuto takes repetitions, and of models under SmallModel also calls that they write without the marks of
	// their own format and that nobody asked for, see toolfmt.Answered.Strays.
	ConcludeAuto Concluding = iota
	ConcludeRepeats
	ConcludeNever
)

// SmallModel is the number of parameters under which a model that does not keep to its format is not trusted to go on
// with calls of its own. Of 54 results that Qwen2.5-Coder 0.5B and 1.5B got, none was followed by a call that was
// asked for.
const SmallModel = 2_000_000_000

// calling is what an answer knows of its calls.
type calling struct {
	calls   int
	cutCall bool
	ids     map[int]string // of calls
	made    []toolfmt.Call // handed out

	held      []toolfmt.Event // of a call that may be a repetition
	args      string          // its arguments so far
	whole     bool            // it is held to its end
	concludes bool            // a first call that adds nothing makes the model conclude
	strays    bool            // ... and so does one that nobody asked for
	concluded bool            // the model was asked to
	silent    int             // runes handed out when it was asked
	barred    bool            // it was asked without the token that begins the call
	gap       bool            // what it says then is set apart from what it has said
	sifting   bool            // the answer has not begun: it may be meant as a call
	sifted    string          // its text so far
}

// arm makes ready to watch the answer's begin.
func (c *choice) arm() {
	p, policy := c.s.prompt, c.s.svc.o.Concluding
	c.concludes = p.again != nil && policy != ConcludeNever
	n := c.s.lease.Model.Info.Parameters
	c.strays = c.concludes && policy == ConcludeAuto && n > 0 && n < SmallModel
	c.sifting = c.strays
}

// mayRepeat tells whether the call that is held may still be one that is not handed out.
func (c *choice) mayRepeat(name string) bool {
	return (c.first() || c.stubborn()) && c.s.prompt.answered.MayRepeat(name, c.args) ||
		slices.ContainsFunc(c.made, func(m toolfmt.Call) bool { return m.MayBecome(name, c.args) })
}

// first tells that the next call decides whether the model is asked to conclude.
func (c *choice) first() bool { return c.concludes && !c.concluded && c.calls == 0 && len(c.made) == 0 }

// stubborn tells that the model, asked to conclude, has said nothing else before the call that comes.
func (c *choice) stubborn() bool {
	return c.concluded && !c.barred && c.calls == 0 && c.runes == c.silent && len(c.out) > 0
}

// callEvent takes a piece of a call; it reports whether that ended the answer, or began it anew.
func (c *choice) callEvent(ev toolfmt.Event) bool {
	switch ev.Kind {
	case toolfmt.CallStart:
		if c.unsift() {
			return true
		}
		c.args, c.held = "", []toolfmt.Event{ev}
		c.whole = c.strays && ev.Plain && c.first()
		if !c.whole && !c.mayRepeat(ev.Call.Name) {
			c.release()
		}
	case toolfmt.CallArgs:
		if c.held == nil {
			c.hand(ev)
			return false
		}
		c.args += ev.Text
		c.held = append(c.held, ev)
		if !c.whole && !c.mayRepeat(c.held[0].Call.Name) {
			c.release()
		}
	case toolfmt.CallEnd:
		if c.held == nil {
			c.hand(ev)
			return false
		}
		if slices.ContainsFunc(c.made, ev.Call.Same) { // a small model would go on with it until the context is full
			c.held = nil
			c.drain()
			c.end(ToolCalls, "", nil)
			return true
		}
		a := c.s.prompt.answered
		if !ev.Cut && c.first() && (a.Repeats(*ev.Call) || c.whole && a.Strays(*ev.Call, c.s.prompt.tools)) {
			return c.conclude()
		}
		if !ev.Cut && c.stubborn() && a.Repeats(*ev.Call) {
			c.bar(c.out[0])
			return c.conclude()
		}
		c.held = append(c.held, ev)
		c.release()
	}
	return false
}

// release hands out what was held of a call.
func (c *choice) release() {
	held := c.held
	c.held = nil
	for _, ev := range held {
		c.hand(ev)
	}
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
		c.made = append(c.made, *ev.Call)
		c.push(Delta{Kind: CallEnd, Index: ev.Index, Call: &Call{ID: c.ids[ev.Index], Name: ev.Call.Name, Arguments: ev.Call.Arguments}})
	}
}

// sift keeps the begin of an answer while it may be meant as a call that does not fit its tool.
func (c *choice) sift(t string) bool {
	c.sifted += t
	yes, open := toolfmt.Attempts(c.sifted, c.s.prompt.tools)
	switch {
	case open:
		return false
	case yes && c.first():
		return c.conclude()
	}
	return c.unsift()
}

// unsift hands out what was kept.
func (c *choice) unsift() bool {
	t := c.sifted
	c.sifting, c.sifted = false, ""
	return t != "" && c.answer(t)
}

// bar forbids a token for the rest of the answer.
func (c *choice) bar(token int32) {
	c.barred = true
	bias := maps.Clone(c.params.LogitBias)
	if bias == nil {
		bias = map[int32]float32{}
	}
	bias[token] = float32(math.Inf(-1))
	c.params.LogitBias = bias
}

// conclude asks the model again, with the line behind the result. It reports true: what was being read is over.
func (c *choice) conclude() bool {
	c.drain()
	c.flushStop() // what comes next is another answer: no stop string reaches into it
	c.gap = c.runes > 0
	c.silent = c.runes
	s := c.s
	spent := len(c.out)
	c.concluded, c.sifting, c.sifted, c.held, c.logs = true, false, "", nil, nil
	again := s.prompt.again()
	if again.err != nil {
		c.end(Failed, "", AsError(again.err))
		return true
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
			return true
		}
	}
	if err := c.start(); err != nil {
		c.end(Failed, "", AsError(engineError(err)))
	}
	return true
}
