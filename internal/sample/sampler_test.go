package sample

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// reference computes the probabilities that parameters give to tokens: plain, by sorting everything.
func reference(p Params, logits []float32, history []int32, prompt int, allowed []uint64) []float64 {
	x := make([]float64, len(logits))
	for i, l := range logits {
		x[i] = float64(l) + float64(p.LogitBias[int32(i)])
		if allowed != nil && allowed[i/64]>>(i%64)&1 == 0 {
			x[i] = math.Inf(-1)
		}
	}
	recent := history
	last := p.RepeatLastN
	if last == 0 {
		last = DefaultRepeatLastN
	}
	if last > 0 && last < len(history) {
		recent = history[len(history)-last:]
	}
	for i := range x {
		if r := float64(p.RepetitionPenalty); r > 0 && slices.Contains(recent, int32(i)) {
			if x[i] > 0 {
				x[i] /= r
			} else {
				x[i] *= r
			}
		}
		n := 0
		for _, id := range history[prompt:] {
			if id == int32(i) {
				n++
			}
		}
		if n > 0 {
			x[i] -= float64(p.PresencePenalty) + float64(n)*float64(p.FrequencyPenalty)
		}
	}
	prob := make([]float64, len(x))
	if p.Temperature == 0 {
		best := 0
		for i := range x {
			if x[i] > x[best] {
				best = i
			}
		}
		prob[best] = 1
		return prob
	}
	for i := range x {
		prob[i] = math.Exp(x[i] / float64(p.Temperature))
	}
	normalize(prob)
	keep := func(score func(i int) float64, enough func(n int, mass float64) bool) {
		order := make([]int, 0, len(prob))
		for i := range prob {
			if prob[i] > 0 {
				order = append(order, i)
			}
		}
		slices.SortStableFunc(order, func(a, b int) int {
			switch d := score(a) - score(b); {
			case d < 0:
				return -1
			case d > 0:
				return 1
			}
			return 0
		})
		mass := 0.0
		for n, i := range order {
			if n > 0 && enough(n, mass) {
				prob[i] = 0
			} else {
				mass += prob[i]
			}
		}
		normalize(prob)
	}
	best := func(i int) float64 { return -prob[i] }
	if p.TopK > 0 {
		keep(best, func(n int, _ float64) bool { return n >= p.TopK })
	}
	if q := float64(p.TypicalP); q > 0 && q < 1 {
		h := 0.0
		for _, v := range prob {
			if v > 0 {
				h -= v * math.Log(v)
			}
		}
		old := slices.Clone(prob)
		keep(
			func(i int) float64 { return math.Abs(-math.Log(old[i]) - h) },
			func(_ int, m float64) bool { return m >= q },
		)
	}
	if q := float64(p.TopP); q > 0 && q < 1 {
		old := slices.Clone(prob)
		keep(func(i int) float64 { return -old[i] }, func(_ int, m float64) bool { return m >= q })
	}
	if p.MinP > 0 {
		top := slices.Max(prob)
		for i := range prob {
			if prob[i] < float64(p.MinP)*top {
				prob[i] = 0
			}
		}
		normalize(prob)
	}
	return prob
}

func normalize(p []float64) {
	s := 0.0
	for _, v := range p {
		s += v
	}
	for i := range p {
		p[i] /= s
	}
}

// bits is a mask that never changes.
type bits []uint64

func (b bits) Allowed() []uint64  { return b }
func (b bits) Accept(int32) error { return nil }

func randomLogits(n int, spread float64, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64() * spread)
	}
	return x
}

// settings are the parameters that tests go through.
var settings = []struct {
	name string
	p    Params
	mask bits
}{
	{"softmax", Params{Temperature: 1}, nil},
	{"hot", Params{Temperature: 2.5}, nil},
	{"cold", Params{Temperature: 0.4}, nil},
	{"top-k", Params{Temperature: 1, TopK: 7}, nil},
	{"top-k of everything", Params{Temperature: 1, TopK: 1000}, nil},
	{"top-p", Params{Temperature: 1, TopP: 0.7}, nil},
	{"small top-p", Params{Temperature: 1, TopP: 0.01}, nil},
	{"min-p", Params{Temperature: 1, MinP: 0.1}, nil},
	{"typical", Params{Temperature: 1, TypicalP: 0.5}, nil},
	{"usual", Params{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05}, nil},
	{"all truncations", Params{Temperature: 1.3, TopK: 50, TypicalP: 0.9, TopP: 0.8, MinP: 0.02}, nil},
	{"repetition", Params{Temperature: 1, RepetitionPenalty: 1.6, RepeatLastN: 3}, nil},
	{"repetition of all", Params{Temperature: 1, RepetitionPenalty: 1.3, RepeatLastN: -1}, nil},
	{"presence and frequency", Params{Temperature: 1, PresencePenalty: 0.5, FrequencyPenalty: 0.3}, nil},
	{"bias", Params{Temperature: 1, LogitBias: map[int32]float32{3: 4, 5: float32(math.Inf(-1)), 60: -2}}, nil},
	{"mask", Params{Temperature: 1.5, TopP: 0.9}, bits{0xF0F0F0F0, 0x3}},
	{"greedy with penalties", Params{RepetitionPenalty: 1.5, FrequencyPenalty: 2}, nil},
}

var history = []int32{1, 2, 3, 3, 9, 20, 20, 20, 7}

const promptLen = 4

func TestFrequenciesMatchSoftmax(t *testing.T) {
	const n, vocab = 40000, 96
	w := NewScratch(vocab)
	row := make([]float32, vocab)
	for i, s := range settings {
		t.Run(s.name, func(t *testing.T) {
			logits := randomLogits(vocab, 1.5, uint64(i))
			var mask Mask
			if s.mask != nil {
				mask = s.mask
			}
			want := reference(s.p, logits, history, promptLen, s.mask)
			count := make([]int, vocab)
			for seed := range n {
				p := s.p
				p.Seed = uint64(seed)
				copy(row, logits)
				id, err := New(p, mask).Sample(w, row, history, promptLen)
				if err != nil {
					t.Fatal(err)
				}
				count[id]++
			}
			checkChiSquare(t, s.name, count, want, n)
			// A chi-square over draws cannot tell support of tiny probability from none; reach says that
			// enough of it was seen.
			reach := 0.0
			for id, c := range count {
				if c > 0 {
					reach += want[id]
				}
			}
			if reach < 0.999 {
				t.Errorf("tokens of %.4f of the probability were drawn at all", reach)
			}
		})
	}
}

func TestDrawsAreAmongTheSurvivors(t *testing.T) {
	// Over a large vocabulary, where partial selection matters, the survivors must be those of full sorting.
	const vocab = 5000
	w := NewScratch(vocab)
	row := make([]float32, vocab)
	for i, s := range settings {
		if s.mask != nil {
			continue
		}
		logits := randomLogits(vocab, 2, 99+uint64(i))
		for j := range logits {
			logits[j] = float32(math.Round(float64(logits[j])*8) / 8) // many ties
		}
		want := reference(s.p, logits, history, promptLen, nil)
		for seed := range 300 {
			p := s.p
			p.Seed = uint64(seed)
			copy(row, logits)
			id, err := New(p, nil).Sample(w, row, history, promptLen)
			if err != nil || want[id] == 0 {
				t.Fatalf("%s: token %d of probability %v drawn, error %v", s.name, id, want[id], err)
			}
		}
	}
}

func TestSurvivorsMatchFullSort(t *testing.T) {
	const vocab = 3000
	for trial := range 60 {
		logits := randomLogits(vocab, 0.5+float64(trial%7), uint64(trial))
		for j := range logits {
			logits[j] = float32(math.Round(float64(logits[j])*16) / 16)
		}
		p := float32(trial%10+1) / 11
		sets := []struct {
			name string
			p    Params
			got  func(c []candidate, top float32) []candidate
		}{
			{
				"top-p",
				Params{Temperature: 1, TopP: p},
				func(c []candidate, _ float32) []candidate { return nucleus(c, float64(p), sum(c), len(c)) },
			},
			{
				"typical",
				Params{Temperature: 1, TypicalP: p},
				func(c []candidate, top float32) []candidate { return typical(c, float64(p), top, 1) },
			},
			{
				"min-p",
				Params{Temperature: 1, MinP: p},
				func(c []candidate, _ float32) []candidate { return atLeast(c, float64(p)) },
			},
		}
		for _, s := range sets {
			want := reference(s.p, logits, nil, 0, nil)
			top := slices.Max(logits)
			c := all(nil, logits)
			weigh(c, top, 1)
			got := map[int32]bool{}
			for _, c := range s.got(c, top) {
				got[c.id] = true
			}
			differ := 0
			for i := range want {
				if (want[i] > 0) != got[int32(i)] {
					differ++
				}
			}
			// Sums in another order may move the last survivor across the border.
			if differ > 1 {
				t.Errorf("%s %v, trial %d: %d survivors differ of %d", s.name, p, trial, differ, len(got))
			}
		}
	}
}

func TestSelectTop(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 300 {
		n := 1 + r.IntN(200)
		logits := make([]float32, n)
		for i := range logits {
			logits[i] = float32(r.IntN(12))
			if r.IntN(5) == 0 {
				logits[i] = float32(math.Inf(-1))
			}
		}
		var want []int32
		for i := range logits {
			if !math.IsInf(float64(logits[i]), -1) {
				want = append(want, int32(i))
			}
		}
		slices.SortStableFunc(want, func(a, b int32) int { return int(logits[b] - logits[a]) })
		k := 1 + r.IntN(n)
		want = want[:min(k, len(want))]
		var got []int32
		for _, c := range selectTop(nil, logits, k) {
			got = append(got, c.id)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("top %d of %v = %v, want %v", k, logits, got, want)
		}
	}
}

func TestGreedyTiesGoToTheLowerID(t *testing.T) {
	w := NewScratch(6)
	for _, p := range []Params{{}, {Temperature: 1, TopK: 1}} {
		id, err := New(p, nil).Sample(w, []float32{1, 5, 2, 5, 5, 0}, nil, 0)
		if id != 1 || err != nil {
			t.Errorf("%+v: token %d, error %v, want 1", p, id, err)
		}
	}
}

func TestDrawDependsOnSeedAndPositionOnly(t *testing.T) {
	logits := randomLogits(500, 2, 5)
	draw := func(w *Scratch, seed uint64, h []int32) int32 {
		id, err := New(Params{Temperature: 1, TopP: 0.9, Seed: seed}, nil).Sample(w, slices.Clone(logits), h, 0)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	w := NewScratch(500)
	differs := false
	for seed := range uint64(50) {
		a := draw(w, seed, []int32{1, 2, 3})
		draw(w, seed+1000, []int32{4}) // another row in between
		if b := draw(NewScratch(500), seed, []int32{9, 9, 9}); a != b {
			t.Fatalf("seed %d: token %d, then %d", seed, a, b)
		}
		differs = differs || a != draw(w, seed, []int32{1, 2, 3, 4})
	}
	if !differs {
		t.Error("the position has no influence")
	}
}

func TestSampleErrors(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	tests := []struct {
		name   string
		logits []float32
		mask   Mask
		want   error
	}{
		{"nothing allowed", []float32{1, 2}, bits{0}, ErrNothingAllowed},
		{"mask too short forbids", []float32{1, 2}, bits{}, ErrNothingAllowed},
		{"NaN", []float32{1, nan, 2}, nil, ErrNotFinite},
		{"NaN first", []float32{nan, 2}, nil, ErrNotFinite},
		{"infinity", []float32{1, inf}, nil, ErrNotFinite},
	}
	for _, tt := range tests {
		for _, p := range []Params{{}, {Temperature: 1}} {
			if _, err := New(p, tt.mask).Sample(NewScratch(2), slices.Clone(tt.logits), nil, 0); !errors.Is(
				err,
				tt.want,
			) {
				t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
			}
		}
	}
}

func TestLogProbs(t *testing.T) {
	logits := randomLogits(300, 3, 8)
	prob := reference(Params{Temperature: 1}, logits, nil, 0, nil)
	lp, top := LogProbs(NewScratch(300), nil, logits, 17, 5)
	if want := math.Log(prob[17]); math.Abs(float64(lp)-want) > 1e-5 {
		t.Errorf("log probability %v, want %v", lp, want)
	}
	if len(top) != 5 {
		t.Fatalf("%d alternatives, want 5", len(top))
	}
	for i, a := range top {
		if want := math.Log(prob[a.Token]); math.Abs(float64(a.LogProb)-want) > 1e-5 {
			t.Errorf("alternative %d: %v, want %v", i, a.LogProb, want)
		}
		if i > 0 && top[i-1].LogProb < a.LogProb {
			t.Errorf("alternative %d is better than the one before", i)
		}
	}
}

func TestValidate(t *testing.T) {
	nan := float32(math.NaN())
	for _, s := range settings {
		if err := s.p.Validate(); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
	}
	for _, p := range []Params{
		{Temperature: -1},
		{Temperature: nan},
		{TopK: -1},
		{TopP: 1.1},
		{TopP: nan},
		{MinP: -0.1},
		{TypicalP: 2},
		{RepetitionPenalty: -1},
		{PresencePenalty: nan},
		{FrequencyPenalty: 1e9},
		{LogitBias: map[int32]float32{-1: 0}},
		{LogitBias: map[int32]float32{1: nan}},
		{LogitBias: map[int32]float32{1: float32(math.Inf(1))}},
	} {
		var e *ParamError
		if err := p.Validate(); !errors.As(err, &e) {
			t.Errorf("%+v is accepted", p)
		}
	}
}

func TestSampleAllocatesNothing(t *testing.T) {
	w := NewScratch(2000)
	logits, row := randomLogits(2000, 2, 1), make([]float32, 2000)
	for _, s := range settings {
		sampler := New(s.p, nil)
		n := testing.AllocsPerRun(20, func() {
			copy(row, logits)
			if _, err := sampler.Sample(w, row, history, promptLen); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", s.name, n)
		}
	}
}

func BenchmarkSample(b *testing.B) {
	const vocab = 151936
	w := NewScratch(vocab)
	logits, row := randomLogits(vocab, 2.5, 1), make([]float32, vocab)
	for _, s := range []struct {
		name string
		p    Params
	}{
		{"greedy", Params{}},
		{"softmax", Params{Temperature: 1}},
		{"top-k40", Params{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05}},
		{"top-p0.95", Params{Temperature: 0.8, TopP: 0.95}},
		{"typical", Params{Temperature: 0.8, TypicalP: 0.9}},
	} {
		b.Run(fmt.Sprintf("%s/%d", s.name, vocab), func(b *testing.B) {
			for i := range b.N {
				copy(row, logits)
				p := s.p
				p.Seed = uint64(i)
				if _, err := New(p, nil).Sample(w, row, history, promptLen); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestSampleFreelyKnowsNoPenalties(t *testing.T) {
	const vocab = 96
	w := NewScratch(vocab)
	row := make([]float32, vocab)
	bias := map[int32]float32{3: 4}
	for seed := range uint64(200) {
		logits := randomLogits(vocab, 1.5, seed)
		draw := func(f func(s *Sampler) (int32, error), p Params) int32 {
			copy(row, logits)
			p.Temperature, p.TopP, p.LogitBias, p.Seed = 0.9, 0.8, bias, seed
			id, err := f(New(p, nil))
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		plain := draw(func(s *Sampler) (int32, error) { return s.Sample(w, row, history, promptLen) }, Params{})
		free := draw(
			func(s *Sampler) (int32, error) { return s.SampleFreely(w, row, history) },
			Params{RepetitionPenalty: 2, FrequencyPenalty: 2, PresencePenalty: 2},
		)
		if free != plain {
			t.Fatalf("seed %d: %d, without penalties %d", seed, free, plain)
		}
	}
}
