package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/baleenrun/baleen/internal/config"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/verify"
)

const evalLong = `Measure the perplexity of a model on a text, with llama-perplexity's windows: the text is cut
into windows of --ctx tokens, each starts with an empty cache (and with the model's begin token
where it wants one), and the tokens of its second half are scored.`

func (a *app) evalCommand() *cobra.Command {
	var text string
	var window, chunk int
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "eval MODEL --text FILE",
		ValidArgsFunction: firstOnly(a.completeModels),
		Short:             "Measure the perplexity of a model on a text",
		Long:              evalLong,
		Example:           "  baleen eval smollm2-135m --text wiki.txt --json",
		Args:              argsBetween(1, 1, "a MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case text == "":
				return usagef("--text is missing")
			case window < 4:
				return usagef("--ctx is %d, want at least 4", window)
			case chunk < 0:
				return usagef("--chunk is %d, want 0 (all at once) or more", chunk)
			}
			return a.eval(cmd.Context(), args[0], text, window, chunk, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringVar(&text, "text", "", "UTF-8 text, - for standard input (required)")
	f.IntVar(&window, "ctx", 512, "tokens of a window")
	f.IntVar(&chunk, "chunk", 0, "tokens of a step (default: a whole window)")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	a.settings(cmd, config.Device, config.Threads, config.KV, config.CPU)
	return cmd
}

// maxText bounds the text of an evaluation.
const maxText = 1 << 30

func (a *app) readText(name string) (string, error) {
	var in io.Reader = a.io.In
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return "", err
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxText+1))
	if err != nil {
		return "", err
	}
	if len(b) > maxText || !utf8.Valid(b) {
		return "", fmt.Errorf("%s is not UTF-8 text of at most 1 GiB", name)
	}
	return strings.TrimSuffix(string(b), "\n"), nil // as llama.cpp reads files
}

func (a *app) eval(ctx context.Context, arg, file string, window, chunk int, asJSON bool) error {
	text, err := a.readText(file)
	if err != nil {
		return err
	}
	path, err := a.locate(ctx, arg)
	if err != nil {
		return err
	}
	c, err := model.OpenPlan(path, window)
	if err != nil {
		return err
	}
	defer c.Close()
	tokens, bos, err := c.Tokens(text)
	if err != nil {
		return err
	}
	var last time.Time
	running := func(p verify.Perplexity, windows int) {
		if now := time.Now(); a.io.ErrTTY || now.Sub(last) > 10*time.Second || p.Windows == windows {
			last = now
			line := fmt.Sprintf("window %d of %d: perplexity %.4f", p.Windows, windows, p.Perplexity)
			if a.io.ErrTTY {
				fmt.Fprintf(a.io.Err, "\r%s ", line)
			} else {
				fmt.Fprintln(a.io.Err, line)
			}
		}
	}
	o := verify.Options{
		Chunk:   chunk,
		Device:  a.cfg.String(config.Device),
		Threads: a.cfg.Int(config.Threads),
		CPU:     a.cfg.CPULimit(),
		KV:      kvType(a.cfg.String(config.KV)),
	}
	r, err := verify.Measure(ctx, c.Plan, verify.Text{Tokens: tokens, BOS: bos}, window, o, running)
	if a.io.ErrTTY {
		fmt.Fprintln(a.io.Err)
	}
	if err != nil {
		return err
	}
	if asJSON {
		return a.writeJSON(struct {
			Model string `json:"model"`
			verify.Perplexity
		}{c.Info.Name, r})
	}
	_, err = fmt.Fprintf(
		a.io.Out,
		"perplexity %.4f +/- %.4f (%d of %d tokens scored, %d windows of %d, %.1f s, %.0f tokens/s)\n",
		r.Perplexity,
		r.Error,
		r.Scored,
		r.Tokens,
		r.Windows,
		r.Window,
		r.Seconds,
		float64(r.Windows*r.Window)/r.Seconds,
	)
	return err
}
