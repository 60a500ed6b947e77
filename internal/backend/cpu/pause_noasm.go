//go:build purego || !(amd64 || arm64)

package cpu

import "runtime"

func pause() { runtime.Gosched() }
