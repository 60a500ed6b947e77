package chat

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/baleenrun/baleen/internal/family"
	"github.com/baleenrun/baleen/internal/sample"
)

// Sampling says how tokens are chosen. What is nil comes from the settings under the model's name (Spec.Sampling), then
// from what the model's makers put into its checkpoint, then from Default, then from package sample: greedy.
//
// A request for the most probable tokens (Temperature 0) does not take what the makers say: they say how to draw, and
// there is nothing to draw.
type Sampling struct {
	Temperature, TopP, MinP, TypicalP                    *float32
	RepetitionPenalty, PresencePenalty, FrequencyPenalty *float32
	TopK, RepeatLastN                                    *int
	Seed                                                 *uint64
	LogitBias                                            map[int32]float32
	// Default are the dialect's documented defaults.
	Default *Sampling
}

// sampling merges what the request, the model and the dialect say, own being what the checkpoint says.
func (r *Request) sampling(spec *Spec, own family.Sampling) (sample.Params, error) {
	layers := []*Sampling{&r.Sampling, &spec.Sampling}
	if t := r.Sampling.Temperature; t == nil || *t != 0 {
		layers = append(layers, &Sampling{
			Temperature: own.Temperature, TopP: own.TopP, MinP: own.MinP, TypicalP: own.TypicalP,
			RepetitionPenalty: own.RepetitionPenalty, TopK: own.TopK, RepeatLastN: own.RepeatLastN,
		})
	}
	if r.Sampling.Default != nil {
		layers = append(layers, r.Sampling.Default)
	}
	var p sample.Params
	for i := len(layers) - 1; i >= 0; i-- {
		layers[i].onto(&p)
	}
	if i := slices.IndexFunc(layers, func(s *Sampling) bool { return s.TopP != nil }); i >= 0 && p.TopP == 0 {
		p.TopK = 1 // who says 0 wants the most probable token; in package sample it is off
	}
	if err := p.Validate(); err != nil {
		var pe *sample.ParamError
		if errors.As(err, &pe) {
			return p, &Error{Kind: Invalid, Field: pe.Name, Msg: fmt.Sprintf("%v is not allowed: want %s", pe.Value, pe.Want), Err: err}
		}
		return p, err
	}
	if !p.HasSeed {
		p.Seed, p.HasSeed = rand.Uint64()>>11, true // below 2^53: clients that read numbers as float64 can send it back
	}
	return p, nil
}

func (s *Sampling) onto(p *sample.Params) {
	set := func(dst *float32, v *float32) {
		if v != nil {
			*dst = *v
		}
	}
	set(&p.Temperature, s.Temperature)
	set(&p.TopP, s.TopP)
	set(&p.MinP, s.MinP)
	set(&p.TypicalP, s.TypicalP)
	set(&p.RepetitionPenalty, s.RepetitionPenalty)
	set(&p.PresencePenalty, s.PresencePenalty)
	set(&p.FrequencyPenalty, s.FrequencyPenalty)
	if s.TopK != nil {
		p.TopK = max(*s.TopK, 0)
	}
	if s.RepeatLastN != nil {
		p.RepeatLastN = *s.RepeatLastN
	}
	if s.Seed != nil {
		p.Seed, p.HasSeed = *s.Seed, true
	}
	if s.LogitBias != nil {
		p.LogitBias = s.LogitBias
	}
}
