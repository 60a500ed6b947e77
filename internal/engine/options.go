package engine

import (
	"fmt"
	"time"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/plan"
)

// Options say how an engine runs. Exec must be what the executor was compiled with.
type Options struct {
	Exec backend.Options // MaxRows, MaxSeqs, MaxOut, Pages and Slots are used

	StopTokens    []int32 // end generations that name no stop tokens of their own
	MaxQueue      int     // waiting requests; 0: 512
	SnapshotEvery int     // positions between snapshots of recurrent states; 0: 512
	SwapBytes     int64   // host memory for sequences that are swapped out; 0: 1 GiB; negative: none

	// Stretch is how much longer a step may take than one without prompt tokens, while streams run.
	// 0: 1.95.
	Stretch float64

	Now func() time.Time // nil: time.Now; tests bring their own clock
}

// complete fills in defaults and checks the options against the plan.
func (o *Options) complete(p *plan.Plan) error {
	if o.MaxQueue == 0 {
		o.MaxQueue = 512
	}
	if o.SnapshotEvery == 0 {
		o.SnapshotEvery = 512
	}
	if o.SwapBytes == 0 {
		o.SwapBytes = 1 << 30
	}
	if o.Stretch == 0 {
		o.Stretch = 1.95
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	x := &o.Exec
	switch {
	case x.MaxRows < 1 || x.MaxSeqs < 1 || x.MaxOut < 1:
		return fmt.Errorf("engine: steps of %d rows, %d sequences and %d rows of logits: each must be at least 1",
			x.MaxRows, x.MaxSeqs, x.MaxOut)
	case len(x.Pages) != len(p.Groups):
		return fmt.Errorf("engine: page counts for %d groups, the plan has %d", len(x.Pages), len(p.Groups))
	case len(p.States) > 0 && x.Slots < 1:
		return fmt.Errorf("engine: the plan has recurrent states and there are no slots")
	case o.Stretch < 1:
		return fmt.Errorf("engine: stretch %v, must be at least 1", o.Stretch)
	}
	return nil
}
