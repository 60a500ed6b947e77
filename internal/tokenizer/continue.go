package tokenizer

import "strings"

// Continue returns the ids of a rendered conversation with those of an earlier
// part kept. said are the ids of an earlier prompt and of the model's answer to
// it, rendered those of a prompt that holds both as text. A model may write a
// word in other tokens than the tokenizer would, so the two differ although
// the text is the same; where rendered spells out said and then goes on with a
// control token, the result begins with said itself, whose keys and values a
// cache still has. Otherwise it is rendered.
func (t *Tokenizer) Continue(said, rendered []int32) []int32 {
	if len(said) == 0 {
		return rendered
	}
	want := t.Decode(said, false)
	d := t.NewDecoder(false)
	for at, id := range rendered {
		if want == "" && t.IsSpecial(id) {
			return append(append(make([]int32, 0, len(said)+len(rendered)-at), said...), rendered[at:]...)
		}
		var ok bool
		if want, ok = strings.CutPrefix(want, d.Next(id)); !ok {
			break
		}
	}
	return rendered
}
