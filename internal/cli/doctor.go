package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/baleenrun/baleen/internal/backend/cpu/isa"
	"github.com/baleenrun/baleen/internal/config"
	"github.com/baleenrun/baleen/internal/doctor"
	"github.com/baleenrun/baleen/internal/fetch"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/store"
)

func (a *app) doctorCommand() *cobra.Command {
	var asJSON, quick bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine this machine: what it has, which models fit",
		Long: "Examine this machine: the processor and its instruction sets, limits of memory, how fast memory and " +
			"disk can\n" +
			"be read, GPUs, and which models of the catalog fit here and about how fast they would run. Speeds of " +
			"models\n" +
			"are estimates: what memory gives, over the bytes that a token reads, times 0.83, the median share that\n" +
			"decoding reached in the benchmarks of this project. \"baleen bench\" measures.",
		Example: "  baleen doctor",
		Args:    argsBetween(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.examine(cmd.Context(), quick)
			if err != nil {
				return err
			}
			if asJSON {
				return a.writeJSON(r)
			}
			return a.showMachine(r)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&quick, "quick", false, "measure nothing")
	a.settings(cmd, config.Threads, config.CPU)
	return cmd
}

// A report is what doctor found.
type report struct {
	Version   string           `json:"version"`
	System    string           `json:"system"`
	Processor doctor.Processor `json:"processor"`
	Levels    []string         `json:"instruction_sets"` // that kernels use, the best last
	Using     string           `json:"using"`
	Memory    *memoryReport    `json:"memory,omitempty"`
	Disk      *doctor.Disk     `json:"disk,omitempty"`
	GPUs      []doctor.GPU     `json:"gpus"`
	Places    []store.Place    `json:"other_programs"`
	Models    []fitReport      `json:"models"`
	Problems  []string         `json:"problems"`
}

type memoryReport struct {
	Total     int64   `json:"total"`
	Available int64   `json:"available"`
	Limit     string  `json:"limited_by"`
	Bandwidth float64 `json:"bytes_per_second,omitempty"`
}

// A fitReport says whether a model of the catalog would run here.
type fitReport struct {
	Name   string  `json:"name"`
	Title  string  `json:"title"`
	Size   int64   `json:"size"`
	Here   bool    `json:"here"`
	Fits   bool    `json:"fits"`
	Needs  int64   `json:"needs"`                       // memory, about
	Speed  float64 `json:"tokens_per_second,omitempty"` // about
	Reason string  `json:"reason,omitempty"`
}

func (a *app) examine(ctx context.Context, quick bool) (*report, error) {
	st, err := a.store()
	if err != nil {
		return nil, err
	}
	v := versionInfo()
	r := &report{
		Version:   v.Version,
		System:    v.OS + "/" + v.Arch + ", " + v.Go,
		Processor: doctor.FindProcessor(),
		GPUs:      doctor.GPUs(),
	}
	if r.GPUs == nil {
		r.GPUs = []doctor.GPU{}
	}
	r.Problems = []string{}
	for _, l := range isa.Levels() {
		r.Levels = append(r.Levels, l.String())
	}
	best, err := isa.Best(a.cfg.CPULimit())
	if err != nil {
		return nil, err
	}
	r.Using = best.String()
	if best == isa.Generic {
		r.Problems = append(r.Problems, "no kernels for this processor are used: models run many times slower")
	}
	if q := r.Processor.Quota; q > 0 && q < float64(r.Processor.Cores) {
		r.Problems = append(
			r.Problems,
			fmt.Sprintf("a cgroup allows %.1f processors' time but %d threads would run: --threads %d is steadier",
				q, r.Processor.Cores, max(1, int(q))),
		)
	}
	if b, ok := model.SystemBudget(); ok {
		r.Memory = &memoryReport{Total: b.Total, Available: b.Available, Limit: b.Source}
		if !quick && b.Available > 1<<30 {
			a.progressLine("measuring memory ...")
			r.Memory.Bandwidth = doctor.Bandwidth(a.cfg.Int(config.Threads), 400*time.Millisecond)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if load, ok := doctor.Load(); ok && !quick && load > 2*float64(r.Processor.Cores) {
		r.Problems = append(
			r.Problems,
			fmt.Sprintf(
				"other programs are busy here (load %.0f on %d threads): what is measured and estimated is too low",
				load,
				r.Processor.Cores,
			),
		)
	}
	if st.Dir() == "" {
		r.Problems = append(r.Problems, store.ErrNoHome.Error()+"; until then nothing can be fetched")
	} else {
		a.examineDisk(r, st, quick)
	}
	for _, err := range st.Blocked() {
		r.Problems = append(r.Problems, err.Error())
	}
	r.Places = []store.Place{}
	for _, p := range store.Places(a.getenv) {
		if _, err := os.Stat(p.Dir); err == nil {
			r.Places = append(r.Places, p)
		}
	}
	for _, e := range store.Catalog() {
		r.Models = append(r.Models, fit(e, r, st))
	}
	return r, nil
}

// progressLine shows on a terminal what is going on.
func (a *app) progressLine(s string) {
	if a.io.ErrTTY {
		fmt.Fprintf(a.io.Err, "\r\x1b[K%s", s)
	}
}

func (a *app) examineDisk(r *report, st *store.Store, quick bool) {
	dir := st.Models()
	for { // the folder may not be there yet; its parent's disk is the one that counts
		_, err := os.Stat(dir)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	d, err := doctor.FindDisk(dir)
	if err != nil {
		return
	}
	r.Disk = &d
	d.Path = st.Models()
	if d.Free < 2e9 {
		r.Problems = append(r.Problems, fmt.Sprintf("only %s are free for models in %s", fetch.Bytes(d.Free), d.Path))
	}
	largest := store.Model{}
	if have, err := st.List(); err == nil {
		for _, m := range have {
			if m.Own && m.Size > largest.Size && strings.HasSuffix(m.Path, ".gguf") {
				largest = m
			}
		}
	}
	if !quick && largest.Path != "" {
		a.progressLine("measuring the disk ...")
		d.Read = doctor.ReadSpeed(largest.Path, 500*time.Millisecond)
	}
	a.progressLine("")
}

// fit judges a model of the catalog: its weights, a tenth more for the cache and for work, and a little for the rest.
func fit(e store.Entry, r *report, st *store.Store) fitReport {
	f := fitReport{
		Name:  e.Name,
		Title: e.Title,
		Size:  e.Size,
		Here:  st.Has(e),
		Fits:  true,
		Needs: e.Size + e.Size/10 + 200e6,
	}
	switch {
	case r.Memory != nil && f.Needs > r.Memory.Total:
		f.Fits, f.Reason = false, "more than the memory"
	case r.Memory != nil && f.Needs > r.Memory.Available:
		f.Fits, f.Reason = false, "more than what is free now"
	case r.Disk != nil && !f.Here && e.Size > r.Disk.Free:
		f.Fits, f.Reason = false, "more than the disk has room for"
	}
	active := e.Active
	if active == 0 {
		active = e.Size
	}
	if r.Memory != nil && f.Fits &&
		r.Using != isa.Generic.String() { // plain Go is bound by arithmetic, nobody knows how far
		f.Speed = doctor.TokensPerSecond(r.Memory.Bandwidth, active)
	}
	return f
}

func (a *app) showMachine(r *report) error {
	w := tabwriter.NewWriter(a.io.Out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("Baleen", "%s, %s", r.Version, r.System)
	name := r.Processor.Name
	if name == "" {
		name = "unknown"
	}
	cores := fmt.Sprintf("%d threads", r.Processor.Cores)
	if r.Processor.Machine != r.Processor.Cores {
		cores += fmt.Sprintf(" of %d", r.Processor.Machine)
	}
	row("Processor", "%s, %s", name, cores)
	kernels := r.Using
	if others := slices.DeleteFunc(slices.Clone(r.Levels), func(l string) bool { return l == r.Using }); len(
		others,
	) > 0 {
		kernels += " (--cpu could choose " + strings.Join(others, " or ") + ")"
	}
	row("Kernels", "%s", kernels)
	if m := r.Memory; m != nil {
		row("Memory", "%s, %s free, limited by the %s", fetch.Bytes(m.Total), fetch.Bytes(m.Available), m.Limit)
		if m.Bandwidth > 0 {
			row("", "read at %s/s", fetch.Bytes(int64(m.Bandwidth)))
		}
	}
	if d := r.Disk; d != nil {
		kind := d.Type
		if kind != "" {
			kind = ", " + kind
		}
		row("Disk", "%s: %s free of %s%s", a.tilde(d.Path), fetch.Bytes(d.Free), fetch.Bytes(d.Total), kind)
		if d.Read > 0 {
			row("", "read at %s/s", fetch.Bytes(int64(d.Read)))
		}
	}
	for i, g := range r.GPUs {
		label := "GPU"
		if i > 0 {
			label = ""
		}
		about := g.Name
		if g.Memory > 0 {
			about += ", " + fetch.Bytes(g.Memory)
		}
		if g.Driver != "" {
			about += ", driver " + g.Driver
		}
		about += "; not used, models run on the processor"
		row(label, "%s", about)
	}
	if len(r.GPUs) == 0 {
		row("GPU", "none seen")
	}
	for i, p := range r.Places {
		label := "Other models"
		if i > 0 {
			label = ""
		}
		row(label, "%s: %s", p.Kind, a.tilde(p.Dir))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, p := range r.Problems {
		fmt.Fprintf(a.io.Out, "! %s\n", printableLine(p))
	}
	fmt.Fprintln(a.io.Out)
	models := a.table()
	fmt.Fprintln(models, "MODEL\tSIZE\tFITS\tABOUT\tWHAT")
	for _, f := range r.Models {
		fits, speed := "yes", "-"
		if !f.Fits {
			fits = "no"
		}
		if f.Here {
			fits += ", here"
		}
		if f.Speed > 0 {
			speed = fmt.Sprintf("%.3g tokens/s", f.Speed)
		}
		what := f.Title
		if f.Reason != "" {
			what = f.Reason
		}
		fmt.Fprintf(models, "%s\t%s\t%s\t%s\t%s\n", f.Name, fetch.Bytes(f.Size), fits, speed, what)
	}
	return models.Flush()
}
