package doctor

import (
	"os"

	"golang.org/x/sys/unix"
)

func processorName() string {
	name, err := unix.Sysctl("machdep.cpu.brand_string")
	if err != nil {
		return ""
	}
	return name
}

// openDirect opens a file so that reads go past the system's cache.
func openDirect(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_NOCACHE, 1); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// FindDisk describes the file system of a folder.
func FindDisk(path string) (Disk, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return Disk{}, err
	}
	size := int64(st.Bsize)
	return Disk{
		Path: path, Type: unix.ByteSliceToString(st.Fstypename[:]), Free: int64(st.Bavail) * size, Total: int64(st.Blocks) * size,
	}, nil
}
