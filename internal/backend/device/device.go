// Package device opens backends by name and chooses the one for a plan. It knows which backends this program has; it
// knows nothing of how they work, nor of models and requests.
package device

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/backend/cpu"
	"github.com/baleenrun/baleen/internal/backend/cuda"
	"github.com/baleenrun/baleen/internal/plan"
)

// Options say which backend to use and what it is told. The zero value is the default.
type Options struct {
	Name    string // "" and "auto": a device where there is one for the plan, else the processor; "cpu"; "cuda", "cuda:1"
	Threads int    // of the processor; 0: one for each available core
	Limit   string // of the processor: at most this instruction set; "": none
	KV      backend.KVType
}

// A kind of devices, and what opens number i of them.
type kind struct {
	name string
	open func(i int) (backend.Device, error)
}

// kinds are those that this program has, in the order in which "auto" asks for them.
var kinds = []kind{{"cuda", cuda.Open}}

// split parts "cuda:1" into kind and number.
func split(name string, kinds []kind) (of string, number int, err error) {
	of, digits, numbered := strings.Cut(name, ":")
	if numbered {
		if number, err = strconv.Atoi(digits); err != nil || number < 0 || number > 255 {
			return "", 0, fmt.Errorf("%q names no device: after the colon comes its number, from 0", name)
		}
	}
	for _, k := range kinds {
		if k.name == of {
			return of, number, nil
		}
	}
	if of != "" && of != "auto" && of != "cpu" || numbered {
		return "", 0, fmt.Errorf("%q names no device; want auto, cpu, cuda or cuda:1", name)
	}
	return of, 0, nil
}

// For returns the backend that the options choose for a plan. A device that is named must be there and execute all of
// the plan; where none is named, one that is not there, cannot execute the plan or has too little memory leaves it to
// the processor.
func For(p *plan.Plan, o Options) (backend.Backend, error) { return choose(p, o, kinds) }

func choose(p *plan.Plan, o Options, kinds []kind) (backend.Backend, error) {
	of, number, err := split(o.Name, kinds)
	if err != nil {
		return nil, err
	}
	host := cpu.New(cpu.Options{Threads: o.Threads, Limit: o.Limit})
	for _, k := range kinds {
		switch {
		case of == k.name:
			d, err := k.open(number)
			if err != nil {
				return nil, err
			}
			return d, d.Supports(p)
		case of == "" || of == "auto":
			if d, err := k.open(0); err == nil && suits(d, p, o) {
				return d, nil
			}
		}
	}
	return host, nil
}

// suits reports whether a device executes all of a plan and has room for its weights and a sequence of the full
// context.
func suits(d backend.Device, p *plan.Plan, o Options) bool {
	if d.Supports(p) != nil {
		return false
	}
	mem, err := d.Memory(p, backend.Options{KV: o.KV, MaxRows: 512, MaxSeqs: 1, MaxOut: 1, Pages: make([]int,
		len(p.Groups))})
	if err != nil {
		return false
	}
	free, _, err := d.Free()
	need := mem.Weights + mem.Scratch + 2*mem.Slot
	for _, page := range mem.Page {
		need += page * int64(p.Context/backend.PageTokens+2)
	}
	return err == nil && need <= free
}
