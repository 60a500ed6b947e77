// Command man writes the manual pages of all commands into a folder: go run ./packaging/man DIR.
package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/baleenrun/baleen/internal/cli"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("got %d arguments, want the folder for the pages", len(args))
	}
	if err := os.MkdirAll(args[0], 0o755); err != nil {
		return err
	}
	// One date, so that the same source gives the same pages.
	date := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	root := cli.Root()
	prepare(root)
	return doc.GenManTree(
		root,
		&doc.GenManHeader{Section: "1", Source: "Baleen", Manual: "Baleen", Date: &date},
		args[0],
	)
}

// prepare makes of the tables in help texts, which are indented, what the writer of the pages keeps as it is, and pages
// of topics, which have no flags.
func prepare(c *cobra.Command) {
	var out []string
	before := ""
	for line := range strings.SplitSeq(c.Long, "\n") {
		if strings.HasPrefix(line, "  ") {
			if before != "" && !strings.HasPrefix(before, "  ") {
				out = append(out, "")
			}
			out = append(out, "    "+line)
		} else {
			out = append(out, line)
		}
		before = line
	}
	c.Long = strings.Join(out, "\n")
	if c.IsAdditionalHelpTopicCommand() {
		c.Run = func(*cobra.Command, []string) {}
	}
	for _, sub := range c.Commands() {
		prepare(sub)
	}
}
