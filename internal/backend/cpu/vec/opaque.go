//go:build (amd64 || arm64) && !purego

package vec

import "unsafe"

// opaque returns p. The compiler does not see that.
//
//go:noescape
func opaque(p unsafe.Pointer) unsafe.Pointer
