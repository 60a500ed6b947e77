package baleen_test

import (
	"context"
	"errors"
	"testing"

	"github.com/baleenrun/baleen"
)

// TestWhatIsNilIsAnError calls all of the library with what is nil or empty: an error names it, and nothing panics.
func TestWhatIsNilIsAnError(t *testing.T) {
	m := openTest(t, nil)
	var nothing context.Context
	ctx := t.Context()
	hi := []baleen.Message{baleen.UserMessage("hi")}
	chat := func(ctx context.Context, m *baleen.Model) error {
		_, err := baleen.Text(m.Chat(ctx, hi, nil))
		return err
	}
	good := m.NewSession("")
	runtime, err := baleen.NewRuntime(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.Close()
	of := func(_ any, err error) error { return err }
	cases := map[string]map[string]error{
		"ctx": {
			"Open":         of(baleen.Open(nothing, "x", nil)),
			"Runtime.Open": of(runtime.Open(nothing, "x")), "Pull": of(runtime.Pull(nothing, "x")),
			"Chat": chat(nothing, m), "Into": of(baleen.Into[int](nothing, m, hi, nil)),
			"Generate": of(baleen.Text(m.Generate(nothing, "x", nil))),
			"FillIn":   of(baleen.Text(m.FillIn(nothing, "x", "y", nil))), "CountChat": of(m.CountChat(nothing, hi, nil)),
			"Send": of(baleen.Text(good.Send(nothing, "x", nil))), "Trim": of(good.Trim(nothing, 1, nil)), "Count": of(good.Count(nothing, nil)),
		},
		"chunks": {"Collect": of(baleen.Collect(nil)), "Text": of(baleen.Text(nil))},
		"r":      {"LoadSession": of(m.LoadSession(nil))},
		"w":      {"Save": good.Save(nil)},
		"model":  {},
	}
	for name, m := range map[string]*baleen.Model{"nil": nil, "empty": {}} {
		s := m.NewSession("x")
		for what, err := range map[string]error{
			"Into": of(baleen.Into[int](ctx, m, hi, nil)), "Chat": chat(ctx, m), "Close": m.Close(), "Count": of(m.Count("x")),
			"Generate":   of(baleen.Text(m.Generate(ctx, "x", nil))),
			"Detokenize": of(m.Detokenize(nil)), "NewSessionFrom": of(m.NewSessionFrom(hi)), "LoadSession": of(m.LoadSession(nil)),
		} {
			cases["model"][name+" "+what] = err
		}
		if _, source := m.Defaults(); source != "" || m.Info() != (baleen.Info{}) {
			t.Errorf("%s: %q, %+v", name, source, m.Info())
		}
		if of(baleen.Text(s.Send(ctx, "x", nil))) == nil || of(s.Trim(ctx, 1, nil)) == nil || s.Save(nil) == nil {
			t.Errorf("a session with a %s model works", name)
		}
	}
	for _, s := range []*baleen.Session{nil, {}} {
		s.Messages()
		s.Usage()
		cases["session"] = map[string]error{
			"Send": of(baleen.Text(s.Send(ctx, "x", nil))), "Trim": of(s.Trim(ctx, 1, nil)), "Count": of(s.Count(ctx, nil)), "Save": s.Save(nil),
		}
	}
	for _, r := range []*baleen.Runtime{nil, {}} {
		r.Memory()
		r.Loaded()
		cases["runtime"] = map[string]error{
			"Open": of(r.Open(ctx, "x")), "List": of(r.List()), "Pull": of(r.Pull(ctx, "x")), "Remove": of(r.Remove("x")),
			"Handler": of(r.Handler(baleen.ServerOptions{})), "Close": r.Close(),
		}
	}
	for param, calls := range cases {
		for call, err := range calls {
			var e *baleen.ParamError
			if !errors.As(err, &e) || e.Param != param {
				t.Errorf("%s without its %s: %v", call, param, err)
			}
		}
	}
	if err := chat(ctx, m); err != nil {
		t.Error(err)
	}
}
