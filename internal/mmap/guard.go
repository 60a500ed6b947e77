package mmap

import (
	"errors"
	"runtime/debug"
)

// ErrShortened is what Guard returns when a mapped file was shortened while it was read.
var ErrShortened = errors.New("mmap: the file became shorter while it was read: another program writes it")

// Guard runs f, which reads mappings on this goroutine, and returns an error where one of their files was shortened
// meanwhile. Without it, that ends the process.
func Guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }: // only faults have one, not the nil pointers of a defect
			err = ErrShortened
		default:
			panic(r)
		}
	}()
	return f()
}
