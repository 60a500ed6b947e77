package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/baleenrun/baleen/internal/nearest"
	"github.com/baleenrun/baleen/internal/sample"
	"github.com/baleenrun/baleen/internal/tokenizer"
)

// A Kind sorts errors by what a client can do about them.
type Kind uint8

// Kinds of errors.
const (
	Internal      Kind = iota // a failure of the server
	Invalid                   // a field has a value that it cannot have; Field, Msg
	Unsupported               // a documented field that this server or this model cannot honour; Field, Msg
	UnknownModel              // Model
	PromptTooLong             // Tokens, Context
	Overloaded                // the queue or the memory is full; RetryAfter
	Unavailable               // the server is stopping, or a model cannot be loaded
	Timeout                   // the deadline passed
	Cancelled                 // the client went away
	Unauthorized              // no key, or an unknown one
	Forbidden                 // a key without the scope, or a host or origin that is not allowed
	BodyTooLarge              // Limit
	NotFound                  // no such route or object
	BadMethod                 // the route exists, for other methods
	SlowBody                  // the body did not come in time
	Upstream                  // another server, from which a model is fetched, failed or refused; Msg
	RateLimited               // the caller has its share of what is full already; RetryAfter
	NoSpace                   // a disk is full; Msg
)

var kinds = [...]string{
	Internal: "internal", Invalid: "invalid", Unsupported: "unsupported", UnknownModel: "unknown model", PromptTooLong: "prompt too long",
	Overloaded: "overloaded", Unavailable: "unavailable", Timeout: "timeout", Cancelled: "cancelled", Unauthorized: "unauthorized",
	Forbidden: "forbidden", BodyTooLarge: "body too large", NotFound: "not found", BadMethod: "method not allowed", SlowBody: "slow body", Upstream: "upstream failed",
	RateLimited: "rate limited", NoSpace: "no space",
}

// ParseKind finds a kind by its name.
func ParseKind(name string) (Kind, bool) {
	i := slices.Index(kinds[:], name)
	return Kind(max(i, 0)), i >= 0
}

// String names the kind for logs.
func (k Kind) String() string { return kinds[k] }

// An Error is a refusal or a failure, with the numbers that belong to it. Each dialect puts it into its own shape;
// Message is for people and the same everywhere.
type Error struct {
	Kind       Kind
	Field      string // path of the field in the client's request, such as "messages[2].content"
	Msg        string // what was wrong and what to do; "" lets Message say it from the numbers
	Model      string
	Near       []string      // UnknownModel: names that may have been meant
	Tokens     int           // of the prompt
	AtLeast    bool          // PromptTooLong: Tokens is a bound, as the prompt was too long even to be encoded
	Context    int           // tokens that the model can take
	Limit      int64         // bytes of a body
	RetryAfter time.Duration // when it may work, 0: not known
	Allow      string        // methods of the route
	Unknown    bool          // Invalid: the field is not one that the route has
	Missing    bool          // Invalid: the field must be there
	Err        error         // the cause, for logs; not shown to clients
}

// Message says what was wrong, where, and what to do.
func (e *Error) Message() string {
	switch {
	case e.Msg != "" && e.Field != "" && !strings.HasPrefix(e.Msg, e.Field):
		return e.Field + ": " + e.Msg
	case e.Msg != "":
		return e.Msg
	}
	switch e.Kind {
	case UnknownModel:
		return fmt.Sprintf("model %q is not here%s", e.Model, e.Advice())
	case PromptTooLong:
		least := ""
		if e.AtLeast {
			least = "at least "
		}
		return fmt.Sprintf(
			"the prompt has %s%s tokens, and the context of this model is %s tokens: shorten the prompt or load the "+
				"model with a larger context",
			least,
			thousands(e.Tokens),
			thousands(e.Context),
		)
	case Overloaded:
		return fmt.Sprintf("the server is busy: try again in %d seconds", e.RetrySeconds())
	case RateLimited:
		return fmt.Sprintf("too many requests of this key are in work: try again in %d seconds", e.RetrySeconds())
	case Unavailable:
		return "the server is stopping"
	case SlowBody:
		return "the request body did not come in time"
	case Upstream:
		return "the server that has the model failed: try again later"
	case Timeout:
		return "the request took longer than its deadline"
	case Cancelled:
		return "the request was cancelled"
	case Unauthorized:
		return "a valid API key is needed: send it as Authorization: Bearer KEY or as x-api-key"
	case BodyTooLarge:
		return fmt.Sprintf("the request body is larger than %d bytes", e.Limit)
	case NotFound:
		return "there is no such route"
	case BadMethod:
		return "this route answers " + e.Allow + " only"
	}
	return "internal error: the server's log says more"
}

// Advice goes on from the statement that a model is not there: which names may have been meant, or else how to get it.
func (e *Error) Advice() string {
	if len(e.Near) > 0 {
		return "; did you mean " + nearest.Quoted(e.Near) + "?"
	}
	if strings.ContainsFunc(e.Model, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return ": list the models"
	}
	return ": list the models, or fetch it with: baleen pull " + e.Model
}

// Error is Message with the cause, where Message does not say it.
func (e *Error) Error() string {
	m := e.Message()
	said := e.Msg == "" && e.Kind == PromptTooLong // the numbers are the cause's
	if e.Err == nil || said || strings.Contains(m, e.Err.Error()) {
		return m
	}
	return m + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// RetrySeconds is RetryAfter in whole seconds, at least 1: the value of a Retry-After header.
func (e *Error) RetrySeconds() int { return max(1, int((e.RetryAfter+time.Second-1)/time.Second)) }

// AsError finds the *Error in err, or makes one: of the end of a context, of a text that the tokenizer refuses, or of
// an internal failure.
func AsError(err error) *Error {
	var e *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Kind: Timeout, Err: err}
	case errors.Is(err, context.Canceled):
		return &Error{Kind: Cancelled, Err: err}
	case errors.Is(err, tokenizer.ErrTooManySteps): // of the client's text
		return &Error{Kind: Invalid, Msg: err.Error(), Err: err}
	case errors.Is(err, sample.ErrNotFinite): // no fault of the server's, and not one that asking again mends
		return &Error{
			Kind: Internal, Err: err,
			Msg: "the model's output is no numbers: its file is damaged (fetch it again), or its weights overflow",
		}
	}
	return &Error{Kind: Internal, Err: err}
}

// Invalidf refuses the value of a field.
func Invalidf(field, format string, args ...any) *Error {
	return &Error{Kind: Invalid, Field: field, Msg: fmt.Sprintf(format, args...)}
}

// MissingField refuses a request without a field that it must have.
func MissingField(field string) *Error {
	return &Error{Kind: Invalid, Field: field, Msg: "this field is missing", Missing: true}
}

// EmptyField refuses a list without elements where something must stand.
func EmptyField(field string) *Error {
	return Invalidf(field, "this list is empty: at least one element is needed")
}

// Unsupportedf refuses a field that cannot be honoured.
func Unsupportedf(field, format string, args ...any) *Error {
	return &Error{Kind: Unsupported, Field: field, Msg: fmt.Sprintf(format, args...)}
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
