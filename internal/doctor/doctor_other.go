//go:build !linux && !darwin && !windows

package doctor

import (
	"errors"
	"os"
)

var errUnknown = errors.New("not known on this system")

func processorName() string { return "" }

func openDirect(string) (*os.File, error) { return nil, errUnknown }

// FindDisk describes the file system of a folder.
func FindDisk(string) (Disk, error) { return Disk{}, errUnknown }
