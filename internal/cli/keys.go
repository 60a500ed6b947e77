package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/baleenrun/baleen/internal/auth"
	"github.com/baleenrun/baleen/internal/config"
	"github.com/baleenrun/baleen/internal/store"
)

func (a *app) keysPath() (string, error) {
	home, err := store.Home(a.cfg.String(config.Home), a.getenv)
	if err != nil {
		return "", err
	}
	return filepath.Join(home, "keys.json"), nil
}

func (a *app) keysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "keys", Short: "Make, list and revoke API keys of servers", Args: noSuchCommand, SuggestionsMinimumDistance: 2,
		Example: "  baleen keys add laptop\n  baleen keys list\n  baleen keys revoke laptop",
		Long: "API keys of this user's servers. Once there is one, every request needs one; running servers notice\n" +
			"changes at once. Only checksums are kept: a key is shown when it is made and never again.",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var scopes string
	add := &cobra.Command{
		Use: "add NAME", Short: "Make a key and print it", Args: argsBetween(1, 1, "NAME"),
		Long: "Make a key and print it. It allows one or more of these: infer, to ask for answers and for what " +
			"models there\n" +
			"are; manage, to fetch, make, remove and unload models; watch, to read /metrics.",
		Example: "  baleen keys add laptop\n  baleen keys add admin --scopes all",
		RunE: func(_ *cobra.Command, args []string) error {
			list, err := auth.ParseScopes(scopes)
			if err != nil {
				return usageError{err}
			}
			path, err := a.keysPath()
			if err != nil {
				return err
			}
			key, err := auth.Add(path, args[0], list)
			if err != nil {
				return err
			}
			fmt.Fprintln(a.io.Out, key)
			return nil
		},
	}
	add.Flags().
		StringVar(&scopes, "scopes", "infer", "what the key allows: infer, manage, watch, or all; separated by commas")
	list := &cobra.Command{
		Use: "list", Short: "List the keys", Args: argsBetween(0, 0, "none"),
		RunE: func(*cobra.Command, []string) error {
			path, err := a.keysPath()
			if err != nil {
				return err
			}
			keys, err := auth.ReadFile(path)
			if err != nil {
				return err
			}
			if len(keys) == 0 {
				a.note("there are no keys; baleen keys add NAME makes one")
				return nil
			}
			w := tabwriter.NewWriter(a.io.Out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tSCOPES\tMADE")
			for _, k := range keys {
				names := make([]string, len(k.Scopes))
				for i, s := range k.Scopes {
					names[i] = string(s)
				}
				fmt.Fprintf(w, "%s\t%s\t%s\n", k.Name, strings.Join(names, ","), k.Made.Format(time.DateTime))
			}
			return w.Flush()
		},
	}
	revoke := &cobra.Command{
		Use: "revoke NAME", Short: "Revoke a key", Args: argsBetween(1, 1, "NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := a.keysPath()
			if err != nil {
				return err
			}
			return auth.Revoke(path, args[0])
		},
	}
	cmd.AddCommand(add, list, revoke)
	return cmd
}
