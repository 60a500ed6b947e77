package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/auth"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/openai"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// TestReferencesAreKeptAsItems refers to one item in request after request: each reference is kept as what it stands
// for. Kept as it is, it would have the item's own id, and the next request's would lead to it, and it to itself.
func TestReferencesAreKeptAsItems(t *testing.T) {
	w := servertest.New(
		t,
		servertest.Options{Script: servertest.Demo, Dialects: []func(*server.Env) server.Dialect{openai.New}},
	)
	var made struct {
		ID     string
		Output []struct{ ID string }
	}
	respond := func(body string) {
		t.Helper()
		r := w.Post(t, "/v1/responses", body)
		made.Output = nil
		if err := json.Unmarshal([]byte(r.Body), &made); err != nil || r.Status != 200 || len(made.Output) == 0 {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
	}
	respond(`{"model":"scripted","input":"COUNT"}`)
	item := made.Output[0].ID
	for range 3 {
		respond(
			fmt.Sprintf(
				`{"model":"scripted","input":[{"type":"item_reference","id":%q},{"role":"user","content":"hi"}]}`,
				item,
			),
		)
	}
	r := w.Do(t, "GET", "/v1/responses/"+made.ID+"/input_items", "")
	if r.Status != 200 || strings.Contains(r.Body, "item_reference") || !strings.Contains(r.Body, item) {
		t.Errorf("%d %s", r.Status, r.Body)
	}
}

// TestKeptResponsesAreTheCallersOwn asks with one key for what another one's responses keep. Ids of items come from
// clients, so they may be guessed.
func TestKeptResponsesAreTheCallersOwn(t *testing.T) {
	w := servertest.New(t, servertest.Options{
		Script: servertest.Demo, Dialects: []func(*server.Env) server.Dialect{openai.New},
		Server: func(o *server.Options) { o.Keys = auth.NewKeys([]string{"key-one", "key-two"}, "") },
	})
	r := w.Post(
		t,
		"/v1/responses",
		`{"model":"scripted","input":[{"id":"item_1","role":"user","content":"a secret"}]}`,
		"X-Api-Key",
		"key-one",
	)
	id, _ := r.JSON(t)["id"].(string)
	for _, c := range []struct {
		method, path, body string
		status             int // of the other caller
	}{
		{"GET", "/v1/responses/" + id, "", 404},
		{"GET", "/v1/responses/" + id + "/input_items", "", 404},
		{"POST", "/v1/responses", `{"model":"scripted","input":[{"type":"item_reference","id":"item_1"}]}`, 404},
		{"POST", "/v1/responses", fmt.Sprintf(`{"model":"scripted","previous_response_id":%q,"input":"hi"}`, id), 400},
		{"DELETE", "/v1/responses/" + id, "", 404}, // the last: then it is gone
	} {
		if r := w.Do(t, c.method, c.path, c.body, "X-Api-Key", "key-two"); r.Status != c.status ||
			strings.Contains(r.Body, "a secret") {
			t.Errorf("%s %s with another key: %d %s", c.method, c.path, r.Status, r.Body)
		}
		if r := w.Do(t, c.method, c.path, c.body, "X-Api-Key", "key-one"); r.Status != 200 {
			t.Errorf("%s %s with its own key: %d %s", c.method, c.path, r.Status, r.Body)
		}
	}
}
