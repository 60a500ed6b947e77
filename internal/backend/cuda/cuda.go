// Package cuda executes plans on NVIDIA's devices with the CPU's bits: what it computes stands in ../NUMERICS.md. It
// owns the
// order in which weights, activations and the cache lie on a device, and turns a plan into launches of the kernels in
// package
// kernels; package driver talks to the device. It knows nothing of files, requests or text.
//
// A step's launches are always the same for the same bucket of rows, so that they can be recorded once as a graph: what
// changes from step to step, such as the number of rows, their positions and the page tables, stands in memory of the
// device.
package cuda

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/backend/cuda/driver"
	"github.com/baleenrun/baleen/internal/plan"
)

// leastCapability is that of the oldest devices with what the kernels use: Ampere.
const leastCapability = 80

type device struct {
	number int
	info   driver.Info
}

var list = sync.OnceValues(driver.Devices)

// Open returns device number i as a backend.
func Open(i int) (backend.Device, error) {
	infos, err := list()
	if err != nil {
		return nil, err
	}
	if i >= len(infos) {
		return nil, fmt.Errorf("cuda: no device %d: this machine has %d", i, len(infos))
	}
	if c := infos[i].Capability; c < leastCapability {
		return nil, fmt.Errorf("cuda: %s has compute capability %d.%d, %d.%d is needed", infos[i].Name, c/10, c%10,
			leastCapability/10, leastCapability%10)
	}
	return &device{i, infos[i]}, nil
}

func (d *device) Name() string     { return "cuda" }
func (d *device) Describe() string { return d.info.Name }

// Free measures the device's memory.
func (d *device) Free() (available, total int64, err error) {
	c, err := driver.NewContext(d.number)
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	err = c.Do(func() error { available, total, err = c.Memory(); return err })
	// What the driver takes for itself while a model runs: code, graphs, its allocator's granularity.
	return max(0, available-256<<20), total, err
}

// Supports tells what of a plan the kernels lack.
func (d *device) Supports(p *plan.Plan) error { return supports(p, d.info.Shared) }

// Memory computes what Compile would allocate, without allocating it.
func (d *device) Memory(p *plan.Plan, o backend.Options) (backend.Memory, error) {
	if err := checkOptions(&o); err != nil {
		return backend.Memory{}, err
	}
	if err := d.Supports(p); err != nil {
		return backend.Memory{}, err
	}
	z := measure(p, o)
	m := backend.Memory{Weights: z.weights, Scratch: z.scratch, Slot: int64(4 * z.slotFloats)}
	for _, g := range z.groups {
		m.Page = append(m.Page, int64(g.pageBytes))
	}
	return m, nil
}

func checkOptions(o *backend.Options) error {
	if o.MaxRows <= 0 || o.MaxSeqs <= 0 || o.MaxOut <= 0 {
		return fmt.Errorf(
			"cuda: limits of a step must be positive: %d rows, %d sequences, %d rows with logits",
			o.MaxRows,
			o.MaxSeqs,
			o.MaxOut,
		)
	}
	o.MaxOut = min(o.MaxOut, o.MaxRows)
	return nil
}

// Compile loads the kernels, packs the weights and prepares the launches.
func (d *device) Compile(p *plan.Plan, o backend.Options) (backend.Exec, error) {
	if err := checkOptions(&o); err != nil {
		return nil, err
	}
	if err := d.Supports(p); err != nil {
		return nil, err
	}
	if len(o.Pages) != len(p.Groups) {
		return nil, fmt.Errorf("cuda: pages given for %d groups, the plan has %d", len(o.Pages), len(p.Groups))
	}
	c, err := driver.NewContext(d.number)
	if err != nil {
		return nil, err
	}
	e := &exec{
		c: c, info: d.info, plan: p, opt: o, sizes: measure(p, o), graphs: map[bucket]*driver.Graph{},
		seen: map[bucket]bool{},
	}
	if err := e.build(); err != nil {
		return nil, errors.Join(fmt.Errorf("cuda: %w", err), e.Close())
	}
	return e, nil
}

// cacheDir is where compiled kernels are kept; "" where there is no such place.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "baleen", "cuda")
}
