package servertest

import (
	"os"
	command "os/exec"
	"strings"
	"testing"
)

// SDKs runs the scripts testdata/sdk.py and testdata/sdk.mjs of the package under test, each with the address of a
// server of its own. BALEEN_TEST_PYTHON names a Python that has the official packages, BALEEN_TEST_NODE a folder with
// their node_modules; a language that is not named is left out.
func SDKs(t *testing.T, world func(t *testing.T) *World) {
	python, node := os.Getenv("BALEEN_TEST_PYTHON"), os.Getenv("BALEEN_TEST_NODE")
	if python == "" && node == "" {
		t.Skip("neither BALEEN_TEST_PYTHON nor BALEEN_TEST_NODE is set")
	}
	run := func(t *testing.T, cmd *command.Cmd) {
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Error(err)
		}
	}
	if python != "" {
		t.Run("python", func(t *testing.T) {
			run(t, command.CommandContext(t.Context(), python, "testdata/sdk.py", world(t).URL))
		})
	}
	if node != "" {
		t.Run("javascript", func(t *testing.T) {
			script, err := os.ReadFile("testdata/sdk.mjs")
			if err != nil {
				t.Fatal(err)
			}
			cmd := command.CommandContext(t.Context(), "node", "--input-type=module", "-", world(t).URL)
			cmd.Dir, cmd.Stdin = node, strings.NewReader(string(script))
			run(t, cmd)
		})
	}
}
