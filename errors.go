package baleen

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/engine"
	"github.com/baleenrun/baleen/internal/mmap"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/nearest"
	"github.com/baleenrun/baleen/internal/pool"
	"github.com/baleenrun/baleen/internal/store"
)

var (
	// ErrClosed says that the model, or its Runtime, is closed. It ends the requests that were running.
	ErrClosed = errors.New("baleen: closed")
	// ErrQueueFull says that too many requests wait for the model already: try again later.
	ErrQueueFull = errors.New("baleen: too many requests wait")
	// ErrNoTemplate says that a model has no chat template: use Generate.
	ErrNoTemplate = errors.New("baleen: the model has no chat template; give it a text to continue")
	// ErrModelChanged says that a file of the model was written by another program while it was in use, so that answers
	// of it cannot go on: close the model, and open it again once the file is complete. A file that was replaced under
	// its name by another one does no harm to a model that is open.
	ErrModelChanged = errors.New("baleen: the model's file was written by another program")
	// ErrBusy says that a Session is answering already.
	ErrBusy = errors.New("baleen: the session is answering another message; let its loop end first")
)

// A ParamError refuses a request or an option with a value that cannot be, or that this model cannot honour.
type ParamError struct {
	Param       string // which one, by its JSON name: "temperature", "messages[2].role"
	Problem     string // what is wrong with it, and what is wanted
	Unsupported bool   // the value is a right one, and this model or version cannot honour it
}

func (e *ParamError) Error() string { return "baleen: " + e.Param + ": " + e.Problem }

// A PromptTooLongError refuses a prompt that does not fit into the context.
type PromptTooLongError struct {
	Tokens  int // of the prompt; of one that is far too long, a lower bound
	Context int // tokens that prompt and answer can have together
}

func (e *PromptTooLongError) Error() string {
	return fmt.Sprintf("baleen: the prompt has %d tokens and the context %d: shorten it, drop turns, "+
		"or open the model with a larger context", e.Tokens, e.Context)
}

// An UnknownModelError says that there is no model of a name.
type UnknownModelError struct {
	Name string
	Near []string // names that may have been meant
	err  error
}

func (e *UnknownModelError) Error() string {
	if len(e.Near) > 0 {
		return fmt.Sprintf("baleen: there is no model %q; did you mean %s?", e.Name, nearest.Quoted(e.Near))
	}
	if e.err != nil {
		return "baleen: " + strings.TrimPrefix(e.err.Error(), store.ErrNotFound.Error()+": ")
	}
	return fmt.Sprintf("baleen: there is no model %q", e.Name)
}

// Unwrap returns the cause.
func (e *UnknownModelError) Unwrap() error { return e.err }

// A NoMemoryError refuses a model for which there is not enough memory.
type NoMemoryError struct {
	Need  int64 // bytes that the model takes at least
	Free  int64 // bytes that there are for it
	InUse bool  // other models take the rest: it may fit when they are closed
	err   error
}

func (e *NoMemoryError) Error() string { return "baleen: " + e.err.Error() }

// Unwrap returns the cause, which has more numbers in its text.
func (e *NoMemoryError) Unwrap() error { return e.err }

// A PanicError ends a request or a load during which a function of the caller's panicked.
type PanicError struct {
	Where string // which function: "Options.Progress", "Tool.Func of clock"
	Value any    // that it panicked with
	Stack []byte // of the goroutine that panicked
}

func (e *PanicError) Error() string { return fmt.Sprintf("baleen: %s panicked: %v", e.Where, e.Value) }

// recovered turns the panic of a function of the caller's into an error.
func recovered(where string, err *error) {
	if p := recover(); p != nil {
		*err = &PanicError{Where: where, Value: p, Stack: debug.Stack()}
	}
}

// errClosing ends the requests of a model that is closed.
var errClosing = &chat.Error{Kind: chat.Unavailable, Msg: "the model is closed", Err: ErrClosed}

// public returns an error of the packages below as one of this package's.
func public(err error) error {
	if err == nil {
		return nil
	}
	var mem *model.NoMemoryError
	var full *pool.FullError
	var large *pool.TooLargeError
	var queue *engine.QueueFull
	var e *chat.Error
	var missing *UnknownModelError
	var changed *mmap.ChangedError
	switch {
	case errors.As(err, &changed):
		return fmt.Errorf("%w: %w", ErrModelChanged, changed)
	case errors.As(err, &missing):
		return missing
	case errors.Is(err, ErrClosed), errors.Is(err, engine.ErrClosed), errors.Is(err, pool.ErrClosed):
		return ErrClosed
	case errors.As(err, &mem):
		return &NoMemoryError{Need: mem.Weights + mem.Scratch + mem.Cache, Free: mem.Budget.Available, err: mem}
	case errors.As(err, &full):
		return &NoMemoryError{Need: full.Need, Free: max(0, full.Limit-full.Used), InUse: true, err: full}
	case errors.As(err, &large):
		return &NoMemoryError{Need: large.Need, Free: large.Limit, err: large}
	case errors.As(err, &queue):
		return fmt.Errorf("%w: %d, at most %d may", ErrQueueFull, queue.Waiting, queue.Limit)
	case !errors.As(err, &e):
		return prefixed(err)
	}
	switch e.Kind {
	case chat.Invalid, chat.Unsupported:
		if e.Field != "" {
			problem := strings.TrimPrefix(e.Msg, e.Field+": ")
			return &ParamError{Param: e.Field, Problem: problem, Unsupported: e.Kind == chat.Unsupported}
		}
	case chat.PromptTooLong:
		return &PromptTooLongError{Tokens: e.Tokens, Context: e.Context}
	case chat.UnknownModel:
		return &UnknownModelError{Name: e.Model, Near: e.Near}
	case chat.Cancelled:
		return context.Canceled
	case chat.Timeout:
		return context.DeadlineExceeded
	case chat.Internal:
		if e.Msg == "" && e.Err != nil {
			return prefixed(e.Err)
		}
	}
	return prefixed(e)
}

func prefixed(err error) error {
	ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if ended || strings.HasPrefix(err.Error(), "baleen: ") {
		return err
	}
	return fmt.Errorf("baleen: %w", err)
}
