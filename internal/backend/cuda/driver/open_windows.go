//go:build amd64

package driver

import "golang.org/x/sys/windows"

func openLibrary() (uintptr, error) {
	h, err := windows.LoadLibraryEx("nvcuda.dll", 0, windows.LOAD_LIBRARY_SEARCH_SYSTEM32)
	return uintptr(h), err
}

func symbol(handle uintptr, name string) (uintptr, error) {
	return windows.GetProcAddress(windows.Handle(handle), name)
}
