package chat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/mmap"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/pool"
	"github.com/baleenrun/baleen/internal/synth"
)

// oneModel is a catalog of one file.
type oneModel string

func (m oneModel) Resolve(context.Context, string) (Spec, error) {
	return Spec{Name: "m", Path: string(m)}, nil
}
func (m oneModel) List(context.Context) ([]Spec, error) { return nil, nil }

func writeSynth(t *testing.T, path string, seed uint64) {
	t.Helper()
	s, err := synth.Lookup("tiny")
	if err != nil {
		t.Fatal(err)
	}
	r, err := synth.LookupRecipe("Q8_0")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := synth.Write(t.Context(), f, s, r, seed, nil); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestChangedFileIsLoadedWithTheNextRequest: the request after a file was overwritten or replaced is answered by what
// the file holds now, nothing of it from the cache of what it held, and those after it by the same loaded model.
func TestChangedFileIsLoadedWithTheNextRequest(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.gguf")
	loads := 0
	l := &Loader{Options: model.Options{Threads: 1, Context: 512}}
	p := pool.New(pool.Options[*Model]{Open: func(ctx context.Context, path string, room int64) (*Model, error) {
		loads++
		return l.Open(ctx, path, room)
	}, Need: l.Need})
	defer p.Close(context.Background()) //nolint:errcheck // the test is over
	s := New(Options{Catalog: oneModel(path), Pool: p})
	prompt := make([]int32, 100)
	for i := range prompt {
		prompt[i] = int32(i%50 + 3)
	}
	answer := func() ([]int32, int) {
		t.Helper()
		st, err := s.Run(t.Context(), &Request{
			Model: "m", Raw: true, PromptTokens: prompt, MaxTokens: 12, Sampling: Sampling{Temperature: new(float32(0))},
		})
		if err != nil {
			t.Fatal(err)
		}
		cached := -1
		for d := range st.All() {
			if d.Err != nil {
				t.Fatal(d.Err)
			}
			if d.Kind == Done {
				cached = d.Usage.Cached
			}
		}
		return st.Tokens(), cached
	}
	var want [4][]int32
	for seed := range uint64(4) {
		for round := range 2 {
			if round == 0 && seed == 3 {
				writeSynth(t, path+".new", seed)
				if err := os.Rename(path+".new", path); err != nil {
					t.Fatal(err)
				}
			} else if round == 0 {
				writeSynth(t, path, seed)
			}
			got, cached := answer()
			if round == 0 {
				want[seed] = got
			}
			if !slices.Equal(got, want[seed]) || (cached > 0) != (round == 1) || loads != int(seed)+1 {
				t.Errorf(
					"contents %d, request %d: %v, %d tokens from the cache, %d loads",
					seed,
					round,
					got,
					cached,
					loads,
				)
			}
			if seed > 0 && slices.Equal(got, want[seed-1]) {
				t.Errorf("contents %d give the answer of those before", seed)
			}
		}
	}
}

// A client is told that the file was written and that asking again helps, not where the file is.
func TestChangedFileInWords(t *testing.T) {
	cause := fmt.Errorf("cpu: %w", &mmap.ChangedError{Path: "/home/me/m.gguf", What: "its size is another"})
	for _, e := range []*Error{AsError(engineError(cause)), AsError(poolError("m", cause))} {
		said := e.Message()
		if e.Kind != Unavailable || e.RetryAfter < time.Second || strings.Contains(said, "/home") ||
			!strings.Contains(said, "written") {
			t.Errorf("%v: %s", e.Kind, e.Message())
		}
		if !strings.Contains(e.Error(), "/home/me/m.gguf") {
			t.Errorf("the log is not told which file: %v", e)
		}
	}
}

// TestChangedFileOfASingleModel: what was held goes on with a file that was replaced, and ends with one that was
// overwritten; a request that holds nothing has it loaded anew.
func TestChangedFileOfASingleModel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	writeSynth(t, path, 1)
	s, err := OpenSingle(t.Context(), Spec{Path: path}, model.Options{Threads: 1, Context: 128})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Pool().Close(context.Background()) //nolint:errcheck // the test is over
	answer := func(on *Lease) ([]int32, error) {
		t.Helper()
		st, err := s.Run(t.Context(), &Request{
			On: on, Raw: true, PromptTokens: []int32{5, 9, 70}, MaxTokens: 8, Sampling: Sampling{Temperature: new(float32(0))},
		})
		if err != nil {
			t.Fatal(err)
		}
		for d := range st.All() {
			if d.Kind == Done && d.Err != nil {
				return nil, d.Err
			}
		}
		return st.Tokens(), nil
	}
	hold := func() *Lease {
		t.Helper()
		l, err := s.Hold(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	old := hold()
	one, err := answer(old)
	if err != nil {
		t.Fatal(err)
	}
	writeSynth(t, path+".new", 2)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	if got, err := answer(old); err != nil || !slices.Equal(got, one) {
		t.Errorf("replaced, on what is held: %v %v", got, err)
	}
	two, err := answer(nil)
	if err != nil || slices.Equal(two, one) {
		t.Errorf("replaced, on what there is: %v %v", two, err)
	}
	old.Release()
	old = hold()
	if got, err := answer(old); err != nil || !slices.Equal(got, two) {
		t.Errorf("held anew: %v %v", got, err)
	}
	writeSynth(t, path, 1)
	if _, err := answer(old); !errors.Is(err, mmap.ErrChanged) || AsError(err).Kind != Unavailable {
		t.Errorf("overwritten, on what is held: %v", err)
	}
	old.Release()
	if got, err := answer(nil); err != nil || !slices.Equal(got, one) {
		t.Errorf("overwritten, on what there is: %v %v", got, err)
	}
}
