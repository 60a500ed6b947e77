package ollama_test

import (
	"errors"
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
func TestSDKs(t *testing.T) { servertest.SDKs(t, sdkWorld) }
