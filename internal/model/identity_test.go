package model

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/baleenrun/baleen/internal/engine"
	"github.com/baleenrun/baleen/internal/mmap"
)

// generate returns the tokens of an answer; between is called between steps, before the first token and each other.
func generate(t *testing.T, m *Model, n int, between func(i int)) ([]int32, engine.Event) {
	t.Helper()
	draws := 0
	s, err := m.Engine.Generate(t.Context(), &engine.Request{
		Tokens: []int32{5, 9, 70, 33}, MaxTokens: n, IgnoreEOS: true,
		NoPenalty: func(int32) bool {
			if between != nil {
				between(draws)
			}
			draws++
			return false
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var tokens []int32
	var last engine.Event
	for ev := range s.All() {
		if last = ev; !ev.Done {
			tokens = append(tokens, ev.Token)
		}
	}
	return tokens, last
}

// answers returns what models of two seeds answer.
func answers(t *testing.T, n int) (one, two []int32) {
	t.Helper()
	for _, a := range []struct {
		seed uint64
		to   *[]int32
	}{{1, &one}, {2, &two}} {
		path := filepath.Join(t.TempDir(), "m.gguf")
		writeTiny(t, path, "", a.seed)
		m, err := Open(t.Context(), path, Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		*a.to, _ = generate(t, m, n, nil)
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	if slices.Equal(one, two) {
		t.Fatal("both models answer alike")
	}
	return one, two
}

// TestFileChangesBelowARunningModel: an answer is all of the contents that were loaded, or ends with an error. Once
// more is what a request gets afterwards from the same model, and current whether a new request may be given to it.
func TestFileChangesBelowARunningModel(t *testing.T) {
	const n = 20
	want, _ := answers(t, n)
	for _, test := range []struct {
		name    string
		do      func(t *testing.T, path string)
		err     error
		current bool
	}{
		{"left alone", func(*testing.T, string) {}, nil, true},
		{"overwritten with another model", func(t *testing.T, path string) {
			writeTiny(t, path, "", 2)
		}, mmap.ErrChanged, false},
		{"overwritten with the same", func(t *testing.T, path string) {
			writeTiny(t, path, "", 1)
		}, mmap.ErrChanged, false},
		{"cut short", func(t *testing.T, path string) {
			if err := os.Truncate(path, 100); err != nil {
				t.Error(err)
			}
		}, mmap.ErrChanged, false},
		{"replaced by another model", func(t *testing.T, path string) {
			writeTiny(t, path+".new", "", 2)
			if err := os.Rename(path+".new", path); err != nil {
				t.Error(err)
			}
		}, nil, false},
		{"removed", func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Error(err)
			}
		}, nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := tinyFile(t, "")
			m, err := Open(t.Context(), path, Options{Threads: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			got, last := generate(t, m, n, func(i int) {
				if i == 3 {
					test.do(t, path)
				}
			})
			wantN := n
			if test.err != nil {
				wantN = 4 // the step after the change gives none
			}
			if !errors.Is(last.Err, test.err) || !slices.Equal(got, want[:wantN]) {
				t.Errorf("%d tokens, want %d; those of the file that was loaded: %v; %v",
					len(got), wantN, slices.Equal(got, want[:len(got)]), last.Err)
			}
			got, last = generate(t, m, n, nil)
			if !errors.Is(last.Err, test.err) || test.err == nil && !slices.Equal(got, want) ||
				test.err != nil && len(got) > 0 {
				t.Errorf("once more: %d tokens, %v", len(got), last.Err)
			}
			if last.Err != nil && (last.Reason != engine.FinishError || !strings.Contains(last.Err.Error(), path)) {
				t.Errorf("the end: %+v", last)
			}
			if err := m.Current(); (err == nil) != test.current || err != nil && !errors.Is(err, mmap.ErrChanged) {
				t.Errorf("current: %v", err)
			}
		})
	}
}

// TestFileWrittenWhileItIsLoaded: what is opened is all of one file, the last complete one.
func TestFileWrittenWhileItIsLoaded(t *testing.T) {
	const n = 40
	_, want := answers(t, n)
	for _, test := range []struct {
		name  string
		write func(t *testing.T, path string)
	}{
		{"overwritten", func(t *testing.T, path string) { writeTiny(t, path, "", 2) }},
		{"replaced", func(t *testing.T, path string) {
			writeTiny(t, path+".new", "", 2)
			if err := os.Rename(path+".new", path); err != nil {
				t.Error(err)
			}
		}},
	} {
		for _, share := range []int64{0, 2} { // at the beginning, and in the middle
			path := tinyFile(t, "")
			var written atomic.Bool
			m, err := Open(t.Context(), path, Options{Threads: 1, Progress: func(done, total int64) {
				if done >= total*share/4 && !written.Swap(true) {
					test.write(t, path)
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			if got, last := generate(t, m, n, nil); last.Err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: not the answer of the new file: %v", test.name, last.Err)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	}

	t.Run("again and again", func(t *testing.T) {
		path := tinyFile(t, "")
		m, err := Open(t.Context(), path, Options{Threads: 1, Progress: func(done, total int64) {
			if done == total {
				writeTiny(t, path, "", 2)
			}
		}})
		if err == nil {
			m.Close()
		}
		if !errors.Is(err, mmap.ErrChanged) || !strings.Contains(err.Error(), path) {
			t.Errorf("error %v", err)
		}
	})
}
