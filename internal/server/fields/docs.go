package fields

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A Row is a field for the documents.
type Row struct {
	Name, Type, Use, Doc string
	Required             bool
	Schema               map[string]any
	// Part says that an honoured field is refused but for the values in Takes.
	Part  bool
	Takes string
}

// Rows lists the table's fields in order.
func (t *Table[T]) Rows() []Row {
	rows := make([]Row, 0, len(t.Fields))
	for i := range t.Fields {
		f := &t.Fields[i]
		row := Row{
			Name:     f.Name,
			Type:     f.Type.Text(),
			Use:      f.Use.String(),
			Doc:      f.Doc,
			Required: f.Required,
			Schema:   f.Type.Schema(),
		}
		if len(f.Allow) > 0 {
			row.Doc += " (accepted: " + strings.Join(f.Allow, ", ") + ")"
		}
		row.Takes, row.Part = f.Type.taken()
		switch f.Use {
		case Refused:
			row.Schema = f.allowed()
		case Ignored:
			row.Schema = map[string]any{}
		}
		rows = append(rows, row)
	}
	return rows
}

// allowed is the schema of a refused field: the values that ask for nothing.
func (f *Field[T]) allowed() map[string]any {
	values := []any{nil}
	for _, a := range f.Allow {
		var v any
		if json.Unmarshal([]byte(a), &v) == nil {
			values = append(values, v)
		}
	}
	return map[string]any{"enum": values}
}

// Title is the table's name.
func (t *Table[T]) Title() string { return t.Name }

func (t *Table[T]) conditions() []map[string]any { return t.Where }

// Strict reports whether fields that are not declared are refused.
func (t *Table[T]) Strict() bool { return !t.IgnoreUnknown }

// An ObjectTable is a table without its type, for lists of tables.
type ObjectTable interface {
	Title() string
	Rows() []Row
	Strict() bool
	conditions() []map[string]any
}

// OneOf is an object of one of several tables, which differ in what their field "type" may be.
type OneOf struct {
	Name string
	Of   []ObjectTable
}

// Title is its name.
func (o *OneOf) Title() string { return o.Name }

// Rows is empty: the tables have the fields.
func (o *OneOf) Rows() []Row { return nil }

// Strict reports false: the tables decide.
func (o *OneOf) Strict() bool { return false }

func (o *OneOf) conditions() []map[string]any { return nil }

// Markdown writes a table as a reference section.
func Markdown(t ObjectTable) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n", t.Title())
	if o, ok := t.(*OneOf); ok {
		names := make([]string, len(o.Of))
		for i, x := range o.Of {
			names[i] = x.Title()
		}
		fmt.Fprintf(&b, "One of these, which differ in `type`: %s.\n", strings.Join(names, ", "))
		return b.String()
	}
	b.WriteString("| Field | Type | | What it does |\n|---|---|---|---|\n")
	for _, r := range t.Rows() {
		use := r.Use
		if r.Part && r.Takes == "" {
			use = Refused.String()
		} else if r.Part {
			use += ": " + escape(r.Takes) + "; else refused"
		}
		if r.Required {
			use += ", required"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.Name, escape(r.Type), use, escape(r.Doc))
	}
	if t.Strict() {
		b.WriteString("\nA field that is not in this table is refused, unless it is null.\n")
	} else {
		b.WriteString("\nA field that is not in this table is ignored, and named in the header X-Baleen-Notice.\n")
	}
	return b.String()
}

func escape(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

// Schema is the object as a JSON Schema.
func Schema(t ObjectTable) map[string]any {
	if o, ok := t.(*OneOf); ok {
		var list []any
		for _, x := range o.Of {
			list = append(list, map[string]any{ObjectKey: x.Title()})
		}
		return map[string]any{"anyOf": list}
	}
	props, required := map[string]any{}, []string{}
	for _, r := range t.Rows() {
		s := map[string]any{}
		for k, v := range r.Schema {
			s[k] = v
		}
		s["description"] = r.Doc
		if !r.Required && len(r.Schema) > 0 && r.Use != Refused.String() {
			s = map[string]any{"description": r.Doc, "anyOf": []any{r.Schema, map[string]any{"type": "null"}}}
		}
		props[r.Name] = s
		if r.Required {
			required = append(required, r.Name)
		}
	}
	out := map[string]any{"type": "object", "properties": props}
	if len(required) > 0 {
		out["required"] = required
	}
	if t.Strict() {
		out["additionalProperties"] = map[string]any{"type": "null"}
	}
	if where := t.conditions(); len(where) > 0 {
		list := make([]any, len(where))
		for i, w := range where {
			list[i] = w
		}
		out["allOf"] = list
	}
	return out
}
