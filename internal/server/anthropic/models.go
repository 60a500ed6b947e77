package anthropic

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/fields"
)

var listQuery = []server.Parameter{
	{Name: "limit", Type: fields.Int(1, 1000), Doc: "models on a page. Not given: 20"},
	{Name: "after_id", Type: fields.String(), Doc: "begin behind this model"},
	{Name: "before_id", Type: fields.String(), Doc: "end before this model"},
	{
		Name: "lifecycle",
		Type: fields.Enum("active", "deprecated", "retired"),
		Doc:  "models of these states only, also as lifecycle[]; all here are active",
	},
}

// modelBody is a model in the vendor's shape. What is null is not known before the model is loaded.
type modelBody struct {
	Type         string    `json:"type"`
	ID           string    `json:"id"`
	Display      string    `json:"display_name"`
	Created      string    `json:"created_at"`
	Lifecycle    string    `json:"lifecycle"`
	Capabilities *struct{} `json:"capabilities"`
	Line         *struct{} `json:"line"`
	MaxInput     *int      `json:"max_input_tokens"`
	MaxOutput    *int      `json:"max_tokens"`
	Deprecated   *struct{} `json:"deprecated_at"`
	Retires      *struct{} `json:"retires_at"`
}

func newModel(s chat.Spec) modelBody {
	t := s.Time
	if t.IsZero() {
		t = time.Unix(0, 0)
	}
	return modelBody{
		Type:      "model",
		ID:        s.Name,
		Display:   s.Name,
		Created:   t.UTC().Format(time.RFC3339),
		Lifecycle: "active",
	}
}

type listBody struct {
	Data    []modelBody `json:"data"`
	HasMore bool        `json:"has_more"`
	First   *string     `json:"first_id"`
	Last    *string     `json:"last_id"`
}

// models answers GET /v1/models.
func (d *dialect) models(w http.ResponseWriter, r *http.Request) error {
	header(w, r)
	specs, err := d.env.Chat.Catalog().List(r.Context())
	if err != nil {
		return err
	}
	list, more, err := page(specs, r.URL.Query())
	if err != nil {
		return err
	}
	body := listBody{Data: []modelBody{}, HasMore: more}
	for _, s := range list {
		body.Data = append(body.Data, newModel(s))
	}
	if n := len(body.Data); n > 0 {
		body.First, body.Last = &body.Data[0].ID, &body.Data[n-1].ID
	}
	return server.WriteJSON(w, http.StatusOK, body)
}

// page cuts what a query asks for out of the list.
func page(specs []chat.Spec, q url.Values) (list []chat.Spec, more bool, err error) {
	limit := 20
	if t := q.Get("limit"); t != "" {
		if limit, err = strconv.Atoi(t); err != nil || limit < 1 || limit > 1000 {
			return nil, false, chat.Invalidf("limit", "%q is not a whole number from 1 to 1000", clip(t))
		}
	}
	states := append(q["lifecycle"], q["lifecycle[]"]...)
	for _, s := range states {
		if !slices.Contains([]string{"active", "deprecated", "retired"}, s) {
			return nil, false, chat.Invalidf("lifecycle", "%q is not one of active, deprecated, retired", clip(s))
		}
	}
	if len(states) > 0 && !slices.Contains(states, "active") {
		return nil, false, nil
	}
	at := func(param string) (int, error) {
		id := q.Get(param)
		i := slices.IndexFunc(specs, func(s chat.Spec) bool { return s.Name == id })
		if i < 0 {
			return 0, chat.Invalidf(param, "there is no model %q", clip(id))
		}
		return i, nil
	}
	after, before := q.Has("after_id"), q.Has("before_id")
	if after && before {
		return nil, false, chat.Invalidf("before_id", "after_id and before_id cannot be used together")
	}
	if before {
		end, err := at("before_id")
		if err != nil {
			return nil, false, err
		}
		begin := max(0, end-limit)
		return specs[begin:end], begin > 0, nil
	}
	begin := 0
	if after {
		if begin, err = at("after_id"); err != nil {
			return nil, false, err
		}
		begin++
	}
	end := min(len(specs), begin+limit)
	return specs[begin:end], end < len(specs), nil
}

// model answers GET /v1/models/NAME.
func (d *dialect) model(w http.ResponseWriter, r *http.Request) error {
	header(w, r)
	s, err := d.env.Chat.Resolve(r.Context(), r.PathValue("model"))
	if err != nil {
		return err
	}
	return server.WriteJSON(w, http.StatusOK, newModel(s))
}
