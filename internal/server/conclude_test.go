package server_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/anthropic"
	"github.com/baleenrun/baleen/internal/server/ollama"
	"github.com/baleenrun/baleen/internal/server/openai"
	"github.com/baleenrun/baleen/internal/server/servertest"
	"github.com/baleenrun/baleen/internal/toolfmt"
)

// secondTurns are conversations that end with a tool's result, one a dialect; the words of ways.
var secondTurns = map[string]string{
	"chat": `{"messages":[{"role":"user","content":"Weather in Oslo?"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"get_weather","arguments":"{\"city\": \"Oslo\"}"}}]},` +
		`{"role":"tool","tool_call_id":"c1","content":"7 C"}],"temperature":T,"max_tokens":200,"stream_options":OPTS,"stream":S`,
	"responses": `{"input":[{"role":"user","content":"Weather in Oslo?"},{"type":"function_call","call_id":"c1","name":"get_weather","arguments":"{\"city\": \"Oslo\"}"},` +
		`{"type":"function_call_output","call_id":"c1","output":"7 C"}],"temperature":T,"max_output_tokens":200,"stream":S`,
	"messages": `{"messages":[{"role":"user","content":"Weather in Oslo?"},{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"get_weather","input":{"city":"Oslo"}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"7 C"}]}],"temperature":T,"max_tokens":200,"stream":S`,
	"ollama chat": `{"messages":[{"role":"user","content":"Weather in Oslo?"},{"role":"assistant","content":"","tool_calls":[{"function":{"name":"get_weather","arguments":{"city":"Oslo"}}}]},` +
		`{"role":"tool","tool_name":"get_weather","content":"7 C"}],"stream":S,"options":{"temperature":T,"num_predict":200}`,
}

const inWords = "It is 7 degrees in Oslo."

// insistent is a model that makes a call whenever it is not told to conclude.
func insistent(call, concluded string) servertest.Script {
	return func(prompt string) string {
		if strings.Contains(prompt, toolfmt.Conclusion) {
			return concluded
		}
		return call
	}
}

func concludeWorld(t *testing.T, script servertest.Script, conclude bool, dir string) *servertest.World {
	return servertest.New(t, servertest.Options{
		Dialects: []func(*server.Env) server.Dialect{openai.New, anthropic.New, ollama.New(nil)},
		Names:    func(path string) servertest.Names { return servertest.Names{{Name: "real", Path: path}} },
		Script:   script,
		Chat:     func(o *chat.Options) { o.Conclude = conclude },
		Server:   func(o *server.Options) { o.RecordDir = dir },
	})
}

// TestNoCallComesAgain wants an answer in words in every dialect, streamed or not, where a model makes its call again
// or one that nobody asked for, and other calls as they are.
func TestNoCallComesAgain(t *testing.T) {
	again := servertest.ToolCall("get_weather", `{ "city":"Oslo"}`)
	plainAgain := `{"name": "get_weather", "arguments": {"city": "Oslo"}}`
	other := servertest.ToolCall("get_weather", `{"city": "Bergen"}`)
	plain := "```json\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Bergen\"}}\n```"
	for _, c := range []struct {
		name      string
		out, then string
		text      string
		call      string
		concluded bool
	}{
		{"again", again, inWords, inWords, "", true},
		{"again, and more", again + other, inWords, inWords, "", true},
		{"again without marks", `{"name": "get_weather", "arguments": {"city": "Oslo"}}`, inWords, inWords, "", true},
		{"again and again", again, again + "\x00" + inWords, inWords, "", true},
		{"whatever it is asked", again, again + "\x00" + plainAgain, "", `get_weather{"city":"Oslo"}`, true},
		{"text before", "Let me see. " + again, inWords, "Let me see.\n\n" + inWords, "", true},
		{"another call", other, inWords, "", `get_weather{"city":"Bergen"}`, false},
		{"another call, and again", other + again, inWords, "", `get_weather{"city":"Bergen"}get_weather{"city":"Oslo"}`, false},
		{"the same twice", other + other, inWords, "", `get_weather{"city":"Bergen"}`, true},
		{"a stray", plain, inWords, inWords, "", true},
		{"an attempt", `{"name": "get_weather", "arguments": {"town": "Oslo"}}`, inWords, inWords, "", true},
		{"JSON", `{"name": "Paul", "age": 3}`, inWords, `{"name": "Paul", "age": 3}`, "", false},
		{"an open brace", `{`, inWords, `{`, "", false},
		{"words", "Fine.", inWords, "Fine.", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := concludeWorld(t, insistent(c.out, c.then), true, "")
			for _, x := range ways[:4] {
				x.body = secondTurns[x.name]
				for _, stream := range []bool{false, true} {
					before := len(w.Log())
					got, err := ask{tools: true}.put(t.Context(), w, &x, stream)
					if err != nil || got.Text != c.text || got.Call != c.call {
						t.Errorf("%s, streamed %v: %+v %v", x.name, stream, got, err)
					}
					eventually(t, "the log row", func() bool { return strings.Contains(w.Log()[before:], `"end"`) })
					if strings.Contains(w.Log()[before:], `"concluded":1`) != c.concluded {
						t.Errorf("%s, streamed %v: log %s", x.name, stream, w.Log()[before:])
					}
				}
			}
		})
	}
}

// TestAnswersAreWhatTheModelWroteUnlessAsked: off unless the server or the request says so; the request overrules the
// server; and an answer that was changed says so in its usage and beside it, in every dialect, streamed or not.
func TestAnswersAreWhatTheModelWroteUnlessAsked(t *testing.T) {
	again := servertest.ToolCall("get_weather", `{"city": "Oslo"}`)
	for _, c := range []struct {
		server  bool
		field   string
		guarded bool
	}{
		{false, "", false},
		{true, "", true},
		{false, "true", true},
		{true, "false", false},
	} {
		w := concludeWorld(t, insistent(again+again, inWords), c.server, "")
		for _, x := range ways[:4] {
			for _, stream := range []string{"false", "true"} {
				body := strings.NewReplacer(":T", ":0", ":OPTS", `:{"include_usage":true}`, ":SCHEMA", ":"+weatherSchema, ":S", ":"+stream).
					Replace(`{"model":"real",` + secondTurns[x.name][1:] + x.tools)
				if stream == "false" {
					body = strings.Replace(body, `"stream_options":{"include_usage":true},`, "", 1)
				}
				if c.field != "" {
					body += `,"baleen_conclude":` + c.field
				}
				r := w.Post(t, x.path, body+"}")
				said := r.Header.Get(server.NoticeHeader) + r.Trailer.Get(server.NoticeHeader)
				if r.Status != 200 || stream == "false" && strings.Contains(r.Body, "7 degrees") != c.guarded ||
					strings.Contains(r.Body, `"baleen_concluded":1`) != c.guarded ||
					strings.Contains(said, "asked again") != c.guarded {
					t.Errorf(
						"server %v, field %q, %s streamed %s: %d, notice %q, %s",
						c.server,
						c.field,
						x.name,
						stream,
						r.Status,
						said,
						r.Body,
					)
				}
				if calls := strings.Count(r.Body, "Oslo"); stream == "false" && !c.guarded && calls != 2 {
					t.Errorf(
						"server %v, field %q, %s streamed %s: the model made two calls, %s",
						c.server,
						c.field,
						x.name,
						stream,
						r.Body,
					)
				}
			}
		}
	}
}

// TestConcludingIsAccountedFor wants both runs in the usage and in the record, and every answer of several concluded.
func TestConcludingIsAccountedFor(t *testing.T) {
	dir := t.TempDir()
	again := servertest.ToolCall("get_weather", `{"city": "Oslo"}`)
	w := concludeWorld(t, insistent(again, inWords), true, dir)
	body := strings.NewReplacer(":T", ":0", `,"stream_options":OPTS,"stream":S`, "", ":SCHEMA", ":"+weatherSchema).
		Replace(`{"model":"real","n":3,` + secondTurns["chat"][1:] + ways[0].tools + "}")
	r := w.Post(t, "/v1/chat/completions", body)
	var got struct {
		Choices []struct {
			Message      struct{ Content string }
			FinishReason string `json:"finish_reason"`
		}
		Usage struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(r.Body), &got); err != nil || len(got.Choices) != 3 {
		t.Fatalf("%v %s", err, r.Body)
	}
	for _, c := range got.Choices {
		if c.Message.Content != inWords || c.FinishReason != "stop" {
			t.Errorf("%+v", c)
		}
	}
	if least := 3 * (len(inWords) + 1 + len(`{"name": "get_weather", "arguments": {"city": "Oslo"`)); got.Usage.Completion < least {
		t.Errorf("%d tokens were generated, at least %d were computed", got.Usage.Completion, least)
	}
	var files []string
	eventually(t, "the record is there", func() bool {
		files, _ = filepath.Glob(filepath.Join(dir, "*", "*.txt*"))
		return len(files) >= 5
	})
	for _, f := range files {
		want := map[string]string{
			"prompt.txt":   "7 C\n</tool_response><|im_end|>",
			"prompt.txt.1": "7 C\n</tool_response>\n" + toolfmt.Conclusion + "<|im_end|>",
			"output.txt":   "<tool_call>",
			"output.txt.1": inWords,
		}
		b, err := os.ReadFile(f)
		if err != nil || !strings.Contains(string(b), want[filepath.Base(f)]) {
			t.Errorf("%s: %v %s", f, err, b)
		}
	}
	// What was generated in vain counts: there is no more than was asked for.
	short := strings.Replace(strings.Replace(body, `"n":3`, `"n":1`, 1), `"max_tokens":200`, `"max_tokens":90`, 1)
	r = w.Post(t, "/v1/chat/completions", short)
	if err := json.Unmarshal([]byte(r.Body), &got); err != nil || got.Usage.Completion > 90 {
		t.Errorf("%v %s", err, r.Body)
	}
}

// TestStopStringsEndOneAnswer wants what is held back of the first answer handed out before the second begins: together
// they have the stop string, and neither has it.
func TestStopStringsEndOneAnswer(t *testing.T) {
	w := concludeWorld(
		t,
		insistent("Let me see!"+servertest.ToolCall("get_weather", `{"city": "Oslo"}`), inWords),
		true,
		"",
	)
	body := strings.NewReplacer(":T", ":0", `,"stream_options":OPTS,"stream":S`, "", ":SCHEMA", ":"+weatherSchema).
		Replace(`{"model":"real","stop":["!\n\nIt","!It"],` + secondTurns["chat"][1:] + ways[0].tools + "}")
	if r := w.Post(t, "/v1/chat/completions", body); !strings.Contains(r.Body, `Let me see!\n\n`+inWords) {
		t.Errorf("%d %s", r.Status, r.Body)
	}
}
