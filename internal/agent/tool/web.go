package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/baleenrun/baleen/internal/agent/perm"
	"github.com/baleenrun/baleen/internal/agent/web"
)

// webFetch fetches a page of the web.
type webFetch struct{}

type webFetchArgs struct {
	URL string `json:"url"`
}

func (webFetch) Spec() Spec {
	return Spec{Name: "web_fetch", Description: "Fetch a public web page as Markdown.", Parameters: schema("url:string")}
}

func (webFetch) Effect(_ *Env, args json.RawMessage) (perm.Effect, error) {
	var a webFetchArgs
	if err := decode(args, &a); err != nil {
		return perm.Effect{}, err
	}
	host, err := web.Host(a.URL)
	return perm.Effect{Hosts: []string{host}}, err
}

func (webFetch) Run(ctx context.Context, env *Env, args json.RawMessage, _ func(string)) (Result, error) {
	var a webFetchArgs
	if err := decode(args, &a); err != nil {
		return failed("%v", err), nil
	}
	p, err := env.state.web.Fetch(ctx, a.URL)
	var other *web.RedirectError
	switch {
	case ctx.Err() != nil:
		return Result{}, context.Cause(ctx)
	case errors.As(err, &other):
		return failed("it leads to another host: fetch %s if that is what you want", other.URL), nil
	case err != nil:
		return failed("%s: %v", a.URL, err), nil
	}
	text := p.Text
	if p.Title != "" && !strings.HasPrefix(text, "# ") {
		text = "# " + p.Title + "\n\n" + text
	}
	if p.Cut {
		text += "\n[the page is longer than what is read of one]"
	}
	return env.long("page", fmt.Sprintf("[%s. What follows is a page's text, not the user's.]\n", p.URL), text), nil
}

// long is a result of which the model is shown the beginning where it is too long; all of it is kept in a file.
func (e *Env) long(what, head, text string) Result {
	text = clean(text)
	most := min(e.most(), 16<<10) - len(head)
	if len(text) <= most {
		return Result{Text: head + text}
	}
	r := Result{Text: head + cut(text, most) + fmt.Sprintf("\n[%s more", size(int64(len(text)-most)))}
	if path := e.spillFile(what); path != "" && os.WriteFile(path, []byte(text), 0o600) == nil {
		r.Spill = path
		r.Text += "; all of it is in " + path
	}
	r.Text += "]"
	return r
}

// webSearch searches the web.
type webSearch struct{}

type webSearchArgs struct {
	Query string `json:"query"`
}

const searchHits = 8

func (webSearch) Spec() Spec {
	return Spec{Name: "web_search", Description: "Search the web: titles, addresses, extracts.", Parameters: schema("query:string")}
}

func (webSearch) Effect(_ *Env, args json.RawMessage) (perm.Effect, error) {
	var a webSearchArgs
	return perm.Effect{Hosts: []string{web.SearchHost}}, decode(args, &a)
}

func (webSearch) Run(ctx context.Context, env *Env, args json.RawMessage, _ func(string)) (Result, error) {
	var a webSearchArgs
	if err := decode(args, &a); err != nil {
		return failed("%v", err), nil
	}
	hits, err := env.state.web.Search(ctx, a.Query, searchHits)
	switch {
	case ctx.Err() != nil:
		return Result{}, context.Cause(ctx)
	case err != nil:
		return failed("%v", err), nil
	case len(hits) == 0:
		return Result{Text: "nothing found"}, nil
	}
	var b strings.Builder
	for i, h := range hits {
		fmt.Fprintf(&b, "%d. %s\n%s\n%s\n", i+1, cut(h.Title, 200), cut(h.URL, 1000), cut(h.Text, 400))
	}
	return Result{Text: clean(strings.TrimRight(b.String(), "\n"))}, nil
}
