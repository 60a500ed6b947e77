package family

import (
	"math"

	"github.com/baleenrun/baleen/internal/family/exactmath"
	"github.com/baleenrun/baleen/internal/plan"
)

// rope is a rotary position table and how heads use it.
type rope struct {
	freqs       []float64 // one per pair
	long        []float64 // LongRoPE: of sequences longer than those of pretraining; nil: there are none
	scale       float64   // of cosine and sine
	interleaved bool
	off         int // first rotated value of a head

	params ropeParams
	id     plan.RopeID // set once lowered
	placed bool
}

// ropeArgs is what a family knows about its rotary embedding.
type ropeArgs struct {
	layerType    string  // entry of nested parameters, "" where there are none
	dim          int     // head dimension
	theta        float64 // default base; 0: 10000
	partial      float64 // default share of the head that is rotated; 0: all of it, and another share is refused
	interleaved  bool
	extra        []string // keys of the parameters that the family reads itself
	suIsLongRope bool     // Phi-3: "su" and "yarn" are old names of longrope
	ggufTheta    string   // GGUF key of the base where it is not rope.freq_base
	logMul       bool     // GGUF: yarn_log_multiplier is a tenth of mscale_all_dim (DeepSeek)
	ggufExact    bool     // GGUF: YaRN's range is not rounded
	unscaled     bool     // GGUF: the file's scaling is not for this table
}

// ropeParams are the parameters of one table, as Hugging Face names them (rope_parameters, formerly rope_scaling).
type ropeParams struct {
	kind           string
	theta, partial float64
	factor         float64 // 0: absent
	original       float64 // positions of pretraining, for the kinds that need it
	max            float64 // max_position_embeddings

	attentionFactor         float64 // 0: absent
	betaFast, betaSlow      float64
	mscale, mscaleAll       float64
	truncate                bool
	lowFreq, highFreq       float64
	longFactor, shortFactor []float64
	llama4Beta              float64
	divisors                []float64 // GGUF rope_freqs: each frequency is divided by its own number
}

// rope reads the rotary parameters and makes the table.
func (c *config) rope(a ropeArgs) *rope {
	if a.theta == 0 {
		a.theta = 10000
	}
	var p ropeParams
	if c.gguf {
		p = c.ggufRope(a)
	} else {
		p = c.hfRope(a)
	}
	share := p.partial
	if share == 0 {
		share = 1
	}
	rotated := int(float64(a.dim) * share)
	if c.gguf {
		rotated = c.intOr("rope.dimension_count", rotated, 2, a.dim)
	}
	// An odd number turns one dimension more, as the reference does: the last pair has the frequency of an even one.
	odd := rotated%2 != 0
	if rotated < 1 || rotated+rotated%2 > a.dim || odd && (c.gguf || p.kind == "yarn") {
		c.fail("rotary embedding of %d of %d head dimensions", rotated, a.dim)
	}
	if p.theta < 1 || p.theta > 1e15 {
		c.fail("rope_theta is %v", p.theta)
	}
	freqs, long, scale := c.frequencies(p, rotated)
	return &rope{freqs: freqs, long: long, scale: scale, interleaved: a.interleaved, params: p}
}

// hfRope reads rope_parameters or the older rope_scaling and rope_theta, flat or nested by layer type.
func (c *config) hfRope(a ropeArgs) ropeParams {
	d := c.dict("rope_parameters")
	if s := c.dict("rope_scaling"); len(s) > 0 {
		d = s
	}
	nested := false
	if inner, ok := d[a.layerType]; ok && a.layerType != "" {
		inner, ok := inner.(map[string]any)
		if !ok {
			c.fail("rope_parameters of %s are not an object", a.layerType)
		}
		d, nested = inner, true
	}
	r := c.sub(d)
	p := ropeParams{
		kind:    r.stringOr("rope_type", r.stringOr("type", "default")),
		theta:   r.floatOr("rope_theta", c.floatOr("rope_theta", a.theta)),
		partial: r.floatOr("partial_rotary_factor", c.floatOr("partial_rotary_factor", a.partial)),
		max:     float64(c.intOr("max_position_embeddings", 0, 0, math.MaxInt32)),
	}
	r.use("type", "mrope_section", "mrope_interleaved", "max_position_embeddings", "finetuned")
	r.use(a.extra...)
	if a.partial == 0 && p.partial != 0 && p.partial != 1 {
		c.fail("partial_rotary_factor is %v, which this family does not have", p.partial)
	}
	if p.kind == "mrope" { // equal positions in all sections: plain for text
		p.kind = "default"
	}
	if a.suIsLongRope && (p.kind == "su" || p.kind == "yarn") {
		p.kind = "longrope"
	}
	original := p.max
	if !nested && c.has("original_max_position_embeddings") {
		r.use("original_max_position_embeddings")
		original = float64(c.dim("original_max_position_embeddings", math.MaxInt32))
	} else {
		original = r.floatOr("original_max_position_embeddings", original)
	}
	p.original = original
	c.hfScaling(r, &p)
	p.llama4Beta = r.floatOr("llama_4_scaling_beta", 0)
	r.finish("rope_parameters")
	return p
}

// hfScaling reads the parameters that belong to p.kind.
func (c *config) hfScaling(r *config, p *ropeParams) {
	p.factor = r.floatOr("factor", 0)
	switch p.kind {
	case "default":
		r.use("factor")
	case "linear", "dynamic":
		if p.factor <= 0 {
			c.fail("rope factor is %v", p.factor)
		}
	case "llama3":
		p.lowFreq, p.highFreq = r.positive("low_freq_factor", 1), r.positive("high_freq_factor", 4)
		if p.factor <= 0 || p.original <= 0 || p.lowFreq >= p.highFreq {
			c.fail(
				"llama3 rope with factor %v, original length %v, frequency factors %v and %v",
				p.factor,
				p.original,
				p.lowFreq,
				p.highFreq,
			)
		}
	case "yarn":
		p.attentionFactor = r.floatOr("attention_factor", 0)
		p.betaFast, p.betaSlow = r.floatOr("beta_fast", 32), r.floatOr("beta_slow", 1)
		p.mscale, p.mscaleAll = r.floatOr("mscale", 0), r.floatOr("mscale_all_dim", 0)
		p.truncate = r.boolOr("truncate", true)
	case "longrope":
		p.attentionFactor = r.floatOr("attention_factor", 0)
		p.longFactor, p.shortFactor = r.floats("long_factor"), r.floats("short_factor")
	default:
		c.fail("rope type %q is not known", p.kind)
	}
}

// floats returns an array of numbers.
func (c *config) floats(key string) []float64 {
	var out []float64
	for _, v := range c.list(key, -1) {
		out = append(out, c.float(key, v))
	}
	return out
}

// frequencies computes the table. Like the reference it rounds to float32 wherever that computes in float32, so that
// large positions turn by the angles that the model was trained with: one unit in the last place more is visible in the
// logits after some hundred positions.
func (c *config) frequencies(p ropeParams, rotated int) (freqs, long []float64, scale float64) {
	if p.kind == "dynamic" {
		p.theta = c.dynamicTheta(p, rotated)
	}
	freqs, scale = make([]float64, (rotated+1)/2), 1
	powers := make([]float64, len(freqs)) // theta^(2j/n): the wavelength over 2 pi
	for j := range freqs {
		e := float32(2*j) / float32(rotated)
		powers[j] = float64(float32(exactmath.Pow(round32(p.theta), float64(e))))
		freqs[j] = round32(1 / powers[j])
	}
	switch p.kind {
	case "linear":
		for j := range freqs {
			freqs[j] = round32(freqs[j] / round32(p.factor))
		}
	case "llama3":
		llama3Frequencies(p, freqs)
	case "yarn":
		scale = c.yarnFrequencies(p, freqs, powers)
	case "longrope":
		long, scale = c.longFrequencies(p, freqs, powers)
	}
	if p.divisors != nil {
		if len(p.divisors) != len(freqs) {
			c.fail("%d rope factors for %d frequencies", len(p.divisors), len(freqs))
		}
		for j, d := range p.divisors {
			if !(d > 0) {
				c.fail("rope factor %v", d)
			}
			freqs[j] = round32(freqs[j] / d)
		}
	}
	return freqs, long, scale
}

// dynamicTheta is the base for the positions that the model is loaded for: beyond its maximum it grows with them, so
// that the lowest frequency turns as far as before (NTK scaling). Like the reference it computes in float32.
func (c *config) dynamicTheta(p ropeParams, rotated int) float64 {
	positions := float64(c.limit)
	if positions <= p.max {
		return p.theta
	}
	if rotated <= 2 || p.max <= 0 {
		c.fail("dynamic rope of %d dimensions beyond %v positions", rotated, p.max)
	}
	stretch := round32(round32(round32(round32(p.factor)*positions)/p.max) - round32(p.factor-1))
	return round32(p.theta * round32(exactmath.Pow(stretch, float64(rotated)/float64(rotated-2))))
}

func round32(x float64) float64 { return float64(float32(x)) }

// llama3Frequencies slows the low frequencies down by the factor, the high ones not, and blends between.
func llama3Frequencies(p ropeParams, freqs []float64) {
	factor, low := round32(p.factor), round32(p.lowFreq)
	for j, f := range freqs {
		wavelength := round32(round32(1/f) * round32(2*math.Pi))
		switch {
		case wavelength > round32(p.original/p.lowFreq):
			freqs[j] = round32(f / factor)
		case wavelength >= round32(p.original/p.highFreq):
			turns := round32(round32(1/wavelength) * p.original)
			smooth := round32(round32(turns-low) / round32(p.highFreq-p.lowFreq))
			freqs[j] = round32(round32(round32(round32(1-smooth)*f)/factor) + round32(smooth*f))
		}
	}
}

// mscaleOf is YaRN's temperature for a context factor.
func mscaleOf(factor, mscale float64) float64 {
	if factor <= 1 {
		return 1
	}
	return float64(float64(0.1*mscale)*exactmath.Log(factor)) + 1
}

// yarnFrequencies blends interpolated and original frequencies (YaRN, arXiv 2309.00071) and returns the scale of cosine
// and sine.
func (c *config) yarnFrequencies(p ropeParams, freqs, powers []float64) float64 {
	if p.factor == 0 && p.original > 0 {
		p.factor = p.max / p.original
	}
	if p.factor <= 0 || p.original <= 0 || p.betaFast <= 0 || p.betaSlow <= 0 {
		c.fail(
			"yarn rope with factor %v, original length %v, betas %v and %v",
			p.factor,
			p.original,
			p.betaFast,
			p.betaSlow,
		)
	}
	n := float64(2 * len(freqs))
	pairAt := func(rotations float64) float64 {
		return n * exactmath.Log(p.original/(rotations*2*math.Pi)) / (2 * exactmath.Log(p.theta))
	}
	low, high := pairAt(p.betaFast), pairAt(p.betaSlow)
	if p.truncate {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, n-1)
	if low == high {
		high += 0.001 // as the reference does, against division by zero
	}
	for j := range freqs {
		ramp := min(max(round32(round32(float64(j)-round32(low))/round32(high-low)), 0), 1)
		keep := round32(1 - ramp)
		slow := round32(1 / round32(round32(p.factor)*powers[j]))
		freqs[j] = round32(round32(slow*round32(1-keep)) + round32(freqs[j]*keep))
	}
	switch {
	case p.attentionFactor > 0:
		return p.attentionFactor
	case p.mscale != 0 && p.mscaleAll != 0:
		return mscaleOf(p.factor, p.mscale) / mscaleOf(p.factor, p.mscaleAll)
	}
	return mscaleOf(p.factor, 1)
}

// longFrequencies divides each frequency by its own factor (LongRoPE, arXiv 2402.13753): one of the short list in
// freqs, and one of the long list in what it returns, for sequences longer than those of pretraining. As in the
// reference, the sequence decides, not what the model is loaded for; without room for such a sequence there is no long
// list.
func (c *config) longFrequencies(p ropeParams, freqs, powers []float64) (long []float64, scale float64) {
	divide := func(out, factors []float64) {
		if len(factors) != len(freqs) || p.original <= 1 {
			c.fail(
				"longrope with %d factors for %d frequencies, original length %v",
				len(factors),
				len(freqs),
				p.original,
			)
		}
		for j, f := range factors {
			if !(f > 0) {
				c.fail("longrope factor %v", f)
			}
			out[j] = round32(1 / round32(round32(f)*powers[j]))
		}
	}
	divide(freqs, p.shortFactor)
	if c.limit == 0 && p.max > p.original || float64(c.limit) > p.original {
		long = make([]float64, len(freqs))
		divide(long, p.longFactor)
	}
	factor := p.factor
	if factor == 0 {
		factor = p.max / p.original
	}
	switch {
	case p.attentionFactor > 0:
		return long, p.attentionFactor
	case factor <= 1:
		return long, 1
	}
	return long, exactmath.Sqrt(1 + exactmath.Log(factor)/exactmath.Log(p.original))
}
