package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/baleenrun/baleen/internal/agent/sandbox"
)

// statusError ends the program with a command's own exit code.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("the command ended with %d", int(e)) }

func (a *app) sandboxCommand() *cobra.Command {
	level, dir := "", ""
	cmd := &cobra.Command{
		Use:   "sandbox [--] COMMAND [ARGUMENT...]",
		Short: "Run a command as \"code\" would, in its sandbox",
		Long: `Run a command as "baleen code" runs those of a model: it may read and write the current folder, but not the
hooks and configuration of its Git repository, and read the system and its toolchains. It sees nothing else of
your home, has a home and temporary files of its own that are removed afterwards, no network, and bounds of
memory, processes and disk.

The strongest level that this system has is taken. "landlock" is the one that works inside of containers;
"namespaces" also gives the command mounts, processes and a network of its own; "seatbelt" is that of macOS.

Exit status: the command's own; 128 and the number of the signal that ended it; 124 where it took more than
its bounds, 125 where it could not be held, and so was not run.`,
		Example: "  baleen sandbox go test ./...\n  baleen sandbox --level landlock -- sh -c 'cat ~/.ssh/id_rsa'",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("which command?")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.sandbox(cmd.Context(), level, dir, args) },
	}
	cmd.Flags().SetInterspersed(false) // what stands behind the command is the command's
	cmd.Flags().StringVar(&level, "level", "", "landlock, namespaces or seatbelt (default: the strongest that is there)")
	cmd.Flags().StringVarP(&dir, "dir", "C", "", "the folder to run it in (default: the current one)")
	_ = cmd.RegisterFlagCompletionFunc("level", cobra.FixedCompletions(
		[]string{"landlock", "namespaces", "seatbelt"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// sandboxLevel finds the level of a name, which must be there.
func sandboxLevel(name string) (sandbox.Level, error) {
	has, why := sandbox.Probe()
	if why != "" {
		why = " (" + why + ")"
	}
	levels := []sandbox.Level{sandbox.Landlock, sandbox.Namespaces, sandbox.Seatbelt}
	for _, l := range levels {
		switch {
		case l.String() != name:
		case has == l || l == sandbox.Landlock && has == sandbox.Namespaces:
			return l, nil
		default:
			return 0, fmt.Errorf("the level %s is not to be had here%s; there is %s: nothing was run", name, why, has)
		}
	}
	switch {
	case name != "":
		return 0, usagef("--level is %q, want one of landlock, namespaces, seatbelt", name)
	case has == sandbox.None:
		return 0, fmt.Errorf("there is no sandbox here%s: nothing was run", why)
	}
	return sandbox.None, nil // no bound
}

func (a *app) sandbox(ctx context.Context, level, dir string, args []string) error {
	root, home, err := a.workspace(dir)
	if err != nil {
		return err
	}
	most, err := sandboxLevel(level)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "baleen-sandbox-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	p, err := sandbox.Start(ctx, sandbox.Policy{
		Write: []string{root}, Protect: protected(root), Read: sandbox.ToolPaths(home), Scratch: scratch, AtMost: most,
	}, sandbox.Command{Args: args, Dir: root, Stdin: a.io.In, Stdout: file(a.io.Out), Stderr: a.io.Err})
	if err != nil {
		fmt.Fprintln(a.io.Err, "baleen:", oneLine(err))
		return statusError(sandbox.ExitSetup)
	}
	res, err := p.Wait()
	if err != nil {
		fmt.Fprintln(a.io.Err, "baleen:", oneLine(err))
		return statusError(sandbox.ExitSetup)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if len(res.Restored) > 0 {
		a.note("put back, since a command may not change it: %s", strings.Join(res.Restored, ", "))
	}
	switch {
	case res.Limit != "":
		a.note("the command was ended: it took %s", res.Limit)
		return statusError(sandbox.ExitLimit)
	case res.Code != 0:
		return statusError(res.Code)
	}
	return nil
}

// file is what standard output is itself, so that a command sees the terminal where there is one.
func file(w io.Writer) io.Writer {
	if o, ok := w.(*output); ok {
		if f, ok := o.Writer.(*os.File); ok {
			return f
		}
	}
	return w
}
