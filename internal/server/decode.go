package server

import (
	"net/http"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/fields"
)

// Decode reads a request's body by a table, and goes on with then. What the body has that nothing here reads is named
// in the header X-Baleen-Notice of the answer and in the log.
func Decode[T any](r *http.Request, t *fields.Table[T], dst *T, then ...func() error) error {
	b, err := Body(r)
	if err != nil {
		return err
	}
	var notes fields.Notes
	err = t.DecodeWithin(LimitsOf(r), b, dst, &notes)
	for _, f := range then {
		if err == nil {
			err = f()
		}
	}
	if text := notes.String(); text != "" {
		chat.TraceOf(r.Context()).Notice("without effect: " + text)
	}
	return err
}
