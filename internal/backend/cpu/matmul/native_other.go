//go:build purego || !(amd64 || arm64)

package matmul

// native leaves the plain kernels in place: this build has no others.
func (k *Kernels) native() {}
