package tokenizer

import "fmt"

// typedKeys notices keys that are there with a type that cannot be what they mean. Taken for missing, they would change
// ids in silence: without its types of tokens, a vocabulary has no control tokens.
type typedKeys struct {
	Keys
	err error // about the first of them
}

// typed gets the value of a key, and notices another type than the one that is wanted.
func typed[T any](k *typedKeys, key, want string, get func(string) (T, bool)) (T, bool) {
	v, ok := get(key)
	if !ok && k.err == nil {
		if have := k.is(key); have != "" {
			k.err = fmt.Errorf("the key %s is %s, want %s", key, have, want)
		}
	}
	return v, ok
}

// is names the type of a key's value, "" where there is none.
func (k *typedKeys) is(key string) string {
	if _, ok := k.Keys.String(key); ok {
		return "a string"
	} else if _, ok := k.Keys.Bool(key); ok {
		return "a boolean"
	} else if _, ok := k.Keys.Uint(key); ok {
		return "a number"
	} else if _, ok := k.Keys.Int(key); ok {
		return "a negative number"
	} else if _, ok := k.Keys.Float(key); ok {
		return "a floating-point number"
	} else if v, _ := k.Keys.Strings(key); len(v) > 0 {
		return "a list of strings"
	} else if v, _ := k.Keys.Ints(key); len(v) > 0 {
		return "a list of whole numbers"
	} else if v, _ := k.Keys.Floats(key); len(v) > 0 {
		return "a list of numbers"
	}
	return ""
}

func (k *typedKeys) String(key string) (string, bool) {
	return typed(k, key, "a string", k.Keys.String)
}

func (k *typedKeys) Strings(key string) ([]string, bool) {
	return typed(k, key, "a list of strings", k.Keys.Strings)
}

func (k *typedKeys) Floats(key string) ([]float32, bool) {
	return typed(k, key, "a list of numbers", k.Keys.Floats)
}

func (k *typedKeys) Ints(key string) ([]int64, bool) {
	return typed(k, key, "a list of whole numbers", k.Keys.Ints)
}

// Uint takes a negative number for missing: -1 is how some files say that there is no such token.
func (k *typedKeys) Uint(key string) (uint64, bool) {
	if n, ok := k.Keys.Int(key); ok && n < 0 {
		return 0, false
	}
	return typed(k, key, "a whole number", k.Keys.Uint)
}

func (k *typedKeys) Bool(key string) (bool, bool) {
	return typed(k, key, "a boolean", k.Keys.Bool)
}
