package chatui

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
)

// A screen writes at the end of what a terminal shows: lines that are done and scroll away with everything above, and
// below them the region, which is drawn anew. A line that is done is written once and never touched again, whatever its
// length; bubbletea's own way to print above a view leaves parts of the view behind when more is printed than fits.
// RATIONALE: Why does the chat draw its own lines?
type screen struct {
	w       io.Writer
	profile colorprofile.Profile

	region []string // as it stands on the terminal, each line narrower than it
	x, y   int      // the cursor, in the region
}

// draw writes lines that are done, and then the region with the cursor at column x of its line y, in one write.
func (s *screen) draw(done, region []string, x, y int) {
	keep := 0 // lines of the region that stay as they are
	if len(done) == 0 {
		for keep < min(len(region), len(s.region)) && region[keep] == s.region[keep] {
			keep++
		}
		if keep == len(region) && keep == len(s.region) && x == s.x && y == s.y {
			return
		}
		keep = min(keep, max(0, len(region)-1), max(0, len(s.region)-1)) // the cursor goes to a line that is there
	}
	var b bytes.Buffer
	b.WriteString(ansi.SetModeSynchronizedOutput + ansi.ResetModeTextCursorEnable)
	move(&b, keep-s.y)
	b.WriteString("\r" + ansi.EraseScreenBelow)
	for _, l := range done {
		b.WriteString(s.colours(l) + "\r\n")
	}
	for i, l := range region[min(keep, len(region)):] {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(s.colours(l))
	}
	move(&b, y-max(0, len(region)-1))
	b.WriteByte('\r')
	if x > 0 {
		b.WriteString(ansi.CursorForward(x))
	}
	b.WriteString(ansi.SetModeTextCursorEnable + ansi.ResetModeSynchronizedOutput)
	// A terminal that is gone ends the input, and with it the chat.
	_, _ = s.w.Write(b.Bytes())
	s.region, s.x, s.y = region, x, y
}

// clear empties the screen; what is drawn next begins at its top.
func (s *screen) clear() {
	_, _ = io.WriteString(s.w, ansi.EraseEntireScreen+ansi.CursorHomePosition)
	s.region, s.x, s.y = nil, 0, 0
}

// resized finds the cursor again when the terminal has another width and has broken the region's lines anew.
func (s *screen) resized(width int) {
	y := s.x / width
	for _, l := range s.region[:min(s.y, len(s.region))] {
		y += max(1, (columns(l)+width-1)/width)
	}
	s.y = y
}

// Modes of the terminal that the chat wants: pasted text is marked, and keys with Shift and Alt can be told apart.
const (
	wantModes  = ansi.SetModeBracketedPaste + ansi.SetModifyOtherKeys2 + "\x1b[>1u"
	resetModes = ansi.ResetModeBracketedPaste + ansi.ResetModifyOtherKeys + "\x1b[<1u"
)

func (s *screen) write(sequence string) { _, _ = io.WriteString(s.w, sequence) }

// colours writes a line with the colours that there are.
func (s *screen) colours(line string) string {
	var b strings.Builder
	_, _ = (&colorprofile.Writer{Forward: &b, Profile: s.profile}).Write([]byte(line))
	return b.String()
}

func move(w io.Writer, lines int) {
	switch {
	case lines < 0:
		fmt.Fprint(w, ansi.CursorUp(-lines))
	case lines > 0:
		fmt.Fprint(w, ansi.CursorDown(lines))
	}
}

// quiet is the terminal as bubbletea gets it: something whose size and modes it can ask for and set, and on which its
// own drawing does not appear.
type quiet struct{ f *os.File }

func (q quiet) Read(b []byte) (int, error)  { return q.f.Read(b) }
func (q quiet) Write(b []byte) (int, error) { return len(b), nil }
func (q quiet) Close() error                { return nil }
func (q quiet) Fd() uintptr                 { return q.f.Fd() }
