//go:build !purego

package matmul

func (k *Kernels) native() {}
