package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/engine"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/store"
	"github.com/baleenrun/baleen/internal/toolfmt"
)

// conversation is a chat with a model: what was said, and how answers are made.
type conversation struct {
	a *app
	m *model.Model
	f *runFlags

	format   *toolfmt.Format
	visible  map[int32]bool // control tokens that separate reasoning from the answer
	stops    []int32
	thinking *bool // nil: as the template has it
	markdown bool

	msgs []model.Message // beside the system message
	said []int32         // the last prompt and what the model wrote to it
}

func (a *app) conversation(m *model.Model, f *runFlags) *conversation {
	c := &conversation{a: a, m: m, f: f, markdown: true, visible: map[int32]bool{}}
	c.format = toolfmt.For(toolfmt.Hints{
		Template: m.Info.ChatTemplate, Architecture: m.Info.Type, Name: m.Info.Name,
		HasToken: func(t string) bool { _, ok := m.Tokenizer.ID(t); return ok },
	})
	for _, t := range c.format.VisibleTokens() {
		if id, ok := m.Tokenizer.ID(t); ok {
			c.visible[id] = true
		}
	}
	for _, list := range [][]int32{m.Tokenizer.EOS(), m.Info.EOS} {
		for _, id := range list {
			c.addStop(id)
		}
	}
	for _, t := range c.format.StopTokens() {
		if id, ok := m.Tokenizer.ID(t); ok {
			c.addStop(id)
		}
	}
	return c
}

func (c *conversation) addStop(id int32) {
	if id >= 0 && int(id) < c.m.Plan.Vocab && !slices.Contains(c.stops, id) {
		c.stops = append(c.stops, id)
	}
}

// Title says what is talked to.
func (c *conversation) Title() string {
	return fmt.Sprintf("%s, context of %d tokens", printableLine(c.m.Info.Name), c.m.Context)
}

// Markdown reports whether answers are to be rendered.
func (c *conversation) Markdown() bool { return c.markdown && !c.f.raw }

// Answer says text and hands the answer out as it comes. The answer, or what there is of it when ctx ends, becomes
// part of the conversation; a message that cannot be answered does not. note is what is worth a line afterwards.
func (c *conversation) Answer(ctx context.Context, text string, emit func(reasoning bool, text string)) (note string, err error) {
	if c.f.raw {
		return c.generate(ctx, c.m.Text(text), nil, func(k toolfmt.Kind, s string) { emit(false, s) })
	}
	next := append(c.msgs[:len(c.msgs):len(c.msgs)], model.Message{Role: "user", Content: text})
	p, err := c.m.Prompt(ctx, append(c.f.before(), next...), c.thinking)
	if err != nil {
		return "", err
	}
	p.Tokens = c.m.Tokenizer.Continue(c.said, p.Tokens)
	parser := c.format.NewParser(nil, toolfmt.Options{InReasoning: c.format.OpensReasoning(p.Text)})
	var answer strings.Builder
	note, err = c.generate(ctx, p.Tokens, parser, func(k toolfmt.Kind, s string) {
		if k == toolfmt.Text {
			answer.WriteString(s)
		}
		emit(k == toolfmt.Reasoning, s)
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		return note, err
	}
	c.msgs = append(next, model.Message{Role: "assistant", Content: strings.TrimSpace(answer.String())})
	return note, err
}

// generate streams one answer. A parser, where there is one, separates reasoning from text.
func (c *conversation) generate(ctx context.Context, tokens []int32, parser *toolfmt.Parser, emit func(toolfmt.Kind, string)) (string, error) {
	req, err := c.f.request(tokens)
	if err != nil {
		return "", err
	}
	if parser != nil {
		req.KeepSpecial, req.StopTokens = true, c.stops
	}
	stream, err := c.m.Engine.Generate(ctx, req)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	c.said = slices.Clone(tokens)
	pass := func(events []toolfmt.Event) {
		for _, e := range events {
			if e.Text != "" {
				emit(e.Kind, e.Text)
			}
		}
	}
	for {
		ev, ok := stream.Next()
		if !ok {
			return "", errors.New("the stream ended without its last event")
		}
		text := ev.Text
		if !ev.Done {
			c.said = append(c.said, ev.Token)
		}
		if parser == nil {
			if text != "" {
				emit(toolfmt.Text, text)
			}
		} else {
			if !ev.Done && c.m.Tokenizer.IsSpecial(ev.Token) && !c.visible[ev.Token] {
				spelling, _ := c.m.Tokenizer.Token(ev.Token)
				text = strings.TrimSuffix(text, spelling)
			}
			pass(parser.Feed(text))
		}
		if ev.Done {
			if parser != nil {
				pass(parser.End())
			}
			return c.ended(ev)
		}
	}
}

// ended says what cut an answer short, and what it took where that is wanted.
func (c *conversation) ended(ev engine.Event) (string, error) {
	var notes []string
	if ev.Reason == engine.FinishLength {
		notes = append(notes, c.a.cutOff(ev, &c.f.sampling, c.m))
	}
	if c.f.showStats {
		notes = append(notes, statsText(ev.Usage, c.f.loaded, c.f.temperature > 0))
	}
	c.f.loaded = 0
	note := strings.Join(notes, "\n")
	switch ev.Reason {
	case engine.FinishCancelled:
		return note, context.Canceled
	case engine.FinishError:
		return note, ev.Err
	}
	return note, nil
}

// chatCommands are the words that begin a line which is not said to the model.
var chatCommands = []struct{ name, args, help string }{
	{"/help", "", "this text"},
	{"/clear", "", "forget the conversation"},
	{"/set", "NAME VALUE", "change how answers are made; /set alone lists what"},
	{"/show", "[WHAT]", "settings (default), model, template or conversation"},
	{"/save", "NAME", "keep the conversation"},
	{"/load", "NAME", "go on with one that was kept"},
	{"/retry", "", "forget the last answer and ask again"},
	{"/exit", "", "leave (or Ctrl-D)"},
}

// Commands lists the words for completion.
func (c *conversation) Commands() []string {
	var out []string
	for _, k := range chatCommands {
		out = append(out, k.name)
	}
	return out
}

const chatKeys = `
Ctrl-C stops an answer. Alt-Enter or Ctrl-J begins a new line, and so does Enter
behind a \ or in a text between """ and """. Up and Down bring back what was
typed, Ctrl-R what contains the text so far; Tab completes commands.`

func chatHelp() string {
	var b strings.Builder
	for _, k := range chatCommands {
		fmt.Fprintf(&b, "  %-18s %s\n", strings.TrimSpace(k.name+" "+k.args), k.help)
	}
	return b.String() + chatKeys
}

// Command runs a line that begins with a slash. say, where it is not empty, is what to say to the model next.
func (c *conversation) Command(line string) (reply, say string, quit bool) {
	name, args, _ := strings.Cut(strings.TrimSpace(line), " ")
	args = strings.TrimSpace(args)
	var err error
	switch name {
	case "/help", "/?":
		reply = chatHelp()
	case "/exit", "/quit", "/bye":
		quit = true
	case "/clear":
		c.msgs, reply = nil, "The conversation is forgotten."
	case "/set":
		reply, err = c.set(args)
	case "/show":
		reply, err = c.show(args)
	case "/save":
		reply, err = c.save(args)
	case "/load":
		reply, err = c.load(args)
	case "/retry":
		if n := len(c.msgs); n >= 2 {
			say, c.msgs = c.msgs[n-2].Content, c.msgs[:n-2]
		} else {
			err = errors.New("nothing was said yet")
		}
	default:
		err = fmt.Errorf("there is no command %s; /help lists them", name)
	}
	if err != nil {
		reply = oneLine(err)
	}
	return reply, say, quit
}

// set changes how answers are made.
func (c *conversation) set(args string) (string, error) {
	name, value, _ := strings.Cut(args, " ")
	value = strings.TrimSpace(value)
	if name == "" {
		return c.settings(), nil
	}
	onOff := func() (bool, error) {
		switch value {
		case "on", "true", "yes":
			return true, nil
		case "off", "false", "no":
			return false, nil
		}
		return false, fmt.Errorf("%s is on or off", name)
	}
	name = strings.ReplaceAll(name, "_", "-")
	var err error
	switch name {
	case "system":
		c.f.system = strings.Trim(value, `"`)
	case "stats":
		c.f.showStats, err = onOff()
	case "markdown":
		c.markdown, err = onOff()
	case "thinking", "think":
		if value == "default" {
			c.thinking = nil
			break
		}
		var on bool
		if on, err = onOff(); err == nil {
			c.thinking = &on
		}
	case "temperature", "top-p", "top-k", "min-p", "seed", "max-tokens", "repetition-penalty":
		flag := c.f.flags.Flags().Lookup(name)
		old, changed := flag.Value.String(), flag.Changed
		if value == "off" && name != "seed" || value == "random" && name == "seed" { // as /set shows them
			err = flag.Value.Set(flag.DefValue)
			flag.Changed = false
			break
		}
		if err = c.f.flags.Flags().Set(name, value); err == nil {
			_, err = c.f.params()
		}
		if err != nil {
			_ = flag.Value.Set(old)
			flag.Changed = changed
			err = flagError(err)
		}
	default:
		return "", fmt.Errorf("there is no setting %s; /set lists them", name)
	}
	if err != nil {
		return "", err
	}
	return name + " is set.", nil
}

func (c *conversation) settings() string {
	var b strings.Builder
	row := func(name, value string) { fmt.Fprintf(&b, "  %-20s %s\n", name, value) }
	for _, name := range []string{"temperature", "top-p", "top-k", "min-p", "repetition-penalty", "max-tokens"} {
		v := c.f.flags.Flags().Lookup(name).Value.String()
		if v == "0" && name != "temperature" {
			v = "off"
		}
		row(name, v)
	}
	seed := "random"
	if c.f.flags.Flags().Changed("seed") {
		seed = strconv.FormatUint(c.f.seed, 10)
	}
	row("seed", seed)
	thinking := "as the model has it"
	if c.thinking != nil {
		thinking = onOrOff(*c.thinking)
	}
	row("thinking", thinking)
	row("stats", onOrOff(c.f.showStats))
	row("markdown", onOrOff(c.markdown))
	system := c.f.system
	if system == "" {
		system = "none"
	}
	row("system", system)
	return strings.TrimRight(b.String(), "\n")
}

func onOrOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

func (c *conversation) show(what string) (string, error) {
	switch what {
	case "", "settings":
		return c.settings(), nil
	case "model", "info":
		i := c.m.Info
		return fmt.Sprintf("  %s: %s, %s parameters, %s, %d layers\n  context of %d tokens of at most %d\n  %s",
			printableLine(i.Name), i.Family, count(i.Parameters), i.Quantization, i.Layers, c.m.Context, i.MaxContext, c.a.tilde(i.Path)), nil
	case "template":
		if c.m.Info.ChatTemplate == "" {
			return "", model.ErrNoTemplate
		}
		return c.m.Info.ChatTemplate, nil
	case "conversation", "history":
		var b strings.Builder
		for _, m := range c.msgs {
			fmt.Fprintf(&b, "%s: %s\n", m.Role, m.Content)
		}
		return strings.TrimRight(b.String(), "\n"), nil
	}
	return "", errors.New("want /show settings, model, template or conversation")
}

// savedChat is a conversation in a file.
type savedChat struct {
	Model    string          `json:"model"`
	Saved    time.Time       `json:"saved"`
	System   string          `json:"system,omitempty"`
	Messages []model.Message `json:"messages"`
}

// chatFile is where a conversation of that name is kept.
func (c *conversation) chatFile(name string) (string, error) {
	if name == "" {
		return "", errors.New("want a name")
	}
	if err := store.CheckName(name); err != nil || strings.ContainsAny(name, "/:@") {
		return "", fmt.Errorf("%q cannot be a conversation's name: one word of letters, digits, '.', '_' and '-', without spaces and slashes", name)
	}
	dir, err := c.chats()
	return filepath.Join(dir, name+".json"), err
}

// chats is the folder of the conversations that are kept.
func (c *conversation) chats() (string, error) {
	st, err := c.a.store()
	if err != nil {
		return "", err
	}
	if st.Dir() == "" {
		return "", store.ErrNoHome
	}
	return filepath.Join(st.Dir(), "chats"), nil
}

// kept says which conversations there are.
func (c *conversation) kept() string {
	dir, err := c.chats()
	if err != nil {
		return "there are none"
	}
	files, _ := os.ReadDir(dir) // none, where it cannot be read
	var names []string
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name(), ".json"); ok && !f.IsDir() {
			names = append(names, name)
		}
	}
	const most = 20
	switch {
	case len(names) == 0:
		return "there are none; /save NAME keeps this one"
	case len(names) > most:
		return fmt.Sprintf("there are %s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	case len(names) == 1:
		return "there is " + names[0]
	}
	return "there are " + strings.Join(names, ", ")
}

func (c *conversation) save(name string) (string, error) {
	path, err := c.chatFile(name)
	if err != nil {
		return "", err
	}
	b, err := json.MarshalIndent(savedChat{c.m.Info.Name, time.Now().UTC().Truncate(time.Second), c.f.system, c.msgs}, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	// What people write is theirs alone.
	if err := os.WriteFile(path+".new", append(b, '\n'), 0o600); err != nil {
		return "", err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d messages are in %s.", len(c.msgs), c.a.tilde(path)), nil
}

func (c *conversation) load(name string) (string, error) {
	if name == "" {
		return "", errors.New("want a name; " + c.kept())
	}
	path, err := c.chatFile(name)
	if err != nil {
		return "", err
	}
	fi, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no kept conversation %q; %s", name, c.kept())
	}
	if err != nil {
		return "", err
	}
	if fi.Size() > maxPrompt {
		return "", fmt.Errorf("%s is too large", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var s savedChat
	if err := json.Unmarshal(b, &s); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	for _, m := range s.Messages {
		if m.Role != "user" && m.Role != "assistant" {
			return "", fmt.Errorf("%s has a message of role %q", path, m.Role)
		}
	}
	c.msgs, c.f.system = s.Messages, s.System
	return fmt.Sprintf("%d messages are loaded.", len(c.msgs)), nil
}
