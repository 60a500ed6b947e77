// Package openai speaks OpenAI's API: chat completions, completions, responses and models. It decodes requests into
// package chat's and writes its streams back; it knows no other dialect and nothing of models.
package openai

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/auth"
	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/fields"
)

// dialect is OpenAI's.
type dialect struct {
	env   *server.Env
	store *responseStore
}

// New returns the dialect.
func New(env *server.Env) server.Dialect { return &dialect{env: env, store: newResponseStore()} }

// Name is "openai".
func (d *dialect) Name() string { return "openai" }

// Claims claims what is below /v1.
func (d *dialect) Claims(r *http.Request) int {
	if strings.HasPrefix(r.URL.Path, "/v1/") {
		return 1
	}
	return 0
}

// Routes lists them.
func (d *dialect) Routes() []server.Route {
	shared := []fields.ObjectTable{streamOptionsTable}
	return []server.Route{
		{
			Method: "POST", Path: "/v1/chat/completions", Scope: auth.Infer, Summary: "Answer a conversation",
			Body: chatTable, Objects: append(chatObjects(), shared...), Answer: chatAnswer{}, Piece: fields.Either{chunk{}, errorAnswer{}, done}, Stream: "text/event-stream", Answers: []int{404}, Handle: d.chat,
			Doc: "Reasoning comes as `reasoning_content` beside `content`. " + drawDoc + server.ProgressDoc,
		},
		{
			Method: "POST", Path: "/v1/completions", Scope: auth.Infer, Summary: "Continue a text, or fill a gap in it",
			Body: completionTable, Objects: shared, Answer: textChunk{}, Piece: fields.Either{textChunk{}, errorAnswer{}, done}, Stream: "text/event-stream", Answers: []int{404}, Handle: d.completions,
			Doc: drawDoc + server.ProgressDoc,
		},
		{
			Method: "POST", Path: "/v1/responses", Scope: auth.Infer, Summary: "Answer with items, with the " +
				"conversation kept by the server",
			Body: responseTable, Objects: responseObjects(), Answer: responseOut{}, Piece: map[string]any{}, Stream: "text/event-stream", Answers: []int{404}, Handle: d.responses,
			Doc: "Responses are kept in memory, the last thousand of them and at most 256 MiB, until the server " +
				"ends; each API key finds its own alone. Reasoning comes as items with its whole text. " + drawDoc + server.ProgressDoc,
		},
		{
			Method: "POST", Path: "/v1/responses/input_tokens", Scope: auth.Infer, Summary: "Count the tokens of a " +
				"request",
			Body: responseTable, Objects: responseObjects(), Answer: countAnswer{}, Answers: []int{404}, Handle: d.countResponse,
		},
		{
			Method:  "GET",
			Path:    "/v1/responses/{id}",
			Scope:   auth.Infer,
			Summary: "Get a kept response",
			Query: []server.Parameter{
				{Name: "stream", Type: fields.Bool().Only(false), Doc: "true is refused: a kept response is whole"},
			},
			Answer: responseOut{},
			Handle: d.getResponse,
		},
		{
			Method:  "DELETE",
			Path:    "/v1/responses/{id}",
			Scope:   auth.Infer,
			Summary: "Forget a kept response",
			Answer:  deletedAnswer{},
			Handle:  d.deleteResponse,
		},
		{
			Method:  "GET",
			Path:    "/v1/responses/{id}/input_items",
			Scope:   auth.Infer,
			Summary: "List a kept response's input",
			Query:   itemsQuery,
			Answer:  itemsAnswer{},
			Handle:  d.inputItems,
		},
		{
			Method:  "POST",
			Path:    "/v1/embeddings",
			Scope:   auth.Infer,
			Summary: "Embeddings of texts: no model here makes any yet, so this answers an error",
			Body:    embeddingTable,
			Answer:  embeddingsAnswer{},
			Answers: []int{404},
			Handle:  d.embeddings,
		},
		{
			Method:  "GET",
			Path:    "/v1/models",
			Scope:   auth.Infer,
			Summary: "List the models",
			Answer:  listAnswer[modelObject]{},
			Handle:  d.models,
		},
		{
			Method:  "GET",
			Path:    "/v1/models/{model...}",
			Scope:   auth.Infer,
			Summary: "Describe a model",
			Answer:  modelObject{},
			Handle:  d.model,
		},
	}
}

const drawDoc = "How tokens are drawn that the request says nothing of is taken from the settings under the model's " +
	"name, then from what the model's " +
	"makers put into its checkpoint, then from OpenAI's documentation: `temperature` and `top_p` 1. With `temperature` 0 the makers' settings do not count. " +
	"Penalties pause inside of tool calls. "

// done ends streams.
const done = fields.Literal("[DONE]")

// An errorBody is OpenAI's error object.
type errorBody struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// message words an error. Clients tell by OpenAI's own words that a prompt is too long: LiteLLM, and with it aider and
// DSPy, LangChain, Pydantic AI and others shorten the conversation then.
func message(e *chat.Error) string {
	if e.Kind == chat.PromptTooLong {
		least := ""
		if e.AtLeast {
			least = "at least "
		}
		return fmt.Sprintf(
			"This model's maximum context length is %d tokens. However, your messages resulted in %s%d tokens, "+
				"which exceeds the context window. "+
				"Please reduce the length of the messages, or load the model with a larger context.",
			e.Context,
			least,
			e.Tokens,
		)
	}
	return e.Message()
}

// errorOf words an error.
func errorOf(e *chat.Error) errorBody {
	b := errorBody{Message: message(e), Type: "invalid_request_error"}
	code, param := "", e.Field
	switch e.Kind {
	case chat.Invalid:
		code = "invalid_value"
		if e.Unknown {
			code = "unknown_parameter"
		}
		if e.Missing {
			code = "missing_required_parameter"
		}
	case chat.Unsupported:
		code = "unsupported_parameter"
	case chat.UnknownModel:
		code, param = "model_not_found", "model"
	case chat.PromptTooLong:
		code = "context_length_exceeded"
	case chat.Unauthorized:
		code = "invalid_api_key"
	case chat.Forbidden:
		code = "permission_denied"
	case chat.BodyTooLarge:
		code = "request_too_large"
	case chat.SlowBody:
		code = "request_timeout"
	case chat.NotFound:
		code = "not_found"
	case chat.BadMethod:
		code = "method_not_allowed"
	case chat.Overloaded:
		b.Type, code = "service_unavailable_error", "overloaded"
	case chat.Unavailable:
		b.Type, code = "service_unavailable_error", "unavailable"
	case chat.RateLimited:
		b.Type, code = "rate_limit_error", "rate_limit_exceeded"
	case chat.Timeout:
		b.Type, code = "server_error", "timeout"
	default:
		b.Type, code = "server_error", "server_error"
	}
	b.Code = &code
	if param != "" {
		b.Param = &param
	}
	return b
}

// WriteError answers {"error": {...}}.
func (d *dialect) WriteError(w http.ResponseWriter, _ *http.Request, e *chat.Error) {
	server.WriteJSON(w, server.Status(e), errorAnswer{errorOf(e)}) //nolint:errcheck // the client is gone
}

// ErrorBody is what WriteError sends.
func (d *dialect) ErrorBody() any { return errorAnswer{} }

type errorAnswer struct {
	Error errorBody `json:"error"`
}

type listAnswer[T any] struct {
	Object string `json:"object" schema:"list"`
	Data   []T    `json:"data"`
}

// A modelObject is an element of the list of models.
type modelObject struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func modelOf(s chat.Spec) modelObject {
	return modelObject{ID: s.Name, Object: "model", Created: max(0, s.Time.Unix()), OwnedBy: "baleen"}
}

func (d *dialect) models(w http.ResponseWriter, r *http.Request) error {
	specs, err := d.env.Chat.Catalog().List(r.Context())
	if err != nil {
		return err
	}
	list := make([]modelObject, 0, len(specs))
	for _, s := range specs {
		list = append(list, modelOf(s))
	}
	return server.WriteJSON(w, http.StatusOK, listAnswer[modelObject]{"list", list})
}

func (d *dialect) model(w http.ResponseWriter, r *http.Request) error {
	s, err := d.env.Chat.Resolve(r.Context(), r.PathValue("model"))
	if err != nil {
		return err
	}
	return server.WriteJSON(w, http.StatusOK, modelOf(s))
}

// known refuses a name that no model has, before it is looked at what fields mean together: a client that names a
// wrong model should learn that first.
func (d *dialect) known(r *http.Request, model string) error {
	_, err := d.env.Chat.Resolve(r.Context(), model)
	return err
}

// usage is that of completions.
type usage struct {
	Prompt        int           `json:"prompt_tokens"`
	Completion    int           `json:"completion_tokens"`
	Total         int           `json:"total_tokens"`
	PromptDetails promptDetails `json:"prompt_tokens_details"`
	OutDetails    outDetails    `json:"completion_tokens_details"`
	Concluded     int           `json:"baleen_concluded,omitempty"`
}

type promptDetails struct {
	Cached int `json:"cached_tokens"`
}

type outDetails struct {
	Reasoning int `json:"reasoning_tokens"`
}

func usageOf(u chat.Usage) *usage {
	return &usage{
		u.Prompt,
		u.Generated,
		u.Prompt + u.Generated,
		promptDetails{u.Cached},
		outDetails{u.Reasoning},
		u.Concluded,
	}
}

// finishReason is the word of completions.
func finishReason(r chat.Reason) string {
	switch r {
	case chat.Length:
		return "length"
	case chat.ToolCalls:
		return "tool_calls"
	}
	return "stop"
}

// keepAlive sends a comment now and then, so that nothing between client and server takes a long prompt for a dead
// connection.
func keepAlive(s *server.Writer) (stop func()) {
	return s.Beat(15*time.Second, func() error { return s.Comment("working") })
}

var one = float32(1)
