package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/baleenrun/baleen/internal/agent/perm"
)

// More returns the tool more_tools: it lists the tools behind it, and calls them by name, so that what is offered in a
// prompt never changes. The list may be extended by the loop's own tools and those of other servers.
func More(behind ...Tool) Tool {
	behind = slices.Clone(behind)
	slices.SortStableFunc(behind, func(a, b Tool) int { return strings.Compare(a.Spec().Name, b.Spec().Name) })
	return more(behind)
}

type more []Tool

type moreArgs struct {
	Tool string          `json:"tool,omitempty"`
	Args json.RawMessage `json:"args,omitempty"`
}

func (m more) names() []string {
	var out []string
	for _, t := range m {
		out = append(out, t.Spec().Name)
	}
	return out
}

func (m more) Spec() Spec {
	names := m.names()
	const most = 12
	if len(names) > most {
		names = append(names[:most:most], "…")
	}
	return Spec{
		Name: "more_tools", Core: true,
		Description: "More tools: " + list(names) + ". Without args it tells which a tool takes; with args it calls it.",
		Parameters:  schema("tool?:string", "args?:object"),
	}
}

// find returns the tool that is called; nil where the call asks for a description.
func (m more) find(args json.RawMessage) (Tool, moreArgs, error) {
	var a moreArgs
	if err := decode(args, &a); err != nil {
		return nil, a, err
	}
	if a.Tool == "" {
		return nil, a, nil
	}
	i := slices.IndexFunc(m, func(t Tool) bool { return strings.EqualFold(t.Spec().Name, a.Tool) })
	if i < 0 {
		return nil, a, fmt.Errorf("there is no tool %q behind more_tools; there are %s", a.Tool, list(m.names()))
	}
	if len(a.Args) == 0 {
		return nil, a, nil
	}
	if a.Args[0] == '"' { // an object in a string, as some models write it
		var s string
		if json.Unmarshal(a.Args, &s) == nil && json.Valid([]byte(s)) {
			a.Args = json.RawMessage(s)
		}
	}
	return m[i], a, nil
}

func (m more) Effect(env *Env, args json.RawMessage) (perm.Effect, error) {
	t, a, err := m.find(args)
	if err != nil || t == nil {
		return perm.Effect{}, err
	}
	e, err := t.Effect(env, a.Args)
	if err != nil {
		err = fmt.Errorf("%s: %w", a.Tool, err)
	}
	return e, err
}

func (m more) Run(ctx context.Context, env *Env, args json.RawMessage, out func(string)) (Result, error) {
	t, a, err := m.find(args)
	if err != nil {
		return failed("%v", err), nil
	}
	if t != nil {
		return t.Run(ctx, env, a.Args, out)
	}
	var b strings.Builder
	for _, t := range m {
		s := t.Spec()
		if a.Tool == "" || strings.EqualFold(s.Name, a.Tool) {
			fmt.Fprintf(&b, "%s: %s args: %s\n", s.Name, s.Description, s.Parameters)
		}
	}
	if b.Len() == 0 {
		return Result{Text: "there are no more tools"}, nil
	}
	return Result{Text: strings.TrimSuffix(b.String(), "\n")}, nil
}
