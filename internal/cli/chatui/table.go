package chatui

import (
	"regexp"
	"strings"
)

var (
	delimiterCell = regexp.MustCompile(`^ *:?-+:? *$`)
	lineBreak     = regexp.MustCompile(`(?i)<br */?>`)
)

// cells splits a row of a table. A bar inside of code or behind a backslash divides nothing.
func cells(line string) []string {
	line = strings.TrimSpace(line)
	line = strings.TrimPrefix(line, "|")
	var out []string
	var b strings.Builder
	inCode := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line) && line[i+1] == '|':
			i++
			b.WriteByte('|')
		case c == '`':
			inCode = !inCode && strings.IndexByte(line[i+1:], '`') >= 0
			b.WriteByte(c)
		case c == '|' && !inCode:
			out = append(out, strings.TrimSpace(b.String()))
			b.Reset()
		default:
			b.WriteByte(c)
		}
	}
	if last := strings.TrimSpace(b.String()); last != "" || len(out) == 0 {
		out = append(out, last)
	}
	return out
}

// isDelimiter reports whether a line divides a table's header, of so many cells, from its rows.
func isDelimiter(line string, header int) bool {
	if !strings.Contains(line, "-") || !strings.Contains(line, "|") && header > 1 {
		return false
	}
	all := cells(line)
	for _, c := range all {
		if !delimiterCell.MatchString(c) {
			return false
		}
	}
	return len(all) == header
}

// table draws a table: lines[0] is the header, lines[1] the delimiters. Nothing of a cell is left out: it is broken
// into lines where the table is wider than the terminal, and written as "header: cell" where not even that is
// readable.
func (r *markdown) table(lines []string) []string {
	var rows [][]string
	count := 0
	for i, l := range lines {
		if i == 1 {
			continue
		}
		row := cells(l)
		count = max(count, len(row))
		rows = append(rows, row)
	}
	align := cells(lines[1])
	widths := make([]int, count)
	for _, row := range rows {
		for c, cell := range row {
			for _, part := range lineBreak.Split(cell, -1) {
				widths[c] = max(widths[c], columns(plain(inline(part, 0))))
			}
		}
	}
	const (
		between  = " │ "
		narrow   = 6 // columns that are readable when they are broken
		narrowed = 3 // of between
	)
	room := r.width - narrowed*(count-1)
	if total(widths) > room {
		if room < narrow*count && room < total(widths) {
			return r.records(rows)
		}
		shrink(widths, room)
	}
	wrapped := false
	var drawn [][]string // lines of each row
	for i, row := range rows {
		base := face(0)
		if i == 0 {
			base = bold
		}
		broken := make([][][]run, count)
		high := 1
		for c := range count {
			if c < len(row) {
				for _, part := range lineBreak.Split(row[c], -1) {
					broken[c] = append(broken[c], wrap(inline(part, base), widths[c])...)
				}
			}
			high = max(high, len(broken[c]))
		}
		wrapped = wrapped || high > 1
		var out []string
		for k := range high {
			var b strings.Builder
			for c := range count {
				if c > 0 {
					b.WriteString(r.look.paint(between, dimmed))
				}
				var part []run
				if k < len(broken[c]) {
					part = broken[c][k]
				}
				pad := max(0, widths[c]-columns(plain(part)))
				left := 0
				if c < len(align) && strings.HasSuffix(align[c], ":") {
					if left = pad; strings.HasPrefix(align[c], ":") {
						left = pad / 2
					}
				}
				b.WriteString(strings.Repeat(" ", left) + r.look.line(part))
				if c < count-1 {
					b.WriteString(strings.Repeat(" ", pad-left))
				}
			}
			out = append(out, b.String())
		}
		drawn = append(drawn, out)
	}
	var rule strings.Builder
	for c, w := range widths {
		if c > 0 {
			rule.WriteString("─┼─")
		}
		rule.WriteString(strings.Repeat("─", w))
	}
	var out []string
	for i, row := range drawn {
		if i == 1 || i > 1 && wrapped {
			out = append(out, r.look.paint(rule.String(), dimmed))
		}
		out = append(out, row...)
	}
	return out
}

// records writes each row of a table as lines of "header: cell".
func (r *markdown) records(rows [][]string) []string {
	var out []string
	for i, row := range rows[1:] {
		if i > 0 {
			out = append(out, "")
		}
		for c, cell := range row {
			runs := inline(lineBreak.ReplaceAllString(cell, " "), 0)
			if c < len(rows[0]) && rows[0][c] != "" {
				runs = append(append(inline(rows[0][c], bold), run{": ", bold}), runs...)
			}
			out = append(out, r.lines(wrap(runs, r.width), "", "")...)
		}
	}
	if len(rows) == 1 { // no more than a header
		for _, cell := range rows[0] {
			out = append(out, r.lines(wrap(inline(cell, bold), r.width), "", "")...)
		}
	}
	return out
}

func total(widths []int) (sum int) {
	for _, w := range widths {
		sum += w
	}
	return sum
}

// shrink takes columns from the widest until all fit.
func shrink(widths []int, room int) {
	for total(widths) > room {
		widest := 0
		for c, w := range widths {
			if w > widths[widest] {
				widest = c
			}
		}
		widths[widest]--
	}
}
