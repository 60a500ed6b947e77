package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/backend/cpu"
	"github.com/baleenrun/baleen/internal/family"
	"github.com/baleenrun/baleen/internal/synth"
)

// residence is what a process of its own tells of opening a model.
type residence struct {
	Before   int64 // resident bytes before it was opened
	Peak     int64 // the most that ever were resident
	Promised int64 // by Memory
}

// status reads a line of /proc/self/status, in bytes.
func status(name string) (int64, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(b) {
		if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == name+":" {
			n, err := strconv.ParseInt(string(f[1]), 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("no %s in /proc/self/status", name)
}

// reside opens the model of a folder on the CPU, runs a step, and reports.
func reside(path string) (r residence, err error) {
	if r.Before, err = status("VmRSS"); err != nil {
		return r, err
	}
	c, err := family.Open(path)
	if err != nil {
		return r, err
	}
	defer c.Close()
	p, err := c.Lower(family.Options{Context: 64})
	if err != nil {
		return r, err
	}
	o := backend.Options{MaxRows: 8, MaxSeqs: 1, MaxOut: 1}
	seq := backend.Seq{Rows: 2}
	for range p.Groups {
		o.Pages, seq.Pages = append(o.Pages, 4), append(seq.Pages, []int32{0, 1})
	}
	be := cpu.New(cpu.Options{Threads: 2})
	mem, err := be.Memory(p, o)
	if err != nil {
		return r, err
	}
	r.Promised = mem.Weights + mem.Scratch
	for _, n := range mem.Page {
		r.Promised += 4 * n
	}
	x, err := be.Compile(p, o)
	if err != nil {
		return r, err
	}
	defer x.Close()
	if err := x.Submit(&backend.Batch{Tokens: []int32{1, 2}, Out: []int32{1}, Seqs: []backend.Seq{seq}}); err != nil {
		return r, err
	}
	if _, err := x.Wait(); err != nil {
		return r, err
	}
	r.Peak, err = status("VmHWM")
	return r, err
}

const residePath = "BALEEN_TEST_RESIDE"

// TestMemoryIsWhatAModelTakes opens checkpoints whose weights are converted, in a process of its own, and compares
// the most memory that was ever resident with what Memory promised. BALEEN_TEST_LARGE makes them ten times larger,
// over 2 GB.
func TestMemoryIsWhatAModelTakes(t *testing.T) {
	if path := os.Getenv(residePath); path != "" {
		r, err := reside(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.NewEncoder(os.Stderr).Encode(r); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, storage := range synth.Storages {
		t.Run(string(storage), func(t *testing.T) {
			f := synth.Folder{Storage: storage, Hidden: 1024, Width: 3584, Experts: 8, Layers: 1}
			if os.Getenv("BALEEN_TEST_LARGE") != "" {
				f.Layers = 12
			}
			dir := t.TempDir()
			if err := f.Write(dir); err != nil {
				t.Skipf("no files without contents can be made here: %v", err)
			}
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMemoryIsWhatAModelTakes$")
			child.Env = append(os.Environ(), residePath+"="+dir)
			var told bytes.Buffer
			child.Stderr = &told
			if out, err := child.Output(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var r residence
			if err := json.Unmarshal(told.Bytes(), &r); err != nil {
				t.Fatalf("%v: %q", err, told.String())
			}
			took := r.Peak - r.Before
			t.Logf("%d MiB were promised, at most %d were resident", r.Promised>>20, took>>20)
			if took > r.Promised+r.Promised/50+24<<20 || took < r.Promised*9/10 {
				t.Errorf("%d MiB were promised, at most %d were resident", r.Promised>>20, took>>20)
			}
		})
	}
}
