package quant

import "fmt"

// DequantizeFP8 turns a row-major matrix of E4M3 bytes into numbers: each byte's value times the scale of the tile it
// lies in. Tiles have tileRows x tileCols elements, those at the right and lower edge may be cut short, and scales
// holds one number per tile, row-major: ceil(rows/tileRows) x ceil(cols/tileCols). DeepSeek's weight_scale_inv has
// tiles of 128 x 128; one scale per output channel is 1 x cols; one for the tensor is rows x cols. (In all of these the
// stored number multiplies, whatever its name says.)
func DequantizeFP8(dst []float32, src []byte, rows, cols int, scales []float32, tileRows, tileCols int) error {
	if rows < 0 || cols < 0 || tileRows < 1 || tileCols < 1 {
		return fmt.Errorf(
			"quant: fp8 matrix of %d x %d with tiles of %d x %d: sizes must be positive",
			rows,
			cols,
			tileRows,
			tileCols,
		)
	}
	if !isProduct(len(src), rows, cols) || len(dst) != len(src) {
		return fmt.Errorf(
			"quant: fp8 matrix of %d x %d with %d bytes into %d numbers: sizes do not agree",
			rows,
			cols,
			len(src),
			len(dst),
		)
	}
	tilesDown, tilesAcross := ceilDiv(rows, tileRows), ceilDiv(cols, tileCols)
	if !isProduct(len(scales), tilesDown, tilesAcross) {
		return fmt.Errorf("quant: fp8 matrix of %d x %d with tiles of %d x %d needs %d x %d scales, there are %d",
			rows, cols, tileRows, tileCols, tilesDown, tilesAcross, len(scales))
	}
	for r := range rows {
		rowScales := scales[r/tileRows*tilesAcross:]
		row, out := src[r*cols:(r+1)*cols], dst[r*cols:(r+1)*cols]
		for t := range tilesAcross {
			s := rowScales[t]
			for c := t * tileCols; c < min(cols, (t+1)*tileCols); c++ {
				out[c] = E4M3ToF32(row[c]) * s
			}
		}
	}
	return nil
}

// isProduct reports whether n = a*b for a and b of 0 or more, without overflow.
func isProduct(n, a, b int) bool {
	if a == 0 || b == 0 {
		return n == 0
	}
	return n%a == 0 && n/a == b
}

func ceilDiv(a, b int) int {
	n := a / b
	if a%b != 0 {
		n++
	}
	return n
}
