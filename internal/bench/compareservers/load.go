package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// The words of prompts: common ones, mostly one token each.
var words = strings.Fields(`time year people way day man thing woman life child world school state family student group
country problem hand part place case week company system program question work government number night point home water
room mother area money story fact month lot right study book eye job word business issue side kind head house service
friend father power hour game line end member law car city community name president team minute idea body information
back parent face others level office door health person art war history party result change morning reason research`)

// asker makes requests. Their sizes and times are those of every asker with the same seed, their words those of every
// one with the same seed and try: a measurement that is repeated finds nothing in a cache.
type asker struct {
	sizes, rng *rand.Rand
	model      string
}

func newAsker(seed, try uint64, model string) *asker {
	return &asker{rand.New(rand.NewPCG(seed, 7)), rand.New(rand.NewPCG(seed, 1000+try)), model}
}

// chat asks for a long text behind a prompt of about so many tokens.
func (k *asker) chat(prompt, generate int) ask {
	var b strings.Builder
	for range max(prompt-60, 4) { // the rest is the template's and the question
		b.WriteString(k.word())
		b.WriteByte(' ')
	}
	text := b.String() + "\nWrite a very long story, of at least thousand words, in which these words occur."
	return ask{"/v1/chat/completions", must(json.Marshal(map[string]any{
		"model": k.model, "messages": []any{map[string]string{"role": "user", "content": text}}, "temperature": 0,
		"max_tokens": generate, "stream": true, "stream_options": map[string]bool{"include_usage": true},
	}))}
}

// story is what "baleen bench" measures as a request: a short context, and text behind it.
func (k *asker) story(generate int) ask {
	prompt := fmt.Sprintf(
		"This is a very long story about a %s, a %s and the %s of a %s. It begins in a",
		k.word(),
		k.word(),
		k.word(),
		k.word(),
	)
	return ask{"/v1/completions", must(json.Marshal(map[string]any{
		"model": k.model, "prompt": prompt, "temperature": 0, "max_tokens": generate, "stream": true,
		"stream_options": map[string]bool{"include_usage": true},
	}))}
}

func (k *asker) word() string { return words[k.rng.IntN(len(words))] }

// tokens asks for one token behind a prompt of exactly so many.
func (k *asker) tokens(prompt int) ask {
	ids := make([]int, prompt)
	for i := range ids {
		ids[i] = 300 + k.rng.IntN(700)
	}
	return ask{"/v1/completions", must(json.Marshal(map[string]any{
		"model": k.model, "prompt": ids, "temperature": 0, "max_tokens": 1, "stream": true,
		"stream_options": map[string]bool{"include_usage": true},
	}))}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err) // maps of strings and numbers
	}
	return b
}

// A load is the answers of one phase.
type load struct {
	answers []*answer
	tokens  float64       // generated in the windows that count
	window  time.Duration // of these windows together
	steady  float64       // tokens while all streams generated
	during  time.Duration
}

func (l *load) add(o load) {
	l.answers = append(l.answers, o.answers...)
	l.tokens, l.window = l.tokens+o.tokens, l.window+o.window
	l.steady, l.during = l.steady+o.steady, l.during+o.during
}

// within counts the tokens that came after from and not after to. An event may have several: all of an answer's
// events are taken to have equally many.
func (a *answer) within(from, to time.Time) float64 {
	n := 0
	for _, t := range a.at {
		if t.After(from) && !t.After(to) {
			n++
		}
	}
	return float64(n) * float64(a.tokens) / float64(len(a.at))
}

// round sends all requests at once and waits for all answers.
func round(ctx context.Context, c *client, asks []ask) (load, error) {
	answers, errs := make([]*answer, len(asks)), make([]error, len(asks))
	var wg sync.WaitGroup
	for i := range asks {
		wg.Go(func() { answers[i], errs[i] = c.ask(ctx, asks[i]) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return load{}, err
	}
	return windows(answers), nil
}

// windows measures answers to requests that were sent at once: from the first request to the last answer's end, and
// from the last answer's first piece to the first answer's last piece, while all streamed.
func windows(answers []*answer) load {
	l := load{answers: answers}
	begin, end := answers[0].begin, answers[0].end
	from, to := answers[0].at[0], answers[0].at[len(answers[0].at)-1]
	for _, a := range answers {
		begin, end = earlier(begin, a.begin), later(end, a.end)
		from, to = later(from, a.at[0]), earlier(to, a.at[len(a.at)-1])
		l.tokens += float64(a.tokens)
	}
	l.window = end.Sub(begin)
	if to.After(from) {
		l.during = to.Sub(from)
		for _, a := range answers {
			l.steady += a.within(from, to)
		}
	}
	return l
}

// closed has each client ask again as soon as it has its answer. The time counts until the first of them has no more
// to ask.
func closed(ctx context.Context, c *client, asks [][]ask) (load, error) {
	answers, errs := make([][]*answer, len(asks)), make([]error, len(asks))
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range asks {
		wg.Go(func() {
			for _, q := range asks[i] {
				a, err := c.ask(ctx, q)
				if err != nil {
					errs[i] = err
					return
				}
				answers[i] = append(answers[i], a)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return load{}, err
	}
	var l load
	end := time.Now()
	for _, list := range answers {
		l.answers = append(l.answers, list...)
		end = earlier(end, list[len(list)-1].end)
	}
	for _, a := range l.answers {
		l.tokens += a.within(begin, end)
	}
	l.window = end.Sub(begin)
	return l, nil
}

// An arrival is a request at its time.
type arrival struct {
	after time.Duration
	ask   ask
}

// arrivals are n requests at random times, at so many a second on average: three in ten have a long prompt.
func (k *asker) arrivals(n int, rate float64, generate int) []arrival {
	var out []arrival
	var at time.Duration
	for range n {
		prompt := 60 + k.sizes.IntN(140)
		if k.sizes.IntN(10) < 3 {
			prompt = 800 + k.sizes.IntN(1200)
		}
		out = append(out, arrival{at, k.chat(prompt, generate)})
		at += time.Duration(k.sizes.ExpFloat64() / rate * float64(time.Second))
	}
	return out
}

// open sends requests at their times, whether or not earlier ones have been answered.
func open(ctx context.Context, c *client, list []arrival) (load, error) {
	answers, errs := make([]*answer, len(list)), make([]error, len(list))
	begin := time.Now()
	var wg sync.WaitGroup
	for i, x := range list {
		wg.Go(func() {
			select {
			case <-time.After(time.Until(begin.Add(x.after))):
				answers[i], errs[i] = c.ask(ctx, x.ask)
			case <-ctx.Done():
				errs[i] = context.Cause(ctx)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return load{}, err
	}
	l := load{answers: answers, window: time.Since(begin)}
	for _, a := range answers {
		l.tokens += float64(a.tokens)
	}
	return l, nil
}

// figures are what a phase's clients saw.
type figures struct {
	requests, tokens, prompts int
	rate, steady              float64 // tokens per second: of everything, and while all streams generated
	first, gap                quantiles
	perEvent                  float64 // tokens
}

func (l *load) figures() (f figures) {
	var firsts, gaps []float64
	events := 0
	for _, a := range l.answers {
		firsts = append(firsts, ms(a.first()))
		for i := 1; i < len(a.at); i++ {
			gaps = append(gaps, ms(a.at[i].Sub(a.at[i-1])))
		}
		events += len(a.at)
		f.tokens += a.tokens
		f.prompts += a.prompt
	}
	f.requests = len(l.answers)
	f.rate, f.first, f.gap = l.tokens/l.window.Seconds(), quantilesOf(firsts), quantilesOf(gaps)
	f.perEvent = float64(f.tokens) / float64(events)
	if l.during > 0 {
		f.steady = l.steady / l.during.Seconds()
	}
	return f
}

func (f figures) String() string {
	return fmt.Sprintf(
		"%d requests of %d + %d tokens: %.1f tokens/s (all streaming %.1f), first %s ms, interval %s ms, %.2f "+
			"tokens an event",
		f.requests,
		f.prompts/f.requests,
		f.tokens/f.requests,
		f.rate,
		f.steady,
		f.first,
		f.gap,
		f.perEvent,
	)
}
