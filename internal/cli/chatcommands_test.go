package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/cli/chatui"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// smallTalk is a conversation of several turns with a model of a small context.
func smallTalk(t *testing.T, turns int) *conversation {
	t.Helper()
	script := func(prompt string) string {
		if strings.Contains(prompt[strings.LastIndex(prompt, "<|im_start|>user"):], askSummary) {
			return "They spoke of whales."
		}
		return "Yes."
	}
	c, _, _ := talk(t, servertest.Options{Model: func(o *model.Options) { o.Context = 512 }, Script: script}, false)
	for i := range turns {
		c.msgs = append(
			c.msgs,
			chat.Text(chat.User, fmt.Sprintf("question %d, %s", i+1, strings.Repeat("x", 40))),
			chat.Text(chat.Assistant, "Yes."),
		)
	}
	return c
}

func nobody(bool, string) {}

// TestFullContext: a question that finds no room is kept, and the error says which turns would go by which command;
// each command then answers it.
func TestFullContext(t *testing.T) {
	for command, want := range map[string]string{
		"/drop":      `question 8, xxxx`,
		"/summarise": askSummary,
		"/drop 7":    `question 8, xxxx`,
	} {
		c := smallTalk(t, 8)
		_, err := c.Answer(t.Context(), "and now?", nobody)
		var kept chatui.Kept
		if !errors.As(err, &kept) || !strings.Contains(err.Error(), "and the context holds 512") ||
			!strings.Contains(err.Error(), `turns, from "question 1, xxxx`) ||
			!strings.Contains(err.Error(), "/summarise") ||
			!strings.Contains(err.Error(), "/clear") ||
			len(c.msgs) != 16 {
			t.Fatalf("%v, %d messages", err, len(c.msgs))
		}
		did := c.Command(command)
		if did.Do == nil || !strings.Contains(did.Reply, `from "question 1, xxxx`) {
			t.Fatalf("%s: %+v", command, did)
		}
		note, err := did.Do(t.Context(), nobody)
		if err != nil {
			t.Errorf("%s: %v", command, err)
			continue
		}
		// The question for a summary of them all finds no room either: what is left out of it is said.
		if said := strings.Contains(note, "no room in the question for it and are not in the summary"); said != (command == "/summarise") {
			t.Errorf("%s: %q", command, note)
		}
		n := len(c.msgs)
		if n >= 16 || n%2 != 0 || textOf(c.msgs[n-2]) != "and now?" || textOf(c.msgs[n-1]) != "Yes." ||
			c.pending != "" {
			t.Errorf("%s: %d messages, the last %q", command, n, textOf(c.msgs[n-2]))
		}
		if got := textOf(c.msgs[0]); command != "/drop" && !strings.HasPrefix(got, want) {
			t.Errorf("%s: the first is %q, want %q", command, got, want)
		}
	}
	c := smallTalk(t, 8)
	if _, err := c.Answer(t.Context(), strings.Repeat("long ", 300), nobody); err == nil ||
		!strings.Contains(err.Error(), "this message does not fit even alone") {
		t.Errorf("%v", err)
	}
}

// TestSummaryComesFirst: a summary without need, and stopping one, change nothing else.
func TestSummaryComesFirst(t *testing.T) {
	c := smallTalk(t, 3)
	did := c.Command("/summarise")
	if _, err := did.Do(t.Context(), nobody); err != nil {
		t.Fatal(err)
	}
	if len(c.msgs) != 4 || textOf(c.msgs[1]) != "They spoke of whales." ||
		!strings.HasPrefix(textOf(c.msgs[2]), "question 3") {
		t.Errorf("%+v", c.msgs)
	}
	c = smallTalk(t, 3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Command("/compact").Do(ctx, nobody); !errors.Is(err, context.Canceled) || len(c.msgs) != 6 {
		t.Errorf("stopped: %v, %d messages", err, len(c.msgs))
	}
}

func TestWordsOfTheChat(t *testing.T) {
	for line, want := range map[string]string{
		"/drop 1": `The oldest 1 turn, "question 1, ` + strings.Repeat("x", 28) + `…", is forgotten, 1 turn is left.`,
		"/drop":   "there is room; /drop N forgets turns all the same",
		"/drop 3": `"3": want how many of the oldest turns, from 1 to 2`,
		"/claer":  "there is no command /claer; did you mean /clear?",
		"/foo": "there is no command /foo; /help lists them, and a space before it " +
			"makes it a message",
		"/set parameter temperature 0.5":    "temperature is set.",
		"/set parameter num_predict 7":      "max-tokens is set.",
		"/set parameter repeat_penalty 1.1": "repetition-penalty is set.",
		"/set parameter num_ctx 100": "num-ctx is settled when the model is loaded: leave, and run it with " +
			"--context",
		"/set parameter presence_penalty 9": `presence-penalty wants a number from -2 to 2, not "9"`,
		"/set parameter stop a b":           "stop is set.",
		"/set verbose":                      "stats is set.",
		"/set quiet":                        "stats is set.",
		"/set think":                        "think is set.",
		"/set think high":                   "think is set.",
		"/set think much":                   `think "much": want true, false, low, medium or high, or default`,
		"/set nothink":                      "think is set.",
		"/set format":                       "Answers are held to json; /set noformat ends it.",
		"/set format json":                  "Answers are held to json; /set noformat ends it.",
		"/set format nothing.json": "--format nothing.json: want json, or a file with a JSON Schema: no " +
			"such file or directory",
		"/set grammar":       "want /set grammar FILE; /set noformat ends it",
		"/set noformat":      "Answers have no format.",
		"/set colour blue":   "there is no setting colour; /set lists them",
		"/show system":       "There is no system message.",
		"/show modelfile":    "FROM ",
		"/show parameters":   "The model was made without parameters.",
		"/show license":      "The model does not say its licence.",
		"/show template":     "{%",
		"/show info":         "layers",
		"/show conversation": "user: question 1",
		"/show nothing": "want /show settings, info, modelfile, parameters, system, template, " +
			"license or conversation",
	} {
		did := smallTalk(t, 2).Command(line)
		if !strings.Contains(did.Reply, want) || did.Quit || did.Do != nil {
			t.Errorf("%s: %+v, want %q", line, did, want)
		}
	}
	c := smallTalk(t, 0)
	for _, line := range []string{"/set temperature 0.5", "/set parameter num_predict 7", "/set parameter " +
		"typical_p 0.9", "/set parameter stop a b", "/set think high", "/set system Be brief."} {
		c.Command(line)
	}
	r := c.request("hi")
	if *r.Sampling.Temperature != 0.5 || r.MaxTokens != 7 || *r.Sampling.TypicalP != 0.9 || len(r.Stop) != 2 ||
		r.Effort != "high" ||
		textOf(r.Messages[0]) != "Be brief." {
		t.Errorf("%+v", r)
	}
	if did := c.Command("/set parameter temperature hot"); did.Reply != `temperature wants a number, not "hot"` {
		t.Errorf("a setting is no flag: %+v", did)
	}
	c.Command("/set parameter num_predict -1")
	if did := c.Command("/set"); !strings.Contains(did.Reply, "max-tokens           off\n") {
		t.Errorf("no bound of tokens: %s", did.Reply)
	}
	for line := range strings.Lines(chatHelp()) {
		if len(strings.TrimRight(line, "\n")) >= helpWidth { // the chat leaves the last column free
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}
