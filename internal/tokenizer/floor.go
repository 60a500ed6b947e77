package tokenizer

// A Floor says how many tokens a text has at least, from its bytes alone. A token that stands for n bytes has n of them,
// so a byte takes at least that share of a token which it has in the longest one that it is part of, and the sum of the
// shares is no more than the number of tokens.
// RATIONALE: Why are lists of requests bounded by the context?
type Floor struct {
	exact [256]uint64 // shares of bytes
	any   uint64      // the smallest share
}

// floorUnit is a whole token.
const floorUnit = 1 << 32

// Floor returns the tokenizer's; nil where there is none: where any part of a text may vanish, or become one unknown
// token.
func (t *Tokenizer) Floor() *Floor {
	m, ok := t.model.(*bpe)
	if !ok || !m.bytes && (!m.byteFallback || m.vanish) || m.gaps() && len(t.norm) > 0 {
		return nil
	}
	shrink := 1
	kept := true // ASCII stays what it is, but for marks that join what stands before them
	for _, n := range t.norm {
		_, is := n.(form)
		kept = kept && is
		k := normalizerShrink(n)
		if k == 0 {
			return nil
		}
		shrink *= k
	}
	var most [256]int // bytes of the longest token that a byte is part of
	longest := 1
	for id := range t.Size() {
		b := t.Bytes(int32(id))
		if t.IsSpecial(int32(id)) { // where marks are read in a text
			name, _ := t.Token(int32(id))
			b = []byte(name)
		}
		longest = max(longest, len(b))
		for _, c := range b {
			most[c] = max(most[c], len(b))
		}
	}
	f := &Floor{any: floorUnit / uint64(longest*shrink)}
	for c := range f.exact {
		switch {
		case m.gaps() && m.byteIDs[c] < 0: // vanishes
		case !kept || !m.bytes || most[c] == 0 || len(t.norm) > 0 && c >= 0x80: // it may be another byte by then
			f.exact[c] = floorUnit / uint64(longest*shrink)
		default:
			f.exact[c] = floorUnit / uint64(most[c])
		}
	}
	return f
}

// Of returns the number of tokens of a text in units of 2^-32 tokens, rounded down.
func (f *Floor) Of(text string) (n uint64) {
	for i := range len(text) {
		switch {
		case i+1 < len(text) && text[i+1] >= 0x80: // it may join what follows
			n += min(f.exact[text[i]], f.any)
		default:
			n += f.exact[text[i]]
		}
	}
	return n
}

// Rewritten is Of for a text of which each byte stands for itself, in either case, or for one byte or more of any kind,
// as where quotes and letters outside ASCII are written as escapes.
func (f *Floor) Rewritten(text string) (n uint64) {
	for i := range len(text) {
		if i+1 < len(text) && text[i+1] >= 0x80 {
			n += min(f.exact[text[i]], f.any)
			continue
		}
		n += f.Byte(text[i])
	}
	return n
}

// Byte is Rewritten of one byte behind which none follows that is outside of ASCII.
func (f *Floor) Byte(c byte) uint64 {
	switch {
	case c >= 'a' && c <= 'z':
		return min(f.exact[c], f.exact[c-'a'+'A'])
	case c >= 'A' && c <= 'Z':
		return min(f.exact[c], f.exact[c-'A'+'a'])
	case c >= '0' && c <= '9':
		return f.exact[c]
	}
	return min(f.exact[c], f.any)
}

// Least is Of for a text whose bytes may become any others.
func (f *Floor) Least(text string) (n uint64) {
	for i := range len(text) {
		n += min(f.exact[text[i]], f.any)
	}
	return n
}

// Tokens is a sum of shares as a number of tokens.
func (f *Floor) Tokens(n uint64) int { return int(n / floorUnit) }

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
