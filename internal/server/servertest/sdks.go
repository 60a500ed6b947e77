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
	if python != "" {
		t.Run("python", func(t *testing.T) {
			run(t, command.CommandContext(t.Context(), python, "testdata/sdk.py", world(t).URL))
		})
	}
	if node != "" {
		t.Run("javascript", func(t *testing.T) { Node(t, "testdata/sdk.mjs", world(t).URL) })
	}
}

// Node runs a script of the package under test with the packages in BALEEN_TEST_NODE, which must be set.
func Node(t *testing.T, path string, args ...string) {
	script, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cmd := command.CommandContext(t.Context(), "node", append([]string{"--input-type=module", "-"}, args...)...)
	cmd.Dir, cmd.Stdin = os.Getenv("BALEEN_TEST_NODE"), strings.NewReader(string(script))
	run(t, cmd)
}

func run(t *testing.T, cmd *command.Cmd) {
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}
