package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// otherNames are names of arguments that models were taught by other programs.
var otherNames = map[string]string{
	"file_path": "path", "filepath": "path", "file": "path", "filename": "path", "dir": "path", "directory": "path", "folder": "path",
	"old_string": "old", "old_str": "old", "old_text": "old", "search": "old", "new_string": "new", "new_str": "new", "new_text": "new",
	"replace": "new", "replace_all": "all", "text": "content", "contents": "content", "file_text": "content", "cmd": "command",
	"script": "command", "regex": "pattern", "query": "pattern", "include": "glob", "start": "offset", "start_line": "offset",
	"run_in_background": "background",
}

// decode reads a call's arguments into the struct that v points to. Names that no field has are looked up in otherNames;
// what is no argument then is an error that lists those there are. Numbers and truth values may come as strings.
func decode(args json.RawMessage, v any) error {
	var in map[string]json.RawMessage
	d := json.NewDecoder(bytes.NewReader(args))
	if err := d.Decode(&in); err != nil || in == nil {
		return fmt.Errorf("the arguments are no JSON object with %s", list(fieldNames(v)))
	}
	fields := map[string]reflect.Value{}
	rv := reflect.ValueOf(v).Elem()
	for i := range rv.NumField() {
		fields[jsonName(rv.Type().Field(i))] = rv.Field(i)
	}
	given := map[string]bool{}
	for name, raw := range in {
		f, ok := fields[name]
		if !ok {
			if other := otherNames[name]; other != "" {
				if f, ok = fields[other]; ok {
					if _, both := in[other]; both {
						return fmt.Errorf("%s and %s are the same argument: give one of them", name, other)
					}
					name = other
				}
			}
		}
		if !ok {
			return fmt.Errorf("there is no argument %q; there are %s", name, list(fieldNames(v)))
		}
		if string(raw) == "null" {
			continue
		}
		if err := set(f, raw); err != nil {
			return fmt.Errorf("the argument %s: %w", name, err)
		}
		given[name] = true
	}
	for i := range rv.NumField() {
		f := rv.Type().Field(i)
		if n := jsonName(f); !given[n] && !strings.Contains(f.Tag.Get("json"), ",omitempty") {
			return fmt.Errorf("the argument %s is missing", n)
		}
	}
	return nil
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func fieldNames(v any) []string {
	var out []string
	t := reflect.TypeOf(v).Elem()
	for i := range t.NumField() {
		out = append(out, jsonName(t.Field(i)))
	}
	return out
}

func list(words []string) string { return strings.Join(words, ", ") }

func set(f reflect.Value, raw json.RawMessage) error {
	if f.Kind() == reflect.String && raw[0] != '"' {
		return fmt.Errorf("it is to be a string")
	}
	if (f.Kind() == reflect.Int || f.Kind() == reflect.Bool) && raw[0] == '"' {
		var s string
		_ = json.Unmarshal(raw, &s)
		raw = json.RawMessage(strings.ToLower(strings.TrimSpace(s)))
	}
	if err := json.Unmarshal(raw, f.Addr().Interface()); err != nil {
		what := map[reflect.Kind]string{reflect.Int: "a whole number", reflect.Bool: "true or false"}[f.Kind()]
		if what == "" {
			return err
		}
		return fmt.Errorf("it is to be %s, not %s", what, cut(string(raw), 40))
	}
	return nil
}

// schema is a JSON Schema of an object: properties are "name:type", those with a question mark may be left out.
func schema(properties ...string) json.RawMessage {
	var b strings.Builder
	var required []string
	b.WriteString(`{"type":"object","properties":{`)
	for i, p := range properties {
		name, kind, _ := strings.Cut(p, ":")
		if n, ok := strings.CutSuffix(name, "?"); ok {
			name = n
		} else {
			required = append(required, `"`+name+`"`)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `%q:{"type":%q}`, name, kind)
	}
	b.WriteString("}")
	if len(required) > 0 {
		b.WriteString(`,"required":[` + strings.Join(required, ",") + "]")
	}
	b.WriteString("}")
	return json.RawMessage(b.String())
}

// cut shortens a text to so many bytes, at a character's end.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}

// failed is what a call's mistake looks like.
func failed(format string, args ...any) Result {
	return Result{Text: fmt.Sprintf(format, args...), IsError: true}
}

// Core returns the tools that are offered from the start, in the order of the prompt.
func Core() []Tool {
	return []Tool{bash{}, edit{}, grep{}, listing{}, read{}, write{}}
}

// Others returns the tools behind more_tools.
func Others() []Tool { return slices.Clone(others) }

var others = []Tool{ask{}, diagnostics{}, jobs{}, multiEdit{}, todo{}, webFetch{}, webSearch{}}
