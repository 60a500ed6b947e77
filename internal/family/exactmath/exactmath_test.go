package exactmath

import (
	"math"
	"testing"
)

func TestCloseToMath(t *testing.T) {
	near := func(name string, in, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 4e-15*math.Max(math.Abs(want), 1e-300) {
			t.Errorf("%s(%g) = %.17g, want %.17g", name, in, got, want)
		}
	}
	for _, x := range []float64{1e-300, 0.1, 0.5, 0.7, 1.5, 2, 3, 10, 10000, 1e6, 5e8, 1e300} {
		near("Log", x, Log(x), math.Log(x))
		for j := range 64 {
			e := float64(j) / 64
			if y := Pow(x, e); math.Abs(y/math.Pow(x, e)-1) > 2e-13 {
				t.Errorf("Pow(%g, %g) = %.17g, want %.17g", x, e, y, math.Pow(x, e))
			}
		}
	}
	for x := -700.0; x < 700; x += 3.7 {
		near("Exp", x, Exp(x), math.Exp(x))
	}
	if Log(1) != 0 || Exp(0) != 1 || Pow(10000, 0) != 1 {
		t.Error("the neutral elements must be exact")
	}
	if !math.IsInf(Exp(1000), 1) || Exp(-1000) != 0 {
		t.Error("Exp must saturate")
	}
}
