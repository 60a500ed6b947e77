package vec

func turn16AVX512(dst *float32, k *byte, kdim, dims int) { genTurn[uint16](dst, k, kdim, dims) }
func turn16AVX2(dst *float32, k *byte, kdim, dims int)   { genTurn[uint16](dst, k, kdim, dims) }
func turn16NEON(dst *float32, k *byte, kdim, dims int)   { genTurn[uint16](dst, k, kdim, dims) }
func turn32AVX512(dst *float32, k *byte, kdim, dims int) { genTurn[float32](dst, k, kdim, dims) }
func turn32AVX2(dst *float32, k *byte, kdim, dims int)   { genTurn[float32](dst, k, kdim, dims) }
func turn32NEON(dst *float32, k *byte, kdim, dims int)   { genTurn[float32](dst, k, kdim, dims) }
