package chat

import (
	"strconv"
	"strings"

	"github.com/baleenrun/baleen/internal/chattmpl"
)

// A grownPrompt renders only the messages behind an answer, for a prompt that goes on from the tokens that were drawn
// (Request.Known). Templates render whole conversations, and some write history in another way than it was generated:
// they drop reasoning, or order the members of arguments. So a short conversation is rendered instead, in which a mark
// stands in the place of the answer's end; what the template writes behind the mark and behind the rest of the answer,
// from the token that closes a turn on, is the same whatever stood before.
// RATIONALE: How does an agent's prompt only grow?
type grownPrompt struct{ mark string }

// begin returns the conversation to render.
func (g *grownPrompt) begin(r *Request) ([]Message, error) {
	if r.Known > len(r.Messages) || r.Messages[r.Known-1].Role != Assistant || len(r.Before) == 0 {
		return nil, Invalidf("known", "it counts messages up to an answer, which context ends with")
	}
	rest := r.Messages[r.Known:]
	for n := 0; ; n++ {
		if g.mark = "endofanswer" + strconv.Itoa(n); !mentions(rest, g.mark) {
			break
		}
	}
	last := r.Messages[r.Known-1]
	answer := Text(Assistant, g.mark)
	if n := len(last.Calls); n > 0 {
		answer.Parts = nil
		answer.Calls = append([]Call(nil), last.Calls...)
		answer.Calls[n-1].Arguments = `{"a":"` + g.mark + `"}`
	}
	return append([]Message{Text(User, "x"), answer}, rest...), nil
}

// mentions tells whether a text stands in messages.
func mentions(ms []Message, text string) bool {
	for _, m := range ms {
		for _, p := range m.Parts {
			if strings.Contains(p.Text, text) {
				return true
			}
		}
	}
	return false
}

// rest returns what stands behind the answer, from the token that closes it on.
func (g *grownPrompt) rest(m *Model, p *prompt, spans []chattmpl.Span) ([]chattmpl.Span, string, error) {
	var text strings.Builder
	for _, s := range spans {
		text.WriteString(s.Text)
	}
	behind := strings.LastIndex(text.String(), g.mark)
	if behind >= 0 {
		behind += len(g.mark)
		if i, ok := closing(spans, behind, g.closers(m, p)); ok {
			return cutSpans(spans, i), text.String()[i:], nil
		}
	}
	return nil, "", Unsupportedf("known", "%s closes its answers in a way that is not known", m.Info.Name)
}

// closers are the spellings of tokens that close an answer in a conversation.
func (g *grownPrompt) closers(m *Model, p *prompt) []string {
	var out []string
	for _, id := range p.promptFormat.stops {
		if t, ok := m.Tokenizer.Token(id); ok && t != "" {
			out = append(out, t)
		}
	}
	if p.promptFormat.format.Name() == "harmony" { // in history, final answers are closed as all messages are
		out = append(out, "<|end|>")
	}
	return out
}

// closing finds the first of some texts that a template wrote behind a place of a rendered conversation.
func closing(spans []chattmpl.Span, from int, texts []string) (at int, ok bool) {
	at = -1
	start := 0
	for _, s := range spans {
		end := start + len(s.Text)
		if end > from && !s.FromInput {
			skip := max(0, from-start)
			for _, t := range texts {
				if i := strings.Index(s.Text[skip:], t); i >= 0 && (at < 0 || start+skip+i < at) {
					at = start + skip + i
				}
			}
			if at >= 0 {
				return at, true
			}
		}
		start = end
	}
	return 0, false
}

// cutSpans leaves out what stands before a place.
func cutSpans(spans []chattmpl.Span, at int) []chattmpl.Span {
	for i, s := range spans {
		if at < len(s.Text) {
			out := append([]chattmpl.Span(nil), spans[i:]...)
			out[0].Text = s.Text[at:]
			return out
		}
		at -= len(s.Text)
	}
	return nil
}
