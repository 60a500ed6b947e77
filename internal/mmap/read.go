//go:build !windows

package mmap

import (
	"fmt"
	"io"
	"os"
)

// readFile is the stand-in for a mapping: it reads the whole file.
func readFile(f *os.File, size int) ([]byte, error) {
	data := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, int64(size)), data); err != nil {
		return nil, fmt.Errorf("read %d bytes: %w", size, err)
	}
	return data, nil
}
