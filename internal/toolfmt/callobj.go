package toolfmt

import (
	"encoding/json"
	"strings"
)

// The keys under which models write a call's parts, the usual ones first.
var (
	nameKeys = []string{"name", "function", "tool", "tool_name", "function_name", "action", "recipient_name"}
	argKeys  = []string{
		"arguments",
		"parameters",
		"args",
		"params",
		"input",
		"tool_input",
		"action_input",
		"kwargs",
		"inputs",
	}
	listKeys = []string{"tool_calls", "function_calls", "calls"}
	nestKeys = []string{"function", "tool_call", "function_call"}
	sideKeys = []string{"type", "id", "index", "call_id", "tool_call_id"} // beside a call, without meaning
)

func oneOf(key string, keys []string) bool {
	for _, k := range keys {
		if k == key {
			return true
		}
	}
	return false
}

// wrapperKey tells whether an object that begins with this key may be a call.
func wrapperKey(key string) bool {
	return oneOf(key, nameKeys) || oneOf(key, argKeys) || oneOf(key, listKeys) || oneOf(key, nestKeys) ||
		oneOf(key, sideKeys)
}

// found is a call that was read: the offered tool and its arguments.
type found struct {
	tool *toolInfo
	args []member
}

// callsIn reads the calls in one strict JSON value: an object with name and arguments in one of the usual
// shapes, or a list of such. All of a list must be calls. With fit the arguments must be what the tool declares.
func (p *Parser) callsIn(v string, fit bool, depth int) ([]found, bool) {
	v = strings.TrimSpace(v)
	if v == "" || depth > 4 {
		return nil, false
	}
	switch v[0] {
	case '[':
		return p.callsInList(v, fit, depth)
	case '{':
		ms, ok := members(v)
		if !ok {
			return nil, false
		}
		return p.callsInObject(ms, fit, depth)
	}
	return nil, false
}

func (p *Parser) callsInList(v string, fit bool, depth int) ([]found, bool) {
	var items []json.RawMessage
	if unmarshal(v, &items) != nil || len(items) == 0 {
		return nil, false
	}
	var all []found
	for _, it := range items {
		calls, ok := p.callsIn(string(it), fit, depth+1)
		if !ok {
			return nil, false
		}
		all = append(all, calls...)
	}
	return all, true
}

func lookup(ms []member, keys []string, typ string) (member, bool) {
	for _, k := range keys {
		for _, m := range ms {
			if m.key == k && (typ == "" || typeOf(m.value) == typ) {
				return m, true
			}
		}
	}
	return member{}, false
}

func (p *Parser) callsInObject(ms []member, fit bool, depth int) ([]found, bool) {
	if name, ok := lookup(ms, nameKeys, "string"); ok {
		s, _ := unquote([]byte(name.value))
		if t := p.tools.resolve(s); t != nil {
			if c, ok := p.callOf(t, ms, name.key, fit); ok {
				return []found{c}, true
			}
			return nil, false
		}
	}
	if list, ok := lookup(ms, listKeys, "array"); ok {
		return p.callsIn(list.value, fit, depth+1)
	}
	if nest, ok := lookup(ms, nestKeys, "object"); ok {
		return p.callsIn(nest.value, fit, depth+1)
	}
	if len(ms) == 1 && typeOf(ms[0].value) == "object" {
		if t := p.tools.plain(ms[0].key); t != nil {
			if args, ok := t.arguments(ms[0].value); ok && t.fits(args) && !(fit && t.silent && len(args) > 0) {
				return []found{{t, args}}, true
			}
		}
	}
	if t := p.forced; t != nil {
		if args := t.shape(append([]member(nil), ms...)); t.fits(args) {
			return []found{{t, args}}, true
		}
	}
	return nil, false
}

// callOf reads the arguments of a call whose name stood under nameKey.
func (p *Parser) callOf(t *toolInfo, ms []member, nameKey string, fit bool) (found, bool) {
	for _, k := range argKeys {
		m, ok := lookup(ms, []string{k}, "")
		if !ok || k == nameKey {
			continue
		}
		args, ok := t.arguments(m.value)
		if !ok || t.isSchema(args) || fit && !t.fits(args) {
			continue
		}
		return found{t, args}, true
	}
	var flat []member // the arguments stand beside the name
	for _, m := range ms {
		if m.key != nameKey && !(oneOf(m.key, sideKeys) && t.props[m.key] == nil) {
			flat = append(flat, m)
		}
	}
	if t.props[nameKey] == nil {
		if flat = t.shape(flat); t.fits(flat) && t.flatFits(flat, fit) {
			return found{t, flat}, true
		}
	}
	return found{}, false
}

// flatFits tells whether arguments beside the name of a call are likely enough to be some: alone, an object with a
// name is often data.
func (t *toolInfo) flatFits(flat []member, fit bool) bool {
	if t.silent {
		return !fit || len(flat) == 0
	}
	return !fit || len(flat) > 0 || len(t.props) == 0
}

// fromText makes the JSON value of an argument that was written as plain text. Nothing, or a word for nothing, is no
// value of a type other than string: ok is false where the argument may be left out.
func (t *toolInfo) fromText(key, text string) (m member, ok bool) {
	k := t.key(key)
	p := t.props[k]
	switch {
	case p != nil && p.onlyString():
		return member{k, p.enumCase(quote(text))}, true
	case p != nil && len(p.types) > 0:
		if v := p.fromText(text, ""); v != "" {
			return member{k, v}, true
		}
		if !p.allows("string") && oneOf(strings.ToLower(strings.TrimSpace(text)), nothingWords) {
			return member{k, "null"}, t.requires(k) || p.allows("null")
		}
		return member{k, quote(text)}, true
	}
	s := strings.TrimSpace(text)
	if s != "" && (s[0] == '{' || s[0] == '[') {
		if v, ok := relax(s); ok {
			return member{k, v}, true
		}
	}
	if v, ok := literal(s); ok {
		return member{k, v}, true
	}
	return member{k, quote(text)}, true
}

// nothingWords stand, in lower case, where a model has no value to give.
var nothingWords = []string{"", "none", "null", "nil", "undefined"}
