//go:build (amd64 || arm64) && cuda

package driver

import "github.com/ebitengine/purego"

// RATIONALE: Why do GPUs on Linux take a build of their own?
func openLibrary() (uintptr, error) {
	return purego.Dlopen("libcuda.so.1", purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func symbol(handle uintptr, name string) (uintptr, error) { return purego.Dlsym(handle, name) }
