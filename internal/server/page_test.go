package server_test

import (
	"flag"
	"os"
	"testing"

	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

var update = flag.Bool("update", false, "write the files that tests compare with")

// TestReferencePage keeps the page of the server's own routes beside their declarations.
func TestReferencePage(t *testing.T) {
	const page = "../../docs/api/baleen.md"
	got := server.Reference(servertest.New(t, servertest.Options{}).Server.Dialects()[0])
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
		t.Errorf("%s is out of date: go test ./internal/server -run TestReferencePage -update", page)
	}
}
