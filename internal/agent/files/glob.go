// Package files says which files of a workspace count: patterns of paths, the ignore files of Git, and a walk that
// obeys them, leaves the workspace by no link, and is bounded. It knows no tools, models or permissions.
package files

import (
	"fmt"
	"regexp"
	"strings"
)

// A Pattern is a compiled glob over paths with slashes: * and ? stand for anything but a slash, ** for any number of
// folders, [a-z] and [!a-z] for a character, {a,b} for alternatives, \ takes a character as it is.
type Pattern struct {
	text string
	re   *regexp.Regexp
}

// maxPattern bounds a pattern, in bytes.
const maxPattern = 4096

// Compile reads a glob.
func Compile(glob string) (*Pattern, error) {
	expr, err := translate(glob, true)
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile("^(?s:" + expr + ")$")
	if err != nil {
		return nil, fmt.Errorf("the pattern %q cannot be read: %w", glob, err)
	}
	return &Pattern{glob, re}, nil
}

// Match tells whether the pattern stands for the whole path.
func (p *Pattern) Match(path string) bool { return p.re.MatchString(path) }

// String returns the pattern as it was written.
func (p *Pattern) String() string { return p.text }

// Literal returns what the pattern begins with up to the folder in front of its first wildcard, without a slash at the
// end. Everything that it matches is that path or lies below it.
func Literal(glob string) string {
	i := strings.IndexAny(glob, `*?[{\`)
	if i < 0 {
		return strings.TrimSuffix(glob, "/")
	}
	if j := strings.LastIndexByte(glob[:i], '/'); j > 0 {
		return glob[:j]
	} else if j == 0 {
		return "/"
	}
	return ""
}

// translate returns the regular expression of a glob. Braces are those of shells, which ignore files do not have.
func translate(glob string, braces bool) (string, error) {
	if len(glob) > maxPattern {
		return "", fmt.Errorf("a pattern of %d bytes is longer than %d", len(glob), maxPattern)
	}
	var b strings.Builder
	open := 0
	for i := 0; i < len(glob); i++ {
		c := glob[i]
		switch {
		case c == '*' && strings.HasPrefix(glob[i:], "**"):
			start := i == 0 || glob[i-1] == '/'
			for i+1 < len(glob) && glob[i+1] == '*' {
				i++
			}
			switch {
			case start && i+1 < len(glob) && glob[i+1] == '/':
				b.WriteString(`(?:[^/]*/)*`) // any folders, none among them
				i++
			default:
				b.WriteString(`.*`)
			}
		case c == '*':
			b.WriteString(`[^/]*`)
		case c == '?':
			b.WriteString(`[^/]`)
		case c == '[':
			end, class := charClass(glob[i:])
			if end == 0 {
				b.WriteString(`\[`)
				continue
			}
			b.WriteString(class)
			i += end - 1
		case c == '\\' && i+1 < len(glob):
			i++
			b.WriteString(regexp.QuoteMeta(glob[i : i+1]))
		case c == '{' && braces:
			open++
			b.WriteString(`(?:`)
		case c == '}' && open > 0:
			open--
			b.WriteString(`)`)
		case c == ',' && open > 0:
			b.WriteString(`|`)
		default:
			b.WriteString(regexp.QuoteMeta(glob[i : i+1]))
		}
		if c >= 0x80 { // a character of several bytes: its bytes may not be quoted apart
			s := b.String()
			b.Reset()
			b.WriteString(s[:len(s)-len(regexp.QuoteMeta(glob[i:i+1]))])
			n := 1
			for i+n < len(glob) && glob[i+n]&0xc0 == 0x80 {
				n++
			}
			b.WriteString(regexp.QuoteMeta(glob[i : i+n]))
			i += n - 1
		}
	}
	if open > 0 {
		return "", fmt.Errorf("the pattern %q has a { without its }", glob)
	}
	return b.String(), nil
}

// charClass returns the length of the class at the beginning of s and its expression; 0: there is none.
func charClass(s string) (int, string) {
	i := 1
	not := false
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		not = true
		i++
	}
	begin := i
	for i < len(s) && (s[i] != ']' || i == begin) {
		if s[i] == '\\' {
			i++
		}
		i++
	}
	if i >= len(s) {
		return 0, ""
	}
	body := s[begin:i]
	var b strings.Builder
	b.WriteString("[")
	if not {
		b.WriteString("^/")
	}
	for j := 0; j < len(body); j++ {
		switch {
		case body[j] == '\\' && j+1 < len(body):
			j++
			b.WriteString(`\` + body[j:j+1])
		case strings.IndexByte(`[]^\&~`, body[j]) >= 0:
			b.WriteString(`\` + body[j:j+1])
		default:
			b.WriteByte(body[j])
		}
	}
	b.WriteString("]")
	if _, err := regexp.Compile(b.String()); err != nil {
		return 0, ""
	}
	return i + 1, b.String()
}
