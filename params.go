package baleen

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/baleenrun/baleen/internal/chat"
)

// Params say how an answer is made. What is nil or zero is left to the model, see Model.Defaults; Go's new makes the
// pointers: new(0.7), new(40).
// RATIONALE: Why are the library's parameters pointers?
type Params struct {
	// MaxTokens bounds what is generated, reasoning included. 0: until the context is full; negative: nothing is
	// generated, the prompt is only read.
	MaxTokens int `json:"max_tokens,omitempty"`

	// How the next token is drawn.

	Temperature *float64 `json:"temperature,omitempty"` // 0: the most probable token, always; higher is more varied
	TopK        *int     `json:"top_k,omitempty"`       // among the k most probable tokens; 0 or less: all
	TopP        *float64 `json:"top_p,omitempty"`       // among the most probable tokens that reach p together; 1: all
	MinP        *float64 `json:"min_p,omitempty"`       // among those with at least p times the best one's probability
	TypicalP    *float64 `json:"typical_p,omitempty"`   // among the most typical tokens that reach p together; 1: all
	Seed        *uint64  `json:"seed,omitempty"`        // nil: a random one; Usage.Seed says which

	RepetitionPenalty *float64 `json:"repetition_penalty,omitempty"` // over 1: tokens that came before are less probable
	PresencePenalty   *float64 `json:"presence_penalty,omitempty"`   // taken from logits of tokens that the answer has
	FrequencyPenalty  *float64 `json:"frequency_penalty,omitempty"`  // the same, for each time that it has them
	RepeatLastN       *int     `json:"repeat_last_n,omitempty"`      // tokens that RepetitionPenalty looks back; -1: all
	// LogitBias is added to the logits of these tokens; -Inf forbids one.
	LogitBias map[int32]float32 `json:"logit_bias,omitempty"`

	// What ends the answer, beside the model.

	Stop       []string `json:"stop,omitempty"`        // texts, in what is said; they are not part of it
	StopTokens []int32  `json:"stop_tokens,omitempty"` // token ids

	// What the answer's text is held to, token by token; at most one of these. Reasoning stays free, and so do calls
	// where the model's marks tell them from text. What cannot be enforced exactly is refused with a ParamError before
	// a token is made. An answer that ends with FinishLength is the begin of one that fits, and nothing more.

	JSON    bool            `json:"json,omitempty"`    // any JSON object
	Schema  json.RawMessage `json:"schema,omitempty"`  // JSON that this JSON Schema allows; see Into for one from a Go type
	Regex   string          `json:"regex,omitempty"`   // a text that this regular expression matches as a whole, in RE2's notation
	Grammar string          `json:"grammar,omitempty"` // a text of this grammar's rule root, in llama.cpp's notation (GBNF)
	Choices []string        `json:"choices,omitempty"` // one of these texts

	// What is told about it.

	LogProbs    bool `json:"logprobs,omitempty"`     // log probabilities of the text's tokens, see Chunk.Tokens
	TopLogProbs int  `json:"top_logprobs,omitempty"` // of so many of the most probable tokens at each place, too; at most 100

	// Tools, in conversations.

	Tools      []Tool     `json:"tools,omitempty"`       // that the model may call
	ToolChoice ToolChoice `json:"tool_choice,omitzero"`  // whether it must
	SingleCall bool       `json:"single_call,omitempty"` // at most one call in an answer
	// MaxToolRounds bounds how often a Session runs tools for one message; 0: 10; negative: never.
	MaxToolRounds int `json:"max_tool_rounds,omitempty"`
	// Conclude has a model that only repeats a call, although it got the result, asked once more with a line behind the
	// result that says to answer now, and ends answers that make one call twice. Small models need it. Usage.Concluded
	// says that it happened.
	Conclude bool `json:"conclude,omitempty"`

	// Reasoning, in conversations.

	Thinking *bool  `json:"thinking,omitempty"` // on or off, where the model can; nil: as its template has it
	Effort   Effort `json:"effort,omitempty"`   // how much
	// ThinkingBudget is how many tokens of reasoning there may be before the answer begins; 0: no bound but Effort's.
	ThinkingBudget int `json:"thinking_budget,omitempty"`

	// Texts that are continued.

	// PlainPrompt makes ordinary text of control tokens that are written out in a text for Generate. Without it they
	// are read as such: marks of gaps and turns. No message of a conversation can ever write one.
	PlainPrompt bool `json:"plain_prompt,omitempty"`
	// Heal takes a text for Generate or FillIn that ends inside a token back to the token's begin, which the answer
	// then spells out unseen; nil: where it was measured better, see docs/BENCHMARKS.md.
	Heal *bool `json:"heal,omitempty"`

	// Conversations.

	// Continue makes an assistant's message at the end of a conversation the begin of the answer, which goes on behind
	// it.
	Continue bool `json:"continue,omitempty"`
	// DropOldest lets a Session drop its oldest turns where a message and MaxTokens would not fit (of 0, or of more
	// than there can be: an eighth of the context); Chunk.Dropped says which.
	DropOldest bool `json:"drop_oldest,omitempty"`
	// CacheSalt keeps conversations apart: cached prefixes are shared only under the same one.
	CacheSalt string `json:"cache_salt,omitempty"`
}

// An Effort says how much a model is to reason, in the words of all vendors' APIs. Models whose templates know efforts
// are told low, medium or high, whichever is nearest. Others reason as far as the number of tokens beside each effort;
// models that never reason answer as they are.
type Effort string

// Efforts, from least to most.
const (
	EffortNone    Effort = "none"    // no reasoning; "low" where a template knows efforts and not how to do without
	EffortMinimal Effort = "minimal" // as EffortNone
	EffortLow     Effort = "low"     // 1,024 tokens
	EffortMedium  Effort = "medium"  // 8,192 tokens
	EffortHigh    Effort = "high"    // 24,576 tokens
	EffortXHigh   Effort = "xhigh"   // no bound; "high" where a template knows efforts
	EffortMax     Effort = "max"     // as EffortXHigh
	EffortUltra   Effort = "ultra"   // as EffortXHigh
)

// maxLogProbs bounds Params.TopLogProbs.
const maxLogProbs = 100

// format is what the answer is held to.
func (p *Params) format() (f chat.Format, err error) {
	take := func(g chat.Format) {
		if f.Kind != "" && err == nil {
			err = wrong(g.Field, "the answer is held to %s already: set one of them", f.Field)
		}
		f = g
	}
	if p.JSON {
		take(chat.Format{Kind: chat.JSONFormat, Field: "json"})
	}
	if len(p.Schema) > 0 {
		take(chat.Format{Kind: chat.SchemaFormat, Schema: p.Schema, Field: "schema"})
	}
	if p.Regex != "" {
		take(chat.Format{Kind: chat.RegexFormat, Text: p.Regex, Field: "regex"})
	}
	if p.Grammar != "" {
		take(chat.Format{Kind: chat.GrammarFormat, Text: p.Grammar, Field: "grammar"})
	}
	if len(p.Choices) > 0 {
		take(chat.Format{Kind: chat.ChoiceFormat, Choices: p.Choices, Field: "choices"})
	}
	for _, text := range append([]string{string(f.Schema), f.Text}, f.Choices...) {
		if err == nil {
			err = isText(f.Field, text)
		}
	}
	return f, err
}

func (p *Params) check() error {
	for i, s := range p.Stop {
		if err := isText(fmt.Sprintf("stop[%d]", i), s); err != nil {
			return err
		}
	}
	if p.TopLogProbs < 0 || p.TopLogProbs > maxLogProbs {
		return wrong("top_logprobs", "%d: want 0 to %d", p.TopLogProbs, maxLogProbs)
	}
	if p.ThinkingBudget < 0 {
		return wrong("thinking_budget", "%d: want 0 or more", p.ThinkingBudget)
	}
	if p.Effort != "" && !slices.Contains(chat.Efforts, string(p.Effort)) {
		return wrong("effort", "there is no effort %q: want one of %s", p.Effort, strings.Join(chat.Efforts, ", "))
	}
	if _, ok := toolModes[p.ToolChoice.Mode]; !ok {
		return wrong("tool_choice.mode", `there is no mode %q: want "", none, required or named`, p.ToolChoice.Mode)
	}
	if p.ToolChoice.Name != "" && p.ToolChoice.Mode != ToolNamed {
		return wrong("tool_choice.name", "a name needs the mode %q", ToolNamed)
	}
	for i, t := range p.Tools {
		at := fmt.Sprintf("tools[%d]", i)
		var schema map[string]json.RawMessage
		if len(t.Parameters) > 0 && (json.Unmarshal(t.Parameters, &schema) != nil || schema == nil) {
			return wrong(at+".parameters", "not a JSON object: want a schema")
		}
		if !toolName(t.Name) {
			return wrong(at+".name", `%q: want letters, digits, "_" and "-"`, t.Name)
		}
		for _, text := range []string{t.Description, string(t.Parameters)} {
			if err := isText(at, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// toolName reports whether models can be trusted to write a name as it is, and parsers to find its end.
func toolName(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
}

// request puts the params into the core's form; the caller adds what is asked.
func (p *Params) request() (*chat.Request, error) {
	if p == nil {
		p = &Params{}
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	format, err := p.format()
	if err != nil {
		return nil, err
	}
	r := &chat.Request{
		Format:    format,
		MaxTokens: p.MaxTokens, Stop: p.Stop, StopTokens: p.StopTokens,
		LogProbs: p.LogProbs || p.TopLogProbs > 0, TopLogs: p.TopLogProbs,
		Choice:     chat.ToolChoice{Mode: toolModes[p.ToolChoice.Mode], Name: p.ToolChoice.Name, Field: "tool_choice"},
		SingleCall: p.SingleCall,
		Thinking:   p.Thinking, ThinkingField: "thinking", Effort: string(p.Effort), ThinkingBudget: p.ThinkingBudget,
		Continue: p.Continue, CacheSalt: p.CacheSalt, Conclude: &p.Conclude,
		PromptPlain: p.PlainPrompt, Heal: p.Heal,
		Sampling: chat.Sampling{
			Temperature: narrow(p.Temperature), TopK: p.TopK, TopP: narrow(p.TopP), MinP: narrow(p.MinP),
			TypicalP: narrow(p.TypicalP), RepetitionPenalty: narrow(p.RepetitionPenalty), RepeatLastN: p.RepeatLastN,
			PresencePenalty: narrow(p.PresencePenalty), FrequencyPenalty: narrow(p.FrequencyPenalty),
			Seed: p.Seed, LogitBias: p.LogitBias,
		},
	}
	for i, t := range p.Tools {
		r.Tools = append(r.Tools, chat.Tool{
			Name: t.Name, Description: t.Description, Parameters: t.Parameters, Field: fmt.Sprintf("tools[%d]", i),
			Strict: t.Strict, StrictField: fmt.Sprintf("tools[%d].strict", i),
		})
	}
	return r, nil
}

func narrow(v *float64) *float32 {
	if v == nil {
		return nil
	}
	return new(float32(*v))
}

func widen(v *float32) *float64 {
	if v == nil {
		return nil
	}
	return new(float64(*v))
}
