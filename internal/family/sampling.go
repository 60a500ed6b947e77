package family

// Sampling is how a model's makers say that its tokens are to be drawn. Nil is what they do not say. Values outside
// of what they can be are left out.
type Sampling struct {
	Temperature, TopP, MinP, TypicalP, RepetitionPenalty *float32
	TopK, RepeatLastN                                    *int
}

// Empty reports whether nothing is said.
func (s Sampling) Empty() bool { return s == Sampling{} }

// Sampling returns what the checkpoint says: a folder in generation_config.json (do_sample, temperature, top_k, top_p,
// min_p, typical_p, repetition_penalty, as Hugging Face's transformers read them), a GGUF file in its keys
// general.sampling.* (as llama.cpp writes them).
func (c *Checkpoint) Sampling() Sampling {
	if c.gguf != nil {
		get := func(key string) (float64, bool) {
			if v, ok := c.gguf.Float("general.sampling." + key); ok {
				return v, true
			}
			v, ok := c.gguf.Int("general.sampling." + key)
			return float64(v), ok
		}
		s := samplingOf(get, "temp", "penalty_repeat")
		if n, ok := get("penalty_last_n"); ok && n >= -1 && n < 1<<31 && n == float64(int(n)) {
			reach := int(n)
			s.RepeatLastN = &reach
		}
		return s
	}
	get := func(key string) (float64, bool) { return number(c.generation[key]) }
	s := samplingOf(get, "temperature", "repetition_penalty")
	if draw, ok := c.generation["do_sample"].(bool); ok && !draw {
		greedy := float32(0)
		s.Temperature = &greedy
	}
	if s.RepetitionPenalty != nil {
		all := -1 // transformers look at all tokens
		s.RepeatLastN = &all
	}
	return s
}

func samplingOf(get func(key string) (float64, bool), temperature, repetition string) Sampling {
	var s Sampling
	for _, f := range []struct {
		key    string
		lo, hi float64
		dst    **float32
	}{
		{temperature, 0, 100, &s.Temperature},
		{"top_p", 0, 1, &s.TopP},
		{"min_p", 0, 1, &s.MinP},
		{"typical_p", 0, 1, &s.TypicalP},
		{repetition, 0.01, 100, &s.RepetitionPenalty},
	} {
		if v, ok := get(f.key); ok && v >= f.lo && v <= f.hi {
			x := float32(v)
			*f.dst = &x
		}
	}
	if v, ok := get("top_k"); ok && v >= 0 && v < 1<<31 && v == float64(int(v)) {
		k := int(v)
		s.TopK = &k
	}
	return s
}
