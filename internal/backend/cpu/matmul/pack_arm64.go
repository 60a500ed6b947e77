//go:build !purego

package matmul

import "unsafe"

// The parts of packing for arm64: planes in assembly, what is small in Go.

// planes packs chunks times 16 bytes; flip is the mask of bits to turn over.
func planes(chunks, flip int) moveFunc {
	return func(dst, src *byte, rowBytes, n, srcStep, dstStep int) {
		packPlanes_neon(dst, src, rowBytes, n, srcStep, dstStep, chunks, flip)
	}
}

// pairs packs two halfs, the second gap bytes after the first.
func pairs(gap int) moveFunc {
	return func(dst, src *byte, rowBytes, n, srcStep, dstStep int) {
		packHalfs(dst, src, rowBytes, n, srcStep, dstStep)
		packHalfs(add(dst, gap), add(src, 2), rowBytes, n, srcStep, dstStep)
	}
}

func add(p *byte, n int) *byte { return (*byte)(unsafe.Add(unsafe.Pointer(p), n)) }

// packHalfs packs 2 bytes of each row.
func packHalfs(dst, src *byte, rowBytes, n, srcStep, dstStep int) {
	for i := range n {
		to, from := (*[2 * Lanes]byte)(unsafe.Pointer(add(dst, i*dstStep))), add(src, i*srcStep)
		for lane := range Lanes {
			s := (*[2]byte)(unsafe.Pointer(add(from, lane*rowBytes)))
			to[2*lane], to[2*lane+1] = s[0], s[1]
		}
	}
}

// packExponents packs a byte of each row.
func packExponents(dst, src *byte, rowBytes, n, srcStep, dstStep int) {
	for i := range n {
		to, from := (*[Lanes]byte)(unsafe.Pointer(add(dst, i*dstStep))), add(src, i*srcStep)
		for lane := range Lanes {
			to[lane] = *add(from, lane*rowBytes)
		}
	}
}

// packFifth packs 32 bits of each row, rearranged by spread.
func packFifth(dst, src *byte, rowBytes, n, srcStep, dstStep int) {
	for i := range n {
		to, from := (*[Lanes]uint32)(unsafe.Pointer(add(dst, i*dstStep))), add(src, i*srcStep)
		for lane := range Lanes {
			s := (*[4]byte)(unsafe.Pointer(add(from, lane*rowBytes)))
			to[lane] = spread(uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24)
		}
	}
}

// packScales16 packs 16 bytes of each row as 16 vectors of 16 bytes.
func packScales16(dst, src *byte, rowBytes, n, srcStep, dstStep int) {
	for i := range n {
		to, from := (*[16 * Lanes]byte)(unsafe.Pointer(add(dst, i*dstStep))), add(src, i*srcStep)
		for lane := range Lanes {
			for j, s := range (*[16]byte)(unsafe.Pointer(add(from, lane*rowBytes))) {
				to[j*Lanes+lane] = s
			}
		}
	}
}

// packScalesMinK packs the head of Q4_K and Q5_K.
func packScalesMinK(dst, src *byte, rowBytes, n, srcStep, dstStep int) {
	for i := range n {
		unit, from := unsafe.Slice(add(dst, i*dstStep), 320), add(src, i*srcStep)
		for lane := range Lanes {
			headMinK(unit, unsafe.Slice(add(from, lane*rowBytes), 16), 1, lane)
		}
	}
}

// packWords16 packs 8 numbers of 16 bits of each row, as 8 vectors of 16.
func packWords16(dst, src *byte, rowBytes, n, srcStep, dstStep int) {
	for i := range n {
		to, from := (*[8 * Lanes]uint16)(unsafe.Pointer(add(dst, i*dstStep))), add(src, i*srcStep)
		for lane := range Lanes {
			s := (*[16]byte)(unsafe.Pointer(add(from, lane*rowBytes)))
			for j := range 8 {
				to[j*Lanes+lane] = uint16(s[2*j]) | uint16(s[2*j+1])<<8
			}
		}
	}
}
