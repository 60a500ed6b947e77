package verify

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/backend/device"
	"github.com/baleenrun/baleen/internal/family"
	"github.com/baleenrun/baleen/internal/plan"
)

// Tolerances of a comparison in float32.
const (
	absTolerance = 1e-4
	relTolerance = 1e-4
	tieMargin    = 1e-3 // top two logits closer than this say nothing about argmax
)

// Options say how a checkpoint is run. The zero value is one sequence in one step, on all cores.
type Options struct {
	Batch   int    // equal sequences at once; 0: 1
	Chunk   int    // rows of a step for each sequence; 0: all
	Device  string // see package device
	Threads int    // 0: one for each core
	CPU     string
	KV      backend.KVType
	Backend backend.Backend // nil: what Device says
}

// A Report is the outcome of a comparison.
type Report struct {
	Family    string `json:"family"`
	Positions int    `json:"positions"`

	MaxAbsError  float64 `json:"max_abs_error"`
	RMSError     float64 `json:"rms_error"`
	MaxTolerance float64 `json:"max_tolerance_ratio"` // largest error in units of its tolerance; at most 1 passes
	WorstAt      [2]int  `json:"worst_at"`            // position and token of that error

	ArgmaxAgreement float64 `json:"argmax_agreement"` // share of positions without a near tie
	KL              float64 `json:"kl"`               // mean of KL(reference || ours), in nats
	GreedyAgreement float64 `json:"greedy_agreement"` // share of the greedy tokens; near ties agree
	BatchIdentical  bool    `json:"batch_identical"`  // all sequences of the batch gave the same bits

	LogitsSHA256 string `json:"logits_sha256"` // float32 bits, little-endian, in order
	Pass         bool   `json:"pass"`
}

// Checkpoint runs the checkpoint at path on the reference's tokens and compares.
func Checkpoint(ctx context.Context, path string, ref *Reference, o Options) (Report, error) {
	c, err := family.Open(path)
	if err != nil {
		return Report{}, err
	}
	defer c.Close()
	lower := func(tokens int) (*plan.Plan, error) {
		return c.Lower(family.Options{Context: tokens})
	}
	return compare(ctx, lower, ref, o)
}

// compare runs the plans that lower makes for a number of tokens. Some models (LongRoPE) compute a long text
// otherwise than a short one, and the reference computed each greedy token from scratch.
func compare(
	ctx context.Context,
	lower func(tokens int) (*plan.Plan, error),
	ref *Reference,
	o Options,
) (Report, error) {
	n := len(ref.Tokens)
	short, err := lower(n)
	if err != nil {
		return Report{}, err
	}
	long, err := lower(n + len(ref.Greedy))
	if err != nil {
		return Report{}, err
	}
	if short.Vocab != ref.Vocab {
		return Report{}, fmt.Errorf("the model has %d tokens, the reference has %d", short.Vocab, ref.Vocab)
	}
	for i, id := range append(append([]int32(nil), ref.Tokens...), ref.Greedy...) {
		if int(id) >= ref.Vocab {
			return Report{}, fmt.Errorf(
				"token %d at %d of the reference is outside the vocabulary of %d",
				id,
				i,
				ref.Vocab,
			)
		}
	}
	t := newTally(ref, max(o.Batch, 1))
	same := sameRopes(short, long)
	first := short
	if same {
		first = long // has room for the greedy tokens
	}
	r, err := o.runner(first, n)
	if err != nil {
		return Report{}, err
	}
	defer func() { r.close() }()
	if err := r.feed(ctx, ref.Tokens, 0, t.logits); err != nil {
		return Report{}, err
	}
	for i := range max(0, len(ref.Greedy)-1) {
		if same {
			err = r.feed(ctx, ref.Greedy[i:i+1], 0, func(seq, _ int, l []float32) { t.greedy(seq, i+1, l) })
		} else {
			err = o.recompute(ctx, lower, ref, i+1, t)
		}
		if err != nil {
			return Report{}, err
		}
	}
	report := t.report()
	report.Family = short.Family
	return report, nil
}

func (o Options) backendFor(p *plan.Plan) (backend.Backend, error) {
	if o.Backend != nil {
		return o.Backend, nil
	}
	return device.For(p, device.Options{Name: o.Device, Threads: o.Threads, Limit: o.CPU, KV: o.KV})
}

func (o Options) runner(p *plan.Plan, tokens int) (*runner, error) {
	be, err := o.backendFor(p)
	if err != nil {
		return nil, err
	}
	rows := tokens
	if o.Chunk > 0 {
		rows = min(rows, o.Chunk)
	}
	return newRunner(be, p, backend.Options{KV: o.KV}, max(o.Batch, 1), rows, rows)
}

// recompute computes the logits before greedy token i from the whole text, with the plan for that length.
func (o Options) recompute(
	ctx context.Context,
	lower func(int) (*plan.Plan, error),
	ref *Reference,
	i int,
	t *tally,
) error {
	text := append(append([]int32(nil), ref.Tokens...), ref.Greedy[:i]...)
	p, err := lower(len(text))
	if err != nil {
		return err
	}
	r, err := o.runner(p, len(text))
	if err != nil {
		return err
	}
	defer r.close()
	return r.feed(ctx, text, len(text)-1, func(seq, _ int, l []float32) { t.greedy(seq, i, l) })
}

func sameRopes(a, b *plan.Plan) bool {
	if len(a.Ropes) != len(b.Ropes) {
		return false
	}
	for i := range a.Ropes {
		x, y := a.Ropes[i], b.Ropes[i]
		if x.Scale != y.Scale || len(x.InvFreq) != len(y.InvFreq) {
			return false
		}
		for j := range x.InvFreq {
			if x.InvFreq[j] != y.InvFreq[j] {
				return false
			}
		}
	}
	return true
}

// A tally adds up differences as rows of logits come, in any order of steps.
type tally struct {
	ref     *Reference
	hash    hash.Hash
	bits    []byte
	digests []hash.Hash // of each sequence, greedy rows included

	maxAbs, squares, ratio float64
	worst                  [2]int
	values                 int
	argmax, decided        int
	kl                     float64
	greedyRight            int
	positions              int
}

func newTally(ref *Reference, seqs int) *tally {
	t := &tally{ref: ref, hash: sha256.New(), bits: make([]byte, 4*ref.Vocab)}
	for range seqs {
		t.digests = append(t.digests, sha256.New())
	}
	return t
}

// encode leaves the float32 bits of a row in t.bits and adds them to the sequence's digest.
func (t *tally) encode(seq int, row []float32) {
	for i, v := range row {
		binary.LittleEndian.PutUint32(t.bits[4*i:], math.Float32bits(v))
	}
	t.digests[seq].Write(t.bits)
}

// logits takes the row of position at.
func (t *tally) logits(seq, at int, row []float32) {
	t.encode(seq, row)
	if seq != 0 {
		return
	}
	t.hash.Write(t.bits)
	t.positions++
	want := t.ref.Logits[at*t.ref.Vocab : (at+1)*t.ref.Vocab]
	for i, v := range row {
		t.difference(at, i, float64(v), float64(want[i]))
	}
	best, second := topTwo(want)
	if want[best]-want[second] > tieMargin {
		t.decided++
		if mine, _ := topTwo(row); mine == best {
			t.argmax++
		}
	}
	t.kl += klDivergence(want, row)
	if at == len(t.ref.Tokens)-1 && len(t.ref.Greedy) > 0 {
		t.greedyRow(0, row)
	}
}

// difference adds one value. What is not a number fails whatever it is compared with.
func (t *tally) difference(at, i int, got, want float64) {
	d := math.Abs(got - want)
	if got == want {
		d = 0 // equal infinities too
	}
	if d != d {
		d = math.Inf(1)
	}
	t.values++
	t.maxAbs = max(t.maxAbs, d)
	t.squares += d * d
	if ratio := d / (absTolerance + relTolerance*math.Abs(want)); ratio > t.ratio || math.IsInf(d, 1) {
		t.ratio, t.worst = max(t.ratio, ratio), [2]int{at, i}
		if ratio != ratio {
			t.ratio = math.Inf(1)
		}
	}
}

// greedy takes the row before greedy token i.
func (t *tally) greedy(seq, i int, row []float32) {
	t.encode(seq, row)
	if seq == 0 {
		t.greedyRow(i, row)
	}
}

// greedyRow counts token i as right if it is our choice as well, or if ours is so close that the reference's logits,
// which are not in the file, cannot differ by more than a near tie. The text before it is the reference's, so that
// one near tie does not make all that follows differ.
func (t *tally) greedyRow(i int, row []float32) {
	best, _ := topTwo(row)
	want := int(t.ref.Greedy[i])
	if best == want || row[best]-row[want] <= tieMargin {
		t.greedyRight++
	}
}

func (t *tally) report() Report {
	r := Report{
		Positions:       t.positions,
		MaxAbsError:     finite(t.maxAbs),
		RMSError:        finite(math.Sqrt(t.squares / float64(max(t.values, 1)))),
		MaxTolerance:    finite(t.ratio),
		WorstAt:         t.worst,
		ArgmaxAgreement: share(t.argmax, t.decided),
		GreedyAgreement: share(t.greedyRight, len(t.ref.Greedy)),
		KL:              finite(t.kl / float64(max(t.positions, 1))),
		LogitsSHA256:    hex.EncodeToString(t.hash.Sum(nil)),
		BatchIdentical:  true,
	}
	first := string(t.digests[0].Sum(nil))
	for _, d := range t.digests[1:] {
		r.BatchIdentical = r.BatchIdentical && string(d.Sum(nil)) == first
	}
	r.Pass = t.ratio <= 1 && r.ArgmaxAgreement == 1 && r.GreedyAgreement == 1 && r.BatchIdentical &&
		t.positions == len(t.ref.Tokens)
	return r
}

// finite makes a number that JSON can hold.
func finite(v float64) float64 {
	if v != v || v > math.MaxFloat64 {
		return math.MaxFloat64
	}
	return v
}

func share(part, all int) float64 {
	if all == 0 {
		return 1
	}
	return float64(part) / float64(all)
}

// topTwo returns the indices of the largest and second largest value; ties go to the lower index.
func topTwo(v []float32) (best, second int) {
	best, second = 0, -1
	for i := 1; i < len(v); i++ {
		switch {
		case v[i] > v[best] || v[best] != v[best]:
			best, second = i, best
		case second < 0 || v[i] > v[second]:
			second = i
		}
	}
	return best, max(second, 0)
}

// klDivergence is KL(softmax(p) || softmax(q)) in nats.
func klDivergence(p, q []float32) float64 {
	lp, lq := logSumExp(p), logSumExp(q)
	var kl float64
	for i := range p {
		if a := float64(p[i]) - lp; a > -700 {
			kl += math.Exp(a) * (a - (float64(q[i]) - lq))
		}
	}
	return max(kl, 0) // rounding may leave less
}

func logSumExp(v []float32) float64 {
	m := math.Inf(-1)
	for _, x := range v {
		m = max(m, float64(x))
	}
	var s float64
	for _, x := range v {
		s += math.Exp(float64(x) - m)
	}
	return m + math.Log(s)
}
