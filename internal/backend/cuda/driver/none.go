//go:build !((linux && (amd64 || arm64) && cuda) || (windows && amd64))

// Package driver stands in for NVIDIA's driver where this program cannot call it: there is no device.
package driver

import (
	"errors"
	"unsafe"
)

var errNone = errors.New("cuda: no device: this build has no support for NVIDIA's driver (on Linux: go build -tags cuda)")

// Info describes a device.
type Info struct {
	Name                      string
	Capability, Cores, Shared int
	Memory                    int64
	Driver                    int
}

// Devices says that there is none.
func Devices() ([]Info, error) { return nil, errNone }

// A Ptr is an address of the device's memory.
type Ptr uint64

// A Context cannot be had; nor can what it makes.
type (
	Context  struct{}
	Module   struct{}
	Function struct{ Name string }
	Graph    struct{}
)

// NewContext says that there is no device.
func NewContext(int) (*Context, error) { return nil, errNone }

func (*Context) Do(func() error) error                { return errNone }
func (*Context) Go(func())                            {}
func (*Context) Close()                               {}
func (*Context) Memory() (free, total int64, _ error) { return 0, 0, errNone }
func (*Context) Alloc(int64) (Ptr, error)             { return 0, errNone }
func (*Context) Free(Ptr) error                       { return errNone }
func (*Context) HostAlloc(int) ([]byte, error)        { return nil, errNone }
func (*Context) HostFree([]byte) error                { return errNone }
func (*Context) In(Ptr, []byte) error                 { return errNone }
func (*Context) Out([]byte, Ptr) error                { return errNone }
func (*Context) Copy(_, _ Ptr, _ int) error           { return errNone }
func (*Context) Zero(Ptr, int64) error                { return errNone }
func (*Context) Early(Info) bool                      { return false }
func (*Context) Sync() error                          { return errNone }
func (*Context) Build([]byte) ([]byte, error)         { return nil, errNone }
func (*Context) Load([]byte) (*Module, error)         { return nil, errNone }
func (*Context) Record(func() error) (*Graph, error)  { return nil, errNone }
func (*Module) Unload() error                         { return errNone }
func (*Graph) Launch() error                          { return errNone }
func (*Graph) Close() error                           { return errNone }

// Function finds no kernel.
func (*Module) Function(string, int) (*Function, error) { return nil, errNone }

// Launch starts nothing.
func (*Function) Launch(_, _, _, _, _ int, _ unsafe.Pointer) error { return errNone }
