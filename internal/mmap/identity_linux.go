package mmap

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func changeTime(st *syscall.Stat_t) int64 { return st.Ctim.Nano() }

// stampClock is the clock that local file systems take time stamps from, in nanoseconds.
func stampClock() (int64, bool) {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &t) != nil {
		return 0, false
	}
	return t.Nano(), true
}
