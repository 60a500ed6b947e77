//go:build unix

package bench

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// peakRSS is the most memory that this process ever had, in bytes.
func peakRSS() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return int64(u.Maxrss)
	}
	return int64(u.Maxrss) << 10
}
