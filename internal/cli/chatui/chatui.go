// Package chatui is the chat in a terminal: an input with editing and history at the bottom, and answers that scroll
// away above it, with Markdown rendered. It knows keys and screens; what is said, and to whom, is its Talker's.
package chatui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
)

// A Talker is what the chat is with.
type Talker interface {
	Title() string
	Markdown() bool     // answers are to be rendered
	Commands() []string // words that begin a command, for completion

	// Command runs a line that IsCommand accepts.
	Command(line string) Outcome

	// Answer says text and hands the answer to emit as it comes, on the calling goroutine. note is shown afterwards.
	Answer(ctx context.Context, text string, emit func(reasoning bool, text string)) (note string, err error)
}

// An Outcome is what a command did.
type Outcome struct {
	Reply string // is shown
	Quit  bool
	// Do, where it is not nil, goes on as an answer does: it may take long, hands out text, and can be stopped.
	Do func(ctx context.Context, emit func(reasoning bool, text string)) (note string, err error)
}

// Kept is the error of a question that the Talker keeps, so that it need not be typed again.
type Kept struct{ Err error }

func (k Kept) Error() string { return k.Err.Error() }

// Unwrap returns the reason.
func (k Kept) Unwrap() error { return k.Err }

// Options say where the chat is.
type Options struct {
	In, Out *os.File
	Environ []string // NO_COLOR and the like count
	History string   // file that keeps what was typed; "": none
}

// Run talks until the user leaves.
func Run(ctx context.Context, t Talker, o Options) error {
	s := &screen{w: o.Out, profile: profile(o.Out, o.Environ)}
	m := newModel(ctx, t, o, s)
	p := tea.NewProgram(
		m,
		tea.WithContext(ctx),
		tea.WithInput(o.In),
		tea.WithOutput(quiet{o.Out}),
		tea.WithEnvironment(o.Environ),
	)
	m.send = p.Send
	s.write(wantModes + ansi.RequestBackgroundColor)
	_, err := p.Run()
	m.stopAnswer()
	s.write(resetModes + ansi.SetModeTextCursorEnable)
	if errors.Is(err, tea.ErrInterrupted) || errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return nil
	}
	return err
}

// profile is the colours that the terminal has and the user wants: none with NO_COLOR, whatever its value is.
func profile(out *os.File, environ []string) colorprofile.Profile {
	p := colorprofile.Detect(out, environ)
	for _, v := range environ {
		if value, ok := strings.CutPrefix(v, "NO_COLOR="); ok && value != "" {
			p = min(p, colorprofile.ASCII)
		}
	}
	return p
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
	screen *screen
	done   []string // lines that scroll away with the next drawing
	input  textarea.Model
	width  int
	height int
	dark   bool
	look   look

	history *history

	answering bool
	cancel    context.CancelFunc
	finished  chan struct{} // closed when the answering goroutine is gone
	answer    *markdown
	partial   string // the answer's last line, while it is not complete
	reasoning bool
	typed     string // what is answered
	began     time.Time
	ticks     int
	preview   []string // what is not complete, as it was drawn last
	stale     bool     // pieces came that preview does not have
	queue     []string // what was entered during the answer
	title     bool     // was shown
	started   time.Time
	quitting  bool
	suspended bool
}

func newModel(ctx context.Context, t Talker, o Options, s *screen) *ui {
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
	u := &ui{
		ctx: ctx, talker: t, screen: s, input: in, width: 80, height: 24, dark: darkSays(o.Environ), history: openHistory(o.History), send: func(tea.Msg) {}, started: time.Now(),
	}
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

func (u *ui) Init() tea.Cmd { return nil }

func (u *ui) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := u.handle(msg)
	if _, ok := msg.(pieceMsg); !ok { // pieces wait for the next tick
		u.draw()
	}
	return u, cmd
}

// View is empty: the screen draws.
func (u *ui) View() tea.View { return tea.NewView("") }

func (u *ui) handle(msg tea.Msg) (cmd tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		u.resize(msg.Width, msg.Height)
		return nil
	case tea.BackgroundColorMsg:
		u.dark = msg.IsDark()
		u.restyle()
		return nil
	case tea.ResumeMsg:
		u.suspended = false
		u.screen.write(wantModes)
		return nil
	case tea.KeyPressMsg:
		if cmd, done := u.key(msg); done {
			return cmd
		}
	case pieceMsg:
		u.piece(msg.reasoning, msg.text)
		return nil
	case doneMsg:
		return u.answered(msg)
	case tickMsg:
		if !u.answering {
			return nil
		}
		u.ticks++
		return tick()
	}
	u.input, cmd = u.input.Update(msg)
	return cmd
}

func (u *ui) resize(width, height int) {
	u.screen.resized(max(width, 1))
	u.width, u.height = max(width, 10), max(height, 4)
	u.input.SetWidth(u.width - 1)
	u.input.MaxHeight = max(2, u.height/3)
	if u.answer != nil {
		u.answer.width = max(u.width-1, minWidth)
		u.stale = true
	}
	if !u.title {
		u.title = true
		u.print(u.styled(u.talker.Title()+".\n/help for help, Ctrl-D leaves.", lipgloss.NewStyle()))
	}
}

// tickTime is how long what came may wait to be drawn.
const tickTime = 40 * time.Millisecond

func tick() tea.Cmd { return tea.Tick(tickTime, func(time.Time) tea.Msg { return tickMsg{} }) }

// typedAhead is how long after the start keys may still be what was typed before it: then the terminal has made line
// feeds of Enter.
const typedAhead = 300 * time.Millisecond

// key handles the keys that are not the editor's.
func (u *ui) key(k tea.KeyPressMsg) (tea.Cmd, bool) {
	switch k.String() {
	case "ctrl+c":
		switch {
		case u.answering:
			u.stop()
		case u.input.Value() != "":
			u.input.Reset()
		default:
			u.print(u.dim("Ctrl-D or /exit leaves."))
		}
		return nil, true
	case "ctrl+d":
		if u.input.Value() == "" {
			return u.quit(), true // Run stops an answer
		}
	case "ctrl+z":
		u.flush()
		u.screen.write(resetModes)
		u.suspended = true
		return tea.Suspend, true
	case "ctrl+l":
		u.screen.clear()
		return nil, true
	case "ctrl+j":
		if time.Since(u.started) < typedAhead {
			return u.enter(), true
		}
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
			u.stop()
		}
		return nil, true
	}
	return nil, false
}

// stop ends the answer. What waits behind it comes back to the input.
func (u *ui) stop() {
	u.cancel()
	if len(u.queue) > 0 {
		text := strings.Join(u.queue, "\n")
		if v := u.input.Value(); v != "" {
			text += "\n" + v
		}
		u.queue = nil
		u.recall(text, true)
	}
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

// enter says what was typed, or makes room for more. During an answer it waits for the answer's end.
func (u *ui) enter() tea.Cmd {
	typed := u.input.Value()
	text, more := Complete(typed)
	if more {
		u.input.SetValue(typed + "\n")
		u.input.MoveToEnd()
		return nil
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	u.history.add(typed)
	u.input.Reset()
	if u.answering {
		u.queue = append(u.queue, typed)
		return nil
	}
	return u.submit(typed)
}

// submit says, or does, what was typed.
func (u *ui) submit(typed string) tea.Cmd {
	text, _ := Complete(typed)
	u.print(u.said(text)...)
	if !IsCommand(typed) {
		return u.ask(typed, func(ctx context.Context, emit func(bool, string)) (string, error) {
			return u.talker.Answer(ctx, text, emit)
		})
	}
	did := u.talker.Command(text)
	if did.Quit {
		return u.quit()
	}
	if did.Reply != "" {
		u.print(u.dim(did.Reply))
	}
	if did.Do != nil {
		return u.ask("", did.Do)
	}
	return u.next()
}

// next takes what waited for the end of an answer.
func (u *ui) next() tea.Cmd {
	if len(u.queue) == 0 {
		return nil
	}
	typed := u.queue[0]
	u.queue = u.queue[1:]
	return u.submit(typed)
}

// print lets texts scroll away.
func (u *ui) print(texts ...string) {
	for _, t := range texts {
		u.done = append(u.done, strings.Split(t, "\n")...)
	}
}

// dim is a text beside the conversation.
func (u *ui) dim(text string) string { return u.styled(text, u.look.dim) }

// styled is a text in one style, broken into lines with their indentation.
func (u *ui) styled(text string, style lipgloss.Style) string {
	var out []string
	for l := range strings.SplitSeq(strings.TrimRight(Printable(text), "\n"), "\n") {
		l = untab(l)
		pad := l[:min(indentOf(l), u.width/2)]
		for _, part := range wrap([]run{{strings.TrimLeft(l, " "), 0}}, u.width-1-len(pad)) {
			if t := plain(part); t != "" {
				out = append(out, pad+style.Render(t))
			} else {
				out = append(out, "")
			}
		}
	}
	return strings.Join(out, "\n")
}

// said is the input as it stays above.
func (u *ui) said(text string) []string {
	var out []string
	p := firstPrompt
	for l := range strings.SplitSeq(Printable(text), "\n") {
		for _, part := range cut([]run{{untab(l), 0}}, u.width-1-len(p)) {
			out = append(out, u.look.prompt.Render(p)+plain(part))
			p = morePrompt
		}
	}
	return out
}

// ask starts an answer to what was typed.
func (u *ui) ask(typed string, do func(context.Context, func(bool, string)) (string, error)) tea.Cmd {
	ctx, cancel := context.WithCancel(u.ctx)
	u.answering, u.cancel, u.began, u.ticks, u.typed = true, cancel, time.Now(), 0, typed
	u.finished = make(chan struct{})
	u.partial, u.reasoning, u.preview = "", false, nil
	u.answer = newMarkdown(u.look, u.width, !u.talker.Markdown())
	send, finished := u.send, u.finished
	go func() {
		defer close(finished)
		note, err := do(ctx, func(reasoning bool, s string) { send(pieceMsg{reasoning, s}) })
		send(doneMsg{note, err})
	}()
	return tick()
}

// piece takes the next piece of the answer.
func (u *ui) piece(reasoning bool, text string) {
	if reasoning != u.reasoning {
		u.endAnswer()
		u.answer.blank = true
		u.reasoning = reasoning
	}
	u.answer.face = 0
	if reasoning {
		u.answer.face = dimmed
	}
	u.partial += Printable(text)
	u.stale = true
	for {
		line, rest, whole := strings.Cut(u.partial, "\n")
		if !whole {
			return
		}
		u.done = append(u.done, u.answer.feed(line)...)
		u.partial = rest
	}
}

// endAnswer draws what is left of a text.
func (u *ui) endAnswer() {
	if strings.TrimSpace(u.partial) != "" {
		u.done = append(u.done, u.answer.feed(u.partial)...)
	}
	u.done = append(u.done, u.answer.end()...)
	u.partial = ""
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
	u.endAnswer()
	u.answer = nil
	switch {
	case errors.Is(msg.err, context.Canceled):
		u.print(u.dim("(stopped)"))
	case msg.err != nil:
		u.print(u.styled(msg.err.Error(), u.look.problem))
		// What was not answered can be said again. What waits may build on it.
		if kept := new(Kept); u.typed != "" && !errors.As(msg.err, kept) {
			u.queue = append([]string{u.typed}, u.queue...)
		}
		u.stop()
	}
	if msg.note != "" {
		u.print(u.dim(msg.note))
	}
	u.print("")
	return u.next()
}

var spinner = []string{"·  ", "·· ", "···", " ··", "  ·", "   "}

// flush writes the lines that are done without the region.
func (u *ui) flush() {
	u.screen.draw(u.done, nil, 0, 0)
	u.done = nil
}

// draw shows what happened: the lines that are done, and below them the answer's line that is not complete, as much of
// its end as there is room for, what waits, and the input.
func (u *ui) draw() {
	switch {
	case u.quitting:
		u.flush()
		return
	case u.suspended || !u.title: // nothing is drawn before the size is known
		return
	}
	input := strings.Split(u.input.View(), "\n")
	for i, l := range input {
		input[i] = strings.TrimRight(l, " ")
	}
	var region []string
	if u.answering {
		waiting := u.waiting(3)
		region = u.live(max(1, u.height-len(input)-len(waiting)-1))
		region = append(region, waiting...)
	}
	x, y := 0, len(region)
	if c := u.input.Cursor(); c != nil {
		x, y = c.X, y+c.Y
	}
	u.screen.draw(u.done, append(region, input...), x, min(y, len(region)+len(input)-1))
	u.done = nil
}

// live is the end of what is not complete.
func (u *ui) live(most int) []string {
	const seen = 16 << 10 // bytes; more than any screen shows
	if u.stale {
		u.preview, u.stale = u.answer.preview(lastRunes(u.partial, seen)), false
	}
	lines := u.preview
	if len(lines) == 0 {
		s := spinner[u.ticks/3%len(spinner)]
		if d := time.Since(u.began); d >= 3*time.Second && !u.answer.began {
			s += fmt.Sprintf(" %d s", int(d.Seconds()))
		}
		return []string{u.look.dim.Render(s)}
	}
	return lines[max(0, len(lines)-most):]
}

// waiting says what was entered during the answer.
func (u *ui) waiting(most int) []string {
	var out []string
	for i, typed := range u.queue {
		if i == most-1 && len(u.queue) > most {
			out = append(out, u.look.dim.Render(fmt.Sprintf("and %d more", len(u.queue)-i)))
			break
		}
		line := ansi.Truncate("next: "+strings.ReplaceAll(untab(Printable(typed)), "\n", " "), u.width-1, "…")
		out = append(out, u.look.dim.Render(line))
	}
	return out
}

// IsCommand reports whether what was typed is for the chat and not for the model: it begins with a slash and a word
// without another one. Paths, quoted text and text that begins with a space are said.
func IsCommand(typed string) bool {
	word, _, _ := strings.Cut(typed, " ")
	return strings.HasPrefix(word, "/") && len(word) > 1 && !strings.ContainsAny(word[1:], "/\\.\n")
}

// Complete reports whether more lines belong to a text: it ends in a backslash, or three quotes are open, which stand
// at its begin or behind the words of a command. The text is without what said so.
func Complete(typed string) (text string, more bool) {
	before, rest, quoted := strings.Cut(typed, `"""`)
	if quoted && (strings.TrimSpace(before) == "" || IsCommand(typed) && strings.HasSuffix(before, " ")) {
		body, closed := strings.CutSuffix(strings.TrimRight(rest, " \n"), `"""`)
		return strings.TrimLeft(before, " ") + strings.Trim(body, "\n"), !closed
	}
	if strings.HasSuffix(typed, `\`) {
		return typed, true
	}
	return strings.ReplaceAll(typed, "\\\n", "\n"), false
}

// Printable leaves out control characters, and those that turn the direction of writing, so that a text cannot steer
// the terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < ' ' && r != '\n' && r != '\t',
			r == 0x7f,
			r >= 0x80 && r < 0xa0,
			r >= 0x202a && r <= 0x202e,
			r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, s)
}
