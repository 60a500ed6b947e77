package verify

import (
	"fmt"
	"math"

	"github.com/baleenrun/baleen/internal/safetensors"
)

// A Reference is what another implementation computed: tokens, the logits of all their positions, and the greedy
// continuation.
type Reference struct {
	Tokens []int32
	Vocab  int
	Logits []float32 // [tokens][vocab]
	Greedy []int32   // may be empty
}

// ReadReference reads a safetensors file with input_ids [n], logits [n, vocab] and greedy_ids [m].
func ReadReference(path string) (*Reference, error) {
	set, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	if _, ok := set.Tensor("last_hidden_state"); ok {
		return nil, fmt.Errorf(
			"%s is the reference of an encoder (last_hidden_state); only decoders can be verified",
			path,
		)
	}
	r := &Reference{}
	if r.Tokens, err = readIDs(set, "input_ids"); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(r.Tokens) == 0 {
		return nil, fmt.Errorf("%s: input_ids is empty or missing", path)
	}
	if r.Greedy, err = readIDs(set, "greedy_ids"); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	t, ok := set.Tensor("logits")
	if !ok {
		return nil, fmt.Errorf("%s has no tensor logits", path)
	}
	if len(t.Shape) > 1 {
		r.Vocab = t.Shape[len(t.Shape)-1]
	}
	if r.Vocab < 1 || t.Elements()/r.Vocab != len(r.Tokens) {
		return nil, fmt.Errorf(
			"%s: logits has the shape %v, want a row for each of the %d input_ids",
			path,
			t.Shape,
			len(r.Tokens),
		)
	}
	if r.Logits, err = t.Float32s(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// readIDs reads a list of token ids, nil where there is none. float32 holds ids up to 2^24 exactly; no vocabulary
// is larger.
func readIDs(set *safetensors.Set, name string) ([]int32, error) {
	t, ok := set.Tensor(name)
	if !ok {
		return nil, nil
	}
	values, err := t.Float32s()
	if err != nil {
		return nil, err
	}
	ids := make([]int32, len(values))
	for i, v := range values {
		if !(v >= 0 && v < 1<<24) || v != float32(math.Trunc(float64(v))) {
			return nil, fmt.Errorf("%s[%d] is %v, which is no token id", name, i, v)
		}
		ids[i] = int32(v)
	}
	return ids, nil
}
