package baleen_test

import (
	"context"
	"fmt"
	"log"

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
	fmt.Println(len(ids))
	fmt.Println(model.Detokenize(ids))
	// Output:
	// 13
	// hello <|endoftext|>
}

func ExampleModel_Generate() {
	model := open()
	defer model.Close()
	var first, second []int32
	for _, tokens := range []*[]int32{&first, &second} {
		for chunk, err := range model.Generate(context.Background(), "Once upon a time", &baleen.Params{MaxTokens: 8}) {
			if err != nil {
				log.Fatal(err)
			}
			if chunk.Finish == "" {
				*tokens = append(*tokens, chunk.Token)
			} else {
				fmt.Println(chunk.Finish, chunk.Usage.Prompt, chunk.Usage.Generated)
			}
		}
	}
	fmt.Println("the same again:", fmt.Sprint(first) == fmt.Sprint(second))
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
		_, usage, err := baleen.Text(session.Send(context.Background(), text, &baleen.Params{MaxTokens: 4}))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("something was cached:", usage.Cached > 0, "something was new:", usage.Cached < usage.Prompt)
	}
	fmt.Println(len(session.Messages()), "messages")
	// Output:
	// something was cached: false something was new: true
	// something was cached: true something was new: true
	// 5 messages
}
