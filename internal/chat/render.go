package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/baleenrun/baleen/internal/chattmpl"
	"github.com/baleenrun/baleen/internal/grammar"
	"github.com/baleenrun/baleen/internal/tokenizer"
	"github.com/baleenrun/baleen/internal/toolfmt"
)

// A prompt is a request as the model sees it.
type prompt struct {
	tokens       []int32
	text         string
	promptFormat promptFormat
	tools        []toolfmt.Tool // nil: the answer's calls are not looked for
	inReasoning  bool
	fed          string  // text that stands at the prompt's end and belongs to the answer, for the parser
	forced       string  // the tool that must be called: the one that is named, or the only one
	extraStops   []int32 // beside the promptFormat's
	raw          bool
	time         time.Time // that the template printed; zero: none
	open         []byte    // bytes taken off the prompt's end, which the answer must spell out: see heal
	openTokens   int       // as many tokens

	grammar *grammar.Grammar            // what the answer is held to; nil: nothing
	place   grammar.Matcher             // where in it the answer begins
	held    string                      // the begin of the answer that the prompt has already
	calls   *callRules                  // what calls are held to; nil: nothing
	strict  map[string]*grammar.Grammar // of the arguments of strict tools, compact and in any order

	answered *toolfmt.Answered // where the conversation ends with results
	again    func() askedAgain // the prompt that asks to conclude; nil: none
}

// askedAgain is a prompt that asks to conclude.
type askedAgain struct {
	tokens []int32
	text   string
	err    error
}

// render turns a request into tokens.
func (m *Model) render(ctx context.Context, r *Request, spec *Spec) (*prompt, error) {
	if err := m.CheckIDs("stop_tokens", r.StopTokens); err != nil {
		return nil, err
	}
	if r.Raw {
		return m.renderRaw(r)
	}
	p := &prompt{promptFormat: m.promptFormatFor(spec.Template)}
	if err := p.promptFormat.usable(spec.Name); err != nil {
		return nil, err
	}
	f := p.promptFormat.format
	opt, err := m.thinking(r, f)
	if err != nil {
		return nil, err
	}
	now := time.Now() // once: a template may print it in parts
	opt.Now = func() time.Time {
		if p.time = r.Now; p.time.IsZero() {
			p.time = now
		}
		return p.time
	}
	defaults := *spec
	if len(r.Before) > 0 {
		defaults.Messages = nil // they stand in what came before
	}
	grown := grownPrompt{}
	messages := r.Messages
	if r.Known > 0 {
		if messages, err = grown.begin(r); err != nil {
			return nil, err
		}
	} else {
		messages = withDefaults(messages, &defaults)
	}
	if err := m.mayFit(r, messages); err != nil {
		return nil, err
	}
	prefill := ""
	if n := len(messages); r.Continue && n > 0 && messages[n-1].Role == Assistant && len(messages[n-1].Calls) == 0 {
		if prefill, err = textOf(messages[n-1]); err != nil {
			return nil, err
		}
		messages = messages[:n-1]
	}
	ms, err := convert(messages)
	if err != nil {
		return nil, err
	}
	var shown []toolfmt.Tool
	if r.Choice.Mode != ToolsNone {
		for _, t := range r.Tools {
			p.tools = append(p.tools, toolfmt.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
			if !t.Told && r.Known == 0 {
				shown = append(shown, p.tools[len(p.tools)-1])
			}
		}
	}
	out, err := f.Render(ctx, p.promptFormat.template, ms, shown, opt, m.vars)
	if err != nil {
		return nil, templateError(err)
	}
	spans := out.Spans()
	p.text = out.Text()
	if r.Known > 0 {
		if spans, p.text, err = grown.rest(m, p, spans); err != nil {
			return nil, err
		}
	}
	rendered := p.text
	parts := partsOf(spans)
	p.inReasoning = f.OpensReasoning(p.text)
	add := func(text string, special bool) {
		p.text += text
		parts = append(parts, tokenizer.Part{Text: text, Special: special})
	}
	open, shut := f.ThinkTags()
	if p.inReasoning && (opt.Thinking != nil && !*opt.Thinking || prefill != "" || forces(r.Choice)) {
		add("\n"+shut+"\n\n", true)
		p.inReasoning = false
	}
	if opt.Thinking != nil && !*opt.Thinking && !f.SupportsThinkingSwitch() && !p.inReasoning && open != "" &&
		p.text == rendered {
		add(open+"\n\n"+shut+"\n\n", true)
	}
	if prefill != "" {
		add(prefill, false)
		p.held = prefill
	}
	if p.forced = r.Choice.Name; r.Choice.Mode == ToolsRequired && len(p.tools) == 1 {
		p.forced = p.tools[0].Name
	}
	if forces(r.Choice) && prefill == "" {
		if text, ok := f.CallPrefix(p.forced); ok {
			before, after, found := strings.Cut(text, p.forced)
			if p.forced == "" || !found {
				before, after = text, ""
			}
			add(before, true)
			if found && p.forced != "" {
				add(p.forced, false)
			}
			if after != "" {
				add(after, true)
			}
			p.fed = text
		}
	}
	if len(r.Before) > 0 {
		if err := m.CheckIDs("context", r.Before); err != nil {
			return nil, err
		}
		p.text = m.Tokenizer.Decode(r.Before, false) + p.text
	}
	if p.tokens, err = m.Tokenizer.EncodeParts(slices.Clone(r.Before), parts, tokenizer.Options{}); err != nil {
		return nil, err
	}
	if err := m.CheckIDs("said", r.Said); err != nil {
		return nil, err
	}
	p.tokens = m.Tokenizer.Continue(r.Said, p.tokens)
	if len(p.tools) > 0 && prefill == "" && !forces(r.Choice) {
		if p.answered = toolfmt.AnsweredBy(ms); p.answered != nil {
			m.mayConclude(p, r, spans, ms[len(ms)-1].Content, parts[len(spans):])
		}
	}
	return p, nil
}

func partsOf(spans []chattmpl.Span) []tokenizer.Part {
	parts := make([]tokenizer.Part, 0, len(spans)+2)
	for _, s := range spans {
		parts = append(parts, tokenizer.Part{Text: s.Text, Special: !s.FromInput})
	}
	return parts
}

// mayConclude prepares the prompt that asks the model to conclude: the same but for a line behind the last result.
// behind is what was put behind the rendered conversation.
func (m *Model) mayConclude(p *prompt, r *Request, spans []chattmpl.Span, result string, behind []tokenizer.Part) {
	spans, ok := toolfmt.Conclude(spans, result)
	if !ok {
		return
	}
	p.again = sync.OnceValue(func() askedAgain {
		parts := append(partsOf(spans), behind...)
		text := ""
		if len(r.Before) > 0 {
			text = m.Tokenizer.Decode(r.Before, false)
		}
		for _, part := range parts {
			text += part.Text
		}
		ids, err := m.Tokenizer.EncodeParts(slices.Clone(r.Before), parts, tokenizer.Options{})
		return askedAgain{ids, text, err}
	})
}

// CheckIDs refuses tokens that the model does not have.
func (m *Model) CheckIDs(field string, ids []int32) error {
	for i, id := range ids {
		if id < 0 || int(id) >= m.Plan.Vocab {
			return Invalidf(field, "token %d at position %d: the model has %s tokens", id, i, thousands(m.Plan.Vocab))
		}
	}
	return nil
}

func forces(c ToolChoice) bool { return c.Mode == ToolsRequired || c.Mode == ToolNamed }

// withDefaults puts a Spec's system text and messages before a conversation.
func withDefaults(ms []Message, spec *Spec) []Message {
	hasSystem := slices.ContainsFunc(ms, func(m Message) bool { return m.Role == System || m.Role == Developer })
	var out []Message
	if spec.System != "" && !hasSystem {
		out = append(out, Text(System, spec.System))
	}
	if len(spec.Messages) > 0 {
		n := 0 // behind the system message
		for n < len(ms) && (ms[n].Role == System || ms[n].Role == Developer) {
			n++
		}
		out = append(append(append(out, ms[:n]...), spec.Messages...), ms[n:]...)
		return out
	}
	return append(out, ms...)
}

// convert puts messages into the shape that formats render.
func convert(ms []Message) ([]toolfmt.Message, error) {
	out := make([]toolfmt.Message, 0, len(ms))
	for _, m := range ms {
		text, err := textOf(m)
		if err != nil {
			return nil, err
		}
		if m.Role == ToolRole && m.IsError && !strings.HasPrefix(strings.ToLower(strings.TrimSpace(text)), "error") {
			text = "Error: " + text // once: dialects without this field have it in the text
		}
		t := toolfmt.Message{
			Role:      m.Role,
			Content:   text,
			Reasoning: m.Reasoning,
			CallID:    m.CallID,
			ToolName:  m.ToolName,
		}
		for _, c := range m.Calls {
			t.Calls = append(t.Calls, toolfmt.Call{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
		}
		out = append(out, t)
	}
	return out, nil
}

// textOf joins a message's parts, a line break between them.
func textOf(m Message) (string, error) {
	if len(m.Parts) == 1 && m.Parts[0].Media == TextMedia {
		return m.Parts[0].Text, nil
	}
	var b strings.Builder
	for i, p := range m.Parts {
		if p.Media != TextMedia {
			field := p.Field
			if field == "" {
				field = m.Field
			}
			return "", Unsupportedf(field, "this model does not take %s input", p.Media)
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.Text)
	}
	return b.String(), nil
}

// renderRaw makes the prompt of a text that is continued.
func (m *Model) renderRaw(r *Request) (*prompt, error) {
	p := &prompt{promptFormat: m.own, raw: true}
	if err := m.mayFit(r, nil); err != nil {
		return nil, err
	}
	var err error
	switch {
	case r.Suffix != "" || r.Fill:
		return p, m.fillIn(p, r)
	case len(r.PromptTokens) > 0:
		p.tokens = r.PromptTokens
		if err := m.CheckIDs("prompt", p.tokens); err != nil {
			return nil, err
		}
		p.text = m.Tokenizer.Decode(p.tokens, false)
	default:
		p.text = r.Prompt
		encode := func(text string) ([]int32, error) { return m.Text(text, !r.PromptPlain) }
		if p.tokens, err = encode(r.Prompt); err == nil && r.healed(healText) {
			err = p.heal(m, r.Prompt, encode, encode)
		}
	}
	if err != nil {
		return nil, err
	}
	if len(p.tokens) == 0 {
		return nil, Invalidf("prompt", "an empty prompt has no continuation: send a text")
	}
	return p, nil
}

// count is the number of the prompt's tokens as it was sent.
func (p *prompt) count() int { return len(p.tokens) + p.openTokens }

// decoder starts an answer's decoder: behind a text it goes on with the prompt's last token.
func (p *prompt) decoder(m *Model) *tokenizer.Decoder {
	if !p.raw || len(p.tokens) == 0 {
		return m.Tokenizer.NewDecoder(false)
	}
	return m.Tokenizer.NewDecoderAfter(false, p.tokens[len(p.tokens)-1])
}

// fills are the control tokens around the parts of a text with a gap, as models were trained with them; suffixFirst
// tells the order.
var fills = []struct {
	prefix, suffix, middle string
	suffixFirst            bool
}{
	{prefix: "<|fim_prefix|>", suffix: "<|fim_suffix|>", middle: "<|fim_middle|>"},
	{prefix: "<fim_prefix>", suffix: "<fim_suffix>", middle: "<fim_middle>"},
	{prefix: "<｜fim▁begin｜>", suffix: "<｜fim▁hole｜>", middle: "<｜fim▁end｜>"},
	{prefix: "<|code_prefix|>", suffix: "<|code_suffix|>", middle: "<|code_middle|>"},
	{prefix: "[PREFIX]", suffix: "[SUFFIX]", suffixFirst: true},
}

// FillsGaps tells whether a model with these tokens was trained to fill in the middle of a text.
func FillsGaps(hasToken func(string) bool) bool {
	for _, f := range fills {
		if hasToken(f.prefix) && hasToken(f.suffix) && (f.middle == "" || hasToken(f.middle)) {
			return true
		}
	}
	return false
}

// fileMarks end the text in a gap.
var fileMarks = []string{
	"<|fim_pad|>",
	"<|file_sep|>",
	"<|repo_name|>",
	"<|file_separator|>",
	"<file_sep>",
	"<fim_pad>",
}

// repositories are the control tokens around the files of a project, as models were trained with them.
var repositories = []struct{ name, file string }{
	{"<|repo_name|>", "<|file_sep|>"},
	{"<repo_name>", "<file_sep>"},
	{"<reponame>", "<filename>"},
}

// filesBefore are other files of a project before the one with a gap, whose name is not known. Models without tokens
// for that get the texts alone.
func (m *Model) filesBefore(files []SourceFile) []tokenizer.Part {
	if len(files) == 0 {
		return nil
	}
	has := func(t string) bool { _, ok := m.Tokenizer.ID(t); return ok }
	var out []tokenizer.Part
	for _, r := range repositories {
		if !has(r.name) || !has(r.file) {
			continue
		}
		out = append(out, tokenizer.Part{Text: r.name, Special: true}, tokenizer.Part{Text: "project\n"})
		for _, f := range files {
			out = append(
				out,
				tokenizer.Part{Text: r.file, Special: true},
				tokenizer.Part{Text: f.Name + "\n" + f.Text + "\n"},
			)
		}
		return append(out, tokenizer.Part{Text: r.file, Special: true}, tokenizer.Part{Text: "filename\n"})
	}
	for _, f := range files {
		out = append(out, tokenizer.Part{Text: f.Text + "\n\n"})
	}
	return out
}

// fillIn makes the prompt of a text with a gap.
func (m *Model) fillIn(p *prompt, r *Request) error {
	has := func(t string) bool { _, ok := m.Tokenizer.ID(t); return t == "" || ok }
	for _, f := range fills {
		if !has(f.prefix) || !has(f.suffix) || !has(f.middle) {
			continue
		}
		files := m.filesBefore(r.Files)
		partsWith := func(before, middle string) []tokenizer.Part {
			parts := []tokenizer.Part{
				{Text: f.prefix, Special: true},
				{Text: before},
				{Text: f.suffix, Special: true},
				{Text: r.Suffix},
				{Text: f.middle, Special: true},
			}
			if f.suffixFirst {
				parts = []tokenizer.Part{
					{Text: f.suffix, Special: true},
					{Text: r.Suffix},
					{Text: f.prefix, Special: true},
					{Text: before},
				}
			}
			if middle != "" {
				parts = append(parts, tokenizer.Part{Text: middle})
			}
			return slices.Concat(files, parts)
		}
		for _, part := range partsWith(r.Prompt, r.Middle) {
			p.text += part.Text
		}
		with := func(before, middle string) ([]int32, error) {
			return m.Tokenizer.EncodeParts(nil, partsWith(before, middle), tokenizer.Options{})
		}
		var err error
		if p.tokens, err = with(r.Prompt, r.Middle); err == nil && r.healed(healGap) {
			cut := func(text string) ([]int32, error) { return m.Tokenizer.Encode(nil, text, tokenizer.Options{}) }
			if r.Middle != "" {
				err = p.heal(m, r.Middle, cut, func(text string) ([]int32, error) { return with(r.Prompt, text) })
			} else {
				err = p.heal(m, r.Prompt, cut, func(text string) ([]int32, error) { return with(text, "") })
			}
		}
		if err != nil {
			return err
		}
		for _, t := range append([]string{f.prefix, f.suffix, f.middle}, fileMarks...) {
			if id, ok := m.Tokenizer.ID(t); ok {
				p.extraStops = append(p.extraStops, id)
			}
		}
		return nil
	}
	field := r.SuffixField
	if field == "" {
		field = "suffix"
	}
	return Unsupportedf(field, "%s was not trained to fill in the middle of a text", m.Info.Name)
}

// check refuses what no model can do, before one is loaded.
func (r *Request) check() error {
	names := map[string]bool{}
	for i, t := range r.Tools {
		field := t.Field
		if field == "" {
			field = fmt.Sprintf("tools[%d]", i)
		}
		switch {
		case t.Name == "":
			return Invalidf(field, "the tool has no name")
		case names[t.Name]:
			return Invalidf(field, "there are two tools named %q", t.Name)
		}
		names[t.Name] = true
	}
	if forces(r.Choice) && len(r.Tools) == 0 {
		return Invalidf(r.Choice.Field, "a call is demanded, and there are no tools")
	}
	if r.Choice.Mode == ToolNamed && !names[r.Choice.Name] {
		return Invalidf(r.Choice.Field, "there is no tool named %q", r.Choice.Name)
	}
	for _, s := range r.Stop {
		if s == "" {
			return Invalidf("stop", "an empty stop string would end every answer at once")
		}
	}
	if !r.Raw && len(r.Messages) == 0 {
		return Invalidf("messages", "there are no messages")
	}
	return r.checkSurrogates()
}

// countedBelow is the size of a request's texts below which they are encoded in any case, so that a refusal says how many
// tokens there are.
const countedBelow = 1 << 20

// mayFit refuses a request whose text is more than a context's tokens can stand for, before it is rendered and
// encoded: that would take memory and time many times that of a prompt that fits. Of what templates may leave out, as
// the reasoning in earlier answers, less is counted.
func (m *Model) mayFit(r *Request, messages []Message) error {
	f := m.floor
	if f == nil {
		return nil
	}
	size, n := 0, uint64(0)
	add := func(count func(string) uint64, texts ...string) {
		for _, t := range texts {
			size += len(t)
			n += count(t)
		}
	}
	inJSON := func(t string) uint64 { return leastOfJSON(f, t) }
	add(f.Of, r.Prompt, r.Suffix, r.Middle)
	for i := range r.Files {
		add(f.Of, r.Files[i].Name, r.Files[i].Text)
	}
	for i := range messages {
		count := f.Rewritten
		if messages[i].Role == Assistant {
			count = f.Least
		}
		add(f.Least, messages[i].Reasoning)
		for j := range messages[i].Parts {
			add(count, messages[i].Parts[j].Text)
		}
		for j := range messages[i].Calls {
			add(f.Rewritten, messages[i].Calls[j].Name)
			add(inJSON, messages[i].Calls[j].Arguments)
		}
	}
	if r.Choice.Mode != ToolsNone {
		for i := range r.Tools {
			add(f.Rewritten, r.Tools[i].Name, r.Tools[i].Description)
			add(inJSON, string(r.Tools[i].Parameters))
		}
	}
	if tokens, capacity := f.Tokens(n), m.Engine.Capacity(); tokens > capacity && size > countedBelow {
		return &Error{Kind: PromptTooLong, Tokens: tokens, AtLeast: true, Context: capacity}
	}
	return nil
}

// leastOfJSON is what a JSON text takes at least where a template writes it in another way: without white space, and
// with other escapes.
func leastOfJSON(f *tokenizer.Floor, text string) (n uint64) {
	inString := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '"':
			inString = !inString
		case c == '\\' && inString:
			if i++; i < len(text) && text[i] == 'u' {
				i += 4
			}
		case !inString && (c == ' ' || c == '\n' || c == '\t' || c == '\r'):
			continue
		}
		if i+1 < len(text) && text[i+1] >= 0x80 {
			n += f.Least(string(text[i : i+1]))
			continue
		}
		n += f.Byte(c)
	}
	return n
}
