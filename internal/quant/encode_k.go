package quant

import "math"

// The encoders of Q4_K, Q5_K and Q6_K. Each group of 16 or 32 elements gets the scale (and minimum) with the least
// weighted squared error among a few candidates around the obvious one, each improved by least squares; then the
// groups' scales are stored as whole multiples of the super-block's, and the elements are rounded against those.

// weights gives larger numbers more say: they move the outputs of a layer more than those near zero.
func weights(w, x []float32) {
	var sum float32
	for _, v := range x {
		sum += float32(v * v)
	}
	mean := float32(math.Sqrt(float64(sum / float32(len(x)))))
	for i, v := range x {
		w[i] = mean + abs(v)
	}
}

// affine finds scale and lowered, both at least 0, such that scale*q-lowered is near x for q in 0..top.
func affine(x []float32, top int) (scale, lowered float32) {
	var weight [32]float32
	weights(weight[:len(x)], x)
	low, high := span(x)
	low = min(low, 0) // the stored minimum is an unsigned amount to take away
	if high <= low {
		return 0, -low
	}
	scale, lowered = (high-low)/float32(top), -low
	best := affineError(x, weight[:], scale, lowered, top)
	for n := -6; n <= 9; n++ {
		inv := inverse((high - low) / (float32(top) + float32(0.1*float32(n))))
		s, l, ok := affineFit(x, weight[:], inv, -low, top)
		if !ok {
			continue
		}
		if e := affineError(x, weight[:], s, l, top); e < best {
			scale, lowered, best = s, l, e
		}
	}
	return scale, lowered
}

// affineFit rounds x with the given inverse scale and returns the scale and amount with the least squares for these
// steps.
func affineFit(x, w []float32, inv, lowered float32, top int) (scale, amount float32, ok bool) {
	var sw, sq, sqq, sx, sqx float64
	for i, v := range x {
		q := float64(step(v+lowered, inv, 0.5, top))
		f, d := float64(w[i]), float64(v)
		sw += f
		sq += float64(f * q)
		sqq += float64(float64(f*q) * q)
		sx += float64(f * d)
		sqx += float64(float64(f*q) * d)
	}
	det := float64(sw*sqq) - float64(sq*sq)
	if !(det > 0) {
		return 0, 0, false
	}
	s := (float64(sw*sqx) - float64(sq*sx)) / det
	l := (float64(sq*sqx) - float64(sqq*sx)) / det
	if l < 0 && sqq > 0 { // the amount must not be negative: fit the scale alone
		s, l = sqx/sqq, 0
	}
	if !(s > 0) || math.IsInf(s, 0) || math.IsNaN(l) || math.IsInf(l, 0) {
		return 0, 0, false
	}
	return float32(s), float32(l), true
}

func affineError(x, w []float32, scale, lowered float32, top int) float64 {
	inv := inverse(scale)
	var sum float64
	for i, v := range x {
		q := step(v+lowered, inv, 0.5, top)
		e := float64(float32(scale*float32(q)) - lowered - v)
		sum += float64(float64(w[i]) * float64(e*e))
	}
	return sum
}

// affineBlock holds what Q4_K and Q5_K share: the super-block's two halves, the packed scales, and the steps.
type affineBlock struct {
	d, dmin float32
	packed  [12]byte
	q       [superBlock]uint8
}

// encodeAffine fits one super-block with steps in 0..top. base is its first element, for errors.
func encodeAffine(b *affineBlock, x []float32, top, base int) error {
	var scales, lowered [8]float32
	for g := range 8 {
		scales[g], lowered[g] = affine(x[32*g:32*g+32], top)
	}
	var raw [2]byte
	_, maxScale := span(scales[:])
	_, maxLowered := span(lowered[:])
	if err := putHalf(raw[:], maxScale/63, base); err != nil {
		return err
	}
	b.d = half(raw[:])
	if err := putHalf(raw[:], maxLowered/63, base); err != nil {
		return err
	}
	b.dmin = half(raw[:])
	var sc, mn [8]uint8
	for g := range 8 {
		sc[g] = step(scales[g], inverse(b.d), 0.5, 63)
		mn[g] = step(lowered[g], inverse(b.dmin), 0.5, 63)
		d, m := b.d*float32(sc[g]), float32(b.dmin*float32(mn[g]))
		inv := inverse(d)
		for j := range 32 {
			b.q[32*g+j] = step(x[32*g+j]+m, inv, 0.5, top)
		}
	}
	for j := range 4 {
		b.packed[j] = sc[j] | sc[j+4]>>4<<6
		b.packed[j+4] = mn[j] | mn[j+4]>>4<<6
		b.packed[j+8] = sc[j+4]&15 | mn[j+4]<<4
	}
	return nil
}

// put stores the two halves and the packed scales at the start of dst.
func (b *affineBlock) put(dst []byte, base int) error {
	if err := putHalf(dst, b.d, base); err != nil {
		return err
	}
	copy(dst[4:16], b.packed[:])
	return putHalf(dst[2:], b.dmin, base)
}

func encodeQ4K(dst []byte, src []float32) error {
	if err := finite(src); err != nil {
		return err
	}
	var b affineBlock
	for base := 0; base < len(src); base, dst = base+superBlock, dst[144:] {
		if err := encodeAffine(&b, src[base:base+superBlock], 15, base); err != nil {
			return err
		}
		if err := b.put(dst, base); err != nil {
			return err
		}
		for g := range 4 {
			for j := range 32 {
				dst[16+32*g+j] = b.q[64*g+j] | b.q[64*g+32+j]<<4
			}
		}
	}
	return nil
}

func encodeQ5K(dst []byte, src []float32) error {
	if err := finite(src); err != nil {
		return err
	}
	var b affineBlock
	for base := 0; base < len(src); base, dst = base+superBlock, dst[176:] {
		if err := encodeAffine(&b, src[base:base+superBlock], 31, base); err != nil {
			return err
		}
		if err := b.put(dst, base); err != nil {
			return err
		}
		for j := range 32 {
			var high uint8
			for g := range 4 {
				low, up := b.q[64*g+j], b.q[64*g+32+j]
				dst[48+32*g+j] = low&15 | up<<4
				high |= low>>4<<(2*g) | up>>4<<(2*g+1)
			}
			dst[16+j] = high
		}
	}
	return nil
}

// symmetric finds the scale such that scale*q is near x for q in -limit..limit-1.
func symmetric(x []float32, limit int) float32 {
	var weight [32]float32
	weights(weight[:len(x)], x)
	peak := extreme(x)
	if peak == 0 {
		return 0
	}
	scale := -peak / float32(limit) // the extreme gets the code -limit, which has no positive counterpart
	best := symmetricError(x, weight[:], scale, limit)
	for n := -9; n <= 9; n++ {
		inv := inverse(-peak / (float32(limit) + float32(0.1*float32(n))))
		var sqx, sqq float64
		for i, v := range x {
			q := float64(signedStep(v, inv, limit))
			sqx += float64(float64(float64(weight[i])*q) * float64(v))
			sqq += float64(float64(float64(weight[i])*q) * q)
		}
		if sqq == 0 {
			continue
		}
		s := float32(sqx / sqq)
		if e := symmetricError(x, weight[:], s, limit); e < best {
			scale, best = s, e
		}
	}
	return scale
}

// signedStep returns x*inv rounded to a whole number in -limit..limit-1, halves to even. Below 2^22 adding and taking
// away 1.5*2^23, whose last bit is 1, rounds.
func signedStep(x, inv float32, limit int) int {
	const unit = 3 << 22
	t := max(-float32(limit), min(float32(limit-1), x*inv))
	return int(float32(t+unit) - unit)
}

func symmetricError(x, w []float32, scale float32, limit int) float64 {
	inv := inverse(scale)
	var sum float64
	for i, v := range x {
		e := float64(float32(scale*float32(signedStep(v, inv, limit))) - v)
		sum += float64(float64(w[i]) * float64(e*e))
	}
	return sum
}

func encodeQ6K(dst []byte, src []float32) error {
	if err := finite(src); err != nil {
		return err
	}
	for base := 0; base < len(src); base, dst = base+superBlock, dst[210:] {
		x := src[base : base+superBlock]
		var scales [16]float32
		for g := range scales {
			scales[g] = symmetric(x[16*g:16*g+16], 32)
		}
		if err := putHalf(dst[208:], extreme(scales[:])/-128, base); err != nil {
			return err
		}
		d := half(dst[208:])
		var q [superBlock]uint8
		for g := range scales {
			s := signedStep(scales[g], inverse(d), 128)
			dst[192+g] = byte(int8(s))
			inv := inverse(d * float32(s))
			for j := range 16 {
				q[16*g+j] = uint8(signedStep(x[16*g+j], inv, 32) + 32)
			}
		}
		for n := range 2 {
			for j := range 32 {
				a, b, c, e := q[128*n+j], q[128*n+32+j], q[128*n+64+j], q[128*n+96+j]
				dst[64*n+j] = a&15 | c<<4
				dst[64*n+32+j] = b&15 | e<<4
				dst[128+32*n+j] = a>>4 | b>>4<<2 | c>>4<<4 | e>>4<<6
			}
		}
	}
	return nil
}
