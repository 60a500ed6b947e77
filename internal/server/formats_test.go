package server_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/baleenrun/baleen/internal/auth"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/anthropic"
	"github.com/baleenrun/baleen/internal/server/ollama"
	"github.com/baleenrun/baleen/internal/server/openai"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// TestFormatsOfSDKs runs the vendors' own helpers that make schemas of types and values of answers, with pydantic and
// zod. The scripted model wants to say something else: what comes fits because it is held to the schema.
func TestFormatsOfSDKs(t *testing.T) {
	python, node := os.Getenv("BALEEN_TEST_PYTHON"), os.Getenv("BALEEN_TEST_NODE")
	if python == "" && node == "" {
		t.Skip("neither BALEEN_TEST_PYTHON nor BALEEN_TEST_NODE is set")
	}
	const key = "test-key-1"
	w := servertest.New(t, servertest.Options{
		Script:   func(string) string { return "{ says nothing, and does not think }" },
		Dialects: []func(*server.Env) server.Dialect{openai.New, anthropic.New, ollama.New(nil)},
		Server:   func(o *server.Options) { o.Keys = auth.NewKeys([]string{key}, "") },
	})
	if python != "" {
		out, err := exec.CommandContext(t.Context(), python, "testdata/formats.py", w.URL, key, "scripted").
			CombinedOutput()
		if t.Logf("%s", out); err != nil {
			t.Error(err)
		}
	}
	if node != "" {
		servertest.Node(t, "testdata/formats.mjs", w.URL, key, "scripted")
	}
}
