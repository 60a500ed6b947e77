//go:build unix

package bench

import (
	"bytes"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// peakRSS is the most memory that this process ever had, in bytes. Linux's getrusage also counts what the parent had
// when it forked, so the number of the address space itself is better where there is one.
func peakRSS() int64 {
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		if n := highWater(status); n > 0 {
			return n
		}
	}
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return int64(u.Maxrss)
	}
	return int64(u.Maxrss) << 10
}

// highWater reads VmHWM of a process's status.
func highWater(status []byte) int64 {
	for line := range bytes.Lines(status) {
		if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == "VmHWM:" {
			if n, err := strconv.ParseInt(string(f[1]), 10, 64); err == nil {
				return n << 10
			}
		}
	}
	return 0
}
