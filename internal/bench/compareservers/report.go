package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

const idleTime = 2 * time.Second

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// An outcome is what one server did, over all turns.
type outcome struct {
	phases       map[string][]figures // of each turn
	single       []float64            // ms to the first token of a short request alone
	ready, start []float64            // ms from the start of the process
	idle, busy   []memory
	resting      []float64 // percent of a processor that it takes without requests
}

// A report is what is printed.
type report struct {
	names  []string
	by     map[string]*outcome
	order  []string     // of phases
	engine [2][]float64 // tokens/s: as bench measures, and at the depth of the rounds
	first  []float64    // ms of a prompt in the engine
	depth  int
}

func newReport() *report { return &report{by: map[string]*outcome{}} }

func (r *report) of(name string) *outcome {
	if r.by[name] == nil {
		r.by[name] = &outcome{phases: map[string][]figures{}}
		r.names = append(r.names, name)
	}
	return r.by[name]
}

// print writes Markdown. Of several turns it gives medians.
func (r *report) print(w io.Writer) {
	fmt.Fprintf(w, "Engine (baleen bench): %.1f tokens/s at depth 16, %.1f at depth %d, first token of %d %.2f ms\n\n",
		quantilesOf(r.engine[0]).p50, quantilesOf(r.engine[1]).p50, r.depth, oneToken, quantilesOf(r.first).p50)
	for i, phase := range []string{shortAtOnce, allAtOnce} {
		fmt.Fprintf(
			w,
			"While all stream, %s: %s of the engine's figure, turn by turn\n\n",
			phase,
			strings.Join(r.shares(phase, r.engine[i]), ", "),
		)
	}
	fmt.Fprintln(
		w,
		"| Load | server | requests | prompt + answer | tokens/s | all streaming | first token p50 | p99 | interval "+
			"p50 | p99 | longest |",
	)
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|---|---|")
	for _, phase := range r.order {
		for _, name := range r.names {
			turns := r.by[name].phases[phase]
			middle := func(pick func(figures) float64) float64 {
				var v []float64
				for _, f := range turns {
					v = append(v, pick(f))
				}
				return quantilesOf(v).p50
			}
			f := turns[0] // the same requests in all turns
			steady := ""  // only rounds have it
			if f.steady > 0 {
				steady = fmt.Sprintf("%.0f", middle(func(f figures) float64 { return f.steady }))
			}
			fmt.Fprintf(
				w,
				"| %s | %s | %d | %d + %d | %.0f | %s | %.0f ms | %.0f ms | %.1f ms | %.1f ms | %.0f ms |\n",
				phase,
				name,
				f.requests*len(turns),
				f.prompts/f.requests,
				f.tokens/f.requests,
				middle(func(f figures) float64 { return f.rate }),
				steady,
				middle(
					func(f figures) float64 { return f.first.p50 },
				),
				middle(func(f figures) float64 { return f.first.p99 }),
				middle(
					func(f figures) float64 { return f.gap.p50 },
				),
				middle(func(f figures) float64 { return f.gap.p99 }),
				middle(func(f figures) float64 { return f.gap.max }),
			)
		}
	}
	fmt.Fprintf(w, "\n| | %s |\n|---%s|\n", strings.Join(r.names, " | "), strings.Repeat("|---", len(r.names)))
	line := func(what string, cell func(*outcome) string) {
		fmt.Fprintf(w, "| %s", what)
		for _, name := range r.names {
			fmt.Fprintf(w, " | %s", cell(r.by[name]))
		}
		fmt.Fprintln(w, " |")
	}
	line(fmt.Sprintf("one token behind %d, alone", oneToken), func(o *outcome) string {
		q := quantilesOf(o.single)
		return fmt.Sprintf("%.2f ms (p99 %.2f)", q.p50, q.p99)
	})
	line("start to ready", func(o *outcome) string { return fmt.Sprintf("%.0f ms", quantilesOf(o.ready).p50) })
	line("start to first token", func(o *outcome) string { return fmt.Sprintf("%.0f ms", quantilesOf(o.start).p50) })
	line("memory after the start", func(o *outcome) string { return last(o.idle) })
	line("memory after the load", func(o *outcome) string { return last(o.busy) })
	line("processor at rest", func(o *outcome) string { return fmt.Sprintf("%.1f %%", quantilesOf(o.resting).p50) })
}

// shares gives what the first server generates while all stream as a share of what the engine did right behind it. Both
// meet the same machine only within a turn, so that medians of each would compare less.
func (r *report) shares(phase string, engine []float64) (out []string) {
	turns := r.by[r.names[0]].phases[phase]
	for i, e := range engine[:min(len(engine), len(turns))] {
		out = append(out, fmt.Sprintf("%.1f %%", 100*turns[i].steady/e))
	}
	return out
}

func last(m []memory) string {
	if len(m) == 0 {
		return ""
	}
	return m[len(m)-1].String()
}
