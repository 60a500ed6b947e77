package model

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// memoryStatus is MEMORYSTATUSEX.
type memoryStatus struct {
	length, load                                     uint32
	totalPhys, availPhys, totalPage, availPage       uint64
	totalVirtual, availVirtual, availExtendedVirtual uint64
}

// SystemBudget measures what this process may take now; false where the system does not say.
func SystemBudget() (Budget, bool) {
	s := memoryStatus{length: uint32(unsafe.Sizeof(memoryStatus{}))}
	ok, _, _ := windows.NewLazySystemDLL("kernel32.dll").
		NewProc("GlobalMemoryStatusEx").
		Call(uintptr(unsafe.Pointer(&s)))
	if ok == 0 {
		return Budget{}, false
	}
	return Budget{Available: int64(s.availPhys), Total: int64(s.totalPhys), Source: "system"}, true
}
