package verify

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/plan"
)

// fakeBackend gives logits that depend on the row's token alone, and records what it was fed.
type fakeBackend struct {
	vocab int
	steps []backend.Batch
}

func (f *fakeBackend) Name() string { return "fake" }
func (f *fakeBackend) Memory(*plan.Plan, backend.Options) (backend.Memory, error) {
	return backend.Memory{}, nil
}

func (f *fakeBackend) Compile(*plan.Plan, backend.Options) (backend.Exec, error) {
	return &fakeExec{f: f}, nil
}

type fakeExec struct {
	backend.Exec
	f     *fakeBackend
	batch *backend.Batch
}

func (x *fakeExec) Submit(b *backend.Batch) error {
	x.batch = b
	keep := backend.Batch{Tokens: append([]int32(nil), b.Tokens...), Out: append([]int32(nil), b.Out...)}
	keep.Seqs = append(keep.Seqs, b.Seqs...)
	x.f.steps = append(x.f.steps, keep)
	return nil
}

// row gives logit ln 2 to the token after the row's own and 0 to all others.
func (x *fakeExec) Wait() ([]float32, error) {
	var out []float32
	for _, r := range x.batch.Out {
		row := make([]float32, x.f.vocab)
		row[(int(x.batch.Tokens[r])+1)%x.f.vocab] = float32(math.Ln2)
		out = append(out, row...)
	}
	return out, nil
}

func (x *fakeExec) Close() error { return nil }

func testPlan(context int) *plan.Plan {
	return &plan.Plan{Vocab: 10, Context: context, Groups: []plan.Group{{}}}
}

// TestWindows checks the windows, the begin token and the scored positions by hand: tokens 0 1 2 ... 25 modulo 10 in
// windows of 8 are always followed by the next one, whose probability is 2/11.
func TestWindows(t *testing.T) {
	tokens := make([]int32, 26)
	for i := range tokens {
		tokens[i] = int32(i % 10)
	}
	for _, chunk := range []int{0, 1, 3, 100} {
		f := &fakeBackend{vocab: 10}
		var running int
		p, err := Measure(t.Context(), testPlan(8), Text{Tokens: tokens, BOS: 9}, 8, Options{Backend: f, Chunk: chunk},
			func(Perplexity, int) { running++ })
		if err != nil {
			t.Fatal(err)
		}
		if p.Windows != 3 || p.Scored != 9 || running != 3 || p.Tokens != 26 {
			t.Errorf("chunk %d: %+v", chunk, p)
		}
		if math.Abs(p.Perplexity-5.5) > 1e-6 || p.Error > 1e-6 {
			t.Errorf("chunk %d: perplexity %v +/- %v, want 5.5", chunk, p.Perplexity, p.Error)
		}
		starts := 0
		for _, s := range f.steps {
			if s.Seqs[0].Pos == 0 {
				starts++
				if s.Tokens[0] != 9 {
					t.Errorf("chunk %d: a window begins with token %d", chunk, s.Tokens[0])
				}
			}
		}
		if starts != 3 {
			t.Errorf("chunk %d: %d windows began", chunk, starts)
		}
	}
}

func TestNoBOS(t *testing.T) {
	f := &fakeBackend{vocab: 10}
	tokens := []int32{5, 6, 7, 8, 5, 6, 7, 8}
	if _, err := Measure(t.Context(), testPlan(4), Text{Tokens: tokens, BOS: -1}, 4, Options{Backend: f}, nil); err != nil {
		t.Fatal(err)
	}
	if f.steps[0].Tokens[0] != 5 {
		t.Errorf("the first token became %d", f.steps[0].Tokens[0])
	}
}

func TestSurprise(t *testing.T) {
	f := &fakeBackend{vocab: 10}
	tokens := []int32{0, 1, 2, 7, 0, 1, 2, 3} // the first window's scored token has probability 1/11, the second's 2/11
	p, err := Measure(t.Context(), testPlan(4), Text{Tokens: tokens, BOS: -1}, 4, Options{Backend: f}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := math.Exp((math.Log(11) + math.Log(5.5)) / 2)
	if math.Abs(p.Perplexity-want) > 1e-6 || p.Scored != 2 {
		t.Errorf("%+v, want perplexity %v", p, want)
	}
	if wantErr := want * math.Ln2 / 2; math.Abs(p.Error-wantErr) > 1e-6 {
		t.Errorf("error %v, want %v", p.Error, wantErr)
	}
}

func TestShortTextsAreRefused(t *testing.T) {
	_, err := Measure(
		t.Context(),
		testPlan(8),
		Text{Tokens: make([]int32, 15), BOS: -1},
		8,
		Options{Backend: &fakeBackend{vocab: 10}},
		nil,
	)
	if err == nil || !strings.Contains(err.Error(), "15 tokens; windows of 8 need at least 16") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Measure(
		ctx,
		testPlan(8),
		Text{Tokens: make([]int32, 16), BOS: -1},
		8,
		Options{Backend: &fakeBackend{vocab: 10}},
		nil,
	)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestSplitLogSumExp(t *testing.T) {
	v := make([]float32, 40000)
	for i := range v {
		v[i] = float32(i%7) - 3
	}
	if got, want := splitLogSumExp(v), logSumExp(v); math.Abs(got-want) > 1e-9 {
		t.Errorf("%v, want %v", got, want)
	}
}
