package device

import (
	"errors"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/plan"
)

// fake is a device of which only the answers matter.
type fake struct {
	supports error
	free     int64
}

func (fake) Name() string                  { return "fake" }
func (fake) Describe() string              { return "a fake" }
func (f fake) Supports(*plan.Plan) error   { return f.supports }
func (f fake) Free() (int64, int64, error) { return f.free, f.free, nil }
func (fake) Compile(*plan.Plan, backend.Options) (backend.Exec, error) {
	return nil, errors.New("not asked for")
}

func (fake) Memory(*plan.Plan, backend.Options) (backend.Memory, error) {
	return backend.Memory{Weights: 1000, Scratch: 100, Page: []int64{10}}, nil
}

// TestFor holds what a name chooses, and that nothing is chosen that cannot execute or hold the whole plan.
func TestFor(t *testing.T) {
	p := &plan.Plan{Context: 320, Groups: make([]plan.Group, 1)} // 12 pages
	lacks := errors.New("fake: no such operation")
	absent := errors.New("no device")
	for _, c := range []struct {
		what, name string
		device     fake
		open       error
		want, err  string
	}{
		{what: "a device that does it all", device: fake{free: 1220}, want: "fake"},
		{what: "auto by name", name: "auto", device: fake{free: 1220}, want: "fake"},
		{what: "too little memory", device: fake{free: 1219}, want: "cpu"},
		{what: "an operation that it lacks", device: fake{free: 1 << 40, supports: lacks}, want: "cpu"},
		{what: "no device", open: absent, want: "cpu"},
		{what: "the processor by name", name: "cpu", device: fake{free: 1 << 40}, want: "cpu"},
		{what: "a device by name", name: "fake", device: fake{free: 1}, want: "fake"},
		{what: "a device by name that lacks an operation", name: "fake", device: fake{supports: lacks}, err: lacks.Error()},
		{what: "a device by name that is not there", name: "fake:1", open: absent, err: "no device"},
		{what: "an unknown name", name: "gpu", err: `"gpu" names no device`},
		{what: "a bad number", name: "fake:x", err: `"fake:x" names no device`},
		{what: "a number of the processor", name: "cpu:1", err: `"cpu:1" names no device`},
	} {
		kinds := []kind{{"fake", func(int) (backend.Device, error) { return c.device, c.open }}}
		b, err := choose(p, Options{Name: c.name}, kinds)
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %q", c.what, err, c.err)
			}
		case err != nil || b.Name() != c.want:
			t.Errorf("%s: %v, error %v, want %s", c.what, b, err, c.want)
		}
	}
}
