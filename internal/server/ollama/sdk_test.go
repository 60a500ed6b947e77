package ollama_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/auth"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// sdkWorld is a server as the scripts of the official clients expect it.
func sdkWorld(t *testing.T) *servertest.World {
	w, _ := start(t, servertest.Options{
		Script: servertest.Demo,
		Server: func(o *server.Options) { o.Keys = auth.NewKeys([]string{"test-key-1"}, "") },
	})
	w.Backend.SetFail(func(prompt string, written int) error {
		if written == 3 && strings.Contains(servertest.LastTurn(prompt), "BREAK") {
			return errors.New("broken on purpose")
		}
		return nil
	})
	return w
}

// TestSDKs runs Ollama's own clients. BALEEN_TEST_PYTHON names a Python that has the package ollama (0.6),
// BALEEN_TEST_NODE a folder with node_modules that have it.
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
