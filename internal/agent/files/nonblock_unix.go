//go:build unix

package files

import "syscall"

// NonBlock opens what may be a pipe without waiting for its other end.
const NonBlock = syscall.O_NONBLOCK
