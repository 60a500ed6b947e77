package tokenizer

// Longest returns the most bytes of a text that one token can stand for, so that a text has at least Standing/Longest
// tokens. It is 0 where there is no such number: where any part of a text may vanish, or become one unknown token.
// RATIONALE: Why are lists of requests bounded by the context?
func (t *Tokenizer) Longest() int {
	m, ok := t.model.(*bpe)
	if !ok || !m.bytes && (!m.byteFallback || m.vanish) || m.gaps() && len(t.norm) > 0 {
		return 0
	}
	shrink := 1
	for _, n := range t.norm {
		k := normalizerShrink(n)
		if k == 0 {
			return 0
		}
		shrink *= k
	}
	longest := 0
	for id := range t.Size() {
		longest = max(longest, len(t.Bytes(int32(id))))
	}
	return longest * shrink
}

// Standing counts the bytes of a text that tokens stand for, where Longest is a bound: some vocabularies have no tokens
// for rare control characters, which vanish.
func (t *Tokenizer) Standing(text string) int {
	m, ok := t.model.(*bpe)
	if !ok || !m.gaps() {
		return len(text)
	}
	n := 0
	for i := range len(text) {
		if m.byteIDs[text[i]] >= 0 {
			n++
		}
	}
	return n
}

// gaps reports whether a byte that UTF-8 has is no token of a byte-level vocabulary.
func (m *bpe) gaps() bool {
	if !m.bytes {
		return false
	}
	for b, id := range m.byteIDs {
		if id < 0 && b != 0xc0 && b != 0xc1 && b < 0xf5 {
			return true
		}
	}
	return false
}

// normalizerShrink returns how many times shorter n can make a text; 0: any number of times.
func normalizerShrink(n normalizer) int {
	switch n := n.(type) {
	case replaceString:
		if len(n.new) >= len(n.old) {
			return 1
		}
		if n.new == "" {
			return 0
		}
		return len(n.old)
	case prepend, alphabet:
		return 1
	case form:
		return 8 // a compatibility character of four bytes may become one of one byte, and marks join
	case spmNormalizer:
		if n.chars == nil && n.extraSpaces {
			return 1
		}
	}
	return 0
}
