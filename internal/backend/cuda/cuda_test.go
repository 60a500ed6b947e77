package cuda

import (
	"os"
	"testing"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/backend/backendtest"
	"github.com/baleenrun/baleen/internal/backend/cpu"
)

// open returns the device, or skips the test. BALEEN_TEST_CUDA=1 says that there must be one.
func open(t testing.TB) backend.Device {
	t.Helper()
	d, err := Open(0)
	if err != nil {
		if os.Getenv("BALEEN_TEST_CUDA") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return d
}

func processor(limit string, threads int) backend.Backend {
	return cpu.New(cpu.Options{Limit: limit, Threads: threads})
}

func TestContract(t *testing.T) {
	d := open(t)
	backendtest.Run(t, func(string, int) backend.Backend { return d }, []string{""})
}

// TestBitsOfTheCPU: 0 bits differ, whatever the format, the operation and the rows of a step.
func TestBitsOfTheCPU(t *testing.T) {
	d := open(t)
	backendtest.Same(t, processor, func(string, int) backend.Backend { return d })
}
