// Package backend is the interface between the engine and whatever executes a plan: the CPU now, GPUs later.
// It knows plans, pages and rows; it knows nothing of text, requests or files.
//
// The host never touches activations. What changes from step to step stands in a Batch; Submit and Wait are
// two calls, so that the engine prepares the next step while one runs. Pages and slots are opaque to the
// caller: it allocates them by number and copies them to and from host memory.
package backend

import "github.com/baleenrun/baleen/internal/plan"

// PageTokens is the number of positions in a page of every backend. Attention walks absolute positions in
// tiles that divide it or that it divides, so results never depend on where a page lies.
// RATIONALE: Why pages of 32 tokens?
const PageTokens = 32

// KVType is the storage type of cached keys and values.
type KVType uint8

const (
	KVF16 KVType = iota // the default
	KVF32               // exact; what golden comparisons use
)

// Options say how a plan is to be compiled. The zero value is usable apart from the limits. What only one kind of
// backend can be told is given when it is made.
type Options struct {
	KV      KVType
	MaxRows int   // rows of one step
	MaxSeqs int   // sequences of one step
	MaxOut  int   // rows with logits of one step
	Pages   []int // pages to reserve for each of the plan's groups
	Slots   int   // recurrent slots to reserve (running sequences and snapshots)
	// Progress is called with weight bytes loaded so far, from any goroutine; nil: not reported.
	Progress func(done, total int64)
}

// Memory says in bytes what a plan takes before anything is allocated.
type Memory struct {
	Weights int64   // packed weights and vectors
	Scratch int64   // buffers for MaxRows, threads' own scratch, logits
	Page    []int64 // one page of each group
	Slot    int64   // one recurrent slot
}

// Backend compiles plans.
type Backend interface {
	Name() string
	Memory(p *plan.Plan, o Options) (Memory, error)
	Compile(p *plan.Plan, o Options) (Exec, error)
}

// A Device is a backend on hardware with memory of its own, which may lack operations or formats.
type Device interface {
	Backend
	// Describe names the hardware, as in "NVIDIA H200".
	Describe() string
	// Supports tells what of the plan the device cannot execute, nil if it can execute all of it.
	Supports(p *plan.Plan) error
	// Free measures the device's memory in bytes.
	Free() (available, total int64, err error)
}

// A Batch is one step: the rows of several sequences, each sequence's rows together and in position order.
type Batch struct {
	Tokens []int32 // token of each row
	Seqs   []Seq   // in row order; they cover all rows
	Out    []int32 // rows whose logits are wanted, ascending
}

// A Seq is the part of a batch that belongs to one sequence.
type Seq struct {
	Rows  int       // rows in this step
	Pos   int       // position of the first of them
	Long  bool      // the sequence has more tokens than the plan's LongFrom: all of its positions turn by the ropes' Long
	Pages [][]int32 // for each group: page numbers by Pos/PageTokens; -1 where returned
	Slot  int32     // recurrent slot; ignored by plans without states
}

// An Exec is a compiled plan with its weights, pages and slots. Its methods are called by one goroutine.
// RATIONALE: Why does Submit not run on another goroutine?
type Exec interface {
	// Submit starts a step. The batch must stay unchanged until Wait returns.
	Submit(b *Batch) error
	// Wait ends the step and returns the logits, len(Out) rows of Vocab values, valid until the next Submit.
	Wait() ([]float32, error)

	// PageBytes is the size of one page of a group; PageOut and PageIn copy one to and from host memory,
	// PageCopy from one page to another. None may overlap a running step.
	PageBytes(group int) int
	PageOut(dst []byte, group int, page int32)
	PageIn(group int, page int32, src []byte)
	PageCopy(group int, dst, src int32)

	// The same for recurrent slots; SlotZero makes a slot that of a new sequence.
	SlotBytes() int
	SlotOut(dst []byte, slot int32)
	SlotIn(slot int32, src []byte)
	SlotCopy(dst, src int32)
	SlotZero(slot int32)

	Close() error
}
