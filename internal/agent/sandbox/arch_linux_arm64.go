package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	chmodNr   = 1<<32 - 1 // there is none
)

// oldAttributes are the calls that newer ones replace.
var oldAttributes []attribute

func linkItself(uint32) bool { return false }

var oldModes []struct{ nr, arg uint32 }
