//go:build unix

package cpu

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func mapMemory(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("cpu: no memory for %d bytes: %w", n, err)
	}
	return b, nil
}

func unmapMemory(b []byte) { _ = unix.Munmap(b) }
