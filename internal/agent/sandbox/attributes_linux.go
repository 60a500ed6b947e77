//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock does not hold changes of modes, owners and extended attributes. Where there are mounts, these do; where
// there are not, the kernel asks the helper (seccomp's user notifications), which makes the change itself, on the file
// that it has looked at: so no other thread of the command can put another path in its place in between.

// notification is struct seccomp_notif.
type notification struct {
	id    uint64
	pid   uint32
	flags uint32
	data  struct {
		nr   int32
		arch uint32
		ip   uint64
		args [6]uint64
	}
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	val   int64
	error int32
	flags uint32
}

// The requests of ioctl: _IOWR('!', 0, struct seccomp_notif) and _IOWR('!', 1, struct seccomp_notif_resp).
const (
	notifRecv = 0xc0502100
	notifSend = 0xc0182101
)

// attribute says where a call has what it changes.
type attribute struct {
	nr               uint32
	dir, path, flags int // arguments; -1: none
}

const none = -1

// attributes are the calls that change a file by its path. By an open file, it was opened under Landlock's rules.
var attributes = append([]attribute{
	{unix.SYS_FCHMODAT, 0, 1, none},
	{unix.SYS_FCHMODAT2, 0, 1, 3},
	{unix.SYS_FCHOWNAT, 0, 1, 4},
	{unix.SYS_SETXATTR, none, 0, none},
	{unix.SYS_LSETXATTR, none, 0, none},
	{unix.SYS_REMOVEXATTR, none, 0, none},
	{unix.SYS_LREMOVEXATTR, none, 0, none},
	{unix.SYS_UTIMENSAT, 0, 1, 3},
}, oldAttributes...)

// follows reports whether the call follows a link at the end of the path.
func (a attribute) follows(n *notification) bool {
	switch a.nr {
	case unix.SYS_LSETXATTR, unix.SYS_LREMOVEXATTR:
		return false
	}
	return (a.flags == none || n.data.args[a.flags]&unix.AT_SYMLINK_NOFOLLOW == 0) && !linkItself(a.nr)
}

// answerAttributes makes the changes that the command asks for, inside of what it may write.
func answerAttributes(listener int, p *Policy) {
	runtime.LockOSThread()
	give := append(slices.Clone(p.Write), p.Scratch)
	for {
		var n notification
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), notifRecv, uintptr(unsafe.Pointer(&n))); e != 0 {
			if e == unix.EINTR || e == unix.ENOENT {
				continue
			}
			return // the last process under the filter has ended
		}
		r := response{id: n.id}
		if err := changeAttribute(&n, give, p.Protect); err != nil {
			e := unix.EPERM
			errors.As(err, &e)
			r.error = -int32(e)
		}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), notifSend, uintptr(unsafe.Pointer(&r)))
	}
}

// changeAttribute does what the call wants to the file that it names now.
func changeAttribute(n *notification, give, protect []string) error {
	i := slices.IndexFunc(attributes, func(a attribute) bool { return a.nr == uint32(n.data.nr) })
	if i < 0 {
		return unix.EPERM
	}
	a := attributes[i]
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", n.pid))
	if err != nil {
		return unix.EPERM
	}
	defer mem.Close()
	path, err := stringAt(mem, n.data.args[a.path])
	if err != nil {
		return err
	}
	at := fmt.Sprintf("/proc/%d/cwd", n.pid)
	if a.dir != none && int32(n.data.args[a.dir]) != unix.AT_FDCWD {
		at = fmt.Sprintf("/proc/%d/fd/%d", n.pid, int32(n.data.args[a.dir]))
	}
	base, err := unix.Open(at, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return unix.EBADF
	}
	defer unix.Close(base)
	fd := base
	if path != "" {
		how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
		if !a.follows(n) {
			how.Flags |= unix.O_NOFOLLOW
		}
		if fd, err = unix.Openat2(base, path, &how); err != nil {
			return err
		}
		defer unix.Close(fd)
	}
	file := fmt.Sprintf("/proc/self/fd/%d", fd)
	real, err := os.Readlink(file)
	inside := func(dirs []string) bool {
		return slices.ContainsFunc(dirs, func(d string) bool { return within(real, d) })
	}
	if err != nil || !inside(give) || inside(protect) {
		return unix.EPERM
	}
	return a.apply(n, mem, file)
}

// apply makes the change on a file that is held open. By /proc the kernel follows the descriptor, not the path.
func (a attribute) apply(n *notification, mem *os.File, file string) error {
	arg := n.data.args
	switch a.nr {
	case unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, chmodNr:
		mode := arg[2]
		if a.nr == chmodNr {
			mode = arg[1]
		}
		return unix.Chmod(file, uint32(mode)&0o1777) // the filter lets no others come here
	case unix.SYS_UTIMENSAT:
		var ts []unix.Timespec
		if arg[2] != 0 {
			ts = make([]unix.Timespec, 2)
			if _, err := mem.ReadAt(unsafe.Slice((*byte)(unsafe.Pointer(&ts[0])), 2*int(unsafe.Sizeof(ts[0]))), int64(arg[2])); err != nil {
				return unix.EFAULT
			}
		} else {
			now := unix.Timespec{Nsec: unix.UTIME_NOW}
			ts = []unix.Timespec{now, now}
		}
		return unix.UtimesNanoAt(unix.AT_FDCWD, file, ts, 0)
	}
	return unix.EPERM // owners and extended attributes: no tool that builds or tests needs them
}

// stringAt reads a path out of a process's memory; a null pointer is the empty path, as utimensat has it for open
// files.
func stringAt(mem *os.File, address uint64) (string, error) {
	if address == 0 {
		return "", nil
	}
	var path []byte
	for len(path) < unix.PathMax {
		// Not across a page, which may be the last.
		buf := make([]byte, min(4096-address%4096, unix.PathMax))
		k, err := mem.ReadAt(buf, int64(address))
		if k == 0 && err != nil {
			return "", unix.EFAULT
		}
		if end := bytes.IndexByte(buf[:k], 0); end >= 0 {
			return string(append(path, buf[:end]...)), nil
		}
		path = append(path, buf[:k]...)
		address += uint64(k)
	}
	return "", unix.ENAMETOOLONG
}
