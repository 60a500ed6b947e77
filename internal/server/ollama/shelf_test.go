package ollama_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"sync"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/modeladmin"
)

// shelf is a keeper in memory that remembers what it was asked.
type shelf struct {
	mu      sync.Mutex
	blobs   map[string][]byte
	did     []string
	created []modeladmin.Creation
}

func newShelf() *shelf { return &shelf{blobs: map[string][]byte{}} }

func (s *shelf) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did = append(s.did, fmt.Sprintf(format, args...))
}

func (s *shelf) Pull(ctx context.Context, name string, report func(modeladmin.Progress)) error {
	s.note("pull %s", name)
	if name == "nowhere" {
		return &chat.Error{Kind: chat.UnknownModel, Model: name}
	}
	report(modeladmin.Progress{Status: "pulling manifest"})
	for n := int64(0); n <= 100; n++ { // steps that follow each other at once are told rarely
		report(modeladmin.Progress{Status: "pulling abc", Digest: "sha256:abc", Total: 100, Completed: n})
	}
	if name == "torn" {
		return &chat.Error{Kind: chat.Internal, Msg: "the file does not have its checksum: fetch it again"}
	}
	report(modeladmin.Progress{Status: "verifying sha256 digest"})
	return ctx.Err()
}

func (s *shelf) Copy(_ context.Context, source, destination string) error {
	s.note("copy %s %s", source, destination)
	return nil
}

func (s *shelf) Delete(_ context.Context, name string, _ func()) error {
	s.note("delete %s", name)
	return nil
}

func (s *shelf) Create(_ context.Context, c modeladmin.Creation, report func(modeladmin.Progress)) error {
	s.mu.Lock()
	s.created = append(s.created, c)
	s.mu.Unlock()
	report(modeladmin.Progress{Status: "writing manifest"})
	return nil
}

func (s *shelf) HasBlob(_ context.Context, digest string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.blobs[digest]
	return ok, nil
}

func (s *shelf) PutBlob(_ context.Context, digest string, _ int64, body io.Reader) error {
	var b bytes.Buffer
	if _, err := io.Copy(&b, body); err != nil {
		return err
	}
	if sum := sha256.Sum256(b.Bytes()); hex.EncodeToString(sum[:]) != digest {
		return chat.Invalidf("digest", "the file has the digest sha256:%x, not sha256:%s", sum, digest)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blobs[digest] = b.Bytes()
	return nil
}

func (s *shelf) About(_ context.Context, name string) (modeladmin.About, error) {
	if name == "whale:small" {
		return modeladmin.About{Licence: "MIT", Parent: "scripted"}, nil
	}
	return modeladmin.About{}, nil
}
