//go:build purego || !amd64

package matmul

// variants are kernels that the processor has but that its levels do not use.
func variants() []namedKernels { return nil }
