package tokenizer

import "unicode/utf8"

// The byte-level alphabet of GPT-2 writes each byte as one printable character:
// printable Latin-1 stands for itself, the other bytes for U+0100 onwards.
var byteToRune, runeToByte = byteAlphabet()

const alphabetEnd = 0x144 // first code point that stands for no byte

func byteAlphabet() (to [256]rune, from [alphabetEnd]int16) {
	for i := range from {
		from[i] = -1
	}
	next := rune(0x100)
	for b := range 256 {
		r := rune(b)
		if !(b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE) {
			r = next
			next++
		}
		to[b] = r
		from[r] = int16(b)
	}
	return to, from
}

// appendAlphabet appends s in the byte-level alphabet.
func appendAlphabet(dst []byte, s string) []byte {
	for i := range len(s) {
		dst = utf8.AppendRune(dst, byteToRune[s[i]])
	}
	return dst
}

// appendRaw appends the bytes that a token in the byte-level alphabet stands
// for. A token with any other character stands for its own text; ok is false.
func appendRaw[T string | []byte](dst []byte, token T) (out []byte, ok bool) {
	start := len(dst)
	for i := 0; i < len(token); i++ {
		r := rune(token[i])
		if r >= utf8.RuneSelf {
			// The alphabet ends below U+0800: two bytes at most.
			if r < 0xC2 || r > 0xC5 || i+1 == len(token) || token[i+1]&0xC0 != 0x80 {
				return append(dst[:start], token...), false
			}
			i++
			r = r&0x1F<<6 | rune(token[i]&0x3F)
		}
		if r >= alphabetEnd || runeToByte[r] < 0 {
			return append(dst[:start], token...), false
		}
		dst = append(dst, byte(runeToByte[r]))
	}
	return dst, true
}
