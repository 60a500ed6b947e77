// Package tool has the tools that a model works with: reading, editing and writing files, commands, searching, and those
// behind more_tools. A tool says what a call would do before it does it; whether it may is decided elsewhere (perm). It
// knows no models, conversations or screens.
package tool

import (
	"context"
	"encoding/json"

	"github.com/baleenrun/baleen/internal/agent/perm"
)

// A Spec is what a model is told of a tool. Specs are the same bytes in every run: they stand in the prompt.
type Spec struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON Schema
	Core        bool            // offered from the start; the others stand behind more_tools
}

// A Tool can be called by a model.
type Tool interface {
	Spec() Spec
	// Effect says what Run would do. It changes nothing. An error is about the arguments, in words for the model.
	Effect(env *Env, args json.RawMessage) (perm.Effect, error)
	// Run does it. Output is handed to out while it comes (nil: nobody looks); the Result has it all, bounded. What went
	// wrong with the call is a Result with IsError; an error is the caller's: a context that ended, a broken disk.
	Run(ctx context.Context, env *Env, args json.RawMessage, out func(string)) (Result, error)
}

// A Result is what came of a call.
type Result struct {
	Text    string   // for the model, bounded
	Diff    string   // unified, of the files that changed
	Changed []string // absolute paths of files that it wrote
	Spill   string   // a file with the whole output, where Text has not all of it
	Images  []Image
	IsError bool
}

// An Image is a picture among a result.
type Image struct {
	MIME string
	Data []byte
}
