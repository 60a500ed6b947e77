package ollama

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/chattmpl"
	"github.com/baleenrun/baleen/internal/server/fields"
	"github.com/baleenrun/baleen/internal/server/modeladmin"
	"github.com/baleenrun/baleen/internal/server/ollama/modelfile"
)

// A making is a request of /api/create.
type making struct {
	naming
	c          modeladmin.Creation
	parameters bool // there are some
	file       string
}

// beside names a field that says what the Modelfile says, "" where there is none.
func (m *making) beside() string {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"from", m.c.From != ""},
		{"files", len(m.c.Files) > 0},
		{"template", m.c.Template != ""},
		{"system", m.c.System != ""},
		{"parameters", m.parameters},
		{"messages", len(m.c.Messages) > 0},
		{"license", strings.Join(m.c.Licences, "") != ""},
	} {
		if f.set {
			return f.name
		}
	}
	return ""
}

func makingFields() []fields.Field[making] {
	refused := func(name, doc string, allow ...string) fields.Field[making] {
		return fields.Field[making]{
			Name:  name,
			Type:  fields.Any(),
			Use:   fields.Refused,
			Allow: append(allow, `""`, "{}"),
			Doc:   doc,
		}
	}
	const other = "how a model is prompted and read comes from its template here"
	return []fields.Field[making]{
		honoured(
			"model",
			fields.String(),
			"name of the new model; required",
			func(m *making, v fields.Value) error { m.model = v.String(); return nil },
		),
		honoured(
			"name",
			fields.String(),
			"the older word for model",
			func(m *making, v fields.Value) error { m.older = v.String(); return nil },
		),
		honoured(
			"stream",
			fields.Bool(),
			streamDoc,
			func(m *making, v fields.Value) error { m.stream = v.Bool(); return nil },
		),
		honoured(
			"modelfile",
			fields.String(),
			"a Modelfile, as older clients send it; it stands instead of the fields below, which are refused beside it",
			func(m *making, v fields.Value) error { m.file = v.String(); return nil },
		),
		honoured(
			"from",
			fields.String(),
			"name of the model to start from",
			func(m *making, v fields.Value) error { m.c.From = v.String(); return nil },
		),
		honoured(
			"files",
			fields.Object("").
				Where(map[string]any{"propertyNames": map[string]any{"pattern": fileNamePattern}, "additionalProperties": map[string]any{"type": "string", "pattern": blobPattern}}),
			"uploaded files to start from: digest by file name",
			setFiles,
		),
		honoured(
			"template",
			fields.String(),
			"chat template in Jinja, instead of the model's own",
			func(m *making, v fields.Value) error {
				m.c.Template = v.String()
				return checkTemplate(v.Path, m.c.Template)
			},
		),
		honoured(
			"system",
			fields.String(),
			"system message of conversations that bring none",
			func(m *making, v fields.Value) error { m.c.System = v.String(); return nil },
		),
		honoured(
			"parameters",
			fields.Object("options").
				Where(map[string]any{"properties": map[string]any{"num_predict": map[string]any{"not": map[string]any{"const": 0}}}}),
			"settings of requests that say nothing else, by the names of options",
			func(m *making, v fields.Value) error {
				if err := v.Members(func(string, fields.Value) error { m.parameters = true; return nil }); err != nil {
					return err
				}
				return setSettings(&m.c, v)
			},
		),
		honoured(
			"messages",
			fields.List(fields.Object("message")),
			"messages that stand before every conversation",
			func(m *making, v fields.Value) (err error) {
				m.c.Messages, err = messages(v)
				return err
			},
		),
		honoured(
			"license",
			fields.String().Or(fields.List(fields.String())),
			"the model's licence",
			func(m *making, v fields.Value) error { m.c.Licences = v.Strings(); return nil },
		),
		refused("adapters", "adapters are not supported"),
		refused("quantize", "models are made as they are: quantize the file first"),
		refused("quantization", "models are made as they are: quantize the file first"),
		refused("draft_files", "draft models are not part of a model here"),
		refused("draft_quantize", "draft models are not part of a model here"),
		refused("remote_host", "models run on this machine only"),
		refused("renderer", other),
		refused("parser", other),
		{Name: "requires", Type: fields.Any(), Use: fields.Ignored, Doc: "is about versions of Ollama"},
		refused("info", "what a model is stands in its files"),
	}
}

var createTable = &fields.Table[making]{
	Name:          "create",
	IgnoreUnknown: true,
	Fields:        makingFields(),
	Where: append(nameable, map[string]any{"anyOf": []any{
		map[string]any{ // of a model
			"required": []string{
				"from",
			}, "properties": map[string]any{"from": map[string]any{"type": "string", "pattern": notBlank}, "files": map[string]any{"enum": []any{nil, map[string]any{}}}, "modelfile": map[string]any{"enum": []any{nil, ""}}},
		},
		map[string]any{ // of files
			"required": []string{
				"files",
			}, "properties": map[string]any{"files": map[string]any{"type": "object", "minProperties": 1}, "from": map[string]any{"enum": []any{nil, ""}}, "modelfile": map[string]any{"enum": []any{nil, ""}}},
		},
		map[string]any{ // of a model that the Modelfile names
			"required": []string{"modelfile"}, "properties": map[string]any{
				"modelfile": map[string]any{
					"type":      "string",
					"minLength": 1,
				}, "from": map[string]any{"enum": []any{nil, ""}},
				"files": map[string]any{
					"enum": []any{nil, map[string]any{}},
				}, "template": map[string]any{"enum": []any{nil, ""}}, "system": map[string]any{"enum": []any{nil, ""}},
				"parameters": map[string]any{
					"enum": []any{nil, map[string]any{}},
				}, "messages": map[string]any{"enum": []any{nil, []any{}}}, "license": map[string]any{"enum": []any{nil, "", []any{}}},
			},
		},
	}}),
}

const fileNamePattern = `^[^/\\\x00.][^/\\\x00]*$`

var fileName = regexp.MustCompile(fileNamePattern)

func setFiles(m *making, v fields.Value) error {
	m.c.Files = map[string]string{}
	return v.Members(func(name string, v fields.Value) error {
		if !fileName.MatchString(name) {
			return chat.Invalidf(v.Path, "%q is no name of a file", name)
		}
		hex, err := blobDigest(v.Path, v.String())
		m.c.Files[name] = hex
		return err
	})
}

// checkTemplate refuses templates that are not Jinja, such as those of Ollama in Go's language.
func checkTemplate(field, source string) error {
	_, err := chattmpl.Parse("template", source)
	if err == nil && goEnd.MatchString(source) { // {{ if .System }} is an attribute in Jinja, and {{ end }} a variable
		err = errors.New("it has {{ end }}, as Go's templates have")
	}
	if err != nil {
		return chat.Unsupportedf(field, "this is no template in Jinja, as templates are here: %v", err)
	}
	return nil
}

var goEnd = regexp.MustCompile(`\{\{-?\s*end\s*-?\}\}`)

// setSettings takes over an object of options.
func setSettings(c *modeladmin.Creation, v fields.Value) error {
	o, err := decodeOptions(v)
	if err != nil {
		return err
	}
	c.Sampling, c.Stop, c.Context = o.sampling, o.stop, o.context
	if n, said := o.maxTokens(); said && n > 0 {
		c.MaxTokens = n
	} else if n < 0 {
		return chat.Invalidf(v.Path+".num_predict", "a model that answers nothing is of no use: want a positive "+
			"number, or -1")
	}
	return nil
}

func (d *dialect) create(w http.ResponseWriter, r *http.Request) error {
	m := making{naming: naming{stream: true}}
	if err := decode(r, createTable, &m); err != nil {
		return err
	}
	k, err := d.keep()
	if err != nil {
		return err
	}
	m.c.Name = m.nameOf()
	if err := checkName("model", m.c.Name); err != nil {
		return err
	}
	if m.file != "" {
		if name := m.beside(); name != "" {
			return chat.Invalidf(name, "a modelfile was given, too, which has a word for it: say it there")
		}
		if err := fromFile(&m.c, m.file); err != nil {
			return err
		}
	}
	switch {
	case m.c.From == "" && len(m.c.Files) == 0:
		return chat.Invalidf("from", "neither from nor files was given: name the model to start from")
	case m.c.From != "" && len(m.c.Files) > 0:
		return chat.Invalidf("files", "both from and files were given: a model starts from one of them")
	case m.c.From != "":
		s, err := d.resolve(r.Context(), m.c.From)
		if err != nil {
			return err
		}
		m.c.From = s.Name
	}
	for name, hex := range m.c.Files {
		if ok, err := k.HasBlob(r.Context(), hex); err != nil {
			return err
		} else if !ok {
			return &chat.Error{Kind: chat.NotFound, Field: "files." + name, Msg: fmt.Sprintf("the file sha256:%s "+
				"was not uploaded: send it to /api/blobs first", hex)}
		}
	}
	return d.progress(
		w,
		m.stream,
		func(report func(modeladmin.Progress)) error { return k.Create(r.Context(), m.c, report) },
	)
}

// fromFile takes over a Modelfile.
func fromFile(c *modeladmin.Creation, text string) error {
	lines, err := modelfile.Parse(text)
	if err != nil {
		var bad *modelfile.Error
		errors.As(err, &bad)
		return &chat.Error{Kind: chat.Invalid, Field: "modelfile", Msg: err.Error(), Err: err}
	}
	params := map[string]json.RawMessage{}
	var stops []string
	for _, l := range lines {
		at := fmt.Sprintf("modelfile line %d", l.Number)
		switch l.Command {
		case "FROM":
			c.From = l.Value
		case "SYSTEM":
			c.System = l.Value
		case "TEMPLATE":
			c.Template = l.Value
			if err := checkTemplate(at, l.Value); err != nil {
				return err
			}
		case "LICENSE":
			c.Licences = append(c.Licences, l.Value)
		case "PARAMETER":
			if !slices.ContainsFunc(
				optionsTable.Fields,
				func(f fields.Field[options]) bool { return f.Name == l.Name },
			) {
				return chat.Invalidf(at, "unknown parameter %q", l.Name)
			}
			if l.Name == "stop" {
				stops = append(stops, l.Value)
			} else {
				params[l.Name] = scalar(l.Value)
			}
		case "MESSAGE":
			switch l.Name {
			case chat.System, chat.User, chat.Assistant:
				c.Messages = append(c.Messages, chat.Text(l.Name, l.Value))
			default:
				return chat.Invalidf(at, "there is no role %q: want system, user or assistant", l.Name)
			}
		case "REQUIRES": // about versions of Ollama
		default:
			return chat.Unsupportedf(at, "%s is not supported", l.Command)
		}
	}
	if len(stops) > 0 {
		params["stop"], err = json.Marshal(stops)
		if err != nil {
			return err
		}
	}
	if len(params) == 0 {
		return nil
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return setSettings(c, fields.Value{Raw: raw, Path: "modelfile parameters"})
}

// scalar is a parameter's text as JSON.
func scalar(s string) json.RawMessage {
	if _, err := strconv.ParseFloat(s, 64); (err == nil || s == "true" || s == "false") && json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	b, err := json.Marshal(s)
	if err != nil {
		return json.RawMessage(`""`)
	}
	return b
}
