package chatui

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// look is the styles for a light or dark background.
type look struct {
	dark                       bool
	prompt, dim, problem       lipgloss.Style
	head, code, word, lit, rem lipgloss.Style
}

func newLook(dark bool) look {
	pick := lipgloss.LightDark(dark)
	colour := func(light, dark string) lipgloss.Style {
		return lipgloss.NewStyle().Foreground(pick(lipgloss.Color(light), lipgloss.Color(dark)))
	}
	return look{
		dark:    dark,
		prompt:  colour("25", "75").Bold(true),
		dim:     colour("243", "245"),
		problem: colour("124", "203"),
		head:    colour("25", "75").Bold(true),
		code:    colour("95", "180"),
		word:    colour("25", "110"),
		lit:     colour("64", "150"),
		rem:     colour("243", "245"),
	}
}

// paint writes text in a face. Lines are painted one by one, so that no style goes on over an end of line.
func (l look) paint(text string, f face) string {
	if f == 0 || strings.TrimSpace(text) == "" {
		return text
	}
	s := lipgloss.NewStyle()
	switch {
	case f&heading != 0:
		s = l.head
	case f&dimmed != 0:
		s = l.dim
	case f&keyword != 0:
		s = l.word
	case f&literal != 0:
		s = l.lit
	case f&remark != 0:
		s = l.rem
	case f&code != 0:
		s = l.code
	}
	return s.Bold(f&(bold|heading) != 0).Italic(f&italic != 0).Strikethrough(f&strike != 0).Underline(f&link != 0).
		UnderlineSpaces(false).StrikethroughSpaces(false).TabWidth(lipgloss.NoTabConversion).Render(text)
}

func (l look) line(runs []run) string {
	var b strings.Builder
	for _, r := range runs {
		b.WriteString(l.paint(r.text, r.face))
	}
	return b.String()
}
