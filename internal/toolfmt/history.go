package toolfmt

import (
	"slices"
	"strings"
)

// withWholeArguments makes the arguments of earlier calls objects, as templates read them.
func withWholeArguments(ms []Message) []Message {
	var out []Message
	for i, m := range ms {
		for k, c := range m.Calls {
			args := wholeArguments(c.Arguments)
			if args == c.Arguments {
				continue
			}
			if out == nil {
				out = slices.Clone(ms)
			}
			if &out[i].Calls[0] == &m.Calls[0] {
				out[i].Calls = slices.Clone(m.Calls)
			}
			out[i].Calls[k].Arguments = args
		}
	}
	if out == nil {
		return ms
	}
	return out
}

// wholeArguments returns the arguments of an earlier call as a JSON object. Clients send back what a model wrote:
// nothing, JSON that was cut or is damaged, other text. What can be repaired is; the rest stands as text under one
// name, so that the model sees what was written.
func wholeArguments(raw string) string {
	text := strings.TrimSpace(raw)
	if text == "" || text == "null" {
		return "{}"
	}
	if text[0] == '{' && validJSON(text) {
		return raw
	}
	if inner, ok := unquote([]byte(text)); ok && strings.HasPrefix(strings.TrimSpace(inner), "{") {
		return wholeArguments(inner)
	}
	if text[0] == '{' {
		for _, end := range []string{"", `"`, "}", "]", "null", ":null", `":null`} { // where it may have been cut
			if fixed, ok := relax(text + end); ok && validJSON(fixed) {
				return fixed
			}
		}
		if ms, _, _ := firstJSON(text[1:]); len(ms) > 0 {
			return object(ms)
		}
	}
	return `{"arguments": ` + quote(raw) + "}"
}
