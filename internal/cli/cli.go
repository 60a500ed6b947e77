// Package cli turns command lines into calls. It owns commands, flags, help texts and what is shown while
// something runs; it computes nothing itself.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/baleenrun/baleen/internal/agent/headless"
	"github.com/baleenrun/baleen/internal/config"
	"github.com/baleenrun/baleen/internal/fetch"
	"github.com/baleenrun/baleen/internal/nearest"
	"github.com/baleenrun/baleen/internal/store"
)

// IO is the world as commands see it.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
	Environ  []string // KEY=VALUE

	InTTY, OutTTY, ErrTTY bool
}

// output is standard output with a memory: no command may end well whose output was lost, on a full disk say.
type output struct {
	io.Writer

	mu  sync.Mutex
	err error // of the first write that failed
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.err == nil {
			o.err = err
		}
	}
	return n, err
}

func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// outFile is standard output where it is a file, a terminal for example.
func (a *app) outFile() (*os.File, bool) {
	w := a.io.Out
	if o, ok := w.(*output); ok {
		w = o.Writer
	}
	f, ok := w.(*os.File)
	return f, ok
}

// System is the process's own IO.
func System() IO {
	tty := func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
	return IO{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(),
		InTTY: tty(os.Stdin), OutTTY: tty(os.Stdout), ErrTTY: tty(os.Stderr),
	}
}

// Exit statuses.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	exitOver   = 3   // the agent was stopped by a budget, or since it repeated itself
	exitSignal = 130 // 128 + SIGINT, as shells have it
)

// usageError is a wrong command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errFailed ends a command with status 1 after it has said why.
var errFailed = errors.New("failed")

// app is what all commands share.
type app struct {
	io  IO
	cfg config.Config

	unknown error // help was asked for a command that does not exist
}

// Main runs one command line and returns the exit status. Whatever goes wrong is one line on standard error.
func Main(args []string, sys IO) (status int) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(sys.Err, "baleen: internal error: %v; please report it\n", r)
			status = exitFailed
		}
	}()
	cfg, warnings, err := config.Load(sys.Environ)
	for _, w := range warnings {
		fmt.Fprintln(sys.Err, "baleen: warning:", w)
	}
	if err != nil {
		fmt.Fprintln(sys.Err, "baleen:", oneLine(err))
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	out := &output{Writer: sys.Out}
	sys.Out = out
	a := &app{io: sys, cfg: cfg}
	root := a.rootCommand()
	root.SetArgs(spelled(args))
	root.SetIn(sys.In)
	root.SetOut(sys.Out)
	root.SetErr(sys.Err)
	completionCommand(root)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = a.unknown
	}
	if err == nil {
		err = out.failed()
	}
	var usage usageError
	var ended statusError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &ended):
		return int(ended)
	case errors.Is(err, errFailed):
		return exitFailed
	case errors.As(err, &usage):
		fmt.Fprintf(sys.Err, "baleen: %s\n", oneLine(err))
		fmt.Fprintf(sys.Err, "Try: %s --help\n", cmd.CommandPath())
		return exitUsage
	case errors.Is(err, headless.ErrStopped):
		fmt.Fprintln(sys.Err, "baleen:", oneLine(err))
		return exitOver
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		if msg := err.Error(); msg != context.Canceled.Error() {
			fmt.Fprintln(sys.Err, "baleen:", strings.TrimSuffix(oneLine(err), ": "+context.Canceled.Error()))
		}
		return exitSignal
	}
	fmt.Fprintln(sys.Err, "baleen:", oneLine(err))
	return exitFailed
}

// maxLine is how many characters of an error are shown.
const maxLine = 2000

// packagePrefix is a package's name where an error begins with it: where in the program something was found says
// nothing to who runs it.
var packagePrefix = regexp.MustCompile(
	`(^|: |; |\n)(?:(?:auth|backend|cpu|cuda|bench|chat|chattmpl|config|engine|family|fetch|gguf|grammar|isa|keeper|kv|mmap|model|models|plan|pool|quant|` +
		`safetensors|sample|server|store|synth|tokenizer|toolfmt|verify): )+`,
)

// oneLine writes an error in one line, without names of packages, control characters and the megabytes of a name that
// a hostile file may have brought.
func oneLine(err error) string {
	clean := func(r rune) rune {
		if r < ' ' && r != '\n' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}
	text := packagePrefix.ReplaceAllString(err.Error(), "$1")
	parts := strings.FieldsFunc(strings.Map(clean, text), func(r rune) bool { return r == '\n' })
	line := strings.Join(parts, "; ")
	if runes := []rune(line); len(runes) > maxLine {
		line = string(runes[:maxLine]) + "..."
	}
	return line
}

// plainly is an error in the words of oneLine.
func plainly(err error) error { return plainError{err} }

type plainError struct{ error }

func (e plainError) Error() string { return oneLine(e.error) }
func (e plainError) Unwrap() error { return e.error }

const rootLong = `Baleen runs open-weight language models on this machine. The same request gives the same
tokens, bit for bit, whatever else runs, whatever a cache held and however many threads worked.

A MODEL is a name (see "baleen list --all"), a GGUF file, a folder with safetensors, a model that
Ollama, the Hugging Face cache or LM Studio has here, or an address (see "baleen pull --help").`

const rootExample = `  baleen run "What is the capital of France?"
  baleen run                                  # a chat with the default model
  cat main.go | baleen run "Explain this program"
  baleen bench smollm2-135m`

// noSuchCommand refuses the arguments of a command that only has others below it.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	msg := fmt.Sprintf("there is no command %q", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		msg += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usageError{errors.New(msg)}
}

// Root is the tree of commands with their flags and help, for what documents it; it does not run them.
func Root() *cobra.Command {
	root := (&app{io: IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}}).rootCommand()
	root.DisableAutoGenTag = true
	return root
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "baleen",
		Short:         "Run open-weight language models on this machine",
		Long:          rootLong,
		Example:       rootExample,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asked, err := cmd.Flags().GetBool("version"); err != nil || !asked {
				return cmd.Help()
			}
			v := a.versionCommand()
			return v.RunE(v, nil)
		},
	}
	root.Flags().Bool("version", false, "print the version")
	root.SuggestionsMinimumDistance = 2
	cobra.AddTemplateFunc("valueWords", valueWords)
	usage := strings.NewReplacer(
		".LocalFlags.FlagUsages", fmt.Sprintf("valueWords (.LocalFlags.FlagUsagesWrapped %d)", helpWidth),
		".InheritedFlags.FlagUsages", fmt.Sprintf("valueWords (.InheritedFlags.FlagUsagesWrapped %d)", helpWidth),
	).Replace(root.UsageTemplate())
	root.SetUsageTemplate(strings.TrimRight(usage, "\n") + "\n")
	root.SetFlagErrorFunc(
		func(cmd *cobra.Command, err error) error { return usageError{nearFlag(cmd, flagError(err))} },
	)
	help := root.HelpFunc()
	root.SetHelpCommand(helpCommand(root))
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		// Help that is asked for a command which does not exist is no help.
		if names := positional(args); cmd == root && len(names) > 0 {
			a.unknown = root.Args(root, names)
			return
		}
		cmd.Long = fill(cmd.Long)
		if cmd.IsAdditionalHelpTopicCommand() {
			fmt.Fprintln(cmd.OutOrStdout(), cmd.Long)
			return
		}
		help(cmd, args)
	})
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Models that answer:", []*cobra.Command{a.runCommand(), a.serveCommand(), a.psCommand(), a.stopCommand(), a.keysCommand()}},
		{"Work on files:", []*cobra.Command{a.codeCommand(), a.sessionsCommand(), a.sandboxCommand()}},
		{"Models on this machine:", []*cobra.Command{a.pullCommand(), a.listCommand(), a.showCommand(), a.createCommand(), a.cpCommand(), a.rmCommand()}},
		{"What a model reads:", []*cobra.Command{a.templateCommand(), a.tokenizeCommand(), a.detokenizeCommand(), a.grammarCommand()}},
		{"Measurements:", []*cobra.Command{a.doctorCommand(), a.benchCommand(), a.evalCommand(), a.verifyCommand(), a.synthCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	root.AddCommand(a.versionCommand(), environmentTopic())
	return root
}

// environmentTopic is the help about variables.
func environmentTopic() *cobra.Command {
	return &cobra.Command{Use: "environment", Short: "Settings by environment variables", Long: config.Help(helpWidth)}
}

var flagOfType = regexp.MustCompile(
	`(?m)^( +(?:-\w, +)?--[\w-]+ )(stringArray|strings|string|ints|int|uint|float32|float|duration)(\s|\[|$)`,
)

// valueWords writes what a flag takes as the texts do, in place of Go's types.
func valueWords(usage string) string {
	words := map[string]string{
		"int":      "N",
		"ints":     "N,...",
		"uint":     "N",
		"float":    "X",
		"float32":  "X",
		"duration": "TIME",
	}
	return flagOfType.ReplaceAllStringFunc(usage, func(s string) string {
		m := flagOfType.FindStringSubmatch(s)
		word, ok := words[m[2]]
		switch {
		case ok:
		case strings.Contains(m[1], "--file"),
			strings.Contains(m[1], "-file"),
			strings.Contains(m[1], "--socket"),
			strings.Contains(m[1], "--tls"),
			strings.Contains(m[1], "--reference"),
			strings.Contains(m[1], "--plot"):
			word = "FILE"
		case strings.Contains(m[1], "--model "):
			word = "MODEL"
		default:
			word = "TEXT"
		}
		if m[3] == "[" { // a value that may be left out
			return m[1] + word + m[3]
		}
		return m[1] + word + strings.Repeat(" ", max(0, len(m[2])-len(word))) + m[3]
	})
}

// helpWidth is the width of a terminal that nobody has made wider.
const helpWidth = 80

// fill breaks paragraphs anew. Indented lines are tables, and stay.
func fill(text string) string {
	var out []string
	line := ""
	flush := func() {
		if line != "" {
			out, line = append(out, line), ""
		}
	}
	for _, l := range strings.Split(text, "\n") {
		if l == "" || l[0] == ' ' || l[0] == '\t' {
			flush()
			out = append(out, l)
			continue
		}
		for _, word := range strings.Fields(l) {
			if line != "" && len(line)+1+len(word) > helpWidth {
				flush()
			}
			line = strings.TrimPrefix(line+" "+word, " ")
		}
	}
	flush()
	return strings.Join(out, "\n")
}

// completionCommand adds the framework's command that prints scripts for shells, and makes it refuse what it does not
// know: a script that writes its answer to a file is not helped by a page of help and success. The framework takes the
// command's output as it is now.
func completionCommand(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	c, _, err := root.Find([]string{"completion"})
	if err != nil || c == root {
		return
	}
	var shells []string
	for _, shell := range c.Commands() {
		shells = append(shells, shell.Name())
		shell.Args = argsBetween(0, 0, "none")
	}
	c.Use = "completion SHELL"
	c.Example = "  baleen completion bash > /etc/bash_completion.d/baleen"
	c.SuggestionsMinimumDistance = 2
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef("which shell? %s", strings.Join(shells, ", "))
		}
		return usagef("%w; the shells are %s", noSuchCommand(c, args), strings.Join(shells, ", "))
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() } // Args lets nothing through to it
}

func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Help about a command",
		Example: "  baleen help run",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, c := range root.Commands() {
				if (c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand()) && len(args) == 0 {
					names = append(names, c.Name()+"\t"+c.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, _, err := root.Find(args)
			if err != nil || cmd == root && len(args) > 0 {
				return root.Args(root, args)
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

// positional returns what is no flag.
func positional(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(s string) bool { return strings.HasPrefix(s, "-") })
}

// flagError words what a flag cannot take.
func flagError(err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	want := map[string]string{
		"int": "a whole number", "uint64": "a whole number that is not negative", "float32": "a number", "float64": "a number",
		"bool": "true or false", "duration": "a time such as 30s or 5m",
	}[bad.GetFlag().Value.Type()]
	if num := new(strconv.NumError); want == "" && errors.As(err, &num) {
		want = "whole numbers"
	}
	if want == "" {
		return fmt.Errorf("--%s %q: %w", bad.GetFlag().Name, bad.GetValue(), bad.Unwrap())
	}
	return fmt.Errorf("--%s wants %s, not %q", bad.GetFlag().Name, want, bad.GetValue())
}

// nearFlag adds to an error about an unknown flag the flags that may have been meant.
func nearFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	word := unknown.GetSpecifiedName()
	letters := unknown.GetSpecifiedShortnames()
	if letters != "" { // one hyphen: a word with one too few, or letters
		word, _, _ = strings.Cut(letters, "=")
	}
	var all, begun []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		all = append(all, f.Name)
		if len(word) > 2 && strings.HasPrefix(f.Name, word) {
			begun = append(begun, f.Name)
		}
	})
	near := nearest.Names(word, all)
	if len(near) == 0 {
		near = begun
	}
	if len(near) == 0 || len(near) > 3 {
		return err
	}
	for i, name := range near {
		near[i] = "--" + name
	}
	return fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
}

// argsBetween wants at least lo and at most hi arguments; want names them.
func argsBetween(lo, hi int, want string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < lo || len(args) > hi {
			plural := "s"
			if len(args) == 1 {
				plural = ""
			}
			return usagef("got %d argument%s, want %s", len(args), plural, want)
		}
		return nil
	}
}

// settings adds flags for settings of the table; what they were given overrides the variables.
func (a *app) settings(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		s := config.Get(name)
		help := s.Help
		if s.Default != "" {
			help += " (default: " + s.Default + ")"
		}
		help += " [$" + s.Var + "]"
		cmd.Flags().VarP(settingFlag{a, name, s.Kind}, s.Flag, s.Short, help)
		if len(s.Values) > 0 {
			_ = cmd.RegisterFlagCompletionFunc(
				s.Flag,
				cobra.FixedCompletions(s.Values, cobra.ShellCompDirectiveNoFileComp),
			)
		}
	}
}

// settingFlag is a setting as a flag.
type settingFlag struct {
	a          *app
	name, kind string
}

func (f settingFlag) String() string { return "" } // the help says the default

// Set takes a value. Its error has no name: flagError names flag and value.
func (f settingFlag) Set(v string) error { return errors.Unwrap(f.a.cfg.Set(f.name, v)) }

func (f settingFlag) Type() string { return f.kind }

func (a *app) getenv(key string) string {
	for i := len(a.io.Environ) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(a.io.Environ[i], "="); ok && k == key {
			return v
		}
	}
	return ""
}

func (a *app) store() (*store.Store, error) {
	return store.OpenUser(a.cfg.String(config.Home), a.getenv)
}

// locate turns a MODEL argument into a path, fetching the model where it is not there yet.
func (a *app) locate(ctx context.Context, arg string) (string, error) {
	st, err := a.store()
	if err != nil {
		return "", err
	}
	ref, err := st.Resolve(arg)
	if err != nil {
		return "", a.notHere(st, arg, err)
	}
	if ref.Entry == nil {
		return ref.Path, nil
	}
	return a.fetch(ctx, st, *ref.Entry)
}

func (a *app) fetch(ctx context.Context, st *store.Store, e store.Entry) (string, error) {
	f := &fetch.Fetcher{
		Store:      st,
		Progress:   a.progress(),
		HFEndpoint: a.getenv("HF_ENDPOINT"),
		HFToken:    a.getenv("HF_TOKEN"),
		UserAgent:  "baleen/" + versionInfo().Version,
	}
	return f.Fetch(ctx, e)
}

// note writes a line for the user beside the output.
func (a *app) note(format string, args ...any) {
	fmt.Fprintf(a.io.Err, "baleen: "+format+"\n", args...)
}

func (a *app) writeJSON(v any) error {
	enc := json.NewEncoder(a.io.Out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
