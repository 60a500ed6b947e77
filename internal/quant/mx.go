package quant

import "fmt"

// RepackMXFP4 turns MXFP4 as Hugging Face stores it (blocks: 16 bytes for each 32 elements, byte j holds element 2j in
// its low and 2j+1 in its high nibble; scales: one byte per block) into whole GGUF blocks (scale, then 16 bytes whose
// low nibbles are the first half). Nothing is lost: UnpackMXFP4 is the way back.
func RepackMXFP4(dst, blocks, scales []byte) error {
	if err := mxfp4Sizes(len(dst), len(blocks), len(scales)); err != nil {
		return err
	}
	for i, s := range scales {
		in, out := blocks[16*i:16*i+16], dst[17*i:17*i+17]
		out[0] = s
		for j := range 8 {
			a, b := in[j], in[j+8] // elements 2j, 2j+1 and 2j+16, 2j+17
			out[1+2*j] = a&15 | b<<4
			out[2+2*j] = a>>4 | b&0xf0
		}
	}
	return nil
}

// UnpackMXFP4 undoes RepackMXFP4.
func UnpackMXFP4(blocks, scales, src []byte) error {
	if err := mxfp4Sizes(len(src), len(blocks), len(scales)); err != nil {
		return err
	}
	for i := range scales {
		in, out := src[17*i:17*i+17], blocks[16*i:16*i+16]
		scales[i] = in[0]
		for j := range 8 {
			a, b := in[1+2*j], in[2+2*j]
			out[j] = a&15 | b<<4
			out[j+8] = a>>4 | b&0xf0
		}
	}
	return nil
}

func mxfp4Sizes(packed, blocks, scales int) error {
	if !isProduct(packed, scales, 17) || !isProduct(blocks, scales, 16) {
		return fmt.Errorf(
			"quant: %d MXFP4 scales need 16 bytes of codes and 17 packed bytes each, there are %d and %d",
			scales,
			blocks,
			packed,
		)
	}
	return nil
}
