package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	chmodNr   = unix.SYS_CHMOD
)

// oldAttributes are the calls that newer ones replace.
var oldAttributes = []attribute{
	{unix.SYS_CHMOD, none, 0, none},
	{unix.SYS_CHOWN, none, 0, none},
	{unix.SYS_LCHOWN, none, 0, none},
	{unix.SYS_UTIME, none, 0, none},
	{unix.SYS_UTIMES, none, 0, none},
	{unix.SYS_FUTIMESAT, 0, 1, none},
}

func linkItself(nr uint32) bool { return nr == unix.SYS_LCHOWN }

var oldModes = []struct{ nr, arg uint32 }{{unix.SYS_CHMOD, 1}, {unix.SYS_OPEN, 2}, {unix.SYS_CREAT, 1}, {unix.SYS_MKNOD, 1}}
