package grammar

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/baleenrun/baleen/internal/grammar/regular"
)

// Lark compiles a grammar in Lark's notation; the rule "start" is a text. Rules, terminals, strings and regular
// expressions with the flags i and s, ranges, ~, %ignore and the terminals of %import common are read. Texts are read
// without a lexer: a text fits if it can be divided into terminals at all, where Lark's own lexers divide it in one
// way. Templates, %declare, %override and inline %json, %lark and %regex are refused.
func Lark(src string) (*Grammar, error) {
	if err := tooLong(len(src)); err != nil {
		return nil, err
	}
	p := &larkParser{gbnfParser: gbnfParser{in: []rune(src), ids: map[string]int{}}}
	p.rule("start")
	if err := p.all(); err != nil {
		line := 1 + strings.Count(string(p.in[:min(p.at, len(p.in))]), "\n")
		return nil, fmt.Errorf("grammar: Lark line %d: %w", line, err)
	}
	for i, t := range p.rules {
		if t == nil {
			return nil, fmt.Errorf("grammar: Lark rule %q is used and not defined", p.names[i])
		}
	}
	if err := p.withBlanks(); err != nil {
		return nil, err
	}
	for i := range p.rules {
		p.rules[i] = withoutLeftRecursion(p.rules[i], i)
	}
	return compileRules(p.names, p.rules)
}

type larkParser struct {
	gbnfParser
	ignored []*term
}

// commonTerminals is Lark's grammars/common.lark, as patterns.
var commonTerminals = map[string]string{
	"DIGIT": `[0-9]`, "HEXDIGIT": `[a-fA-F0-9]`, "INT": `[0-9]+`, "SIGNED_INT": `[+-]?[0-9]+`,
	"DECIMAL":        `[0-9]+\.[0-9]*|\.[0-9]+`,
	"FLOAT":          `[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?`,
	"NUMBER":         `[0-9]+(?:[eE][+-]?[0-9]+)?|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?`,
	"SIGNED_FLOAT":   `[+-]?(?:[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)`,
	"SIGNED_NUMBER":  `[+-]?(?:[0-9]+(?:[eE][+-]?[0-9]+)?|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)`,
	"ESCAPED_STRING": `"(?:[^"\\\n]|\\[^\n])*"`, "LCASE_LETTER": `[a-z]`, "UCASE_LETTER": `[A-Z]`, "LETTER": `[a-zA-Z]`,
	"WORD": `[a-zA-Z]+`, "CNAME": `[_a-zA-Z][_a-zA-Z0-9]*`,
	"WS_INLINE": `[ \t]+`, "WS": `[ \t\f\r\n]+`, "CR": `\r`, "LF": `\n`,
	"NEWLINE": `(?:\r?\n)+`, "SH_COMMENT": `#[^\n]*`, "CPP_COMMENT": `//[^\n]*`, "SQL_COMMENT": `--[^\n]*`,
	"C_COMMENT": `/\*(?:[^*]|\*+[^*/])*\*+/`,
}

func (p *larkParser) comments() {
	for p.at < len(p.in) {
		switch rest := string(p.in[p.at:min(len(p.in), p.at+2)]); {
		case strings.HasPrefix(rest, "//") || strings.HasPrefix(rest, "#"):
			for p.at < len(p.in) && p.in[p.at] != '\n' {
				p.at++
			}
		case unicode.IsSpace(p.in[p.at]):
			p.at++
		default:
			return
		}
	}
}

// inline skips blanks within a line, and line ends that are followed by |.
func (p *larkParser) inline() {
	for p.peek() == ' ' || p.peek() == '\t' {
		p.at++
	}
	if p.peek() == '#' || strings.HasPrefix(string(p.in[p.at:min(len(p.in), p.at+2)]), "//") {
		for p.at < len(p.in) && p.in[p.at] != '\n' {
			p.at++
		}
	}
	mark := p.at
	p.comments()
	if p.peek() != '|' {
		p.at = mark
	}
}

func (p *larkParser) name() string {
	from := p.at
	for c := p.peek(); c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'; c = p.peek() {
		p.at++
	}
	return string(p.in[from:p.at])
}

func (p *larkParser) all() error {
	for p.comments(); p.at < len(p.in); p.comments() {
		if p.peek() == '%' {
			if err := p.directive(); err != nil {
				return err
			}
			continue
		}
		for p.peek() == '?' || p.peek() == '!' {
			p.at++
		}
		name := p.name()
		if name == "" {
			return fmt.Errorf("no rule's name at %q", string(p.in[p.at:min(len(p.in), p.at+10)]))
		}
		if p.peek() == '{' {
			return fmt.Errorf("templates (%s{…}) are not supported", name)
		}
		if p.peek() == '.' { // a priority chooses between readings, of which only one is needed here
			p.at++
			if p.peek() == '-' {
				p.at++
			}
			p.name()
		}
		p.inline()
		if p.peek() == '[' {
			return fmt.Errorf("attributes (%s[…]) are not supported", name)
		}
		if p.peek() != ':' {
			return fmt.Errorf("no : after %q", name)
		}
		p.at++
		id := p.rule(name)
		if p.rules[id] != nil {
			return fmt.Errorf("%q is defined twice", name)
		}
		t, err := p.larkAlternatives()
		if err != nil {
			return err
		}
		p.rules[id] = t
		if c := p.peek(); c >= 0 && c != '\n' && c != '\r' && c != '#' && c != '/' {
			return fmt.Errorf("unexpected %q", c)
		}
	}
	return nil
}

func (p *larkParser) directive() error {
	p.at++
	word := p.name()
	p.inline()
	switch word {
	case "ignore":
		t, err := p.larkAlternatives()
		if err != nil {
			return err
		}
		p.ignored = append(p.ignored, t)
		return nil
	case "import":
		from := p.at
		for p.at < len(p.in) && p.in[p.at] != '\n' {
			p.at++
		}
		return p.imports(strings.TrimSpace(string(p.in[from:p.at])))
	}
	return fmt.Errorf("%%%s is not supported", word)
}

func (p *larkParser) imports(spec string) error {
	spec, _, _ = strings.Cut(spec, "//")
	rest, ok := strings.CutPrefix(strings.TrimSpace(spec), "common")
	if !ok {
		return fmt.Errorf("%%import %s: only common can be imported", spec)
	}
	rest = strings.TrimSpace(rest)
	var names []string
	alias := ""
	if one, ok := strings.CutPrefix(rest, "."); ok {
		one, alias, _ = strings.Cut(one, "->")
		names = []string{strings.TrimSpace(one)}
	} else {
		for n := range strings.SplitSeq(strings.Trim(rest, "() "), ",") {
			names = append(names, strings.TrimSpace(n))
		}
	}
	for _, n := range names {
		pattern, ok := commonTerminals[n]
		if !ok {
			return fmt.Errorf("%%import common.%s: no such terminal", n)
		}
		d, err := regular.Pattern(pattern, true)
		if err != nil {
			return err
		}
		if a := strings.TrimSpace(alias); a != "" {
			n = a
		}
		p.rules[p.rule(n)] = &term{op: tRegex, dfa: d}
	}
	return nil
}

func (p *larkParser) larkAlternatives() (*term, error) {
	if p.depth++; p.depth > 200 {
		return nil, fmt.Errorf("groups are nested more than 200 deep")
	}
	defer func() { p.depth-- }()
	alt := &term{op: tAlt}
	for {
		seq := &term{op: tSeq}
		for {
			p.inline()
			t, err := p.larkItem()
			if err != nil {
				return nil, err
			}
			if t == nil {
				break
			}
			seq.subs = append(seq.subs, t)
		}
		alt.subs = append(alt.subs, seq)
		if strings.HasPrefix(string(p.in[p.at:min(len(p.in), p.at+2)]), "->") { // an alias names the tree, not the text
			p.at += 2
			p.inline()
			p.name()
			p.inline()
		}
		if p.peek() != '|' {
			return alt, nil
		}
		p.at++
		p.comments()
	}
}

func (p *larkParser) larkItem() (*term, error) {
	var t *term
	switch c := p.peek(); {
	case c == '"':
		s, fold, err := p.larkString()
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(string(p.in[p.at:min(len(p.in), p.at+2)]), "..") {
			p.at += 2
			end, _, err := p.larkString()
			if err != nil || len([]rune(s)) != 1 || len([]rune(end)) != 1 {
				return nil, fmt.Errorf("a range needs two characters")
			}
			t = &term{op: tSet, ranges: []rune{[]rune(s)[0], []rune(end)[0]}}
			break
		}
		t = literalTerm(s, fold)
	case c == '/':
		re, err := p.larkRegex()
		if err != nil {
			return nil, err
		}
		t = re
	case c == '(' || c == '[':
		p.at++
		p.comments()
		inner, err := p.larkAlternatives()
		if err != nil {
			return nil, err
		}
		p.comments()
		if want := map[rune]rune{'(': ')', '[': ']'}[c]; p.peek() != want {
			return nil, fmt.Errorf("missing %c", want)
		}
		p.at++
		t = inner
		if c == '[' {
			t = &term{op: tRepeat, subs: []*term{inner}, max: 1}
		}
	case c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		n := p.name()
		if p.peek() == '{' {
			return nil, fmt.Errorf("templates (%s{…}) are not supported", n)
		}
		t = &term{op: tRule, rule: p.rule(n)}
	case c == '<' || c == '%' || c == '@':
		return nil, fmt.Errorf("%c… inside of a rule is not supported", c)
	default:
		return nil, nil
	}
	switch p.peek() {
	case '*':
		p.at++
		return &term{op: tRepeat, subs: []*term{t}, max: -1}, nil
	case '+':
		p.at++
		return &term{op: tRepeat, subs: []*term{t}, min: 1, max: -1}, nil
	case '?':
		p.at++
		return &term{op: tRepeat, subs: []*term{t}, max: 1}, nil
	}
	mark := p.at
	p.inline()
	if p.peek() != '~' {
		p.at = mark
		return t, nil
	}
	p.at++
	p.inline()
	lo, err := strconv.Atoi(p.name())
	hi := lo
	if err == nil && strings.HasPrefix(string(p.in[p.at:min(len(p.in), p.at+2)]), "..") {
		p.at += 2
		hi, err = strconv.Atoi(p.name())
	}
	if err != nil || lo > hi || hi > maxRepeat {
		return nil, fmt.Errorf("wrong repetition ~: at most %d", maxRepeat)
	}
	return &term{op: tRepeat, subs: []*term{t}, min: lo, max: hi}, nil
}

func literalTerm(s string, fold bool) *term {
	t := &term{op: tSeq}
	for _, r := range s {
		set := []rune{r, r}
		if fold {
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				set = append(set, f, f)
			}
		}
		t.subs = append(t.subs, &term{op: tSet, ranges: set})
	}
	return t
}

func (p *larkParser) larkString() (s string, fold bool, err error) {
	if p.peek() != '"' {
		return "", false, fmt.Errorf("no string")
	}
	from := p.at
	for p.at++; p.peek() != '"'; p.at++ {
		if p.peek() == '\\' {
			p.at++
		}
		if p.peek() < 0 || p.peek() == '\n' {
			return "", false, fmt.Errorf("a string does not end")
		}
	}
	p.at++
	s, err = strconv.Unquote(strings.ReplaceAll(string(p.in[from:p.at]), `\/`, `/`))
	if err != nil {
		return "", false, fmt.Errorf("wrong string %s", string(p.in[from:p.at]))
	}
	if p.peek() == 'i' {
		p.at++
		fold = true
	}
	return s, fold, nil
}

func (p *larkParser) larkRegex() (*term, error) {
	from := p.at + 1
	class := false
	for p.at++; p.peek() != '/' || class; p.at++ {
		switch p.peek() {
		case '\\':
			p.at++
		case '[':
			class = true
		case ']':
			class = false
		}
		if p.peek() < 0 || p.peek() == '\n' {
			return nil, fmt.Errorf("a regular expression does not end")
		}
	}
	pattern := strings.ReplaceAll(string(p.in[from:p.at]), `\/`, `/`)
	p.at++
	flags := ""
	for c := p.peek(); c == 'i' || c == 's' || c == 'm' || c == 'u' || c == 'l' || c == 'x'; c = p.peek() {
		if c == 'l' || c == 'x' {
			return nil, fmt.Errorf("the flag %c is not supported", c)
		}
		if c != 'u' {
			flags += string(c)
		}
		p.at++
	}
	if flags != "" {
		pattern = "(?" + flags + ":" + pattern + ")"
	}
	d, err := regular.RE2(pattern, true) // Lark's patterns are Python's, which RE2's are closest to
	if err != nil {
		if d, err = regular.Pattern(pattern, true); err != nil {
			return nil, err
		}
	}
	return &term{op: tRegex, dfa: d}, nil
}

// withBlanks allows what %ignore names before the text, and after every terminal of a rule.
func (p *larkParser) withBlanks() error {
	if len(p.ignored) == 0 {
		return nil
	}
	id := p.rule("%ignore")
	p.rules[id] = &term{op: tRepeat, subs: []*term{{op: tAlt, subs: p.ignored}}, max: -1}
	blanks := &term{op: tRule, rule: id}
	terminal := func(i int) bool {
		n := strings.TrimLeft(p.names[i], "_")
		return i == id || n != "" && strings.ToUpper(n) == n
	}
	var walk func(t *term) *term
	walk = func(t *term) *term {
		switch t.op {
		case tSet, tRegex:
			return &term{op: tSeq, subs: []*term{t, blanks}}
		case tRule:
			if terminal(t.rule) {
				return &term{op: tSeq, subs: []*term{t, blanks}}
			}
			return t
		case tSeq:
			if len(t.subs) > 0 && !hasOther(t.subs) { // the characters of one string
				return &term{op: tSeq, subs: append(t.subs[:len(t.subs):len(t.subs)], blanks)}
			}
		}
		out := *t
		out.subs = make([]*term, len(t.subs))
		for i, s := range t.subs {
			out.subs[i] = walk(s)
		}
		return &out
	}
	for i, t := range p.rules {
		if !terminal(i) {
			p.rules[i] = walk(t)
		}
	}
	p.rules[0] = &term{op: tSeq, subs: []*term{blanks, p.rules[0]}}
	return nil
}

func hasOther(subs []*term) bool {
	for _, s := range subs {
		if s.op != tSet {
			return true
		}
	}
	return false
}

// withoutLeftRecursion rewrites a: a x | y as a: y x*.
func withoutLeftRecursion(t *term, self int) *term {
	if t.op != tAlt {
		return t
	}
	var rest, tails []*term
	for _, s := range t.subs {
		for s.op == tAlt && len(s.subs) == 1 {
			s = s.subs[0]
		}
		if s.op == tSeq && len(s.subs) > 1 && isRule(s.subs[0], self) {
			tails = append(tails, &term{op: tSeq, subs: s.subs[1:]})
			continue
		}
		rest = append(rest, s)
	}
	if len(tails) == 0 || len(rest) == 0 {
		return t
	}
	return &term{op: tSeq, subs: []*term{
		{op: tAlt, subs: rest},
		{op: tRepeat, subs: []*term{{op: tAlt, subs: tails}}, max: -1},
	}}
}

func isRule(t *term, id int) bool { return t.op == tRule && t.rule == id }
