package anthropic

import (
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server"
)

type (
	startEvent struct {
		Type    string      `json:"type"`
		Message messageBody `json:"message"`
	}
	blockStart struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
		Block any    `json:"content_block"`
	}
	blockDelta struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
		Delta any    `json:"delta"`
	}
	blockStop struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
	}
	textPiece struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	thinkingPiece struct {
		Type     string `json:"type"`
		Thinking string `json:"thinking"`
	}
	signaturePiece struct {
		Type      string `json:"type"`
		Signature string `json:"signature"`
	}
	inputPiece struct {
		Type string `json:"type"`
		JSON string `json:"partial_json"`
	}
	endEvent struct {
		Type    string         `json:"type"`
		Delta   endDelta       `json:"delta"`
		Context *contextAnswer `json:"context_management,omitempty"`
		Usage   usageBody      `json:"usage"`
	}
	endDelta struct {
		StopReason string  `json:"stop_reason"`
		StopSeq    *string `json:"stop_sequence"`
	}
	plainEvent struct {
		Type string `json:"type"`
	}
)

// blocks writes the content of a stream: one block after the other, each opened, filled and closed.
type blocks struct {
	out  *server.Writer
	omit bool // reasoning is not shown

	open  chat.DeltaKind // of the block that is open: TextDelta, ReasoningDelta or CallStart
	isIn  bool           // one is
	index int            // of it, or of the next one
	// held is white space at the begin of a text: no block of text is opened for it alone.
	held      string
	reasoning strings.Builder
	err       error
}

func (b *blocks) send(name string, v any) {
	if b.err == nil {
		b.err = b.out.Event(name, v)
	}
}

func (b *blocks) begin(kind chat.DeltaKind, body any) {
	b.end()
	b.open, b.isIn = kind, true
	b.send("content_block_start", blockStart{"content_block_start", b.index, body})
}

func (b *blocks) delta(piece any) {
	b.send("content_block_delta", blockDelta{"content_block_delta", b.index, piece})
}

// end closes the open block.
func (b *blocks) end() {
	b.held = ""
	if !b.isIn {
		return
	}
	if b.open == chat.ReasoningDelta {
		signature := sign(b.reasoning.String())
		if b.omit {
			signature = seal(b.reasoning.String())
		}
		b.reasoning.Reset()
		b.delta(signaturePiece{"signature_delta", signature})
	}
	b.send("content_block_stop", blockStop{"content_block_stop", b.index})
	b.index++
	b.isIn = false
}

// add writes one delta.
func (b *blocks) add(d chat.Delta) {
	switch d.Kind {
	case chat.TextDelta:
		b.text(d.Text)
	case chat.ReasoningDelta:
		if d.Text == "" {
			return
		}
		if !b.isIn || b.open != chat.ReasoningDelta {
			b.begin(chat.ReasoningDelta, thinkingBody{Type: "thinking"})
		}
		b.reasoning.WriteString(d.Text)
		if !b.omit {
			b.delta(thinkingPiece{"thinking_delta", d.Text})
		}
	case chat.CallStart:
		b.begin(chat.CallStart, newToolUse(d.Call, "{}"))
	case chat.CallArgs:
		if d.Text != "" {
			b.delta(inputPiece{"input_json_delta", d.Text})
		}
	case chat.CallEnd:
		b.end()
	}
}

func (b *blocks) text(t string) {
	if t == "" {
		return
	}
	if !b.isIn || b.open != chat.TextDelta {
		b.held += t
		if strings.TrimSpace(b.held) == "" {
			return
		}
		t = b.held
		b.begin(chat.TextDelta, textBody{Type: "text"})
	}
	b.delta(textPiece{"text_delta", t})
}

// last closes what is open; white space is an answer where there is no other.
func (b *blocks) last() {
	if b.held != "" && !b.isIn && b.index == 0 {
		t := b.held
		b.begin(chat.TextDelta, textBody{Type: "text"})
		b.delta(textPiece{"text_delta", t})
	}
	b.end()
}

// events answers with a stream. Whatever happens, it ends in message_stop or in error, which a client that is gone does
// not see.
func (d *dialect) events(w http.ResponseWriter, r *http.Request, req *request) error {
	out := d.env.NewEvents(w)
	var begun atomic.Bool
	stopBeat := out.Beat(d.ping, func() error {
		if !begun.Load() { // the model is being loaded
			return out.Comment("working")
		}
		return out.Event("ping", plainEvent{"ping"})
	})
	beating := true
	quiet := func() {
		if beating {
			beating = false
			stopBeat()
		}
	}
	defer quiet()
	b := &blocks{out: out, omit: req.thinking.omit}
	a, err := d.start(r, req)
	if err != nil {
		quiet()
		e := chat.AsError(err)
		if !out.Withdraw() {
			b.send("error", errorOf(r, e))
		}
		return e
	}
	defer a.stream.Close()
	// RATIONALE: Why does message_start wait for the whole prompt?
	// message_start says what of the prompt came from the cache, which is known when all of the prompt is ready: it
	// waits for that. Until then comments keep the line alive.
	prompt := chat.Usage{Prompt: a.stream.PromptCount()}
	begin := func() {
		if begun.Load() {
			return
		}
		start := a.message()
		start.Usage = a.startUsage(prompt)
		b.send("message_start", startEvent{"message_start", start})
		b.send("ping", plainEvent{"ping"})
		begun.Store(true)
	}
	for b.err == nil {
		delta, ok := a.stream.Next()
		switch {
		case !ok:
			delta = chat.Delta{
				Kind: chat.Done,
				Err:  &chat.Error{Kind: chat.Internal, Msg: "the stream ended without its last piece"},
			}
			fallthrough
		case delta.Kind == chat.Done:
			quiet()
			if delta.Err != nil {
				if !out.Withdraw() {
					b.send("error", errorOf(r, delta.Err))
				}
				return delta.Err
			}
			begin()
			b.last()
			reason, sequence := a.stopReason(delta.Usage)
			b.send(
				"message_delta",
				endEvent{
					Type:    "message_delta",
					Delta:   endDelta{StopReason: reason, StopSeq: sequence},
					Context: a.edited,
					Usage:   a.usage(delta.Usage),
				},
			)
			b.send("message_stop", plainEvent{"message_stop"})
			return b.gone()
		case delta.Kind == chat.Finish:
			a.finish(delta)
		case delta.Kind == chat.PrefillDelta:
			prompt.Cached = delta.Prefill.Cached
			if b.err == nil && server.WantsProgress(r) {
				b.err = out.Prefill(server.ReportOf(delta))
			}
			if delta.Prefill.Ready == delta.Prefill.Total {
				begin()
			}
		default:
			begin()
			b.add(delta)
		}
	}
	return b.gone()
}

// gone is the error of a client that did not take its stream.
func (b *blocks) gone() error {
	if b.err == nil {
		return nil
	}
	return &chat.Error{Kind: chat.Cancelled, Err: b.err}
}
