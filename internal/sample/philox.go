package sample

// philox is Philox4x32-10: ten rounds of a bijection of 128 counter bits under a 64-bit key.
func philox(counter [4]uint32, key [2]uint32) [4]uint32 {
	const (
		m0, m1 = 0xD2511F53, 0xCD9E8D57
		w0, w1 = 0x9E3779B9, 0xBB67AE85
	)
	for range 10 {
		p0 := uint64(m0) * uint64(counter[0])
		p1 := uint64(m1) * uint64(counter[2])
		counter = [4]uint32{
			uint32(p1>>32) ^ counter[1] ^ key[0],
			uint32(p1),
			uint32(p0>>32) ^ counter[3] ^ key[1],
			uint32(p0),
		}
		key[0] += w0
		key[1] += w1
	}
	return counter
}

// uniform returns the random number of a position under a seed: 53 bits in [0, 1).
func uniform(seed uint64, position int) float64 {
	b := philox(
		[4]uint32{uint32(position), uint32(uint64(position) >> 32)},
		[2]uint32{uint32(seed), uint32(seed >> 32)},
	)
	return float64(uint64(b[1])<<21|uint64(b[0])>>11) * (1.0 / (1 << 53))
}
