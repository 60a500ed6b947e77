package baleen_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/baleenrun/baleen"
)

// TestRealModels uses models of this user's store, two in one Runtime.
func TestRealModels(t *testing.T) {
	if os.Getenv("BALEEN_TEST_MODELS") == "" {
		t.Skip("BALEEN_TEST_MODELS is not set")
	}
	o, err := baleen.FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	o.Context = 2048
	r, err := baleen.NewRuntime(o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	open := func(name string) *baleen.Model {
		t.Helper()
		m, err := r.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	qwen, smol := open("qwen2.5-coder-0.5b"), open("smollm2-135m")
	t.Run("two models answer each other", func(t *testing.T) {
		said := "Name one animal that lives in the sea."
		for _, m := range []*baleen.Model{qwen, smol, qwen} {
			a, err := baleen.Collect(m.Chat(t.Context(), []baleen.Message{baleen.UserMessage(said)}, greedy(24)))
			if err != nil || a.Text == "" {
				t.Fatalf("%+v, %v", a, err)
			}
			said = a.Text
		}
	})
	t.Run("a session goes on from a file, its prefix in the cache", func(t *testing.T) {
		s := qwen.NewSession("You are terse.")
		first, err := baleen.Collect(s.Send(t.Context(), "My name is Ada. Say hello.", greedy(24)))
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if err := s.Save(&file); err != nil {
			t.Fatal(err)
		}
		loaded, err := qwen.LoadSession(&file)
		if err != nil {
			t.Fatal(err)
		}
		a, err := baleen.Collect(loaded.Send(t.Context(), "What is my name?", greedy(24)))
		if err != nil || !strings.Contains(a.Text, "Ada") {
			t.Errorf("%q, %v", a.Text, err)
		}
		if least := first.Usage.Prompt + first.Usage.Generated - 2; a.Usage.Cached < least {
			t.Errorf("%d tokens of %d came from the cache, want %d", a.Usage.Cached, a.Usage.Prompt, least)
		}
	})
	t.Run("a tool that must be called is run", func(t *testing.T) {
		var got string
		weather := baleen.Tool{
			Name: "get_weather", Description: "Tells the weather of a city.",
			Parameters: json.RawMessage(
				`{"type":"object","required":["city"],"properties":{"city":{"type":"string"}}}`,
			),
			Func: func(_ context.Context, args json.RawMessage) (string, error) {
				got = string(args)
				return "7 degrees and rain", nil
			},
		}
		p := greedy(100)
		p.Tools, p.Conclude, p.MaxToolRounds = []baleen.Tool{weather}, true, 2
		a, err := baleen.Collect(qwen.NewSession("").Send(t.Context(), "What is the weather in Bergen?", p))
		if err != nil || !strings.Contains(got, "Bergen") || !strings.Contains(a.Text, "7") {
			t.Errorf("called with %s, answered %q, %v", got, a.Text, err)
		}
	})
	t.Run("a gap in code is filled", func(t *testing.T) {
		p := greedy(16)
		p.Stop = []string{"\n"}
		a, err := baleen.Collect(qwen.FillIn(t.Context(), "func add(a, b int) int {\n\treturn ", "\n}\n", p))
		if err != nil || !strings.Contains(a.Text, "a + b") {
			t.Errorf("%+v, %v", a, err)
		}
	})
}
