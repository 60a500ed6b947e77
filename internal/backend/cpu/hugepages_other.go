//go:build !linux

package cpu

// askHuge does nothing: here the system decides.
func askHuge([][]byte) {}
