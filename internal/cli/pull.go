package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/baleenrun/baleen/internal/config"
	"github.com/baleenrun/baleen/internal/fetch"
	"github.com/baleenrun/baleen/internal/store"
)

func (a *app) pullCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "pull [MODEL...]",
		Short: "Fetch models by name and print where they are",
		Long: "Fetch models by name, check their SHA-256, and print their paths, one a line. Without a name: the default\n" +
			"model. What is there already is left alone; a download that was cut off continues.\n\n" +
			"Models with names:\n" + catalogTable(),
		Example: "  baleen pull smollm2-135m",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{a.cfg.String(config.Model)}
			}
			for _, arg := range args {
				path, err := a.locate(cmd.Context(), arg)
				if err != nil {
					return err
				}
				fmt.Fprintln(a.io.Out, path)
			}
			return nil
		},
	}
}

func catalogTable() string {
	var b strings.Builder
	for i, e := range store.Catalog() {
		mark := ""
		if i == 0 {
			mark = ", the default"
		}
		fmt.Fprintf(&b, "  %-20s %s, %s, %s%s\n", e.Name, e.Title, fetch.Bytes(e.Size), e.Licence, mark)
	}
	return strings.TrimRight(b.String(), "\n")
}
