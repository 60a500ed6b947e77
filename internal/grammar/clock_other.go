//go:build !linux

package grammar

import "time"

// Clock is the time; where the system says, it is that of the calling thread alone.
func Clock() time.Duration { return time.Since(started) }
