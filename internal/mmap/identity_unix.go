//go:build linux || darwin

package mmap

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func stampOf(info os.FileInfo) stamp {
	s := stamp{size: info.Size(), written: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.changed = changeTime(st)
		s.described = description{uint64(st.Nlink), uint64(st.Mode), uint64(st.Uid), uint64(st.Gid)}
	}
	return s
}

func stampOfOpen(_ *os.File, fd int) (stamp, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return stamp{
		st.Size, st.Mtim.Nano(), st.Ctim.Nano(),
		description{uint64(st.Nlink), uint64(st.Mode), uint64(st.Uid), uint64(st.Gid)},
	}, err
}
