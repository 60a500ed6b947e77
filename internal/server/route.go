// Package server is the HTTP side of the models: connections, limits, access, logs, metrics, and the routes of the
// dialects. A dialect is a package of its own that decodes requests into package chat's and writes its streams; this
// package knows none of them.
package server

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/baleenrun/baleen/internal/auth"
	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/fields"
)

// A Dialect is one vendor's way of asking.
type Dialect interface {
	// Name is the word in logs and file names, such as "openai".
	Name() string
	Routes() []Route
	// Claims says how surely a request is of this dialect, for errors outside its routes: 0 not at all.
	Claims(r *http.Request) int
	// WriteError answers with an error in the dialect's own shape. Nothing was written before.
	WriteError(w http.ResponseWriter, r *http.Request, e *chat.Error)
	// ErrorBody is a value of the type that WriteError sends, for the OpenAPI document.
	ErrorBody() any
}

// A Route is one operation.
type Route struct {
	Method  string
	Path    string // as net/http patterns have it, such as /v1/models/{model...}
	Scope   auth.Scope
	Summary string
	Doc     string // more about it, for the reference page
	// When chooses among routes of the same method and path of several dialects; nil: always. Those with When are
	// asked first.
	When func(r *http.Request) bool

	Body    fields.ObjectTable   // of the request; nil: none
	Objects []fields.ObjectTable // that Body refers to
	Query   []Parameter
	Upload  bool  // the body is a file, not JSON
	MaxBody int64 // bytes; 0: the server's limit; negative: no limit

	// Answer is a value of the type that is answered as JSON, and Piece one of the type of a stream's events or lines:
	// for the OpenAPI document.
	Answer, Piece any
	Stream        string // media type of a streamed answer, "" where there is none
	Plain         bool   // the answer is text, not JSON
	Empty         bool   // the answer has no body
	Answers       []int  // statuses beside 200 and those of errors that every route has
	PathPattern   string // regular expression of the path's parameter; "": any text

	// Handle answers. An error that it returns before it has written anything becomes the dialect's error; later,
	// it has written its own terminal event.
	Handle func(w http.ResponseWriter, r *http.Request) error
}

// A Parameter is one of a route's query parameters.
type Parameter struct {
	Name, Doc string
	Type      fields.Type
}

// checkQuery refuses values of declared parameters that are not of their type. Parameters that are not declared have no
// effect: clients and proxies add theirs.
func (r *Route) checkQuery(req *http.Request) error {
	if len(r.Query) == 0 || req.URL.RawQuery == "" {
		return nil
	}
	values, err := url.ParseQuery(req.URL.RawQuery)
	if err != nil {
		return chat.Invalidf("", "the address has a query that cannot be read: %v", err)
	}
	for _, q := range r.Query {
		for _, text := range values[q.Name] {
			if err := fields.CheckText(q.Name, text, q.Type); err != nil {
				return err
			}
		}
	}
	return nil
}

// Env is what dialects work with.
type Env struct {
	Chat    *chat.Service
	Log     *slog.Logger
	Version string
	Now     func() time.Time
	Ready   func() bool   // the server takes requests
	Limits  fields.Limits // of what requests hold
}

// LimitsOf is Env.Limits, for those who have a request alone.
func LimitsOf(r *http.Request) fields.Limits { return callOf(r.Context()).limits }

// Body reads a request's body, within the route's limit.
func Body(r *http.Request) ([]byte, error) {
	c := callOf(r.Context())
	b, err := c.readBody(r)
	if err != nil {
		return nil, err
	}
	c.record("request.json", b)
	return b, nil
}

type callKey struct{}

func callOf(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	return &call{maxBody: defaultMaxBody, trace: &chat.Trace{}}
}

// RequestID returns the id of a request.
func RequestID(r *http.Request) string { return callOf(r.Context()).trace.ID }
