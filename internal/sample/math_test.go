package sample

import (
	"math"
	"testing"
)

// The known answers are those of the generator's authors (Random123, kat_vectors).
func TestPhiloxKnownAnswers(t *testing.T) {
	tests := []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{
			[4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
			[2]uint32{0xffffffff, 0xffffffff},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
		},
		{
			[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
			[2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		},
	}
	for _, tt := range tests {
		if got := philox(tt.counter, tt.key); got != tt.want {
			t.Errorf("philox(%x, %x) = %x, want %x", tt.counter, tt.key, got, tt.want)
		}
	}
}

func TestUniformIsUniform(t *testing.T) {
	const buckets, n = 64, 64 * 2000
	for _, draw := range []struct {
		name string
		f    func(i int) float64
	}{
		{"positions of a seed", func(i int) float64 { return uniform(7, i) }},
		{"seeds at a position", func(i int) float64 { return uniform(uint64(i), 7) }},
	} {
		count := make([]int, buckets)
		for i := range n {
			u := draw.f(i)
			if u < 0 || u >= 1 {
				t.Fatalf("%s: %v is outside [0, 1)", draw.name, u)
			}
			count[int(u*buckets)]++
		}
		want := make([]float64, buckets)
		for i := range want {
			want[i] = 1.0 / buckets
		}
		checkChiSquare(t, draw.name, count, want, n)
	}
}

func TestExpAndLog(t *testing.T) {
	for i := range 200000 {
		x := -uniform(1, i) * math.Pow(10, float64(i%5)-2)
		if got, want := exp(x), math.Exp(x); math.Abs(got-want) > 1e-15*want && x > -700 {
			t.Fatalf("exp(%v) = %v, want %v", x, got, want)
		}
		y := uniform(2, i) * math.Pow(10, float64(i%13)-6)
		if y == 0 {
			continue
		}
		if got, want := log(y), math.Log(y); math.Abs(got-want) > 1e-15*max(1, math.Abs(want)) {
			t.Fatalf("log(%v) = %v, want %v", y, got, want)
		}
	}
	for x, want := range map[float64]float64{0: 1, -701: 0, math.Inf(-1): 0, math.NaN(): 0} {
		if got := exp(x); got != want {
			t.Errorf("exp(%v) = %v, want %v", x, got, want)
		}
	}
	if got := log(1); got != 0 {
		t.Errorf("log(1) = %v", got)
	}
}

// checkChiSquare fails when counts are less likely than about one in a million under the probabilities. Outcomes
// that are expected less than five times are taken together.
func checkChiSquare(t *testing.T, name string, count []int, prob []float64, n int) {
	t.Helper()
	chi, cells := 0.0, 0
	restCount, restProb := 0, 0.0
	add := func(c int, p float64) {
		e := p * float64(n)
		chi += (float64(c) - e) * (float64(c) - e) / e
		cells++
	}
	for i, p := range prob {
		switch {
		case p == 0 && count[i] > 0:
			t.Errorf("%s: outcome %d has probability 0 and came %d times", name, i, count[i])
		case p*float64(n) < 5:
			restCount += count[i]
			restProb += p
		default:
			add(count[i], p)
		}
	}
	if restProb*float64(n) >= 5 {
		add(restCount, restProb)
	}
	if cells < 2 {
		return
	}
	// Wilson and Hilferty: the cube root of chi²/df is nearly normal.
	df := float64(cells - 1)
	z := (math.Cbrt(chi/df) - (1 - 2/(9*df))) / math.Sqrt(2/(9*df))
	if z > 4.75 {
		t.Errorf("%s: chi-square %.1f with %d degrees of freedom, %.1f standard deviations off", name, chi, cells-1, z)
	}
}
