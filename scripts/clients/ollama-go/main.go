// Command ollama-go runs Ollama's own Go package api against the server: chat, stream, tools, generate, show, list, ps,
// a seed of 64 bits, version.
package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/ollama/ollama/api"
)

func main() {
	base, err := url.Parse(os.Getenv("BALEEN_URL"))
	if err != nil {
		panic(err)
	}
	client, model := api.NewClient(base, http.DefaultClient), os.Getenv("BALEEN_MODEL")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	failed := false
	check := func(name string, run func() error) {
		if err := run(); err != nil {
			failed = true
			fmt.Printf("FAIL %s: %v\n", name, err)
			return
		}
		fmt.Println("ok", name)
	}
	has := func(text, part string) error {
		if !strings.Contains(text, part) {
			return fmt.Errorf("%q is not in %q", part, text)
		}
		return nil
	}
	chat := func(r *api.ChatRequest) (m api.Message, err error) {
		r.Model = model
		err = client.Chat(ctx, r, func(c api.ChatResponse) error {
			m.Role, m.Content, m.Thinking = c.Message.Role, m.Content+c.Message.Content, m.Thinking+c.Message.Thinking
			m.ToolCalls = append(m.ToolCalls, c.Message.ToolCalls...)
			return nil
		})
		return m, err
	}
	user := func(text string) []api.Message { return []api.Message{{Role: "user", Content: text}} }
	check("chat", func() error {
		m, err := chat(
			&api.ChatRequest{
				Messages:  user("hi"),
				Options:   map[string]any{"seed": math.MaxInt64, "num_predict": 50.5},
				KeepAlive: &api.Duration{Duration: -1},
			},
		)
		return errors.Join(err, has(m.Content, "Hello!"))
	})
	check("thinking", func() error {
		m, err := chat(&api.ChatRequest{Messages: user("THINK"), Think: &api.ThinkValue{Value: true}})
		return errors.Join(err, has(m.Thinking, "Four words"))
	})
	check("tools", func() error {
		var tool api.Tool
		tool.Type, tool.Function.Name, tool.Function.Description = "function", "get_weather", "Weather of a city"
		tool.Function.Parameters.Type = "object"
		m, err := chat(&api.ChatRequest{Messages: user("WEATHER"), Tools: api.Tools{tool}})
		if err != nil || len(m.ToolCalls) != 1 {
			return fmt.Errorf("%v %+v", err, m)
		}
		result := api.Message{
			Role:       "tool",
			ToolName:   m.ToolCalls[0].Function.Name,
			ToolCallID: m.ToolCalls[0].ID,
			Content:    "sunny in Oslo",
		}
		m, err = chat(&api.ChatRequest{Messages: append(user("WEATHER"), m, result), Tools: api.Tools{tool}})
		return errors.Join(err, has(m.Content, "It is sunny in Oslo."))
	})
	check("generate", func() error {
		text := ""
		err := client.Generate(
			ctx,
			&api.GenerateRequest{Model: model, Prompt: "hi"},
			func(r api.GenerateResponse) error { text += r.Response; return nil },
		)
		return errors.Join(err, has(text, "Hello!"))
	})
	check("show", func() error { _, err := client.Show(ctx, &api.ShowRequest{Model: model}); return err })
	check("list", func() error {
		l, err := client.List(ctx)
		if err != nil || len(l.Models) == 0 {
			return fmt.Errorf("%v %+v", err, l)
		}
		return nil
	})
	check("ps", func() error {
		l, err := client.ListRunning(ctx)
		if err != nil || len(l.Models) == 0 {
			return fmt.Errorf("%v %+v", err, l)
		}
		return nil
	})
	check("version", func() error { _, err := client.Version(ctx); return err })
	check("whoami", func() error {
		_, err := client.Whoami(ctx)
		var none api.AuthorizationError
		if !errors.As(err, &none) {
			return fmt.Errorf("want an authorization error, got %v", err)
		}
		return nil
	})
	if failed {
		os.Exit(1)
	}
}
