//go:build (amd64 || arm64) && !purego

package cpu

// pause tells the processor that the thread is spinning.
//
//go:noescape
func pause()
