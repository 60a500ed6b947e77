package chat

import (
	"testing"

	"github.com/baleenrun/baleen/internal/family"
	"github.com/baleenrun/baleen/internal/sample"
)

func TestBiasAgainstEveryTokenIsTheClients(t *testing.T) {
	if e := AsError(engineError(sample.ErrNothingAllowed)); e.Kind != Invalid || e.Field != "logit_bias" {
		t.Errorf("%v of %q: %v", e.Kind, e.Field, e)
	}
}

func TestSamplingLayers(t *testing.T) {
	num := func(v float32) *float32 { return &v }
	k := 7
	own := family.Sampling{Temperature: num(0.7), TopP: num(0.8), RepetitionPenalty: num(1.1), TopK: &k}
	for _, c := range []struct {
		name                           string
		request                        Sampling
		spec                           Sampling
		own                            family.Sampling
		temperature, topP, minP, again float32
		topK                           int
	}{
		{"the makers'", Sampling{}, Sampling{}, own, 0.7, 0.8, 0, 1.1, 7},
		{"the name's", Sampling{}, Sampling{Temperature: num(0.4)}, own, 0.4, 0.8, 0, 1.1, 7},
		{"the request's", Sampling{Temperature: num(0.2), TopP: num(0.5)}, Sampling{Temperature: num(0.4)}, own, 0.2, 0.5, 0, 1.1, 7},
		{"the most probable tokens", Sampling{Temperature: num(0)}, Sampling{}, own, 0, 0, 0, 0, 0},
		{"and what the name says of them", Sampling{Temperature: num(0)}, Sampling{RepetitionPenalty: num(1.2)}, own, 0, 0, 0, 1.2, 0},
		{"top_p 0", Sampling{TopP: num(0)}, Sampling{}, own, 0.7, 0, 0, 1.1, 1},
		{"another top_p than the name's 0", Sampling{TopP: num(0.5)}, Sampling{TopP: num(0)}, own, 0.7, 0.5, 0, 1.1, 7},
		{"nobody says anything", Sampling{}, Sampling{}, family.Sampling{}, 0, 0, 0, 0, 0},
	} {
		p, err := (&Request{Sampling: c.request}).sampling(&Spec{Sampling: c.spec}, c.own)
		if err != nil || p.Temperature != c.temperature || p.TopP != c.topP || p.MinP != c.minP ||
			p.RepetitionPenalty != c.again ||
			p.TopK != c.topK {
			t.Errorf("%s: %+v %v", c.name, p, err)
		}
		if !p.HasSeed || p.Seed >= 1<<53 {
			t.Errorf("%s: seed %d", c.name, p.Seed)
		}
	}
}
