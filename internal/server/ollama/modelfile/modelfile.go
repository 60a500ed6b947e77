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
	p := &parser{rest: strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")}
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

// value takes the rest of the line, or a text in quotes, which may go over several lines; or it says what is wrong.
func (p *parser) value() (text, problem string) {
	if body, ok := strings.CutPrefix(p.rest, `"""`); ok {
		text, after, closed := strings.Cut(body, `"""`)
		if !closed {
			return "", `the text that begins here has no closing """`
		}
		if behind := strings.TrimSpace(firstLine(after)); behind != "" {
			return "", fmt.Sprintf(`behind the closing """ of the text that begins here stands %q`, behind)
		}
		p.line += strings.Count(text, "\n")
		p.rest = after
		p.skipLine()
		return text, ""
	}
	line := strings.TrimSpace(firstLine(p.rest))
	p.skipLine()
	if len(line) >= 2 && line[0] == '"' && line[len(line)-1] == '"' {
		line = line[1 : len(line)-1]
	}
	return line, ""
}
