package synth

import (
	"fmt"
	"strings"

	"github.com/baleenrun/baleen/internal/quant"
)

// A Recipe says which format each weight of a file gets. The rules are those of llama.cpp's quantizer, so that
// files of both have the same bytes per token.
type Recipe struct {
	Name     string
	FileType uint32 // GGUF's general.file_type
	base     quant.Type
	more     quant.Type // for half of the value and down projections; base where there is no such rule
	output   quant.Type // for the output matrix, and for the embedding when it is shared
}

var recipes = []Recipe{
	{"F32", 0, quant.F32, quant.F32, quant.F32},
	{"F16", 1, quant.F16, quant.F16, quant.F16},
	{"BF16", 32, quant.BF16, quant.BF16, quant.BF16},
	{"Q8_0", 7, quant.Q8_0, quant.Q8_0, quant.Q8_0},
	{"Q4_0", 2, quant.Q4_0, quant.Q4_0, quant.Q6_K},
	{"Q4_1", 3, quant.Q4_1, quant.Q4_1, quant.Q6_K},
	{"Q5_0", 8, quant.Q5_0, quant.Q5_0, quant.Q6_K},
	{"Q5_1", 9, quant.Q5_1, quant.Q5_1, quant.Q6_K},
	{"Q4_K", 15, quant.Q4_K, quant.Q4_K, quant.Q6_K},
	{"Q4_K_M", 15, quant.Q4_K, quant.Q6_K, quant.Q6_K},
	{"Q5_K_M", 17, quant.Q5_K, quant.Q6_K, quant.Q6_K},
	{"Q6_K", 18, quant.Q6_K, quant.Q6_K, quant.Q6_K},
}

// LookupRecipe finds a recipe by name; case does not matter.
func LookupRecipe(name string) (Recipe, error) {
	var names []string
	for _, r := range recipes {
		if strings.EqualFold(r.Name, name) {
			return r, nil
		}
		names = append(names, r.Name)
	}
	return Recipe{}, fmt.Errorf("no quantization is named %q; there are %s", name, strings.Join(names, ", "))
}

// role is what a weight does, as far as its format depends on it.
type role uint8

const (
	plainRole role = iota
	embeddingRole
	outputRole
	keyRole
	valueRole
	attnOutRole
	downRole
)

// pick returns the format of a weight with rows of k elements in layer.
func (r Recipe) pick(s Shape, what role, layer, k int) quant.Type {
	t := r.base
	moreBits := layer < s.Layers/8 || layer >= 7*s.Layers/8 || (layer-s.Layers/8)%3 == 2
	quantized := r.base.BlockSize() > 1
	switch {
	case what == outputRole || what == embeddingRole && s.Tied:
		t = r.output
		if quantized && k%t.BlockSize() != 0 {
			t = quant.Q8_0
		}
	case (what == valueRole || what == keyRole) && s.Experts == 8 && quantized:
		t = quant.Q8_0 // few bytes beside the experts
	case (what == valueRole || what == downRole) && moreBits:
		t = r.more
	case what == attnOutRole && s.Experts == 8 && r.base == quant.Q4_K:
		t = quant.Q5_K
	}
	return fitting(t, k)
}

// fitting replaces formats of 256 elements by ones of 32 where rows are no multiple of 256.
func fitting(t quant.Type, k int) quant.Type {
	if k%t.BlockSize() == 0 {
		return t
	}
	switch t {
	case quant.Q4_K:
		t = quant.Q5_0
	case quant.Q5_K:
		t = quant.Q5_1
	case quant.Q6_K:
		t = quant.Q8_0
	}
	if k%t.BlockSize() != 0 {
		return quant.F16
	}
	return t
}
