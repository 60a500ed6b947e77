package cli

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/config"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/sample"
)

// modelOptions are what the settings say about opening a model.
func (a *app) modelOptions() model.Options {
	return model.Options{
		Device:  a.cfg.String(config.Device),
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

// loading shows how far a model is loaded, if that takes long enough to be asked.
type loading struct {
	a     *app
	began time.Time

	mu      sync.Mutex
	percent int64 // that is shown, 0 while nothing is
	over    bool  // nothing is shown any more, whoever still reports
}

func (l *loading) set(done, total int64) {
	percent := done * 100 / max(total, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over || percent <= l.percent || time.Since(l.began) < 400*time.Millisecond {
		return
	}
	l.percent = percent
	fmt.Fprintf(l.a.io.Err, "\rLoading %d %%", percent)
}

func (l *loading) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over = true; l.percent > 0 {
		const longest = "Loading 100 %"
		fmt.Fprint(l.a.io.Err, "\r"+strings.Repeat(" ", len(longest))+"\r")
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
}

func (s *sampling) register(cmd *cobra.Command) {
	s.flags = cmd
	f := cmd.Flags()
	f.IntVarP(&s.maxTokens, "max-tokens", "n", 0, "most tokens to generate (default: until the context is full)")
	f.Float32Var(
		&s.temperature,
		"temperature",
		0,
		"0 always takes the most probable token; higher is more varied (default: the model's own)",
	)
	f.IntVar(&s.topK, "top-k", 0, "choose among the k most probable tokens (default: the model's own)")
	f.Float32Var(
		&s.topP,
		"top-p",
		0,
		"choose among the most probable tokens that reach p together (default: the model's own)",
	)
	f.Float32Var(
		&s.minP,
		"min-p",
		0,
		"drop tokens with less than p times the best one's probability (default: the model's own)",
	)
	f.Float32Var(
		&s.repetitionPenalty,
		"repetition-penalty",
		0,
		"make recent tokens less probable; 1 is off (default: the model's own)",
	)
	f.Uint64VarP(&s.seed, "seed", "s", 0, "the same seed gives the same answer (default: a random one)")
}

// check refuses values that cannot be, before anything is loaded.
func (s *sampling) check() error {
	p := sample.Params{
		Temperature:       s.temperature,
		TopK:              s.topK,
		TopP:              s.topP,
		MinP:              s.minP,
		RepetitionPenalty: s.repetitionPenalty,
	}
	switch {
	case s.maxTokens == -1 || s.maxTokens == -2: // as llama.cpp and Ollama have it
		s.maxTokens = 0
	case s.maxTokens < 0:
		return usagef("--max-tokens is %d, want 0 or more", s.maxTokens)
	}
	err := p.Validate()
	var e *sample.ParamError
	if errors.As(err, &e) {
		return usagef("--%s is %v, want %s", strings.ReplaceAll(e.Name, "_", "-"), e.Value, e.Want)
	}
	return err
}

// chosen is what the flags say; what they leave out is the model's to say.
func (s *sampling) chosen() chat.Sampling {
	var c chat.Sampling
	flags := s.flags.Flags()
	for name, f := range map[string]struct {
		from float32
		to   **float32
	}{
		"temperature": {s.temperature, &c.Temperature}, "top-p": {s.topP, &c.TopP}, "min-p": {s.minP, &c.MinP},
		"repetition-penalty": {s.repetitionPenalty, &c.RepetitionPenalty},
	} {
		if flags.Changed(name) {
			*f.to = new(f.from)
		}
	}
	if flags.Changed("top-k") {
		c.TopK = new(s.topK)
	}
	if flags.Changed("seed") {
		c.Seed = new(s.seed)
	}
	return c
}

// offValues are what switches a flag off, where leaving it out leaves it to the model.
var offValues = map[string]string{
	"temperature":        "0",
	"top-p":              "1",
	"top-k":              "0",
	"min-p":              "0",
	"repetition-penalty": "1",
	"max-tokens":         "0",
}

// set changes a flag while a chat goes on. A value that cannot be leaves it as it was.
func (s *sampling) set(name, value string) error {
	flag := s.flags.Flags().Lookup(name)
	if value == "default" || value == "random" && name == "seed" {
		flag.Changed = false
		return flag.Value.Set(flag.DefValue)
	}
	if off, ok := offValues[name]; ok && value == "off" {
		value = off
	}
	old, changed := flag.Value.String(), flag.Changed
	err := s.flags.Flags().Set(name, value)
	if err == nil {
		err = s.check()
	}
	if err != nil {
		_ = flag.Value.Set(old)
		flag.Changed = changed
		return flagError(err)
	}
	return nil
}
