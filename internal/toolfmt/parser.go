package toolfmt

import "strings"

// Parser separates one turn's generated text. It is for one goroutine.
type Parser struct {
	f    *Format
	opt  Options
	buf  string // read but not yet decided
	kind Kind   // Text or Reasoning: what undecided text becomes when it is nothing else
	done bool
	ev   []Event
}

// NewParser returns a parser for one turn. Without tools only reasoning is separated.
func (f *Format) NewParser(tools []Tool, opt Options) *Parser {
	p := &Parser{f: f, opt: opt}
	if opt.InReasoning {
		p.kind = Reasoning
	}
	return p
}

// Feed takes the next piece of text, cut anywhere, and returns what is decided by it.
func (p *Parser) Feed(text string) []Event {
	p.buf += text
	p.step(false)
	return p.take()
}

// End tells that the text is over and returns the rest.
func (p *Parser) End() []Event {
	p.step(true)
	return p.take()
}

// Done tells that nothing more is wanted of the model: the one call that Options.SingleCall allows is
// complete. Text that is fed all the same comes out as text.
func (p *Parser) Done() bool { return p.done }

// InReasoning tells whether the next text would be reasoning.
func (p *Parser) InReasoning() bool { return p.kind == Reasoning }

// InCall tells whether the undecided text may be a call: penalties pause there.
func (p *Parser) InCall() bool { return false }

func (p *Parser) take() []Event {
	ev := p.ev
	p.ev = nil
	return ev
}

func (p *Parser) step(eof bool) {
	for p.kind == Reasoning && p.f.think.close != "" {
		i := strings.Index(p.buf, p.f.think.close)
		if i < 0 {
			break
		}
		p.emit(Reasoning, p.buf[:i])
		p.buf = p.buf[i+len(p.f.think.close):]
		p.kind = Text
	}
	p.emit(p.kind, p.buf)
	p.buf = ""
}

func (p *Parser) emit(k Kind, text string) {
	if text != "" {
		p.ev = append(p.ev, Event{Kind: k, Text: text})
	}
}
