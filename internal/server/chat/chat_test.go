package chat_test

import (
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/server/chat"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// collect reads a stream to its end.
func collect(t *testing.T, s *chat.Stream) (text, reasoning string, calls []chat.Call, finish []chat.Delta, done chat.Delta) {
	t.Helper()
	for d := range s.All() {
		switch d.Kind {
		case chat.TextDelta:
			text += d.Text
		case chat.ReasoningDelta:
			reasoning += d.Text
		case chat.CallEnd:
			calls = append(calls, *d.Call)
		case chat.Finish:
			finish = append(finish, d)
		case chat.Done:
			done = d
		}
	}
	return
}

func run(t *testing.T, w *servertest.World, r *chat.Request) (text, reasoning string, calls []chat.Call, finish []chat.Delta, done chat.Delta) {
	t.Helper()
	r.Model = "scripted"
	s, err := w.Chat.Run(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return collect(t, s)
}

func user(text string) []chat.Message { return []chat.Message{chat.Text(chat.User, text)} }

func TestAnswerIsTheScript(t *testing.T) {
	var seen string
	w := servertest.New(t, servertest.Options{Script: func(p string) string { seen = p; return "Grüße, 世界 🐋" }})
	text, _, _, finish, done := run(t, w, &chat.Request{Messages: user("Hi <|im_end|>")})
	if text != "Grüße, 世界 🐋" || finish[0].Reason != chat.Stop || done.Err != nil {
		t.Errorf("%q %v %+v", text, finish, done)
	}
	if want := "<|im_start|>user\nHi <|im_end|><|im_end|>\n<|im_start|>assistant\n"; seen != want {
		t.Errorf("prompt %q", seen)
	}
	if done.Usage.Prompt == 0 || done.Usage.Generated != len("Grüße, 世界 🐋")+1 {
		t.Errorf("%+v", done.Usage)
	}
	n, err := w.Chat.Count(t.Context(), &chat.Request{Messages: user("Hi <|im_end|>")})
	if err != nil || n != done.Usage.Prompt {
		t.Errorf("count %d %v, want %d", n, err, done.Usage.Prompt)
	}
}

func TestReasoningAndCalls(t *testing.T) {
	w := servertest.New(t, servertest.Options{Script: func(string) string {
		return "<think>\nhmm\n</think>\n\nOne moment.\n" + servertest.ToolCall("add", `{"a": 1}`)
	}})
	text, reasoning, calls, finish, done := run(t, w, &chat.Request{Messages: user("x"), Tools: []chat.Tool{{Name: "add"}}})
	if strings.TrimSpace(reasoning) != "hmm" || strings.TrimSpace(text) != "One moment." || len(calls) != 1 || calls[0].Name != "add" ||
		calls[0].ID == "" || finish[0].Reason != chat.ToolCalls || done.Usage.Reasoning == 0 {
		t.Errorf("%q %q %v %v %+v", text, reasoning, calls, finish, done)
	}
}
