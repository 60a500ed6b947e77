package openai_test

import (
	"errors"
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
func TestSDKs(t *testing.T) { servertest.SDKs(t, sdkWorld) }
