package chat

import "crypto/rand"

const idLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// NewID returns a random id with a prefix, such as call_ or chatcmpl-.
func NewID(prefix string) string {
	var b [24]byte
	rand.Read(b[:]) // never fails
	for i, x := range b {
		b[i] = idLetters[int(x)%len(idLetters)]
	}
	return prefix + string(b[:])
}
