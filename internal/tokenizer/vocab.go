package tokenizer

import "sync"

const spaceMark = "▁" // U+2581, SentencePiece's space

// vocab is the spelling of all ids: the model's tokens and those added to them.
type vocab struct {
	tokens  *stringTable     // the model's, raw bytes if bytes
	bytes   bool             // tokens are spelled in the byte-level alphabet
	literal map[int32]bool   // tokens of a byte-level vocabulary that are not
	extra   map[int32]string // added tokens outside the model's vocabulary
	extraID map[string]int32

	once sync.Once
	all  map[string]int32 // tokens that tokens.find does not find
}

func newVocab(tokens *stringTable, bytes bool) *vocab {
	return &vocab{
		tokens:  tokens,
		bytes:   bytes,
		literal: map[int32]bool{},
		extra:   map[int32]string{},
		extraID: map[string]int32{},
	}
}

func (v *vocab) addExtra(id int32, text string) {
	v.extra[id] = text
	v.extraID[text] = id
}

func (v *vocab) size() int {
	n := v.tokens.len()
	for id := range v.extra {
		n = max(n, int(id)+1)
	}
	return n
}

func (v *vocab) text(id int32) (string, bool) {
	if s, ok := v.extra[id]; ok {
		return s, true
	}
	if id < 0 || int(id) >= v.tokens.len() {
		return "", false
	}
	s := v.tokens.get(id)
	if len(s) == 0 {
		return "", false // a gap in the numbering
	}
	if v.bytes && !v.literal[id] {
		return string(appendAlphabet(nil, string(s))), true
	}
	return string(s), true
}

func (v *vocab) id(token string) (int32, bool) {
	if id, ok := v.extraID[token]; ok {
		return id, true
	}
	if id, ok := v.modelID(token); ok {
		return id, true
	}
	v.once.Do(v.indexAll)
	id, ok := v.all[token]
	return id, ok
}

// modelID finds a token that the model can produce.
func (v *vocab) modelID(token string) (int32, bool) {
	if !v.bytes {
		return v.tokens.find(token)
	}
	var buf [64]byte
	raw, ok := appendRaw(buf[:0], token)
	if !ok {
		return 0, false
	}
	return v.tokens.find(string(raw))
}

func (v *vocab) indexAll() {
	v.all = map[string]int32{}
	for id := range int32(v.tokens.len()) {
		s, ok := v.text(id)
		if !ok {
			continue
		}
		if _, found := v.modelID(s); !found {
			v.all[s] = id
		}
	}
}
