package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/baleenrun/baleen/internal/agent/perm"
)

// edit replaces a stretch of a file.
type edit struct{}

type editArgs struct {
	Path string `json:"path"`
	Old  string `json:"old"`
	New  string `json:"new"`
	All  bool   `json:"all,omitempty"`
}

func (edit) Spec() Spec {
	return Spec{
		Name: "edit", Core: true,
		Description: "Replace old, copied exactly from the file, by new. all: everywhere.",
		Parameters:  schema("path:string", "old:string", "new:string", "all?:boolean"),
	}
}

func (edit) Effect(env *Env, args json.RawMessage) (perm.Effect, error) {
	var a editArgs
	if err := decode(args, &a); err != nil {
		return perm.Effect{}, err
	}
	at, err := env.agree(a.Path)
	return perm.Effect{Writes: []string{at.real}}, err
}

func (edit) Run(_ context.Context, env *Env, args json.RawMessage, _ func(string)) (Result, error) {
	var a editArgs
	if err := decode(args, &a); err != nil {
		return failed("%v", err), nil
	}
	return env.edit(a.Path, []replacement{{a.Old, a.New, a.All}})
}

// edit makes replacements in a file, one after the other, all or none.
func (e *Env) edit(path string, rs []replacement) (Result, error) {
	at, err := e.find(path)
	if err != nil {
		return failed("%v", err), nil
	}
	data, err := e.all(at, wholeBytes)
	if err != nil {
		return failed("%v", err), nil
	}
	t, err := decodeText(data)
	if err != nil {
		return failed("%s: %v", at.shown, err), nil
	}
	s := t.s
	var said []string
	for i, r := range rs {
		var what string
		s, what, err = r.apply(s, at.shown)
		if err != nil {
			where := ""
			if len(rs) > 1 {
				where = fmt.Sprintf("edit %d of %d: ", i+1, len(rs))
			}
			text := fmt.Sprintf("%s%v\nNothing was changed.", where, err)
			if e.knows(at, data) == modified {
				text += " The file has changed since you read it: read it again."
			}
			return Result{Text: text, IsError: true}, nil
		}
		said = append(said, what)
	}
	was := e.knows(at, data)
	res, err := e.commit(at, t.s, t.with(s), "edited", false)
	if !res.IsError {
		res.Text = "edited " + at.shown + ": " + strings.Join(said, "; ")
		if was == modified {
			e.forget(at) // what stands elsewhere in it is not known
			res.Text += "\n(the file had changed since you read it; the other changes are kept)"
		}
	}
	return res, err
}

// forget makes a file unread.
func (e *Env) forget(at place) {
	e.state.mu.Lock()
	defer e.state.mu.Unlock()
	delete(e.state.seen, at.real)
}
