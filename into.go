package baleen

import (
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// ErrIncomplete says that an answer was cut, by Params.MaxTokens or the context's end, before it was a whole value.
var ErrIncomplete = errors.New("baleen: the answer was cut before it was complete")

// Into answers a conversation with a value of a Go type: the answer is held to the type's schema while it is written,
// so that it always decodes. Fields are read as encoding/json reads them; those without omitempty always stand in the
// answer, in the order of the type. A struct tag says what a field means, for programs that show the schema:
//
//	type City struct {
//		Name    string `json:"name" jsonschema:"in its own language"`
//		Founded int    `json:"founded"`
//	}
//	city, err := baleen.Into[City](ctx, model, []baleen.Message{baleen.UserMessage("Name a city.")}, nil)
//
// The prompt does not tell the model of the schema: ask for what you want. params may be nil; it has no tools and no
// format of its own, but a Schema of yours, narrower than the type's, may stand there. The error is ErrIncomplete where
// the answer was cut, and a *ParamError for a type that has no exact schema: one that contains itself, or anything but
// time.Time that reads its JSON by a method of its own. Give a Schema for such a type. In an any there may be numbers
// of more than a float64, which are an error then.
func Into[T any](ctx context.Context, m *Model, messages []Message, params *Params) (T, error) {
	var value, none T
	var p Params
	if params != nil {
		p = *params
	}
	if err := m.usable(); err != nil {
		return none, err
	}
	if len(p.Tools) > 0 {
		return none, wrong("tools", "an answer that is to be a value has no calls: leave them out")
	}
	if len(p.Schema) == 0 {
		schema, err := SchemaFor[T]()
		if err != nil {
			return none, err
		}
		p.Schema = schema
	}
	answer, err := Collect(m.Chat(ctx, messages, &p))
	switch {
	case err != nil:
		return none, err
	case answer.Finish != FinishStop:
		return none, fmt.Errorf(
			"%w: it ended after %d tokens (%s)",
			ErrIncomplete,
			answer.Usage.Generated,
			answer.Finish,
		)
	}
	if err := json.Unmarshal([]byte(answer.Text), &value); err != nil {
		return none, fmt.Errorf("baleen: the answer %.100q is no %T: %w", answer.Text, none, err)
	}
	return value, nil
}

// SchemaFor returns the JSON Schema of a Go type, as Into has it, for Params.Schema or Tool.Parameters.
func SchemaFor[T any]() (json.RawMessage, error) {
	schemas := maps.Clone(typeSchemas)
	if err := addSchemas(schemas, reflect.TypeFor[T](), map[reflect.Type]bool{}); err != nil {
		return nil, err
	}
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: schemas})
	if err != nil {
		return nil, wrong("schema", "%v", err)
	}
	b, err := json.Marshal(s)
	if err != nil {
		return nil, wrong("schema", "%v", err)
	}
	return b, nil
}

// typeSchemas are those of types that encoding/json reads otherwise, or not in full, than their usual schema says. The
// largest numbers are those nearest to the types' own that a float64 has.
var typeSchemas = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[int]():    whole(-(1<<63 - 1024), 1<<63-1024),
	reflect.TypeFor[int64]():  whole(-(1<<63 - 1024), 1<<63-1024),
	reflect.TypeFor[uint]():   whole(0, 1<<64-2048),
	reflect.TypeFor[uint64](): whole(0, 1<<64-2048),
	reflect.TypeFor[time.Time](): {
		Type: "string", Format: "date-time",
		Pattern: `^[0-9-]{10}T[0-9:]{6}[0-5][0-9](\.[0-9]{1,9})?(Z|[-+][0-9:]{5})$`,
	},
	reflect.TypeFor[[]byte](): {
		Type: "string", Pattern: "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$",
	},
	reflect.TypeFor[json.Number](): {Type: "number"},
	reflect.TypeFor[float64]():     {Type: "number", Minimum: new(-math.MaxFloat64), Maximum: new(math.MaxFloat64)},
	reflect.TypeFor[float32]():     {Type: "number", Minimum: new(-math.MaxFloat32), Maximum: new(math.MaxFloat32)},
}

// addSchemas adds the schemas of types that the program has made of those in typeSchemas, such as time.Duration, and
// refuses those of which encoding/json would not read all that their schema allows. Schemas are looked up by the type
// itself, so that one of int64 does not hold for time.Duration.
func addSchemas(schemas map[reflect.Type]*jsonschema.Schema, t reflect.Type, seen map[reflect.Type]bool) error {
	if schemas[t] != nil || seen[t] {
		return nil
	}
	seen[t] = true
	if t.Kind() == reflect.Pointer {
		return addSchemas(schemas, t.Elem(), seen)
	}
	if readsItself(t) {
		return wrong("schema", "%v reads its JSON by a method of its own, so that its schema is not known: give one", t)
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		schemas[t] = typeSchemas[reflect.TypeFor[int64]()]
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		schemas[t] = typeSchemas[reflect.TypeFor[uint64]()]
	case reflect.Float64:
		schemas[t] = typeSchemas[reflect.TypeFor[float64]()]
	case reflect.Float32:
		schemas[t] = typeSchemas[reflect.TypeFor[float32]()]
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return wrong("schema", "no JSON can be read into the interface %v: give a type", t)
		}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 && !readsItself(t.Elem()) {
			schemas[t] = typeSchemas[reflect.TypeFor[[]byte]()] // encoding/json has it in base64
			return nil
		}
		return addSchemas(schemas, t.Elem(), seen)
	case reflect.Array:
		return addSchemas(schemas, t.Elem(), seen)
	case reflect.Map:
		if readsItself(t.Key()) {
			return wrong(
				"schema",
				"keys of %v are read by a method of their own, so that their schema is not known: give one",
				t,
			)
		}
		return addSchemas(schemas, t.Elem(), seen)
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" && options == "" || !f.IsExported() && !f.Anonymous {
				continue
			}
			if slices.Contains(strings.Split(options, ","), "string") {
				return wrong(
					"schema",
					"%v.%s: the option string of its tag has no schema: leave it out, or give one",
					t,
					f.Name,
				)
			}
			if err := addSchemas(schemas, f.Type, seen); err != nil {
				return err
			}
		}
	}
	return nil
}

// readsItself reports whether encoding/json leaves reading to the type.
func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) ||
		p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func whole(low, high float64) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "integer", Minimum: &low, Maximum: &high}
}
