package grammar

import "github.com/baleenrun/baleen/internal/grammar/regular"

// pending is what has been read of a code point that is not complete: of its UTF-8, or of an escape in a JSON string.
// The low 3 bits say which; 0 is nothing.
type pending int32

const (
	inUTF8         pending = 1 + iota // bits 3-4: bytes to come; 5: of four; from 6: value so far
	afterSlash                        // \
	inHex                             // \u: bits 3-4: digits read; from 5: their value
	afterHigh                         // \uD83D: from 5: the high surrogate's ten bits
	afterHighSlash                    // and a \
	inLow                             // and \u: bits 3-4: digits read; 5-14: high surrogate; from 15: value
	inTail                            // UTF-8 whose code point is settled, as far as it matters; bits 3-4: bytes to come
)

func (p pending) what() pending { return p & 7 }

// utf8 reads one byte of UTF-8. next is 0 when r is complete.
func (p pending) utf8(b byte) (r rune, next pending, ok bool) {
	if p == 0 {
		switch {
		case b < 0x80:
			return rune(b), 0, true
		case b >= 0xC2 && b <= 0xDF:
			return 0, inUTF8 | 1<<3 | pending(b&0x1F)<<6, true
		case b >= 0xE0 && b <= 0xEF:
			return 0, inUTF8 | 2<<3 | pending(b&0x0F)<<6, true
		case b >= 0xF0 && b <= 0xF4:
			return 0, inUTF8 | 3<<3 | 1<<5 | pending(b&0x07)<<6, true
		}
		return 0, 0, false
	}
	left, four, v := p>>3&3, p&(1<<5), p>>6
	switch { // no overlong forms, no surrogates, nothing beyond Unicode
	case b&0xC0 != 0x80,
		left == 2 && four == 0 && (v == 0 && b < 0xA0 || v == 0xD && b > 0x9F),
		left == 3 && (v == 0 && b < 0x90 || v == 4 && b > 0x8F):
		return 0, 0, false
	}
	v = v<<6 | pending(b&0x3F)
	if left == 1 {
		return rune(v), 0, true
	}
	return 0, inUTF8 | (left-1)<<3 | four | v<<6, true
}

// settled reports whether the bytes to come may be any continuation bytes, and if so, what is pending when the code
// point has been taken into account.
func (p pending) settled() (pending, bool) {
	left, four, v := p>>3&3, p&(1<<5), p>>6
	if left == 2 && four == 0 && (v == 0 || v == 0xD) || left == 3 && (v == 0 || v == 4) {
		return 0, false
	}
	return inTail | left<<3, true
}

// tail reads one byte of a code point that is settled.
func (p pending) tail(b byte) (pending, bool) {
	if left := p>>3&3 - 1; left > 0 {
		return inTail | left<<3, b&0xC0 == 0x80
	}
	return 0, b&0xC0 == 0x80
}

// span is the code points that pending UTF-8 can still become; surrogates among them are no code points.
func (p pending) span() (lo, hi rune) {
	left := p >> 3 & 3
	lo = rune(p>>6) << (6 * left)
	hi = lo + 1<<(6*left) - 1
	switch {
	case lo == 0 && left == 2:
		lo = 0x800
	case lo == 0 && left == 3:
		lo = 0x10000
	}
	return lo, min(hi, 0x10FFFF)
}

// hexDigit is the value of a hexadecimal digit, or -1.
func hexDigit(b byte) pending {
	switch {
	case b >= '0' && b <= '9':
		return pending(b - '0')
	case b >= 'a' && b <= 'f':
		return pending(b-'a') + 10
	case b >= 'A' && b <= 'F':
		return pending(b-'A') + 10
	}
	return -1
}

// charset is what may follow in a JSON string.
type charset struct {
	d     *regular.DFA           // nil: any code point
	q     int32                  // its state
	live  func(q int32) bool     // whether a state can still lead to an end
	apart func(lo, hi rune) bool // whether a character of a range leads elsewhere for another reason
	free  bool                   // every escape that JSON has; otherwise only those that cannot be avoided
}

// any reports whether some code point of a range may be next.
func (cs charset) any(lo, hi rune) bool {
	if cs.d == nil {
		return lo < 0xD800 || hi > 0xDFFF
	}
	return cs.d.AnyIn(cs.q, lo, hi, cs.live)
}

// settle takes pending UTF-8 into account as soon as it does not matter how it ends: r stands for the code point.
func (cs charset) settle(p pending) (r rune, next pending, ok bool) {
	next, ok = p.settled()
	if !ok {
		return 0, 0, false
	}
	lo, hi := p.span()
	return lo, next, (cs.d == nil || cs.d.Alike(lo, hi)) && (cs.apart == nil || !cs.apart(lo, hi))
}

const (
	shortEscapes = `"\bfnrt/`
	shortRunes   = "\"\\\b\f\n\r\t/"
)

// jsonByte reads one byte of a JSON string's inside. done: r is the next code point. next is what is pending, also
// after r where r's own last bytes are to come. A closing quote is the caller's. ok is false where the byte cannot lead
// to a code point that may follow.
func (cs charset) jsonByte(p pending, b byte) (r rune, next pending, done, ok bool) {
	switch p.what() {
	case 0, inUTF8:
		if p == 0 && b == '\\' {
			ok = cs.free && cs.any(0, 0x10FFFF) || cs.any(0, 0x1F) || cs.any('"', '"') || cs.any('\\', '\\')
			return 0, afterSlash, false, ok
		}
		if p == 0 && (b < 0x20 || b == '"') {
			return 0, 0, false, false
		}
		r, next, ok = p.utf8(b)
		if !ok {
			return 0, 0, false, false
		}
		if next != 0 {
			ok = cs.any(next.span())
			if r, tail, settled := cs.settle(next); settled {
				return r, tail, true, ok
			}
			return 0, next, false, ok
		}
		return r, 0, true, cs.any(r, r)
	case afterSlash:
		for i := range len(shortEscapes) {
			if b == shortEscapes[i] && (cs.free || b != '/') {
				r = rune(shortRunes[i])
				return r, 0, true, cs.any(r, r)
			}
		}
		return 0, inHex, false, b == 'u' && cs.anyHex(0, 0)
	case inHex:
		h := hexDigit(b)
		n, v := p>>3&3+1, p>>5<<4|h
		if h < 0 || !cs.free && b >= 'A' && b <= 'F' {
			return 0, 0, false, false
		}
		if n < 4 {
			return 0, inHex | n<<3 | v<<5, false, cs.anyHex(n, rune(v))
		}
		switch {
		case v >= 0xD800 && v < 0xDC00:
			lo := 0x10000 + rune(v-0xD800)<<10
			return 0, afterHigh | (v-0xD800)<<5, false, cs.free && cs.any(lo, lo+0x3FF)
		case v >= 0xDC00 && v < 0xE000:
			return 0, 0, false, false
		}
		return rune(v), 0, true, cs.anyHex(4, rune(v))
	case afterHigh:
		return 0, afterHighSlash | p&^7, false, b == '\\'
	case afterHighSlash:
		return 0, inLow | p>>5<<5, false, b == 'u'
	case inLow:
		h := hexDigit(b)
		n, high, v := p>>3&3+1, p>>5&0x3FF, p>>15<<4|h
		if h < 0 {
			return 0, 0, false, false
		}
		lo := rune(v) << (4 * (4 - n))
		hi := lo + 1<<(4*(4-n)) - 1
		lo, hi = max(lo, 0xDC00), min(hi, 0xDFFF)
		if lo > hi {
			return 0, 0, false, false
		}
		base := 0x10000 + rune(high)<<10 - 0xDC00
		if n < 4 {
			return 0, inLow | n<<3 | high<<5 | v<<15, false, cs.any(base+lo, base+hi)
		}
		return base + lo, 0, true, cs.any(base+lo, base+lo)
	}
	return 0, 0, false, false
}

// anyHex reports whether \u and n digits with the value v can become a code point that may follow.
func (cs charset) anyHex(n pending, v rune) bool {
	lo := v << (4 * (4 - n))
	hi := lo + 1<<(4*(4-n)) - 1
	if !cs.free { // control characters that have no letter of their own
		for r := lo; r <= min(hi, 0x1F); r++ {
			switch r {
			case '\b', '\f', '\n', '\r', '\t':
			default:
				if cs.any(r, r) {
					return true
				}
			}
		}
		return false
	}
	if cs.any(lo, hi) {
		return true
	}
	if lo, hi := max(lo, 0xD800), min(hi, 0xDBFF); lo <= hi {
		return cs.any(0x10000+(lo-0xD800)<<10, 0x103FF+(hi-0xD800)<<10)
	}
	return false
}
