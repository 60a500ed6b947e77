package cli

import (
	"testing"

	"github.com/baleenrun/baleen/internal/model"
)

// TestDivide keeps memory for requests: enough on small machines, and no more than they need on large ones.
func TestDivide(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct{ available, total, models, bodies, soft int64 }{
		{1400, 1500, 1050, 87, 606},
		{4096, 8192, 3584, 128, 2048},
		{60 << 10, 64 << 10, 60<<10 - 512, 128, 16 << 10},
		{0, 1024, 0, 0, 256},
	} {
		got := divide(model.Budget{Available: c.available * mib, Total: c.total * mib})
		if got.models/mib != c.models || got.bodies/mib != c.bodies || got.soft/mib != c.soft {
			t.Errorf("%d of %d MiB free: models %d, bodies %d, heap %d MiB, want %d, %d, %d", c.available, c.total,
				got.models/mib, got.bodies/mib, got.soft/mib, c.models, c.bodies, c.soft)
		}
	}
}
