package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/cli/chatui"
	"github.com/baleenrun/baleen/internal/nearest"
)

// chatCommands are the words that begin a line which is not said to the model.
var chatCommands = []struct{ name, args, help string }{
	{"/help", "", "this text"},
	{"/clear", "", "forget the conversation"},
	{"/drop", "[N]", "forget its oldest N turns; alone: as many as leave room"},
	{"/summarise", "[N]", "put a summary in the place of all turns but the last"},
	{"/set", "[NAME VALUE]", "change how answers are made; alone: what there is to set"},
	{"/show", "[WHAT]", "settings, info, modelfile, parameters, system, template, license, conversation"},
	{"/save", "NAME", "keep the conversation"},
	{"/load", "NAME", "go on with one that was kept"},
	{"/retry", "", "forget the last answer and ask again"},
	{"/exit", "", "leave (or Ctrl-D)"},
}

// otherWords are other words for commands: of Ollama's chat, and other spellings.
var otherWords = map[string]string{
	"/?":         "/help",
	"/quit":      "/exit",
	"/bye":       "/exit",
	"/summarize": "/summarise",
	"/compact":   "/summarise",
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
Ctrl-C stops an answer; what is entered meanwhile is asked next. Alt-Enter or
Ctrl-J begins a new line, and so does Enter behind a \ or in a text between
three quotes. Up and Down bring back what was typed, Ctrl-R what contains the
text so far; Tab completes commands; Ctrl-Z puts the chat to sleep, and fg
wakes it. A space before a slash makes a message of what is no command.`

func chatHelp() string {
	var b strings.Builder
	for _, k := range chatCommands {
		left := strings.TrimSpace(k.name + " " + k.args)
		const width = 19
		line := fmt.Sprintf("  %-*s", width, left)
		for _, word := range strings.Fields(k.help) {
			if len(line)+1+len(word) >= helpWidth {
				b.WriteString(line + "\n")
				line = strings.Repeat(" ", width+2)
			}
			line += " " + word
		}
		b.WriteString(line + "\n")
	}
	return b.String() + chatKeys
}

// Command runs a line that begins with a slash.
func (c *conversation) Command(line string) chatui.Outcome {
	name, args, _ := strings.Cut(strings.TrimSpace(line), " ")
	args = strings.TrimSpace(args)
	if word, ok := otherWords[name]; ok {
		name = word
	}
	var out chatui.Outcome
	var err error
	switch name {
	case "/help":
		out.Reply = chatHelp()
	case "/exit":
		out.Quit = true
	case "/clear":
		c.msgs, c.said, c.pending, out.Reply = nil, nil, "", "The conversation is forgotten."
	case "/drop":
		out, err = c.drop(args)
	case "/summarise":
		out, err = c.summarise(args)
	case "/set":
		out.Reply, err = c.set(args)
	case "/show":
		out.Reply, err = c.show(args)
	case "/save":
		out.Reply, err = c.save(args)
	case "/load":
		out.Reply, err = c.load(args)
	case "/retry":
		if n := len(c.msgs); n >= 2 {
			text := textOf(c.msgs[n-2])
			c.msgs = c.msgs[:n-2]
			out.Do = c.say(text)
		} else {
			err = errors.New("nothing was said yet")
		}
	default:
		err = noCommand(name)
	}
	if err != nil {
		out.Reply = oneLine(err)
	}
	return out
}

func noCommand(name string) error {
	var names []string
	for _, k := range chatCommands {
		names = append(names, k.name)
	}
	near := nearest.Names(name, names)
	if len(near) == 0 {
		for _, n := range names {
			if strings.HasPrefix(n, name) {
				near = append(near, n)
			}
		}
	}
	if len(near) > 0 && len(near) < 4 {
		return fmt.Errorf("there is no command %s; did you mean %s?", name, strings.Join(near, " or "))
	}
	return fmt.Errorf("there is no command %s; /help lists them, and a space before it makes it a message", name)
}

// say asks for an answer to text.
func (c *conversation) say(text string) func(context.Context, func(bool, string)) (string, error) {
	return func(ctx context.Context, emit func(bool, string)) (string, error) { return c.Answer(ctx, text, emit) }
}

// goOn answers the question that found no room.
func (c *conversation) goOn(out *chatui.Outcome) {
	if c.pending != "" {
		out.Do = c.say(c.pending)
	}
}

// turns reads how many of the oldest turns are meant; none says how many where nothing does.
func (c *conversation) turns(args string, most int, none func() (int, error)) (int, error) {
	if len(c.msgs) < 2 {
		return 0, errors.New("nothing was said yet")
	}
	if args == "" {
		return none()
	}
	n, err := strconv.Atoi(args)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("%q: want how many of the oldest turns, from 1 to %d", args, most)
	}
	return n, nil
}

// drop forgets the oldest turns.
func (c *conversation) drop(args string) (out chatui.Outcome, err error) {
	n, err := c.turns(args, len(c.msgs)/2, func() (int, error) {
		if n := c.tooMany(context.Background(), c.pending); n > 0 {
			return n, nil
		}
		if c.pending != "" {
			return 0, errors.New("it does not fit even alone")
		}
		return 0, errors.New("there is room; /drop N forgets turns all the same")
	})
	if err != nil {
		return out, err
	}
	out.Reply = fmt.Sprintf(
		"The oldest %s%s forgotten, %s left.",
		counted(n, "turn"),
		c.span(n)+isAre(n),
		counted(len(c.msgs)/2-n, "turn")+isAre(len(c.msgs)/2-n),
	)
	c.msgs = slices.Clone(c.msgs[2*n:])
	c.goOn(&out)
	return out, nil
}

func isAre(n int) string {
	if n == 1 {
		return " is"
	}
	return " are"
}

const askSummary = "Summarise our conversation so far in at most 150 words: what was asked, what was found, names, " +
	"numbers and decisions. Write the summary alone."

// summarise lets the model put a summary in the place of the oldest turns.
func (c *conversation) summarise(args string) (out chatui.Outcome, err error) {
	n, err := c.turns(args, len(c.msgs)/2, func() (int, error) {
		if len(c.msgs) > 2 {
			return len(c.msgs)/2 - 1, nil
		}
		return 1, nil
	})
	if err != nil {
		return out, err
	}
	out.Reply = fmt.Sprintf("In the place of the oldest %s%s:", counted(n, "turn"), strings.TrimSuffix(c.span(n), ","))
	pending := c.pending
	out.Do = func(ctx context.Context, emit func(bool, string)) (string, error) {
		old := c.msgs[:2*n]
		for len(old) > 2 { // the question for a summary takes room, too
			tokens, err := c.to.count(ctx, c.requestAfter(old, askSummary))
			if err == nil && tokens+c.leastAnswer() <= c.about.Context {
				break
			}
			old = old[2:]
		}
		r := c.requestAfter(old, askSummary)
		r.Said, r.Thinking, r.MaxTokens = nil, new(false), c.about.Context/8
		if r.Effort = ""; c.f.raw {
			return "", errors.New("there is no conversation in raw mode")
		}
		got, err := c.to.answer(ctx, r, func(reasoning bool, text string) error {
			if !reasoning {
				emit(true, text) // beside the conversation, as reasoning is
			}
			return nil
		})
		if err != nil {
			return "", err
		}
		if strings.TrimSpace(got.text) == "" {
			return "", errors.New("the model wrote no summary; nothing is forgotten")
		}
		c.msgs = append(
			[]chat.Message{chat.Text(chat.User, askSummary), chat.Text(chat.Assistant, strings.TrimSpace(got.text))},
			c.msgs[2*n:]...)
		c.said = nil
		note := ""
		if left := n - len(old)/2; left > 0 {
			note = fmt.Sprintf(
				"The oldest %s had no room in the question for it and%s not in the summary.",
				counted(left, "turn"),
				isAre(left),
			)
		}
		if pending == "" {
			return note, nil
		}
		more, err := c.Answer(ctx, pending, emit)
		return strings.Trim(note+"\n"+more, "\n"), err
	}
	return out, nil
}
