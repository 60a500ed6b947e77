package grammar

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// GBNF compiles a grammar in the notation of llama.cpp; the rule "root" is a text. References to tokens are refused:
// what they name is no text.
func GBNF(src string) (*Grammar, error) {
	if err := tooLong(len(src)); err != nil {
		return nil, err
	}
	p := &gbnfParser{in: []rune(src), ids: map[string]int{}}
	p.rule("root")
	if err := p.all(); err != nil {
		line := 1 + strings.Count(string(p.in[:min(p.at, len(p.in))]), "\n")
		return nil, fmt.Errorf("grammar: GBNF line %d: %w", line, err)
	}
	for i, t := range p.rules {
		if t == nil {
			return nil, fmt.Errorf("grammar: GBNF rule %q is used and not defined", p.names[i])
		}
	}
	return compileRules(p.names, p.rules)
}

type gbnfParser struct {
	in    []rune
	at    int
	depth int
	ids   map[string]int
	names []string
	rules []*term
}

// rule is the number of a name.
func (p *gbnfParser) rule(name string) int {
	id, ok := p.ids[name]
	if !ok {
		id = len(p.names)
		p.ids[name] = id
		p.names, p.rules = append(p.names, name), append(p.rules, nil)
	}
	return id
}

func (p *gbnfParser) peek() rune {
	if p.at < len(p.in) {
		return p.in[p.at]
	}
	return -1
}

func (p *gbnfParser) space(lines bool) {
	for p.at < len(p.in) {
		switch c := p.in[p.at]; {
		case c == '#':
			for p.at < len(p.in) && p.in[p.at] != '\n' && p.in[p.at] != '\r' {
				p.at++
			}
		case c == ' ' || c == '\t' || lines && (c == '\n' || c == '\r'):
			p.at++
		default:
			return
		}
	}
}

func wordRune(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

func (p *gbnfParser) word() string {
	from := p.at
	for wordRune(p.peek()) {
		p.at++
	}
	return string(p.in[from:p.at])
}

func (p *gbnfParser) all() error {
	for p.space(true); p.at < len(p.in); p.space(true) {
		name := p.word()
		if name == "" {
			return fmt.Errorf("no rule's name at %q", string(p.in[p.at:min(len(p.in), p.at+10)]))
		}
		p.space(false)
		if !strings.HasPrefix(string(p.in[p.at:min(len(p.in), p.at+3)]), "::=") {
			return fmt.Errorf("no ::= after %q", name)
		}
		p.at += 3
		p.space(true)
		id := p.rule(name)
		if p.rules[id] != nil {
			return fmt.Errorf("rule %q is defined twice", name)
		}
		t, err := p.alternatives(false)
		if err != nil {
			return err
		}
		p.rules[id] = t
		if c := p.peek(); c >= 0 && c != '\n' && c != '\r' {
			return fmt.Errorf("unexpected %q", c)
		}
	}
	return nil
}

func (p *gbnfParser) alternatives(nested bool) (*term, error) {
	if p.depth++; p.depth > 200 {
		return nil, fmt.Errorf("groups are nested more than 200 deep")
	}
	defer func() { p.depth-- }()
	alt := &term{op: tAlt}
	for {
		seq := &term{op: tSeq}
		for {
			t, err := p.item(nested)
			if err != nil {
				return nil, err
			}
			if t == nil {
				break
			}
			seq.subs = append(seq.subs, t)
		}
		alt.subs = append(alt.subs, seq)
		if p.peek() != '|' {
			return alt, nil
		}
		p.at++
		p.space(true)
	}
}

// item reads one element with its repetitions; nil at the end of a sequence.
func (p *gbnfParser) item(nested bool) (*term, error) {
	var t *term
	switch c := p.peek(); {
	case c == '"':
		p.at++
		t = &term{op: tSeq}
		for p.peek() != '"' {
			r, err := p.char()
			if err != nil {
				return nil, err
			}
			t.subs = append(t.subs, &term{op: tSet, ranges: []rune{r, r}})
		}
		p.at++
	case c == '[':
		set, err := p.class()
		if err != nil {
			return nil, err
		}
		t = set
	case c == '.':
		p.at++
		t = &term{op: tSet, ranges: []rune{0, 0x10FFFF}}
	case c == '(':
		p.at++
		p.space(true)
		inner, err := p.alternatives(true)
		if err != nil {
			return nil, err
		}
		if p.peek() != ')' {
			return nil, fmt.Errorf("missing )")
		}
		p.at++
		t = inner
	case c == '<' || c == '!':
		return nil, fmt.Errorf("references to tokens (%c…) are not supported: they name no text", c)
	case wordRune(c):
		t = &term{op: tRule, rule: p.rule(p.word())}
	default:
		return nil, nil
	}
	p.space(nested)
	for {
		lo, hi := 0, -1
		switch p.peek() {
		case '*':
			p.at++
		case '+':
			lo = 1
			p.at++
		case '?':
			hi = 1
			p.at++
		case '{':
			var err error
			if lo, hi, err = p.braces(); err != nil {
				return nil, err
			}
		default:
			return t, nil
		}
		t = &term{op: tRepeat, subs: []*term{t}, min: lo, max: hi}
		p.space(nested)
	}
}

// maxRepeat is the largest number that a repetition may have.
const maxRepeat = 10000

func (p *gbnfParser) braces() (lo, hi int, err error) {
	end := p.at
	for end < len(p.in) && p.in[end] != '}' {
		end++
	}
	if end == len(p.in) {
		return 0, 0, fmt.Errorf("missing }")
	}
	body := strings.ReplaceAll(string(p.in[p.at+1:end]), " ", "")
	p.at = end + 1
	from, to, two := strings.Cut(body, ",")
	lo, err = strconv.Atoi(from)
	hi = lo
	if err == nil && two {
		if hi = -1; to != "" {
			hi, err = strconv.Atoi(to)
		}
	}
	if err != nil || lo < 0 || hi >= 0 && hi < lo || max(lo, hi) > maxRepeat {
		return 0, 0, fmt.Errorf("wrong repetition {%s}: at most %d", body, maxRepeat)
	}
	return lo, hi, nil
}

func (p *gbnfParser) class() (*term, error) {
	p.at++
	negate := p.peek() == '^'
	if negate {
		p.at++
	}
	var ranges []rune
	for p.peek() != ']' {
		lo, err := p.char()
		if err != nil {
			return nil, err
		}
		hi := lo
		if p.peek() == '-' && p.at+1 < len(p.in) && p.in[p.at+1] != ']' {
			p.at++
			if hi, err = p.char(); err != nil {
				return nil, err
			}
			if hi < lo {
				return nil, fmt.Errorf("range out of order: %c-%c", lo, hi)
			}
		}
		ranges = append(ranges, lo, hi)
	}
	p.at++
	if negate {
		ranges = invertRanges(ranges)
	}
	return &term{op: tSet, ranges: ranges}, nil
}

func invertRanges(r []rune) []rune {
	pairs := make([][2]rune, 0, len(r)/2)
	for i := 0; i < len(r); i += 2 {
		pairs = append(pairs, [2]rune{r[i], r[i+1]})
	}
	slices.SortFunc(pairs, func(a, b [2]rune) int { return int(a[0] - b[0]) })
	var out []rune
	next := rune(0)
	for _, p := range pairs {
		if p[0] > next {
			out = append(out, next, p[0]-1)
		}
		next = max(next, p[1]+1)
	}
	if next <= 0x10FFFF {
		out = append(out, next, 0x10FFFF)
	}
	return out
}

// char reads one character of a literal or class.
func (p *gbnfParser) char() (rune, error) {
	c := p.peek()
	if c < 0 || c == '\n' {
		return 0, fmt.Errorf("a literal does not end")
	}
	p.at++
	if c != '\\' {
		return c, nil
	}
	c = p.peek()
	p.at++
	digits := map[rune]int{'x': 2, 'u': 4, 'U': 8}[c]
	if digits > 0 {
		if p.at+digits <= len(p.in) {
			if v, err := strconv.ParseUint(string(p.in[p.at:p.at+digits]), 16, 32); err == nil && v <= 0x10FFFF {
				p.at += digits
				return rune(v), nil
			}
		}
		return 0, fmt.Errorf("wrong escape \\%c", c)
	}
	switch c {
	case 't':
		return '\t', nil
	case 'r':
		return '\r', nil
	case 'n':
		return '\n', nil
	case '\\', '"', '[', ']', '-', '^', '\'', '/':
		return c, nil
	}
	return 0, fmt.Errorf("unknown escape \\%c", c)
}
