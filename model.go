package baleen

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/tokenizer"
)

// A Model is an open model. Its methods may be called from many goroutines at once; requests share the model's steps.
type Model struct {
	runtime *Runtime
	only    *Runtime // nil but for Open's: it goes with the model
	spec    chat.Spec
	lease   *chat.Lease
	m       *chat.Model
	info    Info
	uses    uses
	closing sync.Once
}

// Close ends the model's requests with ErrClosed and gives it back: the memory too where Open opened it, else the
// Runtime keeps it loaded for Options.KeepAlive. The body of a loop over an answer is not interrupted; its
// request's memory is given back when the loop goes on. Further calls do nothing.
func (m *Model) Close() error {
	if err := m.usable(); err != nil {
		return err
	}
	m.shut()
	if m.only != nil {
		return m.only.Close()
	}
	return nil
}

func (m *Model) shut() {
	m.closing.Do(func() {
		m.uses.close(func() { m.runtime.forget(m) })
		m.lease.Release()
	})
}

// Info describes a model.
type Info struct {
	Name         string `json:"name"`         // as the model calls itself
	Path         string `json:"path"`         // where it lies
	Family       string `json:"family"`       // such as "qwen2"
	Quantization string `json:"quantization"` // such as "Q4_K_M"
	Parameters   int64  `json:"parameters"`
	Layers       int    `json:"layers"`
	Vocabulary   int    `json:"vocabulary"`            // number of token ids
	Context      int    `json:"context"`               // tokens that prompt and answer can have together here
	MaxContext   int    `json:"max_context,omitempty"` // tokens that the model was made for; 0: it does not say
	Chat         bool   `json:"chat"`                  // the model has a chat template
	Thinks       bool   `json:"thinks"`                // it can reason before it answers
	Memory       int64  `json:"memory"`                // bytes that it takes
}

// Info describes the model.
func (m *Model) Info() Info {
	if m == nil {
		return Info{}
	}
	return m.info
}

func describe(m *chat.Model) Info {
	i := m.Info
	return Info{
		Name: i.Name, Path: i.Path, Family: i.Family, Quantization: i.Quantization,
		Parameters: i.Parameters, Layers: i.Layers,
		Vocabulary: m.Plan.Vocab, Context: m.Engine.Capacity(), MaxContext: i.MaxContext,
		Chat: m.HasTemplate, Thinks: m.Thinks(), Memory: m.Bytes(),
	}
}

// Defaults returns how tokens are chosen where a request does not say so, and who says that.
func (m *Model) Defaults() (p Params, source string) {
	if m.usable() != nil {
		return Params{}, ""
	}
	s, source := m.m.Sampling()
	own := m.spec.Sampling
	pick := func(a, b *float32) *float64 {
		if a != nil {
			return widen(a)
		}
		return widen(b)
	}
	p = Params{
		Temperature: pick(own.Temperature, s.Temperature), TopP: pick(own.TopP, s.TopP), MinP: pick(own.MinP, s.MinP),
		TypicalP: pick(own.TypicalP, s.TypicalP), RepetitionPenalty: pick(own.RepetitionPenalty, s.RepetitionPenalty),
		PresencePenalty: widen(own.PresencePenalty), FrequencyPenalty: widen(own.FrequencyPenalty),
		TopK: s.TopK, RepeatLastN: s.RepeatLastN, Seed: own.Seed,
		Stop: slices.Clone(m.spec.Stop), MaxTokens: m.spec.MaxTokens,
	}
	if own.TopK != nil {
		p.TopK = own.TopK
	}
	if own.RepeatLastN != nil {
		p.RepeatLastN = own.RepeatLastN
	}
	return p, source
}

// Tokenize returns the token ids of a text, with nothing added. Control tokens written in the text become ordinary
// text. A text on which the tokenizer's regular expression backtracks without end is an error, and so is what is no
// UTF-8.
func (m *Model) Tokenize(text string) ([]int32, error) {
	if err := m.usable(); err != nil {
		return nil, err
	}
	if err := isText("text", text); err != nil {
		return nil, err
	}
	ids, err := m.m.Tokenizer.Encode(nil, text, tokenizer.Options{})
	return ids, public(err)
}

// Detokenize returns the text of token ids, control tokens included. Ids that the model does not have are an error.
func (m *Model) Detokenize(ids []int32) (string, error) {
	if err := m.usable(); err != nil {
		return "", err
	}
	for i, id := range ids {
		if id < 0 || int(id) >= m.info.Vocabulary {
			return "", wrong("ids", "token %d at position %d: the model has %d", id, i, m.info.Vocabulary)
		}
	}
	return m.m.Tokenizer.Decode(ids, false), nil
}

// Count returns the number of tokens of a text; see Tokenize for the error.
func (m *Model) Count(text string) (int, error) {
	ids, err := m.Tokenize(text)
	return len(ids), err
}

// Prompt returns a conversation as the model would see it, as text and as token ids: the chat template's own
// included, and what params' tools and reasoning add. params may be nil.
func (m *Model) Prompt(ctx context.Context, messages []Message, params *Params) (text string, ids []int32, err error) {
	r, err := m.conversation(messages, params)
	if err != nil {
		return "", nil, err
	}
	if err := checkContext(ctx); err != nil {
		return "", nil, err
	}
	r.Model, r.On = m.spec.Name, m.lease
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	leave, err := m.uses.enter(cancel)
	if err != nil {
		return "", nil, err
	}
	defer leave()
	ids, text, err = m.runtime.service.Render(ctx, r)
	return text, ids, public(err)
}

// CountChat returns the number of tokens of Prompt.
func (m *Model) CountChat(ctx context.Context, messages []Message, params *Params) (int, error) {
	_, ids, err := m.Prompt(ctx, messages, params)
	return len(ids), err
}

// Generate continues a text. params may be nil; its tools, reasoning and messages are for Chat.
func (m *Model) Generate(ctx context.Context, prompt string, params *Params) iter.Seq2[Chunk, error] {
	return m.raw(ctx, params, func(r *chat.Request) error {
		r.Prompt = prompt
		return isText("prompt", prompt)
	})
}

// GenerateTokens continues a list of token ids, to which nothing is added.
func (m *Model) GenerateTokens(ctx context.Context, ids []int32, params *Params) iter.Seq2[Chunk, error] {
	return m.raw(ctx, params, func(r *chat.Request) error {
		if len(ids) == 0 {
			return wrong("prompt", "there are no tokens to continue")
		}
		r.PromptTokens = ids
		return nil
	})
}

// FillIn writes what stands between two texts, with models that were trained to.
func (m *Model) FillIn(ctx context.Context, before, after string, params *Params) iter.Seq2[Chunk, error] {
	return m.raw(ctx, params, func(r *chat.Request) error {
		r.Prompt, r.Suffix = before, after
		if err := isText("before", before); err != nil {
			return err
		}
		if after == "" {
			return wrong("after", "there is no text behind the gap: use Generate")
		}
		return isText("after", after)
	})
}

func (m *Model) raw(ctx context.Context, params *Params, ask func(r *chat.Request) error) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		r, err := params.request()
		if err == nil {
			r.Raw = true
			err = ask(r)
		}
		if err != nil {
			yield(Chunk{Finish: FinishError}, err)
			return
		}
		m.run(ctx, r, nil, yield)
	}
}

// Chat answers a conversation by the model's own template. No message can write a control token. Tools that params
// offer are not run: the answer has the calls. params may be nil.
func (m *Model) Chat(ctx context.Context, messages []Message, params *Params) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		r, err := m.conversation(messages, params)
		if err != nil {
			yield(Chunk{Finish: FinishError}, err)
			return
		}
		m.run(ctx, r, nil, yield)
	}
}

// conversation is the core's request for an answer to messages.
func (m *Model) conversation(messages []Message, params *Params) (*chat.Request, error) {
	r, err := params.request()
	if err != nil {
		return nil, err
	}
	if err := m.usable(); err != nil {
		return nil, err
	}
	if !m.info.Chat {
		return nil, ErrNoTemplate
	}
	r.Messages, err = conversation(messages)
	return r, err
}

// uses counts the requests of a model, and which of them are in the body of their loop.
type uses struct {
	mu      sync.Mutex
	changed *sync.Cond
	closed  bool
	cancels map[int]context.CancelCauseFunc
	next    int
	bodies  int
	gone    func() // called once it is closed and no request is left
}

func (u *uses) init() {
	if u.changed == nil {
		u.changed = sync.NewCond(&u.mu)
		u.cancels = map[int]context.CancelCauseFunc{}
	}
}

// enter counts a request, which close cancels.
func (u *uses) enter(cancel context.CancelCauseFunc) (leave func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.init()
	if u.closed {
		return nil, ErrClosed
	}
	n := u.next
	u.next++
	u.cancels[n] = cancel
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.cancels, n)
		u.changed.Broadcast()
		if u.closed && len(u.cancels) == 0 {
			u.gone()
		}
	}, nil
}

// body counts requests in the body of their loop: one that closes the model must not wait for itself.
func (u *uses) body(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.bodies += n
	u.changed.Broadcast()
}

// close refuses further requests, cancels those that run, and waits until no more are left than stand in a body.
// gone is called when none is.
func (u *uses) close(gone func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.init()
	u.closed, u.gone = true, gone
	if len(u.cancels) == 0 {
		u.gone()
	}
	for _, cancel := range u.cancels {
		cancel(errClosing)
	}
	for len(u.cancels) > u.bodies {
		u.changed.Wait()
	}
}

// standing tells that requests stand in the body of their loop.
func (u *uses) standing() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.bodies > 0
}
