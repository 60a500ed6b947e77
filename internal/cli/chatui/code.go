package chatui

import (
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

// maxContextLines is how many lines of code before one are read to colour it. A comment or text that began earlier
// than that loses its colour, nothing else.
const maxContextLines = 40

// highlight returns the last of the lines in colours. What stands before it says, for example, whether it is inside
// of a comment.
func highlight(lang string, lines []string) []run {
	last := lines[len(lines)-1]
	plain := []run{{last, code}}
	lang, _, _ = strings.Cut(lang, " ")
	lexer := lexers.Get(lang)
	if lang == "" || lexer == nil || len(last) > 1000 {
		return plain
	}
	if n := len(lines); n > maxContextLines {
		lines = lines[n-maxContextLines:]
	}
	all := strings.Join(lines, "\n")
	if len(all) > 16<<10 {
		return plain
	}
	it, err := chroma.Coalesce(lexer).Tokenise(nil, all)
	if err != nil {
		return plain
	}
	begin, at := len(all)-len(last), 0
	var out []run
	for t := it(); t != chroma.EOF; t = it() {
		if end := at + len(t.Value); end > begin {
			text := strings.TrimSuffix(t.Value[max(0, begin-at):], "\n")
			if text != "" {
				out = append(out, run{text, faceOf(t.Type)})
			}
		}
		at += len(t.Value)
	}
	for _, r := range out {
		plain[0].text = strings.TrimPrefix(plain[0].text, r.text)
	}
	if plain[0].text != "" { // a lexer that changes what it reads: no colour is worth that
		return []run{{last, code}}
	}
	return out
}

func faceOf(t chroma.TokenType) face {
	switch {
	case t.InCategory(chroma.Keyword):
		return code | keyword
	case t.InCategory(chroma.Literal):
		return code | literal
	case t.InCategory(chroma.Comment):
		return code | remark
	}
	return code
}
