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
// from the model's own default: its checkpoint, the makers of its base model, or Baleen
// (family.Checkpoint.DefaultSampling). No dialect and no command has a default of its own.
//
// A request for the most probable tokens (Temperature 0) does not take the model's default: it says how to draw, and
// there is nothing to draw.
type Sampling struct {
	Temperature, TopP, MinP, TypicalP                    *float32
	RepetitionPenalty, PresencePenalty, FrequencyPenalty *float32
	TopK, RepeatLastN                                    *int
	Seed                                                 *uint64
	LogitBias                                            map[int32]float32
}

// sampling merges what the request, the settings under the model's name and the model itself say, own being the model's
// default.
func (r *Request) sampling(spec *Spec, own family.Sampling) (sample.Params, error) {
	layers := []*Sampling{&r.Sampling, &spec.Sampling}
	if t := r.Sampling.Temperature; t == nil || *t != 0 {
		layers = append(layers, &Sampling{
			Temperature: own.Temperature, TopP: own.TopP, MinP: own.MinP, TypicalP: own.TypicalP,
			RepetitionPenalty: own.RepetitionPenalty, TopK: own.TopK, RepeatLastN: own.RepeatLastN,
		})
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
			return p, &Error{
				Kind:  Invalid,
				Field: pe.Name,
				Msg:   fmt.Sprintf("%v is not allowed: want %s", pe.Value, pe.Want),
				Err:   err,
			}
		}
		return p, err
	}
	if !p.HasSeed {
		p.Seed, p.HasSeed = rand.Uint64()>>11, true // below 2^53: clients that read numbers as float64 can send it back
	}
	return p, nil
}

// DefaultParams are what requests are drawn with that say nothing of it.
func DefaultParams(spec *Spec, m *Model) (sample.Params, error) {
	own, _ := m.Sampling()
	return (&Request{}).sampling(spec, own)
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
