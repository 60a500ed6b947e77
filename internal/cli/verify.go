package cli

import (
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/baleenrun/baleen/internal/config"
	"github.com/baleenrun/baleen/internal/verify"
)

const verifyLong = `Run a checkpoint on the tokens of a reference and compare: every logit within 1e-4 plus
1e-4 of its size, the most probable token equal wherever the reference's top two logits differ by
more than 1e-3, and the same greedy continuation (computed token by token behind the reference's
own text, so that one near tie does not count twice). Exit status 1 if it does not pass.

FILE is a safetensors file with input_ids [n], logits [n, vocabulary] and greedy_ids [m].
--batch runs equal sequences at once and wants equal bits from all; --batch, --chunk, --threads
and, for block-quantized weights, --device never change logits_sha256.`

func (a *app) verifyCommand() *cobra.Command {
	var reference, kv string
	var o verify.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "verify PATH --reference FILE",
		Short:   "Compare a checkpoint with reference logits",
		Long:    verifyLong,
		Example: "  baleen verify ./llama --reference ./llama/golden.safetensors \\\n    --batch 4 --chunk 8 --json",
		Args:    argsBetween(1, 1, "the PATH of a checkpoint"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case reference == "":
				return usagef("--reference is missing")
			case kv != "f16" && kv != "f32":
				return usagef("--kv is %q, want f16 or f32", kv)
			case o.Batch < 1 || o.Batch > 64:
				return usagef("--batch is %d, want 1 to 64", o.Batch)
			case o.Chunk < 0:
				return usagef("--chunk is %d, want 0 (all at once) or more", o.Chunk)
			}
			path, err := a.locate(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			o.KV, o.Threads, o.CPU, o.Device = kvType(
				kv,
			), a.cfg.Int(
				config.Threads,
			), a.cfg.CPULimit(), a.cfg.String(
				config.Device,
			)
			ref, err := verify.ReadReference(reference)
			if err != nil {
				return err
			}
			r, err := verify.Checkpoint(cmd.Context(), path, ref, o)
			if err != nil {
				return err
			}
			return a.showReport(r, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringVar(&reference, "reference", "", "safetensors file with what another implementation computed (required)")
	f.IntVar(&o.Batch, "batch", 1, "equal sequences that run at once")
	f.IntVar(&o.Chunk, "chunk", 0, "tokens of a step for each sequence (default: all)")
	f.StringVar(&kv, "kv", "f32", "storage of cached keys and values: f16 or f32")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	a.settings(cmd, config.Device, config.Threads, config.CPU)
	return cmd
}

func (a *app) showReport(r verify.Report, asJSON bool) error {
	if asJSON {
		if err := a.writeJSON(r); err != nil {
			return err
		}
	} else {
		w := a.io.Out
		fmt.Fprintf(w, "family            %s\n", r.Family)
		fmt.Fprintf(w, "positions         %d\n", r.Positions)
		fmt.Fprintf(w, "max abs error     %s (%s of the tolerance, at position %d, token %d)\n",
			number("%.3g", r.MaxAbsError), number("%.3f", r.MaxTolerance), r.WorstAt[0], r.WorstAt[1])
		fmt.Fprintf(w, "rms error         %s\n", number("%.3g", r.RMSError))
		fmt.Fprintf(w, "argmax agreement  %.4f\n", r.ArgmaxAgreement)
		fmt.Fprintf(w, "greedy agreement  %.4f\n", r.GreedyAgreement)
		fmt.Fprintf(w, "KL divergence     %s\n", number("%.3g", r.KL))
		fmt.Fprintf(w, "batch identical   %v\n", r.BatchIdentical)
		fmt.Fprintf(w, "logits SHA-256    %s\n", r.LogitsSHA256)
		result := "pass"
		if !r.Pass {
			result = "FAIL"
		}
		fmt.Fprintln(w, result)
	}
	if !r.Pass {
		return errFailed
	}
	return nil
}

// number writes a number of a report, which has the largest one for what is infinite or none.
func number(format string, v float64) string {
	if v == math.MaxFloat64 {
		return "infinite"
	}
	return fmt.Sprintf(format, v)
}
