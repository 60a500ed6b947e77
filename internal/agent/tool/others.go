package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/baleenrun/baleen/internal/agent/perm"
)

// todo keeps the list of what is to do.
type todo struct{}

type todoArgs struct {
	Items []Todo `json:"items"`
}

func (todo) Spec() Spec {
	return Spec{
		Name:        "todo",
		Description: "Keep the list of what is to do; give all of it each time.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"items":{"type":"array","items":{"type":"object","properties":` +
			`{"text":{"type":"string"},"state":{"type":"string","enum":["pending","active","done"]}},"required":["text","state"]}}},"required":["items"]}`),
	}
}

func (todo) read(args json.RawMessage) ([]Todo, error) {
	var a todoArgs
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	if len(a.Items) > 100 {
		return nil, fmt.Errorf("a list of %d things is too long: at most 100", len(a.Items))
	}
	for i, t := range a.Items {
		switch {
		case strings.TrimSpace(t.Text) == "":
			return nil, fmt.Errorf("item %d has no text", i+1)
		case t.State == "":
			a.Items[i].State = "pending"
		case t.State != "pending" && t.State != "active" && t.State != "done":
			return nil, fmt.Errorf("item %d has the state %q, want pending, active or done", i+1, t.State)
		}
	}
	return a.Items, nil
}

func (t todo) Effect(_ *Env, args json.RawMessage) (perm.Effect, error) {
	_, err := t.read(args)
	return perm.Effect{}, err
}

func (t todo) Run(_ context.Context, env *Env, args json.RawMessage, _ func(string)) (Result, error) {
	items, err := t.read(args)
	if err != nil {
		return failed("%v", err), nil
	}
	if env.Todos != nil {
		env.Todos(items)
	}
	left := 0
	for _, i := range items {
		if i.State != "done" {
			left++
		}
	}
	return Result{Text: fmt.Sprintf("kept: %d of %d to do", left, len(items))}, nil
}

// ask asks the user.
type ask struct{}

type askArgs struct {
	Question string   `json:"question"`
	Choices  []string `json:"choices,omitempty"`
}

func (ask) Spec() Spec {
	return Spec{
		Name:        "ask",
		Description: "Ask the user what only the user can know.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"question":{"type":"string"},"choices":{"type":"array","items":{"type":"string"}}},` +
			`"required":["question"]}`),
	}
}

func (ask) read(args json.RawMessage) (askArgs, error) {
	var a askArgs
	if err := decode(args, &a); err != nil {
		return a, err
	}
	if strings.TrimSpace(a.Question) == "" {
		return a, errors.New("the question is empty")
	}
	if len(a.Choices) > 20 {
		return a, errors.New("at most 20 choices")
	}
	return a, nil
}

func (t ask) Effect(_ *Env, args json.RawMessage) (perm.Effect, error) {
	_, err := t.read(args)
	return perm.Effect{}, err
}

func (t ask) Run(ctx context.Context, env *Env, args json.RawMessage, _ func(string)) (Result, error) {
	a, err := t.read(args)
	if err != nil {
		return failed("%v", err), nil
	}
	if env.Question == nil {
		return failed("there is nobody to ask: decide yourself, and say in the end what you assumed"), nil
	}
	answer, err := env.Question(ctx, Question{Text: a.Question, Choices: a.Choices})
	if err != nil {
		if ctx.Err() != nil {
			return Result{}, context.Cause(ctx)
		}
		return failed("no answer: %v", err), nil
	}
	if strings.TrimSpace(answer) == "" {
		return Result{Text: "the user gave no answer: decide yourself"}, nil
	}
	return Result{Text: "the user answers: " + answer}, nil
}

// multiEdit makes several replacements in a file, all or none.
type multiEdit struct{}

type multiEditArgs struct {
	Path  string     `json:"path"`
	Edits []editPart `json:"edits"`
}

type editPart struct {
	Old string `json:"old"`
	New string `json:"new"`
	All bool   `json:"all"`
}

func (multiEdit) Spec() Spec {
	return Spec{
		Name:        "multi_edit",
		Description: "Make several edits in one file, in order, all or none.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"edits":{"type":"array","items":{"type":"object","properties":` +
			`{"old":{"type":"string"},"new":{"type":"string"},"all":{"type":"boolean"}},"required":["old","new"]}}},"required":["path","edits"]}`),
	}
}

func (multiEdit) Effect(env *Env, args json.RawMessage) (perm.Effect, error) {
	var a multiEditArgs
	if err := decode(args, &a); err != nil {
		return perm.Effect{}, err
	}
	at, err := env.agree(a.Path)
	return perm.Effect{Writes: []string{at.real}}, err
}

func (multiEdit) Run(_ context.Context, env *Env, args json.RawMessage, _ func(string)) (Result, error) {
	var a multiEditArgs
	if err := decode(args, &a); err != nil {
		return failed("%v", err), nil
	}
	if len(a.Edits) == 0 || len(a.Edits) > 100 {
		return failed("give 1 to 100 edits"), nil
	}
	var rs []replacement
	for _, e := range a.Edits {
		rs = append(rs, replacement{e.Old, e.New, e.All})
	}
	return env.edit(a.Path, rs)
}
