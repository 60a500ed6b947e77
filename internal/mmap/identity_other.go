//go:build !linux && !darwin

package mmap

import "os"

// stampOf knows size and time of writing only.
func stampOf(info os.FileInfo) stamp {
	return stamp{size: info.Size(), written: info.ModTime().UnixNano()}
}

func stampOfOpen(f *os.File, _ int) (stamp, error) {
	info, err := f.Stat()
	if err != nil {
		return stamp{}, err
	}
	return stampOf(info), nil
}

func stampClock() (int64, bool) { return 0, false }
