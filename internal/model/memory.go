package model

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// A Budget is the memory that this process may take.
type Budget struct {
	Available int64  // bytes that can be taken now
	Total     int64  // bytes of the machine, or of its limit
	Source    string // what sets the limit: "system" or "cgroup"
}

// NoMemoryError refuses a model that does not fit.
type NoMemoryError struct {
	Weights, Scratch, Cache int64 // what it takes
	Context                 int   // tokens that Cache is for
	Budget                  Budget
}

func (e *NoMemoryError) Error() string {
	return fmt.Sprintf(
		"the model needs %s of memory (weights %s, scratch %s, cache for %d tokens %s), but only %s of %s are free "+
			"(%s): "+
			"take a smaller model, a smaller --context, or end other programs",
		gib(e.Weights+e.Scratch+e.Cache),
		gib(e.Weights),
		gib(e.Scratch),
		e.Context,
		gib(e.Cache),
		gib(e.Budget.Available),
		gib(e.Budget.Total),
		e.Budget.Source,
	)
}

func gib(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
}

// A readFile reads a small file of the system, nil where there is none.
type readFile func(path string) []byte

// linuxBudget reads /proc and the cgroups, version 2 or 1, that the process is in. A cgroup's page cache can be
// reclaimed, so it counts as free.
func linuxBudget(read readFile) (Budget, bool) {
	info := fields(read("/proc/meminfo"))
	b := Budget{Available: info["MemAvailable:"] << 10, Total: info["MemTotal:"] << 10, Source: "system"}
	if b.Total == 0 {
		return Budget{}, false
	}
	for _, dir := range cgroupDirs(read("/proc/self/cgroup")) {
		limit, used := number(read(dir+"/memory.max")), number(read(dir+"/memory.current"))
		if limit < 0 {
			limit, used = number(read(dir+"/memory.limit_in_bytes")), number(read(dir+"/memory.usage_in_bytes"))
		}
		if limit < 0 || used < 0 || limit >= b.Total && b.Source == "system" {
			continue
		}
		stat := fields(read(dir + "/memory.stat"))
		free := limit - used + max(stat["inactive_file"], stat["total_inactive_file"])
		if free < b.Available || limit < b.Total {
			b = Budget{Available: max(0, min(free, b.Available)), Total: min(limit, b.Total), Source: "cgroup"}
		}
	}
	return b, true
}

// cgroupDirs lists the folders of the process's memory cgroups, from the innermost to the root.
func cgroupDirs(self []byte) []string {
	var dirs []string
	for line := range strings.Lines(string(self)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		root := ""
		switch {
		case parts[0] == "0" && parts[1] == "":
			root = "/sys/fs/cgroup"
		case contains(parts[1], "memory"):
			root = "/sys/fs/cgroup/memory"
		default:
			continue
		}
		for path := strings.TrimRight(parts[2], "/"); ; path = path[:strings.LastIndexByte(path, '/')] {
			dirs = append(dirs, root+path)
			if !strings.Contains(path, "/") {
				break
			}
		}
	}
	return dirs
}

func contains(list, item string) bool {
	for s := range strings.SplitSeq(list, ",") {
		if s == item {
			return true
		}
	}
	return false
}

// fields reads lines of a name and a number.
func fields(b []byte) map[string]int64 {
	out := map[string]int64{}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		if f := strings.Fields(s.Text()); len(f) >= 2 {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				out[f[0]] = n
			}
		}
	}
	return out
}

// number reads a file of one number; -1 stands for "max" and for no number.
func number(b []byte) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}
