package baleen_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"slices"
	"strings"

	"github.com/baleenrun/baleen"
)

// open opens the tiny model of these examples; give baleen.DefaultModel or a path of your own instead.
func open() *baleen.Model {
	model, err := baleen.Open(context.Background(), tinyModel(), &baleen.Options{Threads: 1})
	if err != nil {
		log.Fatal(err)
	}
	return model
}

// A conversation with the default model, which is fetched the first time.
func Example() {
	ctx := context.Background()
	model, err := baleen.Open(ctx, baleen.DefaultModel, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	session := model.NewSession("Answer in one sentence.")
	for chunk, err := range session.Send(ctx, "What is the capital of France?", nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(chunk.Text)
	}
}

func ExampleModel_Info() {
	model := open()
	defer model.Close()
	info := model.Info()
	fmt.Println(info.Family, info.Quantization, info.Vocabulary, info.Context, info.Chat)
	// Output: llama Q8_0 1024 2048 true
}

func ExampleModel_Tokenize() {
	model := open()
	defer model.Close()
	ids, err := model.Tokenize("hello <|endoftext|>") // written out, it is no control token
	if err != nil {
		log.Fatal(err)
	}
	text, err := model.Detokenize(ids)
	fmt.Println(len(ids), text, err)
	// Output:
	// 13 hello <|endoftext|> <nil>
}

// Temperature 0 takes the most probable token, always.
func ExampleModel_Generate() {
	model := open()
	defer model.Close()
	greedy := &baleen.Params{MaxTokens: 8, Temperature: new(0.0)}
	var answers []baleen.Answer
	for range 2 {
		answer, err := baleen.Collect(model.Generate(context.Background(), "Once upon a time", greedy))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(answer.Finish, answer.Usage.Prompt, answer.Usage.Generated)
		answers = append(answers, answer)
	}
	fmt.Println("the same again:", slices.Equal(answers[0].IDs, answers[1].IDs))
	// Output:
	// length 10 8
	// length 10 8
	// the same again: true
}

// A session computes only what is new: what was said before is found in the cache.
func ExampleSession_Send() {
	model := open()
	defer model.Close()
	session := model.NewSession("You count.")
	for _, text := range []string{"one two three four five six seven", "eight"} {
		answer, err := baleen.Collect(session.Send(context.Background(), text, &baleen.Params{MaxTokens: 4}))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(
			"something was cached:",
			answer.Usage.Cached > 0,
			"something was new:",
			answer.Usage.Cached < answer.Usage.Prompt,
		)
	}
	fmt.Println(len(session.Messages()), "messages")
	// Output:
	// something was cached: false something was new: true
	// something was cached: true something was new: true
	// 5 messages
}

// Errors have types with what belongs to them.
func ExamplePromptTooLongError() {
	model := open()
	defer model.Close()
	_, err := baleen.Text(model.Generate(context.Background(), strings.Repeat("word ", 3000), nil))
	var long *baleen.PromptTooLongError
	if errors.As(err, &long) {
		fmt.Println(long.Tokens > long.Context, long.Context)
	}
	// Output: true 2048
}

// Two models share the memory, and a server on a path of its own answers with both.
func ExampleRuntime() {
	runtime, err := baleen.NewRuntime(&baleen.Options{Threads: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer runtime.Close()
	model, err := runtime.Open(context.Background(), tinyModel())
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	api, err := runtime.Handler(baleen.ServerOptions{})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/ai/", http.StripPrefix("/ai", api))
	used, limit := runtime.Memory()
	fmt.Println(len(runtime.Loaded()), used > 0, limit > used)
	// Output: 1 true true
}

// An answer that is a value of a Go type. The tiny model of these examples has nothing to say; what it says fits.
func ExampleInto() {
	model := open()
	defer model.Close()
	type Review struct {
		Mood  string `json:"mood"`
		Stars int8   `json:"stars" jsonschema:"from 1 to 5"`
	}
	review, err := baleen.Into[Review](context.Background(), model, []baleen.Message{
		baleen.UserMessage(`Review this as JSON with "mood" and "stars": The food was great!`),
	}, &baleen.Params{Schema: []byte(`{"type": "object", "required": ["mood", "stars"], "additionalProperties": false,
		"properties": {"mood": {"enum": ["good", "bad"]}, "stars": {"enum": [1, 2, 3, 4, 5]}}}`)})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(review.Mood == "good" || review.Mood == "bad", 1 <= review.Stars && review.Stars <= 5)
	// Output: true true
}
