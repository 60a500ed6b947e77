// Package modelfile reads Modelfiles: the lines by which Ollama describes a model that is made of another one. It
// knows their syntax and not what their values mean.
package modelfile

import (
	"fmt"
	"strings"
)

// A Line is one instruction.
type Line struct {
	Number  int    // in the file, from 1
	Command string // in capitals: FROM, PARAMETER, TEMPLATE, SYSTEM, ADAPTER, LICENSE, MESSAGE, ...
	Name    string // of a PARAMETER, or the role of a MESSAGE
	Value   string
}

// commands are the instructions there are, and whether a name stands before their value.
var commands = map[string]bool{
	"FROM": false, "PARAMETER": true, "TEMPLATE": false, "SYSTEM": false, "ADAPTER": false, "LICENSE": false,
	"MESSAGE": true, "RENDERER": false, "PARSER": false, "REQUIRES": false, "DRAFT": false,
}

// An Error says which line cannot be read.
type Error struct {
	Line    int
	Problem string
}

func (e *Error) Error() string { return fmt.Sprintf("Modelfile line %d: %s", e.Line, e.Problem) }

// Parse reads a Modelfile. Its errors are *Error.
func Parse(text string) ([]Line, error) {
	text = strings.TrimPrefix(text, "\ufeff")
	if strings.Count(text, "\n") == strings.Count(text, "\r\n") { // else a \r belongs to a text
		text = strings.ReplaceAll(text, "\r\n", "\n")
	}
	p := &parser{rest: text}
	var out []Line
	from := false
	for p.rest != "" {
		line := strings.TrimSpace(firstLine(p.rest))
		if line == "" || line[0] == '#' {
			p.skipLine()
			continue
		}
		l, err := p.instruction()
		if err != nil {
			return nil, err
		}
		from = from || l.Command == "FROM"
		out = append(out, l)
	}
	if !from {
		return nil, &Error{1, "there is no FROM: name the model to start from"}
	}
	return out, nil
}

type parser struct {
	rest string
	line int // lines read
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

func (p *parser) skipLine() {
	_, p.rest, _ = strings.Cut(p.rest, "\n")
	p.line++
}

func (p *parser) instruction() (Line, error) {
	l := Line{Number: p.line + 1}
	p.rest = strings.TrimLeft(p.rest, " \t")
	l.Command = strings.ToUpper(p.word())
	named, known := commands[l.Command]
	if !known {
		return l, &Error{l.Number, fmt.Sprintf("there is no instruction %q", l.Command)}
	}
	if named {
		if l.Name = p.word(); l.Name == "" {
			return l, &Error{l.Number, l.Command + " needs a name and a value"}
		}
	}
	var problem string
	if l.Value, problem = p.value(); problem != "" {
		return l, &Error{l.Number, problem}
	}
	if l.Value == "" && l.Command != "SYSTEM" && l.Command != "TEMPLATE" && l.Command != "MESSAGE" {
		return l, &Error{l.Number, l.Command + " needs a value"}
	}
	return l, nil
}

// word takes the next word of the line.
func (p *parser) word() string {
	n := strings.IndexAny(p.rest, " \t\n")
	if n < 0 {
		n = len(p.rest)
	}
	w := p.rest[:n]
	p.rest = strings.TrimLeft(p.rest[n:], " \t")
	return w
}

// value takes the rest of the line, or a text in quotes, which may go over several lines; or it says what is wrong. As
// in Ollama, a text in quotes ends at the first end of a line that has the closing quotes before it: what is quoted may
// have quotes itself, and end in them.
func (p *parser) value() (text, problem string) {
	fence := ""
	for _, f := range []string{`"""`, `"`} {
		if strings.HasPrefix(p.rest, f) {
			fence = f
			break
		}
	}
	if fence == "" {
		line := strings.TrimSpace(firstLine(p.rest))
		p.skipLine()
		return line, ""
	}
	body := p.rest[len(fence):]
	for from := 0; ; {
		end := len(body)
		if n := strings.IndexByte(body[from:], '\n'); n >= 0 {
			end = from + n
		}
		if text, closed := strings.CutSuffix(strings.TrimRight(body[:end], " \t\r"), fence); closed {
			p.line += strings.Count(text, "\n")
			p.rest = body[end:]
			p.skipLine()
			return text, ""
		}
		if end == len(body) {
			return "", "no line ends with the closing " + fence + " of the text that begins here"
		}
		from = end + 1
	}
}

// Quote writes a text so that Parse, and Ollama's own reader, read it as it is. ok is false where that cannot be: a
// text of several lines one of which, but not the last, ends in three quotes.
func Quote(text string) (quoted string, ok bool) {
	if !strings.ContainsAny(text, "\n\"") {
		return `"` + text + `"`, true
	}
	lines := strings.Split(text, "\n")
	for _, line := range lines[:len(lines)-1] {
		if strings.HasSuffix(strings.TrimRight(line, " \t\r"), `"""`) {
			return "", false
		}
	}
	return `"""` + text + `"""`, true
}
