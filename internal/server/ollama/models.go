package ollama

import (
	"maps"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/pool"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/fields"
	"github.com/baleenrun/baleen/internal/server/modeladmin"
)

// listed is a row of /api/tags.
type listed struct {
	Name         string    `json:"name"`
	Model        string    `json:"model"`
	Modified     time.Time `json:"modified_at"`
	Size         int64     `json:"size"`
	Digest       string    `json:"digest"`
	Details      details   `json:"details"`
	Capabilities []string  `json:"capabilities"`
}

// loaded is a row of /api/ps.
type loaded struct {
	Name    string    `json:"name"`
	Model   string    `json:"model"`
	Size    int64     `json:"size"` // of memory
	Digest  string    `json:"digest"`
	Details details   `json:"details"`
	Expires time.Time `json:"expires_at"`
	VRAM    int64     `json:"size_vram"`
	Context int       `json:"context_length"`
}

func (d *dialect) tags(w http.ResponseWriter, r *http.Request) error {
	specs, err := d.env.Chat.Catalog().List(r.Context())
	if err != nil {
		return err
	}
	list := make([]listed, 0, len(specs))
	for _, s := range specs {
		c := d.cards.of(s)
		name := withTag(s.Name)
		list = append(list, listed{name, name, s.Time, s.Size, digest(s), c.details(""), c.capabilities})
	}
	return server.WriteJSON(w, http.StatusOK, modelsAnswer[listed]{list})
}

func (d *dialect) ps(w http.ResponseWriter, r *http.Request) error {
	specs, err := d.env.Chat.Catalog().List(r.Context())
	if err != nil {
		return err
	}
	byPath := chat.ByPath(specs)
	now := d.env.Now()
	byName := map[string]chat.Spec{}
	for _, s := range specs {
		byName[s.Name] = s
	}
	list, their := []loaded{}, []chat.Spec{}
	d.env.Chat.Pool().Loaded(func(st pool.Status, m *chat.Model) {
		row := loaded{Size: st.Bytes, Expires: expires(st, now), Context: m.Context}
		for _, name := range st.Names { // a row for each: clients look for the name that they asked for
			s, ok := byName[name]
			if !ok {
				s = chat.Spec{Name: name, Path: st.Key}
			}
			list, their = append(list, row), append(their, s)
		}
		if len(st.Names) == 0 {
			s, ok := byPath[st.Key]
			if !ok {
				s = chat.Spec{Name: m.Info.Name, Path: st.Key}
			}
			list, their = append(list, row), append(their, s)
		}
	})
	for i, s := range their { // not while the pool waits: files are read
		c := d.cards.of(s)
		list[i].Name, list[i].Model = withTag(s.Name), withTag(s.Name)
		list[i].Digest, list[i].Details = digest(s), c.details("")
	}
	return server.WriteJSON(w, http.StatusOK, modelsAnswer[loaded]{list})
}

// expires is when a model goes; one that stays for good goes in a time that no client lives to see.
func expires(st pool.Status, now time.Time) time.Time {
	switch {
	case !st.Expires.IsZero():
		return st.Expires
	case st.Keep < 0:
		return now.Add(math.MaxInt64 / 2)
	}
	return now.Add(st.Keep)
}

// A naming is a request that names one model; name is the older word for it.
type naming struct {
	model, older string
	verbose      bool
	system       string
	stream       bool
}

// nameOf is the name that a request gives, by whichever word.
func (n *naming) nameOf() string {
	if n.model != "" {
		return n.model
	}
	return n.older
}

// oneNamed says that a request must name a model by either word.
func oneNamed(kind map[string]any) []map[string]any {
	return []map[string]any{{"anyOf": []any{
		map[string]any{"required": []string{"model"}, "properties": map[string]any{"model": kind}},
		map[string]any{
			"required":   []string{"name"},
			"properties": map[string]any{"name": kind, "model": map[string]any{"enum": []any{nil, ""}}},
		},
	}}}
}

var (
	somewhere = oneNamed(map[string]any{"type": "string", "pattern": notBlank})
	nameable  = oneNamed(map[string]any{"type": "string", "pattern": namePattern})
)

const notBlank = `\S`

// modelField is the model of requests that have no older word for it.
func modelField[T any](set func(dst *T, v fields.Value) error) fields.Field[T] {
	return fields.Field[T]{
		Name:     "model",
		Type:     fields.String().Pattern(notBlank),
		Required: true,
		Doc:      "name of the model",
		Set:      set,
	}
}

func namedFields(more ...fields.Field[naming]) []fields.Field[naming] {
	return append([]fields.Field[naming]{
		honoured(
			"model",
			fields.String(),
			"name of the model; required",
			func(n *naming, v fields.Value) error { n.model = v.String(); return nil },
		),
		honoured(
			"name",
			fields.String(),
			"the older word for model",
			func(n *naming, v fields.Value) error { n.older = v.String(); return nil },
		),
	}, more...)
}

var showTable = &fields.Table[naming]{Name: "show", IgnoreUnknown: true, Where: somewhere, Fields: namedFields(
	honoured(
		"verbose",
		fields.Bool(),
		"list the tensors, too",
		func(n *naming, v fields.Value) error { n.verbose = v.Bool(); return nil },
	),
	honoured(
		"system",
		fields.String(),
		"show the model as if it had this system message",
		func(n *naming, v fields.Value) error { n.system = v.String(); return nil },
	),
	fields.Field[naming]{
		Name: "template",
		Type: fields.Any(),
		Use:  fields.Ignored,
		Doc:  "Ollama's own server does not read it",
	},
	fields.Field[naming]{
		Name: "options",
		Type: fields.Any(),
		Use:  fields.Ignored,
		Doc:  "Ollama's own server shows nothing of it",
	},
)}

// shown is the answer of /api/show.
type shown struct {
	Licence      string         `json:"license,omitempty"`
	Modelfile    string         `json:"modelfile"`
	Parameters   string         `json:"parameters,omitempty"`
	Template     string         `json:"template"`
	System       string         `json:"system,omitempty"`
	Details      details        `json:"details"`
	Messages     []messageBody  `json:"messages,omitempty"`
	Info         map[string]any `json:"model_info"` // never null: clients read it
	Tensors      []tensorBody   `json:"tensors,omitempty"`
	Capabilities []string       `json:"capabilities"`
	Modified     time.Time      `json:"modified_at"`
}

func (d *dialect) show(w http.ResponseWriter, r *http.Request) error {
	var n naming
	if err := decode(r, showTable, &n); err != nil {
		return err
	}
	s, err := d.resolve(r.Context(), n.nameOf())
	if err != nil {
		return err
	}
	if n.system != "" {
		s.System = n.system
	}
	var about modeladmin.About
	if d.keeper != nil {
		if about, err = d.keeper.About(r.Context(), s.Name); err != nil {
			return err
		}
	}
	c := d.cards.of(s)
	if c.problem != nil { // lists have it all the same; here an empty card would be taken for what the model is
		return &chat.Error{
			Kind:  chat.Internal,
			Model: s.Name,
			Msg:   chat.TraceOf(r.Context()).Hide("model "+s.Name+" cannot be read: "+c.problem.Error(), s.Path),
			Err:   c.problem,
		}
	}
	named := s
	if chat.TraceOf(r.Context()).Guest { // places on this machine are nothing for keys that only run models
		named.Path = withTag(s.Name)
	}
	out := shown{
		Licence: about.Licence, Modelfile: describe(s.Name, named, about.Licence), Template: s.Template, System: s.System,
		Details: c.details(about.Parent), Info: map[string]any{}, Capabilities: c.capabilities, Modified: s.Time,
	}
	if out.Template == "" {
		out.Template = c.info.ChatTemplate
	}
	maps.Copy(out.Info, c.keys)
	delete(out.Info, "tokenizer.chat_template") // it stands in template
	if strings.HasPrefix(r.UserAgent(), "GitHubCopilotChat/") {
		out.Info["general.basename"] = n.nameOf() // the name under which that client lists the model
	}
	out.Parameters = Parameters(s)
	for _, m := range s.Messages {
		out.Messages = append(out.Messages, messageBody{Role: m.Role, Content: textOf(m)})
	}
	if n.verbose {
		out.Tensors = c.tensors
	}
	return server.WriteJSON(w, http.StatusOK, out)
}
