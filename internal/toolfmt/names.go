package toolfmt

import "strings"

// toolIndex finds offered tools by the names that models write.
type toolIndex struct {
	list  []*toolInfo
	exact map[string]*toolInfo
}

func indexTools(tools []Tool) *toolIndex {
	x := &toolIndex{exact: map[string]*toolInfo{}}
	for _, t := range tools {
		if t.Name == "" || x.exact[t.Name] != nil {
			continue
		}
		ti := readTool(t)
		x.list = append(x.list, ti)
		x.exact[t.Name] = ti
	}
	return x
}

// namePrefixes are put before names by models that have seen namespaces.
var namePrefixes = []string{
	"functions__", "functions.", "function.", "tools__", "tools.", "tool_calls__", "tool__", "tool.", "default_api.", "default_api:", "mcp__",
}

// synonyms are names that models were trained on for the same tool. The names of a row stand for each other,
// where exactly one of them is offered.
var synonyms = [][]string{
	{"read_file", "read", "readfile", "view_file", "cat", "open_file"},
	{"write_file", "write", "writefile", "create_file"},
	{"edit_file", "edit", "str_replace_editor", "str_replace_based_edit_tool", "str_replace"},
	{"multi_edit", "multiedit"},
	{"list_dir", "ls", "listdir", "list_directory", "list_files"},
	{"dispatch_agent", "task", "agent"},
	{"web_fetch", "webfetch", "fetch"},
	{"web_search", "websearch", "search_web"},
	{"ask_user", "question", "askuserquestion", "ask"},
	{"request_execute", "exitplanmode", "plan_exit", "exitplan", "approve_plan", "start_implementing"},
	{
		"bash",
		"shell",
		"run_command",
		"terminal",
		"run_shell_command",
		"execute_command",
		"run_terminal_cmd",
		"run_shell",
	},
	{"grep", "search_files", "ripgrep", "grep_search"},
}

// squash leaves a name's letters and digits, in lower case.
func squash(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r == '_' || r == '-' || r == '.' || r == ' ' || r == '/' || r == ':':
			return -1
		}
		return r
	}, s)
}

// resolve returns the offered tool that a written name means, or nil. It goes through layers, each taken only
// where it finds one tool: the exact name, another case, a known prefix, other separators, the first offered
// segment, a synonym.
func (x *toolIndex) resolve(name string) *toolInfo {
	name = strings.TrimSpace(name)
	if name == "" || len(name) > 400 {
		return nil
	}
	if t := x.plain(name); t != nil {
		return t
	}
	for _, p := range namePrefixes {
		if len(name) > len(p) && strings.EqualFold(name[:len(p)], p) {
			if t := x.plain(name[len(p):]); t != nil {
				return t
			}
		}
	}
	if t := x.only(func(offered string) bool { return squash(offered) == squash(name) }); t != nil {
		return t
	}
	for _, s := range strings.FieldsFunc(strings.ReplaceAll(name, "__", "."), func(r rune) bool { return r == '.' || r == ':' || r == '/' }) {
		if t := x.plain(s); t != nil && s != name {
			return t
		}
	}
	return x.synonym(squash(name))
}

// plain finds the exact name or the only one that differs in case.
func (x *toolIndex) plain(name string) *toolInfo {
	if t := x.exact[name]; t != nil {
		return t
	}
	return x.only(func(offered string) bool { return strings.EqualFold(offered, name) })
}

func (x *toolIndex) only(match func(string) bool) *toolInfo {
	var found *toolInfo
	for _, t := range x.list {
		if match(t.name) {
			if found != nil {
				return nil
			}
			found = t
		}
	}
	return found
}

func (x *toolIndex) synonym(name string) *toolInfo {
	for _, row := range synonyms {
		for _, s := range row {
			if squash(s) != name {
				continue
			}
			return x.only(func(offered string) bool {
				for _, s := range row {
					if squash(s) == squash(offered) {
						return true
					}
				}
				return false
			})
		}
	}
	return nil
}
