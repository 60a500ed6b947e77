//go:build (amd64 || arm64) && !purego

package vec

import "unsafe"

// launder returns p. The compiler does not see that.
//
//go:noescape
func launder(p unsafe.Pointer) unsafe.Pointer
