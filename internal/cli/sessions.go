package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/baleenrun/baleen/internal/agent/event"
	"github.com/baleenrun/baleen/internal/agent/headless"
	agentstore "github.com/baleenrun/baleen/internal/agent/store"
)

func (a *app) sessionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List, show, export and remove sessions of \"code\"",
		Long: `Each "baleen code" keeps what happens as a session: an append-only log that survives a crash. Go on
with one by "baleen code --resume ID"; the beginning of an id is enough.`,
		Example: "  baleen sessions list\n  baleen sessions show 20261201-0630\n  baleen sessions export 20261201-0630 > session.jsonl",
		Args:    noSuchCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.sessionsListCommand(), a.sessionsShowCommand(), a.sessionsExportCommand(), a.sessionsRemoveCommand())
	return cmd
}

func (a *app) sessionsListCommand() *cobra.Command {
	all, asJSON := false, false
	cmd := &cobra.Command{
		Use: "list", Short: "List sessions of this folder, the latest first",
		Example: "  baleen sessions list\n  baleen sessions list --all --json",
		Args:    argsBetween(0, 0, "none"),
		RunE: func(*cobra.Command, []string) error {
			sessions, _, err := a.sessions()
			if err != nil {
				return err
			}
			root := ""
			if !all {
				if root, err = workspaceOf(""); err != nil {
					return err
				}
			}
			list, err := sessions.List(root)
			if err != nil {
				return err
			}
			if asJSON {
				if list == nil {
					list = []agentstore.Info{}
				}
				return a.writeJSON(list)
			}
			if len(list) == 0 {
				a.note("there are no sessions of this folder (baleen sessions list --all shows those of others)")
				return nil
			}
			w := tabwriter.NewWriter(a.io.Out, 0, 0, 2, ' ', 0)
			fmt.Fprint(w, "ID\tLAST\tENDED\tTITLE")
			if all {
				fmt.Fprint(w, "\tFOLDER")
			}
			fmt.Fprintln(w)
			for _, i := range list {
				end, title := i.End, i.Title
				if end == "" {
					end = "open"
				}
				if i.Problem != "" {
					end, title = "unreadable", i.Problem
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s", i.ID, i.Time.Local().Format("2006-01-02 15:04"), end, printableLine(title))
				if all {
					fmt.Fprintf(w, "\t%s", printableLine(i.Root))
				}
				fmt.Fprintln(w)
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "those of all folders")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// session reads the session that an argument means.
func (a *app) session(arg string) (*agentstore.Store, string, []event.Event, error) {
	sessions, _, err := a.sessions()
	if err != nil {
		return nil, "", nil, err
	}
	id, err := sessions.Find(arg)
	if err != nil {
		return nil, "", nil, err
	}
	events, note, err := sessions.Read(id)
	if note != "" {
		a.note("session %s: %s", id, note)
	}
	return sessions, id, events, err
}

func (a *app) sessionsShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Print what was said and done in a session",
		Example: "  baleen sessions show 20261201-0630",
		Args:    argsBetween(1, 1, "the session's id"),
		RunE: func(_ *cobra.Command, args []string) error {
			_, id, events, err := a.session(args[0])
			if err != nil {
				return err
			}
			return a.showSession(a.io.Out, id, events)
		},
	}
}

// showSession writes a session for people: results are cut short.
func (a *app) showSession(out io.Writer, id string, events []event.Event) error {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(fmt.Sprintf(format, args...) + "\n") }
	for _, e := range events {
		indent := ""
		if e.Agent != "" {
			indent = "  "
		}
		switch v := e.Body.(type) {
		case event.Session:
			line("Session %s, %s, %s, in %s", id, e.Time.Local().Format(time.DateTime), v.Model, v.Root)
		case event.Message:
			switch {
			case v.Role == "user" && !v.Note:
				line("\n%s> %s", indent, strings.ReplaceAll(v.Text, "\n", "\n"+indent+"> "))
			case v.Role == "user" && !strings.HasPrefix(v.Text, "<environment>"):
				line("%s[told: %s]", indent, brief(v.Text, 200))
			case v.Role == "assistant" && v.Text != "":
				line("\n%s%s", indent, v.Text)
			case v.Role == "tool":
				for _, l := range head(v.Text, 8) {
					line("%s    %s", indent, l)
				}
			}
		case event.ToolStart:
			line("%s• %s", indent, headless.Card(v.Name, v.Args))
		case event.ToolFinish:
			if v.Denied != "" {
				line("%s• %s was not run: %s", indent, v.Name, v.Denied)
			}
			if v.Diff != "" {
				line("%s", strings.TrimRight(v.Diff, "\n"))
			}
		case event.Compaction:
			line("[%d tokens became a summary of %d]", v.Before, v.After)
		case event.Note:
			line("[%s]", v.Text)
		case event.Error:
			line("[failed: %s]", v.Text)
		case event.End:
			line("\n[%s, %d turns, %d requests: %d tokens read, %d of them cached, %d written]", v.Reason, v.Turns,
				v.Sum.Requests, v.Sum.Prompt, v.Sum.Cached, v.Sum.Generated)
		}
	}
	_, err := io.WriteString(out, a.printable(b.String()))
	return err
}

// head is the begin of a text in lines.
func head(text string, most int) []string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > most {
		lines = append(lines[:most:most], fmt.Sprintf("… %d lines more", len(lines)-most))
	}
	return lines
}

// brief is a text in one line.
func brief(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > most {
		text = string(r[:most-1]) + "…"
	}
	return text
}

func (a *app) sessionsExportCommand() *cobra.Command {
	format := "jsonl"
	cmd := &cobra.Command{
		Use: "export ID", Short: "Write a session's events to standard output",
		Long: `Write a session to standard output: as its events, one JSON object a line, or as Markdown. It has
what the model read and wrote, files of yours among it.`,
		Example: "  baleen sessions export 20261201-0630 > session.jsonl\n  baleen sessions export 20261201-0630 --format markdown",
		Args:    argsBetween(1, 1, "the session's id"),
		RunE: func(_ *cobra.Command, args []string) error {
			if format != "jsonl" && format != "markdown" {
				return usagef("--format is %q, want jsonl or markdown", format)
			}
			_, id, events, err := a.session(args[0])
			if err != nil {
				return err
			}
			if format == "markdown" {
				return exportMarkdown(a.io.Out, id, events)
			}
			for _, e := range events {
				b, err := event.Line(e)
				if err != nil {
					return err
				}
				if _, err := a.io.Out.Write(b); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&format, "format", format, "jsonl or markdown")
	_ = cmd.RegisterFlagCompletionFunc("format",
		cobra.FixedCompletions([]string{"jsonl", "markdown"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// exportMarkdown writes what was said and done, whole.
func exportMarkdown(out io.Writer, id string, events []event.Event) error {
	var b strings.Builder
	fenced := func(kind, text string) {
		fence := "```"
		for strings.Contains(text, fence) {
			fence += "`"
		}
		b.WriteString(fence + kind + "\n" + strings.TrimRight(text, "\n") + "\n" + fence + "\n\n")
	}
	fmt.Fprintf(&b, "# Session %s\n\n", id)
	for _, e := range events {
		switch v := e.Body.(type) {
		case event.Message:
			switch {
			case v.Role == "user" && !v.Note:
				b.WriteString("## " + brief(v.Text, 80) + "\n\n" + v.Text + "\n\n")
			case v.Role == "assistant" && v.Text != "":
				b.WriteString(v.Text + "\n\n")
			case v.Role == "tool":
				fenced("", v.Text)
			}
		case event.ToolStart:
			b.WriteString("**" + v.Name + "**\n\n")
			fenced("json", v.Args)
		case event.ToolFinish:
			if v.Diff != "" {
				fenced("diff", v.Diff)
			}
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func (a *app) sessionsRemoveCommand() *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use: "rm ID...", Short: "Remove sessions, with what belongs to them",
		Long:    "Remove sessions with their outputs and checkpoints. One that is open is not removed.",
		Example: "  baleen sessions rm 20261201-0630",
		RunE: func(_ *cobra.Command, args []string) error {
			sessions, _, err := a.sessions()
			if err != nil {
				return err
			}
			switch {
			case all && len(args) > 0:
				return usagef("--all takes no ids")
			case !all && len(args) == 0:
				return usagef("which session? baleen sessions list shows them")
			case all:
				root, err := workspaceOf("")
				if err != nil {
					return err
				}
				list, err := sessions.List(root)
				if err != nil {
					return err
				}
				for _, i := range list {
					args = append(args, i.ID)
				}
			}
			var errs []error
			for _, arg := range args {
				id, err := sessions.Find(arg)
				if err == nil {
					err = sessions.Remove(id)
				}
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all of this folder")
	return cmd
}
