package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/agent/sandbox"
)

// TestSandboxCommand runs commands as the agent would, passes their exit codes through, and says what is not to be had.
func TestSandboxCommand(t *testing.T) {
	has, _ := sandbox.Probe()
	dir, home := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "secret"), []byte("key"), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) outcome {
		var out, errs bytes.Buffer
		env := []string{"BALEEN_HOME=" + t.TempDir(), "HOME=" + home, "PATH=" + os.Getenv("PATH")}
		status := Main(append([]string{"sandbox"}, args...), IO{In: strings.NewReader("typed\n"), Out: &out, Err: &errs, Environ: env})
		return outcome{status, out.String(), errs.String()}
	}
	for _, c := range []struct {
		args      []string
		status    int
		out, errs string
	}{
		{[]string{"-C", dir, "--", "sh", "-c", "cat; echo made > f; cat f; exit 7"}, 7, "typed\nmade\n", ""},
		{[]string{"-C", dir, "sh", "-c", "kill -TERM $$"}, 143, "", ""},
		{[]string{"-C", dir, "--level", "landlock", "sh", "-c", "cat " + home + "/secret && echo read"}, 1, "", ""},
		{[]string{"-C", dir, "cat", "--version"}, 0, "cat", ""},
		{[]string{"-C", dir, "no-such-program-x"}, sandbox.ExitSetup, "", "nothing was run"},
		{[]string{"-C", dir}, 2, "", "which command?"},
		{[]string{"-C", dir, "--level", "box", "true"}, 2, "", "want one of landlock"},
		{[]string{"-C", dir, "--level", "seatbelt", "true"}, 1, "", "the level seatbelt is not to be had here"},
		{[]string{"-C", home, "true"}, 2, "", "no project's folder"},
	} {
		if has != sandbox.Namespaces && has != sandbox.Landlock && c.status != 2 {
			continue
		}
		got := run(c.args...)
		if got.status != c.status || !strings.Contains(got.out, c.out) || c.out == "" && got.out != "" || !strings.Contains(got.err, c.errs) {
			t.Errorf("%q: %+v, want %d, %q, %q", c.args, got, c.status, c.out, c.errs)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "f")); err != nil && has > sandbox.None {
		t.Error("what the command made is not there")
	}
}
