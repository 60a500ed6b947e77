package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/baleenrun/baleen/internal/backend/cpu/isa"
	"github.com/baleenrun/baleen/internal/bench"
	"github.com/baleenrun/baleen/internal/config"
	"github.com/baleenrun/baleen/internal/fetch"
	"github.com/baleenrun/baleen/internal/model"
)

const benchLong = `Measure a model on this machine: the prefill of a prompt, the generation of one stream and of
several at once, the time from the start of a new process to its first token (of a 16-token
prompt), and peak memory. Each number is the median of some repetitions with its extremes. Beside
it stand the memory bandwidth that as many threads reach, and decode as a share of that limit.

Streams generate behind a context of --depth tokens, all from random prompts that no cache has.`

// benchFlags are the flags of "bench".
type benchFlags struct {
	bench.Options
	asJSON bool
	plot   string
	worker string // what a child process does: "first" or "full"
}

func (a *app) benchCommand() *cobra.Command {
	f := &benchFlags{}
	cmd := &cobra.Command{
		Use:               "bench MODEL",
		ValidArgsFunction: firstOnly(a.completeModels),
		Short:             "Measure how fast a model runs here",
		Long:              benchLong,
		Example: "  baleen bench qwen2.5-coder-0.5b --prompt 512 --generate 64 \\\n    --streams 1,8 " +
			"--threads 2 --plot speed.svg",
		Args: argsBetween(1, 1, "a MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.Check(); err != nil {
				return usageError{err}
			}
			if f.plot != "" {
				if _, err := bench.PlotFormat(f.plot); err != nil {
					return usageError{err}
				}
				dir := filepath.Dir(f.plot)
				if info, err := os.Stat(dir); err != nil || !info.IsDir() {
					return usagef("cannot plot to %s: there is no folder %s", f.plot, dir)
				}
			}
			if f.worker != "" {
				return a.benchWorker(cmd.Context(), args[0], f)
			}
			return a.bench(cmd.Context(), args[0], f)
		},
	}
	fl := cmd.Flags()
	fl.IntVar(&f.Prompt, "prompt", 512, "tokens of the prompt whose prefill is timed")
	fl.IntVar(&f.Generate, "generate", 64, "tokens that each stream generates")
	fl.IntVar(&f.Depth, "depth", 16, "tokens in a stream's context before it generates")
	fl.IntSliceVar(&f.Streams, "streams", []int{1, 8}, "numbers of streams at once")
	fl.IntVar(&f.Reps, "reps", 3, "repetitions of each measurement")
	fl.IntVar(
		&f.Newcomer,
		"newcomer",
		0,
		"also measure a prompt of so many tokens that arrives while a stream generates",
	)
	fl.BoolVar(&f.asJSON, "json", false, "print JSON")
	fl.StringVar(&f.plot, "plot", "", "also draw to this file, .svg or .png")
	fl.StringVar(&f.worker, "worker", "", "")
	_ = fl.MarkHidden("worker")
	a.settings(cmd, config.Device, config.Threads, config.KV, config.CPU)
	return cmd
}

func (a *app) threads() int {
	if n := a.cfg.Int(config.Threads); n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// bench starts processes of its own for what a running process would spoil: start-up time and peak memory.
func (a *app) bench(ctx context.Context, arg string, f *benchFlags) error {
	level, err := isa.Best(a.cfg.CPULimit())
	if err != nil {
		return err
	}
	path, err := a.locate(ctx, arg)
	if err != nil {
		return err
	}
	if err := model.CheckContext(path, f.Context()); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	worker := func(what string) []string {
		c := []string{
			self, "bench", path, "--worker", what, "--prompt", strconv.Itoa(f.Prompt), "--generate", strconv.Itoa(f.Generate),
			"--depth", strconv.Itoa(f.Depth), "--reps", strconv.Itoa(f.Reps), "--threads", strconv.Itoa(a.threads()),
			"--kv", a.cfg.String(config.KV), "--cpu", level.String(), "--device", a.cfg.String(config.Device), "--newcomer", strconv.Itoa(f.Newcomer),
		}
		for _, n := range f.Streams {
			c = append(c, "--streams", strconv.Itoa(n))
		}
		return c
	}
	a.note("reading memory on %d threads", a.threads())
	bandwidth := bench.ReadBandwidth(a.threads(), 2*time.Second)
	a.note("start of a new process")
	if _, err := bench.TimeToFirstToken(ctx, worker("first"), a.io.Err, 1); err != nil { // the file into memory
		return a.workerFailed(err)
	}
	ttft, err := bench.TimeToFirstToken(ctx, worker("first"), a.io.Err, f.Reps)
	if err != nil {
		return a.workerFailed(err)
	}
	r, err := bench.Measure(ctx, worker("full"), a.io.Err)
	if err != nil {
		return a.workerFailed(err)
	}
	r.Threads, r.CPU, r.ReadGBps = a.threads(), level.String(), bandwidth
	r.TTFTms, r.Spreads["ttft_ms"] = ttft.Median, ttft
	if bandwidth > 0 {
		r.DecodeShare = r.DecodeTPS * float64(r.BytesPerToken) / 1e9 / bandwidth
	}
	if f.asJSON {
		err = a.writeJSON(r)
	} else {
		a.benchTable(r)
	}
	if f.plot != "" { // last: what was measured is not lost with it
		err = errors.Join(err, bench.WritePlot(f.plot, r))
	}
	return err
}

func (a *app) workerFailed(err error) error {
	if worker := new(bench.WorkerError); errors.As(err, &worker) {
		return errFailed // it has said why
	}
	return err
}

// benchWorker is the child's side.
func (a *app) benchWorker(ctx context.Context, path string, f *benchFlags) error {
	o := a.modelOptions()
	if f.worker == "first" {
		o.Context, o.Seqs = 0, 1
		m, err := model.Open(ctx, path, o)
		if err != nil {
			return err
		}
		defer m.Close()
		if err := bench.FirstToken(ctx, m); err != nil {
			return err
		}
		_, err = fmt.Fprintln(a.io.Out, bench.FirstLine)
		return err
	}
	o.Context, o.Seqs = f.Context(), f.MaxStreams()
	o.CacheTokens = (f.MaxStreams() + 1) * f.Context()
	m, err := model.Open(ctx, path, o)
	if err != nil {
		return err
	}
	defer m.Close()
	r, err := bench.Run(ctx, m, f.Options, func(s string) { a.note("%s", s) })
	if err != nil {
		return err
	}
	return json.NewEncoder(a.io.Out).Encode(r)
}

func (a *app) benchTable(r bench.Result) {
	w := tabwriter.NewWriter(a.io.Out, 0, 0, 2, ' ', 0)
	row := func(name, value, note string) { fmt.Fprintf(w, "%s\t%s\t%s\n", name, value, note) }
	spread := func(key, format string) string {
		s := r.Spreads[key]
		return fmt.Sprintf("("+format+" to "+format+")", s.Min, s.Max)
	}
	fmt.Fprintf(a.io.Out, "%s, %s %s, %.2f G parameters, %d threads, %s\n", r.Model, r.Family, r.Quantization,
		float64(r.Parameters)/1e9, r.Threads, r.CPU)
	row(fmt.Sprintf("prefill %d", r.Prompt), fmt.Sprintf("%.1f tokens/s", r.PrefillTPS), spread("prefill_tps", "%.1f"))
	row(fmt.Sprintf("decode %d", r.Generate), fmt.Sprintf("%.1f tokens/s", r.DecodeTPS), spread("decode_tps", "%.1f"))
	var counts []int
	for key := range r.AggregateTPS {
		if n, err := strconv.Atoi(key); err == nil && n > 1 {
			counts = append(counts, n)
		}
	}
	sort.Ints(counts)
	for _, n := range counts {
		key := strconv.Itoa(n)
		row(key+" streams", fmt.Sprintf("%.1f tokens/s", r.AggregateTPS[key]), spread("aggregate_tps_"+key, "%.1f"))
	}
	row("first token", fmt.Sprintf("%.0f ms", r.TTFTms), spread("ttft_ms", "%.0f")+" from process start")
	row("peak memory", fetch.Bytes(r.PeakRSS), "weights "+fetch.Bytes(r.WeightBytes))
	row("read limit", fmt.Sprintf("%.1f GB/s", r.ReadGBps),
		fmt.Sprintf("decode reads %s a token: %.0f %% of the limit", fetch.Bytes(r.BytesPerToken), 100*r.DecodeShare))
	if n := r.Newcomer; n != nil {
		row(fmt.Sprintf("newcomer %d", n.Prompt), fmt.Sprintf("%.0f ms", n.FirstBeside),
			fmt.Sprintf("to its first token beside a stream, %.0f ms alone: %.2f times; same prefix again %.0f ms",
				n.FirstAlone, n.FirstBeside/n.FirstAlone, n.FirstAgain))
		row("the stream", fmt.Sprintf("%.1f ms", n.IntervalBeside),
			fmt.Sprintf("between tokens meanwhile, %.1f ms alone: %.2f times; longest %.1f ms",
				n.IntervalAlone, n.IntervalBeside/n.IntervalAlone, n.WorstBeside))
	}
	w.Flush()
}
