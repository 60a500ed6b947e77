package tokenizer

import (
	"bytes"
	"slices"
	"sort"
	"sync"
)

// Token healing (Lundberg, "The Art of Prompt Design: Prompt Boundaries and Token Healing", 2023): a text that is to be
// continued may end inside of what would be one token with its continuation, as "return " does where " x" is a token.
// The model has hardly seen it cut there. So the last tokens are taken off again, and the first ones that are generated
// must spell out their bytes, and may go on.

// maxHealed bounds how many bytes are taken off.
const maxHealed = 32

// An endIndex finds tokens by how their bytes begin.
type endIndex struct {
	once  sync.Once
	ids   []int32 // by their bytes
	bytes [][]byte
}

func (t *Tokenizer) index() *endIndex {
	x := &t.ends
	x.once.Do(func() {
		for id := range int32(t.size) {
			if !t.IsSpecial(id) && len(t.Bytes(id)) > 0 {
				x.ids = append(x.ids, id)
			}
		}
		slices.SortFunc(x.ids, func(a, b int32) int { return bytes.Compare(t.Bytes(a), t.Bytes(b)) })
		for _, id := range x.ids {
			x.bytes = append(x.bytes, t.Bytes(id))
		}
	})
	return x
}

// from returns the first place whose bytes are not less than b.
func (x *endIndex) from(b []byte) int {
	return sort.Search(len(x.bytes), func(i int) bool { return bytes.Compare(x.bytes[i], b) >= 0 })
}

// longer tells whether a token begins with b and goes on.
func (x *endIndex) longer(b []byte) bool {
	i := x.from(append(slices.Clip(b), 0))
	return i < len(x.bytes) && bytes.HasPrefix(x.bytes[i], b)
}

// Unfinished returns how many of the last tokens of a text may be parts of what would be longer tokens if the text went
// on: as many as one longer token begins with all the bytes of. The first token is not among them. open are their
// bytes.
func (t *Tokenizer) Unfinished(ids []int32) (n int, open []byte) {
	x := t.index()
	var b []byte
	for i := len(ids) - 1; i > 0 && !t.IsSpecial(ids[i]); i-- {
		if b = append(slices.Clone(t.Bytes(ids[i])), b...); len(b) > maxHealed {
			break
		}
		if x.longer(b) {
			n, open = len(ids)-i, b
		}
	}
	return n, open
}

// Spelling sets the bits of the tokens with which a text can go on that must begin with the given bytes: their
// beginnings, and what begins with them. allowed has Size bits.
func (t *Tokenizer) Spelling(open []byte, allowed []uint64) {
	x := t.index()
	set := func(id int32) { allowed[id>>6] |= 1 << (id & 63) }
	for n := 1; n < len(open); n++ {
		for i := x.from(open[:n]); i < len(x.bytes) && bytes.Equal(x.bytes[i], open[:n]); i++ {
			set(x.ids[i])
		}
	}
	for i := x.from(open); i < len(x.bytes) && bytes.HasPrefix(x.bytes[i], open); i++ {
		set(x.ids[i])
	}
}

// NewDecoderAfter starts a streaming decoder of a text that goes on behind a token, whose own text it does not write.
func (t *Tokenizer) NewDecoderAfter(skipSpecial bool, id int32) *Decoder {
	d := t.NewDecoder(skipSpecial)
	d.Next(id)
	d.pending = d.pending[:0]
	if d.whole {
		d.held = nil
	}
	return d
}
