package openai

import (
	"fmt"
	"net/http"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/fields"
)

// embeddingRequest is a request for embeddings, decoded for its errors.
type embeddingRequest struct{ model string }

var embeddingTable = &fields.Table[embeddingRequest]{
	Name: "embedding request",
	Fields: []fields.Field[embeddingRequest]{
		{
			Name: "model",
			Type: fields.String(),
			Doc:  "name of the model",
			Set:  func(e *embeddingRequest, v fields.Value) error { e.model = v.String(); return nil },
		},
		{
			Name: "input", Required: true, Doc: "a text, a list of texts, token ids, or lists of token ids",
			Type: fields.String().
				Or(fields.List(fields.String())).
				Or(fields.List(fields.Int(0, 1<<31-1))).
				Or(fields.List(fields.List(fields.Int(0, 1<<31-1)))),
		},
		{Name: "dimensions", Type: fields.Int(1, 1<<31-1), Doc: "length of the embeddings"},
		{Name: "encoding_format", Type: fields.Enum("float", "base64"), Doc: "how the numbers are written"},
		{Name: "user", Type: fields.Any(), Use: fields.Ignored, Doc: "for OpenAI's own records"},
	},
}

// An embeddingsAnswer is what the route would answer.
type embeddingsAnswer struct {
	Object string      `json:"object" schema:"list"`
	Data   []embedding `json:"data"`
	Model  string      `json:"model"`
	Usage  struct {
		Prompt int `json:"prompt_tokens"`
		Total  int `json:"total_tokens"`
	} `json:"usage"`
}

type embedding struct {
	Object    string    `json:"object"`
	Index     int       `json:"index"`
	Embedding []float64 `json:"embedding"`
}

// embeddings refuses: no model here makes any.
func (d *dialect) embeddings(_ http.ResponseWriter, r *http.Request) error {
	var e embeddingRequest
	if err := server.Decode(r, embeddingTable, &e); err != nil {
		return err
	}
	if err := d.known(r, e.model); err != nil {
		return err
	}
	name := "this server's model"
	if e.model != "" {
		name = fmt.Sprintf("%q", e.model)
	}
	return &chat.Error{
		Kind:  chat.Unsupported,
		Field: "model",
		Msg:   name + " does not support embeddings: it is not an embedding model",
	}
}
