package ollama

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server"
)

func (d *dialect) generate(w http.ResponseWriter, r *http.Request) error {
	began := time.Now()
	q := run{stream: true}
	if err := decode(r, generateTable, &q); err != nil {
		return err
	}
	empty := q.prompt == "" && len(q.images) == 0 && q.suffix == ""
	return d.run(w, r, &answer{d: d, r: &q, began: began}, empty, q.generate)
}

func (d *dialect) chat(w http.ResponseWriter, r *http.Request) error {
	began := time.Now()
	q := run{stream: true}
	if err := decode(r, chatTable, &q); err != nil {
		return err
	}
	return d.run(w, r, &answer{d: d, r: &q, began: began, chat: true}, len(q.messages) == 0, q.conversation)
}

// run answers a request; an empty one only loads or unloads the model.
func (d *dialect) run(
	w http.ResponseWriter,
	r *http.Request,
	a *answer,
	empty bool,
	request func(chat.Spec) *chat.Request,
) error {
	ctx := r.Context()
	spec, err := d.resolve(ctx, a.r.model)
	if err != nil {
		return err
	}
	if err := a.r.check(); err != nil {
		return err
	}
	if empty && a.r.keep != nil && *a.r.keep == 0 {
		if _, err := d.env.Chat.Unload(ctx, spec.Name); err != nil {
			return err
		}
		return a.nothing(w, "unload")
	}
	lease, err := d.env.Chat.Acquire(ctx, spec.Name, a.r.keep)
	if err != nil {
		return err
	}
	defer lease.Release()
	a.load = lease.Load
	if err := a.r.suit(lease.Model); err != nil {
		return err
	}
	if empty {
		return a.nothing(w, "load")
	}
	if !a.chat && !lease.Model.HasTemplate && a.r.system == "" && len(a.r.images) == 0 {
		a.r.plain = true // a base model continues the prompt, as Ollama's bare template has it
	}
	q := request(spec)
	q.On = lease
	if a.r.debug {
		return a.rendered(ctx, w, q)
	}
	q.Progress = a.r.stream && server.WantsProgress(r)
	s, err := d.env.Chat.Run(ctx, q)
	if err != nil {
		return named(err)
	}
	defer s.Close()
	lease.Release() // the stream has its own
	return a.write(w, s)
}

// suit checks what a request asks against the model that is loaded.
func (r *run) suit(m *chat.Model) error {
	if r.think != nil && *r.think && !m.Thinks() {
		return chat.Unsupportedf("think", "%q does not support thinking", r.model)
	}
	if r.think == nil && m.Format().SupportsThinkingSwitch() {
		on := true // Ollama's default
		r.think = &on
	}
	if n := r.opts.context; n > m.Context {
		if m.Info.MaxContext > 0 && m.Context >= m.Info.MaxContext {
			r.opts.context = m.Context
			return nil
		}
		return chat.Unsupportedf(
			"options.num_ctx",
			"%d tokens are asked for, and this server gives the model %d: ask for less, or start it with --context %d",
			n,
			m.Context,
			n,
		)
	}
	return nil
}

// named puts fields where Ollama's clients have them.
func named(err error) error {
	e := chat.AsError(err)
	if e.Field == "stop" {
		c := *e
		c.Field = "options.stop"
		return &c
	}
	return err
}

// nothing answers a request that had nothing to generate.
func (a *answer) nothing(w http.ResponseWriter, reason string) error {
	c := a.chunk(piece{})
	c.Done, c.Reason = true, reason
	return server.WriteJSON(w, http.StatusOK, c)
}

// rendered answers with the prompt.
func (a *answer) rendered(ctx context.Context, w http.ResponseWriter, q *chat.Request) error {
	_, text, err := a.d.env.Chat.Render(ctx, q)
	if err != nil {
		return named(err)
	}
	c := a.chunk(piece{})
	c.Debug = &debugInfo{text}
	return server.WriteJSON(w, http.StatusOK, c)
}

// notEmbedder is the answer of routes that no model here can serve.
func (d *dialect) notEmbedder(ctx context.Context, name string) error {
	if _, err := d.resolve(ctx, name); err != nil {
		return err
	}
	return &chat.Error{
		Kind: chat.Unsupported,
		Msg:  fmt.Sprintf("%q does not support embeddings: it is not an embedding model", name),
	}
}
