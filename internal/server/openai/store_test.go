package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/openai"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// TestReferencesAreKeptAsItems refers to one item in request after request: each reference is kept as what it stands
// for. Kept as it is, it would have the item's own id, and the next request's would lead to it, and it to itself.
func TestReferencesAreKeptAsItems(t *testing.T) {
	w := servertest.New(t, servertest.Options{Script: servertest.Demo, Dialects: []func(*server.Env) server.Dialect{openai.New}})
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
		respond(fmt.Sprintf(`{"model":"scripted","input":[{"type":"item_reference","id":%q},{"role":"user","content":"hi"}]}`, item))
	}
	r := w.Do(t, "GET", "/v1/responses/"+made.ID+"/input_items", "")
	if r.Status != 200 || strings.Contains(r.Body, "item_reference") || !strings.Contains(r.Body, item) {
		t.Errorf("%d %s", r.Status, r.Body)
	}
}
