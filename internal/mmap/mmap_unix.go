//go:build linux || darwin

package mmap

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps size bytes of f. A file system that cannot map (some network and user-space ones) gets the copy.
func mapFile(f *os.File, size int) ([]byte, bool, error) {
	data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err == unix.ENODEV || err == unix.EINVAL || err == unix.ENOTSUP {
		data, err = readFile(f, size)
		return data, false, err
	}
	if err != nil {
		return nil, false, os.NewSyscallError("mmap", err)
	}
	return data, true, nil
}

func unmapFile(data []byte) error { return os.NewSyscallError("munmap", unix.Munmap(data)) }

func release(pages []byte) error {
	return os.NewSyscallError("madvise", unix.Madvise(pages, unix.MADV_DONTNEED))
}
