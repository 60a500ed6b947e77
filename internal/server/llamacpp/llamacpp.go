// Package llamacpp speaks the routes of llama.cpp's server that editors and its other clients use beside OpenAI's:
// completion and infill, tokenize and detokenize, apply-template, props, slots and health. It decodes requests into
// package chat's and writes its streams; it knows no other dialect: how a conversation is written it is told.
package llamacpp

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/baleenrun/baleen/internal/auth"
	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/fields"
)

type dialect struct {
	env    *server.Env
	shapes server.Shapes
}

// New returns the dialect. shapes read the messages of /apply-template, which are OpenAI's.
func New(shapes server.Shapes) func(*server.Env) server.Dialect {
	return func(env *server.Env) server.Dialect { return &dialect{env, shapes} }
}

// Name is "llamacpp".
func (d *dialect) Name() string { return "llamacpp" }

var paths = []string{
	"/health",
	"/v1/health",
	"/props",
	"/slots",
	"/tokenize",
	"/detokenize",
	"/apply-template",
	"/completion",
	"/completions",
	"/infill",
}

// Claims takes its own paths.
func (d *dialect) Claims(r *http.Request) int {
	if slices.Contains(paths, r.URL.Path) {
		return 10
	}
	return 0
}

const runDoc = "The answer has the fields of llama.cpp's; `tokens_cached` is how many tokens of the prompt came from the cache. " +
	"A prompt that does not fit into the context is refused with both counts, and `truncated` says that the answer reached the context's end. " +
	server.ProgressDoc

// Routes lists the operations.
func (d *dialect) Routes() []server.Route {
	run := func(path, summary string, body fields.ObjectTable, handle func(http.ResponseWriter, *http.Request) error, doc string, objects ...fields.ObjectTable) server.Route {
		return server.Route{
			Method: "POST", Path: path, Scope: auth.Infer, Summary: summary, Body: body, Objects: objects, Answers: []int{404}, Handle: handle, Doc: doc + runDoc,
			Answer: fields.Either{
				finalOut{},
				[]finalOut{},
				map[string]any{},
				[]map[string]any{},
			}, Piece: fields.Either{pieceOut{}, finalOut{}, map[string]any{}, errorAnswer{}}, Stream: "text/event-stream",
		}
	}
	model := []server.Parameter{
		{
			Name: "model",
			Type: fields.String(),
			Doc:  "name of the model; not given: the one that requests without a name get",
		},
	}
	health := "Whether the server takes requests"
	return []server.Route{
		{
			Method:  "GET",
			Path:    "/health",
			Summary: health,
			Answer:  healthAnswer{},
			Answers: []int{503},
			Handle:  d.health,
		},
		{
			Method:  "GET",
			Path:    "/v1/health",
			Summary: health,
			Answer:  healthAnswer{},
			Answers: []int{503},
			Handle:  d.health,
		},
		{
			Method:  "GET",
			Path:    "/props",
			Scope:   auth.Infer,
			Summary: "What the model is and what requests that say nothing get",
			Query:   model,
			Answer:  propsAnswer{},
			Answers: []int{404},
			Handle:  d.props,
		},
		{
			Method:  "GET",
			Path:    "/slots",
			Scope:   auth.Infer,
			Summary: "The sequences in the batch, and a free place behind them: the batch has no fixed number",
			Query: append(model, server.Parameter{
				Name: "fail_on_no_slot", Type: fields.String(), Doc: "accepted: there is always a free place",
			}),
			Answer:  []slotOut{},
			Answers: []int{404},
			Handle:  d.slots,
		},
		{
			Method:  "POST",
			Path:    "/tokenize",
			Scope:   auth.Infer,
			Summary: "The token ids of a text",
			Body:    tokenizeTable,
			Answer:  fields.Either{tokensAnswer{}, piecesAnswer{}},
			Answers: []int{404},
			Handle:  d.tokenize,
		},
		{
			Method:  "POST",
			Path:    "/detokenize",
			Scope:   auth.Infer,
			Summary: "The text of token ids",
			Body:    detokenizeTable,
			Answer:  contentAnswer{},
			Answers: []int{404},
			Handle:  d.detokenize,
		},
		{
			Method:  "POST",
			Path:    "/apply-template",
			Scope:   auth.Infer,
			Summary: "The prompt that the model's template makes of a conversation",
			Body:    d.templateTable(),
			Objects: d.shapes.Objects,
			Answer:  promptAnswer{},
			Answers: []int{404},
			Handle:  d.applyTemplate,
		},
		run(
			"/completion",
			"Continue a text",
			completionTable,
			d.completion,
			"Control tokens that are written in the prompt are control tokens. ",
		),
		run("/completions", "As /completion", completionTable, d.completion, ""),
		run(
			"/infill",
			"Fill a gap in a text",
			infillTable,
			d.infill,
			"For models trained for it; others refuse. ",
			extraTable,
		),
	}
}

type errorAnswer struct {
	Error errorBody `json:"error"`
}

type errorBody struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Type    string `json:"type"`
	Prompt  int    `json:"n_prompt_tokens,omitempty"`
	Context int    `json:"n_ctx,omitempty"`
}

func errorOf(e *chat.Error) errorAnswer {
	b := errorBody{Code: server.Status(e), Message: e.Message()}
	switch e.Kind {
	case chat.Invalid, chat.Unsupported, chat.BadMethod, chat.SlowBody, chat.BodyTooLarge:
		b.Type = "invalid_request_error"
	case chat.PromptTooLong:
		b.Type, b.Prompt, b.Context = "exceed_context_size_error", e.Tokens, e.Context
		b.Message = fmt.Sprintf(
			"request (%d tokens) exceeds the available context size (%d tokens): shorten the prompt or load the "+
				"model with a larger context",
			e.Tokens,
			e.Context,
		)
	case chat.UnknownModel, chat.NotFound:
		b.Type = "not_found_error"
	case chat.Unauthorized:
		b.Type = "authentication_error"
	case chat.Forbidden:
		b.Type = "permission_error"
	case chat.Overloaded, chat.Unavailable, chat.RateLimited:
		b.Type = "unavailable_error"
	default:
		b.Type = "server_error"
	}
	return errorAnswer{b}
}

// WriteError answers {"error": {"code", "message", "type"}}.
func (d *dialect) WriteError(w http.ResponseWriter, _ *http.Request, e *chat.Error) {
	server.WriteJSON(w, server.Status(e), errorOf(e)) //nolint:errcheck // the client is gone
}

// ErrorBody is what WriteError sends.
func (d *dialect) ErrorBody() any { return errorAnswer{} }
