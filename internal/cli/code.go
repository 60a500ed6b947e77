package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/baleenrun/baleen/internal/agent/checkpoint"
	"github.com/baleenrun/baleen/internal/agent/event"
	"github.com/baleenrun/baleen/internal/agent/headless"
	"github.com/baleenrun/baleen/internal/agent/loop"
	agentmodel "github.com/baleenrun/baleen/internal/agent/model"
	"github.com/baleenrun/baleen/internal/agent/perm"
	"github.com/baleenrun/baleen/internal/agent/prompt"
	"github.com/baleenrun/baleen/internal/agent/sandbox"
	agentstore "github.com/baleenrun/baleen/internal/agent/store"
	"github.com/baleenrun/baleen/internal/agent/tool"
	"github.com/baleenrun/baleen/internal/agent/web"
	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/config"
	"github.com/baleenrun/baleen/internal/family"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/store"
)

// codeFlags are the flags of "code".
type codeFlags struct {
	runFlags
	dir          string
	allow, deny  []string
	mode         string
	outputFormat string
	inputFormat  string
	maxTurns     int
	tokenBudget  int
	maxTime      time.Duration
	resume       string
	goOn, fork   bool
	endpoint     string
	api          string
	window       int
	noSandbox    bool
	quiet        bool
}

const codeLong = `Let a model work on the files of a folder: it reads, edits and runs what the task needs.

With -p the task is done without questions, for scripts and CI: the files of the folder may be
changed, and commands run in a sandbox that holds them to the folder, without network. Where no
sandbox is possible, and in the mode ask, whatever would need a question is denied, and the model is
told why. Piped text is added below the task.

Modes say what is done without asking: plan only reads; ask reads; accept-edits changes files of the
folder and runs commands in the sandbox (the default with -p); auto does all that no rule forbids.

The work is kept as a session: --continue goes on with the latest of this folder, --resume with one
of "baleen sessions list".

The model is that of a running server if it has it loaded, else it is loaded here. --endpoint takes
a model elsewhere; the conversation, with what the model reads of your files, is sent there. The key
is taken from BALEEN_ENDPOINT_KEY.

Exit status: 0 the model has done what it could, 1 something failed, 2 a wrong command line,
3 stopped by a budget or since the model repeated itself, 130 stopped by a signal.`

const codeExample = `  baleen code -p "The test in parse_test.go fails. Mend parse.go."
  baleen code -p "Explain how sessions are kept" --mode plan
  git diff | baleen code -p "Review this" --mode plan --output-format json
  baleen code --continue -p "Now add a flag for it"
  baleen code -p "Fix the build" --endpoint http://gpu:8000/v1 -m qwen3-coder`

func (a *app) codeCommand() *cobra.Command {
	f := &codeFlags{}
	cmd := &cobra.Command{
		Use:     "code",
		Short:   "Let a model work on your files",
		Long:    codeLong,
		Example: codeExample,
		Args:    argsBetween(0, 0, "none: the task stands behind -p"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.code(cmd.Context(), f) },
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.prompt, "prompt", "p", "", "the task")
	fs.StringVarP(&f.model, "model", "m", "", "the MODEL")
	fs.StringVarP(&f.dir, "dir", "C", "", "the folder to work in (default: the current one)")
	fs.StringVar(&f.mode, "mode", "", "what is done without asking: plan, ask, accept-edits, adaptive, auto (default: accept-edits)")
	fs.StringArrayVar(&f.allow, "allow", nil, "a `rule` of what is done without asking, such as \"run go test *\"; may be repeated")
	fs.StringArrayVar(&f.deny, "deny", nil, "a `rule` of what is not done; may be repeated")
	fs.StringVar(&f.outputFormat, "output-format", headless.Text, "text, json or stream-json")
	fs.StringVar(&f.inputFormat, "input-format", headless.Text, "text, or stream-json: messages and answers, one a line")
	fs.IntVar(&f.maxTurns, "max-turns", 0, "most requests to the model for a message (default: 100)")
	fs.IntVar(&f.tokenBudget, "max-work", 0, "most tokens to compute for a message (default: no bound)")
	fs.DurationVar(&f.maxTime, "max-time", 0, "longest time for a message, such as 10m (default: no bound)")
	fs.BoolVar(&f.goOn, "continue", false, "go on with the latest session of this folder")
	fs.StringVarP(&f.resume, "resume", "r", "", "go on with the session of this `id`, or of its beginning")
	fs.BoolVar(&f.fork, "fork", false, "with --continue or --resume: leave that session as it is, and go on in a new one")
	fs.StringVar(&f.endpoint, "endpoint", "", "`address` of a server that has the model, such as http://host:8000/v1")
	fs.StringVar(&f.api, "api", "", "what the endpoint speaks: openai (the default) or anthropic")
	fs.IntVar(&f.window, "window", 0, "tokens that the endpoint's model takes, where the server does not say")
	fs.BoolVar(&f.noSandbox, "no-sandbox", false, "run commands without a sandbox; each is asked for, and denied with -p unless the mode is auto")
	fs.BoolVar(&f.noServer, "no-server", false, "load the model here, even where a server has it loaded")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "do not show calls on standard error")
	fs.StringVar(&f.think, "think", "", "let the model reason: true, false, low, medium or high (default: as the model has it)")
	f.flags = cmd
	a.settings(cmd, config.Device, config.Threads, config.Context, config.KV, config.CPU)
	_ = cmd.RegisterFlagCompletionFunc("model", a.completeModels)
	for name, values := range map[string][]string{
		"mode":          {"plan", "ask", "accept-edits", "adaptive", "auto"},
		"output-format": {headless.Text, headless.JSON, headless.StreamJSON},
		"input-format":  {headless.Text, headless.StreamJSON},
		"api":           {agentmodel.OpenAI, agentmodel.Anthropic},
	} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

// checkCode refuses what cannot be, before anything is opened.
func (f *codeFlags) checkCode() error {
	oneOf := func(flag, value string, values ...string) error {
		for _, v := range values {
			if v == value {
				return nil
			}
		}
		return usagef("--%s is %q, want one of %s", flag, value, strings.Join(values, ", "))
	}
	if err := oneOf("output-format", f.outputFormat, headless.Text, headless.JSON, headless.StreamJSON); err != nil {
		return err
	}
	if err := oneOf("input-format", f.inputFormat, headless.Text, headless.StreamJSON); err != nil {
		return err
	}
	switch {
	case f.maxTurns < 0 || f.tokenBudget < 0 || f.maxTime < 0 || f.window < 0:
		return usagef("a bound is negative")
	case f.goOn && f.resume != "":
		return usagef("--continue and --resume exclude each other")
	case f.fork && !f.goOn && f.resume == "":
		return usagef("--fork needs --continue or --resume")
	case f.endpoint == "" && (f.api != "" || f.window != 0):
		return usagef("--api and --window are about an --endpoint")
	case f.api != "" && f.api != agentmodel.OpenAI && f.api != agentmodel.Anthropic:
		return usagef("--api is %q, want openai or anthropic", f.api)
	}
	return nil
}

func (a *app) code(ctx context.Context, f *codeFlags) error {
	if err := f.checkCode(); err != nil {
		return err
	}
	text, has := f.prompt, f.flags.Flags().Changed("prompt")
	stream := f.inputFormat == headless.StreamJSON
	if !stream {
		var err error
		if text, has, err = a.pipedPrompt(text, has); err != nil {
			return err
		}
	}
	switch {
	case !has && !stream && !f.goOn && f.resume == "":
		return usagef("there is no task: give one with -p")
	case has && strings.TrimSpace(text) == "":
		return usagef("the task is empty")
	}
	w, err := a.openCode(ctx, f)
	if err != nil {
		return err
	}
	defer w.close()
	face := headless.New(headless.Options{
		Out: a.io.Out, Err: a.io.Err, Format: f.outputFormat, In: a.messages(stream), Progress: !f.quiet && a.io.ErrTTY,
		Model: w.o.Model.Info().Name, Session: w.log.ID,
	})
	w.o.Emit = face.Emit
	if stream {
		w.o.Approve, w.o.Ask = face.Approve, face.Ask
	}
	agent, err := w.agent()
	if err != nil {
		return err
	}
	return face.Run(ctx, agent, text, !has && !w.state.Ended && len(w.state.Messages) > 0)
}

// messages is standard input where it brings messages.
func (a *app) messages(stream bool) io.Reader {
	if !stream {
		return nil
	}
	return a.io.In
}

// codeWork is what an agent needs here, whatever its face is.
type codeWork struct {
	o      loop.Options // Emit and Approve are the face's to set, before agent is called
	log    *agentstore.Log
	events []event.Event // of a session that is gone on with
	state  loop.State
	closes []func()
}

func (w *codeWork) close() {
	for i := len(w.closes) - 1; i >= 0; i-- {
		w.closes[i]()
	}
}

// agent begins the session, or goes on with it.
func (w *codeWork) agent() (*loop.Agent, error) {
	if w.events == nil {
		return loop.New(w.o), nil
	}
	return loop.Resume(w.o, w.events)
}

// sessions are those of this user.
func (a *app) sessions() (*agentstore.Store, *store.Store, error) {
	st, err := a.store()
	if err != nil {
		return nil, nil, err
	}
	if st.Dir() == "" {
		return nil, nil, store.ErrNoHome
	}
	return agentstore.Open(filepath.Join(st.Dir(), "sessions")), st, nil
}

// openCode opens model, session, permissions and sandbox.
func (a *app) openCode(ctx context.Context, f *codeFlags) (_ *codeWork, err error) {
	root, home, err := a.workspace(f.dir)
	if err != nil {
		return nil, err
	}
	sessions, st, err := a.sessions()
	if err != nil {
		return nil, err
	}
	w := &codeWork{}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if err := a.findSession(sessions, root, f, w); err != nil {
		return nil, err
	}
	name := f.model
	if name == "" {
		name = w.state.Begin.Model
		if name == "" || f.endpoint == "" && !a.hasModel(st, name) {
			name = a.cfg.String(config.Model)
		}
	}
	if w.o.Model, err = a.agentModel(ctx, st, name, f); err != nil {
		return nil, err
	}
	w.closes = append(w.closes, w.o.Model.Close)
	if err := a.permissions(f, w, root, home, st.Dir()); err != nil {
		return nil, err
	}
	if w.log == nil {
		if w.log, err = sessions.Create(loop.Begin(w.o)); err != nil {
			return nil, err
		}
		w.closes = append(w.closes, w.log.Close)
	}
	w.o.Log = w.log
	scratch, spill := filepath.Join(w.log.Dir, "scratch"), filepath.Join(w.log.Dir, "outputs")
	if err := errors.Join(os.MkdirAll(scratch, 0o700), os.MkdirAll(spill, 0o700)); err != nil {
		return nil, err
	}
	w.o.Env.Spill, w.o.Env.Hidden = spill, w.o.Policy.Hides
	if n := w.o.Model.Info().Window; n > 0 {
		w.o.Env.Most = min(48<<10, n) // a quarter of the window or so
	}
	w.o.Policy.Grant(spill, false)
	w.o.Policy.Grant(scratch, true)
	w.o.Checkpoints, err = checkpoint.Open(checkpoint.Options{Root: root, Dir: filepath.Join(w.log.Dir, "checkpoints")})
	if err != nil {
		return nil, err
	}
	if err := a.egress(w); err != nil {
		return nil, err
	}
	if w.o.Env.Sandbox != nil {
		w.o.Env.Sandbox.Scratch = scratch
		w.o.Env.Sandbox.Read = append(sandbox.ToolPaths(home), spill)
	}
	w.o.Core, w.o.Others = tool.Core(), tool.Others()
	w.o.Budget = loop.Budget{Turns: f.maxTurns, Tokens: f.tokenBudget, Time: f.maxTime}
	a.facts(ctx, w, root, home)
	return w, nil
}

// egress lets commands reach the hosts that rules allow. Without such a rule they have no network.
func (a *app) egress(w *codeWork) error {
	if w.o.Env.Sandbox == nil || !w.o.Policy.Reaches("") {
		return nil
	}
	if level, _ := sandbox.Probe(); level != sandbox.Namespaces {
		a.note("commands have no network: this system's sandbox (%s) cannot let hosts through one by one", level)
		return nil
	}
	p, err := web.NewProxy(w.o.Policy.Reaches)
	if err != nil {
		return err
	}
	w.closes = append(w.closes, p.Close)
	w.o.Env.Sandbox.Proxy = p.Socket
	return nil
}

// workspace is the folder to work in, and the user's home. A home or the root of all files is none: a model could
// write everywhere in it.
func (a *app) workspace(dir string) (root, home string, err error) {
	if root, err = workspaceOf(dir); err != nil {
		return "", "", err
	}
	if st, err := os.Stat(root); err != nil || !st.IsDir() {
		return "", "", usagef("%s is no folder", root)
	}
	home = a.getenv("HOME")
	if home == "" {
		home, _ = os.UserHomeDir()
	}
	if h, err := filepath.EvalSymlinks(home); err == nil {
		home = h
	}
	if root == home || root == filepath.Dir(root) {
		return "", "", usagef("%s is no project's folder: a model could write everywhere in it; go into one, or name it with --dir", root)
	}
	return root, home, nil
}

// workspaceOf is a folder's path without links, as sessions have it.
func workspaceOf(dir string) (string, error) {
	if dir == "" {
		dir = "."
	}
	root, err := filepath.Abs(dir)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	return root, err
}

// findSession opens the session that is to be gone on with.
func (a *app) findSession(sessions *agentstore.Store, root string, f *codeFlags, w *codeWork) error {
	id := ""
	switch {
	case f.resume != "":
		var err error
		if id, err = sessions.Find(f.resume); err != nil {
			return err
		}
	case f.goOn:
		list, err := sessions.List(root)
		if err != nil {
			return err
		}
		for _, i := range list {
			if i.Problem == "" {
				id = i.ID
				break
			}
		}
		if id == "" {
			return fmt.Errorf("there is no session of %s to go on with", root)
		}
	default:
		return nil
	}
	var note string
	var err error
	if f.fork {
		w.log, w.events, err = sessions.Fork(id, 0)
	} else {
		w.log, w.events, note, err = sessions.Resume(id)
	}
	if err != nil {
		return err
	}
	w.closes = append(w.closes, w.log.Close)
	if note != "" {
		a.note("session %s: %s; what stood before is there", id, note)
	}
	w.state = loop.Fold(w.events)
	if w.state.Begin.Root != root {
		return fmt.Errorf("session %s belongs to %s: go there, or name it with --dir", id, w.state.Begin.Root)
	}
	return nil
}

func (a *app) hasModel(st *store.Store, name string) bool {
	_, err := st.Resolve(name)
	return err == nil
}

// agentContext is how much context a model gets for an agent where nothing says so.
const agentContext = 16384

// agentModel opens the model: elsewhere, of a server that has it loaded, or here.
func (a *app) agentModel(ctx context.Context, st *store.Store, name string, f *codeFlags) (agentmodel.Model, error) {
	thinking, effort, err := thinkingOf(f.think)
	if err != nil {
		return nil, usagef("--think %v", err)
	}
	if f.endpoint != "" {
		if f.model == "" {
			name = "" // the only one that the server has
		}
		return agentmodel.NewRemote(ctx, agentmodel.RemoteOptions{
			API: f.api, Base: f.endpoint, Key: a.getenv("BALEEN_ENDPOINT_KEY"), Name: name, Window: f.window,
		})
	}
	spec, err := a.locateSpec(ctx, st, name, false)
	if err != nil {
		return nil, err
	}
	if t := a.askServer(ctx, name, spec, &f.runFlags); t != nil && !t.ab.Base {
		o := agentmodel.RemoteOptions{
			Base: t.base + "/v1", Key: t.r.key, Name: name, Window: t.ab.Context, Client: t.http,
			Parameters: t.ab.Info.Parameters, Temperature: new(0.0), Own: true,
		}
		return agentmodel.NewRemote(ctx, o)
	}
	o := a.modelOptions()
	o.Seqs = 1
	fit := o.Fit
	o.Fit = func(o model.Options, info family.Info) model.Options {
		if o.Context == 0 {
			if o.Context = agentContext; info.MaxContext > 0 {
				o.Context = min(o.Context, info.MaxContext)
			}
		}
		if fit != nil {
			o = fit(o, info)
		}
		return o
	}
	spec.System = ""
	if a.io.ErrTTY {
		l := &loading{a: a, began: time.Now()}
		o.Progress = l.set
		defer l.clear()
	}
	svc, err := chat.OpenSingle(ctx, spec, o)
	if err != nil {
		return nil, err
	}
	return agentmodel.NewLocal(ctx, svc, "", agentmodel.LocalOptions{
		Think: thinking, Effort: effort, Close: func() { _ = svc.Pool().Close(context.Background()) },
	})
}

// permissions decides the mode and finds the sandbox.
func (a *app) permissions(f *codeFlags, w *codeWork, root, home, data string) error {
	w.o.Env = &tool.Env{Root: root, Home: home, Now: time.Now}
	if !f.noSandbox {
		level, why := sandbox.Probe()
		if level == sandbox.None {
			a.note("commands cannot be held to the folder here (%s): each is asked for, and denied where nobody can be asked", why)
		} else {
			w.o.Env.Sandbox = &sandbox.Policy{Write: []string{root}, Protect: protected(root)}
		}
	}
	mode := perm.ModeAcceptEdits
	if f.mode != "" {
		var err error
		if mode, err = perm.ParseMode(f.mode); err != nil {
			return usageError{err}
		}
	}
	w.o.Policy = perm.New(perm.Options{
		Root: root, Home: home, Mode: mode, Sandboxed: w.o.Env.Sandbox != nil, Private: []string{data, filepath.Join(home, ".config", "baleen")},
		UserFile: filepath.Join(data, "permissions.toml"), ProjectFile: filepath.Join(root, ".baleen", "permissions.toml"),
		Tools: sandbox.ToolPaths(home),
	})
	w.closes = append(w.closes, w.o.Env.Close)
	if p := w.o.Policy.Problem(); p != "" && len(f.allow)+len(f.deny) > 0 && strings.Contains(p, "the command line") {
		return usagef("%s", p)
	} else if p != "" {
		a.note("%s", p)
	}
	return nil
}

// protected are files of a workspace that run or allow something when others use it.
func protected(root string) []string {
	var out []string
	for _, p := range []string{".git/hooks", ".git/config", ".git/info/attributes", ".baleen"} {
		out = append(out, filepath.Join(root, filepath.FromSlash(p)))
	}
	return out
}

// facts prepares what the first message begins with.
func (a *app) facts(ctx context.Context, w *codeWork, root, home string) {
	window := w.o.Model.Info().Window
	bytes := 6000
	if window > 0 {
		bytes = min(bytes, window/2) // an eighth of the window or so
	}
	w.o.Instructions = prompt.NewReader(root, bytes)
	w.o.First = func() string {
		r := prompt.NewReader(root, bytes)
		is := append(r.User(filepath.Join(home, ".config", "baleen", "AGENTS.md"), "~/.config/baleen/AGENTS.md"), r.For(root)...)
		w.o.Instructions.For(root) // they are said
		return prompt.First(prompt.Facts{Now: time.Now(), Root: root, Git: gitStatus(ctx, root)}, is)
	}
}

// gitStatus is what Git says of the workspace. It runs in the sandbox, without which it is not asked.
func gitStatus(ctx context.Context, root string) string {
	top := root
	for {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			break
		}
		if top == filepath.Dir(top) {
			return ""
		}
		top = filepath.Dir(top)
	}
	scratch, err := os.MkdirTemp("", "baleen-git-")
	if err != nil {
		return ""
	}
	defer os.RemoveAll(scratch)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var out bytes.Buffer
	p, err := sandbox.Start(ctx, sandbox.Policy{Read: []string{top}, Scratch: scratch, Env: []string{
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	}}, sandbox.Command{Args: prompt.GitCommand(), Dir: root, Stdout: &out, Stderr: io.Discard})
	if err != nil {
		return ""
	}
	if res, err := p.Wait(); err != nil || res.Code != 0 {
		return ""
	}
	return prompt.Git(out.String())
}
