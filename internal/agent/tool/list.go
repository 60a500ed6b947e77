package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/baleenrun/baleen/internal/agent/files"
	"github.com/baleenrun/baleen/internal/agent/perm"
)

// listing shows what is in a folder, or which files have names of a pattern.
type listing struct{}

type listArgs struct {
	Path string `json:"path,omitempty"`
	Glob string `json:"glob,omitempty"`
}

// listShown bounds the names that are shown.
const listShown = 200

func (listing) Spec() Spec {
	return Spec{
		Name: "list", Core: true,
		Description: "List a folder, or files by glob such as **/*.go.",
		Parameters:  schema("path?:string", "glob?:string"),
	}
}

func (listing) Effect(env *Env, args json.RawMessage) (perm.Effect, error) {
	var a listArgs
	if err := decode(args, &a); err != nil {
		return perm.Effect{}, err
	}
	at, err := env.agree(cmp.Or(a.Path, "."))
	return perm.Effect{Reads: []string{at.real}}, err
}

func (listing) Run(ctx context.Context, env *Env, args json.RawMessage, _ func(string)) (Result, error) {
	var a listArgs
	if err := decode(args, &a); err != nil {
		return failed("%v", err), nil
	}
	if strings.ContainsAny(a.Path, "*?[{") && a.Glob == "" {
		if _, err := os.Lstat(filepath.Join(env.Root, a.Path)); err != nil { // a pattern where the folder belongs
			a.Path, a.Glob = "", a.Path
		}
	}
	at, err := env.find(cmp.Or(a.Path, "."))
	if err != nil {
		return failed("%v", err), nil
	}
	st, err := env.stat(at)
	switch {
	case err != nil:
		return Result{Text: env.notThere(at, err).Error(), IsError: true}, nil
	case !st.IsDir():
		return Result{Text: fmt.Sprintf("%s (a file of %s)", at.shown, size(st.Size()))}, nil
	}
	var match *files.Pattern
	if a.Glob != "" {
		if match, err = files.Compile(anywhere(a.Glob)); err != nil {
			return failed("%v", err), nil
		}
	}
	root, rel := env.Root, at.rel
	if rel == "" {
		root, rel = at.real, "."
	}
	r, err := os.OpenRoot(root)
	if err != nil {
		return failed("%v", plain(err)), nil
	}
	defer r.Close()
	var names []string
	many := false
	o := files.Options{}
	if match == nil {
		o.Depth = 1
	}
	err = files.Walk(ctx, r, rel, o, func(e files.Entry) error {
		below := e.Path
		if rel != "." {
			below = strings.TrimPrefix(below, rel+"/")
		}
		if match != nil && (e.IsDir() || !match.Match(below) && !match.Match(e.Path)) {
			return nil
		}
		name := e.Path
		if at.rel == "" {
			name = filepath.Join(root, filepath.FromSlash(name))
		}
		switch {
		case e.IsDir():
			name += "/"
		case e.Type()&os.ModeSymlink != 0:
			if to, err := r.Readlink(e.Path); err == nil {
				name += " -> " + to
			}
		}
		names = append(names, clean(name))
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return Result{}, context.Cause(ctx)
	case errors.Is(err, files.ErrMany):
		many = true
	case err != nil:
		return failed("%s: %v", at.shown, plain(err)), nil
	case len(names) == 0 && match != nil:
		return Result{Text: "no file has a name like " + a.Glob}, nil
	case len(names) == 0:
		return Result{Text: at.shown + " is empty, or all in it is ignored by .gitignore"}, nil
	}
	var b strings.Builder
	shown := 0
	for _, n := range names {
		if shown == listShown || b.Len()+len(n) > env.most() {
			break
		}
		b.WriteString(n + "\n")
		shown++
	}
	if shown < len(names) {
		more := ""
		if many {
			more = "more than "
		}
		fmt.Fprintf(&b, "[%d of %s%d; give a glob or a folder]\n", shown, more, len(names))
	}
	return Result{Text: strings.TrimSuffix(b.String(), "\n")}, nil
}

func mapKeys[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }
