// Command compareservers measures "baleen serve" and llama-server in turns on the same file, as a client sees them:
// scripts/compare-servers runs it. It knows both servers' command lines and OpenAI's API, and nothing of the engine.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"
)

const usage = `usage: scripts/compare-servers [flags] BALEEN LLAMA_SERVER MODEL.gguf

Measures "baleen bench", "baleen serve" and llama-server in turns. LLAMA_SERVER may be - to leave it out.
`

// settings say what is measured.
type settings struct {
	baleen, llama, model string

	turns, threads, streams, context, generate int
	rounds, again                              int
	rates                                      string
	mixed                                      int
	starts, tries                              int
	prefix                                     string
}

func main() {
	var s settings
	f := flag.CommandLine
	f.IntVar(&s.turns, "turns", 2, "turns of all servers")
	f.IntVar(&s.threads, "threads", 2, "threads of each server")
	f.IntVar(&s.streams, "streams", 8, "clients at once")
	f.IntVar(&s.context, "context", 4096, "tokens that a request can have")
	f.IntVar(&s.generate, "generate", 128, "tokens of an answer")
	f.IntVar(&s.rounds, "rounds", 4, "rounds of all clients at once, in each turn")
	f.IntVar(&s.again, "again", 3, "requests of each client one after the other, in each turn; 0: none")
	f.StringVar(
		&s.rates,
		"rates",
		"0.15,0.6",
		"requests a second that arrive at random, separated by commas; empty: none",
	)
	f.IntVar(&s.mixed, "mixed", 24, "requests of each such load, in each turn")
	f.IntVar(&s.starts, "starts", 3, "starts of each server, in each turn")
	f.IntVar(&s.tries, "tries", 3, "measurements of which the least disturbed by other programs counts")
	f.StringVar(&s.prefix, "prefix", "", `command that starts servers, such as "chrt -r 3"`)
	f.Usage = func() { fmt.Fprint(f.Output(), usage); f.PrintDefaults() }
	flag.Parse()
	if flag.NArg() != 3 {
		f.Usage()
		os.Exit(2)
	}
	s.baleen, s.llama, s.model = flag.Arg(0), flag.Arg(1), flag.Arg(2)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := s.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "compare-servers:", err)
		os.Exit(1)
	}
}

func (s *settings) peers() []*peer {
	before := strings.Fields(s.prefix)
	command := func(c ...string) []string { return append(append([]string(nil), before...), c...) }
	n := strconv.Itoa
	list := []*peer{{"Baleen", func(port int) []string {
		return command(
			s.baleen,
			"serve",
			"--model",
			s.model,
			"--port",
			n(port),
			"--threads",
			n(s.threads),
			"--context",
			n(s.context),
			"--parallel",
			n(s.streams),
		)
	}, "/readyz"}}
	if s.llama != "-" {
		list = append(list, &peer{"llama-server", func(port int) []string {
			return command(
				s.llama,
				"-m",
				s.model,
				"--host",
				"127.0.0.1",
				"--port",
				n(port),
				"-t",
				n(s.threads),
				"-tb",
				n(s.threads),
				"-c",
				n(s.context*s.streams),
				"-np",
				n(s.streams),
			)
		}, "/health"})
	}
	return list
}

func (s *settings) run(ctx context.Context) error {
	var rates []float64
	for _, t := range strings.FieldsFunc(s.rates, func(r rune) bool { return r == ',' }) {
		v, err := strconv.ParseFloat(t, 64)
		if err != nil || v <= 0 {
			return fmt.Errorf("-rates %q: want positive numbers", s.rates)
		}
		rates = append(rates, v)
	}
	r := newReport()
	for turn := range s.turns {
		for _, p := range s.peers() {
			note("turn %d: %s", turn+1, p.name)
			if err := s.measure(ctx, p, uint64(turn), rates, r); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			if p.name == "Baleen" {
				f := r.of(p.name).phases[allAtOnce][turn]
				depth := f.prompts / f.requests
				if err := s.bench(ctx, depth, r); err != nil {
					return err
				}
			}
		}
	}
	r.print(os.Stdout)
	return nil
}

func note(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// What "baleen bench" generates for each stream, and behind how many tokens.
const (
	benchDepth    = 16
	benchGenerate = 64
)

// oneToken is the prompt whose first token is compared with the engine's.
const oneToken = 64

// measure runs all phases on one server.
func (s *settings) measure(ctx context.Context, p *peer, turn uint64, rates []float64, r *report) error {
	o := r.of(p.name)
	for i := range s.starts {
		if err := s.startOnce(ctx, p, 1000*turn+uint64(i)+900, o); err != nil {
			return err
		}
	}
	srv, err := p.start(ctx)
	if err != nil {
		return err
	}
	defer srv.stop()
	if err := s.phases(ctx, srv, turn, rates, o, r); err != nil {
		select {
		case <-srv.exited:
			return fmt.Errorf("%w; the server ended: %s", err, srv.log.String())
		default:
			return err
		}
	}
	o.busy = append(o.busy, srv.memory())
	before := srv.cpu()
	if err := sleep(ctx, idleTime); err != nil {
		return err
	}
	o.resting = append(o.resting, 100*(srv.cpu()-before).Seconds()/idleTime.Seconds())
	return nil
}

// startOnce measures a new process up to its first token.
func (s *settings) startOnce(ctx context.Context, p *peer, seed uint64, o *outcome) error {
	srv, err := p.start(ctx)
	if err != nil {
		return err
	}
	defer srv.stop()
	idle := srv.memory()
	a, err := srv.ask(ctx, newAsker(seed, 0, srv.name).tokens(16))
	if err != nil {
		return err
	}
	o.ready, o.idle = append(o.ready, ms(srv.ready)), append(o.idle, idle)
	o.start = append(o.start, ms(srv.ready+a.first()))
	return nil
}

// disturbed is the percentage of the time from which on other programs have disturbed a measurement: it is repeated.
// Client and server take turns on the same processors, so it is never 0.
const disturbed = 20

// The phases that others refer to.
const (
	shortAtOnce = "short prompts at once"
	allAtOnce   = "all at once"
)

func (s *settings) phases(ctx context.Context, c *server, turn uint64, rates []float64, o *outcome, r *report) error {
	k := newAsker(1000*turn, 0, c.name)
	for i := range 24 {
		a, err := c.ask(ctx, k.tokens(oneToken))
		if err != nil {
			return err
		}
		if i >= 4 { // the first warm up
			o.single = append(o.single, ms(a.first()))
		}
	}
	phases := uint64(0)
	phase := func(name string, f func(k *asker, l *load) error) error {
		phases++
		var best figures
		least := math.Inf(1)
		for try := range s.tries {
			var l load
			waited, begin := c.waited(), time.Now()
			if err := f(newAsker(1000*turn+phases, uint64(try), c.name), &l); err != nil {
				return err
			}
			share := 100 * (c.waited() - waited).Seconds() / time.Since(begin).Seconds()
			note("  %s: %v (its threads waited for processors for %.0f %% of the time)", name, l.figures(), share)
			if share < least {
				least, best = share, l.figures()
			}
			if share <= disturbed {
				break
			}
		}
		o.phases[name] = append(o.phases[name], best)
		if !slices.Contains(r.order, name) {
			r.order = append(r.order, name)
		}
		return nil
	}
	rounds := func(make func(k *asker, i int) ask) func(k *asker, l *load) error {
		return func(k *asker, l *load) error {
			for range s.rounds {
				var asks []ask
				for i := range s.streams {
					asks = append(asks, make(k, i))
				}
				one, err := round(ctx, c.client, asks)
				if err != nil {
					return err
				}
				l.add(one)
			}
			return nil
		}
	}
	if err := phase(shortAtOnce, rounds(func(k *asker, _ int) ask { return k.story(benchGenerate) })); err != nil {
		return err
	}
	if err := phase(allAtOnce, rounds(func(k *asker, i int) ask { return k.chat(50+250*i/max(s.streams-1, 1), s.generate) })); err != nil {
		return err
	}
	if s.again > 0 {
		err := phase("closed loop", func(k *asker, l *load) (err error) {
			asks := make([][]ask, s.streams)
			for i := range asks {
				for range s.again {
					asks[i] = append(asks[i], k.chat(50+k.sizes.IntN(250), s.generate))
				}
			}
			*l, err = closed(ctx, c.client, asks)
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, rate := range rates {
		err := phase(fmt.Sprintf("%g a second", rate), func(k *asker, l *load) (err error) {
			*l, err = open(ctx, c.client, k.arrivals(s.mixed, rate, s.generate/2))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// bench asks "baleen bench" for the engine's figures, as it is and at the depth of the rounds.
func (s *settings) bench(ctx context.Context, depth int, r *report) error {
	for i, x := range [][2]int{{benchDepth, benchGenerate}, {depth, s.generate}} {
		c := append(
			strings.Fields(s.prefix),
			s.baleen,
			"bench",
			s.model,
			"--prompt",
			strconv.Itoa(oneToken),
			"--depth",
			strconv.Itoa(x[0]),
			"--generate",
			strconv.Itoa(x[1]),
			"--streams",
			strconv.Itoa(s.streams),
			"--threads",
			strconv.Itoa(s.threads),
			"--reps",
			"5",
			"--json",
		)
		out, err := exec.CommandContext(ctx, c[0], c[1:]...).Output()
		if err != nil {
			var failed *exec.ExitError
			if errors.As(err, &failed) {
				return fmt.Errorf("baleen bench: %w: %s", err, failed.Stderr)
			}
			return fmt.Errorf("baleen bench: %w", err)
		}
		var v struct {
			Aggregate map[string]float64 `json:"aggregate_tps"`
			Prefill   float64            `json:"prefill_tps"`
		}
		if err := json.Unmarshal(out, &v); err != nil {
			return fmt.Errorf("baleen bench: %w", err)
		}
		r.engine[i] = append(r.engine[i], v.Aggregate[strconv.Itoa(s.streams)])
		r.first = append(r.first, 1000*oneToken/v.Prefill)
		note("  engine, %d streams at depth %d: %.1f tokens/s", s.streams, x[0], v.Aggregate[strconv.Itoa(s.streams)])
	}
	r.depth = depth
	return nil
}
