package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/store"
)

// conversation is a chat with a model: what was said, and how answers are made.
type conversation struct {
	a     *app
	svc   *chat.Service
	lease *chat.Lease // the model stays while there is the conversation
	m     *chat.Model
	spec  chat.Spec
	f     *runFlags

	thinking *bool  // nil: as the template has it
	effort   string // how much to reason, "" for the template's own
	markdown bool

	msgs []chat.Message // beside the system message
	said []int32        // the last prompt and what the model wrote to it
}

// conversation begins one with the model of a service.
func (a *app) conversation(ctx context.Context, svc *chat.Service, f *runFlags) (*conversation, error) {
	l, err := svc.Acquire(ctx, "", nil)
	if err != nil {
		return nil, err
	}
	return &conversation{a: a, svc: svc, lease: l, m: l.Model, spec: l.Spec, f: f, markdown: true}, nil
}

func (c *conversation) close() { c.lease.Release() }

// request asks for the answer to a text, behind what was said.
func (c *conversation) request(text string) *chat.Request {
	r := &chat.Request{Sampling: c.f.chosen(), MaxTokens: c.f.maxTokens, Thinking: c.thinking, Effort: c.effort}
	if c.f.raw {
		r.Raw, r.Prompt = true, text
		return r
	}
	if c.f.system != "" {
		r.Messages = append(r.Messages, chat.Text(chat.System, c.f.system))
	}
	r.Messages = append(append(r.Messages, c.msgs...), chat.Text(chat.User, text))
	r.Said = c.said
	return r
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
	got, err := generate(ctx, c.svc, c.request(text), func(reasoning bool, text string) error {
		emit(reasoning, text)
		return nil
	})
	var notes []string
	if err == nil && got.end == chat.Length {
		notes = append(notes, c.cutOff(got))
	}
	if c.f.showStats && got.usage.Total > 0 {
		notes = append(notes, got.stats(c.f.loaded))
	}
	note = strings.Join(notes, "\n")
	if err != nil && !errors.Is(err, context.Canceled) {
		return note, err
	}
	c.f.loaded = 0
	if !c.f.raw && len(got.said) > 0 { // the question that was stopped before it began is not part of it
		c.said = got.said
		c.msgs = append(c.msgs[:len(c.msgs):len(c.msgs)], chat.Text(chat.User, text),
			chat.Text(chat.Assistant, strings.TrimSpace(got.text)))
	}
	return note, err
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
			say, c.msgs = textOf(c.msgs[n-2]), c.msgs[:n-2]
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
		err = c.f.set(name, value)
	default:
		return "", fmt.Errorf("there is no setting %s; /set lists them", name)
	}
	if err != nil {
		return "", err
	}
	return name + " is set.", nil
}

// asModel stands where the model's own setting counts.
const asModel = "default"

func (c *conversation) settings() string {
	var b strings.Builder
	row := func(name, value string) { fmt.Fprintf(&b, "  %-20s %s\n", name, value) }
	for _, name := range []string{"temperature", "top-p", "top-k", "min-p", "repetition-penalty", "max-tokens"} {
		if flag := c.f.flags.Flags().Lookup(name); flag.Changed {
			row(name, flag.Value.String())
		} else {
			row(name, asModel)
		}
	}
	seed := "random"
	if c.f.flags.Flags().Changed("seed") {
		seed = strconv.FormatUint(c.f.seed, 10)
	}
	row("seed", seed)
	thinking := asModel
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
			fmt.Fprintf(&b, "%s: %s\n", m.Role, textOf(m))
		}
		return strings.TrimRight(b.String(), "\n"), nil
	}
	return "", errors.New("want /show settings, model, template or conversation")
}

// savedChat is a conversation in a file.
type savedChat struct {
	Model    string         `json:"model"`
	Saved    time.Time      `json:"saved"`
	System   string         `json:"system,omitempty"`
	Messages []savedMessage `json:"messages"`
}

type savedMessage struct {
	Role    string `json:"role"` // "user" or "assistant"
	Content string `json:"content"`
}

// textOf is the text of a message, which has one part here.
func textOf(m chat.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
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
	saved := savedChat{Model: c.m.Info.Name, Saved: time.Now().UTC().Truncate(time.Second), System: c.f.system, Messages: []savedMessage{}}
	for _, m := range c.msgs {
		saved.Messages = append(saved.Messages, savedMessage{m.Role, textOf(m)})
	}
	b, err := json.MarshalIndent(saved, "", "  ")
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
	var msgs []chat.Message
	for _, m := range s.Messages {
		if m.Role != chat.User && m.Role != chat.Assistant {
			return "", fmt.Errorf("%s has a message of role %q", path, m.Role)
		}
		msgs = append(msgs, chat.Text(m.Role, m.Content))
	}
	c.msgs, c.said, c.f.system = msgs, nil, s.System
	return fmt.Sprintf("%d messages are loaded.", len(c.msgs)), nil
}
