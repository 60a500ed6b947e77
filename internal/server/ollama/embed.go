package ollama

import (
	"net/http"

	"github.com/baleenrun/baleen/internal/server/fields"
)

// An embedding is a request for embeddings, decoded for its errors.
type embedding struct{ model string }

func embedFields(more ...fields.Field[embedding]) []fields.Field[embedding] {
	return append([]fields.Field[embedding]{
		modelField(func(e *embedding, v fields.Value) error { e.model = v.String(); return nil }),
		honoured(
			"options",
			fields.Object("options"),
			"settings of this request",
			func(_ *embedding, v fields.Value) error { _, err := decodeOptions(v); return err },
		),
		honoured(
			"keep_alive",
			keepAliveType,
			"how long the model stays loaded afterwards",
			func(_ *embedding, v fields.Value) error { _, err := fields.KeepAlive(v); return err },
		),
	}, more...)
}

var embedTable = &fields.Table[embedding]{Name: "embed", IgnoreUnknown: true, Fields: embedFields(
	honoured[embedding]("input", fields.String().Or(fields.List(fields.String())), "the texts", nil),
	honoured[embedding]("truncate", fields.Bool(), "false: refuse a text that does not fit", nil),
	honoured[embedding]("dimensions", fields.Int(0, maxInt32), "length of the embeddings", nil),
)}

var embeddingsTable = &fields.Table[embedding]{Name: "embeddings", IgnoreUnknown: true, Fields: embedFields(
	honoured[embedding]("prompt", fields.String(), "the text", nil),
)}

func (d *dialect) embed(_ http.ResponseWriter, r *http.Request) error {
	var e embedding
	if err := decode(r, embedTable, &e); err != nil {
		return err
	}
	return d.notEmbedder(r.Context(), e.model)
}

func (d *dialect) embeddings(_ http.ResponseWriter, r *http.Request) error {
	var e embedding
	if err := decode(r, embeddingsTable, &e); err != nil {
		return err
	}
	return d.notEmbedder(r.Context(), e.model)
}
