package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/baleenrun/baleen/internal/agent/perm"
)

// write makes a file, or gives one that is there another text as a whole.
type write struct{}

type writeArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func (write) Spec() Spec {
	return Spec{
		Name: "write", Core: true,
		Description: "Create a file, or replace one that you have read.",
		Parameters:  schema("path:string", "content:string"),
	}
}

func (write) Effect(env *Env, args json.RawMessage) (perm.Effect, error) {
	var a writeArgs
	if err := decode(args, &a); err != nil {
		return perm.Effect{}, err
	}
	at, err := env.agree(a.Path)
	return perm.Effect{Writes: []string{at.real}}, err
}

func (write) Run(_ context.Context, env *Env, args json.RawMessage, _ func(string)) (Result, error) {
	var a writeArgs
	if err := decode(args, &a); err != nil {
		return failed("%v", err), nil
	}
	at, err := env.find(a.Path)
	if err != nil {
		return failed("%v", err), nil
	}
	st, err := env.stat(at)
	if errors.Is(err, fs.ErrNotExist) {
		if strings.HasSuffix(a.Path, "/") {
			return failed("%s is a folder's name", a.Path), nil
		}
		return env.commit(at, "", text{s: a.Content}, "created", true)
	}
	if err != nil {
		return failed("%s: %v", at.shown, plain(err)), nil
	}
	if st.IsDir() {
		return failed("%s is a folder", at.shown), nil
	}
	data, err := env.all(at, wholeBytes)
	if err != nil {
		return failed("%v", err), nil
	}
	t, err := decodeText(data)
	if err != nil {
		return failed("%s: %v; it is not written over", at.shown, err), nil
	}
	if len(data) > 0 {
		switch env.knows(at, data) {
		case unread:
			return failed("%s is there already, and you have not read it: read it first, then write it or use edit", at.shown), nil
		case partly:
			return failed("you have seen only a part of %s: use edit, or read the rest first", at.shown), nil
		case modified:
			return failed("%s has changed since you read it: read it again", at.shown), nil
		}
	}
	content := a.Content
	if !strings.Contains(t.s, "\r") {
		content = strings.ReplaceAll(content, "\r\n", "\n")
	}
	// Models leave a last newline out, or put one there, without meaning anything by it; one that is the only change is
	// meant where it is added.
	if ends := strings.HasSuffix(content, "\n"); t.s != "" && ends != strings.HasSuffix(t.s, "\n") {
		switch {
		case !ends:
			content += "\n"
		case content != t.s+"\n":
			content = strings.TrimSuffix(content, "\n")
		}
	}
	if content == t.s {
		return failed("%s has just that text already: nothing was changed", at.shown), nil
	}
	return env.commit(at, t.s, t.with(content), "written", true)
}

// commit puts a changed text on disk. whole: the model knows all of it.
func (e *Env) commit(at place, before string, t text, done string, whole bool) (Result, error) {
	data, err := t.encode()
	if err != nil {
		return failed("%s: %v", at.shown, err), nil
	}
	if err := e.replace(at, data, 0o666); err != nil {
		return failed("%s cannot be written: %v", at.shown, plain(err)), nil
	}
	e.wrote(at, data, whole)
	return Result{
		Text:    fmt.Sprintf("%s %s: %s", done, at.shown, count(len(lines(t.s)), "line")),
		Diff:    diff(at.shown, before, t.s),
		Changed: []string{at.real},
	}, nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
