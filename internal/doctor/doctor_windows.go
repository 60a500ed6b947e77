package doctor

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

func processorName() string {
	k, err := registry.OpenKey(
		registry.LOCAL_MACHINE,
		`HARDWARE\DESCRIPTION\System\CentralProcessor\0`,
		registry.QUERY_VALUE,
	)
	if err != nil {
		return ""
	}
	defer k.Close()
	name, _, err := k.GetStringValue("ProcessorNameString")
	if err != nil {
		return ""
	}
	return name
}

// openDirect is not there: reads would come from the system's cache.
func openDirect(string) (*os.File, error) {
	return nil, errors.New("reads past the cache are not supported here")
}

// FindDisk describes the file system of a folder.
func FindDisk(path string) (Disk, error) {
	p, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return Disk{}, err
	}
	var free, total uint64
	if err := windows.GetDiskFreeSpaceEx(p, &free, &total, nil); err != nil {
		return Disk{}, err
	}
	return Disk{Path: path, Free: int64(free), Total: int64(total)}, nil
}
