package doctor

import (
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func processorName() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		key, value, ok := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "model name", "Model", "Hardware":
			if ok {
				return strings.TrimSpace(value)
			}
		}
	}
	return ""
}

// openDirect opens a file so that reads go past the page cache.
func openDirect(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECT, 0)
}

// fileSystems names the types that model folders are found on.
var fileSystems = map[int64]string{
	0xEF53: "ext4", 0x58465342: "xfs", 0x9123683E: "btrfs", 0x01021994: "tmpfs", 0x6969: "nfs", 0x794c7630: "overlay",
	0x2fc12fc1: "zfs", 0x65735546: "fuse", 0xff534d42: "cifs", 0xf2f52010: "f2fs", 0x01021997: "9p",
}

// FindDisk describes the file system of a folder.
func FindDisk(path string) (Disk, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return Disk{}, err
	}
	size := int64(st.Bsize)
	return Disk{
		Path: path, Type: fileSystems[int64(uint32(st.Type))], Free: int64(st.Bavail) * size, Total: int64(st.Blocks) * size,
	}, nil
}
