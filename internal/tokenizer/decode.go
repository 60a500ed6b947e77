package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// decodeKind is one way in which a decoder rewrites tokens.
type decodeKind uint8

const (
	decodeByteLevel    decodeKind = iota // the byte-level alphabet
	decodeByteFallback                   // <0xE2> and the like are bytes
	decodeFuse                           // later steps see the whole text
	decodeReplace                        // old → new
	decodeStrip                          // at most start and stop times old at the ends
	decodeMetaspace                      // old → space, in the first token → new
	decodeWordPiece                      // old marks what continues a word
	decodeWordStart                      // old marks what begins a word
	decodeBPE                            // old ends a word
	decodeCTC                            // repeated tokens and padding (old) vanish
	decodeSpaces                         // a space between tokens
)

// A decodeStep rewrites the tokens that the step before made.
type decodeStep struct {
	kind        decodeKind
	old, new    string
	start, stop int
	cleanup     bool // remove spaces before punctuation
}

// Decoder turns ids into text one by one. It holds back incomplete UTF-8; what
// can no longer become UTF-8 is written as U+FFFD.
type Decoder struct {
	t           *Tokenizer
	skipSpecial bool
	whole       bool // a step needs the end of the text: everything waits for Flush
	tokens      int  // shown so far
	strip       int  // times that the start of the text may still be stripped
	stripText   string
	last        string   // decodeCTC: the token before
	pending     []byte   // text whose last character may be incomplete
	held        []string // whole: the tokens
	piece       []byte
}

// NewDecoder starts a streaming decoder. With skipSpecial, control tokens
// leave no text. A Decoder is for one sequence and one goroutine.
func (t *Tokenizer) NewDecoder(skipSpecial bool) *Decoder {
	d := &Decoder{t: t, skipSpecial: skipSpecial}
	fused := false
	for _, s := range t.steps {
		switch {
		case s.kind == decodeFuse:
			fused = true
		case s.kind == decodeStrip && fused && s.stop == 0 && d.strip == 0:
			d.strip, d.stripText = s.start, s.old
		case fused || s.kind == decodeBPE:
			d.whole = true
		}
	}
	return d
}

// Decode returns the text of ids. Ids outside the vocabulary leave no text.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	d := t.NewDecoder(skipSpecial)
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(d.Next(id))
	}
	b.WriteString(d.Flush())
	return b.String()
}

// Next returns the text that became complete with id.
func (d *Decoder) Next(id int32) string {
	if d.skipSpecial && d.t.IsSpecial(id) {
		return ""
	}
	if d.t.rawDecode {
		d.pending = d.t.appendTokenBytes(d.pending, id)
		return d.complete(false)
	}
	text, ok := d.t.vocab.text(id)
	if !ok {
		return ""
	}
	if d.whole {
		d.held = append(d.held, text)
		return ""
	}
	d.piece = d.rewrite(d.piece[:0], text)
	d.tokens++
	out := d.piece
	for d.strip > 0 && len(out) > 0 {
		rest, ok := strings.CutPrefix(string(out), d.stripText)
		if !ok || d.stripText == "" {
			d.strip = 0
			break
		}
		out = out[len(out)-len(rest):]
		d.strip--
	}
	d.pending = append(d.pending, out...)
	return d.complete(false)
}

// Flush returns the text that was held back and ends the sequence.
func (d *Decoder) Flush() string {
	if d.whole {
		d.pending = append(d.pending, d.t.decodeWhole(d.held)...)
		d.held = nil
	}
	return d.complete(true)
}

// rewrite appends the text that a token becomes before tokens are fused.
func (d *Decoder) rewrite(dst []byte, token string) []byte {
	first := d.tokens == 0
	for i := range d.t.steps {
		s := &d.t.steps[i]
		switch s.kind {
		case decodeByteLevel:
			out, _ := appendRaw(dst, token)
			return out
		case decodeByteFallback:
			if b, ok := byteToken(token); ok {
				return append(dst, b)
			}
		case decodeFuse:
			return append(dst, token...)
		case decodeCTC:
			same := token == d.last && !first
			d.last = token
			if same || token == s.old {
				return dst
			}
			if token = strings.ReplaceAll(token, s.old, ""); s.cleanup {
				token = strings.ReplaceAll(cleanSpaces(token), s.new, " ")
			}
		default:
			token = s.rewrite(token, first)
		}
	}
	return append(dst, token...)
}

// rewrite applies a step that looks at one token at a time.
func (s *decodeStep) rewrite(token string, first bool) string {
	switch s.kind {
	case decodeReplace:
		return strings.ReplaceAll(token, s.old, s.new)
	case decodeStrip:
		for n := s.start; n > 0 && s.old != "" && strings.HasPrefix(token, s.old); n-- {
			token = token[len(s.old):]
		}
		for n := s.stop; n > 0 && s.old != "" && strings.HasSuffix(token, s.old); n-- {
			token = token[:len(token)-len(s.old)]
		}
	case decodeMetaspace:
		if first {
			return strings.ReplaceAll(token, s.old, s.new)
		}
		return strings.ReplaceAll(token, s.old, " ")
	case decodeWordPiece:
		if !first {
			if rest, ok := strings.CutPrefix(token, s.old); ok && s.old != "" {
				token = rest
			} else {
				token = " " + token
			}
		}
		if s.cleanup {
			token = cleanSpaces(token)
		}
	case decodeWordStart:
		if rest, ok := strings.CutPrefix(token, s.old); ok && first {
			token = rest
		} else if ok || strings.HasPrefix(token, "[") && !first {
			token = " " + rest
		}
		if s.cleanup {
			token = cleanSpaces(token)
		}
	case decodeSpaces:
		if !first {
			return " " + token
		}
	}
	return token
}

// decodeWhole applies steps that need all tokens at once.
func (t *Tokenizer) decodeWhole(tokens []string) string {
	d := Decoder{t: t}
	fused := false
	text := ""
	for i := range t.steps {
		s := &t.steps[i]
		switch {
		case s.kind == decodeFuse:
			text, fused = strings.Join(tokens, ""), true
		case fused:
			text = s.rewrite(text, true)
		case s.kind == decodeBPE:
			for k := range tokens {
				space := " "
				if k == len(tokens)-1 {
					space = ""
				}
				tokens[k] = strings.ReplaceAll(tokens[k], s.old, space)
			}
		default:
			one := Tokenizer{steps: t.steps[i : i+1]}
			d.t = &one
			for k := range tokens {
				d.tokens = k
				tokens[k] = string(d.rewrite(nil, tokens[k]))
			}
		}
	}
	if !fused {
		text = strings.Join(tokens, "")
	}
	return text
}

var spaceCleaner = []struct{ old, new string }{
	{" .", "."},
	{" ?", "?"},
	{" !", "!"},
	{" ,", ","},
	{" ' ", "'"},
	{" n't", "n't"},
	{" 'm", "'m"},
	{" do not", " don't"},
	{" 's", "'s"},
	{" 've", "'ve"},
	{" 're", "'re"},
}

func cleanSpaces(s string) string {
	for _, c := range spaceCleaner {
		s = strings.ReplaceAll(s, c.old, c.new)
	}
	return s
}

// complete takes the text out of pending that later bytes cannot change.
func (d *Decoder) complete(all bool) string {
	n := len(d.pending)
	if !all {
		n -= incompleteTail(d.pending)
	}
	if n == 0 {
		return ""
	}
	out := validText(d.pending[:n])
	d.pending = d.pending[:copy(d.pending, d.pending[n:])]
	return out
}

// incompleteTail returns how many bytes at the end of b begin a character that
// more bytes could complete.
func incompleteTail(b []byte) int {
	for n := 1; n <= 3 && n <= len(b); n++ {
		tail := b[len(b)-n:]
		if utf8.RuneStart(tail[0]) {
			if tail[0] >= utf8.RuneSelf && sequencePrefix(tail) == n && !utf8.FullRune(tail) {
				return n
			}
			return 0
		}
	}
	return 0
}

// validText returns b as UTF-8, with U+FFFD for each longest stretch that
// begins a character without completing it, as the Unicode Standard recommends
// (section 3.9, substitution of maximal subparts) and Rust does.
func validText(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	out := make([]byte, 0, len(b)+8)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n <= 1 {
			n = max(1, sequencePrefix(b))
			out = append(out, "\uFFFD"...)
		} else {
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return string(out)
}

// sequencePrefix returns how many bytes of b can stand at the start of one
// well-formed UTF-8 sequence (table 3-7 of the Unicode Standard).
func sequencePrefix(b []byte) int {
	need, lo, hi := 0, byte(0x80), byte(0xBF)
	switch c := b[0]; {
	case c >= 0xC2 && c <= 0xDF:
		need = 1
	case c >= 0xE0 && c <= 0xEF:
		need = 2
		if c == 0xE0 {
			lo = 0xA0
		} else if c == 0xED {
			hi = 0x9F
		}
	case c >= 0xF0 && c <= 0xF4:
		need = 3
		if c == 0xF0 {
			lo = 0x90
		} else if c == 0xF4 {
			hi = 0x8F
		}
	default:
		return 0
	}
	n := 1
	for n <= need && n < len(b) && b[n] >= lo && b[n] <= hi {
		lo, hi = 0x80, 0xBF
		n++
	}
	return n
}

// byteToken returns the byte of a token like <0x0A>.
func byteToken(s string) (byte, bool) {
	if len(s) != 6 || s[:3] != "<0x" || s[5] != '>' {
		return 0, false
	}
	hi, ok := hexDigit(s[3])
	lo, ok2 := hexDigit(s[4])
	return hi<<4 | lo, ok && ok2
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// Bytes returns the bytes that a token adds to a text, not at its start: with
// SentencePiece's spaces as spaces, byte tokens as their byte, and a space
// before a word of a WordPiece vocabulary. Nil for ids without a token.
func (t *Tokenizer) Bytes(id int32) []byte {
	if t.rawDecode {
		return t.appendTokenBytes(nil, id)
	}
	text, ok := t.vocab.text(id)
	if !ok {
		return nil
	}
	if _, extra := t.vocab.extra[id]; extra || t.IsSpecial(id) {
		return []byte(text)
	}
	d := Decoder{t: t, tokens: 1}
	return d.rewrite(nil, text)
}

// appendTokenBytes appends the bytes of a token of a byte-level tokenizer.
func (t *Tokenizer) appendTokenBytes(dst []byte, id int32) []byte {
	if s, ok := t.vocab.extra[id]; ok {
		return append(dst, s...) // in plain text, not in the alphabet
	}
	if id < 0 || int(id) >= t.vocab.tokens.len() {
		return dst
	}
	return append(dst, t.vocab.tokens.get(id)...)
}
