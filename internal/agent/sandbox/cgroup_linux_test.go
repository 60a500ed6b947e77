//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestGroupsOfKilledProcessesGo: what a killed Baleen left is removed by the next one, what a running one has is not.
func TestGroupsOfKilledProcessesGo(t *testing.T) {
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	old := time.Now().Add(-time.Hour)
	for name, age := range map[string]time.Time{
		fmt.Sprintf("%s%d-1", groupPrefix, gone.Process.Pid): old,
		fmt.Sprintf("%s%d-2", groupPrefix, gone.Process.Pid): time.Now(),
		fmt.Sprintf("%s%d-1", groupPrefix, os.Getpid()):      old,
		fmt.Sprintf("other-%d", gone.Process.Pid):            old,
	} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(dir, name), age, age); err != nil {
			t.Fatal(err)
		}
	}
	sweep(dir)
	var left []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if len(left) != 3 || slices.Contains(left, fmt.Sprintf("%s%d-1", groupPrefix, gone.Process.Pid)) {
		t.Errorf("%v are left", left)
	}
}
