package toolfmt

import "strings"

// channel reads harmony: a sequence of messages <|start|>ROLE to=RECIPIENT<|channel|>NAME<|message|>TEXT<|end|>,
// of which the prompt wrote the first <|start|>assistant.
type channel struct {
	content bool // inside a message's text
	started bool // a header was seen
}

var harmonyEnds = []string{"<|end|>", "<|call|>", "<|return|>", "<|start|>", "<|channel|>"}

// maxHeader bounds a header: longer text is none.
const maxHeader = 400

// active tells whether the next text is the channel's to read.
func (c *channel) active(*Parser) bool { return true }

func (p *Parser) stepChannel(eof bool) bool {
	if p.tail != nil { // behind a call: the mark that ends its message
		return p.endChannelCall(eof)
	}
	if p.channel.content {
		return p.channelText(eof)
	}
	return p.channelHeader(eof)
}

func (p *Parser) endChannelCall(eof bool) bool {
	i := skipSpace(p.buf, 0)
	rest := p.buf[i:]
	for _, m := range []string{"<|call|>", "<|end|>", "<|return|>"} {
		if strings.HasPrefix(rest, m) {
			p.span("call", i+len(m))
			p.tail, p.channel.content, p.kind = nil, false, Text
			return p.buf != ""
		}
		if partial(rest, m) && !eof {
			return false
		}
	}
	if rest == "" || strings.HasPrefix(rest, "<|start|>") || strings.HasPrefix(rest, "<|channel|>") {
		if rest == "" && !eof {
			return false
		}
		p.span("call", i)
		p.channel.content = false
	}
	p.tail, p.kind = nil, Text
	return p.buf != ""
}

// channelText sends out a message's text up to the mark that ends it.
func (p *Parser) channelText(eof bool) bool {
	end, mark := markIn(p.buf, harmonyEnds)
	if end >= 0 {
		p.text(end)
		if mark != "<|start|>" && mark != "<|channel|>" {
			p.span("mark", len(mark))
		}
		p.channel.content, p.kind = false, Text
		return p.buf != ""
	}
	held := heldBack(p.buf, harmonyEnds)
	if eof && held < halfMark {
		held = 0
	}
	p.text(len(p.buf) - held)
	if eof {
		p.span("mark", held)
	}
	return false
}

// markIn finds the first of the marks in s.
func markIn(s string, marks []string) (at int, mark string) {
	at = -1
	for _, m := range marks {
		if i := strings.Index(s, m); i >= 0 && (at < 0 || i < at) {
			at, mark = i, m
		}
	}
	return at, mark
}

// heldBack returns how many last bytes of s may begin a mark.
func heldBack(s string, marks []string) int {
	most := 0
	for _, m := range marks {
		for n := min(len(m)-1, len(s)); n > most; n-- {
			if strings.HasSuffix(s, m[:n]) {
				most = n
				break
			}
		}
	}
	return most
}

// channelHeader reads a header. Text where a header should stand comes out as text.
func (p *Parser) channelHeader(eof bool) bool {
	i := skipSpace(p.buf, 0)
	rest := p.buf[i:]
	if rest == "" && eof && p.channel.started {
		p.span("mark", i)
		return false
	}
	starts := []string{
		"<|start|>",
		"<|channel|>",
		"<|message|>",
		"to=functions.",
		"assistant<|channel|>",
		"assistant to=",
		"commentary to=",
		"<|constrain|>",
	}
	head, may := false, rest == ""
	for _, m := range starts {
		head = head || strings.HasPrefix(rest, m)
		may = may || partial(rest, m)
	}
	if !head {
		if may && !eof {
			return false
		}
		p.channel.content, p.kind = true, Text
		return p.buf != ""
	}
	end := strings.Index(rest, "<|message|>")
	if end < 0 || end > maxHeader {
		if end < 0 && len(rest) <= maxHeader && !eof {
			return false
		}
		p.channel.content, p.kind = true, Text // no header
		p.text(i + len(firstOf(rest, starts)))
		return p.buf != ""
	}
	return p.openMessage(i+end+len("<|message|>"), rest[:end])
}

func firstOf(s string, marks []string) string {
	for _, m := range marks {
		if strings.HasPrefix(s, m) {
			return m
		}
	}
	return ""
}

// openMessage goes on behind a header of n bytes.
func (p *Parser) openMessage(n int, header string) bool {
	name := ""
	if _, after, ok := strings.Cut(header, "to="); ok {
		if k := strings.IndexAny(after, " <\n"); k >= 0 {
			after = after[:k]
		}
		name = strings.TrimPrefix(after, "functions.")
	}
	p.channel.content, p.channel.started = true, true
	if p.tools != nil && name != "" && !p.done {
		if t := p.tools.resolve(name); t != nil {
			c := &candidate{blk: &bareBlock, body: 0, kind: bodyNamed}
			p.begin(n, c)
			c.js = newJSONCall(p, false, t)
			return true
		}
	}
	p.kind = Text
	switch {
	case strings.Contains(header, "<|channel|>analysis"):
		p.kind = Reasoning
	case name != "" && strings.Contains(header, "functions."): // a call of a tool that is not offered
		p.text(n)
		return p.buf != ""
	}
	p.span("mark", n)
	return p.buf != ""
}
