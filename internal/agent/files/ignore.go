package files

import (
	"path"
	"regexp"
	"strings"
)

// Bounds of an ignore file: what is beyond them does not count.
const (
	maxIgnoreFile  = 256 << 10
	maxIgnoreRules = 4096
)

// An ignoreRule is a line of an ignore file, as gitignore(5) has them.
type ignoreRule struct {
	dir     string // the file's folder, relative to the workspace; "": the workspace itself
	name    string // a plain name that counts anywhere below; "": re
	re      *regexp.Regexp
	not     bool // what it matches is not ignored
	dirOnly bool
}

// parseIgnore reads an ignore file of a folder. Lines that cannot be read do not count, as Git has it.
func parseIgnore(dir, text string) []ignoreRule {
	if len(text) > maxIgnoreFile {
		text = text[:maxIgnoreFile]
	}
	var out []ignoreRule
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
			line = line[:len(line)-1]
		}
		if line == "" || line[0] == '#' || len(out) >= maxIgnoreRules {
			continue
		}
		r := ignoreRule{dir: dir}
		if line[0] == '!' {
			r.not, line = true, line[1:]
		}
		if strings.HasSuffix(line, "/") {
			r.dirOnly, line = true, strings.TrimRight(line, "/")
		}
		if line == "" {
			continue
		}
		anchored := strings.Contains(line, "/")
		line = strings.TrimPrefix(line, "/")
		if !anchored && !strings.ContainsAny(line, `*?[\`) {
			r.name = line
			out = append(out, r)
			continue
		}
		expr, err := translate(line, false)
		if err != nil {
			continue
		}
		if !anchored {
			expr = `(?:.*/)?` + expr
		}
		if r.re, err = regexp.Compile("^(?s:" + expr + ")$"); err == nil {
			out = append(out, r)
		}
	}
	return out
}

func (r *ignoreRule) match(rel string, dir bool) bool {
	if r.dirOnly && !dir {
		return false
	}
	if r.name != "" {
		return path.Base(rel) == r.name
	}
	if r.dir != "" {
		rel = strings.TrimPrefix(rel, r.dir+"/")
	}
	return r.re.MatchString(rel)
}

// ignored tells whether a path is ignored by rules of which later ones count more.
func ignored(rules []ignoreRule, rel string, dir bool) bool {
	for i := len(rules) - 1; i >= 0; i-- {
		if rules[i].match(rel, dir) {
			return !rules[i].not
		}
	}
	return false
}
