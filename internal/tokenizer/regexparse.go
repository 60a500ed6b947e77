package tokenizer

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Regular expressions are those of Oniguruma in Ruby's syntax, which Hugging
// Face's tokenizers use, without back-references, absent operators and calls.
// What is not understood is an error: read in another way, it would cut words
// in another way.

type nodeKind uint8

const (
	nodeEmpty  nodeKind = iota
	nodeSet             // one character of class
	nodeAssert          // a place, told by assert
	nodeCat
	nodeAlt
	nodeRepeat // min to max times, max < 0: without end
	nodeLook   // looks ahead or behind, or for nothing there
	nodeAtomic // never backtracked into
)

type regexNode struct {
	kind             nodeKind
	class            runeClass
	compiled         *class
	folded           rune // nodeSet: of one character under (?i)
	assert           byte // ^ $ A z Z b B
	subs             []*regexNode
	min, max         int
	lazy, possessive bool
	behind, negate   bool
}

// A runeClass tells the members of a character class.
type runeClass func(r rune) bool

var classSets = map[string]charSet{
	"l": catL, "lu": catLu, "ll": catLl, "lt": catLt, "lm": catLm, "lo": catLo,
	"m": catM, "mn": catMn, "mc": catMc, "me": catMe,
	"n": catN, "nd": catNd, "nl": catNl, "no": catNo,
	"p": catP, "pc": catPc, "pd": catPd, "ps": catPs, "pe": catPe, "pi": catPi, "pf": catPf, "po": catPo,
	"s": catS, "sm": catSm, "sc": catSc, "sk": catSk, "so": catSo,
	"z": catZ, "zs": catZs, "zl": catZl, "zp": catZp,
	"c": catC, "cc": catCc, "cf": catCf, "co": catCo, "cn": catCn,
	"han": propHan, "letter": catL, "number": catN, "punctuation": catP, "symbol": catS, "mark": catM,
}

// isWordRune is Oniguruma's \w, and isBracketWord what it is inside brackets.
func isWordRune(r rune) bool {
	switch r {
	case 0xB2, 0xB3, 0xB9, 0xBC, 0xBD, 0xBE:
		return true
	}
	return isBracketWord(r)
}

func isBracketWord(r rune) bool {
	return r != 0x200C && r != 0x200D && tabFlags.at(r)&flagWord != 0
}

func isHexDigit(r rune) bool {
	if r >= utf8.RuneSelf {
		return false
	}
	_, ok := hexDigit(byte(r))
	return ok
}

const (
	maxNesting = 200
	maxRepeat  = 1000 // in {n,m}
)

// regexParser reads a pattern by recursive descent.
type regexParser struct {
	s          string
	at         int
	depth      int
	fold       bool // (?i)
	dotNewline bool // (?m)
}

func parseRegex(pattern string) (*regexNode, error) {
	p := &regexParser{s: pattern}
	n, err := p.alternatives()
	if err == nil && p.at < len(p.s) {
		err = fmt.Errorf("the ) at byte %d closes nothing", p.at)
	}
	return n, err
}

func (p *regexParser) peek(s string) bool { return strings.HasPrefix(p.s[p.at:], s) }

func (p *regexParser) accept(s string) bool {
	if !p.peek(s) {
		return false
	}
	p.at += len(s)
	return true
}

func (p *regexParser) errorf(format string, args ...any) error {
	return fmt.Errorf("at byte %d: "+format, append([]any{p.at}, args...)...)
}

// alternatives reads up to the end or a closing parenthesis. Options that are
// set inside hold to its end.
func (p *regexParser) alternatives() (*regexNode, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, p.errorf("groups are nested more than %d deep", maxNesting)
	}
	fold, dot := p.fold, p.dotNewline
	defer func() { p.depth--; p.fold, p.dotNewline = fold, dot }()
	alt := &regexNode{kind: nodeAlt}
	for {
		n, err := p.sequence()
		if err != nil {
			return nil, err
		}
		alt.subs = append(alt.subs, n)
		if !p.accept("|") {
			break
		}
	}
	if len(alt.subs) == 1 {
		return alt.subs[0], nil
	}
	return alt, nil
}

func (p *regexParser) sequence() (*regexNode, error) {
	cat := &regexNode{kind: nodeCat}
	for p.at < len(p.s) && !p.peek("|") && !p.peek(")") {
		n, err := p.atom()
		if err != nil {
			return nil, err
		}
		for n != nil {
			q, err := p.quantifier(n)
			if err != nil {
				return nil, err
			}
			if q == nil {
				if k := len(cat.subs); k > 0 && foldsTogether(cat.subs[k-1].folded, n.folded) {
					return nil, p.errorf("%q without regard to case also means one character, which is not supported",
						string([]rune{cat.subs[k-1].folded, n.folded}))
				}
				cat.subs = append(cat.subs, n)
			}
			n = q
		}
	}
	return cat, nil
}

// quantifier reads what stands behind n and returns n repeated, or nil.
func (p *regexParser) quantifier(n *regexNode) (*regexNode, error) {
	r := &regexNode{kind: nodeRepeat, subs: []*regexNode{n}}
	switch {
	case p.accept("*"):
		r.max = -1
	case p.accept("+"):
		r.min, r.max = 1, -1
	case p.accept("?"):
		r.max = 1
	default:
		ok, err := p.interval(r)
		if !ok || err != nil {
			return nil, err
		}
		// Ruby has no possessive intervals, and none that are lazy with one number: a{2}+ and a{2}? repeat a{2}.
		if r.min != r.max {
			r.lazy = p.accept("?")
		}
		return r, nil
	}
	r.lazy = p.accept("?")
	r.possessive = !r.lazy && p.accept("+")
	return r, nil
}

// interval reads {n}, {n,}, {,m} or {n,m}; ok is false where the brace is text.
func (p *regexParser) interval(r *regexNode) (ok bool, err error) {
	if !p.peek("{") {
		return false, nil
	}
	end := strings.IndexByte(p.s[p.at:], '}')
	if end < 0 {
		return false, nil
	}
	low, high, two := strings.Cut(p.s[p.at+1:p.at+end], ",")
	number := func(s string, missing int) (int, bool) {
		if s == "" {
			return missing, two
		}
		if strings.Trim(s, "0123456789") != "" {
			return 0, false
		}
		n, err := strconv.Atoi(s)
		return n, err == nil
	}
	var ok1, ok2 bool
	r.min, ok1 = number(low, 0)
	if r.max, ok2 = r.min, ok1; two {
		r.max, ok2 = number(high, -1)
	}
	if !ok1 || !ok2 || low == "" && high == "" {
		return false, nil
	}
	if r.min > maxRepeat || r.max > maxRepeat || r.max >= 0 && r.min > r.max {
		return false, p.errorf("the interval %s is not supported", p.s[p.at:p.at+end+1])
	}
	p.at += end + 1
	return true, nil
}

func (p *regexParser) atom() (*regexNode, error) {
	switch c := p.s[p.at]; c {
	case '(':
		return p.group()
	case '[':
		p.at++
		class, err := p.class()
		return &regexNode{kind: nodeSet, class: class}, err
	case '.':
		p.at++
		if p.dotNewline {
			return &regexNode{kind: nodeSet, class: func(rune) bool { return true }}, nil
		}
		return &regexNode{kind: nodeSet, class: func(r rune) bool { return r != '\n' }}, nil
	case '^', '$':
		p.at++
		return &regexNode{kind: nodeAssert, assert: c}, nil
	case '*', '+', '?':
		return nil, p.errorf("%c repeats nothing", c)
	case '\\':
		if p.at+1 < len(p.s) && strings.IndexByte("AzZbB", p.s[p.at+1]) >= 0 {
			p.at += 2
			return &regexNode{kind: nodeAssert, assert: p.s[p.at-1]}, nil
		}
		class, r, err := p.escape(false)
		if class == nil && err == nil {
			return p.only(r)
		}
		return &regexNode{kind: nodeSet, class: class}, err
	}
	r, n := utf8.DecodeRuneInString(p.s[p.at:])
	p.at += n
	return p.only(r)
}

// foldsTogether reports whether a character folds to a and b (Unicode's
// CaseFolding.txt, status F).
func foldsTogether(a, b rune) bool {
	switch string([]rune{unicode.ToLower(a), unicode.ToLower(b)}) {
	case "ss", "ff", "fi", "fl", "st":
		return true
	}
	return false
}

// foldsApart reports whether r is of a block in which characters fold to several.
func foldsApart(r rune) bool {
	return strings.ContainsRune("ßŉǰΐΰև", r) || r >= 0x1E96 && r <= 0x1E9E || r >= 0x1F50 && r <= 0x1FFC ||
		r >= 0xFB00 && r <= 0xFB17
}

// only matches one character.
func (p *regexParser) only(r rune) (*regexNode, error) {
	n := &regexNode{kind: nodeSet, class: p.folded(func(c rune) bool { return c == r })}
	if p.fold {
		n.folded = r
		if foldsApart(r) {
			return nil, p.errorf("%q without regard to case also means several characters, which is not supported", r)
		}
	}
	return n, nil
}

// folded adds to a class, where (?i) holds, what differs from a member in case.
func (p *regexParser) folded(class runeClass) runeClass {
	if !p.fold {
		return class
	}
	return func(r rune) bool {
		if class(r) {
			return true
		}
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			if class(f) {
				return true
			}
		}
		return false
	}
}

func (p *regexParser) group() (*regexNode, error) {
	start := p.at
	var wrap *regexNode
	switch {
	case p.accept("(?="):
		wrap = &regexNode{kind: nodeLook}
	case p.accept("(?!"):
		wrap = &regexNode{kind: nodeLook, negate: true}
	case p.accept("(?<="):
		wrap = &regexNode{kind: nodeLook, behind: true}
	case p.accept("(?<!"):
		wrap = &regexNode{kind: nodeLook, behind: true, negate: true}
	case p.accept("(?>"):
		wrap = &regexNode{kind: nodeAtomic}
	case p.accept("(?#"):
		end := strings.IndexByte(p.s[p.at:], ')')
		if end < 0 {
			return nil, p.errorf("a comment that does not end")
		}
		p.at += end + 1
		return &regexNode{}, nil
	case p.accept("(?<"): // a name is for references, of which there are none
		end := strings.IndexByte(p.s[p.at:], '>')
		if end <= 0 {
			return nil, p.errorf("a group name that does not end")
		}
		p.at += end + 1
	case p.peek("(?"):
		return p.options()
	default:
		p.at++
	}
	return p.close(start, wrap)
}

// close reads the rest of a group that began at start.
func (p *regexParser) close(start int, wrap *regexNode) (*regexNode, error) {
	n, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if !p.accept(")") {
		return nil, fmt.Errorf("the ( at byte %d is not closed", start)
	}
	if wrap == nil {
		return n, nil
	}
	wrap.subs = []*regexNode{n}
	return wrap, nil
}

// options reads (?i-m:…), or (?i), which holds to the end of the group around.
func (p *regexParser) options() (*regexNode, error) {
	start := p.at
	fold, dot := p.fold, p.dotNewline
	on := true
	for p.at += 2; p.at < len(p.s); p.at++ {
		switch p.s[p.at] {
		case '-':
			on = false
		case 'i':
			fold = on
		case 'm':
			dot = on
		case ':', ')':
			wasFold, wasDot := p.fold, p.dotNewline
			p.fold, p.dotNewline = fold, dot
			p.at++
			if p.s[p.at-1] == ':' {
				n, err := p.close(start, nil)
				p.fold, p.dotNewline = wasFold, wasDot
				return n, err
			}
			// As in Ruby, what follows up to the end of the group is one group, alternatives and all.
			n, err := p.alternatives()
			p.fold, p.dotNewline = wasFold, wasDot
			return n, err
		default:
			return nil, p.errorf("the group (?%c is not supported", p.s[p.at])
		}
	}
	return nil, fmt.Errorf("the ( at byte %d is not closed", start)
}

// escape reads an escape: a class, or else one character.
func (p *regexParser) escape(inClass bool) (runeClass, rune, error) {
	inSet := func(set charSet) runeClass { return func(r rune) bool { return setOf(r)&set != 0 } }
	not := func(class runeClass, negate bool) runeClass {
		if !negate {
			return class
		}
		return func(r rune) bool { return !class(r) }
	}
	if p.at+1 >= len(p.s) {
		return nil, 0, p.errorf("a backslash at the end")
	}
	c := p.s[p.at+1]
	p.at += 2
	switch c {
	case 's', 'S':
		return not(isSpace, c == 'S'), 0, nil
	case 'd', 'D':
		return not(inSet(catNd), c == 'D'), 0, nil
	case 'w', 'W':
		word := isWordRune
		if inClass {
			word = isBracketWord
		}
		return not(word, c == 'W'), 0, nil
	case 'h', 'H':
		return not(isHexDigit, c == 'H'), 0, nil
	case 'p', 'P':
		class, err := p.property()
		if err != nil {
			return nil, 0, err
		}
		return not(class, c == 'P'), 0, nil
	case 'n', 't', 'r', 'f', 'v', 'a', 'e':
		return nil, rune("\n\t\r\f\v\a\x1b"[strings.IndexByte("ntrfvae", c)]), nil
	case 'x', 'u':
		return p.codePoint(c)
	case 'b':
		if inClass {
			return nil, '\b', nil
		}
	}
	if isASCIILetter(c) || c >= '0' && c <= '9' {
		return nil, 0, p.errorf(`\%c is not supported`, c)
	}
	r, n := utf8.DecodeRuneInString(p.s[p.at-1:])
	p.at += n - 1
	return nil, r, nil
}

// codePoint reads the digits of \xHH, \x{H…} or \uHHHH.
func (p *regexParser) codePoint(kind byte) (runeClass, rune, error) {
	rest := p.s[p.at:]
	n, skip := 4, 0
	if kind == 'x' {
		n = 0
		for n < 2 && n < len(rest) && isHexDigit(rune(rest[n])) {
			n++
		}
		if strings.HasPrefix(rest, "{") {
			n, skip = strings.IndexByte(rest, '}')-1, 1
		}
	}
	if n < 1 || n > 8 || n+2*skip > len(rest) {
		return nil, 0, p.errorf(`\%c needs hexadecimal digits`, kind)
	}
	v, err := strconv.ParseUint(rest[skip:skip+n], 16, 32)
	if err != nil || v > utf8.MaxRune {
		return nil, 0, p.errorf(`\%c%s is no character`, kind, rest[:n+2*skip])
	}
	if v >= utf8.RuneSelf && kind == 'x' && skip == 0 {
		return nil, 0, p.errorf(`\x%s is a byte of a character`, rest[:n])
	}
	p.at += n + 2*skip
	return nil, rune(v), nil
}

// property reads {Name} or {^Name} behind \p.
func (p *regexParser) property() (runeClass, error) {
	end := strings.IndexByte(p.s[p.at:], '}')
	if !p.peek("{") || end < 0 {
		return nil, p.errorf(`\p needs a name in braces`)
	}
	name, negate := strings.CutPrefix(p.s[p.at+1:p.at+end], "^")
	p.at += end + 1
	if set, ok := classSets[strings.ToLower(name)]; ok {
		return func(r rune) bool { return (setOf(r)&set != 0) != negate }, nil
	}
	table := unicode.Scripts[name] // the rest as Go has it: scripts gain letters rarely
	if table == nil {
		table = unicode.Properties[name]
	}
	if table == nil {
		return nil, p.errorf("the class %q is not known", name)
	}
	return func(r rune) bool { return unicode.Is(table, r) != negate }, nil
}

// class reads a bracket expression behind its [.
func (p *regexParser) class() (runeClass, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, p.errorf("classes are nested more than %d deep", maxNesting)
	}
	defer func() { p.depth-- }()
	start := p.at - 1
	negate := p.accept("^")
	var all, union []runeClass // all: what must hold besides union
	first := true
	for {
		switch {
		case p.at >= len(p.s):
			return nil, fmt.Errorf("the [ at byte %d is not closed", start)
		case p.peek("]") && !first:
			p.at++
			class := p.folded(intersect(append(all, unite(union))))
			if negate {
				return func(r rune) bool { return !class(r) }, nil
			}
			return class, nil
		case p.accept("&&"):
			all, union = append(all, unite(union)), nil
		case p.peek("[:"):
			return nil, p.errorf("a POSIX class is not supported")
		case p.accept("["):
			class, err := p.class()
			if err != nil {
				return nil, err
			}
			union = append(union, class)
		default:
			class, err := p.classRange()
			if err != nil {
				return nil, err
			}
			union = append(union, class)
		}
		first = false
	}
}

// classRange reads a character, a range of them or an escape inside brackets.
func (p *regexParser) classRange() (runeClass, error) {
	one := func() (class runeClass, r rune, err error) {
		if p.peek(`\`) {
			return p.escape(true)
		}
		r, n := utf8.DecodeRuneInString(p.s[p.at:])
		p.at += n
		return nil, r, nil
	}
	class, low, err := one()
	if class != nil || err != nil {
		return class, err
	}
	rest := p.s[p.at:]
	if len(rest) < 2 || rest[0] != '-' || rest[1] == ']' || rest[1] == '[' {
		return func(r rune) bool { return r == low }, nil
	}
	p.at++
	class, high, err := one()
	if err != nil {
		return nil, err
	}
	if class != nil || high < low {
		return nil, p.errorf("a range that does not end in a character behind its first")
	}
	return func(r rune) bool { return r >= low && r <= high }, nil
}

func unite(classes []runeClass) runeClass {
	if len(classes) == 1 {
		return classes[0]
	}
	return func(r rune) bool {
		for _, c := range classes {
			if c(r) {
				return true
			}
		}
		return false
	}
}

func intersect(classes []runeClass) runeClass {
	if len(classes) == 1 {
		return classes[0]
	}
	return func(r rune) bool {
		for _, c := range classes {
			if !c(r) {
				return false
			}
		}
		return true
	}
}
