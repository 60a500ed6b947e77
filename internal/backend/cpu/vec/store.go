package vec

import (
	"runtime"
	"unsafe"

	"github.com/baleenrun/baleen/internal/backend"
)

// StoreK writes the key of one position, slot within its page, to dst: the memory of one head's keys in the page,
// [PageTokens/16][len(x)][16] values of type t. dst is aligned to the type.
func (k *Kernels) StoreK(t backend.KVType, dst []byte, slot int, x []float32) {
	at := slot/Lanes*Lanes*len(x) + slot%Lanes
	if t == backend.KVF32 {
		d := unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(dst))), len(dst)/4)[at:]
		for i, v := range x {
			d[i*Lanes] = v
		}
		return
	}
	d := unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(dst))), len(dst)/2)[at:]
	var buf [block]uint16
	h := noescape(buf[:])
	for len(x) > 0 {
		n := min(block, len(x))
		k.F32ToF16(h, x[:n])
		for i, v := range h[:n] {
			d[i*Lanes] = v
		}
		if x = x[n:]; len(x) > 0 {
			d = d[n*Lanes:]
		}
	}
	runtime.KeepAlive(&buf)
}

// StoreV writes the value of one position, slot within its page, to dst: the memory of one head's values in the
// page, [PageTokens][len(x)] values of type t. dst is aligned to the type.
func (k *Kernels) StoreV(t backend.KVType, dst []byte, slot int, x []float32) {
	if t == backend.KVF32 {
		copy(unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(dst))), len(dst)/4)[slot*len(x):], x)
		return
	}
	k.F32ToF16(unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(dst))), len(dst)/2)[slot*len(x):], x)
}
