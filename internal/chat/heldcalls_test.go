package chat_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

const citySchema = `{"type":"object","properties":{"city":{"enum":["Rome","Oslo"]},"days":{"type":"integer","minimum":1,"maximum":5}},` +
	`"required":["city","days"],"additionalProperties":false}`

func cityTool(strict bool) chat.Tool {
	return chat.Tool{
		Name:        "weather",
		Parameters:  json.RawMessage(citySchema),
		Strict:      strict,
		StrictField: "tools[0].strict",
		Field:       "tools[0]",
	}
}

// TestDemandedCallsFit: whatever the model would write, a call that is demanded is one of an offered tool, and that of
// a strict tool fits its schema.
func TestDemandedCallsFit(t *testing.T) {
	w, valid := free(t), validator(t, citySchema)
	for seed := range uint64(10) {
		for _, choice := range []chat.ToolChoice{{Mode: chat.ToolNamed, Name: "weather"}, {Mode: chat.ToolsRequired}} {
			_, _, calls, finish, done := answerTo(t, w, &chat.Request{
				Messages: user(
					"x",
				), Tools: []chat.Tool{cityTool(true), {Name: "clock", Strict: true}}, Choice: choice, SingleCall: true, MaxTokens: 200,
				Sampling: chat.Sampling{Temperature: new(float32(5)), TopK: new(0), Seed: new(seed)},
			})
			if done.Err != nil || len(calls) != 1 || finish[0].Reason != chat.ToolCalls {
				t.Errorf("seed %d: %v %v %v", seed, calls, finish[0].Reason, done.Err)
				continue
			}
			if c := calls[0]; c.Name == "clock" && (c.Arguments != "{}" || choice.Name != "") ||
				c.Name == "weather" && valid(c.Arguments) != nil {
				t.Errorf("seed %d: %+v", seed, c)
			}
		}
	}
}

// TestStrictCalls: behind the mark of a call a strict tool's schema holds, free text before and behind it stays as it
// is, and what is written without the mark is a call only where it fits.
func TestStrictCalls(t *testing.T) {
	for name, c := range map[string]struct {
		says, text, args string
		strict           bool
	}{
		"it fits": {
			"Let me see.\n" + servertest.ToolCall("weather", `{"city": "Oslo", "days": 3}`), "Let me see.", `{"city": "Oslo", "days": 3}`, true,
		},
		"a value that is none": {
			"Let me see.\n" + servertest.ToolCall("weather", `{"city": "Oslo", "days": 9}`), "Let me see.", "*", true,
		},
		"not strict": {
			servertest.ToolCall("weather", `{"city": "Paris"}`), "", `{"city": "Paris"}`, false,
		},
		"without the mark": {
			`{"name": "weather", "arguments": {"city": "Rome", "days": 1}}`, "", `{"city": "Rome", "days": 1}`, true,
		},
		"wrong without the mark": {
			`{"name": "weather", "arguments": {"city": "Paris"}}`, `{"name": "weather", "arguments": {"city": "Paris"}}`, "", true,
		},
		"no call": {"It is <b>warm</b>.", "It is <b>warm</b>.", "", true},
	} {
		w := servertest.New(t, servertest.Options{Script: func(prompt string) string {
			_, said, _ := strings.Cut(prompt, "<|im_start|>assistant\n")
			rest, _ := strings.CutPrefix(c.says, said)
			if rest == c.says && said != "" {
				return "" // the model was led elsewhere and has nothing more to say
			}
			return rest
		}})
		text, _, calls, _, done := run(t, w, &chat.Request{
			Messages: user(
				"x",
			), Tools: []chat.Tool{cityTool(c.strict)}, MaxTokens: 200, Sampling: chat.Sampling{Temperature: new(float32(0))},
		})
		got := ""
		if len(calls) > 0 {
			got = calls[0].Arguments
		}
		if c.args == "*" && len(calls) > 0 && validator(t, citySchema)(got) == nil {
			got = "*"
		}
		if text != c.text || got != c.args || done.Err != nil {
			t.Errorf("%s: %q %q %v", name, text, got, done.Err)
		}
	}
}

// TestStrictSchemasAreEnforceable: a strict tool whose schema cannot be held to is refused by the keyword and the
// field.
func TestStrictSchemasAreEnforceable(t *testing.T) {
	w := servertest.New(t, servertest.Options{})
	tool := chat.Tool{
		Name:        "f",
		Strict:      true,
		StrictField: "tools[0].strict",
		Parameters:  json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","format":"regex"}}}`),
	}
	_, err := w.Chat.Run(t.Context(), &chat.Request{Model: "scripted", Messages: user("x"), Tools: []chat.Tool{tool}})
	var e *chat.Error
	if !errors.As(err, &e) || e.Kind != chat.Unsupported || e.Field != "tools[0].strict" {
		t.Errorf("%v", err)
	}
}
