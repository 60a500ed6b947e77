package mmap

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

func mapFile(f *os.File, size int) ([]byte, bool, error) {
	h, err := windows.CreateFileMapping(windows.Handle(f.Fd()), nil, windows.PAGE_READONLY, 0, 0, nil)
	if err != nil {
		return nil, false, os.NewSyscallError("CreateFileMapping", err)
	}
	// The view keeps the mapping object alive, so its handle is not needed any longer.
	defer windows.CloseHandle(h)
	addr, err := windows.MapViewOfFile(h, windows.FILE_MAP_READ, 0, 0, uintptr(size))
	if err != nil {
		return nil, false, os.NewSyscallError("MapViewOfFile", err)
	}
	// Read the address as a pointer without converting an integer: the view is not memory of the Go heap.
	p := *(*unsafe.Pointer)(unsafe.Pointer(&addr))
	return unsafe.Slice((*byte)(p), size), true, nil
}

func unmapFile(data []byte) error {
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	return os.NewSyscallError("UnmapViewOfFile", windows.UnmapViewOfFile(addr))
}

// release does nothing: Windows trims a view's clean pages by itself, and no call drops them for good.
func release([]byte) error { return nil }
