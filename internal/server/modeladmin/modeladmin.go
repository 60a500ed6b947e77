// Package modeladmin says what clients may ask to be done with the models on disk, and what they are told meanwhile. It
// stands between the dialects that ask and the package that does it, and has no code of either: a dialect need not know
// files, and who changes files no dialect.
package modeladmin

import (
	"context"
	"io"

	"github.com/baleenrun/baleen/internal/chat"
)

// A Keeper changes the models on disk. Its errors should be *chat.Error where a client can do something about them:
// of kind UnknownModel for names that are not there. It is safe for concurrent use. Names come as clients write them,
// with or without a tag.
type Keeper interface {
	// Pull fetches a model. report is called as it goes on, by one goroutine at a time.
	Pull(ctx context.Context, name string, report func(Progress)) error
	// Copy gives a model a second name.
	Copy(ctx context.Context, source, destination string) error
	// Delete removes a name, and the files that no other name needs; before it removes the last name of weights, it
	// calls removing.
	Delete(ctx context.Context, name string, removing func()) error
	// Create makes a model of others or of uploaded files.
	Create(ctx context.Context, c Creation, report func(Progress)) error
	// HasBlob reports whether a file was uploaded; digest is hexadecimal, of SHA-256.
	HasBlob(ctx context.Context, digest string) (bool, error)
	// PutBlob keeps a file. It checks that the bytes have the digest (else an error of kind Invalid) before it is
	// there. size is how many bytes are to come, -1 where that is not known. Errors of reading body are handed on.
	PutBlob(ctx context.Context, digest string, size int64, body io.Reader) error
	// About says what is known of a model beside its Spec and its files.
	About(ctx context.Context, name string) (About, error)
}

// About is what is known of a model beside its Spec and its files.
type About struct {
	Licence string // its text or its name
	Parent  string // name of the model that it was created from
}

// Progress is a step of something that takes long.
type Progress struct {
	Status    string
	Digest    string // sha256:...
	Total     int64
	Completed int64
}

// A Creation says what a new model is to be. What is empty comes from the model that it is made from.
type Creation struct {
	Name     string
	From     string            // name of a model; "": Files
	Files    map[string]string // digests (hexadecimal) of uploaded files by file name
	System   string
	Template string // Jinja
	Licences []string
	Messages []chat.Message
	Sampling chat.Sampling
	Stop     []string
	// MaxTokens and Context are as in chat.Spec; 0: not said.
	MaxTokens, Context int
}
