// Package ollama speaks Ollama's API: generate and chat as JSON lines, the models that are there and loaded, and what
// changes them. It decodes requests into package chat's and writes its streams; what lies on disk it asks of a
// keeper. It knows no other dialect, no engine and no file layout.
//
// Field names, defaults and shapes are those of Ollama's published types and of its official clients for Python and
// JavaScript (0.6).
package ollama

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/baleenrun/baleen/internal/auth"
	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/fields"
	"github.com/baleenrun/baleen/internal/server/modeladmin"
)

// Version is the version of Ollama whose API this is: clients refuse servers that say an older one than they need.
const Version = "0.32.15"

// banner is what clients look for at the root to tell that something is there.
const banner = "Ollama is running"

type dialect struct {
	env    *server.Env
	keeper modeladmin.Keeper // nil: models are not changed over HTTP
	cards  cards
}

// New returns the dialect for a server. keeper changes models on disk; nil refuses the routes that do.
func New(keeper modeladmin.Keeper) func(*server.Env) server.Dialect {
	return func(env *server.Env) server.Dialect {
		return &dialect{env: env, keeper: keeper}
	}
}

// Name is the word in logs and documents.
func (d *dialect) Name() string { return "ollama" }

// Claims recognizes paths and clients.
func (d *dialect) Claims(r *http.Request) int {
	switch {
	case strings.HasPrefix(r.URL.Path, "/api/"):
		return 10
	case strings.HasPrefix(r.UserAgent(), "ollama"):
		return 5
	case r.URL.Path == "/":
		return 1
	}
	return 0
}

// errorBody is Ollama's shape of every error.
type errorBody struct {
	Error string `json:"error"`
}

// WriteError answers {"error": "..."}.
func (d *dialect) WriteError(w http.ResponseWriter, _ *http.Request, e *chat.Error) {
	server.WriteJSON(w, server.Status(e), errorBody{message(e)}) //nolint:errcheck // the client is gone
}

// ErrorBody is what WriteError sends.
func (d *dialect) ErrorBody() any { return errorBody{} }

// message words errors as clients of Ollama look for them.
func message(e *chat.Error) string {
	if e.Kind == chat.PromptTooLong {
		least := ""
		if e.AtLeast {
			least = "at least "
		}
		return fmt.Sprintf(
			"the input length exceeds the context length: this model's maximum context length is %d tokens, and the "+
				"prompt has %s%d; "+
				"shorten the prompt or load the model with a larger context",
			e.Context,
			least,
			e.Tokens,
		)
	}
	if e.Kind == chat.UnknownModel && e.Msg == "" {
		return fmt.Sprintf("model '%s' not found%s", e.Model, e.Advice())
	}
	return e.Message()
}

const ndjson = "application/x-ndjson"

// Routes lists the operations.
func (d *dialect) Routes() []server.Route {
	runObjects := []fields.ObjectTable{optionsTable}
	chatObjects := []fields.ObjectTable{
		optionsTable,
		messageTable,
		toolCallTable,
		callFunctionTable,
		toolTable,
		toolFunctionTable,
	}
	list := []server.Route{
		{
			Method:  "GET",
			Path:    "/{$}",
			Plain:   true,
			Summary: "A line of text by which clients see that the server is there",
			Handle:  d.root,
		},
		{
			Method: "POST", Path: "/api/generate", Scope: auth.Infer, Body: generateTable, Objects: runObjects, Stream: ndjson, Answers: []int{404},
			Summary: "Answer a prompt, continue a raw text, or fill a gap; without a prompt, load or unload a model",
			Answer:  chunk{}, Piece: fields.Either{chunk{}, errorBody{}}, Doc: promptDoc, Handle: d.generate,
		},
		{
			Method: "POST", Path: "/api/chat", Scope: auth.Infer, Body: chatTable, Objects: chatObjects, Stream: ndjson, Answers: []int{404},
			Summary: "Continue a conversation, with tools and thinking; without messages, load or unload a model",
			Answer:  chunk{}, Piece: fields.Either{chunk{}, errorBody{}}, Doc: promptDoc, Handle: d.chat,
		},
		{
			Method:  "GET",
			Path:    "/api/tags",
			Scope:   auth.Infer,
			Summary: "The models that are there",
			Answer:  modelsAnswer[listed]{},
			Handle:  d.tags,
		},
		{
			Method:  "GET",
			Path:    "/api/ps",
			Scope:   auth.Infer,
			Summary: "The models that are loaded",
			Answer:  modelsAnswer[loaded]{},
			Handle:  d.ps,
		},
		{
			Method:  "POST",
			Path:    "/api/show",
			Scope:   auth.Infer,
			Body:    showTable,
			Answers: []int{404},
			Summary: "All about a model",
			Answer:  shown{},
			Handle:  d.show,
		},
		{
			Method:  "GET",
			Path:    "/api/version",
			Summary: "The version of the API, as a version of Ollama, and that of this server",
			Answer:  versionAnswer{},
			Handle:  d.version,
		},
		{
			Method:  "POST",
			Path:    "/api/me",
			Scope:   auth.Infer,
			Summary: "Who is signed in at ollama.com: nobody, as with Ollama before a sign-in",
			Answer:  map[string]any{},
			Handle:  d.me,
		},
		{
			Method:  "POST",
			Path:    "/api/embed",
			Scope:   auth.Infer,
			Body:    embedTable,
			Objects: runObjects,
			Answers: []int{404},
			Summary: "Embeddings of texts: no model here makes any yet, so this answers an error",
			Handle:  d.embed,
		},
		{
			Method:  "POST",
			Path:    "/api/embeddings",
			Scope:   auth.Infer,
			Body:    embeddingsTable,
			Objects: runObjects,
			Answers: []int{404},
			Summary: "The older form of /api/embed, with the same answer",
			Handle:  d.embeddings,
		},
	}
	return append(list, d.manageRoutes()...)
}

const promptDoc = "A prompt is never cut: one that does not fit into the context is refused with both counts. " +
	"An answer that reaches the end of the context ends with done_reason length. " +
	"An error after the first line of a stream is a line with an error field, the stream's last. " +
	"A stream's request with the header X-Baleen-Progress: true gets lines without text while its prompt is computed, whose field `prefill` says " +
	"how many tokens are ready, of these from the cache, and in all."

func (d *dialect) root(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := w.Write([]byte(banner))
	return err
}

// me answers as Ollama's server does where nobody is signed in: clients hide what belongs to the cloud then.
func (d *dialect) me(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("WWW-Authenticate", "Bearer")
	return &chat.Error{
		Kind: chat.Unauthorized,
		Msg:  "unauthorized: this server has no accounts, and nobody is signed in at ollama.com",
	}
}

type versionAnswer struct {
	Version string `json:"version"`
	Baleen  string `json:"baleen"`
}

type modelsAnswer[T any] struct {
	Models []T `json:"models"`
}

func (d *dialect) version(w http.ResponseWriter, _ *http.Request) error {
	return server.WriteJSON(w, http.StatusOK, versionAnswer{Version, d.env.Version})
}

// decode reads a request's body by a table.
func decode[T any](r *http.Request, t *fields.Table[T], dst *T) error {
	return server.Decode(r, t, dst)
}

// resolve finds a model by the name that a client uses. A name without a tag means the tag latest, which models of
// this server may or may not have in their own name.
func (d *dialect) resolve(ctx context.Context, name string) (chat.Spec, error) {
	if strings.TrimSpace(name) == "" {
		return chat.Spec{}, &chat.Error{Kind: chat.Invalid, Field: "model", Missing: true, Msg: "model is required"}
	}
	spec, err := d.env.Chat.Resolve(ctx, name)
	if !unknown(err) {
		return spec, err
	}
	other := withTag(name)
	if other == name {
		other = strings.TrimSuffix(name, ":latest")
	}
	if other == name {
		return spec, err
	}
	spec2, err2 := d.env.Chat.Resolve(ctx, other)
	if !unknown(err2) {
		return spec2, err2
	}
	near := chat.AsError(err).Near
	if len(near) == 0 {
		near = chat.AsError(err2).Near
	}
	return spec, &chat.Error{Kind: chat.UnknownModel, Model: name, Near: near}
}

func unknown(err error) bool {
	var e *chat.Error
	return errors.As(err, &e) && e.Kind == chat.UnknownModel
}

// withTag is a model's name as clients of Ollama expect it in lists: with a tag.
func withTag(name string) string {
	if strings.Contains(name[strings.LastIndexByte(name, '/')+1:], ":") {
		return name
	}
	return name + ":latest"
}
