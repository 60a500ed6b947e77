// Package anthropic speaks Anthropic's Messages API: it decodes its requests into package chat's, and writes chat's
// streams back as messages or as events. It knows the vendor's fields, errors and events; it knows no other dialect
// and nothing of how text is generated.
package anthropic

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

type dialect struct {
	env  *server.Env
	ping time.Duration // how long a stream may be silent before an event tells that it lives
}

// New returns the dialect.
func New(env *server.Env) server.Dialect { return &dialect{env, 10 * time.Second} }

// Name is "anthropic".
func (d *dialect) Name() string { return "anthropic" }

// versioned reports whether a request says that it is of this dialect: every client of the vendor sends the header.
func versioned(r *http.Request) bool { return r.Header.Get("Anthropic-Version") != "" }

// Claims takes requests with the vendor's header, and those below its own paths.
func (d *dialect) Claims(r *http.Request) int {
	switch {
	case versioned(r):
		return 10
	case r.URL.Path == "/v1/messages" || strings.HasPrefix(r.URL.Path, "/v1/messages/"):
		return 9
	}
	return 0
}

const headersDoc = "The headers anthropic-version, anthropic-beta, anthropic-workspace-id and " +
	"anthropic-user-profile-id are accepted and " +
	"change nothing but where a field says so: fields that the vendor has behind a beta need none here. The " +
	"answer's request-id is that of X-Request-Id."

// Routes lists the vendor's operations that a server of local models can have.
func (d *dialect) Routes() []server.Route {
	objects := []fields.ObjectTable{
		messageTable, textTable, imageTable, sourceTable, thinkingBlockTable, redactedTable, toolUseTable, toolResultTable, referenceTable,
		cacheTable, toolTable, choiceTable, thinkingTable, outputTable, contextTable, clearThinkingTable, clearToolsTable, amountTable,
		metadataTable, diagnosticsTable, callerTable, systemOutputTable, additionTable, removalTable, changeTable,
		userContent, assistantContent, systemContent, resultContent, anyContent, editKinds,
	}
	beta := []server.Parameter{
		{Name: "beta", Type: fields.String(), Doc: "accepted and without effect: fields of betas are always there"},
	}
	return []server.Route{
		{
			Method: "POST", Path: "/v1/messages", Scope: auth.Infer, Summary: "Answer a conversation",
			Doc: "With `stream` the answer comes as server-sent events: message_start, ping, content_block_start, content_block_delta, content_block_stop, " +
				"message_delta, message_stop; after a failure, error. The refusal of `thread` has the code thread_unsupported_request, with which the vendor's " +
				"SDKs go on by sending all messages. Penalties of the model's settings pause inside of tool calls. " + server.ProgressDoc + " " + headersDoc,
			Body: createTable, Objects: objects, Query: beta, Stream: "text/event-stream", Answers: []int{404, 529}, Handle: d.create,
			Answer: messageBody{}, Piece: fields.Either{startEvent{}, plainEvent{}, blockStart{}, blockDelta{}, blockStop{}, endEvent{}, errorBody{}},
		},
		{
			Method: "POST", Path: "/v1/messages/count_tokens", Scope: auth.Infer, Summary: "Count the tokens of a " +
				"conversation's prompt",
			Doc: "The count is exact: the prompt is rendered and encoded as for an answer. " + headersDoc, Body: countTable, Objects: objects, Query: beta,
			Answer: countAnswer{}, Answers: []int{404, 529}, Handle: d.count,
		},
		{
			Method: "GET", Path: "/v1/models", Scope: auth.Infer, Summary: "List the models", When: versioned, Query: append(listQuery, beta...),
			Doc: "In this shape where the request has the header anthropic-version.", Answer: listBody{}, Answers: []int{400}, Handle: d.models,
		},
		{
			Method: "GET", Path: "/v1/models/{model...}", Scope: auth.Infer, Summary: "One model", When: versioned, Query: beta,
			Doc: "In this shape where the request has the header anthropic-version.", Answer: modelBody{}, Handle: d.model,
		},
	}
}

// create answers POST /v1/messages.
func (d *dialect) create(w http.ResponseWriter, r *http.Request) error {
	req, err := d.read(w, r, createTable)
	if err != nil {
		return err
	}
	if req.stream {
		return d.events(w, r, req)
	}
	a, err := d.start(r, req)
	if err != nil {
		return err
	}
	defer a.stream.Close()
	return a.whole(w)
}

// start begins an answer. The caller closes its stream.
func (d *dialect) start(r *http.Request, req *request) (*answer, error) {
	edited, err := d.edit(r.Context(), req)
	if err != nil {
		return nil, err
	}
	req.chat.Progress = req.stream // message_start waits for the counts
	s, err := d.env.Chat.Run(r.Context(), &req.chat)
	if err != nil {
		return nil, err
	}
	return &answer{id: chat.NewID("msg_"), req: req, stream: s, edited: edited}, nil
}

type countAnswer struct {
	Context *countBefore `json:"context_management,omitempty"`
	Tokens  int          `json:"input_tokens"`
}

type countBefore struct {
	Tokens int `json:"original_input_tokens"`
}

// count answers POST /v1/messages/count_tokens.
func (d *dialect) count(w http.ResponseWriter, r *http.Request) error {
	req, err := d.read(w, r, countTable)
	if err != nil {
		return err
	}
	var body countAnswer
	if len(req.edits) > 0 {
		n, err := d.env.Chat.Count(r.Context(), &req.chat)
		if err != nil {
			return err
		}
		body.Context = &countBefore{n}
	}
	if _, err := d.edit(r.Context(), req); err != nil {
		return err
	}
	if body.Tokens, err = d.env.Chat.Count(r.Context(), &req.chat); err != nil {
		return err
	}
	return server.WriteJSON(w, http.StatusOK, body)
}

// read decodes a request.
func (d *dialect) read(w http.ResponseWriter, r *http.Request, table *fields.Table[request]) (*request, error) {
	header(w, r)
	req := &request{thinking: thinking{whole: interleaved(r)}}
	return req, server.Decode(r, table, req, func() error {
		_, err := d.env.Chat.Resolve(r.Context(), req.chat.Model)
		return err // a client that names a wrong model should learn that first
	}, req.finish)
}

// interleaved tells whether a client asks for reasoning between calls, by the name that the vendor gave it as a beta.
func interleaved(r *http.Request) bool {
	return strings.Contains(strings.Join(r.Header.Values("Anthropic-Beta"), ","), "interleaved-thinking-2025-05-14")
}

// header sets the vendor's own header of the request's id: SDKs show it with errors.
func header(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Request-Id", server.RequestID(r))
}

type errorBody struct {
	Type  string      `json:"type"`
	Error errorObject `json:"error"`
	ID    string      `json:"request_id"`
}

type errorObject struct {
	Type    string        `json:"type"`
	Message string        `json:"message"`
	Details *errorDetails `json:"details,omitempty"`
}

type errorDetails struct {
	Code string `json:"error_code"`
}

// statusOverloaded is the vendor's own status of a server that has too much to do.
const statusOverloaded = 529

// WriteError answers {"type": "error", "error": {"type", "message"}, "request_id"}.
func (d *dialect) WriteError(w http.ResponseWriter, r *http.Request, e *chat.Error) {
	header(w, r)
	status := server.Status(e)
	if e.Kind == chat.Overloaded {
		status = statusOverloaded
	}
	server.WriteJSON(w, status, errorOf(r, e)) //nolint:errcheck // the client is gone
}

// ErrorBody is what WriteError sends.
func (d *dialect) ErrorBody() any { return errorBody{} }

func errorOf(r *http.Request, e *chat.Error) errorBody {
	body := errorBody{"error", errorObject{Type: errorType(e.Kind), Message: message(e)}, server.RequestID(r)}
	if e.Kind == chat.Unsupported && e.Field == threadField {
		// The vendor's SDKs ask for a thread by themselves; told so, they go on without one.
		body.Error.Details = &errorDetails{"thread_unsupported_request"}
	}
	return body
}

func errorType(k chat.Kind) string {
	switch k {
	case chat.Invalid, chat.Unsupported, chat.PromptTooLong, chat.BadMethod, chat.SlowBody:
		return "invalid_request_error"
	case chat.UnknownModel, chat.NotFound:
		return "not_found_error"
	case chat.Overloaded:
		return "overloaded_error"
	case chat.RateLimited:
		return "rate_limit_error"
	case chat.Timeout:
		return "timeout_error"
	case chat.Unauthorized:
		return "authentication_error"
	case chat.Forbidden:
		return "permission_error"
	case chat.BodyTooLarge:
		return "request_too_large"
	}
	return "api_error"
}

// message words an error as clients of the vendor know it: paths have dots only, and an agent that compacts its
// conversation looks for "prompt is too long".
func message(e *chat.Error) string {
	path := dotted(e.Field)
	switch {
	case e.Kind == chat.PromptTooLong:
		return fmt.Sprintf("prompt is too long: %d tokens > %d maximum", e.Tokens, e.Context)
	case e.Unknown:
		_, hint, _ := strings.Cut(e.Msg, "; ")
		if hint != "" {
			hint = " (" + hint + ")"
		}
		return path + ": Extra inputs are not permitted" + hint
	case e.Missing:
		return path + ": Field required"
	case path != "" && e.Msg != "":
		return path + ": " + e.Msg
	}
	return e.Message()
}

// dotted spells a path such as messages[2].content as messages.2.content.
func dotted(path string) string {
	return strings.NewReplacer("[", ".", "]", "").Replace(path)
}
