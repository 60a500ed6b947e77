package loop

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"

	"github.com/baleenrun/baleen/internal/agent/event"
	"github.com/baleenrun/baleen/internal/agent/model"
	"github.com/baleenrun/baleen/internal/agent/perm"
	"github.com/baleenrun/baleen/internal/agent/tool"
)

// task is the tool that begins a subtask: a fork of the conversation, all of which is cached, does it and reports; what it
// read and tried does not fill the conversation.
type task struct{ a *Agent }

const taskTurns = 20

func (t *task) Spec() tool.Spec {
	return tool.Spec{
		Name:        "task",
		Description: "Does a part of the work apart from this conversation and reports what came of it.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"prompt":{"type":"string",` +
			`"description":"what to do and what to report"}},"required":["prompt"]}`),
	}
}

func (t *task) read(args json.RawMessage) (string, error) {
	var in struct {
		Prompt string `json:"prompt"`
	}
	if err := json.Unmarshal(args, &in); err != nil || strings.TrimSpace(in.Prompt) == "" {
		return "", errors.New(`task needs {"prompt": "what to do and what to report"}`)
	}
	if t.a.depth > 0 {
		return "", errors.New("a subtask cannot begin others: do it yourself")
	}
	return in.Prompt, nil
}

// Effect is nothing: what the subtask does is decided call by call.
func (t *task) Effect(_ *tool.Env, args json.RawMessage) (perm.Effect, error) {
	_, err := t.read(args)
	return perm.Effect{}, err
}

func (t *task) Run(ctx context.Context, _ *tool.Env, args json.RawMessage, _ func(string)) (tool.Result, error) {
	text, err := t.read(args)
	if err != nil {
		return tool.Result{Text: err.Error(), IsError: true}, nil
	}
	id, _ := ctx.Value(callKey{}).(string)
	a := t.a
	sub := &Agent{
		o: a.o, system: a.system, window: a.window, id: id, depth: a.depth + 1, begun: true, out: a.out,
		changed: map[string]bool{}, session: a.session.Fork(), read: maps.Clone(a.read),
	}
	sub.o.Budget.Turns = taskTurns
	sub.o.Titles, sub.o.Checkpoints = false, nil
	sub.tools, sub.specs, sub.behind, sub.hidden = a.tools, a.specs, a.behind, a.hidden // what the prompt offers; a task in it is refused by its depth
	end, last, err := sub.work(ctx, func() error { return sub.beginTask(id, text) })
	a.sum.Add(event.Counts{
		Prompt: sub.sum.Prompt, Cached: sub.sum.Cached, Generated: sub.sum.Generated, Requests: sub.sum.Requests,
	})
	res := tool.Result{Text: strings.TrimSpace(last)}
	for path := range sub.changed {
		res.Changed = append(res.Changed, joinRoot(a.o.Env.Root, path))
	}
	switch {
	case err != nil:
		return res, err
	case ctx.Err() != nil:
		return res, context.Cause(ctx)
	case end.Reason != event.Done:
		res.Text, res.IsError = "the subtask was stopped ("+end.Reason+"). Its last words: "+res.Text, true
	case res.Text == "":
		res.Text, res.IsError = "the subtask reported nothing", true
	}
	return res, nil
}

// beginTask answers the calls of the answer in which the subtask began: its own with what to do.
func (a *Agent) beginTask(id, text string) error {
	msgs := a.session.Messages()
	at := len(msgs) - 1
	for at >= 0 && msgs[at].Role != model.Assistant {
		at--
	}
	if at < 0 {
		return a.say(model.Message{Role: model.User, Text: text}, true)
	}
	done := map[string]bool{}
	for _, m := range msgs[at+1:] {
		done[m.CallID] = true
	}
	for _, c := range msgs[at].Calls {
		if done[c.ID] {
			continue
		}
		m := model.Message{Role: model.Tool, CallID: c.ID, Name: c.Name, Text: "not part of this subtask"}
		if c.ID == id {
			m.Text = "You are now the subtask. Do only this: " + text + "\nThen report in at most 150 words."
		}
		if err := a.say(m, true); err != nil {
			return err
		}
	}
	return nil
}
