package cpu

import "golang.org/x/sys/unix"

// adviseHuge asks for 2 MiB pages. It is a hint: packing a model touches every page once, and with huge pages
// that is hundreds of faults instead of hundreds of thousands.
func adviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
