package chat

import (
	"bytes"
	"container/list"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"github.com/baleenrun/baleen/internal/grammar"
	"github.com/baleenrun/baleen/internal/grammar/schema"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/tokenizer"
)

// Kinds of formats.
const (
	JSONFormat    = "json"    // any JSON object
	SchemaFormat  = "schema"  // JSON that a JSON Schema allows
	RegexFormat   = "regex"   // a text that a regular expression matches as a whole
	GrammarFormat = "grammar" // a text that a grammar in llama.cpp's notation, GBNF, allows
	LarkFormat    = "lark"    // a text that a grammar in Lark's notation allows
	ChoiceFormat  = "choice"  // one of some texts
)

// grammars keeps compiled grammars by what they were compiled from. Compiling takes milliseconds, and the masks that
// were found in one are kept with it.
type grammars struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]*list.Element
	order list.List // of *knownGrammar, the one used last first
}

type knownGrammar struct {
	key [sha256.Size]byte
	g   *grammar.Grammar
}

// maxGrammars bounds what is kept: a hostile grammar with its masks can take some 100 MiB.
const maxGrammars = 16

// of returns the grammar of a format; nil where it asks for none.
func (c *grammars) of(f *Format) (*grammar.Grammar, error) {
	if f.Kind == "" {
		return nil, nil
	}
	g, err := c.get(f.key(), f.compile)
	if err != nil {
		return nil, f.refusal(err)
	}
	return g, nil
}

// get returns the grammar of a key, compiled where it is not there.
func (c *grammars) get(key [sha256.Size]byte, compile func() (*grammar.Grammar, error)) (*grammar.Grammar, error) {
	c.mu.Lock()
	if e, ok := c.known[key]; ok {
		c.order.MoveToFront(e)
		c.mu.Unlock()
		return e.Value.(*knownGrammar).g, nil
	}
	c.mu.Unlock()
	g, err := compile()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.known[key]; ok { // somebody else compiled it meanwhile
		return e.Value.(*knownGrammar).g, nil
	}
	if c.known == nil {
		c.known = map[[sha256.Size]byte]*list.Element{}
	}
	c.known[key] = c.order.PushFront(&knownGrammar{key, g})
	if c.order.Len() > maxGrammars {
		delete(c.known, c.order.Remove(c.order.Back()).(*knownGrammar).key)
	}
	return g, nil
}

func (f *Format) key() [sha256.Size]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%d\x00%s\x00%d", f.Kind, len(f.Schema), f.Schema, len(f.Text))
	h.Write([]byte(f.Text))
	for _, c := range f.Choices {
		fmt.Fprintf(h, "\x00%d\x00%s", len(c), c)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// Check returns the error with which a request for the format is refused whatever the model; nil where it can be
// enforced.
func (f *Format) Check() error {
	if f.Kind == "" {
		return nil
	}
	if _, err := f.compile(); err != nil {
		return f.refusal(err)
	}
	return nil
}

func (f *Format) compile() (*grammar.Grammar, error) {
	switch f.Kind {
	case JSONFormat:
		return grammar.JSON(false, grammar.Options{})
	case SchemaFormat:
		return grammar.JSONSchema(f.Schema, grammar.Options{})
	case RegexFormat:
		return grammar.Regex(f.Text, grammar.RE2)
	case GrammarFormat:
		return grammar.GBNF(f.Text)
	case LarkFormat:
		return grammar.Lark(f.Text)
	case ChoiceFormat:
		return grammar.Choices(f.Choices)
	}
	return nil, fmt.Errorf("there is no format %q", f.Kind)
}

// refusal words why a format cannot be held: a keyword that cannot be enforced is refused by its name and path.
func (f *Format) refusal(err error) error {
	var keyword *schema.Error
	if errors.As(err, &keyword) && !keyword.Invalid {
		return &Error{Kind: Unsupported, Field: f.Field, Msg: strings.TrimPrefix(err.Error(), "schema: "), Err: err}
	}
	return &Error{
		Kind:  Invalid,
		Field: f.Field,
		Msg:   strings.TrimPrefix(strings.TrimPrefix(err.Error(), "schema: "), "grammar: "),
		Err:   err,
	}
}

// hold has the answer to a prompt held to the request's format. Where a call is demanded, there is no answer beside it:
// see toolfmt.Options.CallsOnly.
func (s *Service) hold(r *Request, p *prompt, model string) error {
	g, err := s.grammars.of(&r.Format)
	if g == nil || err != nil || forces(r.Choice) && !p.raw {
		return err
	}
	if len(p.tools) > 0 && len(p.promptFormat.format.CallMarks()) == 0 {
		return Unsupportedf(
			r.Format.Field,
			"%s writes calls without a mark of their own, so that its answer cannot be held to a format while "+
				"tools are offered: leave one of them out, or set tool_choice to none",
			model,
		)
	}
	p.grammar, p.place = g, g.Matcher()
	if p.held != "" {
		next, ok, err := p.place.Accept([]byte(p.held))
		if err != nil || !ok {
			return Invalidf("messages", "the begin of the answer in the last message is not one that the format allows")
		}
		p.place = next
	}
	return nil
}

// constraints are a model's vocabulary as grammars read it, and the masks that were found in grammars.
type constraints struct {
	once  sync.Once
	vocab *grammar.Vocabulary
	free  []uint64 // all tokens but those that end a turn
	err   error

	mu      sync.Mutex
	maskers map[*grammar.Grammar]*grammar.Masker
	// acrossMark are the tokens that begin with the end of a mark and go on behind it.
	acrossMark map[string][]int32
}

// masker joins a grammar with the model's vocabulary.
func (m *Model) masker(g *grammar.Grammar) (*grammar.Masker, error) {
	c := &m.constraints
	c.once.Do(func() {
		// The marks of calls and reasoning are not for use inside of an answer, also where they are ordinary tokens.
		marks := func(id int32) bool { return m.own.visible[id] }
		c.vocab, c.err = model.Vocabulary(m.Tokenizer, m.Plan.Vocab, marks, m.own.stops)
		c.free = make([]uint64, (m.Plan.Vocab+63)/64)
		for id := range min(m.Plan.Vocab, m.Tokenizer.Size()) {
			c.free[id/64] |= 1 << (id % 64)
		}
	})
	if c.err != nil {
		return nil, c.err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.maskers[g]
	if !ok {
		if c.maskers == nil || len(c.maskers) >= maxGrammars {
			c.maskers = map[*grammar.Grammar]*grammar.Masker{}
		}
		k = grammar.NewMasker(g, c.vocab)
		c.maskers[g] = k
	}
	return k, nil
}

// A phase is where a constrained answer stands.
type phase uint8

const (
	beginning phase = iota // at the marks that may open it, or at the answer itself
	reasoning              // free until the mark that ends it
	answering              // held to the grammar
	free                   // in a call, which the format does not hold
)

// A constrained answer is the mask of one run of the engine: free while the model reasons, then held to a grammar. A
// token that ends the turn is allowed exactly where the text may end. It implements sample.Preparer and sample.Forcer.
type constrained struct {
	m     *Model
	k     *grammar.Masker
	stops []int32 // end the answer; some may be no end tokens of the vocabulary

	phase   phase
	marks   []mark  // that may stand at the beginning
	matched []int32 // of a mark
	shut    string  // ends reasoning
	tail    []byte  // the end of the reasoning's text
	gap     string  // what stands between reasoning and answer

	at    grammar.Matcher
	bits  []uint64
	made  bool
	force []int32 // to come before anything else
	err   error   // a limit of the grammar that was met
}

// A mark may open an answer; an empty one stands for the answer itself. It leads to a phase.
type mark struct {
	tokens []int32
	to     phase
}

// newConstrained returns the mask of an answer in which the tokens of out have been generated already.
func (s *Stream) newConstrained(out []int32) (*constrained, error) {
	m, p := s.lease.Model, s.prompt
	k, err := m.masker(p.grammar)
	if err != nil {
		return nil, err
	}
	c := &constrained{
		m: m, k: k, at: p.place, bits: make([]uint64, m.constraints.vocab.Words()),
		stops: slices.Concat(p.promptFormat.stops, p.extraStops, s.r.StopTokens), phase: answering,
	}
	if !p.raw && p.held == "" {
		if err := c.readReasoning(s); err != nil {
			return nil, err
		}
		if len(p.tools) > 0 {
			if err := c.readCalls(p); err != nil {
				return nil, err
			}
		}
	}
	for _, id := range out {
		if err := c.Accept(id); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// readReasoning prepares for what the model writes before its answer.
func (c *constrained) readReasoning(s *Stream) error {
	p := s.prompt
	open, shut := p.promptFormat.format.ThinkTags()
	if open == "" {
		return nil
	}
	c.shut, c.gap = shut, "\n\n"
	direct := ""
	if i := strings.LastIndex(shut, "<|channel|>"); i >= 0 { // the answer has a mark of its own
		c.gap, direct = "", shut[i:]
	}
	if p.inReasoning {
		c.phase = reasoning
		return nil
	}
	if s.r.Thinking == nil || *s.r.Thinking {
		if err := c.mark(strings.TrimRight(open, "\n"), reasoning); err != nil {
			return err
		}
	}
	return c.mark(direct, answering)
}

// readCalls lets a call stand in the answer's place.
func (c *constrained) readCalls(p *prompt) error {
	if c.phase == answering {
		if err := c.mark("", answering); err != nil {
			return err
		}
	}
	for _, text := range p.promptFormat.format.CallMarks() {
		if err := c.mark(text, free); err != nil {
			return err
		}
	}
	return nil
}

// mark lets the answer begin with a text.
func (c *constrained) mark(text string, to phase) error {
	ids, err := c.m.Tokenizer.EncodeParts(nil, []tokenizer.Part{{Text: text, Special: true}}, tokenizer.Options{})
	c.marks = append(c.marks, mark{ids, to})
	c.phase = beginning
	return err
}

// Prepare makes the mask of the next token.
func (c *constrained) Prepare() {
	if c.made {
		return
	}
	c.made = true
	if len(c.force) > 0 {
		clear(c.bits)
		c.set(c.force[0], true)
		return
	}
	switch c.phase {
	case free:
		copy(c.bits, c.m.constraints.free)
	case reasoning:
		copy(c.bits, c.m.constraints.free)
		for _, id := range c.stops {
			c.set(id, false)
		}
	case beginning:
		clear(c.bits)
		if len(c.matched) == 0 && c.direct() {
			c.answerMask()
		}
		for _, m := range c.marks {
			if len(m.tokens) > len(c.matched) && slices.Equal(m.tokens[:len(c.matched)], c.matched) {
				c.set(m.tokens[len(c.matched)], true)
			}
		}
	case answering:
		c.answerMask()
	}
}

// direct reports whether the answer may begin without a mark.
func (c *constrained) direct() bool {
	return slices.ContainsFunc(c.marks, func(m mark) bool { return len(m.tokens) == 0 })
}

// answerMask sets what the grammar allows; where it cannot be known, nothing.
func (c *constrained) answerMask() {
	if err := c.k.Mask(c.at, c.bits); err != nil {
		clear(c.bits)
		c.err = err
		return
	}
	end := c.at.Accepting()
	for _, id := range c.stops {
		c.set(id, end)
	}
}

func (c *constrained) set(id int32, on bool) { setBit(c.bits, id, on) }

// Allowed returns the mask of the next token.
func (c *constrained) Allowed() []uint64 {
	c.Prepare()
	return c.bits
}

// Accept takes the token that was drawn.
func (c *constrained) Accept(id int32) error {
	c.made = false
	if len(c.force) > 0 {
		if c.force[0] != id {
			return fmt.Errorf("chat: token %d does not stand between reasoning and answer", id)
		}
		c.force = c.force[1:]
		return nil
	}
	switch c.phase {
	case free:
		return nil
	case reasoning:
		return c.reason(id)
	case beginning:
		c.matched = append(c.matched, id)
		open := false
		for _, m := range c.marks {
			switch {
			case len(m.tokens) < len(c.matched) || !slices.Equal(m.tokens[:len(c.matched)], c.matched):
			case len(m.tokens) > len(c.matched):
				open = true
			default:
				c.phase = m.to
				return nil
			}
		}
		if open {
			return nil
		}
		if len(c.matched) > 1 || !c.direct() {
			return fmt.Errorf("chat: token %d is not allowed at the beginning of a constrained answer", id)
		}
		c.phase = answering
	}
	if slices.Contains(c.stops, id) {
		if !c.at.Accepting() {
			return fmt.Errorf("chat: token %d ends a constrained answer that is not complete", id)
		}
		return nil
	}
	next, ok, err := c.k.AcceptToken(c.at, id)
	switch {
	case err != nil:
		c.err = err
		return err
	case !ok:
		return fmt.Errorf("chat: token %d is not allowed in a constrained answer", id)
	}
	c.at = next
	return nil
}

// reason takes a token of the reasoning. Behind its end, blanks stand before the answer.
func (c *constrained) reason(id int32) error {
	c.tail = append(c.tail, c.m.tokenText(id)...)
	i := bytes.Index(c.tail, []byte(c.shut))
	if i < 0 {
		if n := len(c.tail) - len(c.shut); n > 0 {
			c.tail = append(c.tail[:0], c.tail[n:]...)
		}
		return nil
	}
	behind := c.tail[i+len(c.shut):]
	c.phase, c.tail = answering, nil
	rest := bytes.TrimLeft(behind, " \n")
	if len(rest) == 0 {
		if gap := strings.TrimPrefix(c.gap, string(behind)); gap != "" && len(behind) == 0 {
			c.force, _ = c.m.Tokenizer.Encode(nil, gap, tokenizer.Options{})
		}
		return nil
	}
	next, ok, err := c.at.Accept(rest)
	if err != nil || !ok {
		return fmt.Errorf(
			"chat: the answer begins with %q, which is not allowed: %w",
			rest,
			errors.Join(err, errNotAllowed),
		)
	}
	c.at = next
	return nil
}

var errNotAllowed = errors.New("the grammar does not allow it")

// Forced returns the tokens that must come next. The last token of a text that must come may be the begin of a longer
// one that the tokenizer would have chosen with what follows: then it is left to be drawn.
func (c *constrained) Forced() []int32 {
	if len(c.force) > 0 {
		return c.force
	}
	if c.phase != answering || c.err != nil {
		return nil
	}
	text := c.at.Forced()
	if len(text) == 0 {
		if c.at.Done() && len(c.stops) > 0 {
			return c.stops[:1]
		}
		return nil
	}
	return c.m.forcedTokens(c.k, c.at, text)
}

// forcedTokens are the tokens of a text that must come at a place, as the tokenizer has them.
func (m *Model) forcedTokens(k *grammar.Masker, at grammar.Matcher, text []byte) []int32 {
	ids, err := m.Tokenizer.Encode(nil, string(text), tokenizer.Options{})
	var whole []byte
	for _, id := range ids {
		whole = append(whole, m.Tokenizer.Bytes(id)...)
	}
	if err != nil || !bytes.Equal(whole, text) { // as where a vocabulary puts a blank before each text
		return nil
	}
	for _, id := range ids[:len(ids)-1] {
		next, ok, err := k.AcceptToken(at, id)
		if err != nil || !ok {
			return nil
		}
		at = next
	}
	if m.mayGoOn(k, at, ids[len(ids)-1]) {
		ids = ids[:len(ids)-1]
	}
	return ids
}

// mayGoOn reports whether a token that begins with the text of id and is longer is allowed at a place.
func (m *Model) mayGoOn(k *grammar.Masker, at grammar.Matcher, id int32) bool {
	may := make([]uint64, m.constraints.vocab.Words())
	if k.Mask(at, may) != nil {
		return true
	}
	text := m.Tokenizer.Bytes(id)
	for w, word := range may {
		for ; word != 0; word &= word - 1 {
			other := int32(w*64 + bits.TrailingZeros64(word))
			if other != id && bytes.HasPrefix(m.Tokenizer.Bytes(other), text) {
				return true
			}
		}
	}
	return false
}
