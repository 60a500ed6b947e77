package openai_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/auth"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/openai"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// breaks makes answers to prompts with the word BREAK fail after 20 tokens.
func breaks(prompt string, written int) error {
	if written == 20 && strings.Contains(servertest.LastTurn(prompt), "BREAK") {
		return errors.New("broken on purpose")
	}
	return nil
}

// sdkWorld is a server as the SDK scripts expect it.
func sdkWorld(t *testing.T) *servertest.World {
	w := servertest.New(t, servertest.Options{
		Script: servertest.Demo, Dialects: []func(*server.Env) server.Dialect{openai.New},
		Server: func(o *server.Options) { o.Keys = auth.NewKeys([]string{"test-key-1"}, "") },
	})
	w.Backend.SetFail(breaks)
	return w
}

// TestSDKs runs OpenAI's own SDKs. BALEEN_TEST_PYTHON names a Python that has the package openai, BALEEN_TEST_NODE a
// folder with node_modules that have it.
func TestSDKs(t *testing.T) {
	python, node := os.Getenv("BALEEN_TEST_PYTHON"), os.Getenv("BALEEN_TEST_NODE")
	if python == "" && node == "" {
		t.Skip("neither BALEEN_TEST_PYTHON nor BALEEN_TEST_NODE is set")
	}
	if python != "" {
		t.Run("python", func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), python, "testdata/sdk.py", sdkWorld(t).URL).CombinedOutput()
			t.Logf("%s", out)
			if err != nil {
				t.Error(err)
			}
		})
	}
	if node != "" {
		t.Run("javascript", func(t *testing.T) {
			script, err := os.ReadFile("testdata/sdk.mjs")
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "node", "--input-type=module", "-", sdkWorld(t).URL)
			cmd.Dir, cmd.Stdin = node, strings.NewReader(string(script))
			out, err := cmd.CombinedOutput()
			t.Logf("%s", out)
			if err != nil {
				t.Error(err)
			}
		})
	}
}
