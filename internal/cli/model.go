package cli

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/config"
	"github.com/baleenrun/baleen/internal/engine"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/sample"
)

// modelOptions are what the settings say about opening a model.
func (a *app) modelOptions() model.Options {
	return model.Options{
		Threads: a.cfg.Int(config.Threads),
		CPU:     a.cfg.CPULimit(),
		KV:      kvType(a.cfg.String(config.KV)),
		Context: a.cfg.Int(config.Context),
	}
}

func kvType(name string) backend.KVType {
	if name == "f32" {
		return backend.KVF32
	}
	return backend.KVF16
}

// open opens a model that was located, and shows on a terminal that it loads.
func (a *app) open(ctx context.Context, path string, o model.Options) (*model.Model, error) {
	if a.io.ErrTTY {
		l := &loading{a: a, began: time.Now()}
		o.Progress = l.set
		defer l.clear()
	}
	return model.Open(ctx, path, o)
}

// loading shows how far a model is loaded, if that takes long enough to be asked.
type loading struct {
	a     *app
	began time.Time
	shown atomic.Bool
	last  atomic.Int64 // percent
}

func (l *loading) set(done, total int64) {
	percent := done * 100 / max(total, 1)
	if time.Since(l.began) < 400*time.Millisecond || l.last.Swap(percent) == percent {
		return
	}
	l.shown.Store(true)
	fmt.Fprintf(l.a.io.Err, "\rLoading %d %%", percent)
}

func (l *loading) clear() {
	if l.shown.Load() {
		fmt.Fprint(l.a.io.Err, "\r            \r")
	}
}

// sampling are the flags that say how tokens are chosen.
type sampling struct {
	maxTokens         int
	temperature       float32
	topK              int
	topP, minP        float32
	repetitionPenalty float32
	seed              uint64
	flags             *cobra.Command

	// Without flags: of models that say so.
	typicalP, presencePenalty, frequencyPenalty float32
	repeatLastN                                 int
	stop                                        []string
}

func (s *sampling) register(cmd *cobra.Command) {
	s.flags = cmd
	f := cmd.Flags()
	f.IntVarP(&s.maxTokens, "max-tokens", "n", 0, "most tokens to generate (default: until the context is full)")
	f.Float32VarP(&s.temperature, "temperature", "t", 0, "0 always takes the most probable token; higher is more varied (default: 0)")
	f.IntVar(&s.topK, "top-k", 0, "choose among the k most probable tokens (default: all)")
	f.Float32Var(&s.topP, "top-p", 0, "choose among the most probable tokens that reach p together (default: all)")
	f.Float32Var(&s.minP, "min-p", 0, "drop tokens with less than p times the best one's probability (default: none)")
	f.Float32Var(&s.repetitionPenalty, "repetition-penalty", 0, "make recent tokens less probable; 1 is off (default: off)")
	f.Uint64Var(&s.seed, "seed", 0, "the same seed gives the same answer (default: a random one)")
}

func (s *sampling) params() (sample.Params, error) {
	p := sample.Params{
		Temperature: s.temperature, TopK: s.topK, TopP: s.topP, MinP: s.minP, RepetitionPenalty: s.repetitionPenalty,
		Seed: s.seed, HasSeed: s.flags.Flags().Changed("seed"),
		TypicalP: s.typicalP, PresencePenalty: s.presencePenalty, FrequencyPenalty: s.frequencyPenalty, RepeatLastN: s.repeatLastN,
	}
	if s.maxTokens < 0 {
		return p, usagef("--max-tokens is %d, want 0 or more", s.maxTokens)
	}
	if err := p.Validate(); err != nil {
		return p, usageError{err}
	}
	return p, nil
}

func (s *sampling) request(tokens []int32) (*engine.Request, error) {
	p, err := s.params()
	return &engine.Request{Tokens: tokens, MaxTokens: s.maxTokens, Sampling: p, Stop: s.stop}, err
}

// stats writes what a request took.
func (a *app) stats(u engine.Usage, loaded time.Duration, sampled bool) {
	a.note("%s", statsText(u, loaded, sampled))
}

func statsText(u engine.Usage, loaded time.Duration, sampled bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "prompt %s", counted(u.Prompt, "token"))
	if u.Cached > 0 {
		fmt.Fprintf(&b, " (%d from the cache)", u.Cached)
	}
	if computed := u.Prompt - u.Cached; computed > 0 && u.First > u.Queue {
		fmt.Fprintf(&b, ", %.0f tokens/s", float64(computed)/(u.First-u.Queue).Seconds())
	}
	fmt.Fprintf(&b, "; answer %s", counted(u.Generated, "token"))
	if u.Generated > 1 && u.Total > u.First {
		fmt.Fprintf(&b, ", %.1f tokens/s", float64(u.Generated-1)/(u.Total-u.First).Seconds())
	}
	fmt.Fprintf(&b, "; first token after %s", u.First.Round(time.Millisecond))
	if loaded > 0 {
		fmt.Fprintf(&b, ", loading took %s", loaded.Round(time.Millisecond))
	}
	if sampled {
		fmt.Fprintf(&b, "; seed %d", u.Seed)
	}
	return b.String()
}

// cutOff says what ended an answer that the model had not ended.
func (a *app) cutOff(ev engine.Event, s *sampling, m *model.Model) string {
	if s.maxTokens > 0 && ev.Usage.Generated >= s.maxTokens {
		return fmt.Sprintf("the answer was cut off after %d tokens (--max-tokens)", ev.Usage.Generated)
	}
	return fmt.Sprintf("the answer was cut off: the context of %d tokens is full (--context makes it larger)", m.Context)
}

// finished turns the last event of a stream into an error, and says what cut an answer short.
func (a *app) finished(ev engine.Event, s *sampling, m *model.Model) error {
	switch ev.Reason {
	case engine.FinishLength:
		a.note("%s", a.cutOff(ev, s, m))
	case engine.FinishCancelled:
		return context.Canceled // whoever stopped it knows why
	case engine.FinishError:
		return ev.Err
	}
	return nil
}
