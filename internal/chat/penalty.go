package chat

import (
	"github.com/baleenrun/baleen/internal/tokenizer"
	"github.com/baleenrun/baleen/internal/toolfmt"
)

// A watch reads an answer's tokens on the engine's goroutine, as they are drawn, and says where penalties pause: inside
// tool calls, which repeat names, keys and brackets that stand in the prompt and in other calls. The answer's own
// parser cannot say so: it reads behind the engine, sooner or later, and a draw must not depend on when.
type watch struct {
	s       *Stream
	parser  *toolfmt.Parser
	decoder *tokenizer.Decoder
}

// pauses returns the watch over what comes next, nil where no penalty is on or no call can be.
func (c *choice) pauses() func(last int32) bool {
	if c.parser == nil || len(c.s.prompt.tools) == 0 || !c.params.Penalizes() {
		return nil
	}
	w := &watch{c.s, c.s.newParser(), c.s.lease.Model.Tokenizer.NewDecoder(false)}
	w.parser.Feed(c.s.prompt.fed)
	if c.cut {
		for _, id := range c.out[:c.cutAt] {
			w.token(id)
		}
		w.parser.Feed(c.cutText)
	}
	return func(last int32) bool {
		if last >= 0 {
			w.token(last)
		}
		return w.parser.InCall()
	}
}

func (w *watch) token(id int32) {
	if w.s.lease.Model.Tokenizer.IsSpecial(id) && !w.s.prompt.promptFormat.visible[id] {
		return
	}
	if t := w.decoder.Next(id); t != "" {
		w.parser.Feed(t)
	}
}
