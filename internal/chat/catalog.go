package chat

import (
	"context"
	"time"
)

// A Spec says what a model's name means: where it lies, and what it says beside its weights.
type Spec struct {
	Name   string // canonical, as listed
	Path   string // of the weights: names with one path share one loaded model
	Digest string // of the weights, "" where not known
	Size   int64  // bytes of the weights
	Time   time.Time

	// What a Modelfile can add.
	System   string    // stands before conversations that bring no system message
	Template string    // Jinja instead of the model's own; "": its own
	Messages []Message // stand before the conversation's
	Stop     []string
	Sampling Sampling
	// MaxTokens bounds answers that say no bound. 0: the context's end.
	MaxTokens int
	// Context bounds prompt and answer of requests that say no bound. 0: the model's context.
	Context int
}

// A Catalog knows the models that requests may name. It is safe for concurrent use.
type Catalog interface {
	// Resolve returns an *Error of kind UnknownModel for names that it does not have. The empty name is the
	// default model's, where there is one.
	Resolve(ctx context.Context, name string) (Spec, error)
	// List returns the models that can be used now, in a fixed order.
	List(ctx context.Context) ([]Spec, error)
}

// ByPath finds models by where their weights lie. Of several names of one file the first counts.
func ByPath(specs []Spec) map[string]Spec {
	m := map[string]Spec{}
	for _, s := range specs {
		if _, ok := m[s.Path]; !ok {
			m[s.Path] = s
		}
	}
	return m
}
