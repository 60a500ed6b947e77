// Command classify sorts text files into classes with a model. It is an example of the library; see README.md
// beside it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"strings"
	"sync"

	"github.com/baleenrun/baleen"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A result is a line of the output.
type result struct {
	File        string  `json:"file"`
	Class       string  `json:"class,omitempty"`
	Probability float64 `json:"probability,omitempty"` // of the class, among the classes
	Cut         bool    `json:"cut,omitempty"`         // only the file's beginning was read
	Error       string  `json:"error,omitempty"`
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("classify", flag.ContinueOnError)
	name := flags.String("model", baleen.DefaultModel, "name of a model, a file, or a folder")
	list := flags.String("classes", "", "names of the classes, with commas between them; at most 26")
	if err := flags.Parse(args); err != nil {
		return err
	}
	classes := strings.Split(*list, ",")
	if *list == "" || len(classes) > 26 || flags.NArg() == 0 {
		return errors.New("usage: classify [-model NAME] -classes A,B,C FILE [FILE]")
	}
	options, err := baleen.FromEnv()
	if err != nil {
		return err
	}
	options.Pip = true // it may fetch the default model where Hugging Face cannot be reached
	model, err := baleen.Open(ctx, *name, options)
	if err != nil {
		return err
	}
	defer model.Close()
	c, err := newClassifier(model, classes)
	if err != nil {
		return err
	}
	results := make([]result, flags.NArg())
	limit := make(chan struct{}, 8) // the model runs so many at once; more would only wait
	var wg sync.WaitGroup
	for i, file := range flags.Args() {
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			results[i] = c.classify(ctx, file)
		})
	}
	wg.Wait()
	enc := json.NewEncoder(out)
	for _, r := range results {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// A classifier asks for a letter and allows nothing else.
type classifier struct {
	model   *baleen.Model
	classes []string
	letters []int32 // the token of each class's letter
	params  baleen.Params
	begin   string // of every prompt
}

func newClassifier(m *baleen.Model, classes []string) (*classifier, error) {
	c := &classifier{model: m, classes: classes}
	var b strings.Builder
	b.WriteString("Sort the text into one of these classes:\n")
	bias := map[int32]float32{}
	for i, class := range classes {
		letter := string(rune('A' + i))
		fmt.Fprintf(&b, "%s) %s\n", letter, strings.TrimSpace(class))
		ids, err := m.Tokenize(letter)
		if err != nil {
			return nil, err
		}
		if len(ids) != 1 {
			return nil, fmt.Errorf("the model has no token for the letter %s", letter)
		}
		c.letters = append(c.letters, ids[0])
		bias[ids[0]] = 1000 // nothing else is ever as probable
	}
	b.WriteString("Answer with the letter alone.\n\nText:\n")
	c.begin = b.String()
	c.params = baleen.Params{
		MaxTokens: 1, Temperature: new(0.0), LogitBias: bias, TopLogProbs: 100, Thinking: new(false),
	}
	if !m.Info().Thinks {
		c.params.Thinking = nil // models that do not think have no switch for it
	}
	return c, nil
}

// classify reads a file and asks about it. What is too long is halved until it fits.
func (c *classifier) classify(ctx context.Context, file string) result {
	r := result{File: file}
	b, err := os.ReadFile(file)
	if err != nil {
		r.Error = err.Error()
		return r
	}
	text := strings.ToValidUTF8(string(b), "\uFFFD")
	for {
		messages := []baleen.Message{baleen.UserMessage(c.begin + text)}
		answer, err := baleen.Collect(c.model.Chat(ctx, messages, &c.params))
		var long *baleen.PromptTooLongError
		switch {
		case errors.As(err, &long) && len(text) > 1:
			text = strings.ToValidUTF8(text[:len(text)/2], "")
			r.Cut = true
			continue
		case err != nil:
			r.Error = err.Error()
		case len(answer.IDs) != 1:
			r.Error = "the model gave no letter"
		default:
			r.Class, r.Probability = c.read(answer)
		}
		return r
	}
}

// read turns the letter into its class, and the log probabilities of the letters into how sure that is.
func (c *classifier) read(a baleen.Answer) (class string, probability float64) {
	p := map[int32]float64{}
	for _, t := range a.Tokens {
		p[t.ID] = math.Exp(float64(t.LogProb))
		for _, other := range t.Top {
			p[other.ID] = math.Exp(float64(other.LogProb))
		}
	}
	sum := 0.0
	for i, id := range c.letters {
		sum += p[id]
		if id == a.IDs[0] {
			class, probability = strings.TrimSpace(c.classes[i]), p[id]
		}
	}
	if sum == 0 { // all letters were improbable beyond what a float32 holds
		return class, 0
	}
	return class, probability / sum
}
