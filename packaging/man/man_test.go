package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/baleenrun/baleen/internal/cli"
)

// TestPages writes a page for every command, with its flags, and the same ones again.
func TestPages(t *testing.T) {
	dir, again := t.TempDir(), t.TempDir()
	for _, d := range []string{dir, again} {
		if err := run([]string{d}); err != nil {
			t.Fatal(err)
		}
	}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		page, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			return
		}
		second, err := os.ReadFile(filepath.Join(again, name))
		if err != nil || string(page) != string(second) {
			t.Errorf("%s differs from one time to the next: %v", name, err)
		}
		if !strings.Contains(string(page), strings.ReplaceAll(c.Short, "-", `\-`)) &&
			!strings.Contains(string(page), c.Short) {
			t.Errorf("%s does not say %q", name, c.Short)
		}
		for _, sub := range c.Commands() {
			if !sub.Hidden {
				walk(sub)
			}
		}
	}
	walk(cli.Root())
	page, err := os.ReadFile(filepath.Join(dir, "baleen-run.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"max-tokens", "keep-alive", "no-server"} {
		if !strings.Contains(strings.ReplaceAll(string(page), `\-`, "-"), "--"+flag) {
			t.Errorf("the page of run has no --%s", flag)
		}
	}
	if err := run(nil); err == nil {
		t.Error("no folder is no error")
	}
}
