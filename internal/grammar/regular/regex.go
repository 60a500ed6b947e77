package regular

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// MaxPattern is the longest regular expression that is read, in bytes.
const MaxPattern = 1 << 16

// Pattern compiles an ECMA-262 regular expression as JSON Schema uses it: it may match anywhere in a string, unless
// whole is set. What ECMA-262 leaves to escapes without meaning (\-) stands for itself. Back-references,
// lookbehind and lookahead in unbounded repetitions are refused.
func Pattern(pattern string, whole bool) (*DFA, error) {
	if len(pattern) > MaxPattern {
		return nil, fmt.Errorf("the pattern is longer than %d bytes", MaxPattern)
	}
	p := &parser{in: []rune(pattern)}
	e, err := p.parse()
	if err != nil {
		return nil, fmt.Errorf("%.100q: %w", pattern, err)
	}
	d, err := search(e, whole)
	if err != nil {
		return nil, fmt.Errorf("%.100q: %w", pattern, err)
	}
	return d, nil
}

// RE2 compiles a regular expression in the syntax of Go's regexp package, which is RE2's.
func RE2(pattern string, whole bool) (*DFA, error) {
	if len(pattern) > MaxPattern {
		return nil, fmt.Errorf("the pattern is longer than %d bytes", MaxPattern)
	}
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	e, err := fromSyntax(re)
	if err != nil {
		return nil, fmt.Errorf("%.100q: %w", pattern, err)
	}
	d, err := search(e, whole)
	if err != nil {
		return nil, fmt.Errorf("%.100q: %w", pattern, err)
	}
	return d, nil
}

func fromSyntax(re *syntax.Regexp) (*expr, error) {
	var subs []*expr
	for _, s := range re.Sub {
		e, err := fromSyntax(s)
		if err != nil {
			return nil, err
		}
		subs = append(subs, e)
	}
	switch re.Op {
	case syntax.OpNoMatch:
		return &expr{op: opNone}, nil
	case syntax.OpEmptyMatch:
		return &expr{op: opEmpty}, nil
	case syntax.OpLiteral:
		e := &expr{op: opConcat}
		for _, r := range re.Rune {
			set := []rune{r, r}
			if re.Flags&syntax.FoldCase != 0 {
				set = fold(set)
			}
			e.subs = append(e.subs, &expr{op: opSet, ranges: set})
		}
		return e, nil
	case syntax.OpCharClass:
		return &expr{op: opSet, ranges: re.Rune}, nil
	case syntax.OpAnyCharNotNL:
		return &expr{op: opSet, ranges: invert([]rune{'\n', '\n'})}, nil
	case syntax.OpAnyChar:
		return &expr{op: opSet, ranges: allRunes}, nil
	case syntax.OpBeginLine:
		return &expr{op: opAssert, where: lineStart}, nil
	case syntax.OpEndLine:
		return &expr{op: opAssert, where: lineEnd}, nil
	case syntax.OpBeginText:
		return &expr{op: opAssert, where: atStart}, nil
	case syntax.OpEndText:
		return &expr{op: opAssert, where: atEnd}, nil
	case syntax.OpWordBoundary:
		return &expr{op: opAssert, where: atWord}, nil
	case syntax.OpNoWordBoundary:
		return &expr{op: opAssert, where: notWord}, nil
	case syntax.OpCapture:
		return subs[0], nil
	case syntax.OpStar:
		return repeat(subs[0], 0, -1), nil
	case syntax.OpPlus:
		return repeat(subs[0], 1, -1), nil
	case syntax.OpQuest:
		return repeat(subs[0], 0, 1), nil
	case syntax.OpRepeat:
		return repeat(subs[0], re.Min, re.Max), nil
	case syntax.OpConcat:
		return concat(subs...), nil
	case syntax.OpAlternate:
		return alt(subs...), nil
	}
	return nil, fmt.Errorf("%v is not supported", re.Op)
}

// parser reads ECMA-262.
type parser struct {
	in    []rune
	at    int
	depth int
	fold  bool
	dots  bool // . matches line ends
	multi bool // ^ and $ match at lines
}

const maxDepth = 250

func (p *parser) parse() (*expr, error) {
	e, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if p.at < len(p.in) {
		return nil, fmt.Errorf("unmatched ) at %d", p.at)
	}
	return e, nil
}

func (p *parser) more() bool { return p.at < len(p.in) }

func (p *parser) peek(s string) bool {
	return strings.HasPrefix(string(p.in[p.at:min(len(p.in), p.at+len(s))]), s)
}

func (p *parser) take(s string) bool {
	if !p.peek(s) {
		return false
	}
	p.at += len([]rune(s))
	return true
}

func (p *parser) alternatives() (*expr, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, fmt.Errorf("groups are nested more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	var alts []*expr
	for {
		var subs []*expr
		for p.more() && p.in[p.at] != '|' && p.in[p.at] != ')' {
			e, err := p.term()
			if err != nil {
				return nil, err
			}
			subs = append(subs, e)
		}
		if len(subs) == 1 {
			alts = append(alts, subs[0])
		} else {
			alts = append(alts, concat(subs...))
		}
		if !p.take("|") {
			break
		}
	}
	if len(alts) == 1 {
		return alts[0], nil
	}
	return alt(alts...), nil
}

func (p *parser) term() (*expr, error) {
	e, err := p.atom()
	if err != nil {
		return nil, err
	}
	for p.more() {
		lo, hi := 0, -1
		switch {
		case p.take("*"):
		case p.take("+"):
			lo = 1
		case p.take("?"):
			hi = 1
		case p.peek("{"):
			var ok bool
			if lo, hi, ok, err = p.braces(); err != nil {
				return nil, err
			} else if !ok {
				return e, nil
			}
		default:
			return e, nil
		}
		if e.op == opAssert {
			return nil, fmt.Errorf("nothing to repeat at %d", p.at-1)
		}
		p.take("?") // lazy: the language is the same
		if p.peek("+") {
			return nil, fmt.Errorf("possessive quantifiers are not ECMA-262's, at %d", p.at)
		}
		if p.peek("*") || p.peek("?") {
			return nil, fmt.Errorf("nothing to repeat at %d", p.at)
		}
		e = repeat(e, lo, hi)
	}
	return e, nil
}

// braces reads {n}, {n,} or {n,m}; anything else is literal text.
func (p *parser) braces() (lo, hi int, ok bool, err error) {
	start := p.at
	p.at++
	number := func() (int, bool) {
		from := p.at
		for p.more() && p.in[p.at] >= '0' && p.in[p.at] <= '9' {
			p.at++
		}
		n, err := strconv.Atoi(string(p.in[from:p.at]))
		return n, err == nil
	}
	lo, ok = number()
	hi = lo
	if ok && p.take(",") {
		if hi = -1; !p.peek("}") {
			hi, ok = number()
		}
	}
	if !ok || !p.take("}") {
		p.at = start
		return 0, 0, false, nil
	}
	if hi >= 0 && hi < lo {
		return 0, 0, false, fmt.Errorf("numbers out of order in {%d,%d}", lo, hi)
	}
	return lo, hi, true, nil
}

func (p *parser) setOf(ranges []rune) *expr {
	if p.fold {
		ranges = fold(ranges)
	}
	return &expr{op: opSet, ranges: ranges}
}

func (p *parser) atom() (*expr, error) {
	c := p.in[p.at]
	switch c {
	case '^':
		p.at++
		if p.multi {
			return &expr{op: opAssert, where: lineStart}, nil
		}
		return &expr{op: opAssert, where: atStart}, nil
	case '$':
		p.at++
		if p.multi {
			return &expr{op: opAssert, where: lineEnd}, nil
		}
		return &expr{op: opAssert, where: atEnd}, nil
	case '.':
		p.at++
		if p.dots {
			return &expr{op: opSet, ranges: allRunes}, nil
		}
		return &expr{op: opSet, ranges: invert([]rune{'\n', '\n', '\r', '\r', 0x2028, 0x2029})}, nil
	case '(':
		p.at++
		return p.group()
	case '[':
		p.at++
		ranges, err := p.class()
		if err != nil {
			return nil, err
		}
		return ranges, nil
	case '\\':
		p.at++
		return p.escape()
	case '*', '+', '?':
		return nil, fmt.Errorf("nothing to repeat at %d", p.at)
	}
	p.at++
	return p.setOf([]rune{c, c}), nil
}

func (p *parser) group() (*expr, error) {
	look, negate := false, false
	saved := [3]bool{p.fold, p.dots, p.multi}
	switch {
	case p.take("?:"):
	case p.take("?="):
		look = true
	case p.take("?!"):
		look, negate = true, true
	case p.peek("?<=") || p.peek("?<!"):
		return nil, fmt.Errorf("lookbehind is not supported, at %d", p.at)
	case p.peek("?>"):
		return nil, fmt.Errorf("atomic groups are not ECMA-262's, at %d", p.at)
	case p.take("?<"), p.take("?P<"):
		for p.more() && p.in[p.at] != '>' {
			p.at++
		}
		if !p.take(">") {
			return nil, fmt.Errorf("a group's name does not end")
		}
	case p.take("?"):
		on := true
		for ; p.more() && p.in[p.at] != ':' && p.in[p.at] != ')'; p.at++ {
			switch p.in[p.at] {
			case '-':
				on = false
			case 'i':
				p.fold = on
			case 's':
				p.dots = on
			case 'm':
				p.multi = on
			default:
				return nil, fmt.Errorf("unknown group (?%c at %d", p.in[p.at], p.at)
			}
		}
		if p.take(")") { // (?i): for the rest of the enclosing group
			return &expr{op: opEmpty}, nil
		}
		if !p.take(":") {
			return nil, fmt.Errorf("a group does not end")
		}
	}
	e, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if !p.take(")") {
		return nil, fmt.Errorf("missing )")
	}
	p.fold, p.dots, p.multi = saved[0], saved[1], saved[2]
	if look {
		return &expr{op: opLook, subs: []*expr{e}, negate: negate}, nil
	}
	return &expr{op: opRepeat, subs: []*expr{e}, min: 1, max: 1}, nil
}

// spaceRanges is \s of ECMA-262: white space and line ends.
var spaceRanges = []rune{
	'\t', '\r', ' ', ' ', 0xA0, 0xA0, 0x1680, 0x1680, 0x2000, 0x200A, 0x2028, 0x2029, 0x202F, 0x202F,
	0x205F, 0x205F, 0x3000, 0x3000, 0xFEFF, 0xFEFF,
}

// classEscape reads what \d, \p{…} and the like stand for; ok is false for single characters.
func (p *parser) classEscape(c rune) (ranges []rune, ok bool, err error) {
	switch c {
	case 'd':
		return []rune{'0', '9'}, true, nil
	case 'D':
		return invert([]rune{'0', '9'}), true, nil
	case 'w':
		return wordRanges, true, nil
	case 'W':
		return invert(wordRanges), true, nil
	case 's':
		return spaceRanges, true, nil
	case 'S':
		return invert(spaceRanges), true, nil
	case 'p', 'P':
		if !p.take("{") {
			return nil, false, fmt.Errorf("\\%c needs {property} at %d", c, p.at)
		}
		from := p.at
		for p.more() && p.in[p.at] != '}' {
			p.at++
		}
		name := string(p.in[from:p.at])
		if !p.take("}") {
			return nil, false, fmt.Errorf("\\%c{%s does not end", c, name)
		}
		ranges, err := property(name)
		if err == nil && c == 'P' {
			ranges = invert(ranges)
		}
		return ranges, true, err
	}
	return nil, false, nil
}

func property(name string) ([]rune, error) {
	if k, v, ok := strings.Cut(name, "="); ok {
		switch k {
		case "Script", "sc", "Script_Extensions", "scx":
			if t, ok := unicode.Scripts[v]; ok && !strings.HasSuffix(k, "x") && k != "Script_Extensions" {
				return tableRanges(t), nil
			}
			return nil, fmt.Errorf("unknown Unicode property %q", name)
		case "General_Category", "gc":
			name = v
		default:
			return nil, fmt.Errorf("unknown Unicode property %q", name)
		}
	}
	long := map[string]string{
		"Letter": "L", "Lowercase_Letter": "Ll", "Uppercase_Letter": "Lu", "Titlecase_Letter": "Lt", "Modifier_Letter": "Lm",
		"Other_Letter": "Lo", "Mark": "M", "Number": "N", "Decimal_Number": "Nd", "digit": "Nd", "Letter_Number": "Nl",
		"Other_Number": "No", "Punctuation": "P", "punct": "P", "Symbol": "S", "Separator": "Z", "Space_Separator": "Zs",
		"Control": "Cc", "cntrl": "Cc", "Math_Symbol": "Sm", "Currency_Symbol": "Sc", "Dash_Punctuation": "Pd",
		"Nonspacing_Mark": "Mn", "Spacing_Mark": "Mc", "Format": "Cf",
	}
	if s, ok := long[name]; ok {
		name = s
	}
	switch name {
	case "Any":
		return allRunes, nil
	case "ASCII":
		return []rune{0, 127}, nil
	case "Alphabetic", "Alpha":
		letters := slices.Concat(tableRanges(unicode.L), tableRanges(unicode.Nl), tableRanges(unicode.Other_Alphabetic))
		return merge(letters), nil
	case "White_Space", "space":
		return tableRanges(unicode.White_Space), nil
	}
	if t, ok := unicode.Categories[name]; ok {
		return tableRanges(t), nil
	}
	return nil, fmt.Errorf("unknown Unicode property %q", name)
}

func tableRanges(t *unicode.RangeTable) []rune {
	var out []rune
	add := func(lo, hi, stride rune) {
		if stride == 1 {
			out = append(out, lo, hi)
			return
		}
		for r := lo; r <= hi; r += stride {
			out = append(out, r, r)
		}
	}
	for _, r := range t.R16 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	for _, r := range t.R32 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	return merge(out)
}

func (p *parser) escape() (*expr, error) {
	if !p.more() {
		return nil, fmt.Errorf("a pattern cannot end in \\")
	}
	c := p.in[p.at]
	p.at++
	switch {
	case c == 'b':
		return &expr{op: opAssert, where: atWord}, nil
	case c == 'B':
		return &expr{op: opAssert, where: notWord}, nil
	case c >= '1' && c <= '9':
		return nil, fmt.Errorf("back-references are not regular, at %d", p.at-1)
	case c == 'k' && p.peek("<"):
		return nil, fmt.Errorf("back-references are not regular, at %d", p.at-1)
	}
	if ranges, ok, err := p.classEscape(c); ok || err != nil {
		return p.setOf(ranges), err
	}
	r, err := p.character(c)
	if err != nil {
		return nil, err
	}
	return p.setOf([]rune{r, r}), nil
}

// character reads an escape that stands for one code point; its first letter has been read.
func (p *parser) character(c rune) (rune, error) {
	hex := func(n int) (rune, bool) {
		if p.at+n > len(p.in) {
			return 0, false
		}
		v, err := strconv.ParseUint(string(p.in[p.at:p.at+n]), 16, 32)
		if err != nil {
			return 0, false
		}
		p.at += n
		return rune(v), true
	}
	switch c {
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'f':
		return '\f', nil
	case 'v':
		return '\v', nil
	case '0':
		if p.more() && p.in[p.at] >= '0' && p.in[p.at] <= '9' {
			return 0, fmt.Errorf("octal escapes are not supported, at %d", p.at)
		}
		return 0, nil
	case 'c':
		if p.more() && p.in[p.at] < 128 && unicode.IsLetter(p.in[p.at]) {
			p.at++
			return p.in[p.at-1] & 31, nil
		}
	case 'x':
		if r, ok := hex(2); ok {
			return r, nil
		}
	case 'u':
		if p.take("{") {
			from := p.at
			for p.more() && p.in[p.at] != '}' {
				p.at++
			}
			v, err := strconv.ParseUint(string(p.in[from:p.at]), 16, 32)
			if err != nil || v >= runeEnd || !p.take("}") {
				return 0, fmt.Errorf("wrong \\u{…} at %d", from)
			}
			return rune(v), nil
		}
		if hi, ok := hex(4); ok {
			if hi >= 0xD800 && hi < 0xDC00 && p.peek("\\u") {
				at := p.at
				p.at += 2
				if lo, ok := hex(4); ok && lo >= 0xDC00 && lo < 0xE000 {
					return 0x10000 + (hi-0xD800)<<10 + (lo - 0xDC00), nil
				}
				p.at = at
			}
			return hi, nil
		}
	default:
		if c >= 128 || !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return c, nil
		}
	}
	return 0, fmt.Errorf("unknown escape \\%c at %d", c, p.at-1)
}

// class reads what stands in brackets.
func (p *parser) class() (*expr, error) {
	negate := p.take("^")
	var out []rune
	for {
		if !p.more() {
			return nil, fmt.Errorf("missing ]")
		}
		if p.take("]") {
			break
		}
		lo, set, err := p.classAtom()
		if err != nil {
			return nil, err
		}
		if p.peek("-") && p.at+1 < len(p.in) && p.in[p.at+1] != ']' {
			p.at++
			hi, set2, err := p.classAtom()
			if err != nil {
				return nil, err
			}
			switch {
			case set != nil || set2 != nil: // [\w-.]: the dash is itself
				out = append(append(out, '-', '-'), set...)
				out = append(out, set2...)
				if set == nil {
					out = append(out, lo, lo)
				}
				if set2 == nil {
					out = append(out, hi, hi)
				}
			case hi < lo:
				return nil, fmt.Errorf("range out of order at %d", p.at)
			default:
				out = append(out, lo, hi)
			}
			continue
		}
		if set != nil {
			out = append(out, set...)
		} else {
			out = append(out, lo, lo)
		}
	}
	out = merge(out)
	if p.fold {
		out = fold(out)
	}
	if negate {
		out = invert(out)
	}
	if len(out) == 0 {
		return &expr{op: opNone}, nil
	}
	return &expr{op: opSet, ranges: out}, nil
}

func (p *parser) classAtom() (rune, []rune, error) {
	c := p.in[p.at]
	p.at++
	if c != '\\' {
		return c, nil, nil
	}
	if !p.more() {
		return 0, nil, fmt.Errorf("missing ]")
	}
	c = p.in[p.at]
	p.at++
	if c == 'b' {
		return '\b', nil, nil
	}
	if set, ok, err := p.classEscape(c); ok || err != nil {
		if set == nil {
			set = []rune{}
		}
		return 0, set, err
	}
	r, err := p.character(c)
	return r, nil, err
}

// merge sorts pairs and joins those that touch.
func merge(r []rune) []rune {
	pairs := make([][2]rune, 0, len(r)/2)
	for i := 0; i+1 < len(r); i += 2 {
		pairs = append(pairs, [2]rune{r[i], r[i+1]})
	}
	slices.SortFunc(pairs, func(a, b [2]rune) int { return int(a[0] - b[0]) })
	var out []rune
	for _, p := range pairs {
		if n := len(out); n > 0 && p[0] <= out[n-1]+1 {
			out[n-1] = max(out[n-1], p[1])
			continue
		}
		out = append(out, p[0], p[1])
	}
	return out
}

// invert is the complement among Unicode scalar values.
func invert(r []rune) []rune {
	var out []rune
	next := rune(0)
	for i := 0; i < len(r); i += 2 {
		if r[i] > next {
			out = append(out, next, r[i]-1)
		}
		next = r[i+1] + 1
	}
	if next < runeEnd {
		out = append(out, next, runeEnd-1)
	}
	return out
}

// fold adds the code points that differ only in case.
func fold(r []rune) []rune {
	out := slices.Clone(r)
	for i := 0; i < len(r); i += 2 {
		for c := r[i]; c <= r[i+1] && c <= 0x1E943; c++ { // the last code point that has a case
			for f := unicode.SimpleFold(c); f != c; f = unicode.SimpleFold(f) {
				out = append(out, f, f)
			}
		}
	}
	return merge(out)
}
