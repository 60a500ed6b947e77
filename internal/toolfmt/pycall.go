package toolfmt

import (
	"encoding/json"
	"strings"
)

// pythonCall writes a call as Python, from arguments that are a JSON object.
func pythonCall(name, args string) string {
	ms, ok := members(args)
	if !ok {
		return name + "()"
	}
	var b strings.Builder
	b.WriteString(name + "(")
	for i, m := range ms {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(m.key + "=")
		switch v := strings.TrimSpace(m.value); v {
		case "true":
			b.WriteString("True")
		case "false":
			b.WriteString("False")
		case "null":
			b.WriteString("None")
		default:
			b.WriteString(v)
		}
	}
	b.WriteString(")")
	return b.String()
}

// member is one key of a JSON object with the JSON text of its value.
type member struct{ key, value string }

// members splits a strict JSON object, in its order. A key that stands twice keeps its last value.
func members(object string) ([]member, bool) {
	d := json.NewDecoder(strings.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	var ms []member
	at := map[string]int{}
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return nil, false
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, false
		}
		if i, twice := at[key]; twice {
			ms[i].value = string(raw)
			continue
		}
		at[key] = len(ms)
		ms = append(ms, member{key, string(raw)})
	}
	if _, err := d.Token(); err != nil || d.More() {
		return nil, false
	}
	return ms, true
}

// object writes members as a JSON object.
func object(ms []member) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, m := range ms {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quote(m.key) + ": " + m.value)
	}
	b.WriteByte('}')
	return b.String()
}
