package cli

import (
	"runtime/debug"

	"github.com/baleenrun/baleen/internal/model"
)

// serveMemory says how a server divides the memory that there is at its start.
type serveMemory struct {
	models int64 // of all models together
	bodies int64 // of the bodies of requests in work
	soft   int64 // of the Go heap, from which on garbage is collected more eagerly
}

const (
	mostForRequests = 512 << 20
	heapOfModels    = 256 << 20 // tokenizers, templates and the like
)

// divide keeps a part of the memory for requests: else a request more could end a server whose models take all of it. A
// body costs a few times its own size while it is decoded, rendered and encoded.
func divide(b model.Budget) serveMemory {
	requests := min(b.Available/4, mostForRequests)
	return serveMemory{
		models: b.Available - requests,
		bodies: requests / 4,
		soft:   max(requests+heapOfModels, b.Total/4),
	}
}

// limitHeap sets the soft limit of the Go heap, unless the user has ($GOMEMLIMIT).
func (a *app) limitHeap(soft int64) {
	if a.getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(soft)
	}
}
