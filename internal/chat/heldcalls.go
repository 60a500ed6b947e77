package chat

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/baleenrun/baleen/internal/grammar"
	"github.com/baleenrun/baleen/internal/tokenizer"
	"github.com/baleenrun/baleen/internal/toolfmt"
)

// callRules are what the calls of a request are held to.
type callRules struct {
	form    toolfmt.Calls
	grammar *grammar.Grammar // from behind form.Open to its end, form.Close included where it is no token of its own
	place   grammar.Matcher  // with forced: where the answer begins in it
	forced  bool             // the prompt's end began a call
	shut    int32            // the token that is form.Close; -1: it is none
}

// anyArguments is what arguments of tools that are not strict are held to.
const anyArguments = `{"type":"object"}`

// schema is what a strict tool's arguments must be: an object, also where its schema does not say so.
func (t *Tool) schema() json.RawMessage {
	var keys map[string]json.RawMessage
	switch err := json.Unmarshal(t.Parameters, &keys); {
	case len(t.Parameters) == 0 || err == nil && len(keys) == 0:
		return json.RawMessage(`{"type":"object","additionalProperties":false}`)
	case err != nil || keys["type"] != nil:
		return t.Parameters
	}
	_, rest, _ := bytes.Cut(t.Parameters, []byte("{"))
	return append([]byte(`{"type":"object",`), rest...)
}

// holdCalls prepares for calls that cannot be malformed, where a tool is strict: its schema must be enforceable, and
// where the family's calls have a grammar, all calls of the answer are held to it. Elsewhere arguments are looked at
// when they are complete.
// RATIONALE: Why are only the calls of strict tools held to a grammar?
func (s *Service) holdCalls(r *Request, p *prompt, m *Model) error {
	if p.raw || len(p.tools) == 0 {
		return nil
	}
	strict := map[string]*Tool{}
	for i := range r.Tools {
		if t := &r.Tools[i]; t.Strict {
			f := Format{Kind: SchemaFormat, Schema: t.schema(), Field: t.StrictField}
			key := sha256.Sum256(append([]byte("arguments\x00"), f.Schema...))
			g, err := s.grammars.get(key, func() (*grammar.Grammar, error) {
				return grammar.JSONSchema(f.Schema, grammar.Options{AnyOrder: true, Whitespace: grammar.Compact})
			})
			if err != nil {
				return f.refusal(err)
			}
			if strict[t.Name] = t; p.strict == nil {
				p.strict = map[string]*grammar.Grammar{}
			}
			p.strict[t.Name] = g
		}
	}
	if len(strict) == 0 {
		return nil
	}
	key := sha256.New()
	args := func(i int) json.RawMessage {
		if t := strict[p.tools[i].Name]; t != nil {
			return t.schema()
		}
		return json.RawMessage(anyArguments)
	}
	form, ok := p.promptFormat.format.Calls(p.tools, args)
	if !ok {
		return nil
	}
	c := &callRules{form: form, shut: -1}
	ids, err := m.Tokenizer.EncodeParts(nil, []tokenizer.Part{{Text: form.Close, Special: true}}, tokenizer.Options{})
	body := form.Body
	if err == nil && len(ids) == 1 {
		c.shut = ids[0]
	} else {
		body = grammar.InOrder(body, grammar.Literal(form.Close))
	}
	fmt.Fprintf(key, "calls\x00%s\x00%s\x00%d", form.Open, form.Close, c.shut)
	for i, t := range p.tools {
		fmt.Fprintf(key, "\x00%d\x00%s%d\x00%s", len(t.Name), t.Name, len(args(i)), args(i))
	}
	c.grammar, err = s.grammars.get([sha256.Size]byte(key.Sum(nil)), func() (*grammar.Grammar, error) {
		return grammar.Compose(body, grammar.Options{})
	})
	if err != nil {
		return (&Format{Field: "tools"}).refusal(err)
	}
	c.place = c.grammar.Matcher()
	if begun, ok := strings.CutPrefix(p.fed, form.Open); ok && p.fed != "" {
		next, ok, err := c.place.Accept([]byte(begun))
		if err != nil || !ok {
			return nil // the name needs escapes, which the prefix does not have: left to the parser
		}
		c.place, c.forced = next, true
	}
	p.calls = c
	return nil
}

// heldCalls is the mask of one run of the engine whose calls are held to a grammar: everything is free up to the mark
// that opens a call, and again behind the one that closes it. It implements sample.Preparer and
// sample.Forcer.
type heldCalls struct {
	m     *Model
	rules *callRules
	k     *grammar.Masker
	stops []int32

	holds bool
	at    grammar.Matcher
	tail  []byte // the end of the free text
	bits  []uint64
	made  bool
	err   error // a limit of the grammar that was met
}

// newHeldCalls returns the mask of an answer in which the tokens of out have been generated already.
func (s *Stream) newHeldCalls(out, stops []int32) (*heldCalls, error) {
	m, rules := s.lease.Model, s.prompt.calls
	k, err := m.masker(rules.grammar)
	if err != nil {
		return nil, err
	}
	h := &heldCalls{
		m: m, rules: rules, k: k, stops: stops, holds: rules.forced, at: rules.place,
		bits: make([]uint64, m.constraints.vocab.Words()),
	}
	for _, id := range out {
		if err := h.Accept(id); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// Prepare makes the mask of the next token.
func (h *heldCalls) Prepare() {
	if h.made {
		return
	}
	h.made = true
	if !h.holds {
		copy(h.bits, h.m.constraints.free)
		for _, id := range h.m.across(h.rules.form.Open, h.tail) {
			if _, ok := h.open(append(bytes.Clone(h.tail), h.m.tokenText(id)...)); !ok {
				setBit(h.bits, id, false)
			}
		}
		return
	}
	if h.err = h.k.Mask(h.at, h.bits); h.err != nil {
		clear(h.bits)
		return
	}
	end := h.at.Accepting()
	if h.rules.shut >= 0 {
		setBit(h.bits, h.rules.shut, end)
	}
	for _, id := range h.stops {
		setBit(h.bits, id, end && h.rules.form.Close == "")
	}
}

// open reads text that has the opening mark; what stands behind it must begin a call.
func (h *heldCalls) open(text []byte) (grammar.Matcher, bool) {
	_, behind, _ := bytes.Cut(text, []byte(h.rules.form.Open))
	at, ok, err := h.rules.grammar.Matcher().Accept(behind)
	return at, ok && err == nil
}

// Allowed returns the mask of the next token.
func (h *heldCalls) Allowed() []uint64 {
	h.Prepare()
	return h.bits
}

// Accept takes the token that was drawn.
func (h *heldCalls) Accept(id int32) error {
	h.made = false
	if !h.holds {
		h.tail = append(h.tail, h.m.tokenText(id)...)
		if bytes.Contains(h.tail, []byte(h.rules.form.Open)) {
			at, ok := h.open(h.tail)
			if !ok {
				return fmt.Errorf("chat: token %d begins a call that is not allowed", id)
			}
			h.holds, h.at, h.tail = true, at, nil
		} else if n := len(h.tail) - len(h.rules.form.Open); n > 0 {
			h.tail = append(h.tail[:0], h.tail[n:]...)
		}
		return nil
	}
	switch {
	case id == h.rules.shut && h.at.Accepting():
		h.holds = false
		return nil
	case h.at.Accepting() && h.rules.form.Close == "" && slices.Contains(h.stops, id):
		return nil
	}
	next, ok, err := h.k.AcceptToken(h.at, id)
	switch {
	case err != nil:
		h.err = err
		return err
	case !ok:
		return fmt.Errorf("chat: token %d is not allowed in a call", id)
	}
	if h.at = next; h.rules.shut < 0 && h.rules.form.Close != "" && next.Done() {
		h.holds = false
	}
	return nil
}

// Forced returns the tokens that must come next in a call: its first texts, the last brackets and the closing mark.
func (h *heldCalls) Forced() []int32 {
	if !h.holds || h.err != nil {
		return nil
	}
	if text := h.at.Forced(); len(text) > 0 {
		return h.m.forcedTokens(h.k, h.at, text)
	}
	if h.at.Done() && h.rules.shut >= 0 {
		return []int32{h.rules.shut}
	}
	return nil
}

func setBit(bits []uint64, id int32, on bool) {
	switch {
	case int(id)/64 >= len(bits):
	case on:
		bits[id/64] |= 1 << (id % 64)
	default:
		bits[id/64] &^= 1 << (id % 64)
	}
}

// across returns the tokens that complete a mark whose begin stands at the end of tail and go on behind it.
func (m *Model) across(mark string, tail []byte) []int32 {
	var out []int32
	for k := range len(mark) {
		if !bytes.HasSuffix(tail, []byte(mark[:k])) {
			continue
		}
		c := &m.constraints
		c.mu.Lock()
		ids, ok := c.acrossMark[mark[k:]]
		if !ok {
			if c.acrossMark == nil {
				c.acrossMark = map[string][]int32{}
			}
			for id := range int32(min(m.Plan.Vocab, m.Tokenizer.Size())) {
				text := m.tokenText(id)
				i := strings.Index(text, mark[k:])
				if i == 0 && len(text) > len(mark[k:]) || i > 0 && k == 0 && i+len(mark) < len(text) {
					ids = append(ids, id)
				}
			}
			c.acrossMark[mark[k:]] = ids
		}
		c.mu.Unlock()
		out = append(out, ids...)
	}
	return out
}

// strictly takes a piece of a call to a strict tool: it is handed out when it is complete and its arguments are what
// the tool's schema allows. What does not fit is text, never a call.
func (c *choice) strictly(ev toolfmt.Event) (pieces []toolfmt.Event, text string) {
	switch {
	case ev.Kind == toolfmt.CallStart && c.s.prompt.strict[ev.Call.Name] != nil, len(c.withheld) > 0:
		c.withheld = append(c.withheld, ev)
	default:
		return []toolfmt.Event{ev}, ""
	}
	if ev.Kind != toolfmt.CallEnd {
		return nil, ""
	}
	pieces, c.withheld = c.withheld, nil
	if ev.Cut || fitsArguments(c.s.prompt.strict[ev.Call.Name], ev.Call.Arguments) {
		return pieces, "" // one that was cut ends the answer as cut
	}
	c.s.trace.Notice("a call of " + ev.Call.Name + " does not fit its strict schema and is handed out as text")
	return nil, (&Call{Name: ev.Call.Name, Arguments: ev.Call.Arguments}).Written()
}

func fitsArguments(g *grammar.Grammar, arguments string) bool {
	var b bytes.Buffer
	if json.Compact(&b, []byte(arguments)) != nil {
		return false
	}
	m, ok, err := g.Matcher().Accept(b.Bytes())
	return err == nil && ok && m.Accepting()
}
