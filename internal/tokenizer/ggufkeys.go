package tokenizer

import "fmt"

// typedKeys notices keys that are there with a type that cannot be what they mean. Taken for missing, they would change
// ids in silence: without its types of tokens, a vocabulary has no control tokens.
type typedKeys struct {
	Keys
	err error // about the first of them
}

// want passes on whether a key has the type that was asked for, after a look at what else it is.
func (k *typedKeys) want(key, want string, ok bool) {
	if ok || k.err != nil {
		return
	}
	have := ""
	if _, ok := k.Keys.String(key); ok {
		have = "a string"
	} else if _, ok := k.Keys.Bool(key); ok {
		have = "a boolean"
	} else if _, ok := k.Keys.Uint(key); ok {
		have = "a number"
	} else if v, _ := k.Keys.Strings(key); len(v) > 0 {
		have = "a list of strings"
	} else if v, _ := k.Keys.Ints(key); len(v) > 0 {
		have = "a list of whole numbers"
	} else if v, _ := k.Keys.Floats(key); len(v) > 0 {
		have = "a list of numbers"
	}
	if have != "" {
		k.err = fmt.Errorf("the key %s is %s, want %s", key, have, want)
	}
}

func (k *typedKeys) String(key string) (string, bool) {
	v, ok := k.Keys.String(key)
	k.want(key, "a string", ok)
	return v, ok
}

func (k *typedKeys) Strings(key string) ([]string, bool) {
	v, ok := k.Keys.Strings(key)
	k.want(key, "a list of strings", ok)
	return v, ok
}

func (k *typedKeys) Floats(key string) ([]float32, bool) {
	v, ok := k.Keys.Floats(key)
	k.want(key, "a list of numbers", ok)
	return v, ok
}

func (k *typedKeys) Ints(key string) ([]int64, bool) {
	v, ok := k.Keys.Ints(key)
	k.want(key, "a list of whole numbers", ok)
	return v, ok
}

func (k *typedKeys) Uint(key string) (uint64, bool) {
	v, ok := k.Keys.Uint(key)
	k.want(key, "a number", ok)
	return v, ok
}

func (k *typedKeys) Bool(key string) (bool, bool) {
	v, ok := k.Keys.Bool(key)
	k.want(key, "a boolean", ok)
	return v, ok
}
