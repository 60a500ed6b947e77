package tool

import (
	"errors"
	"fmt"
	"strings"
)

// A replacement of a text in a file. The text is looked for as it is; then, line by line, without what is blank at the
// ends of lines; then without regard to indentation, where the new text is indented as the file is. Nothing that is only
// similar is replaced: the nearest is shown instead.
// RATIONALE: Why does an edit not replace what is only similar?
type replacement struct {
	old, new string
	all      bool
}

// A spot is where the old text stands in a file: lines [from, to).
type spot struct{ from, to int }

// maxMatch bounds the comparisons of lines for one replacement.
const maxMatch = 20_000_000

// apply returns the file's text with the replacement made, and what was done.
func (r replacement) apply(s, name string) (string, string, error) {
	if !strings.Contains(s, "\r") {
		r.old, r.new = strings.ReplaceAll(r.old, "\r\n", "\n"), strings.ReplaceAll(r.new, "\r\n", "\n")
	}
	switch {
	case r.old == "":
		return "", "", errors.New("old is empty: it must be a text of the file")
	case r.old == r.new:
		return "", "", errors.New("old and new are the same")
	}
	if n := strings.Count(s, r.old); n > 0 {
		return r.exact(s, name, n)
	}
	file, old := lines(s), lines(strings.Trim(r.old, "\n"))
	if len(old) == 0 || len(file)*len(old) > maxMatch {
		return "", "", fmt.Errorf("old is not in %s", name)
	}
	for _, l := range layers {
		spots := l.find(file, old)
		if len(spots) == 0 {
			continue
		}
		if len(spots) > 1 && !r.all {
			return "", "", several(name, spots)
		}
		return r.byLines(s, file, old, spots, l)
	}
	if len(strings.TrimSpace(r.new)) >= 8 && strings.Contains(s, r.new) {
		return "", "", fmt.Errorf("old is not in %s, but new is, in line %d: is it done already?", name,
			strings.Count(s[:strings.Index(s, r.new)], "\n")+1)
	}
	return "", "", notFound(name, file, old)
}

func (r replacement) exact(s, name string, n int) (string, string, error) {
	var spots []spot
	for at := 0; len(spots) < n; {
		i := strings.Index(s[at:], r.old) + at
		from := strings.Count(s[:i], "\n")
		spots = append(spots, spot{from, from + len(lines(r.old))})
		at = i + len(r.old)
		if len(spots) > 50 && !r.all {
			break
		}
	}
	if n > 1 && !r.all {
		return "", "", several(name, spots)
	}
	return strings.ReplaceAll(s, r.old, r.new), places(spots), nil
}

// places words where something was replaced.
func places(spots []spot) string {
	var out []string
	for i, p := range spots {
		if i == 10 {
			out = append(out, fmt.Sprintf("… %d places in all", len(spots)))
			break
		}
		if p.to-p.from <= 1 {
			out = append(out, fmt.Sprint(p.from+1))
		} else {
			out = append(out, fmt.Sprintf("%d-%d", p.from+1, p.to))
		}
	}
	word := "lines "
	if len(spots) == 1 && spots[0].to-spots[0].from <= 1 {
		word = "line "
	}
	return word + strings.Join(out, ", ")
}

func several(name string, spots []spot) error {
	return fmt.Errorf("old is in %s %d times (%s): give more lines around it, or all to replace each", name, len(spots), places(spots))
}

// A layer is a way to compare lines.
type layer struct {
	name string
	key  func(string) string
	// indent: what is in front of lines may differ, in the same way all through.
	indent bool
}

var layers = []layer{
	{"but for blanks at the ends of lines", func(s string) string { return strings.TrimRight(s, " \t\r") }, false},
	{"but for indentation", strings.TrimSpace, true},
}

// find returns where the old lines stand, without overlaps.
func (l layer) find(file, old []string) []spot {
	keys := make([]string, len(file))
	for i, s := range file {
		keys[i] = l.key(s)
	}
	want := make([]string, len(old))
	blank := true
	for i, s := range old {
		want[i] = l.key(s)
		blank = blank && strings.TrimSpace(s) == ""
	}
	if blank {
		return nil
	}
	var out []spot
search:
	for i := 0; i+len(want) <= len(keys); i++ {
		for j, w := range want {
			if keys[i+j] != w {
				continue search
			}
		}
		if l.indent && indents(file[i:i+len(old)], old) == nil {
			continue
		}
		out = append(out, spot{i, i + len(old)})
		i += len(old) - 1
	}
	return out
}

// leading returns what is blank in front of a line.
func leading(s string) string { return s[:len(s)-len(strings.TrimLeft(s, " \t"))] }

// indents returns which indentation of the file each of the old text's stands for; nil: one stands for several.
func indents(file, old []string) map[string]string {
	out := map[string]string{}
	for i, s := range old {
		if strings.TrimSpace(s) == "" {
			continue
		}
		in := leading(s)
		if was, ok := out[in]; ok && was != leading(file[i]) {
			return nil
		}
		out[in] = leading(file[i])
	}
	return out
}

// reindent moves a new line as the old ones were moved: by the longest indentation of theirs that it begins with. What it has beyond
// is taken over, with tabs where the file has tabs and the text has blanks, or the other way round.
func reindent(line string, in map[string]string, unit string) string {
	if strings.TrimSpace(line) == "" {
		return ""
	}
	own := leading(line)
	rest := strings.TrimLeft(line, " \t")
	best, found := "", false
	for from := range in {
		if strings.HasPrefix(own, from) && (!found || len(from) > len(best)) {
			best, found = from, true
		}
	}
	if found {
		return in[best] + convert(own[len(best):], unit, in) + rest
	}
	// It stands further out than all of the old lines: as much less than the outermost of them.
	least, set := "", false
	for from := range in {
		if !set || len(from) < len(least) {
			least, set = from, true
		}
	}
	to := in[least]
	less := convert(strings.TrimPrefix(least, own), unit, in)
	if strings.HasSuffix(to, less) {
		return strings.TrimSuffix(to, less) + rest
	}
	return rest
}

// convert makes tabs of units of blanks where the file has tabs, and blanks of tabs where it has blanks.
func convert(s, unit string, in map[string]string) string {
	tabs := false
	for _, to := range in {
		tabs = tabs || strings.Contains(to, "\t")
	}
	blanks := false
	for _, to := range in {
		blanks = blanks || strings.Contains(to, " ")
	}
	switch {
	case tabs && !blanks && unit != "" && !strings.Contains(s, "\t"):
		return strings.Repeat("\t", len(s)/len(unit)) + s[len(s)/len(unit)*len(unit):]
	case blanks && !tabs && strings.Contains(s, "\t"):
		return strings.ReplaceAll(s, "\t", "    ")
	}
	return s
}

// unitOf is how many blanks a text indents by: the smallest difference of two of its lines'.
func unitOf(all ...[]string) string {
	best := 0
	last := -1
	for _, ls := range all {
		for _, s := range ls {
			in := leading(s)
			if strings.Contains(in, "\t") || strings.TrimSpace(s) == "" {
				continue
			}
			if d := len(in) - last; last >= 0 && d > 1 && (best == 0 || d < best) {
				best = d
			}
			last = len(in)
		}
	}
	if best == 0 {
		best = 4
	}
	return strings.Repeat(" ", best)
}

// byLines replaces whole lines.
func (r replacement) byLines(s string, file, old []string, spots []spot, l layer) (string, string, error) {
	newLines := lines(strings.Trim(r.new, "\n"))
	if strings.Trim(r.new, "\n") == "" && r.new != "" {
		newLines = []string{""}
	}
	var out []string
	at := 0
	for _, p := range spots {
		out = append(out, file[at:p.from]...)
		var in map[string]string
		if l.indent {
			in = indents(file[p.from:p.to], old)
		}
		end := ""
		if strings.HasSuffix(file[p.from], "\r") {
			end = "\r"
		}
		unit := unitOf(old, newLines)
		for i, line := range newLines {
			if i < len(old) && line == old[i] {
				out = append(out, file[p.from+i]) // a line that stays is not touched at all
				continue
			}
			if in != nil {
				line = reindent(line, in, unit)
			}
			out = append(out, strings.TrimSuffix(line, "\r")+end)
		}
		at = p.to
	}
	out = append(out, file[at:]...)
	text := strings.Join(out, "\n")
	if strings.HasSuffix(s, "\n") && len(out) > 0 {
		text += "\n"
	}
	if text == s {
		return "", "", errors.New("old and new are the same, " + l.name)
	}
	return text, places(spots) + " (old was found " + l.name + ")", nil
}

// notFound says so, and shows what is nearest.
func notFound(name string, file, old []string) error {
	best, at, of := nearestLines(file, old)
	if best < 0.5 {
		return fmt.Errorf("old is not in %s: read the file, and copy old from it", name)
	}
	const most = 30
	end := min(at+of, at+most)
	return fmt.Errorf("old is not in %s. The nearest is in lines %d-%d:\n%s\nCopy old from it exactly", name, at+1, at+of,
		strings.Join(file[at:end], "\n"))
}

// nearestLines returns the stretch of the file that has most of the old lines, as the part of the old text that it has.
func nearestLines(file, old []string) (score float64, at, length int) {
	if len(file)*len(old) > maxMatch/100 || len(file) == 0 {
		return 0, 0, 0
	}
	length = min(len(old), len(file))
	like := make([][]float64, len(old))
	trimmed := make([]map[string]bool, len(file))
	for i, s := range file {
		trimmed[i] = words(s)
	}
	for j, s := range old {
		like[j] = make([]float64, len(file))
		w := words(s)
		for i := range file {
			like[j][i] = alike(w, trimmed[i], strings.TrimSpace(s) == strings.TrimSpace(file[i]))
		}
	}
	for i := 0; i+length <= len(file); i++ {
		sum := 0.0
		for j := range length {
			// a line may be missing or too much
			v := like[j][i+j]
			if i+j > 0 {
				v = max(v, 0.9*like[j][i+j-1])
			}
			if i+j+1 < len(file) {
				v = max(v, 0.9*like[j][i+j+1])
			}
			sum += v
		}
		if sum /= float64(len(old)); sum > score {
			score, at = sum, i
		}
	}
	return score, at, length
}

// words are the words of a line, and its marks.
func words(s string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsFuncSeq(s, func(r rune) bool {
		return !(r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 0x7f)
	}) {
		out[w] = true
	}
	return out
}

// alike is how much two lines have in common, from 0 to 1.
func alike(a, b map[string]bool, same bool) float64 {
	if same {
		return 1
	}
	if len(a)+len(b) == 0 {
		return 0
	}
	n := 0
	for w := range a {
		if b[w] {
			n++
		}
	}
	return 2 * float64(n) / float64(len(a)+len(b))
}
