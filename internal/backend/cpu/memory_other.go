//go:build !unix

package cpu

import "unsafe"

func mapMemory(n int) ([]byte, error) {
	b := make([]byte, n+align)
	o := int(-uintptr(unsafe.Pointer(&b[0])) & (align - 1))
	return b[o : o+n : o+n], nil
}

func unmapMemory([]byte) {}
