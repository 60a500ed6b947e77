package server_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/anthropic"
	"github.com/baleenrun/baleen/internal/server/fields"
	"github.com/baleenrun/baleen/internal/server/ollama"
	"github.com/baleenrun/baleen/internal/server/openai"
)

// TestFieldsOfSDKs holds the declared fields against the types of the vendors' own SDKs: what these can send must be
// known here, whether it is honoured, refused or ignored. BALEEN_TEST_PYTHON names a Python that has the SDKs.
func TestFieldsOfSDKs(t *testing.T) {
	python := os.Getenv("BALEEN_TEST_PYTHON")
	if python == "" {
		t.Skip("BALEEN_TEST_PYTHON is not set")
	}
	cmd := exec.CommandContext(t.Context(), python, "testdata/sdk_fields.py")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var sdks map[string]map[string][]string
	if err := json.Unmarshal(out, &sdks); err != nil {
		t.Fatal(err)
	}
	env := &server.Env{}
	for _, d := range []server.Dialect{openai.New(env), anthropic.New(env), ollama.New(nil)(env)} {
		declared := map[string][]string{}
		note := func(o fields.ObjectTable) {
			var list []string
			for _, r := range o.Rows() {
				list = append(list, r.Name)
			}
			declared[o.Title()] = list
		}
		for _, r := range d.Routes() {
			if r.Body != nil {
				note(r.Body)
			}
			for _, o := range r.Objects {
				note(o)
			}
		}
		if len(sdks[d.Name()]) < 10 {
			t.Errorf("%s: only %d types of the SDK", d.Name(), len(sdks[d.Name()]))
		}
		for title, names := range sdks[d.Name()] {
			if declared[title] == nil {
				t.Errorf("%s: there is no table %q", d.Name(), title)
				continue
			}
			for _, n := range names {
				if !slices.Contains(declared[title], n) {
					t.Errorf("%s: %s does not know the field %s", d.Name(), title, n)
				}
			}
		}
	}
}
