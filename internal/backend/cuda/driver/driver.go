//go:build (linux && (amd64 || arm64) && cuda) || (windows && amd64)

// Package driver calls NVIDIA's driver library, which is opened at run time, without cgo. A Context is one thread of
// the
// system that talks to one device: everything that is done with it runs there. The package knows memory, modules,
// launches and
// graphs; it knows nothing of plans.
package driver

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// library holds the addresses of the driver's functions.
type library struct {
	byName map[string]uintptr
}

var functions = []string{
	"cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute",
	"cuDeviceTotalMem_v2", "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2", "cuCtxSetCurrent",
	"cuMemAlloc_v2", "cuMemFree_v2", "cuMemGetInfo_v2", "cuMemHostAlloc", "cuMemFreeHost",
	"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2", "cuMemsetD8Async",
	"cuStreamCreate", "cuStreamDestroy_v2", "cuStreamSynchronize", "cuModuleLoadData", "cuModuleUnload",
	"cuModuleGetFunction",
	"cuLaunchKernel", "cuLaunchKernelEx", "cuFuncSetAttribute", "cuGetErrorName", "cuGetErrorString",
	"cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuGraphExecDestroy",
	"cuGraphDestroy", "cuLinkCreate_v2", "cuLinkAddData_v2", "cuLinkComplete", "cuLinkDestroy",
}

// open finds the library once. Where there is none, that is known at once too.
var open = sync.OnceValues(func() (*library, error) {
	handle, err := openLibrary()
	if err != nil {
		return nil, fmt.Errorf("cuda: no device: the driver's library cannot be opened: %w", err)
	}
	l := &library{byName: map[string]uintptr{}}
	for _, name := range functions {
		if l.byName[name], err = symbol(handle, name); err != nil {
			return nil, fmt.Errorf(
				"cuda: the driver is too old, it has no %s; install a newer one (525 or later)",
				name,
			)
		}
	}
	if err := l.call("cuInit", 0); err != nil {
		return nil, fmt.Errorf("cuda: no device: %w", err)
	}
	return l, nil
})

// An Error is what the driver answered.
type Error struct {
	Call, Name, Text string
	Code             int
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s (%s)", e.Call, e.Text, e.Name)
}

const outOfMemory = 2

// call calls a function. Arguments that are addresses of Go memory must lie in the heap.
func (l *library) call(name string, args ...uintptr) error {
	r, _, _ := purego.SyscallN(l.byName[name], args...)
	if code := int(int32(r)); code != 0 {
		return l.failure(name, code)
	}
	return nil
}

func (l *library) failure(name string, code int) error {
	e := &Error{Call: name, Code: code, Name: fmt.Sprint("error ", code), Text: "unknown error"}
	text := func(f string) string {
		out := new(uintptr)
		purego.SyscallN(l.byName[f], uintptr(code), addr(out))
		if *out == 0 {
			return ""
		}
		return cString(*out)
	}
	if s := text("cuGetErrorName"); s != "" {
		e.Name = s
	}
	if s := text("cuGetErrorString"); s != "" {
		e.Text = s
	}
	return e
}

// cString copies a C string of the driver's.
func cString(p uintptr) string {
	var b strings.Builder
	base := *(*unsafe.Pointer)(unsafe.Pointer(&p))
	for i := 0; i < 4096; i++ {
		c := *(*byte)(unsafe.Add(base, i))
		if c == 0 {
			break
		}
		b.WriteByte(c)
	}
	return b.String()
}

// Info describes a device.
type Info struct {
	Name       string
	Capability int // 10 times major plus minor: 90
	Cores      int // multiprocessors
	Shared     int // bytes of shared memory that a block of threads may have
	Memory     int64
	Driver     int // version of the driver's interface: 12040
}

const (
	attrShared = 97
	attrCores  = 16
	attrMajor  = 75
	attrMinor  = 76
)

// Devices lists the devices of this machine.
func Devices() ([]Info, error) {
	l, err := open()
	if err != nil {
		return nil, err
	}
	count := new(int32)
	if err := l.call("cuDeviceGetCount", addr(count)); err != nil {
		return nil, err
	}
	out := make([]Info, *count)
	for i := range out {
		if out[i], err = l.info(i); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (l *library) info(i int) (Info, error) {
	dev, n, size, name := new(int32), new(int32), new(uint64), make([]byte, 256)
	if err := l.call("cuDeviceGet", addr(dev), uintptr(i)); err != nil {
		return Info{}, err
	}
	if err := l.call("cuDeviceGetName", addr(&name[0]), 256, uintptr(*dev)); err != nil {
		return Info{}, err
	}
	if err := l.call("cuDeviceTotalMem_v2", addr(size), uintptr(*dev)); err != nil {
		return Info{}, err
	}
	if err := l.call("cuDriverGetVersion", addr(n)); err != nil {
		return Info{}, err
	}
	in := Info{Memory: int64(*size), Driver: int(*n)}
	in.Name, _, _ = strings.Cut(string(name), "\x00")
	attribute := func(which int) int {
		*n = 0
		_ = l.call("cuDeviceGetAttribute", addr(n), uintptr(which), uintptr(*dev))
		return int(*n)
	}
	in.Capability = 10*attribute(attrMajor) + attribute(attrMinor)
	in.Cores, in.Shared = attribute(attrCores), attribute(attrShared)
	return in, nil
}

// never is false. That it could be true makes the compiler put what addr is given into the heap, where it stays while
// the driver writes to it: a goroutine's stack may move.
var (
	never bool
	//lint:ignore U1000 what is written to it escapes
	held any
)

func addr[T any](p *T) uintptr {
	if never {
		held = p
	}
	return uintptr(unsafe.Pointer(p))
}

// A Ptr is an address of the device's memory.
type Ptr uint64

// A Context is a thread that talks to a device, with a stream of its own. Its methods other than Do and Close are
// called
// inside Do only.
type Context struct {
	l      *library
	dev    uintptr
	work   chan func()
	ended  chan struct{}
	stream uintptr

	// Memory that the driver reads and writes during a call: in the heap, where it stays.
	word   uint64
	word2  uint64
	params [1]unsafe.Pointer
	config launchConfig
	attr   launchAttribute
	early  bool // a launch may begin while the one before it ends
}

// launchConfig and launchAttribute are the driver's structures.
type launchConfig struct {
	grid, block [3]uint32
	shared      uint32
	stream      uintptr
	attrs       unsafe.Pointer
	count       uint32
}

type launchAttribute struct {
	id    uint32
	_     uint32
	value uint32
	_     [15]uint32
}

// NewContext starts a thread for device i.
func NewContext(i int) (*Context, error) {
	l, err := open()
	if err != nil {
		return nil, err
	}
	c := &Context{l: l, work: make(chan func()), ended: make(chan struct{})}
	started := make(chan error, 1)
	go c.run(i, started)
	if err := <-started; err != nil {
		<-c.ended
		return nil, err
	}
	return c, nil
}

func (c *Context) run(i int, started chan<- error) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	defer close(c.ended)
	if err := c.begin(i); err != nil {
		started <- err
		return
	}
	started <- nil
	for f := range c.work {
		f()
	}
	_ = c.l.call("cuStreamDestroy_v2", c.stream)
	_ = c.l.call("cuCtxSetCurrent", 0)
	_ = c.l.call("cuDevicePrimaryCtxRelease_v2", c.dev)
}

func (c *Context) begin(i int) error {
	if err := c.l.call("cuDeviceGet", addr(&c.word), uintptr(i)); err != nil {
		return fmt.Errorf("cuda: device %d: %w", i, err)
	}
	c.dev = uintptr(uint32(c.word))
	if err := c.l.call("cuDevicePrimaryCtxRetain", addr(&c.word), c.dev); err != nil {
		return fmt.Errorf("cuda: device %d: %w", i, err)
	}
	if err := c.l.call("cuCtxSetCurrent", uintptr(c.word)); err != nil {
		return err
	}
	const nonBlocking = 1
	err := c.l.call("cuStreamCreate", addr(&c.word), nonBlocking)
	c.stream = uintptr(c.word)
	return err
}

// Do runs f on the context's thread and returns what it returns.
func (c *Context) Do(f func() error) error {
	var err error
	done := make(chan struct{})
	c.work <- func() { err = f(); close(done) }
	<-done
	return err
}

// Go runs f on the context's thread and does not wait for it.
func (c *Context) Go(f func()) { c.work <- f }

// Close ends the thread. What was allocated and not freed stays until the process ends.
func (c *Context) Close() {
	close(c.work)
	<-c.ended
}

// Memory measures the device's memory in bytes.
func (c *Context) Memory() (free, total int64, err error) {
	err = c.l.call("cuMemGetInfo_v2", addr(&c.word), addr(&c.word2))
	return int64(c.word), int64(c.word2), err
}

// Alloc takes n bytes of the device's memory, whose contents are anything.
func (c *Context) Alloc(n int64) (Ptr, error) {
	if n == 0 {
		return 0, nil
	}
	if err := c.l.call("cuMemAlloc_v2", addr(&c.word), uintptr(n)); err != nil {
		if e := new(Error); asError(err, &e) && e.Code == outOfMemory {
			free, total, _ := c.Memory()
			return 0, fmt.Errorf("the device has %.1f GB free of %.1f GB, %.1f GB more are needed: %w",
				float64(free)/1e9, float64(total)/1e9, float64(n)/1e9, err)
		}
		return 0, err
	}
	return Ptr(c.word), nil
}

func asError(err error, e **Error) bool {
	x, ok := err.(*Error) //nolint:errorlint // call wraps nothing
	*e = x
	return ok
}

// Free gives memory back.
func (c *Context) Free(p Ptr) error {
	if p == 0 {
		return nil
	}
	return c.l.call("cuMemFree_v2", uintptr(p))
}

// HostAlloc takes memory of the host that the device copies from and to directly.
func (c *Context) HostAlloc(n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	if err := c.l.call("cuMemHostAlloc", addr(&c.word), uintptr(n), 0); err != nil {
		return nil, err
	}
	p := uintptr(c.word)
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&p)), n), nil
}

// HostFree gives it back.
func (c *Context) HostFree(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	return c.l.call("cuMemFreeHost", uintptr(unsafe.Pointer(&b[0])))
}

// In starts a copy to the device. src stays unchanged until Sync; if it is not from HostAlloc the copy is done at once.
func (c *Context) In(dst Ptr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	err := c.l.call("cuMemcpyHtoDAsync_v2", uintptr(dst), addr(&src[0]), uintptr(len(src)), c.stream)
	runtime.KeepAlive(src)
	return err
}

// Out starts a copy from the device; dst is complete after Sync.
func (c *Context) Out(dst []byte, src Ptr) error {
	if len(dst) == 0 {
		return nil
	}
	err := c.l.call("cuMemcpyDtoHAsync_v2", addr(&dst[0]), uintptr(src), uintptr(len(dst)), c.stream)
	runtime.KeepAlive(dst)
	return err
}

// Copy starts a copy within the device.
func (c *Context) Copy(dst, src Ptr, n int) error {
	if n == 0 {
		return nil
	}
	return c.l.call("cuMemcpyDtoDAsync_v2", uintptr(dst), uintptr(src), uintptr(n), c.stream)
}

// Zero starts to clear n bytes.
func (c *Context) Zero(p Ptr, n int64) error {
	if n == 0 {
		return nil
	}
	return c.l.call("cuMemsetD8Async", uintptr(p), 0, uintptr(n), c.stream)
}

// Sync waits for all that was started, and tells if something of it failed.
func (c *Context) Sync() error { return c.l.call("cuStreamSynchronize", c.stream) }

// Build compiles PTX for the device into a binary that Load takes.
func (c *Context) Build(ptx []byte) ([]byte, error) {
	log := make([]byte, 8192)
	options := []int32{5, 6} // CU_JIT_ERROR_LOG_BUFFER, and its size
	values := []uintptr{addr(&log[0]), uintptr(len(log))}
	fail := func(err error) error {
		text, _, _ := strings.Cut(string(log), "\x00")
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(text))
	}
	if err := c.l.call("cuLinkCreate_v2", 2, addr(&options[0]), addr(&values[0]), addr(&c.word)); err != nil {
		return nil, err
	}
	link := uintptr(c.word)
	defer c.l.call("cuLinkDestroy", link) //nolint:errcheck // nothing is left to be done
	src, name := append(append([]byte(nil), ptx...), 0), []byte("kernels\x00")
	const isPTX = 1
	if err := c.l.call("cuLinkAddData_v2", link, isPTX, addr(&src[0]), uintptr(len(src)), addr(&name[0]), 0, 0,
		0); err != nil {
		return nil, fail(err)
	}
	if err := c.l.call("cuLinkComplete", link, addr(&c.word), addr(&c.word2)); err != nil {
		return nil, fail(err)
	}
	p, n := uintptr(c.word), int(c.word2)
	out := append([]byte(nil), unsafe.Slice(*(**byte)(unsafe.Pointer(&p)), n)...)
	runtime.KeepAlive(log)
	runtime.KeepAlive(options)
	runtime.KeepAlive(values)
	runtime.KeepAlive(src)
	runtime.KeepAlive(name)
	return out, nil
}

// A Module is loaded code.
type Module struct {
	c      *Context
	handle uintptr
}

// Load loads what Build made.
func (c *Context) Load(binary []byte) (*Module, error) {
	err := c.l.call("cuModuleLoadData", addr(&c.word), addr(&binary[0]))
	runtime.KeepAlive(binary)
	return &Module{c, uintptr(c.word)}, err
}

// Unload gives a module's memory back.
func (m *Module) Unload() error { return m.c.l.call("cuModuleUnload", m.handle) }

// A Function is a kernel.
type Function struct {
	Name   string
	c      *Context
	handle uintptr
	launch uintptr

	launchEx uintptr
}

// Function finds a kernel, and lets its blocks of threads have `shared` bytes of dynamic shared memory.
func (m *Module) Function(name string, shared int) (*Function, error) {
	s := append([]byte(name), 0)
	if err := m.c.l.call("cuModuleGetFunction", addr(&m.c.word), m.handle, addr(&s[0])); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	runtime.KeepAlive(s)
	f := &Function{name, m.c, uintptr(m.c.word), m.c.l.byName["cuLaunchKernel"], m.c.l.byName["cuLaunchKernelEx"]}
	const maxDynamicShared = 8
	if err := m.c.l.call("cuFuncSetAttribute", f.handle, maxDynamicShared, uintptr(shared)); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// Early lets launches begin while those before them end, on devices of capability 9.0 and drivers that record such
// launches:
// every kernel waits by itself before it uses what others made.
//
// RATIONALE: Why may a kernel begin before the one before it ends?
func (c *Context) Early(in Info) bool {
	c.early = in.Capability >= 90 && in.Driver >= 12030
	const programmaticSerialization = 6
	c.attr = launchAttribute{id: programmaticSerialization, value: 1}
	return c.early
}

// Launch starts a kernel with one parameter, a structure in the heap.
func (f *Function) Launch(gx, gy, gz, threads, shared int, params unsafe.Pointer) error {
	c := f.c
	c.params[0] = params
	if c.early {
		c.config = launchConfig{
			grid: [3]uint32{
				uint32(gx),
				uint32(gy),
				uint32(gz),
			}, block: [3]uint32{uint32(threads), 1, 1}, shared: uint32(shared),
			stream: c.stream, attrs: unsafe.Pointer(&c.attr), count: 1,
		}
		r, _, _ := purego.SyscallN(f.launchEx, uintptr(unsafe.Pointer(&c.config)), f.handle,
			uintptr(unsafe.Pointer(&c.params[0])), 0)
		return f.answer(r, gx, gy, gz, threads, shared)
	}
	r, _, _ := purego.SyscallN(f.launch, f.handle, uintptr(gx), uintptr(gy), uintptr(gz), uintptr(threads), 1, 1,
		uintptr(shared),
		c.stream, uintptr(unsafe.Pointer(&c.params[0])), 0)
	return f.answer(r, gx, gy, gz, threads, shared)
}

func (f *Function) answer(r uintptr, gx, gy, gz, threads, shared int) error {
	if code := int(int32(r)); code != 0 {
		return fmt.Errorf(
			"%s with %d x %d x %d blocks of %d threads and %d bytes: %w",
			f.Name,
			gx,
			gy,
			gz,
			threads,
			shared,
			f.c.l.failure("cuLaunchKernel", code),
		)
	}
	return nil
}

// A Graph is a recorded run of launches.
type Graph struct {
	c      *Context
	handle uintptr
}

// Record runs f, whose launches and copies are not executed but become a graph.
func (c *Context) Record(f func() error) (*Graph, error) {
	const threadLocal = 1
	if err := c.l.call("cuStreamBeginCapture_v2", c.stream, threadLocal); err != nil {
		return nil, err
	}
	failed := f()
	if err := c.l.call("cuStreamEndCapture", c.stream, addr(&c.word)); err != nil && failed == nil {
		return nil, err
	}
	graph := uintptr(c.word)
	if failed != nil {
		return nil, failed
	}
	defer c.l.call("cuGraphDestroy", graph) //nolint:errcheck // nothing is left to be done
	if err := c.l.call("cuGraphInstantiateWithFlags", addr(&c.word), graph, 0); err != nil {
		return nil, err
	}
	return &Graph{c, uintptr(c.word)}, nil
}

// Launch starts the graph.
func (g *Graph) Launch() error { return g.c.l.call("cuGraphLaunch", g.handle, g.c.stream) }

// Close gives its memory back.
func (g *Graph) Close() error { return g.c.l.call("cuGraphExecDestroy", g.handle) }
