// Package fields decodes JSON request bodies strictly, by tables: each field of a route is declared once, with its
// type, what it does, and whether it is honoured, refused or ignored. The same tables make the reference pages and
// the OpenAPI document. It knows the errors of package chat and no dialect.
package fields

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/nearest"
)

// A Use says what becomes of a field.
type Use uint8

// Uses.
const (
	Honoured Use = iota
	Refused      // any value but null and those of Allow is an error that names the field
	Ignored      // accepted and without effect, as the documentation says
)

// String is the word in the reference pages.
func (u Use) String() string { return [...]string{"honoured", "refused", "ignored"}[u] }

// A Field is one field of an object that is decoded into a T.
type Field[T any] struct {
	Name     string
	Type     Type
	Doc      string // what it does, or why it is refused or ignored
	Use      Use
	Required bool
	// Allow lists JSON values that a refused field may have all the same, since they ask for nothing.
	Allow []string
	// Set takes the value over; it is called for honoured fields that are there and not null, after Type has
	// accepted the value. Nil: the field is looked at elsewhere.
	Set func(dst *T, v Value) error
}

// A Table is an object: what may stand in it.
type Table[T any] struct {
	Name   string // of the object, in the reference pages
	Fields []Field[T]
	// RATIONALE: Why are some unknown fields refused and others taken?
	// IgnoreUnknown accepts fields that are not declared, as the vendor's own server does; Notes names them.
	IgnoreUnknown bool
	// Where are JSON Schemas that say how fields depend on each other, where something else checks that: for the
	// OpenAPI document alone.
	Where []map[string]any
}

// Decode reads a request body into dst. Its errors are *chat.Error with the path of the field.
func (t *Table[T]) Decode(body []byte, dst *T) error { return t.DecodeNoting(body, dst, nil) }

// DecodeNoting is Decode that notes what has no effect.
func (t *Table[T]) DecodeNoting(body []byte, dst *T, notes *Notes) error {
	return t.DecodeWithin(Limits{}, body, dst, notes)
}

// DecodeWithin is DecodeNoting with limits. What Set takes as a part of the body's text keeps all of it in memory.
func (t *Table[T]) DecodeWithin(l Limits, body []byte, dst *T, notes *Notes) error {
	if !utf8.Valid(body) {
		return chat.Invalidf("", "the request body is not UTF-8")
	}
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return chat.Invalidf("", "the request body is empty: send a JSON object")
	}
	if !json.Valid(body) {
		return chat.Invalidf("", "the request body is not valid JSON: %s", syntaxProblem(body))
	}
	if body[0] != '{' {
		return chat.Invalidf("", "the request body is %s, want a JSON object", kindOf(body))
	}
	if at, escape := chat.LoneSurrogate(body); at >= 0 {
		return chat.HalfCharacter(pathTo(body, at), escape)
	}
	v := Value{Raw: body, notes: notes, limits: l}
	members, err := v.members()
	if err != nil {
		return err
	}
	left := l.values()
	for _, m := range members {
		if left -= values(m.value.Raw, left); left < 0 {
			return chat.Invalidf(
				m.value.Path,
				"the request has more than %d values together, most of them here",
				l.values(),
			)
		}
	}
	return t.decode(v, members, dst)
}

// CheckText refuses the text of a query parameter that is not of a type.
func CheckText(name, text string, t Type) error {
	v := Value{Raw: json.RawMessage(text), Path: name}
	if len(t.kinds) > 0 && t.kinds[0] != "string" {
		if !json.Valid(v.Raw) || v.Kind() != t.kinds[0] && !(t.kinds[0] == "integer" && v.Kind() == "number") {
			return chat.Invalidf(name, "%q: want %s", v.short(), article(t))
		}
		return t.check(v)
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		return chat.Invalidf(name, "this is no text")
	}
	v.Raw = quoted
	return t.check(v)
}

func syntaxProblem(body []byte) string {
	var v any
	err := json.Unmarshal(body, &v)
	var syn *json.SyntaxError
	if errors.As(err, &syn) {
		return fmt.Sprintf("%s at byte %d", syn.Error(), syn.Offset)
	}
	return fmt.Sprint(err)
}

// DecodeValue reads an object that stands inside another.
func (t *Table[T]) DecodeValue(v Value, dst *T) error {
	members, err := v.members()
	if err != nil {
		return err
	}
	return t.decode(v, members, dst)
}

func (t *Table[T]) decode(v Value, members []member, dst *T) error {
	seen := map[string]Value{}
	for _, m := range members { // of two members with one name the last counts, as everywhere
		switch {
		case t.field(m.name) != nil:
		case m.value.IsNull(): // asks for nothing
			continue
		case t.IgnoreUnknown:
			m.value.Ignore("")
			continue
		default:
			e := chat.Invalidf(m.value.Path, "unknown field%s", t.nearest(m.name))
			e.Unknown = true
			return e
		}
		seen[m.name] = m.value
	}
	for i := range t.Fields { // in the order of the table, so that the same error comes first every time
		f := &t.Fields[i]
		fv, ok := seen[f.Name]
		if !ok || fv.IsNull() {
			if f.Required {
				return chat.MissingField(v.path(f.Name))
			}
			continue
		}
		if err := f.apply(dst, fv); err != nil {
			return err
		}
	}
	return nil
}

func (f *Field[T]) apply(dst *T, v Value) error {
	switch f.Use {
	case Refused:
		for _, a := range f.Allow {
			if v.equals(a) {
				return nil
			}
		}
		return chat.Unsupportedf(v.Path, "not supported: %s", f.Doc)
	case Ignored:
		return nil
	}
	if err := f.Type.check(v); err != nil {
		return err
	}
	if f.Set == nil {
		return nil
	}
	return f.Set(dst, v)
}

func (t *Table[T]) field(name string) *Field[T] {
	for i := range t.Fields {
		if t.Fields[i].Name == name {
			return &t.Fields[i]
		}
	}
	return nil
}

func (t *Table[T]) nearest(name string) string {
	best, dist := "", 3
	for i := range t.Fields {
		if d := nearest.Distance(name, t.Fields[i].Name); d < dist && d < len(name) {
			best, dist = t.Fields[i].Name, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// Conclude is the request field, in every dialect, with which a client asks for chat.Request.Conclude, and ConcludeDoc
// its document. Usage tells by the field baleen_concluded that it happened.
const (
	Conclude    = "baleen_conclude"
	ConcludeDoc = "Baleen's own: true asks a model again that only repeats a call although it got the result, and " +
		"ends an answer that " +
		"makes one call twice. The usage then has `baleen_concluded`, and X-Baleen-Notice, a header or the trailer of a stream, says why. " +
		"Left out: as the server's --conclude says, which is off unless given"
)

// Time is the request field, in every dialect, for chat.Request.Now, and TimeDoc its document.
const (
	Time    = "baleen_time"
	TimeDoc = "Baleen's own: the time that the model's template prints where it prints one, such as " +
		"2026-01-02T15:04:05+01:00. " +
		"The same request then has the same prompt on every day. Left out: when the request came"
)

// SetTime reads the field Time.
func SetTime(now *time.Time, v Value) (err error) {
	if *now, err = time.Parse(time.RFC3339, v.String()); err != nil {
		return chat.Invalidf(v.Path, "%q is no time such as 2026-01-02T15:04:05+01:00", v.String())
	}
	return nil
}

// DefaultSampling ends the documents of temperature in every dialect: what counts where a request leaves it out.
const DefaultSampling = "the setting under the model's name, else what its generation_config.json or GGUF keys " +
	"general.sampling.* say, " +
	"else what the makers of the base model recommend, else 0.7 with top_k 40, top_p 0.95 and min_p 0.05 (`baleen show` says which)"
