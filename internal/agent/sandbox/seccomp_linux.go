//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// denied are the system calls that no command needs and that reach around the other limits. They fail with EPERM.
var denied = []uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT,
	unix.SYS_FSPICK, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR,
	unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_FANOTIFY_INIT,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SYSLOG,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME, unix.SYS_SETHOSTNAME,
	unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES, unix.SYS_SET_MEMPOLICY, unix.SYS_MBIND,
}

// modes are the calls that give a file a mode, and which argument that is.
var modes = append([]struct{ nr, arg uint32 }{
	{unix.SYS_FCHMOD, 1},
	{unix.SYS_FCHMODAT, 2},
	{unix.SYS_FCHMODAT2, 2},
	{unix.SYS_OPENAT, 3},
	{unix.SYS_MKNODAT, 2},
}, oldModes...)

// newNamespaces are the flags of clone that make namespaces.
const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// Offsets in struct seccomp_data; the low half of an argument on the little-endian machines that there are.
const (
	offsetNr   = 0
	offsetArch = 4
)

func offsetArg(n uint32) uint32 { return 16 + 8*n }

// filter is the program that the kernel runs at each system call. Arguments that the kernel takes as int are compared
// by their low half alone, as it does: a value above does not get past. families are the protocol families that sockets
// may have; notify denies what attributes lists.
//
// No library is used for it: the one that is well kept lets every call of another architecture pass where calls are
// denied by list, and 32-bit calls exist on every x86-64 kernel.
func filter(families []uint32, notify bool) []bpf.Instruction {
	ret := func(v uint32) bpf.Instruction { return bpf.RetConstant{Val: v} }
	const kill, allow = unix.SECCOMP_RET_KILL_PROCESS, unix.SECCOMP_RET_ALLOW
	eperm, enosys := uint32(unix.SECCOMP_RET_ERRNO|unix.EPERM), uint32(unix.SECCOMP_RET_ERRNO|unix.ENOSYS)

	prog := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		ret(kill),
		bpf.LoadAbsolute{Off: offsetNr, Size: 4},
	}
	if runtime.GOARCH == "amd64" { // the x32 variants of all calls
		prog = append(prog, bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: 0x40000000, SkipFalse: 1}, ret(enosys))
	}
	for _, nr := range denied {
		prog = append(prog, bpf.JumpIf{Cond: bpf.JumpEqual, Val: nr, SkipFalse: 1}, ret(eperm))
	}
	// A program that others can run as this user must not come into being. openat2 hides its mode in memory.
	for _, m := range modes {
		prog = append(prog, bpf.JumpIf{Cond: bpf.JumpEqual, Val: m.nr, SkipFalse: 4},
			bpf.LoadAbsolute{Off: offsetArg(m.arg), Size: 4},
			bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.S_ISUID | unix.S_ISGID, SkipFalse: 1}, ret(eperm),
			bpf.LoadAbsolute{Off: offsetNr, Size: 4})
	}
	prog = append(prog, bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_OPENAT2, SkipFalse: 1}, ret(enosys))
	if notify {
		for _, a := range attributes {
			prog = append(
				prog,
				bpf.JumpIf{Cond: bpf.JumpEqual, Val: a.nr, SkipFalse: 1},
				ret(unix.SECCOMP_RET_USER_NOTIF),
			)
		}
	}
	// clone3 hides its flags in memory: libraries fall back to clone.
	prog = append(prog, bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_CLONE3, SkipFalse: 1}, ret(enosys))
	prog = append(prog, bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_CLONE, SkipFalse: 4},
		bpf.LoadAbsolute{Off: offsetArg(0), Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: newNamespaces, SkipFalse: 1}, ret(eperm), ret(allow))
	// Typing into the terminal, and what a console can do.
	prog = append(prog, bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_IOCTL, SkipFalse: 6},
		bpf.LoadAbsolute{Off: offsetArg(1), Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCSTI, SkipFalse: 1}, ret(eperm),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCLINUX, SkipFalse: 1}, ret(eperm), ret(allow))
	prog = append(prog, bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_SOCKET, SkipFalse: uint8(2 + 2*len(families))},
		bpf.LoadAbsolute{Off: offsetArg(0), Size: 4})
	for _, f := range families {
		prog = append(prog, bpf.JumpIf{Cond: bpf.JumpEqual, Val: f, SkipFalse: 1}, ret(allow))
	}
	return append(prog, ret(eperm), ret(allow))
}

// loadFilter puts the calling thread, and what it becomes, under the filter. No new privileges must be set before. With
// notify, it returns the descriptor at which the kernel asks; else -1.
func loadFilter(families []uint32, notify bool) (int, error) {
	raw, err := bpf.Assemble(filter(families, notify))
	if err != nil {
		return -1, fmt.Errorf("assembling the filter of system calls: %w", err)
	}
	code := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		code[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	flags := uintptr(0)
	if notify {
		flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	}
	fd, _, errno := unix.RawSyscall(
		unix.SYS_SECCOMP,
		unix.SECCOMP_SET_MODE_FILTER,
		flags,
		uintptr(unsafe.Pointer(&prog)),
	)
	runtime.KeepAlive(code)
	if errno != 0 {
		return -1, fmt.Errorf("seccomp: %w", errno)
	}
	if !notify {
		return -1, nil
	}
	return int(fd), nil
}
