package bench

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// memoryCounters is PROCESS_MEMORY_COUNTERS.
type memoryCounters struct {
	size, pageFaults                    uint32
	peakWorkingSet, workingSet          uintptr
	peakPaged, paged, peakNonPaged      uintptr
	nonPaged, pagefileUse, peakPagefile uintptr
}

// peakRSS is the most memory that this process ever had, in bytes.
func peakRSS() int64 {
	c := memoryCounters{size: uint32(unsafe.Sizeof(memoryCounters{}))}
	proc := windows.NewLazySystemDLL("kernel32.dll").NewProc("K32GetProcessMemoryInfo")
	ok, _, _ := proc.Call(uintptr(windows.CurrentProcess()), uintptr(unsafe.Pointer(&c)), uintptr(c.size))
	if ok == 0 {
		return 0
	}
	return int64(c.peakWorkingSet)
}
