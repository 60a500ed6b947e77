package cli

import (
	"bytes"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"
)

// A table sets columns one below the other. On a terminal, its lines from cut on lose what does not fit.
type table struct {
	*tabwriter.Writer
	text  bytes.Buffer
	out   io.Writer
	width int // of the terminal; 0: none, nothing is cut
	cut   int // lines before this one are left whole
}

func (a *app) table() *table {
	t := &table{out: a.io.Out, width: a.width()}
	t.Writer = tabwriter.NewWriter(&t.text, 0, 0, 2, ' ', 0)
	return t
}

// width is the number of columns of the terminal that standard output is, or 0.
func (a *app) width() int {
	f, ok := a.outFile()
	if !ok || !a.io.OutTTY {
		return 0
	}
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return w
}

// Flush writes the table.
func (t *table) Flush() error {
	if err := t.Writer.Flush(); err != nil {
		return err
	}
	var b strings.Builder
	n := 0
	for line := range strings.Lines(t.text.String()) {
		line = strings.TrimRight(line, " \n")
		if t.width > 0 && n >= t.cut {
			line = ansi.Truncate(line, t.width, "…")
		}
		b.WriteString(line + "\n")
		n++
	}
	_, err := io.WriteString(t.out, b.String())
	return err
}
