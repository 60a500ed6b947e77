package tokenizer

import (
	"slices"
	"strings"
)

// endNames are tokens that end a generation in the families that have them.
var endNames = []string{
	"<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>",
	"<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>",
	"<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "[e~[", "<|END_OF_TURN_TOKEN|>",
}

// looksControl reports whether a token is written like one that only a
// template may use. Some files do not mark these as special.
func looksControl(s string) bool {
	return strings.HasPrefix(s, "<|") && strings.HasSuffix(s, "|>") ||
		strings.HasPrefix(s, "<｜") && strings.HasSuffix(s, "｜>")
}

// finish derives what all sources have in common. eos are the ends of
// generation that the source names, the main one first.
func (t *Tokenizer) finish(eos []int32) {
	t.size = t.vocab.size()
	t.rawDecode = t.vocab.bytes && len(t.steps) == 1 && t.steps[0].kind == decodeByteLevel
	for _, id := range eos {
		if id >= 0 && int(id) < t.size && !slices.Contains(t.eos, id) {
			t.eos = append(t.eos, id)
		}
	}
	for _, name := range endNames {
		if id, ok := t.endID(name); ok && !slices.Contains(t.eos, id) {
			t.eos = append(t.eos, id)
		}
	}
	t.dropFalseEnds()
}

// endID finds an end token by its name, if it is a control token.
func (t *Tokenizer) endID(name string) (int32, bool) {
	id, ok := t.vocab.extraID[name]
	return id, ok && t.IsSpecial(id)
}

// dropFalseEnds removes names that do not end a generation in families with
// other ends: in gpt-oss, <|end|> ends a message and <|return|> the answer; in
// Gemma 4, </s> is text.
func (t *Tokenizer) dropFalseEnds() {
	has := func(name string) bool { _, ok := t.endID(name); return ok }
	drop := func(name string) {
		if id, ok := t.endID(name); ok {
			t.eos = slices.DeleteFunc(t.eos, func(e int32) bool { return e == id })
		}
	}
	if has("<|return|>") && has("<|call|>") || has("<|calls|>") && has("<|flush|>") {
		drop("<|end|>")
	}
	if has("<|tool_response>") {
		drop("</s>")
	}
}
