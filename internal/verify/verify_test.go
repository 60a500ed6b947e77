package verify

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/safetensors"
)

// reference makes a reference of three positions over four tokens.
func reference() *Reference {
	return &Reference{
		Tokens: []int32{1, 2, 3},
		Vocab:  4,
		Logits: []float32{
			0, 1, 2, 3,
			5, 4.9995, 1, 0, // a near tie
			-1, 2, 0, 1,
		},
		Greedy: []int32{1, 0},
	}
}

func play(ref *Reference, seqs int, change func(seq, at int, row []float32)) Report {
	t := newTally(ref, seqs)
	for at := range ref.Tokens {
		for seq := range seqs {
			row := append([]float32(nil), ref.Logits[at*ref.Vocab:(at+1)*ref.Vocab]...)
			change(seq, at, row)
			t.logits(seq, at, row)
		}
	}
	for seq := range seqs {
		row := []float32{3, 1, 1, 1} // before greedy token 1
		change(seq, len(ref.Tokens), row)
		t.greedy(seq, 1, row)
	}
	return t.report()
}

func TestReports(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, tc := range []struct {
		name   string
		seqs   int
		change func(seq, at int, row []float32)
		pass   bool
		check  func(r Report) bool
	}{
		{"equal", 1, func(int, int, []float32) {}, true, func(r Report) bool {
			return r.MaxAbsError == 0 && r.RMSError == 0 && math.Abs(r.KL) < 1e-12 && r.ArgmaxAgreement == 1 && r.GreedyAgreement == 1 && r.Positions == 3
		}},
		{"within tolerance", 1, func(_, at int, row []float32) {
			if at == 0 {
				row[3] += 3.5e-4 // 1e-4 + 3e-4 are allowed
			}
		}, true, func(r Report) bool { return math.Abs(r.MaxAbsError-3.5e-4) < 1e-6 && r.WorstAt == [2]int{0, 3} }},
		{"outside tolerance", 1, func(_, at int, row []float32) {
			if at == 0 {
				row[0] += 1.5e-4 // a logit of 0 has no relative part
			}
		}, false, func(r Report) bool { return r.MaxTolerance > 1.4 && r.MaxTolerance < 1.6 }},
		{"near tie turned", 1, func(_, at int, row []float32) {
			if at == 1 {
				row[0], row[1] = 4.9999, 5
			}
		}, true, func(r Report) bool { return r.ArgmaxAgreement == 1 }},
		{"argmax turned", 1, func(_, at int, row []float32) {
			if at == 0 {
				row[2] = 3.1
			}
		}, false, func(r Report) bool { return r.ArgmaxAgreement == 0.5 && r.KL > 0.01 }},
		{"greedy turned", 1, func(_, at int, row []float32) {
			if at == 3 {
				row[2] = 4
			}
		}, false, func(r Report) bool { return r.GreedyAgreement == 0.5 && r.MaxAbsError == 0 }},
		{"greedy near tie", 1, func(_, at int, row []float32) {
			if at == 3 {
				row[2] = 3.0005
			}
		}, true, func(r Report) bool { return r.GreedyAgreement == 1 }},
		{"not a number", 1, func(_, at int, row []float32) {
			if at == 2 {
				row[1] = nan
			}
		}, false, func(r Report) bool { return r.MaxAbsError == math.MaxFloat64 }},
		{"infinite", 1, func(_, at int, row []float32) {
			if at == 2 {
				row[0] = inf
			}
		}, false, func(r Report) bool { return r.MaxTolerance == math.MaxFloat64 }},
		{"batch equal", 3, func(int, int, []float32) {}, true, func(r Report) bool { return r.BatchIdentical }},
		{"batch differs in one bit", 3, func(seq, at int, row []float32) {
			if seq == 2 && at == 1 {
				row[3] = math.Float32frombits(math.Float32bits(row[3]) ^ 1)
			}
		}, false, func(r Report) bool { return !r.BatchIdentical && r.MaxAbsError == 0 }},
		{"batch differs while generating", 2, func(seq, at int, row []float32) {
			if seq == 1 && at == 3 {
				row[3] = math.Nextafter32(row[3], 2)
			}
		}, false, func(r Report) bool { return !r.BatchIdentical }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := play(reference(), tc.seqs, tc.change)
			if r.Pass != tc.pass || !tc.check(r) {
				t.Errorf("report %+v", r)
			}
		})
	}
}

// TestHashIsOfFloatBits holds the digest against one computed elsewhere (Python: sha256 of struct.pack).
func TestHashIsOfFloatBits(t *testing.T) {
	r := play(
		&Reference{Tokens: []int32{0}, Vocab: 4, Logits: []float32{1, -0.5, 0, 2}, Greedy: []int32{0, 0}},
		1,
		func(_, _ int, row []float32) {},
	)
	const want = "696594a0c0e77794d0b30289435442cdb28bef967fef2e33c9560ba86ab255a0"
	if r.LogitsSHA256 != want {
		t.Errorf("digest %s, want %s", r.LogitsSHA256, want)
	}
}

func TestTopTwo(t *testing.T) {
	for _, tc := range []struct {
		in   []float32
		a, b int
	}{
		{[]float32{1}, 0, 0},
		{[]float32{1, 2}, 1, 0},
		{[]float32{3, 1, 3}, 0, 2},
		{[]float32{1, 5, 2, 4}, 1, 3},
		{[]float32{-1, -3, -2}, 0, 2},
	} {
		if a, b := topTwo(tc.in); a != tc.a || b != tc.b {
			t.Errorf("topTwo(%v) = %d, %d", tc.in, a, b)
		}
	}
}

func TestKLDivergence(t *testing.T) {
	p := []float32{float32(math.Log(0.5)), float32(math.Log(0.25)), float32(math.Log(0.25))}
	q := []float32{
		float32(math.Log(0.25)) + 7,
		float32(math.Log(0.25)) + 7,
		float32(math.Log(0.5)) + 7,
	} // shifted logits are equal
	want := 0.5*math.Log(2) + 0.25*math.Log(0.5)
	if got := klDivergence(p, q); math.Abs(got-want) > 1e-6 {
		t.Errorf("KL = %v, want %v", got, want)
	}
}

func writeTensors(t *testing.T, entries ...safetensors.Entry) string {
	t.Helper()
	var buf bytes.Buffer
	if err := safetensors.Write(&buf, entries, nil); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "r.safetensors")
	if err := os.WriteFile(path, buf.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBadReferencesAreRefused(t *testing.T) {
	i32 := func(name string, v ...int32) safetensors.Entry {
		b := make([]byte, 0, 4*len(v))
		for _, x := range v {
			b = append(b, byte(x), byte(x>>8), byte(x>>16), byte(x>>24))
		}
		return safetensors.Entry{Name: name, DType: "I32", Shape: []int{len(v)}, Data: b}
	}
	f32 := func(name string, shape ...int) safetensors.Entry {
		n := 4
		for _, d := range shape {
			n *= d
		}
		return safetensors.Entry{Name: name, DType: "F32", Shape: shape, Data: make([]byte, n)}
	}
	for _, tc := range []struct {
		name, want string
		entries    []safetensors.Entry
	}{
		{"encoder", "reference of an encoder", []safetensors.Entry{i32("input_ids", 1), f32("last_hidden_state", 1, 4)}},
		{"no ids", "input_ids is empty or missing", []safetensors.Entry{f32("logits", 1, 4)}},
		{"no logits", "no tensor logits", []safetensors.Entry{i32("input_ids", 1)}},
		{"rows", "want a row for each of the 2 input_ids", []safetensors.Entry{i32("input_ids", 1, 2), f32("logits", 3, 4)}},
		{"negative id", "input_ids[1] is -2", []safetensors.Entry{i32("input_ids", 1, -2), f32("logits", 2, 4)}},
		{"no vocabulary", "has the shape [2 0]", []safetensors.Entry{i32("input_ids", 1, 2), f32("logits", 2, 0)}}, // divided by zero
		{"flat", "has the shape [2]", []safetensors.Entry{i32("input_ids", 1, 2), f32("logits", 2)}},
	} {
		_, err := ReadReference(writeTensors(t, tc.entries...))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.want)
		}
	}
	r, err := ReadReference(writeTensors(t, i32("input_ids", 1, 2), f32("logits", 2, 4), i32("greedy_ids", 3)))
	if err != nil || r.Vocab != 4 || len(r.Greedy) != 1 {
		t.Errorf("good reference: %+v, %v", r, err)
	}
}
