// Package chatui is the chat in a terminal: an input with editing and history at the bottom, and answers that scroll
// away above it, with Markdown rendered. It knows keys and screens; what is said, and to whom, is its Talker's.
package chatui

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
)

// A Talker is what the chat is with.
type Talker interface {
	Title() string
	Markdown() bool     // answers are to be rendered
	Commands() []string // words that begin a command, for completion

	// Command runs a line that begins with a slash. say is what to say next, "" for nothing.
	Command(line string) (reply, say string, quit bool)

	// Answer says text and hands the answer to emit as it comes, on the calling goroutine. note is shown afterwards.
	Answer(ctx context.Context, text string, emit func(reasoning bool, text string)) (note string, err error)
}

// Options say where the chat is.
type Options struct {
	In      io.Reader
	Out     *os.File
	Environ []string
	History string // file that keeps what was typed; "": none
	Plain   bool   // no colours
}

// Run talks until the user leaves.
func Run(ctx context.Context, t Talker, o Options) error {
	m := newModel(ctx, t, o)
	opts := []tea.ProgramOption{
		tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithEnvironment(o.Environ), tea.WithFPS(30),
	}
	if o.Plain {
		opts = append(opts, tea.WithColorProfile(colorprofile.ASCII))
	}
	p := tea.NewProgram(m, opts...)
	m.send = p.Send
	_, err := p.Run()
	m.stopAnswer()
	if errors.Is(err, tea.ErrInterrupted) || errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return nil
	}
	return err
}

// Messages of the answering goroutine.
type (
	pieceMsg struct {
		reasoning bool
		text      string
	}
	doneMsg struct {
		note string
		err  error
	}
	tickMsg struct{}
)

type ui struct {
	ctx    context.Context
	talker Talker
	send   func(tea.Msg)
	input  textarea.Model
	width  int
	height int
	dark   bool
	look   look

	history *history

	answering bool
	cancel    context.CancelFunc
	finished  chan struct{} // closed when the answering goroutine is gone
	blocks    splitter
	began     time.Time
	spin      int
	quitting  bool
}

func newModel(ctx context.Context, t Talker, o Options) *ui {
	in := textarea.New()
	in.ShowLineNumbers = false
	in.CharLimit = 0
	in.DynamicHeight = true
	in.MinHeight, in.MaxHeight = 1, 6
	in.MaxContentHeight = 100000
	in.Placeholder = "Ask something; /help for help"
	in.SetPromptFunc(len(firstPrompt), func(i textarea.PromptInfo) string {
		if i.LineNumber == 0 {
			return firstPrompt
		}
		return morePrompt
	})
	in.KeyMap.InsertNewline.SetKeys("ctrl+j", "alt+enter", "shift+enter")
	in.SetVirtualCursor(false)
	in.Focus()
	u := &ui{ctx: ctx, talker: t, input: in, width: 80, height: 24, dark: darkSays(o.Environ), history: openHistory(o.History), send: func(tea.Msg) {}}
	u.restyle()
	return u
}

const (
	firstPrompt = ">>> "
	morePrompt  = "... "
)

// darkSays reads COLORFGBG, which some terminals set to the numbers of their colours, the background's last. Without
// it the background counts as dark, until the terminal answers the question for it.
func darkSays(environ []string) bool {
	dark := true
	for _, v := range environ {
		if colours, ok := strings.CutPrefix(v, "COLORFGBG="); ok {
			number, err := strconv.Atoi(colours[strings.LastIndexByte(colours, ';')+1:])
			dark = err != nil || number < 7 || number == 8
		}
	}
	return dark
}

// restyle chooses colours for the terminal's background.
func (u *ui) restyle() {
	u.look = newLook(u.dark)
	s := textarea.DefaultStyles(u.dark)
	s.Focused.CursorLine = lipgloss.NewStyle()
	s.Focused.Prompt = u.look.prompt
	s.Focused.Placeholder = u.look.dim
	s.Blurred = s.Focused
	u.input.SetStyles(s)
}

func (u *ui) Init() tea.Cmd {
	return tea.Batch(tea.RequestBackgroundColor, tea.Println(u.talker.Title()+".\n/help for help, Ctrl-D leaves."))
}

func (u *ui) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		u.width, u.height = max(msg.Width, 10), max(msg.Height, 4)
		u.input.SetWidth(u.width)
		u.input.MaxHeight = max(2, u.height/3)
		u.blocks.setWidth(u.width)
		return u, nil
	case tea.BackgroundColorMsg:
		u.dark = msg.IsDark()
		u.restyle()
		return u, nil
	case tea.KeyPressMsg:
		if cmd, done := u.key(msg); done {
			return u, cmd
		}
	case pieceMsg:
		return u, u.printAll(u.blocks.feed(msg.reasoning, msg.text))
	case doneMsg:
		return u, u.answered(msg)
	case tickMsg:
		if !u.answering {
			return u, nil
		}
		u.spin++
		return u, tick()
	}
	var cmd tea.Cmd
	u.input, cmd = u.input.Update(msg)
	return u, cmd
}

func tick() tea.Cmd {
	return tea.Tick(120*time.Millisecond, func(time.Time) tea.Msg { return tickMsg{} })
}

// key handles the keys that are not the editor's.
func (u *ui) key(k tea.KeyPressMsg) (tea.Cmd, bool) {
	switch k.String() {
	case "ctrl+c":
		switch {
		case u.answering:
			u.cancel()
		case u.input.Value() != "":
			u.input.Reset()
		default:
			return tea.Println(u.look.dim.Render("Ctrl-D or /exit leaves.")), true
		}
		return nil, true
	case "ctrl+d":
		if u.input.Value() == "" {
			return u.quit(), true // Run stops an answer
		}
	case "ctrl+l":
		return tea.ClearScreen, true
	case "enter":
		return u.enter(), true
	case "up":
		if u.input.Line() == 0 && u.input.LineInfo().RowOffset == 0 {
			u.recall(u.history.older(u.input.Value()))
			return nil, true
		}
	case "down":
		if u.input.Line() == u.input.LineCount()-1 && u.input.LineInfo().RowOffset >= u.input.LineInfo().Height-1 {
			u.recall(u.history.newer())
			return nil, true
		}
	case "ctrl+r":
		u.recall(u.history.search(u.input.Value()))
		return nil, true
	case "tab":
		u.complete()
		return nil, true
	case "esc":
		if u.answering {
			u.cancel()
		}
		return nil, true
	}
	return nil, false
}

func (u *ui) recall(text string, ok bool) {
	if ok {
		u.input.SetValue(text)
		u.input.MoveToEnd()
	}
}

// complete finishes the word of a command where only one fits.
func (u *ui) complete() {
	text := u.input.Value()
	if !strings.HasPrefix(text, "/") || strings.ContainsAny(text, " \n") {
		return
	}
	var found []string
	for _, c := range u.talker.Commands() {
		if strings.HasPrefix(c, text) {
			found = append(found, c)
		}
	}
	if len(found) == 1 {
		u.input.SetValue(found[0] + " ")
		u.input.MoveToEnd()
	}
}

func (u *ui) quit() tea.Cmd {
	u.quitting = true
	return tea.Quit
}

// enter says what was typed, or makes room for more.
func (u *ui) enter() tea.Cmd {
	if u.answering {
		return nil // what was typed meanwhile waits
	}
	text, more := Complete(u.input.Value())
	if more {
		u.input.SetValue(u.input.Value() + "\n")
		u.input.MoveToEnd()
		return nil
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	u.history.add(u.input.Value())
	u.input.Reset()
	said := tea.Println(u.said(text))
	if !strings.HasPrefix(text, "/") {
		return tea.Sequence(said, u.answer(text))
	}
	reply, say, quit := u.talker.Command(text)
	if quit {
		return tea.Sequence(said, u.quit())
	}
	cmds := []tea.Cmd{said}
	if reply != "" {
		cmds = append(cmds, tea.Println(u.dim(reply)))
	}
	if say != "" {
		cmds = append(cmds, u.answer(say))
	}
	return tea.Sequence(cmds...)
}

// dim is a text beside the conversation.
func (u *ui) dim(text string) string {
	return u.look.dim.Render(lipgloss.Wrap(Printable(text), u.width, " "))
}

// said is the input as it stays above.
func (u *ui) said(text string) string {
	lines := strings.Split(Printable(text), "\n")
	for i, l := range lines {
		p := morePrompt
		if i == 0 {
			p = firstPrompt
		}
		lines[i] = u.look.prompt.Render(p) + l
	}
	return lipgloss.Wrap(strings.Join(lines, "\n"), u.width, " ")
}

// answer starts an answer.
func (u *ui) answer(text string) tea.Cmd {
	ctx, cancel := context.WithCancel(u.ctx)
	u.answering, u.cancel, u.began = true, cancel, time.Now()
	u.finished = make(chan struct{})
	u.blocks = newSplitter(u.look, u.width, u.talker.Markdown())
	send, finished := u.send, u.finished
	go func() {
		defer close(finished)
		note, err := u.talker.Answer(ctx, text, func(reasoning bool, s string) { send(pieceMsg{reasoning, s}) })
		send(doneMsg{note, err})
	}()
	return tick()
}

// stopAnswer ends an answer and waits for its goroutine.
func (u *ui) stopAnswer() {
	if u.cancel != nil {
		u.cancel()
		<-u.finished
	}
}

func (u *ui) answered(msg doneMsg) tea.Cmd {
	u.answering = false
	u.cancel()
	out := u.blocks.end()
	if errors.Is(msg.err, context.Canceled) {
		out = append(out, u.look.dim.Render("(stopped)"))
	} else if msg.err != nil {
		out = append(out, u.look.problem.Render(lipgloss.Wrap(Printable(msg.err.Error()), u.width, " ")))
	}
	if msg.note != "" {
		out = append(out, u.dim(msg.note))
	}
	return u.printAll(append(out, ""))
}

func (u *ui) printAll(blocks []string) tea.Cmd {
	if len(blocks) == 0 {
		return nil
	}
	return tea.Println(strings.Join(blocks, "\n"))
}

var spinner = []string{"·  ", "·· ", "···", " ··", "  ·", "   "}

// View is the part of the answer that is not complete yet, as much of its end as there is room for, and the input.
func (u *ui) View() tea.View {
	if u.quitting {
		return tea.NewView("")
	}
	var b strings.Builder
	if u.answering {
		live := u.blocks.live(max(1, u.height-u.input.Height()-2))
		if live != "" {
			b.WriteString(live)
			b.WriteByte('\n')
		} else {
			b.WriteString(u.look.dim.Render(spinner[u.spin%len(spinner)]))
			b.WriteByte('\n')
		}
	}
	above := strings.Count(b.String(), "\n")
	b.WriteString(u.input.View())
	v := tea.NewView(b.String())
	if c := u.input.Cursor(); c != nil {
		c.Y += above
		v.Cursor = c
	}
	return v
}

// Complete reports whether more lines belong to a text: it ends in a backslash, or three quotes are open. The text is
// without what said so.
func Complete(s string) (text string, more bool) {
	if rest, ok := strings.CutPrefix(strings.TrimLeft(s, " "), `"""`); ok {
		body, closed := strings.CutSuffix(strings.TrimRight(rest, " \n"), `"""`)
		return strings.Trim(body, "\n"), !closed
	}
	if strings.HasSuffix(s, `\`) {
		return s, true
	}
	return strings.ReplaceAll(s, "\\\n", "\n"), false
}

// Printable leaves out control characters, so that a text cannot steer the terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return -1
		}
		return r
	}, s)
}
