package config

import (
	"fmt"
	"strings"
)

// foreign are variables of other programs that count here.
var foreign = []struct{ names, help string }{
	{"OLLAMA_HOST", "BALEEN_HOST's place where that is not set; without a port it means 11434"},
	{
		"OLLAMA_MODELS, HF_HOME, HF_HUB_CACHE",
		"where Ollama and the Hugging Face cache keep their models, which run in place",
	},
	{"HF_ENDPOINT, HF_TOKEN", "the server that models of Hugging Face are fetched from, and the key for it"},
	{"HTTPS_PROXY, HTTP_PROXY, NO_PROXY", "the way to the network, for downloads"},
	{"NO_COLOR, TERM=dumb", "no colours; no drawing either"},
	{"XDG_DATA_HOME", "where a user's data lie on Linux: BALEEN_HOME is its folder baleen"},
}

// order is how settings are listed: what is asked for most comes first.
var order = []string{Home, Model, Host, APIKey, Device, Threads, Context, KV, CPU}

// Help returns the variables as a help text of lines that are no wider than width.
func Help(width int) string {
	var b strings.Builder
	b.WriteString("Settings of all commands. A flag wins over its variable.\n\n")
	column := 0
	for _, name := range order {
		column = max(column, len(table[name].Var))
	}
	row := func(name, text string) {
		line := fmt.Sprintf("  %-*s ", column, name)
		if len(name) > column {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = strings.Repeat(" ", column+3)
		}
		for _, word := range strings.Fields(text) {
			if len(line)+1+len(word) > width {
				b.WriteString(strings.TrimRight(line, " ") + "\n")
				line = strings.Repeat(" ", column+3)
			}
			line += " " + word
		}
		b.WriteString(line + "\n")
	}
	for _, name := range order {
		s := table[name]
		row(s.Var, s.described())
	}
	b.WriteString("\nOf other programs, these count too:\n\n")
	for _, f := range foreign {
		row(f.names, f.help)
	}
	return strings.TrimRight(b.String(), "\n")
}

// described is the help with default and flag.
func (s Setting) described() string {
	text := s.Help
	if s.Default != "" {
		text += " (default: " + s.Default + ")"
	}
	if s.Flag != "" {
		text += "; --" + s.Flag
	}
	return text
}

// Markdown returns the variables as a table for the README.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| Variable | Meaning | Default | Flag |\n|---|---|---|---|\n")
	for _, name := range order {
		s := table[name]
		help, def := s.Help, s.Default
		if text, found, ok := strings.Cut(help, " (default: "); ok { // what the program chooses
			help, def = text, strings.TrimSuffix(found, ")")
		} else if def != "" {
			def = "`" + def + "`"
		}
		flag := ""
		if s.Flag != "" {
			flag = "`--" + s.Flag + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Var, help, def, flag)
	}
	for _, f := range foreign {
		fmt.Fprintf(&b, "| `%s` | %s | | |\n", strings.ReplaceAll(f.names, ", ", "`, `"), f.help)
	}
	return b.String()
}
