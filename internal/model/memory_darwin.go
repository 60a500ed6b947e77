package model

import "golang.org/x/sys/unix"

// SystemBudget measures what this process may take; false where the system does not say. macOS compresses and
// swaps what others do not use, so that three quarters of the machine's memory can be had.
func SystemBudget() (Budget, bool) {
	total, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return Budget{}, false
	}
	return Budget{Available: int64(total / 4 * 3), Total: int64(total), Source: "system"}, true
}
