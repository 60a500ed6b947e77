//go:build purego || !(amd64 || arm64)

package vec

import "unsafe"

// opaque returns p. The compiler does not see that: a number is no pointer to it. The goroutine's stack cannot move
// meanwhile, since the function calls nothing and is not inlined.
//
//go:noinline
//go:nosplit
func opaque(p unsafe.Pointer) unsafe.Pointer {
	n := uintptr(p)
	return *(*unsafe.Pointer)(unsafe.Pointer(&n))
}
