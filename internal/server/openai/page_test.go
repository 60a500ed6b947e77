package openai_test

import (
	"flag"
	"os"
	"testing"

	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/openai"
)

var update = flag.Bool("update", false, "write the files that tests compare with")

// TestReferencePage keeps the page beside the declarations that decode requests.
func TestReferencePage(t *testing.T) {
	const page = "../../../docs/api/openai.md"
	got := server.Reference(openai.New(&server.Env{}))
	if *update {
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s is out of date: go test ./internal/server/openai -run TestReferencePage -update", page)
	}
}
