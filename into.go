package baleen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// ErrIncomplete says that an answer was cut, by Params.MaxTokens or the context's end, before it was a whole value.
var ErrIncomplete = errors.New("baleen: the answer was cut before it was complete")

// Into answers a conversation with a value of a Go type: the answer is held to the type's schema while it is written, so
// that it always decodes. Fields are read as encoding/json reads them; those without omitempty always stand in the
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
// the answer was cut, and a *ParamError for a type that has no exact schema, such as one that contains itself.
func Into[T any](ctx context.Context, m *Model, messages []Message, params *Params) (T, error) {
	var value, none T
	var p Params
	if params != nil {
		p = *params
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
		return none, fmt.Errorf("%w: it ended after %d tokens (%s)", ErrIncomplete, answer.Usage.Generated, answer.Finish)
	}
	if err := json.Unmarshal([]byte(answer.Text), &value); err != nil {
		return none, fmt.Errorf("baleen: the answer %.100q is no %T: %w", answer.Text, none, err)
	}
	return value, nil
}

// SchemaFor returns the JSON Schema of a Go type, as Into has it, for Params.Schema or Tool.Parameters.
func SchemaFor[T any]() (json.RawMessage, error) {
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: typeSchemas})
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
	reflect.TypeFor[float32](): {Type: "number", Minimum: new(-math.MaxFloat32), Maximum: new(math.MaxFloat32)},
}

func whole(low, high float64) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "integer", Minimum: &low, Maximum: &high}
}
