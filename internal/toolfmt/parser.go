package toolfmt

import "strings"

// Parser separates one turn's generated text. It is for one goroutine.
//
// Undecided text waits in buf. Where it may begin a call, a candidate reads it; a candidate ends accepted, and
// its text is the call's, or rejected, and its text comes out as it was.
type Parser struct {
	f      *Format
	opt    Options
	tools  *toolIndex // nil when none are offered
	forced *toolInfo
	prefix string  // what the output begins with: see Options.Prefixed
	blocks []block // whose opening marks are looked for
	closes []string
	first  [256]bool // bytes with which something may begin inside a line

	buf     string // read but not yet decided
	kind    Kind   // Text or Reasoning: what undecided text becomes when it is nothing else
	fresh   bool   // nothing but white space stands before: reasoning may open
	line    bool   // only white space stands before on the line
	last    byte   // of the text before
	code    bool   // inside a fence of code that is no JSON
	fence   bool   // inside any fence
	cand    *candidate
	tail    *block // behind a call: its marks may close or more calls follow
	fenced  bool   // the fence around them is still open
	braced  bool   // the call's JSON was opened by two braces: one more may close it
	trim    bool   // behind a mark of reasoning, whose white space is not text
	channel *channel

	calls int
	name  string          // of the call that is out
	args  strings.Builder // its arguments so far
	done  bool
	cut   bool // the text was cut off: see Cut
	ev    []Event
	trace func(what, raw string) // tests see where each byte went
}

// candidate is text that may be a call.
type candidate struct {
	lead string // white space and an opening fence before it
	s    string // its text so far: what grow holds
	grow strings.Builder
	blk  *block // nil for a call without marks
	fit  bool   // only its content tells
	bare bool   // a Python call without marks
	all  bool   // all of the fence must be calls
	body int    // where the body begins in s; -1 while unknown
	kind bodyKind
	js   streamed // reads the body as it comes; nil where it is read as a whole
	seen int      // length of s when it was last looked at
	read int      // and when it was last read as a whole
	py   brackets
}

// bareBlock is the context of calls without marks.
var bareBlock = block{}

// fenceBlock is the context of calls in a fence.
var fenceBlock = block{open: "", close: "```"}

// NewParser returns a parser for one turn. Without tools only reasoning is separated.
func (f *Format) NewParser(tools []Tool, opt Options) *Parser {
	p := &Parser{f: f, opt: opt, fresh: true, line: true}
	if opt.InReasoning {
		p.kind, p.trim = Reasoning, true
	}
	if f.spec.harmony {
		p.channel = &channel{content: opt.InReasoning}
	}
	if len(tools) > 0 {
		p.tools = indexTools(tools)
		p.forced = p.tools.exact[opt.Forced]
		if p.forced == nil && opt.Required && len(p.tools.list) == 1 {
			p.forced = p.tools.list[0]
		}
		if p.forced != nil && opt.Prefixed {
			p.prefix, _ = f.CallPrefix(p.forced.name)
		}
		p.blocks = append(append(p.blocks, f.blocks...), universal...)
		for _, b := range p.blocks {
			if b.close != "" {
				p.closes = append(p.closes, b.close)
			}
		}
		p.closes = append(p.closes, innerCloses...)
	}
	starts := append([]string{"{", "[", f.think.open, f.think.close}, p.closes...)
	for _, b := range p.blocks {
		starts = append(starts, b.open)
	}
	for _, s := range starts {
		if s != "" {
			p.first[s[0]] = true
		}
	}
	return p
}

// innerCloses end single calls within a section.
var innerCloses = []string{
	"<｜tool▁call▁end｜>",
	"<｜tool▁calls▁end｜>",
	"<|tool_call_end|>",
	"<|tool_calls_section_end|>",
	"</function>",
	"<|call|>",
}

// Feed takes the next piece of text, cut anywhere, and returns what is decided by it.
func (p *Parser) Feed(text string) []Event {
	p.buf += text
	p.run(false)
	return p.take()
}

// End tells that the model ended the text and returns the rest. Brackets that it forgot are closed.
func (p *Parser) End() []Event {
	p.run(true)
	return p.take()
}

// Cut tells that the text was cut off, as at a bound of tokens, and returns the rest. The model would have gone on:
// a call that is not whole has Event.Cut, and nothing is closed in its name.
// RATIONALE: Why is a tool call that was cut not repaired?
func (p *Parser) Cut() []Event {
	p.cut = true
	return p.End()
}

// Done tells that nothing more is wanted of the model: the one call that Options.SingleCall allows is
// complete, or text came behind a call where Options.CallsOnly wants none. Text that is fed all the same comes out as
// text, but where none is wanted.
func (p *Parser) Done() bool { return p.done }

// InReasoning tells whether the next text would be reasoning.
func (p *Parser) InReasoning() bool { return p.kind == Reasoning }

// InCall tells whether the text so far ends in what may be a call, or directly behind one, where its marks close or
// the next begins: penalties pause there, since calls repeat names and brackets that stand elsewhere.
func (p *Parser) InCall() bool { return p.cand != nil || p.tail != nil }

// Calls returns how many calls have begun.
func (p *Parser) Calls() int { return p.calls }

func (p *Parser) take() []Event {
	ev := p.ev
	p.ev = nil
	return ev
}

func (p *Parser) run(eof bool) {
	for p.step(eof) {
	}
}

// step decides one thing. It returns false when more text is needed.
func (p *Parser) step(eof bool) bool {
	switch {
	case p.cand != nil:
		return p.stepCandidate(eof)
	case p.buf == "":
		return false
	case p.channel != nil && p.channel.active(p):
		return p.stepChannel(eof)
	case p.tail != nil:
		return p.stepTail(eof)
	case p.trim:
		i := skipSpace(p.buf, 0)
		p.span("mark", i)
		p.trim = p.buf == "" && !eof
		return p.buf != ""
	}
	return p.scan(eof)
}

// span takes n bytes off the undecided text as belonging to a call or mark.
func (p *Parser) span(what string, n int) {
	if n > 0 && p.trace != nil {
		p.trace(what, p.buf[:n])
	}
	p.buf = p.buf[n:]
}

// text takes n bytes off the undecided text as text or reasoning.
func (p *Parser) text(n int) {
	if n == 0 {
		return
	}
	p.write(p.buf[:n])
	p.buf = p.buf[n:]
}

// write sends text out and remembers where on a line it ends.
func (p *Parser) write(s string) {
	if s == "" {
		return
	}
	if p.opt.CallsOnly && p.calls > 0 && p.kind == Text {
		if p.trace != nil {
			p.trace("beyond", s)
		}
		p.done = p.done || strings.TrimSpace(s) != ""
		return
	}
	if p.trace != nil {
		p.trace("text", s)
	}
	if n := len(p.ev); n > 0 && p.ev[n-1].Kind == p.kind {
		p.ev[n-1].Text += s
	} else {
		p.ev = append(p.ev, Event{Kind: p.kind, Text: s})
	}
	p.last = s[len(s)-1]
	if i := strings.LastIndexByte(s, '\n'); i >= 0 {
		p.line = true
		s = s[i+1:]
	}
	if strings.Trim(s, " \t\r") != "" {
		p.line, p.fresh = false, false
	} else if strings.TrimSpace(s) != "" {
		p.fresh = false
	}
}

func (p *Parser) startCall(name string) {
	p.ev = append(p.ev, Event{Kind: CallStart, Call: &Call{Name: name}, Index: p.calls, Plain: p.plainCall()})
	p.args.Reset()
	p.calls++
	p.name = name
}

// plainCall tells whether the call being read has no marks around it, in a format that wants some.
func (p *Parser) plainCall() bool {
	return p.cand != nil && (p.cand.fit || p.cand.bare) && !p.f.spec.bare
}

func (p *Parser) callArgs(s string) {
	if s == "" {
		return
	}
	p.args.WriteString(s)
	if n := len(p.ev); n > 0 && p.ev[n-1].Kind == CallArgs {
		p.ev[n-1].Text += s
		return
	}
	p.ev = append(p.ev, Event{Kind: CallArgs, Text: s, Index: p.calls - 1})
}

func (p *Parser) endCall(cut bool) {
	p.ev = append(
		p.ev,
		Event{
			Kind:  CallEnd,
			Call:  &Call{Name: p.name, Arguments: p.args.String()},
			Index: p.calls - 1,
			Cut:   cut,
			Plain: p.plainCall(),
		},
	)
	p.done = p.done || p.opt.SingleCall
}

// call sends a whole call out.
func (p *Parser) call(c found) {
	p.startCall(c.tool.name)
	p.callArgs(object(c.args))
	p.endCall(false)
}

// ---- candidates

func (p *Parser) stepCandidate(eof bool) bool {
	c := p.cand
	c.grow.WriteString(p.buf)
	c.s, p.buf = c.grow.String(), ""
	n, st := p.advance(c, eof)
	switch st {
	case more:
		if c.js != nil {
			p.settle(c, c.js.settle())
		}
		return false
	case accepted:
		p.cand = nil
		p.fenced = p.fenced || strings.Contains(c.lead+c.s[:max(c.body, 0)], "```")
		p.buf = c.lead + c.s
		p.span("call", len(c.lead)+n)
		p.kind, p.fresh, p.line, p.last = Text, true, true, 0
		j, isJSON := c.js.(*jsonCall)
		p.braced = isJSON && j.r.brace
		p.tail = c.blk
		if p.tail == nil {
			p.tail = &bareBlock
		}
		return true
	}
	p.cand = nil
	if p.owed() {
		return p.callAnyway(c, eof)
	}
	n = min(max(1, n), len(c.s))
	raw := c.lead + c.s[:n]
	p.buf = c.s[n:]
	p.openFence(c.lead)
	p.write(raw)
	return true
}

// streamed reads a call's body in steps. s begins where the body does, less what settle has let go of.
type streamed interface {
	advance(s string, eof bool) (n int, st status)
	settle() int // how much of s a call that is already out needs no more; it is gone at the next advance
}

// settle lets go of what a call that is already out has read: no need to keep it.
func (p *Parser) settle(c *candidate, n int) {
	if n == 0 {
		return
	}
	p.fenced = p.fenced || strings.Contains(c.lead+c.s[:c.body], "```")
	rest := c.s[c.body+n:]
	p.buf = c.lead + c.s
	p.span("call", len(p.buf)-len(rest))
	p.buf, c.lead, c.s, c.body = "", "", rest, 0
	c.grow.Reset()
	c.grow.WriteString(rest)
}

// openFence notes that a fence in the lead was text after all.
func (p *Parser) openFence(lead string) {
	if i := strings.Index(lead, "```"); i >= 0 && p.kind == Text {
		p.fence, p.code = true, false
	}
}

// mayEnd tells whether the body may be complete after new text: without that there is no need to read it all
// again.
func (c *candidate) mayEnd(text string) bool {
	switch c.kind {
	case bodyPython:
		return c.py.closed(text)
	case bodyGemma:
		return strings.IndexByte(text, '}') >= 0
	}
	return strings.IndexByte(text, '>') >= 0
}

// advance reads a candidate on. n counts bytes of c.s.
func (p *Parser) advance(c *candidate, eof bool) (n int, st status) {
	if c.body < 0 {
		skip := 0
		if c.blk != nil && c.blk.open != functionTag.open && c.blk.open != "<function name=" {
			skip = len(c.blk.open)
		}
		h, st := p.classify(c.s[skip:], eof)
		if st != accepted {
			return max(skip, 1), st
		}
		if c.fit && h.kind != bodyJSON && h.kind != bodyPython {
			return 1, rejected
		}
		c.body, c.kind = skip+h.at, h.kind
		switch h.kind {
		case bodyJSON, bodyNamed:
			c.js = newJSONCall(p, c.fit && !p.owed(), h.tool)
		case bodyXML:
			c.js = &xmlCall{p: p, tags: functionTags}
		case bodyInvoke:
			c.js = &xmlCall{p: p, tags: invokeTags}
			if strings.HasPrefix(c.s[c.body:], dsmlTags.call) {
				c.js = &xmlCall{p: p, tags: dsmlTags}
			}
		}
	}
	if c.js != nil {
		n, st = c.js.advance(c.s[c.body:], eof)
		return c.body + n, st
	}
	if c.kind == bodyPython && c.seen == 0 {
		c.seen = c.body
	}
	ends := c.mayEnd(c.s[c.seen:])
	c.seen = len(c.s)
	if !eof && !ends && len(c.s) > 512 && len(c.s) < 2*c.read {
		return 0, more
	}
	c.read = len(c.s)
	var calls []found
	if c.kind == bodyPython && (c.bare || c.fit) {
		calls, n, st = p.readPythonLines(c.s[c.body:], eof, c.all)
	} else {
		calls, n, st = p.read(c.kind, c.s[c.body:], eof)
	}
	if st == rejected && c.fit {
		return 1, st
	}
	if st == accepted {
		for _, f := range calls {
			p.call(f)
		}
	}
	return c.body + n, st
}

// ---- behind a call

// stepTail takes the marks that close a call and finds the calls that follow it directly. White space before
// any of these is not text.
func (p *Parser) stepTail(eof bool) bool {
	i := skipSpace(p.buf, 0)
	rest := p.buf[i:]
	if rest == "" {
		if !eof {
			return false
		}
		p.span("call", i)
		return false
	}
	if strings.IndexByte("}])", rest[0]) >= 0 && i == 0 || p.braced && rest[0] == '}' { // one bracket too many
		p.span("call", i+1)
		p.braced = false
		return true
	}
	p.braced = false
	closes := p.closes
	if p.fenced {
		closes = append([]string{"```"}, closes...)
	}
	for _, m := range closes {
		if strings.HasPrefix(rest, m) {
			p.span("call", i+len(m))
			if m == "```" {
				p.fenced, p.tail = false, &bareBlock
			}
			return true
		}
	}
	for _, m := range closes {
		if partial(rest, m) {
			if eof { // cut inside the mark
				p.span("call", len(p.buf))
			}
			return false
		}
	}
	if !p.done && p.follow(i, eof) {
		return p.cand != nil
	}
	p.tail, p.fenced = nil, false
	return true
}

// follow looks for a further call in the same marks, behind a comma or semicolon too. It returns true where it
// began one or has to wait.
func (p *Parser) follow(i int, eof bool) bool {
	at := i
	if c := p.buf[at]; c == ',' || c == ';' {
		at = skipSpace(p.buf, at+1)
		if at == len(p.buf) {
			return !eof
		}
	}
	if b, wait := p.opener(p.buf[at:], eof); b != nil || wait {
		if b != nil {
			p.begin(at, &candidate{blk: b, body: -1})
		}
		return true
	}
	fit := p.tail == &bareBlock || p.tail == &fenceBlock
	c := p.buf[at]
	if fit && c != '{' && c != '[' && !(p.tail == &fenceBlock && isNameByte(c)) {
		return false
	}
	switch _, st := p.classify(p.buf[at:], eof); {
	case st == more:
		return true
	case st == rejected:
		return false
	}
	blk := *p.tail
	blk.open = ""
	next := &candidate{blk: &blk, body: -1, fit: fit}
	if fit {
		next.blk = p.tail
	}
	p.begin(at, next)
	return true
}

// begin starts a candidate at buf[at]; what stands before is its lead.
func (p *Parser) begin(at int, c *candidate) {
	c.lead = p.buf[:at]
	p.buf = p.buf[at:]
	p.cand = c
}

// opener returns the block whose mark s begins with, or tells to wait for more of a mark.
func (p *Parser) opener(s string, eof bool) (b *block, wait bool) {
	for i := range p.blocks {
		if strings.HasPrefix(s, p.blocks[i].open) {
			return &p.blocks[i], false
		}
	}
	if eof {
		return nil, false
	}
	for i := range p.blocks {
		if partial(s, p.blocks[i].open) {
			return nil, true
		}
	}
	return nil, false
}
