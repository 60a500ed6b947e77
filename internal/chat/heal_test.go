package chat_test

import (
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// TestTokenHealing: a text that ends in the middle of what would be one token goes on from the token's begin, and the
// answer shows what is new alone, with its own log probabilities, counts and bounds.
func TestTokenHealing(t *testing.T) {
	yes, no := true, false
	const fim = "<|fim_prefix|>a = f(<|fim_suffix|>)<|fim_middle|>"
	for _, c := range []struct {
		note    string
		request chat.Request
		prompt  string // what the model sees
		script  string // what it writes behind that
		text    string
		reason  chat.Reason
	}{
		{"a token that spans", chat.Request{Prompt: "return "}, "return", " xy = 1", "xy = 1", chat.Stop},
		{"the same tokens as before", chat.Request{Prompt: "return "}, "return", " 7", "7", chat.Stop},
		{"switched off", chat.Request{Prompt: "return ", Heal: &no}, "return ", "xy", "xy", chat.Stop},
		{"two tokens back", chat.Request{Prompt: "go retu", Heal: &yes}, "go re", "turn it", "rn it", chat.Stop},
		{"nothing longer", chat.Request{Prompt: "return (", Heal: &yes}, "return (", "x", "x", chat.Stop},
		{"bounded", chat.Request{Prompt: "return ", MaxTokens: 2}, "return", " xy = 1", "xy ", chat.Length},
		{"bounded, the same tokens as before", chat.Request{Prompt: "return ", MaxTokens: 2}, "return", " 789", "78", chat.Length},
		{"a stop string", chat.Request{Prompt: "return ", Stop: []string{" ="}}, "return", " xy = 1", "xy", chat.StopSequence},
		{"a gap", chat.Request{Prompt: "a = f( ", Suffix: ")", Heal: &yes}, fim, " xy", "xy", chat.Stop},
		{"a mark at the end", chat.Request{Prompt: "a <|im_end|>", Heal: &yes}, "a <|im_end|>", "x", "x", chat.Stop},
		{"tokens", chat.Request{PromptTokens: []int32{'r', 'e', ' '}}, "re ", "x", "x", chat.Stop},
	} {
		t.Run(c.note, func(t *testing.T) {
			prompt := ""
			w := servertest.New(t, servertest.Options{
				Checkpoint: servertest.Checkpoint{Merges: []string{"x y", "Ġ xy", "t u", "tu r", "tur n"}},
				Script:     func(p string) string { prompt = p; return c.script },
			})
			r := c.request
			r.Raw, r.LogProbs = true, true
			if r.Heal == nil {
				r.Heal = &yes
			}
			text, logged := "", ""
			r.Model = "scripted"
			s, err := w.Chat.Run(t.Context(), &r)
			if err != nil {
				t.Fatal(err)
			}
			var done, finish chat.Delta
			for d := range s.All() {
				switch d.Kind {
				case chat.TextDelta:
					text += d.Text
					for _, l := range d.Tokens {
						if l.Offset != len(logged) {
							t.Errorf("offset %d of %q, want %d", l.Offset, l.Text, len(logged))
						}
						logged += l.Text
					}
				case chat.Finish:
					finish = d
				case chat.Done:
					done = d
				}
			}
			if prompt != c.prompt || finish.Reason != c.reason || done.Err != nil {
				t.Errorf("prompt %q, ended by %v, %v; want %q, %v", prompt, finish.Reason, done.Err, c.prompt, c.reason)
			}
			if text != c.text || !strings.HasPrefix(logged, text) {
				t.Errorf("text %q, logged %q, want %q", text, logged, c.text)
			}
			if r.MaxTokens > 0 && done.Usage.Generated > r.MaxTokens {
				t.Errorf("%d tokens were counted of at most %d", done.Usage.Generated, r.MaxTokens)
			}
		})
	}
}
