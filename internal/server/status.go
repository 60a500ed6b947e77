package server

import (
	"net/http"

	"github.com/baleenrun/baleen/internal/chat"
)

var statuses = map[chat.Kind]int{
	chat.Internal:      http.StatusInternalServerError,
	chat.Invalid:       http.StatusBadRequest,
	chat.Unsupported:   http.StatusBadRequest,
	chat.UnknownModel:  http.StatusNotFound,
	chat.PromptTooLong: http.StatusBadRequest,
	chat.Overloaded:    http.StatusServiceUnavailable,
	chat.Unavailable:   http.StatusServiceUnavailable,
	chat.Timeout:       http.StatusGatewayTimeout,
	chat.Cancelled:     499, // nobody is there to read it
	chat.Unauthorized:  http.StatusUnauthorized,
	chat.Forbidden:     http.StatusForbidden,
	chat.BodyTooLarge:  http.StatusRequestEntityTooLarge,
	chat.NotFound:      http.StatusNotFound,
	chat.BadMethod:     http.StatusMethodNotAllowed,
	chat.SlowBody:      http.StatusRequestTimeout,
	chat.RateLimited:   http.StatusTooManyRequests,
	chat.NoSpace:       http.StatusInsufficientStorage,
	chat.Upstream:      http.StatusNotFound, // a client named what could not be had from where it should be; nothing failed here
}

// Status is the HTTP status that fits an error; a dialect may have its own.
func Status(e *chat.Error) int {
	if n, ok := statuses[e.Kind]; ok {
		return n
	}
	return http.StatusInternalServerError
}
