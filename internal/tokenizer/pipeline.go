package tokenizer

import "strings"

// postProcessor is what a single sequence gets around it.
type postProcessor struct{ before, after []int32 }

// Encode appends the ids of text to dst. The only error is ErrTooManySteps.
func (t *Tokenizer) Encode(dst []int32, text string, o Options) ([]int32, error) {
	var allowed []span
	if o.ParseSpecial {
		allowed = []span{{0, len(text)}}
	}
	return t.encode(dst, text, allowed, o)
}

// EncodeParts appends the ids of a rendered prompt to dst: those of the parts'
// concatenation, except that control tokens are recognised only where all of
// their text lies in Special parts. Options.ParseSpecial has no effect.
// The only error is ErrTooManySteps.
func (t *Tokenizer) EncodeParts(dst []int32, parts []Part, o Options) ([]int32, error) {
	var b strings.Builder
	var allowed []span
	for _, p := range parts {
		start := b.Len()
		b.WriteString(p.Text)
		if !p.Special || p.Text == "" {
			continue
		}
		if n := len(allowed); n > 0 && allowed[n-1].end == start {
			allowed[n-1].end = b.Len()
		} else {
			allowed = append(allowed, span{start, b.Len()})
		}
	}
	return t.encode(dst, b.String(), allowed, o)
}

func (t *Tokenizer) encode(dst []int32, text string, allowed []span, o Options) ([]int32, error) {
	if o.AddSpecial {
		dst = append(dst, t.post.before...)
	}
	st := t.newState()
	st.steps = *newBudget(len(text))
	st.matches = t.added.plain.split(st.matches[:0], text, allowed)
	for i := range st.matches {
		m := st.matches[i]
		if m.id >= 0 {
			dst = append(dst, m.id)
			continue
		}
		dst = t.encodeSegment(st, dst, text[m.start:m.end], m.start, allowed)
	}
	err := st.steps.err(len(text))
	t.release(st)
	if err != nil {
		return nil, err
	}
	if o.AddSpecial {
		dst = append(dst, t.post.after...)
	}
	return dst, nil
}

// encodeSegment encodes a stretch between added tokens; offset is its place in
// the whole text.
func (t *Tokenizer) encodeSegment(st *state, dst []int32, raw string, offset int, allowed []span) []int32 {
	s := normalize(&st.steps, t.norm, raw)
	set := t.added.normalized
	if len(set.tokens) == 0 {
		return t.encodeWords(st, dst, s, offset == 0)
	}
	spans := clipSpans(allowed, offset, offset+len(raw))
	if len(t.norm) > 0 && len(spans) > 0 && set.hasControl() {
		spans = normalizedSpans(&st.steps, t.norm, raw, s, spans)
	}
	for _, m := range set.split(nil, s, spans) {
		if m.id >= 0 {
			dst = append(dst, m.id)
			continue
		}
		dst = t.encodeWords(st, dst, s[m.start:m.end], offset == 0 && m.start == 0)
	}
	return dst
}

// clipSpans returns the spans within [start, end), relative to start.
func clipSpans(spans []span, start, end int) []span {
	var out []span
	for _, s := range spans {
		if lo, hi := max(s.start, start), min(s.end, end); lo < hi {
			out = append(out, span{lo - start, hi - start})
		}
	}
	return out
}

// normalizedSpans maps spans of raw to spans of its normalized text s. Where a
// border lies inside something that normalization joins, the span shrinks.
func normalizedSpans(b *budget, norm []normalizer, raw, s string, spans []span) []span {
	var out []span
	for _, p := range spans {
		start, end := 0, len(s)
		if p.start > 0 {
			start = len(s) - commonSuffix(s, normalize(b, norm, raw[p.start:]))
		}
		if p.end < len(raw) {
			end = commonPrefix(s, normalize(b, norm, raw[:p.end]))
		}
		if start < end {
			out = append(out, span{start, end})
		}
	}
	return out
}

func commonPrefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

func commonSuffix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// encodeWords cuts normalized text into words and encodes each. atStart says
// that the text begins the whole input.
func (t *Tokenizer) encodeWords(st *state, dst []int32, s string, atStart bool) []int32 {
	if s == "" { // normalization left nothing: no pre-tokenizer sees it
		return dst
	}
	if t.pre == nil {
		return t.scanWords(st, dst, s, 0)
	}
	in, out := append(st.pieces[0][:0], piece{s, atStart}), st.pieces[1]
	for _, p := range t.pre {
		out = p.split(&st.steps, out[:0], in)
		in, out = out, in
	}
	for _, p := range in {
		if p.text != "" {
			dst = t.model.encode(st, dst, p.text)
		}
	}
	st.pieces = [2][]piece{in, out}
	return dst
}

// scanWords cuts s with the scanners from k on, each within the words of the
// one before.
func (t *Tokenizer) scanWords(st *state, dst []int32, s string, k int) []int32 {
	if k == len(t.scan) {
		return t.model.encode(st, dst, s)
	}
	scan, last := t.scan[k], k == len(t.scan)-1
	for i := 0; i < len(s); {
		end := scan(s, i)
		if last {
			dst = t.model.encode(st, dst, s[i:end])
		} else {
			dst = t.scanWords(st, dst, s[i:end], k+1)
		}
		i = end
	}
	return dst
}
