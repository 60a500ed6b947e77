package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/baleenrun/baleen/internal/fetch"
	"github.com/baleenrun/baleen/internal/store"
	"github.com/baleenrun/baleen/internal/synth"
)

func (a *app) synthCommand() *cobra.Command {
	var shape, recipe string
	var seed uint64
	cmd := &cobra.Command{
		Use:   "synth FILE --shape NAME [--quant NAME]",
		Short: "Write a GGUF file of a known shape with random weights",
		Long: "Write a GGUF file of a known shape with random weights, for measuring speed and memory. It loads in\n" +
			"llama.cpp too, and its formats are those that llama.cpp's quantizer would choose.\n\n" +
			"Shapes:\n" + shapeTable(),
		Example: "  baleen synth /tmp/1b.gguf --shape llama-3.2-1b --quant Q4_0",
		Args:    argsBetween(1, 1, "the FILE to write"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if shape == "" {
				return usagef("--shape is missing")
			}
			s, err := synth.Lookup(shape)
			if err != nil {
				return usageError{err}
			}
			r, err := synth.LookupRecipe(recipe)
			if err != nil {
				return usageError{err}
			}
			return a.synth(cmd.Context(), args[0], s, r, seed)
		},
	}
	cmd.Flags().StringVar(&shape, "shape", "", "name of the shape (required)")
	cmd.Flags().
		StringVar(&recipe, "quant", "Q4_0", "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q4_K_M, Q5_K_M "+
			"or Q6_K")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "the same seed writes the same file")
	return cmd
}

// synth writes beside the file and renames, so that FILE is whole or not there.
func (a *app) synth(ctx context.Context, path string, s synth.Shape, r synth.Recipe, seed uint64) (err error) {
	if path == "" {
		return usagef("the FILE to write has no name")
	}
	if fi, err := os.Stat(path); err == nil && !fi.Mode().IsRegular() {
		return usagef(
			"%s is no regular file: name the file to write, such as %s",
			path,
			filepath.Join(path, s.Name+".gguf"),
		)
	}
	need := synth.Size(s, r)
	if free, err := store.FreeBytes(filepath.Dir(path)); err == nil && free < need {
		return fmt.Errorf("%s needs %s, %s has %s free", path, fetch.Bytes(need), filepath.Dir(path), fetch.Bytes(free))
	}
	tmp := path + ".part"
	file, err := os.Create(tmp)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			file.Close()
			os.Remove(tmp)
		}
	}()
	began, last := time.Now(), time.Now()
	progress := func(done int64) {
		if now := time.Now(); now.Sub(last) > 2*time.Second {
			last = now
			a.note("wrote %s of %s", fetch.Bytes(done), fetch.Bytes(need))
		}
	}
	if err := synth.Write(ctx, file, s, r, seed, progress); ctx.Err() != nil {
		return ctx.Err() // at which tensor it was stopped does not matter
	} else if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	fmt.Fprintf(a.io.Out, "%s: %s %s, %s of weights, written in %s\n", path, s.Name, r.Name, fetch.Bytes(need),
		time.Since(began).Round(10*time.Millisecond))
	return nil
}

func shapeTable() string {
	var b strings.Builder
	for _, s := range synth.Shapes() {
		fmt.Fprintf(&b, "  %-14s %s, %d layers, width %d, %d tokens", s.Name, s.Arch, s.Layers, s.Dim, s.Vocab)
		if s.Experts > 0 {
			fmt.Fprintf(&b, ", %d/%d experts", s.Used, s.Experts)
		}
		b.WriteByte('\n')
	}
	return strings.TrimRight(b.String(), "\n")
}
