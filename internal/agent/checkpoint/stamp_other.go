//go:build !linux

package checkpoint

import "io/fs"

// stampOf is of no use here: each file is read.
func stampOf(fs.FileInfo) stamp { return stamp{} }
