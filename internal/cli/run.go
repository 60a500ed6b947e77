package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/config"
	"github.com/baleenrun/baleen/internal/store"
)

// runFlags are the flags of "run".
type runFlags struct {
	sampling
	model, hfRepo string // of --model and --hf-repo
	prompt, file  string // of --prompt and --file
	oneWord       bool   // a lone argument that may have been meant as a prompt names the model
	twoWords      string // two arguments that may have been meant as a prompt
	system        string
	raw           bool
	think         string // of --think
	hideThinking  bool
	format        string
	grammar       string
	held          chat.Format // what --format or --grammar says
	keepAlive     keepAlive
	noServer      bool
	showStats     bool
	asJSON        bool
	loaded        time.Duration
	interactive   bool
}

const runLong = `Answer a prompt, or chat when there is none and standard input is a terminal.

One argument is a model when it is one word, and a prompt for the default model when it has
spaces; a prompt of one word goes behind -p. ORG/REPO[:QUANTIZATION] of Hugging Face is fetched
after asking. Piped text is the prompt, or is added below the one that was given. A model without a
chat template, and any model with --raw, continues the text as it is.

--format and --grammar hold the answer to a form, token by token; what cannot be enforced is refused
with the keyword and its place ("baleen grammar FILE" says so without a model).

What a model reasons before its answer is printed on standard error, dim on a terminal, and by
--json in the field "reasoning".

Flags of llama.cpp and Ollama work as they are spelled there: -ngl, --temp, --ctx-size, --verbose
and the like. Those without effect say so.`

const runExample = `  baleen run "What is the capital of France?"
  baleen run smollm2-135m "Write a haiku about the sea" --temp 0.8 --seed 1
  baleen run ./model.gguf < question.txt
  git diff | baleen run "Write a commit message for this change"
  baleen run -m smollm2-135m -p hello -n 32 --temp 0
  baleen run -p "Name a city and its country" --format city.json
  baleen run                    # a chat: Ctrl-C stops an answer, Ctrl-D leaves`

func (a *app) runCommand() *cobra.Command { return a.runCommandOf(&runFlags{}) }

func (a *app) runCommandOf(f *runFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "run [MODEL] [PROMPT]",
		Short:             "Answer a prompt, or chat",
		Long:              runLong,
		Example:           runExample,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), args, f) },
		ValidArgsFunction: firstOnly(a.completeModels),
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.model, "model", "m", "", "the MODEL, as llama.cpp has it")
	fs.StringVar(&f.hfRepo, "hf-repo", "", "")
	fs.Lookup("hf-repo").Hidden = true
	fs.StringVarP(&f.prompt, "prompt", "p", "", "the PROMPT, also of one word")
	fs.StringVarP(&f.file, "file", "f", "", "file with the prompt")
	fs.StringVar(
		&f.system,
		"system",
		"",
		"instructions that stand before the conversation (default: those that the model was made with)",
	)
	fs.BoolVar(&f.raw, "raw", false, "continue the prompt as plain text, without a chat template")
	fs.StringVar(
		&f.think,
		"think",
		"",
		"let the model reason before it answers: true, false, low, medium or high (default: as the model has it)",
	)
	fs.Lookup("think").NoOptDefVal = "true"
	fs.BoolVar(&f.hideThinking, "hidethinking", false, "do not show what it reasons")
	fs.StringVar(&f.format, "format", "", "hold the answer to a format: json, or a `file` with a JSON Schema")
	fs.StringVar(
		&f.grammar,
		"grammar",
		"",
		"hold the answer to the grammar in a `file`, in GBNF, or in Lark's notation where its name ends in .lark",
	)
	fs.Var(&f.keepAlive, "keep-alive", "how long a server keeps the model loaded afterwards, such as 5m; -1: for good")
	fs.BoolVar(&f.noServer, "no-server", false, "load the model here, even where a server has it loaded")
	fs.BoolVar(&f.showStats, "stats", false, "print counts and speeds on standard error afterwards")
	fs.BoolVar(&f.asJSON, "json", false, "print one JSON object when the answer is complete")
	f.register(cmd)
	a.settings(cmd, config.Device, config.Threads, config.Context, config.KV, config.CPU)
	ineffective(cmd)
	alias(cmd)
	_ = cmd.RegisterFlagCompletionFunc("model", a.completeModels)
	_ = cmd.RegisterFlagCompletionFunc(
		"think",
		cobra.FixedCompletions([]string{"true", "false", "low", "medium", "high"}, cobra.ShellCompDirectiveNoFileComp),
	)
	return cmd
}

// thinking reads --think.
func thinkingOf(value string) (on *bool, effort string, err error) {
	switch value {
	case "", "default":
		return nil, "", nil
	case "true", "on", "yes":
		return new(true), "", nil
	case "false", "off", "no", "none":
		return new(false), "", nil
	case "low", "medium", "high":
		return nil, value, nil
	}
	return nil, "", fmt.Errorf("%q: want true, false, low, medium or high", value)
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
	if err := f.check(); err != nil {
		return err
	}
	thinking, effort, err := thinkingOf(f.think)
	if err != nil {
		return usagef("--think %v", err)
	}
	if f.held, err = formatOf(f.format, f.grammar); err != nil {
		return err
	}
	if err := a.noteIneffective(f.flags); err != nil {
		return err
	}
	st, err := a.store()
	if err != nil {
		return err
	}
	name, prompt, has, err := f.runArgs(st, args, a.cfg.String(config.Model))
	if err != nil {
		return err
	}
	if prompt, has, err = a.pipedPrompt(prompt, has); err != nil {
		return err
	}
	switch {
	case !has && !a.io.InTTY && !f.oneWord: // else there is something more to say
		return usagef("there is no prompt, neither as an argument nor on standard input")
	case has && strings.TrimSpace(prompt) == "":
		return usagef("the prompt is empty")
	case !utf8.ValidString(prompt) || !utf8.ValidString(f.system):
		return usagef("the prompt is not UTF-8 text")
	case !has && f.asJSON:
		return usagef("--json needs a prompt")
	}
	f.interactive = !has
	began := time.Now()
	spec, err := a.locateSpec(ctx, st, name, f.oneWord)
	if f.twoWords != "" && errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w; a prompt stands in quotes: baleen run %q", err, f.twoWords)
	}
	if err != nil {
		return err
	}
	own := spec.System
	to, err := a.answerer(ctx, name, spec, f)
	if err != nil {
		return err
	}
	defer to.close()
	if to.about().Server == "" {
		f.loaded = time.Since(began)
	}
	c := a.conversation(to, f)
	c.thinking, c.effort = thinking, effort
	if c.about.Base && !f.raw {
		if f.system != "" {
			return usagef("--system needs a chat template, which %s does not have", c.about.Info.Name)
		}
		a.note("%s is a base model without a chat template: it continues the text", c.about.Info.Name)
		f.raw = true
	} else if f.raw && f.system != "" {
		return usagef("--system and --raw exclude each other")
	}
	if !f.raw && !f.flags.Flags().Changed("system") {
		f.system = own
	}
	switch {
	case f.interactive:
		return a.chat(ctx, c)
	case f.asJSON:
		return a.answerJSON(ctx, c, prompt)
	}
	return a.answer(ctx, c, prompt)
}

// answerer is the model: of a server that has it loaded, else of this process.
func (a *app) answerer(ctx context.Context, name string, spec chat.Spec, f *runFlags) (answerer, error) {
	if t := a.askServer(ctx, name, spec, f); t != nil {
		return t, nil
	}
	if f.keepAlive.set {
		a.note("--keep-alive has no effect: no server has the model loaded, and this process ends")
	}
	svc, err := a.openChat(ctx, spec)
	if err != nil {
		return nil, err
	}
	h, err := newHere(ctx, svc)
	if err != nil {
		return nil, err
	}
	h.alone = true
	return h, nil
}

// answer streams one answer to standard output; what a model reasons before stands on standard error.
func (a *app) answer(ctx context.Context, c *conversation, prompt string) error {
	last := ""
	reasoning := &aside{a: a}
	defer reasoning.end()
	got, err := c.to.answer(ctx, c.request(prompt), func(isReasoning bool, text string) error {
		if isReasoning {
			if !c.f.hideThinking {
				reasoning.write(text)
			}
			return nil
		}
		reasoning.end()
		last = text
		_, err := io.WriteString(a.io.Out, a.printable(text))
		return err
	})
	reasoning.end()
	if err == nil || last != "" {
		if !strings.HasSuffix(last, "\n") {
			fmt.Fprintln(a.io.Out)
		}
	}
	return a.ended(c, got, err)
}

// ended says what cut an answer short, and what it took where that is wanted.
func (a *app) ended(c *conversation, got answered, err error) error {
	if c.f.showStats && got.usage.Total > 0 {
		a.note("%s", got.stats(c.f.loaded))
	}
	if err == nil && got.end == chat.Length {
		a.note("%s", c.cutOff(got))
	}
	return err
}

// printable keeps a model from steering the terminal: control characters other than line breaks and tabs are left
// out there. Files and pipes get every byte.
func (a *app) printable(s string) string {
	if !a.io.OutTTY {
		return s
	}
	return withoutControls(s)
}

func withoutControls(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return -1
		}
		return r
	}, s)
}

// runResult is what "run --json" prints.
type runResult struct {
	Model     string  `json:"model"`
	Text      string  `json:"text"`                // of the answer
	Reasoning string  `json:"reasoning,omitempty"` // before it
	Tokens    []int32 `json:"tokens"`              // of both
	Finish    string  `json:"finish"`              // "stop" or "length"
	Usage     struct {
		Prompt    int `json:"prompt_tokens"`
		Cached    int `json:"cached_tokens"`
		Generated int `json:"generated_tokens"`
		Reasoning int `json:"reasoning_tokens,omitempty"` // of the generated ones
	} `json:"usage"`
	Seed    uint64  `json:"seed"`
	LoadMS  float64 `json:"load_ms"`
	FirstMS float64 `json:"first_token_ms"`
	TotalMS float64 `json:"total_ms"`
}

func (a *app) answerJSON(ctx context.Context, c *conversation, prompt string) error {
	got, err := c.to.answer(ctx, c.request(prompt), func(bool, string) error { return nil })
	if err := a.ended(c, got, err); err != nil {
		return err
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	u := got.usage
	r := runResult{
		Model:     c.about.Info.Name,
		Text:      got.text,
		Reasoning: got.reasoning,
		Tokens:    got.tokens,
		Finish:    "stop",
		Seed:      u.Seed,
	}
	if got.end == chat.Length {
		r.Finish = "length"
	}
	r.Usage.Prompt, r.Usage.Cached, r.Usage.Generated, r.Usage.Reasoning = u.Prompt, u.Cached, u.Generated, u.Reasoning
	r.LoadMS, r.FirstMS, r.TotalMS = ms(c.f.loaded), ms(u.First), ms(u.Total)
	return a.writeJSON(r)
}

// value is what p points to, or zero.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
