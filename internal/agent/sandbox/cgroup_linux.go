//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A cgroup bounds processes and memory of a command where this user may make one. It is more than the watch can do: a
// fork bomb of root's outruns every look at it.
type cgroup struct {
	dirs []string // one, or with cgroup v1 one for each controller
	pids string   // the one of them that bounds processes; "": none does
}

// groupPrefix begins the names of groups; behind it stands the number of the process that made it.
const groupPrefix = "baleen-sandbox-"

// sweep removes groups whose makers were killed before they could. They are empty, or else the kernel keeps them. A
// young one may be of a process with numbers of its own, which has put nothing into it yet.
func sweep(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), groupPrefix)
		number, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(number)
		if !ours || err != nil || pid <= 0 || !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > time.Minute {
			_ = os.Remove(filepath.Join(parent, e.Name()))
		}
	}
}

// newCgroup makes what can be made.
func newCgroup(l Limits) *cgroup {
	c := &cgroup{}
	self, err := os.ReadFile("/proc/self/cgroup")
	mounts, err2 := os.ReadFile("/proc/self/mounts")
	if err != nil || err2 != nil {
		return c
	}
	name := fmt.Sprintf("%s%d-%d", groupPrefix, os.Getpid(), time.Now().UnixNano())
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		at, options := f[1], strings.Split(f[3], ",")
		switch f[2] {
		case "cgroup":
			for _, o := range options {
				switch o {
				case "pids":
					if dir := filepath.Join(at, pathIn(string(self), o), name); c.add(dir, "pids.max", l.Processes) {
						c.pids = dir
					}
				case "memory":
					c.add(filepath.Join(at, pathIn(string(self), o), name), "memory.limit_in_bytes", l.Memory)
				}
			}
		case "cgroup2":
			own := filepath.Join(at, pathIn(string(self), ""))
			for _, parent := range []string{own, filepath.Dir(own)} {
				if !within(parent, at) || c.pids != "" {
					continue
				}
				dir := filepath.Join(parent, name)
				if c.add(dir, "pids.max", l.Processes) {
					c.pids = dir
					_ = os.WriteFile(filepath.Join(dir, "memory.max"), fmt.Append(nil, l.Memory), 0)
					_ = os.WriteFile(filepath.Join(dir, "memory.swap.max"), []byte("0"), 0)
				}
			}
		}
	}
	return c
}

// pathIn returns the path of this process's group for a controller of v1, or of v2 ("").
func pathIn(self, controller string) string {
	for line := range strings.Lines(self) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		for _, c := range strings.Split(f[1], ",") {
			if c == controller {
				return f[2]
			}
		}
	}
	return "/"
}

// add makes a group with a bound; it reports whether that was possible.
func (c *cgroup) add(dir, file string, bound any) bool {
	sweep(filepath.Dir(dir))
	if os.Mkdir(dir, 0o755) != nil {
		return false
	}
	if _, err := os.Stat(filepath.Join(dir, file)); err != nil ||
		os.WriteFile(filepath.Join(dir, file), fmt.Append(nil, bound), 0) != nil {
		_ = os.Remove(dir)
		return false
	}
	c.dirs = append(c.dirs, dir)
	return true
}

// take puts a process into the group; what it starts is in it, too.
func (c *cgroup) take(pid int) {
	kept := c.dirs[:0]
	for _, dir := range c.dirs {
		if os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, pid), 0) == nil {
			kept = append(kept, dir)
			continue
		}
		_ = os.Remove(dir)
		if dir == c.pids {
			c.pids = ""
		}
	}
	c.dirs = kept
}

// remove kills what is left in the group, and takes it away. With a bound of none, no process can get ahead of that.
func (c *cgroup) remove() {
	if c.pids != "" {
		_ = os.WriteFile(filepath.Join(c.pids, "pids.max"), []byte("0"), 0)
	}
	for _, dir := range c.dirs {
		for end := time.Now().Add(10 * time.Second); os.Remove(dir) != nil && time.Now().Before(end); time.Sleep(time.Millisecond) {
			list, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
			for pid := range strings.FieldsSeq(string(list)) {
				if n, err := strconv.Atoi(pid); err == nil && n > 0 {
					_ = unix.Kill(n, unix.SIGKILL)
				}
			}
		}
	}
}
