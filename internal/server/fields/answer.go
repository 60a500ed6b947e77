package fields

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"
)

// AnswerSchema is the JSON Schema of what encoding/json writes for a value of v's type, so that the document of an
// answer cannot differ from the answer. The tag schema:"a,b" names the strings that a field may have.
func AnswerSchema(v any) map[string]any {
	if v == nil {
		return map[string]any{}
	}
	if list, ok := v.(Either); ok {
		var forms []any
		for _, x := range list {
			if _, ok := x.(Literal); !ok {
				forms = append(forms, AnswerSchema(x))
			}
		}
		return map[string]any{"anyOf": forms}
	}
	return (&schemer{}).schema(reflect.TypeOf(v))
}

// Either is an answer of one of several types.
type Either []any

// Literal is a text that stands in a stream where else JSON stands.
type Literal string

var (
	timeType = reflect.TypeFor[time.Time]()
	rawType  = reflect.TypeFor[json.RawMessage]()
)

// EventSchema is the JSON Schema of a server-sent event whose data is JSON text of v's type, or one of the literals in
// v.
func EventSchema(v any) map[string]any {
	data := map[string]any{"type": "string", "contentMediaType": "application/json", "contentSchema": AnswerSchema(v)}
	forms := []any{data}
	if list, ok := v.(Either); ok {
		for _, x := range list {
			if l, ok := x.(Literal); ok {
				forms = append(forms, map[string]any{"const": string(l)})
			}
		}
	}
	if len(forms) > 1 {
		data = map[string]any{"anyOf": forms}
	}
	return map[string]any{
		"type":       "object",
		"required":   []string{"data"},
		"properties": map[string]any{"event": map[string]any{"type": "string"}, "data": data},
	}
}

// schemer notes the structs that it is inside of: one inside itself is described as any object.
type schemer struct{ inside []reflect.Type }

func (sc *schemer) schema(t reflect.Type) map[string]any {
	switch {
	case t == timeType:
		return map[string]any{"type": "string", "format": "date-time"}
	case t == rawType:
		return map[string]any{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return orNull(sc.schema(t.Elem()))
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice, reflect.Array:
		return map[string]any{"type": "array", "items": sc.schema(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": sc.schema(t.Elem())}
	case reflect.Struct:
		return sc.object(t)
	case reflect.Interface:
		return map[string]any{}
	}
	return map[string]any{"type": "integer"}
}

func orNull(s map[string]any) map[string]any {
	if len(s) == 0 {
		return s
	}
	return map[string]any{"anyOf": []any{s, map[string]any{"type": "null"}}}
}

func (sc *schemer) object(t reflect.Type) map[string]any {
	if slices.Contains(sc.inside, t) {
		return map[string]any{"type": "object"}
	}
	sc.inside = append(sc.inside, t)
	defer func() { sc.inside = sc.inside[:len(sc.inside)-1] }()
	props, required := map[string]any{}, []string{}
	sc.members(t, props, &required, false)
	out := map[string]any{"type": "object", "properties": props, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// members adds the fields of a struct, those of structs inside it that have no name included.
func (sc *schemer) members(t reflect.Type, props map[string]any, required *[]string, optional bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			inner, absent := f.Type, optional
			if inner.Kind() == reflect.Pointer {
				inner, absent = inner.Elem(), true
			}
			sc.members(inner, props, required, absent)
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		omit := strings.Contains(options, "omitempty")
		inner := f.Type
		if omit && inner.Kind() == reflect.Pointer {
			inner = inner.Elem() // nil is left out
		}
		s := sc.schema(inner)
		if words := f.Tag.Get("schema"); words != "" {
			enum := []any{}
			for _, w := range strings.Split(words, ",") {
				enum = append(enum, w)
			}
			s["enum"] = enum
		}
		props[name] = s
		if !omit && !optional {
			*required = append(*required, name)
		}
	}
}
