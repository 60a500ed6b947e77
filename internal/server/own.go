package server

import (
	"bytes"
	"fmt"
	"net/http"
	"time"

	"github.com/baleenrun/baleen/internal/auth"
	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/pool"
	"github.com/baleenrun/baleen/internal/server/fields"
)

// own are the server's own routes: health, metrics, documents, and what no vendor has.
type own struct{ s *Server }

func (o *own) Name() string             { return "baleen" }
func (o *own) Claims(*http.Request) int { return 0 }

type ownError struct {
	Error ownErrorBody `json:"error"`
}

type ownErrorBody struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Field   string `json:"field,omitempty"`
	Tokens  int    `json:"tokens,omitempty"`  // of a prompt that is too long
	Context int    `json:"context,omitempty"` // tokens that the model takes
}

func bodyOf(e *chat.Error) *ownErrorBody {
	return &ownErrorBody{e.Kind.String(), e.Message(), e.Field, e.Tokens, e.Context}
}

// WriteError answers {"error": {"kind", "message", "field"}}.
func (o *own) WriteError(w http.ResponseWriter, _ *http.Request, e *chat.Error) {
	WriteJSON(w, Status(e), ownError{*bodyOf(e)}) //nolint:errcheck // the client is gone
}

// ErrorBody is what WriteError sends.
func (o *own) ErrorBody() any { return ownError{} }

type unloadBody struct{ model string }

var unloadTable = &fields.Table[unloadBody]{Name: "unload", Fields: []fields.Field[unloadBody]{
	{
		Name:     "model",
		Type:     fields.String(),
		Required: true,
		Doc:      "name of the model",
		Set: func(b *unloadBody, v fields.Value) error {
			b.model = v.String()
			return nil
		},
	},
}}

// Routes lists them.
func (o *own) Routes() []Route {
	return []Route{
		{Method: "GET", Path: "/healthz", Summary: "The process answers", Answer: healthAnswer{}, Handle: o.health},
		{
			Method:  "GET",
			Path:    "/readyz",
			Summary: "The server takes requests: 503 while it starts or stops",
			Answer:  readyAnswer{},
			Handle:  o.readiness,
			Answers: []int{503},
		},
		{Method: "GET", Path: "/openapi.json", Summary: "This document", Answer: map[string]any{}, Handle: o.document},
		{
			Method:  "GET",
			Path:    "/metrics",
			Scope:   auth.Watch,
			Plain:   true,
			Summary: "Counts and levels in Prometheus' text format",
			Handle:  o.metrics,
		},
		{
			Method:  "GET",
			Path:    "/baleen/models",
			Scope:   auth.Infer,
			Summary: "Loaded models, with memory, leases and expiry",
			Answer:  modelsAnswer{},
			Handle:  o.models,
		},
		{
			Method:  "POST",
			Path:    "/baleen/unload",
			Scope:   auth.Manage,
			Summary: "Unload a model when nobody uses it",
			Body:    unloadTable,
			Answer:  unloadAnswer{},
			Handle:  o.unload,
			Answers: []int{404},
		},
		{
			Method: "POST", Path: "/baleen/run", Scope: auth.Infer, Body: runTable, Objects: []fields.ObjectTable{runMessageTable}, Piece: RunLine{}, Stream: "application/x-ndjson",
			Summary: "Answer a conversation, or continue a text, as the command run does", Handle: o.run, Answers: []int{404},
			Doc: "The answer comes in lines of JSON: pieces of text and of reasoning, and a last line with done. " +
				"Answers are the same, token by token, as those of " +
				"`baleen run` without a server.",
		},
		{
			Method: "POST", Path: "/baleen/count", Scope: auth.Infer, Body: runTable, Objects: []fields.ObjectTable{runMessageTable}, Answer: RunCount{},
			Summary: "Count the tokens of the prompt of such a request", Handle: o.count, Answers: []int{404},
		},
		{
			Method: "POST", Path: "/baleen/requests/{id}/end-thinking", Scope: auth.Infer, Answer: idAnswer{}, Handle: o.endThinking,
			Summary: "End the reasoning of a running request: its answer begins at the next token",
			Doc: "The id is the X-Request-Id of the running answer; a client may choose it by sending that header. " +
				"Only requests of the same API key are found; " +
				"where several of them have the id, all are meant.",
		},
	}
}

type healthAnswer struct {
	Status  string `json:"status"`
	Version string `json:"version"`
}

type readyAnswer struct {
	Status string `json:"status"`
}

type modelsAnswer struct {
	Models []LoadedModel `json:"models"`
}

type unloadAnswer struct {
	Unloaded bool `json:"unloaded"` // false: it was not loaded
}

type idAnswer struct {
	ID string `json:"id"`
}

func (o *own) health(w http.ResponseWriter, _ *http.Request) error {
	return WriteJSON(w, http.StatusOK, healthAnswer{"ok", o.s.o.Version})
}

func (o *own) readiness(w http.ResponseWriter, _ *http.Request) error {
	if o.s.stopping.Load() {
		return &chat.Error{Kind: chat.Unavailable}
	}
	if !o.s.ready.Load() {
		return &chat.Error{Kind: chat.Unavailable, Msg: "the server is starting", RetryAfter: 2 * time.Second}
	}
	return WriteJSON(w, http.StatusOK, readyAnswer{"ready"})
}

func (o *own) document(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	doc := o.s.openapi[0]
	if keys, err := o.s.o.Keys.Needed(); keys || err != nil {
		doc = o.s.openapi[1]
	}
	_, err := w.Write(doc)
	return err
}

func (o *own) metrics(w http.ResponseWriter, r *http.Request) error {
	specs, err := o.s.o.Chat.Catalog().List(r.Context())
	if err != nil {
		return err
	}
	var b bytes.Buffer
	o.s.o.Metrics.write(&b)
	head(&b, "baleen_active_requests", "gauge", "HTTP requests in work.")
	fmt.Fprintf(&b, "baleen_active_requests %d\n", o.s.Active())
	writeModels(&b, o.s.o.Chat, chat.ByPath(specs))
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, err = w.Write(b.Bytes())
	return err
}

// LoadedModel is a row of GET /baleen/models.
type LoadedModel struct {
	Name      string     `json:"name"`           // by which it was asked for first
	Names     []string   `json:"names"`          // all by which it was asked for
	Path      string     `json:"path,omitempty"` // only for keys with the scope manage
	Loading   bool       `json:"loading"`
	Leaving   bool       `json:"leaving"` // is unloaded as soon as no request uses it
	Bytes     int64      `json:"bytes"`
	Context   int        `json:"context"`
	Requests  int        `json:"requests"` // that use it now
	Running   int        `json:"running"`  // sequences in the batch
	Waiting   int        `json:"waiting"`
	Since     *time.Time `json:"since"`
	Expires   *time.Time `json:"expires"`            // null: in use, or for good
	KeepAlive float64    `json:"keep_alive_seconds"` // negative: for good
}

// seconds is a time to stay, -1 for good.
func seconds(d time.Duration) float64 {
	if d < 0 {
		return -1
	}
	return d.Seconds()
}

func (o *own) models(w http.ResponseWriter, r *http.Request) error {
	list := []LoadedModel{}
	specs, err := o.s.o.Chat.Catalog().List(r.Context())
	if err != nil {
		return err
	}
	byPath := chat.ByPath(specs)
	details := map[string]*chat.Model{}
	status := o.s.o.Chat.Pool().Loaded(func(st pool.Status, m *chat.Model) { details[st.Key] = m })
	for _, st := range status {
		row := LoadedModel{
			Name:      byPath[st.Key].Name,
			Names:     st.Names,
			Path:      st.Key,
			Loading:   st.Loading,
			Leaving:   st.Leaving,
			Bytes:     st.Bytes,
			Requests:  st.Leases,
			KeepAlive: seconds(st.Keep),
		}
		if len(st.Names) > 0 {
			row.Name = st.Names[0]
		}
		if chat.TraceOf(r.Context()).Guest {
			row.Path = ""
		}
		if m := details[st.Key]; m != nil {
			row.Context = m.Context
			e := m.Engine.Stats()
			row.Running, row.Waiting = e.Running, e.Waiting
			if row.Name == "" {
				row.Name = m.Info.Name
			}
		}
		if !st.Since.IsZero() {
			row.Since = &st.Since
		}
		if !st.Expires.IsZero() {
			row.Expires = &st.Expires
		}
		list = append(list, row)
	}
	return WriteJSON(w, http.StatusOK, modelsAnswer{list})
}

func (o *own) unload(w http.ResponseWriter, r *http.Request) error {
	b, err := Body(r)
	if err != nil {
		return err
	}
	var body unloadBody
	if err := unloadTable.Decode(b, &body); err != nil {
		return err
	}
	was, err := o.s.o.Chat.Unload(r.Context(), body.model)
	if err != nil {
		return err
	}
	return WriteJSON(w, http.StatusOK, unloadAnswer{was})
}

func (o *own) endThinking(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if !o.s.o.Chat.EndThinking(r.Context(), id) {
		return &chat.Error{Kind: chat.NotFound, Msg: fmt.Sprintf("no running request has the id %q", id)}
	}
	return WriteJSON(w, http.StatusOK, idAnswer{id})
}
