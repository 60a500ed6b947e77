package openai

import (
	"encoding/json"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/fields"
)

// formatType is a response_format, or the text.format of a response.
func formatType(name string) fields.Type {
	return fields.Object(name).
		Takes("text, json_object, json_schema with a schema that can be enforced exactly").
		Where(map[string]any{
			"required": []string{
				"type",
			}, "properties": map[string]any{"type": map[string]any{"enum": []string{"text", "json_object", "json_schema"}}},
		})
}

// setFormat decodes response_format, and text.format of responses.
func setFormat(req *chat.Request, v fields.Value) error {
	kind, ok := v.Get("type")
	if !ok {
		return chat.MissingField(v.Path + ".type")
	}
	switch kind.String() {
	case "text":
		return nil
	case "json_object":
		if s, ok := v.Get("schema"); ok && s.Kind() == "object" { // as llama.cpp's clients send it
			return setSchema(req, s)
		}
		return hold(req, chat.Format{Kind: chat.JSONFormat, Field: v.Path})
	case "json_schema":
		if inner, ok := v.Get("json_schema"); ok {
			v = inner
		}
		s, ok := v.Get("schema")
		switch {
		case !ok && v.Path == "response_format": // the schema may stand in it as well, but that is not where it belongs
			return chat.MissingField("response_format.json_schema")
		case !ok:
			return chat.MissingField(v.Path + ".schema")
		}
		return setSchema(req, s)
	}
	return chat.Invalidf(kind.Path, "%q is not one of text, json_object, json_schema", kind.String())
}

// setSchema takes a schema, which some clients send as a text.
func setSchema(req *chat.Request, v fields.Value) error {
	raw := v.Raw
	if v.Kind() == "string" {
		raw = json.RawMessage(v.String())
	}
	return hold(req, chat.Format{Kind: chat.SchemaFormat, Schema: raw, Field: v.Path})
}

// hold sets the request's format; there is room for one.
func hold(req *chat.Request, f chat.Format) error {
	if req.Format.Kind != "" {
		return chat.Invalidf(f.Field, "the answer is held to %s already: send one of them", req.Format.Field)
	}
	req.Format = f
	return nil
}

// formatFields are the names by which clients of vLLM, SGLang and llama.cpp hold answers to formats.
func formatFields[T any](part func(*T) *common) []fields.Field[T] {
	schemaType := fields.Object("JSON Schema").Or(fields.String())
	regex := func(c *common, v fields.Value) error {
		return hold(&c.req, chat.Format{Kind: chat.RegexFormat, Text: v.String(), Field: v.Path})
	}
	schema := func(c *common, v fields.Value) error { return setSchema(&c.req, v) }
	choice := func(c *common, v fields.Value) error {
		return hold(&c.req, chat.Format{Kind: chat.ChoiceFormat, Choices: v.Strings(), Field: v.Path})
	}
	gbnf := func(c *common, v fields.Value) error {
		if v.String() == "" { // llama.cpp's clients send it for none
			return nil
		}
		return hold(&c.req, chat.Format{Kind: chat.GrammarFormat, Text: v.String(), Field: v.Path})
	}
	choices := fields.List(fields.String()).Len(1, 4096)
	outputs := &fields.Table[common]{Name: "structured outputs", Fields: []fields.Field[common]{
		{Name: "json", Type: schemaType, Doc: "a JSON Schema", Set: schema},
		{
			Name: "regex",
			Type: fields.String(),
			Doc:  "a regular expression in RE2's spelling, which the whole answer matches",
			Set:  regex,
		},
		{Name: "choice", Type: choices, Doc: "texts, one of which is the answer", Set: choice},
		{Name: "grammar", Type: fields.String(), Doc: "a grammar in llama.cpp's notation, GBNF", Set: gbnf},
		{Name: "json_object", Type: fields.Bool(), Doc: "any JSON object", Set: func(c *common, v fields.Value) error {
			if !v.Bool() {
				return nil
			}
			return hold(&c.req, chat.Format{Kind: chat.JSONFormat, Field: v.Path})
		}},
	}}
	return []fields.Field[T]{
		field(
			part,
			"guided_json",
			schemaType,
			"not OpenAI's, vLLM's: a JSON Schema that the answer is held to",
			schema,
		),
		field(
			part,
			"guided_regex",
			fields.String(),
			"not OpenAI's, vLLM's: a regular expression in RE2's spelling, which the whole answer matches",
			regex,
		),
		field(part, "guided_choice", choices, "not OpenAI's, vLLM's: texts, one of which is the answer", choice),
		field(
			part,
			"guided_grammar",
			fields.String(),
			"not OpenAI's, vLLM's: a grammar in llama.cpp's notation, GBNF",
			gbnf,
		),
		field(
			part,
			"structured_outputs",
			fields.Object("structured outputs"),
			"not OpenAI's, vLLM's: what the answer is held to",
			func(c *common, v fields.Value) error { return outputs.DecodeValue(v, c) },
		),
		field(
			part,
			"json_schema",
			schemaType,
			"not OpenAI's, llama.cpp's and SGLang's: a JSON Schema that the answer is held to",
			schema,
		),
		field(part, "grammar", fields.String(), "not OpenAI's, llama.cpp's: a grammar in its notation, GBNF", gbnf),
		field(part, "ebnf", fields.String(), "not OpenAI's, SGLang's: a grammar, in llama.cpp's notation, GBNF", gbnf),
		field(
			part,
			"regex",
			fields.String(),
			"not OpenAI's, SGLang's: a regular expression in RE2's spelling, which the whole answer matches",
			regex,
		),
	}
}
