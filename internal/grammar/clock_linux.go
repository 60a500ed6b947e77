package grammar

import (
	"time"

	"golang.org/x/sys/unix"
)

// Clock is the processor time that the calling thread has had: what else runs on the machine does not count. Callers
// lock their goroutine to its thread.
func Clock() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return time.Since(started)
	}
	return time.Duration(t.Nano())
}
