package server

import (
	"net/http"
	"strconv"

	"github.com/baleenrun/baleen/internal/chat"
)

// ProgressHeader is the header with which clients of any dialect ask for reports of how far their prompt is, in
// streams.
const ProgressHeader = "X-Baleen-Progress"

// ProgressDoc describes the reports where they are server-sent events' comments.
const ProgressDoc = "A stream's request with the header X-Baleen-Progress: true gets comments such as " +
	"`: prefill {\"ready\":512,\"cached\":128,\"total\":4096}` while its prompt is computed: tokens that are ready, of these from the cache, and in all. " +
	"Clients that do not look for comments skip them."

// WantsProgress reports whether a request asks for reports of its prompt.
func WantsProgress(r *http.Request) bool {
	on, err := strconv.ParseBool(r.Header.Get(ProgressHeader))
	return err == nil && on
}

// A PrefillReport says how far a prompt is.
type PrefillReport struct {
	Prompt int `json:"prompt,omitempty"` // of several prompts, from 0
	Ready  int `json:"ready"`            // tokens that are computed or came from the cache
	Cached int `json:"cached"`
	Total  int `json:"total"`
}

// ReportOf makes a report of a delta of kind chat.PrefillDelta.
func ReportOf(d chat.Delta) PrefillReport {
	return PrefillReport{Ready: d.Prefill.Ready, Cached: d.Prefill.Cached, Total: d.Prefill.Total}
}

// Prefill sends a report into server-sent events as a comment: no client takes it for an event.
func (s *Writer) Prefill(p PrefillReport) error {
	b, err := Marshal(p)
	if err != nil {
		return err
	}
	return s.raw(": prefill ", b, "\n\n")
}
