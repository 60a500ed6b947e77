package matmul

import "unsafe"

// flat views a quad of all lanes as its 64 bytes.
func flat(q *[Lanes][4]int8) *[64]int8 { return (*[64]int8)(unsafe.Pointer(q)) }
