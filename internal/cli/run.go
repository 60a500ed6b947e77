package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/baleenrun/baleen/internal/config"
	"github.com/baleenrun/baleen/internal/engine"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/server/models"
	"github.com/baleenrun/baleen/internal/store"
)

// runFlags are the flags of "run".
type runFlags struct {
	sampling
	system      string
	raw         bool
	showStats   bool
	asJSON      bool
	loaded      time.Duration
	interactive bool
	examples    []model.Message // that a model of Ollama's was made with; they stand behind the system prompt
}

const runLong = `Answer a prompt, or chat when there is none and standard input is a terminal.

One argument that is neither the name of a model, nor nearly one, nor an existing path is the
prompt, for the default model. Piped text is the prompt, or is added below the one that was given. A model
without a chat template, and any model with --raw, continues the text as it is.`

const runExample = `  baleen run "What is the capital of France?"
  baleen run smollm2-135m "Write a haiku about the sea" --temperature 0.8 --seed 1
  baleen run ./model.gguf < question.txt
  git diff | baleen run "Write a commit message for this change"
  baleen run                      # a chat: Ctrl-C stops an answer, Ctrl-D leaves`

func (a *app) runCommand() *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:     "run [MODEL] [PROMPT]",
		Short:   "Answer a prompt, or chat",
		Long:    runLong,
		Example: runExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 2 {
				return usagef("got %d arguments, want at most MODEL and PROMPT; put the prompt in quotes", len(args))
			}
			return nil
		},
		RunE:              func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), args, f) },
		ValidArgsFunction: a.completeModels,
	}
	cmd.Flags().StringVar(&f.system, "system", "", "instructions that stand before the conversation (default: those that a model of Ollama's was made with)")
	cmd.Flags().BoolVar(&f.raw, "raw", false, "continue the prompt as plain text, without a chat template")
	cmd.Flags().BoolVar(&f.showStats, "stats", false, "print counts and speeds on standard error afterwards")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object when the answer is complete")
	f.register(cmd)
	a.settings(cmd, config.Threads, config.Context, config.KV, config.CPU)
	return cmd
}

// runArgs says which model and prompt the arguments mean; hasPrompt is false where none was given.
func runArgs(st *store.Store, args []string, def string) (modelArg, prompt string, hasPrompt bool, err error) {
	switch len(args) {
	case 0:
		return def, "", false, nil
	case 2:
		return args[0], args[1], true, nil
	}
	_, err = st.Resolve(args[0])
	var misspelt *store.MisspeltError
	switch {
	case err == nil:
		return args[0], "", false, nil
	case errors.As(err, &misspelt):
		// As a prompt it would make a newcomer fetch the default model first.
		return "", "", false, fmt.Errorf("%w (to ask this of the default model: baleen run %s %q)", err, def, args[0])
	case errors.Is(err, store.ErrNotFound) && !store.LooksLikePath(args[0]):
		return def, args[0], true, nil
	}
	return "", "", false, err
}

// maxPrompt bounds what is read from standard input.
const maxPrompt = 64 << 20

// pipedPrompt adds piped text to the prompt.
func (a *app) pipedPrompt(prompt string, has bool) (string, bool, error) {
	if a.io.InTTY || a.io.In == nil {
		return prompt, has, nil
	}
	b, err := io.ReadAll(io.LimitReader(a.io.In, maxPrompt+1))
	if err != nil {
		return "", false, fmt.Errorf("reading standard input: %w", err)
	}
	if len(b) > maxPrompt {
		return "", false, fmt.Errorf("standard input has more than %d MiB", maxPrompt>>20)
	}
	text := strings.TrimRight(string(b), "\r\n")
	switch {
	case text == "":
		return prompt, has, nil
	case !utf8.ValidString(text):
		return "", false, errors.New("standard input is not UTF-8 text")
	case has:
		return prompt + "\n\n" + text, true, nil
	}
	return text, true, nil
}

func (a *app) run(ctx context.Context, args []string, f *runFlags) error {
	if _, err := f.params(); err != nil {
		return err
	}
	st, err := a.store()
	if err != nil {
		return err
	}
	name, prompt, has, err := runArgs(st, args, a.cfg.String(config.Model))
	if err != nil {
		return err
	}
	if prompt, has, err = a.pipedPrompt(prompt, has); err != nil {
		return err
	}
	switch {
	case !has && !a.io.InTTY:
		return usagef("there is no prompt, neither as an argument nor on standard input")
	case has && strings.TrimSpace(prompt) == "":
		return usagef("the prompt is empty")
	case !utf8.ValidString(prompt) || !utf8.ValidString(f.system):
		return usagef("the prompt is not UTF-8 text")
	case !has && f.asJSON:
		return usagef("--json needs a prompt")
	}
	f.interactive = !has
	o := a.modelOptions()
	o.Seqs = 1
	began := time.Now()
	path, own, err := a.locateModel(ctx, name)
	if err != nil {
		return err
	}
	if own != nil {
		if err := f.adopt(*own); err != nil {
			return fmt.Errorf("%s: %v", name, err) // whatever it is, it is no mistake in the command line
		}
	}
	m, err := a.open(ctx, path, o)
	if err != nil {
		return err
	}
	defer m.Close()
	f.loaded = time.Since(began)
	if !m.HasTemplate && !f.raw {
		if f.system != "" {
			return usagef("--system needs a chat template, which %s does not have", m.Info.Name)
		}
		a.note("%s is a base model without a chat template: it continues the text", m.Info.Name)
		f.raw = true
	} else if f.raw && f.system != "" {
		return usagef("--system and --raw exclude each other")
	}
	if own != nil && !f.raw && !f.flags.Flags().Changed("system") {
		f.system = own.System
	}
	if f.interactive {
		return a.chat(ctx, m, f)
	}
	tokens, err := f.tokens(ctx, m, f.opening(prompt))
	if err != nil {
		return err
	}
	if f.asJSON {
		return a.answerJSON(ctx, m, tokens, f)
	}
	_, err = a.answer(ctx, m, tokens, f)
	return err
}

// adopt takes over the settings that a model of Ollama's has beside its weights, where no flag says otherwise: without them, it
// would not be the model that it is there and behind a server. Its system prompt waits until it is known whether there is a
// template for it.
func (f *runFlags) adopt(m store.Model) error {
	flags := f.flags.Flags()
	set := func(flag string, given bool, value string) error {
		if !given || flags.Changed(flag) {
			return nil
		}
		return flags.Set(flag, value)
	}
	number := func(flag string, v *float32) error {
		return set(flag, v != nil, fmt.Sprint(value(v)))
	}
	spec := models.SpecOf(m)
	own := spec.Sampling
	err := errors.Join(
		number("temperature", own.Temperature), number("top-p", own.TopP), number("min-p", own.MinP),
		number("repetition-penalty", own.RepetitionPenalty),
		set("top-k", own.TopK != nil, strconv.Itoa(max(0, value(own.TopK)))),
		set("seed", own.Seed != nil, strconv.FormatUint(value(own.Seed), 10)),
		set("max-tokens", spec.MaxTokens > 0, strconv.Itoa(spec.MaxTokens)),
	)
	f.typicalP, f.presencePenalty, f.frequencyPenalty = value(own.TypicalP), value(own.PresencePenalty), value(own.FrequencyPenalty)
	f.repeatLastN, f.stop = value(own.RepeatLastN), spec.Stop
	for _, t := range m.Messages {
		f.examples = append(f.examples, model.Message{Role: t.Role, Content: t.Content})
	}
	if err == nil {
		_, err = f.params()
	}
	return err
}

// value is what p points to, or zero.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// before is what stands before a conversation.
func (f *runFlags) before() []model.Message {
	var msgs []model.Message
	if f.system != "" {
		msgs = append(msgs, model.Message{Role: "system", Content: f.system})
	}
	return append(msgs, f.examples...)
}

// opening is a conversation's begin.
func (f *runFlags) opening(prompt string) []model.Message {
	return append(f.before(), model.Message{Role: "user", Content: prompt})
}

// tokens renders a conversation; in raw mode it is the last message's text.
func (f *runFlags) tokens(ctx context.Context, m *model.Model, msgs []model.Message) ([]int32, error) {
	if f.raw {
		return m.Text(msgs[len(msgs)-1].Content), nil
	}
	return m.Chat(ctx, msgs)
}

// answer streams one answer to standard output and returns it.
func (a *app) answer(ctx context.Context, m *model.Model, tokens []int32, f *runFlags) (string, error) {
	req, err := f.request(tokens)
	if err != nil {
		return "", err
	}
	stream, err := m.Engine.Generate(ctx, req)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	var text strings.Builder
	for {
		ev, ok := stream.Next()
		if !ok {
			return text.String(), errors.New("the stream ended without its last event")
		}
		text.WriteString(ev.Text)
		if _, err := io.WriteString(a.io.Out, a.printable(ev.Text)); err != nil {
			return text.String(), err
		}
		if ev.Done {
			if !strings.HasSuffix(text.String(), "\n") {
				fmt.Fprintln(a.io.Out)
			}
			if f.showStats {
				a.stats(ev.Usage, f.loaded, f.temperature > 0)
			}
			return text.String(), a.finished(ev, &f.sampling, m)
		}
	}
}

// printable keeps a model from steering the terminal: control characters other than line breaks and tabs are left
// out there. Files and pipes get every byte.
func (a *app) printable(s string) string {
	if !a.io.OutTTY {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return -1
		}
		return r
	}, s)
}

// runResult is what "run --json" prints.
type runResult struct {
	Model  string  `json:"model"`
	Text   string  `json:"text"`
	Tokens []int32 `json:"tokens"`
	Finish string  `json:"finish"` // "stop" or "length"
	Usage  struct {
		Prompt    int `json:"prompt_tokens"`
		Cached    int `json:"cached_tokens"`
		Generated int `json:"generated_tokens"`
	} `json:"usage"`
	Seed    uint64  `json:"seed"`
	LoadMS  float64 `json:"load_ms"`
	FirstMS float64 `json:"first_token_ms"`
	TotalMS float64 `json:"total_ms"`
}

func (a *app) answerJSON(ctx context.Context, m *model.Model, tokens []int32, f *runFlags) error {
	req, err := f.request(tokens)
	if err != nil {
		return err
	}
	stream, err := m.Engine.Generate(ctx, req)
	if err != nil {
		return err
	}
	r := runResult{Model: m.Info.Name, Tokens: []int32{}}
	var text strings.Builder
	var last engine.Event
	for ev := range stream.All() {
		text.WriteString(ev.Text)
		if ev.Done {
			last = ev
		} else {
			r.Tokens = append(r.Tokens, ev.Token)
		}
	}
	if f.showStats {
		a.stats(last.Usage, f.loaded, f.temperature > 0)
	}
	if err := a.finished(last, &f.sampling, m); err != nil {
		return err
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	r.Text, r.Finish, r.Seed = text.String(), last.Reason.String(), last.Usage.Seed
	r.Usage.Prompt, r.Usage.Cached, r.Usage.Generated = last.Usage.Prompt, last.Usage.Cached, last.Usage.Generated
	r.LoadMS, r.FirstMS, r.TotalMS = ms(f.loaded), ms(last.Usage.First), ms(last.Usage.Total)
	return a.writeJSON(r)
}
