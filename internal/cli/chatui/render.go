package chatui

import (
	"strings"

	"charm.land/glamour/v2"
	"charm.land/glamour/v2/ansi"
	"charm.land/glamour/v2/styles"
	"charm.land/lipgloss/v2"
)

// look is the styles for a light or dark background.
type look struct {
	dark                 bool
	prompt, dim, problem lipgloss.Style
}

func newLook(dark bool) look {
	pick := lipgloss.LightDark(dark)
	return look{
		dark:    dark,
		prompt:  lipgloss.NewStyle().Foreground(pick(lipgloss.Color("25"), lipgloss.Color("75"))).Bold(true),
		dim:     lipgloss.NewStyle().Foreground(pick(lipgloss.Color("243"), lipgloss.Color("245"))),
		problem: lipgloss.NewStyle().Foreground(pick(lipgloss.Color("124"), lipgloss.Color("203"))),
	}
}

// renderer makes Markdown readable.
func (l look) renderer(width int) *glamour.TermRenderer {
	s := styles.LightStyleConfig
	if l.dark {
		s = styles.DarkStyleConfig
	}
	zero := uint(0)
	s.Document = ansi.StyleBlock{Margin: &zero} // the terminal's own colours, from the first column on
	s.CodeBlock.Margin = &zero
	r, err := glamour.NewTermRenderer(glamour.WithStyles(s), glamour.WithWordWrap(width))
	if err != nil {
		return nil
	}
	return r
}

// splitter cuts a streamed answer into blocks that can be rendered for good: paragraphs, lists, whole code blocks.
type splitter struct {
	look     look
	width    int // of the text: that of the terminal, at most maxWidth
	markdown bool
	render   *glamour.TermRenderer

	buf       string // the block that is not complete
	reasoning bool
	any       bool // a block was given out
}

// maxWidth is how wide lines of text get: longer ones are hard to read.
const maxWidth = 120

func newSplitter(l look, width int, markdown bool) splitter {
	width = min(width, maxWidth)
	s := splitter{look: l, width: width, markdown: markdown}
	if markdown {
		s.render = l.renderer(width)
	}
	return s
}

// setWidth follows the terminal.
func (s *splitter) setWidth(width int) {
	if width = min(width, maxWidth); width == s.width || s.width == 0 {
		return
	}
	s.width = width
	if s.markdown {
		s.render = s.look.renderer(width)
	}
}

// feed takes the next piece and returns the blocks that it completes.
func (s *splitter) feed(reasoning bool, text string) (out []string) {
	if reasoning != s.reasoning {
		out = s.flush()
		s.reasoning = reasoning
	}
	s.buf += Printable(text)
	for {
		n := blockEnd(s.buf)
		if n < 0 {
			return out
		}
		block := s.buf[:n]
		s.buf = s.buf[n:]
		if strings.TrimSpace(block) != "" {
			out = append(out, s.block(block))
		}
	}
}

// end returns what is left.
func (s *splitter) end() []string { return s.flush() }

func (s *splitter) flush() []string {
	block := s.buf
	s.buf = ""
	if strings.TrimSpace(block) == "" {
		return nil
	}
	return []string{s.block(block)}
}

// block renders one block, with an empty line before it where another one stands above.
func (s *splitter) block(text string) string {
	text = strings.Trim(text, "\n")
	switch {
	case s.reasoning:
		text = s.dimmed(text)
	case s.render != nil:
		if r, err := s.render.Render(text); err == nil {
			text = strings.Trim(r, "\n")
		}
	default:
		text = lipgloss.Wrap(text, s.width, " ")
	}
	if s.any {
		text = "\n" + text
	}
	s.any = true
	return text
}

func (s *splitter) dimmed(text string) string {
	return s.look.dim.Render(lipgloss.Wrap(strings.TrimSpace(text), max(s.width, 1), " "))
}

// live is the end of the block that is not complete, in at most so many lines.
func (s *splitter) live(lines int) string {
	text := strings.Trim(s.buf, "\n")
	if text == "" {
		return ""
	}
	if len(text) > 64<<10 { // only the end can be seen
		text = strings.ToValidUTF8(text[len(text)-64<<10:], "")
	}
	if s.reasoning {
		text = s.dimmed(text)
	} else {
		text = lipgloss.Wrap(text, max(s.width, 1), " ")
	}
	all := strings.Split(text, "\n")
	if s.any {
		all = append([]string{""}, all...)
	}
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return strings.Join(all, "\n")
}

// blockEnd is where the first block of s ends, -1 while it may go on. A block ends at an empty line outside of a code
// block, or where a code block's fence closes; a list goes on over empty lines before further items and their text.
func blockEnd(s string) int {
	fence := ""
	list := false
	for at := 0; at < len(s); {
		end := strings.IndexByte(s[at:], '\n')
		if end < 0 {
			return -1
		}
		line := s[at : at+end]
		next := at + end + 1
		trimmed := strings.TrimSpace(line)
		switch {
		case fence != "":
			if strings.HasPrefix(trimmed, fence) && strings.Trim(trimmed, fence[:1]) == "" {
				if list { // a fence inside a list item belongs to the list
					fence = ""
					break
				}
				return next
			}
		case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
			if at > 0 && !list && strings.TrimSpace(s[:at]) != "" {
				return at // what stands before the fence is a block of its own
			}
			fence = trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, trimmed[:1]))]
		case isItem(trimmed):
			list = true
		case trimmed == "" && strings.TrimSpace(s[:at]) != "":
			if !list {
				return next
			}
			rest := strings.TrimLeft(s[next:], "\n")
			line, _, whole := strings.Cut(rest, "\n")
			if !whole {
				return -1 // the next line tells whether the list goes on
			}
			if !isItem(strings.TrimSpace(line)) && !strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "\t") {
				return next
			}
		}
		at = next
	}
	return -1
}

// isItem reports whether a line begins an item of a list.
func isItem(line string) bool {
	if strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "* ") || strings.HasPrefix(line, "+ ") {
		return true
	}
	digits := strings.TrimLeft(line, "0123456789")
	return len(digits) < len(line) && (strings.HasPrefix(digits, ". ") || strings.HasPrefix(digits, ") "))
}
