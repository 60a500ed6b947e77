package anthropic_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/auth"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// sdkWorld is a server as the SDK scripts expect it.
func sdkWorld(t *testing.T) *servertest.World {
	w := newWorld(t, servertest.Options{
		Script: servertest.Demo,
		Server: func(o *server.Options) { o.Keys, o.MaxBody = auth.NewKeys([]string{"test-key-1"}, ""), 1<<20 },
	})
	w.Backend.SetFail(func(prompt string, written int) error {
		if written == 20 && strings.Contains(servertest.LastTurn(prompt), "BREAK") {
			return errors.New("broken on purpose")
		}
		return nil
	})
	return w
}

// TestSDKs runs Anthropic's own SDKs. BALEEN_TEST_PYTHON names a Python that has the package anthropic,
// BALEEN_TEST_NODE a folder with node_modules that have @anthropic-ai/sdk.
func TestSDKs(t *testing.T) { servertest.SDKs(t, sdkWorld) }
