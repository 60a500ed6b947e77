package toolfmt

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/chattmpl"
)

// foreign are templates whose forms are not read, with the reason.
var foreign = map[string]string{
	"CohereForAI-c4ai-command-r-plus-tool_use": "wants a description for each parameter",
	"fireworks-ai-llama-3-firefunction-v2":     "takes its tools as text in a variable of its own",
	"meetkai-functionary-medium-v3.2":          "writes >>>NAME and bare JSON",
	"Kimi-K3":                                  "has marks of its own for each argument",
	"MiniMax-M3":                               "has a mark of its own before each tag",
	"muse-glimmer":                             "has a recipient and tags of its own",
	"tencent-Hy3":                              "has tags of its own",
	"upstage-Solar-Open-100B":                  "has marks of its own around each part",
}

// TestTemplatesRoundTrip renders an earlier call with each template in the folder that BALEEN_TEST_TEMPLATES
// names, and wants the parser to read the same call out of what the template wrote.
func TestTemplatesRoundTrip(t *testing.T) {
	dir := os.Getenv("BALEEN_TEST_TEMPLATES")
	if dir == "" {
		t.Skip("BALEEN_TEST_TEMPLATES names no folder of chat templates")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jinja"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no templates in %s: %v", dir, err)
	}
	want := []string{`get_weather{"location": "Paris", "days": 3}`, `bash{"command": "ls \"x\""}`}
	calls := []Call{
		{ID: "call_1", Name: "get_weather", Arguments: `{"location": "Paris", "days": 3}`},
		{ID: "call_2", Name: "bash", Arguments: `{"command": "ls \"x\""}`},
	}
	ms := []Message{
		{Role: "user", Content: "Look."},
		{Role: "assistant", Calls: calls},
		{Role: "tool", CallID: "call_1", Content: "sunny"},
		{Role: "tool", CallID: "call_2", Content: "a.go"},
	}
	extra := []chattmpl.KV{
		{Key: "bos_token", Value: chattmpl.Text("<s>")},
		{Key: "eos_token", Value: chattmpl.Text("</s>")},
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			if why := foreign[strings.TrimSuffix(filepath.Base(file), ".jinja")]; why != "" {
				t.Skip(why)
			}
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			f := For(Hints{Template: string(src)})
			tmpl, err := chattmpl.Parse("t", string(src))
			if err != nil {
				t.Fatal(err)
			}
			full, err := f.Render(context.Background(), tmpl, ms, everyday, PromptOptions{}, extra)
			if err != nil {
				t.Fatalf("%s: %v", f.Name(), err)
			}
			head, err := f.Render(context.Background(), tmpl, ms[:1], everyday, PromptOptions{}, extra)
			if err != nil {
				t.Fatalf("%s: %v", f.Name(), err)
			}
			for _, s := range []string{"sunny", "a.go", "get_weather", "write_file"} {
				if !strings.Contains(full.Text(), s) {
					t.Errorf("%s: %q is not in the prompt", f.Name(), s)
				}
			}
			k := 0
			for a, b := full.Text(), head.Text(); k < len(a) && k < len(b) && a[k] == b[k]; k++ {
			}
			k = strings.LastIndexAny(full.Text()[:k], "\n>") + 1 // not inside a mark that both begin with
			o := parse(t, f, everyday, Options{}, full.Text()[k:])
			for i := range want {
				if i >= len(o.calls) || !sameCall(t, o.calls[i], want[i]) {
					t.Errorf("%s: %q\ngot %s", f.Name(), full.Text()[k:], o)
					break
				}
			}
		})
	}
}
