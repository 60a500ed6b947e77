package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/config"
	"github.com/baleenrun/baleen/internal/fetch"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/server/keeper"
	"github.com/baleenrun/baleen/internal/server/models"
	"github.com/baleenrun/baleen/internal/server/ollama"
	"github.com/baleenrun/baleen/internal/store"
)

func (a *app) listCommand() *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"},
		Short: "List the models on this machine, wherever they are",
		Long: "List the models on this machine: those that were fetched, those that were made of them, and those " +
			"that\n" +
			"Ollama, the Hugging Face cache and LM Studio keep. The latter run where they are and are only read.\n" +
			"With --all, what can be fetched by name is listed too.",
		Example: "  baleen list\n  baleen list --all",
		Args:    argsBetween(0, 0, "none"),
		RunE:    func(*cobra.Command, []string) error { return a.list(asJSON, all) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&all, "all", false, "list what can be fetched by name, too")
	return cmd
}

// listedModel is a model as "list --json" prints it.
type listedModel struct {
	Name     string     `json:"name"`
	Size     int64      `json:"size"`
	Where    string     `json:"where"`
	Path     string     `json:"path,omitempty"`
	Modified *time.Time `json:"modified,omitempty"`
	Licence  string     `json:"licence,omitempty"`
	Source   string     `json:"source,omitempty"`
	SHA256   string     `json:"sha256,omitempty"`
	Problem  string     `json:"problem,omitempty"`
	Parent   string     `json:"parent,omitempty"` // of one that was made of it
}

// made are the models that "create", or a client of a server, made of others.
func (a *app) made(st *store.Store) []models.Derived {
	list, err := models.New(st).AllDerived()
	if err != nil {
		a.note("warning: some models that were made of others cannot be read: %s", oneLine(err))
	}
	return list
}

// notHere says of a name that is none of the store's whether a model was made under it, or what may have been meant.
func (a *app) notHere(st *store.Store, arg string, err error) error {
	if d, ok, _ := models.New(st).Derived(arg); ok {
		return fmt.Errorf(
			"%s was made of %s, and only run and serve know its settings: name %s",
			d.Spec.Name,
			d.Parent,
			d.Parent,
		)
	}
	if errors.Is(err, store.ErrNotFound) {
		return a.noModel(st, arg, false, err)
	}
	return err
}

func (a *app) list(asJSON, all bool) error {
	st, err := a.store()
	if err != nil {
		return err
	}
	have, err := st.List()
	if err != nil {
		return err
	}
	for _, err := range st.Blocked() {
		a.note("warning: %s", oneLine(err))
	}
	var more []store.Entry
	for _, e := range store.Catalog() {
		if all && !st.Has(e) {
			more = append(more, e)
		}
	}
	made := a.made(st)
	if asJSON {
		out := []listedModel{}
		for _, m := range have {
			out = append(out, listedModel{
				Name: m.Name, Size: m.Size, Where: m.Where, Path: m.Path, Modified: &m.Modified, Licence: m.Licence,
				Source: m.Source, SHA256: m.Digest, Problem: m.Problem,
			})
		}
		for _, d := range made {
			out = append(out, listedModel{
				Name: d.Spec.Name, Size: d.Spec.Size, Where: "made", Path: d.Spec.Path, Modified: &d.Spec.Time, Licence: d.Licence,
				SHA256: d.Spec.Digest, Parent: d.Parent,
			})
		}
		for _, e := range more {
			out = append(
				out,
				listedModel{Name: e.Name, Size: e.Size, Where: "not fetched", Licence: e.Licence, SHA256: e.SHA256},
			)
		}
		return a.writeJSON(out)
	}
	if len(have) == 0 && len(made) == 0 && len(more) == 0 {
		a.note("there are no models on this machine; baleen pull fetches one, baleen list --all lists them")
		return nil
	}
	w := a.table()
	w.cut = 1 + len(have) // paths stay whole
	fmt.Fprintln(w, "NAME\tSIZE\tMODIFIED\tWHERE")
	for _, m := range have {
		where := m.Where + "  " + a.tilde(m.Path)
		if m.Problem != "" {
			where = m.Where + "  cannot run: " + m.Problem
		}
		fmt.Fprintf(
			w,
			"%s\t%s\t%s\t%s\n",
			printableLine(m.Name),
			fetch.Bytes(m.Size),
			ago(time.Since(m.Modified)),
			printableLine(where),
		)
	}
	for _, d := range made {
		of := "of uploaded files"
		if d.Parent != "" {
			of = "of " + d.Parent
		}
		fmt.Fprintf(
			w,
			"%s\t%s\t%s\t%s\n",
			printableLine(d.Spec.Name),
			fetch.Bytes(d.Spec.Size),
			ago(time.Since(d.Spec.Time)),
			printableLine("made "+of),
		)
	}
	for _, e := range more {
		size := fetch.Bytes(e.Size)
		if !e.Exact() {
			size = "about " + size
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", e.Name, size, "-", "not fetched  "+e.Title)
	}
	return w.Flush()
}

// tilde shortens paths below the home folder.
func (a *app) tilde(path string) string {
	if home := a.getenv("HOME"); home != "" {
		if rel, ok := strings.CutPrefix(path, home+string(filepath.Separator)); ok {
			return "~" + string(filepath.Separator) + rel
		}
	}
	return path
}

// printableLine keeps a name that somebody else chose from steering the terminal.
func printableLine(s string) string { return oneLine(errors.New(s)) }

// ago says how long ago something was.
func ago(d time.Duration) string {
	day := 24 * time.Hour
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return counted(int(d/time.Minute), "minute") + " ago"
	case d < day:
		return counted(int(d/time.Hour), "hour") + " ago"
	case d < 60*day:
		return counted(int(d/day), "day") + " ago"
	case d < 2*365*day:
		return counted(int(d/(30*day)), "month") + " ago"
	}
	return counted(int(d/(365*day)), "year") + " ago"
}

func counted(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

func (a *app) showCommand() *cobra.Command {
	var f showFlags
	cmd := &cobra.Command{
		Use:   "show MODEL",
		Short: "Describe a model: architecture, quantization, context, memory",
		Long: "Describe a model without loading it: its architecture, parameters, the storage format of each " +
			"kind of\n" +
			"weights, the context it was made for, its chat template, its licence, and the memory that it needs " +
			"here.\n" +
			"Of a model that was made of another one, the settings that it was made with are said, too.",
		Example:           "  baleen show smollm2-135m\n  baleen show smollm2-135m --template",
		Args:              argsBetween(1, 1, "the MODEL"),
		ValidArgsFunction: firstOnly(a.completeHere),
		RunE: func(cmd *cobra.Command, args []string) error {
			set := 0
			for _, on := range []bool{f.json, f.template, f.licence, f.modelfile, f.parameters, f.system} {
				if on {
					set++
				}
			}
			if set > 1 {
				return usagef(
					"--json, --template, --licence, --modelfile, --parameters and --system exclude each other",
				)
			}
			return a.show(args[0], &f)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.json, "json", false, "print JSON")
	fs.BoolVar(&f.template, "template", false, "print the chat template alone")
	fs.BoolVar(&f.licence, "licence", false, "print the licence alone")
	fs.BoolVar(&f.modelfile, "modelfile", false, "print what it was made with as a Modelfile")
	fs.BoolVar(&f.parameters, "parameters", false, "print the parameters that it was made with")
	fs.BoolVar(&f.system, "system", false, "print the system message that it was made with")
	alias(cmd)
	a.settings(cmd, config.Context, config.KV, config.Device, config.CPU, config.Threads)
	return cmd
}

// present finds a model that is on this machine; where it is not, nothing is fetched.
func (a *app) present(arg string) (string, store.Ref, error) {
	st, err := a.store()
	if err != nil {
		return "", store.Ref{}, err
	}
	ref, err := st.Resolve(arg)
	if err != nil {
		return "", ref, a.notHere(st, arg, err)
	}
	if ref.Entry != nil && !st.Has(*ref.Entry) {
		return "", ref, fmt.Errorf("%s is not on this machine: baleen pull %s fetches it", ref.Entry.Name, arg)
	}
	return ref.Path, ref, nil
}

// shownModel is what "show --json" prints.
type shownModel struct {
	Name         string       `json:"name"`
	Path         string       `json:"path"`
	Architecture string       `json:"architecture"`
	Supported    bool         `json:"supported"`
	Problem      string       `json:"problem,omitempty"`
	Container    string       `json:"container"`
	Parameters   int64        `json:"parameters"`
	Layers       int          `json:"layers"`
	Vocabulary   int          `json:"vocabulary"`
	MaxContext   int          `json:"max_context"`
	Quantization string       `json:"quantization"`
	Roles        []model.Role `json:"roles"`
	FileBytes    int64        `json:"file_bytes"`
	Template     string       `json:"template,omitempty"`
	Licence      string       `json:"licence,omitempty"`
	Memory       *model.Need  `json:"memory,omitempty"`
	Context      int          `json:"context"`
	Sampling     shownDraw    `json:"sampling"`
	Available    int64        `json:"memory_available,omitempty"`

	// Of a model that was made of another one, and of Ollama's.
	Parent   string `json:"parent,omitempty"`
	System   string `json:"system,omitempty"`
	Settings string `json:"settings,omitempty"` // a name and a value a line, as Ollama has them
}

// showFlags are the flags of "show".
type showFlags struct{ json, template, licence, modelfile, parameters, system bool }

// specOf finds a model that is here, with the settings that it was made with.
func (a *app) specOf(arg string) (chat.Spec, store.Ref, string, error) {
	st, err := a.store()
	if err != nil {
		return chat.Spec{}, store.Ref{}, "", err
	}
	if d, ok, err := models.New(st).Derived(arg); err != nil {
		return chat.Spec{}, store.Ref{}, "", err
	} else if _, known := store.Lookup(arg); ok && !known {
		return d.Spec, store.Ref{Path: d.Spec.Path}, d.Parent, nil
	}
	path, ref, err := a.present(arg)
	spec := chat.Spec{Name: arg, Path: path}
	if err == nil && ref.Model != nil {
		spec = models.SpecOf(*ref.Model)
	}
	return spec, ref, "", err
}

func (a *app) show(arg string, f *showFlags) error {
	spec, ref, parent, err := a.specOf(arg)
	if err != nil {
		return err
	}
	path := spec.Path
	o := a.modelOptions()
	d, err := model.Describe(path, o)
	if err != nil {
		return err
	}
	terms := a.licence(d, ref, path)
	switch {
	case f.template && spec.Template != "":
		_, err := fmt.Fprintln(a.io.Out, a.printable(strings.TrimRight(spec.Template, "\n")))
		return err
	case f.template:
		if d.Info.ChatTemplate == "" {
			return model.ErrNoTemplate
		}
		_, err := fmt.Fprintln(a.io.Out, a.printable(strings.TrimRight(d.Info.ChatTemplate, "\n")))
		return err
	case f.modelfile:
		_, err := fmt.Fprintln(a.io.Out, a.printable(strings.TrimRight(ollama.Modelfile(spec, terms), "\n")))
		return err
	case f.parameters, f.system:
		what, text := "parameters", ollama.Parameters(spec)
		if f.system {
			what, text = "a system message", spec.System
		}
		if text == "" {
			return fmt.Errorf("%s was made without %s", printableLine(spec.Name), what)
		}
		_, err := fmt.Fprintln(a.io.Out, a.printable(text))
		return err
	case f.licence:
		if terms == "" {
			return fmt.Errorf("%s does not say its licence", d.Info.Name)
		}
		_, err := fmt.Fprintln(a.io.Out, a.printable(terms))
		return err
	}
	budget, known := model.SystemBudget()
	s := shownModel{
		Name: d.Info.Name, Path: path, Architecture: d.Info.Type, Supported: d.Problem == nil, Container: d.Info.Container,
		Parameters: d.Info.Parameters, Layers: d.Info.Layers, Vocabulary: max(d.Info.Vocab, d.Tokens), MaxContext: d.Info.MaxContext,
		Quantization: d.Info.Quantization, Roles: d.Roles, FileBytes: d.FileBytes, Template: d.Info.ChatTemplate, Licence: terms,
		Context: d.Context, Sampling: drawOf(d),
	}
	if d.Problem != nil {
		s.Problem = oneLine(d.Problem)
	} else {
		s.Memory = &d.Memory
	}
	if known {
		s.Available = budget.Available
	}
	s.Parent, s.System, s.Settings = parent, spec.System, ollama.Parameters(spec)
	if spec.Template != "" {
		s.Template = spec.Template
	}
	if parent != "" {
		s.Name = spec.Name
	}
	if f.json {
		err = a.writeJSON(s)
	} else {
		err = a.showText(&s)
	}
	if err == nil && d.Problem != nil {
		err = fmt.Errorf("%s cannot run: %w", s.Name, d.Problem)
	}
	return err
}

// licenceOf is what is known of the terms of the model at a path.
func (a *app) licenceOf(path string) (string, error) {
	d, err := model.Describe(path, a.modelOptions())
	if err != nil {
		return "", err
	}
	ref := store.Ref{Path: path}
	if st, err := a.store(); err == nil {
		list, err := st.List()
		if i := slices.IndexFunc(list, func(m store.Model) bool { return m.Path == path }); err == nil && i >= 0 {
			ref.Model = &list[i]
		}
	}
	return a.licence(d, ref, path), nil
}

// licence is what is known of a model's terms: its own words first, then the catalog's or the source's.
func (a *app) licence(d *model.Description, ref store.Ref, path string) string {
	if d.Licence != "" {
		return d.Licence
	}
	switch {
	case ref.Entry != nil && ref.Entry.Licence != "":
		return ref.Entry.Licence
	case ref.Model != nil && ref.Model.Licence != "":
		return ref.Model.Licence
	}
	dir := path
	if fi, err := os.Stat(path); err == nil && !fi.IsDir() {
		dir = filepath.Dir(path)
	}
	if m, err := store.ReadManifest(dir); err == nil {
		return m.Licence
	}
	return ""
}

// shownDraw is how tokens are drawn where neither a request nor a setting under the model's name says so.
type shownDraw struct {
	Temperature       *float32 `json:"temperature,omitempty"`
	TopK              *int     `json:"top_k,omitempty"`
	TopP              *float32 `json:"top_p,omitempty"`
	MinP              *float32 `json:"min_p,omitempty"`
	TypicalP          *float32 `json:"typical_p,omitempty"`
	RepetitionPenalty *float32 `json:"repetition_penalty,omitempty"`
	RepeatLastN       *int     `json:"repeat_last_n,omitempty"`
	Source            string   `json:"source"`
}

func drawOf(d *model.Description) shownDraw {
	s := d.Sampling
	return shownDraw{
		s.Temperature,
		s.TopK,
		s.TopP,
		s.MinP,
		s.TypicalP,
		s.RepetitionPenalty,
		s.RepeatLastN,
		d.SamplingSource,
	}
}

// String names what is set, as the flags of run do.
func (s shownDraw) String() string {
	if s.Temperature != nil && *s.Temperature == 0 {
		return "the most probable token"
	}
	var out []string
	add := func(name string, set bool, v any) {
		if set {
			out = append(out, fmt.Sprintf("%s %v", name, v))
		}
	}
	add("temperature", s.Temperature != nil, value(s.Temperature))
	add("top-k", s.TopK != nil && *s.TopK > 0, value(s.TopK))
	add("top-p", s.TopP != nil && *s.TopP < 1, value(s.TopP))
	add("min-p", value(s.MinP) > 0, value(s.MinP))
	add("typical-p", s.TypicalP != nil && *s.TypicalP < 1, value(s.TypicalP))
	add("repetition-penalty", s.RepetitionPenalty != nil && *s.RepetitionPenalty != 1, value(s.RepetitionPenalty))
	return strings.Join(out, ", ")
}

func (a *app) showText(s *shownModel) error {
	w := tabwriter.NewWriter(a.io.Out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, printableLine(fmt.Sprintf(format, args...)))
	}
	row("Name", "%s", s.Name)
	row("Where", "%s", a.tilde(s.Path))
	if s.Parent != "" {
		row("Made of", "%s", s.Parent)
	}
	if s.System != "" {
		row("System", "%s", strings.Join(strings.Fields(s.System), " "))
	}
	for i, line := range strings.Split(s.Settings, "\n") {
		if line == "" {
			continue
		}
		name := ""
		if i == 0 {
			name = "Settings"
		}
		row(name, "%s", strings.Join(strings.Fields(line), " "))
	}
	row("Architecture", "%s, %d layers, vocabulary of %d", s.Architecture, s.Layers, s.Vocabulary)
	if s.Problem != "" {
		row("Cannot run", "%s", s.Problem)
	}
	row("Parameters", "%s in %s of %s", count(s.Parameters), fetch.Bytes(s.FileBytes), s.Container)
	row("Quantization", "%s", s.Quantization)
	for _, r := range s.Roles {
		row("  "+r.Name, "%s", mostly(r).Quantization())
	}
	if s.MaxContext > 0 {
		row("Context", "%d tokens at most", s.MaxContext)
	}
	row("Sampling", "%s (%s)", s.Sampling, s.Sampling.Source)
	row("Template", "%s", templateSummary(s.Template))
	if s.Licence != "" {
		first, _, _ := strings.Cut(s.Licence, "\n")
		row("Licence", "%s", first)
	}
	if m := s.Memory; m != nil {
		row("Memory", "%s for a context of %d tokens: weights %s, working memory %s, cache %s",
			fetch.Bytes(m.Total()), s.Context, fetch.Bytes(m.Weights), fetch.Bytes(m.Scratch), fetch.Bytes(m.Cache))
		if s.Available > 0 {
			verdict := "fits"
			if m.Total() > s.Available {
				verdict = "does not fit"
			}
			row("", "%s: %s are free", verdict, fetch.Bytes(s.Available))
		}
	}
	return w.Flush()
}

// mostly leaves out the formats that "0 %" would be said of, such as norms beside matrices.
func mostly(r model.Role) model.Role {
	var total int64
	for _, f := range r.Formats {
		total += f.Bytes
	}
	var formats []model.Format
	for _, f := range r.Formats {
		if f.Bytes*200 > total { // half a percent is written as 0 %
			formats = append(formats, f)
		}
	}
	if len(formats) > 0 {
		r.Formats = formats
	}
	return r
}

// templateSummary says what a template can do, by the words that templates use for it.
func templateSummary(t string) string {
	if t == "" {
		return "none: a base model, which continues texts"
	}
	var can []string
	for _, f := range []struct{ word, name string }{
		{"tools", "tools"}, {"enable_thinking", "reasoning that can be switched"}, {"system", "system messages"}, {"image", "images"},
	} {
		if strings.Contains(t, f.word) {
			can = append(can, f.name)
		}
	}
	s := fmt.Sprintf("%d characters", utf8.RuneCountInString(t))
	if len(can) > 0 {
		s += ", knows " + strings.Join(can, ", ")
	}
	return s + " (--template prints it)"
}

// count writes a number of parameters.
func count(n int64) string {
	switch f := float64(n); {
	case n >= 1e12:
		return fmt.Sprintf("%.2f trillion", f/1e12)
	case n >= 1e9:
		return fmt.Sprintf("%.2f billion", f/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f million", f/1e6)
	}
	return fmt.Sprint(n)
}

func (a *app) rmCommand() *cobra.Command {
	return &cobra.Command{
		Use: "rm MODEL...", Aliases: []string{"remove", "delete"},
		Short: "Remove fetched models",
		Long: "Remove models from Baleen's own store, and models that were made of others. Those of other programs, " +
			"and\n" +
			"files elsewhere, are left alone; so are weights that such a model was made of.",
		Example:           "  baleen rm smollm2-135m",
		Args:              argsBetween(1, 1000, "at least one MODEL"),
		ValidArgsFunction: a.completeHere,
		RunE: func(_ *cobra.Command, args []string) error {
			st, err := a.store()
			if err != nil {
				return err
			}
			k := a.keeper(st, models.New(st))
			for _, arg := range args {
				if was, err := k.Catalog.Forget(arg); err != nil {
					return err
				} else if was {
					fmt.Fprintf(a.io.Out, "removed %s\n", printableLine(arg))
					continue
				}
				if m, ok := st.Find(arg); ok && m.Own {
					if err := k.Unneeded(m); err != nil {
						return err
					}
				}
				freed, err := st.Remove(arg)
				if err != nil {
					return err
				}
				fmt.Fprintf(a.io.Out, "removed %s (%s)\n", printableLine(arg), fetch.Bytes(freed))
			}
			return nil
		},
	}
}

func (a *app) cpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "cp MODEL NAME", Aliases: []string{"copy"},
		Short: "Give a model a second name",
		Long: "Give a model a second name. Where the file system can, both names share the bytes on disk; each is " +
			"removed\n" +
			"alone. The second name of a file elsewhere, or of another program's model, is only a pointer to it.\n" +
			"That of a model that was made with create has the same settings.",
		Example:           "  baleen cp smollm2-135m helper:v1\n  baleen cp ./finetune.gguf mine",
		Args:              argsBetween(2, 2, "MODEL and NAME"),
		ValidArgsFunction: firstOnly(a.completeHere),
		RunE: func(cmd *cobra.Command, args []string) error {
			st, err := a.store()
			if err != nil {
				return err
			}
			catalog := models.New(st)
			if d, ok, err := catalog.Derived(args[0]); ok || err != nil {
				if err != nil {
					return err
				}
				return a.copyMade(cmd.Context(), a.keeper(st, catalog), d.Spec.Name, args[1])
			}
			if d, ok, err := catalog.Derived(args[1]); ok || err != nil {
				if err != nil {
					return err
				}
				return fmt.Errorf("there is a model %s already; remove it first", d.Spec.Name)
			}
			if path, _, err := a.present(args[0]); err == nil { // Copy says what is wrong otherwise
				if err := model.Check(path); err != nil {
					return err
				}
			}
			if err := st.Copy(args[0], args[1]); err != nil {
				return a.notHere(st, args[0], err)
			}
			return nil
		},
	}
}

// copyMade gives a model that was made of another one a second name: the settings are copied, the weights stay where
// they are. One that was made under that name is replaced, as by "create".
func (a *app) copyMade(ctx context.Context, k *keeper.Keeper, from, to string) error {
	if err := store.CheckName(strings.TrimSuffix(to, ":latest")); err != nil {
		return usageError{err}
	}
	err := k.Copy(ctx, from, to)
	var e *chat.Error
	if errors.As(err, &e) {
		return errors.New(e.Message())
	}
	return err
}

// A completion offers values to a shell.
type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// firstOnly is a completion for the first argument alone.
func firstOnly(c completion) completion {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return c(cmd, args, prefix)
	}
}

// completeModels offers names of models: of those here and of those that can be fetched by name.
func (a *app) completeModels(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	out, directive := a.completeHere(cmd, args, prefix)
	for _, e := range store.Catalog() {
		if st, err := a.store(); err == nil && !st.Has(e) && strings.HasPrefix(e.Name, prefix) &&
			!slices.Contains(args, e.Name) {
			out = append(out, e.Name+"\t"+e.Title+", not fetched")
		}
	}
	return out, directive
}

// completeHere offers names of the models that are here.
func (a *app) completeHere(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	st, err := a.store()
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var out []string
	seen := map[string]bool{}
	add := func(name, about string) {
		if strings.HasPrefix(name, prefix) && !seen[name] && !slices.Contains(args, name) {
			seen[name] = true
			out = append(out, name+"\t"+about)
		}
	}
	if made, err := models.New(st).AllDerived(); err == nil {
		for _, d := range made {
			add(d.Spec.Name, "made of "+d.Parent)
		}
	}
	if have, err := st.List(); err == nil {
		for _, m := range have {
			add(m.Name, m.Where+", "+fetch.Bytes(m.Size))
		}
	}
	return out, cobra.ShellCompDirectiveDefault // files, too
}
