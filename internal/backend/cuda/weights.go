package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/baleenrun/baleen/internal/backend/cuda/driver"
	"github.com/baleenrun/baleen/internal/plan"
)

// stageBytes is the size of a buffer in which packed weights wait for their copy to the device. There are two: one is
// packed
// into while the other is copied.
const stageBytes = 64 << 20

// A piece is a run of groups of one matrix that is packed at once.
type piece struct {
	w         *plan.Weight
	row, rows int // of the source, over all experts
	dst       int // in the stage
	groups    int
}

// upload packs all weights and vectors and copies them to the device.
func (e *exec) upload() error {
	u := &uploader{e: e, free: make(chan []byte, 2)}
	for range 2 {
		var b []byte
		err := e.c.Do(func() (err error) {
			b, err = e.c.HostAlloc(int(min(stageBytes, max(1<<20, e.sizes.weights))))
			return err
		})
		if err != nil {
			return err
		}
		u.stages = append(u.stages, b)
		u.free <- b
	}
	err := u.all()
	if u.stage != nil { // an error came before it was sent
		u.free <- u.stage
	}
	for range u.stages {
		<-u.free
	}
	return errors.Join(err, u.failed, e.c.Do(func() error {
		return errors.Join(e.c.HostFree(u.stages[0]), e.c.HostFree(u.stages[1]))
	}))
}

type uploader struct {
	e      *exec
	stages [][]byte
	free   chan []byte // stages that no copy reads; received from before failed is read
	failed error       // of copies: written on the context's thread

	stage  []byte // being filled
	used   int
	at     driver.Ptr // where its first byte goes
	pieces []piece

	total int64
	done  atomic.Int64
}

func (u *uploader) all() error {
	p := u.e.plan
	multiplied := p.Multiplied()
	for i := range p.Weights {
		if multiplied[i] {
			u.total += p.Weights[i].Size()
		}
	}
	for i := range p.Weights {
		if multiplied[i] {
			if err := u.weight(i); err != nil {
				return err
			}
		}
	}
	for i := range p.Vectors {
		if err := u.vector(i); err != nil {
			return err
		}
	}
	if err := u.flush(); err != nil {
		return err
	}
	return plan.Unchanged(p.Files(func(plan.WeightID) bool { return true }))
}

func (u *uploader) weight(i int) error {
	w := &u.e.plan.Weights[i]
	per, size, err := groupShape(w.Type, w.K)
	if err != nil {
		return err
	}
	if size > len(u.stages[0]) {
		return fmt.Errorf("weight %q: rows of %d values are too long", w.Name, w.K)
	}
	at := u.e.weights + driver.Ptr(u.e.weightAt[i])
	few := max(1, (256<<10)/size, w.Together()/per)
	for x := range max(1, w.Experts) {
		for r := 0; r < w.Rows; {
			if err := u.room(at, size); err != nil {
				return err
			}
			n := min(few, (w.Rows-r+per-1)/per, (len(u.stage)-u.used)/size)
			end := min(r+n*per, w.Rows)
			u.pieces = append(u.pieces, piece{w: w, row: x*w.Rows + r, rows: end - r, dst: u.used, groups: n})
			u.used += n * size
			at += driver.Ptr(n * size)
			r = end
		}
	}
	return nil
}

// room makes sure that n bytes for address at fit behind what is in the stage.
func (u *uploader) room(at driver.Ptr, n int) error {
	if u.stage != nil && (u.used+n > len(u.stage) || at != u.at+driver.Ptr(u.used)) {
		gap := int64(at) - int64(u.at) - int64(u.used)
		if gap >= 0 && gap < align && u.used+int(gap)+n <= len(u.stage) {
			u.used += int(gap) // between things that are aligned
			return nil
		}
		if err := u.flush(); err != nil {
			return err
		}
	}
	if u.stage == nil {
		u.stage, u.used, u.at = <-u.free, 0, at
		if u.failed != nil {
			u.free <- u.stage
			u.stage = nil
			return u.failed
		}
	}
	return nil
}

func (u *uploader) vector(i int) error {
	v := u.e.plan.Vectors[i].Data
	at := u.e.weights + driver.Ptr(u.e.vectorAt[i])
	for b := bytesOf(v); len(b) > 0; {
		n := min(len(b), len(u.stages[0]))
		if err := u.room(at, n); err != nil {
			return err
		}
		copy(u.stage[u.used:], b[:n])
		u.used, at, b = u.used+n, at+driver.Ptr(n), b[n:]
	}
	return nil
}

// flush packs the pieces on all processors and starts the copy.
func (u *uploader) flush() error {
	if u.stage == nil {
		return nil
	}
	stage, n, at := u.stage, u.used, u.at
	err := u.pack()
	u.stage, u.pieces = nil, u.pieces[:0]
	if err != nil {
		u.free <- stage
		return err
	}
	u.e.c.Go(func() {
		u.failed = errors.Join(u.failed, u.e.c.In(at, stage[:n]), u.e.c.Sync())
		u.free <- stage
	})
	return nil
}

func (u *uploader) pack() error {
	var next atomic.Int64
	workers := min(runtime.GOMAXPROCS(0), len(u.pieces))
	errs := make([]error, max(workers, 1))
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			var buf []byte
			for {
				j := int(next.Add(1)) - 1
				if j >= len(u.pieces) || errs[i] != nil {
					return
				}
				buf, errs[i] = u.packPiece(&u.pieces[j], buf)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// packPiece packs one piece. Rows that lie in a file are read, not touched in their mapping.
func (u *uploader) packPiece(p *piece, buf []byte) ([]byte, error) {
	per, size, err := groupShape(p.w.Type, p.w.K)
	if err != nil {
		return buf, err
	}
	rowBytes, err := p.w.Type.RowBytes(p.w.K)
	if err != nil {
		return buf, err
	}
	n := p.rows * rowBytes
	var src []byte
	if p.w.Parts == nil {
		src = p.w.Bytes[p.row*rowBytes:][:n]
	} else {
		if cap(buf) < n {
			buf = make([]byte, n)
		}
		src = buf[:n]
		if err := p.w.ReadRows(src, p.row, p.rows); err != nil {
			return buf, err
		}
	}
	for g := range p.groups {
		packGroup(
			p.w.Type,
			u.stage[p.dst+g*size:p.dst+(g+1)*size],
			src[g*per*rowBytes:min((g+1)*per*rowBytes, n)],
			p.w.K,
		)
	}
	done := u.done.Add(int64(n))
	if f := u.e.opt.Progress; f != nil {
		f(done, u.total)
	}
	return buf, nil
}
