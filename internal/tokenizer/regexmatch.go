package tokenizer

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// regex is a backtracking regular expression: a program for a small machine
// with a stack of places to return to (Thompson's instructions, Cox, "Regular
// Expression Matching: the Virtual Machine Approach", 2009, run depth first).
type regex struct {
	prog  []instruction
	slots int
	nodes int    // compiled so far
	first *class // what a match begins with; nil: anything, or nothing
}

type opcode uint8

const (
	opMatch    opcode = iota
	opSet             // one character of class
	opRun             // min to max of class, most first
	opSplit           // go to x, later perhaps to y
	opJump            // go to x
	opAssert          // a place, told by assert
	opMark            // remember the place in slot x
	opProgress        // go to y if the place is that of slot x
	opLook            // the program from x on matches here, or min to max characters back; go to y
	opAtomic          // the program from x on matches; go to y
)

type instruction struct {
	op             opcode
	assert         byte
	negate, behind bool
	possessive     bool
	x, y           int
	min, max       int
	class          *class
}

// A class answers for ASCII from a table.
type class struct {
	ascii [utf8.RuneSelf]bool
	is    runeClass
}

func newClass(is runeClass) *class {
	c := &class{is: is}
	for r := range c.ascii {
		c.ascii[r] = is(rune(r))
	}
	return c
}

// table returns the class of a nodeSet, made once.
func (n *regexNode) table() *class {
	if n.compiled == nil {
		n.compiled = newClass(n.class)
	}
	return n.compiled
}

// at returns the length of the member at s[i], or 0.
func (c *class) at(s string, i int) int {
	if i >= len(s) {
		return 0
	}
	if b := s[i]; b < utf8.RuneSelf {
		if c.ascii[b] {
			return 1
		}
		return 0
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	if c.is(r) {
		return n
	}
	return 0
}

func newRegex(pattern string) (*regex, error) {
	fail := func(err error) (*regex, error) {
		return nil, fmt.Errorf("regular expression %q: %w", pattern, err)
	}
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("regular expression of %d bytes, limit %d", len(pattern), maxPattern)
	}
	n, err := parseRegex(pattern)
	if err != nil {
		return fail(err)
	}
	re := &regex{}
	if err := re.compile(n); err != nil {
		return fail(err)
	}
	re.emit(instruction{op: opMatch})
	if first, empty := n.first(); !empty {
		re.first = newClass(first)
	}
	return re, nil
}

func (re *regex) emit(in instruction) int {
	re.prog = append(re.prog, in)
	return len(re.prog) - 1
}

func (re *regex) compile(n *regexNode) error {
	if re.nodes++; re.nodes > maxProgram || len(re.prog) > maxProgram {
		return fmt.Errorf("more than %d instructions", maxProgram)
	}
	switch n.kind {
	case nodeSet:
		re.emit(instruction{op: opSet, class: n.table()})
	case nodeAssert:
		re.emit(instruction{op: opAssert, assert: n.assert})
	case nodeCat:
		for _, s := range n.subs {
			if err := re.compile(s); err != nil {
				return err
			}
		}
	case nodeAlt:
		return re.compileAlt(n)
	case nodeRepeat:
		return re.compileRepeat(n)
	case nodeLook, nodeAtomic:
		in := instruction{op: opAtomic}
		if n.kind == nodeLook {
			in = instruction{op: opLook, negate: n.negate, behind: n.behind}
		}
		if n.behind {
			if in.min, in.max = n.subs[0].width(); in.max > maxRepeat {
				return fmt.Errorf("a look behind of more than %d characters is not supported", maxRepeat)
			}
		}
		at := re.emit(in)
		if err := re.compile(n.subs[0]); err != nil {
			return err
		}
		if n.behind {
			re.emit(instruction{op: opAssert, assert: '<'})
		}
		re.emit(instruction{op: opMatch})
		re.prog[at].x, re.prog[at].y = at+1, len(re.prog)
	}
	return nil
}

func (re *regex) compileAlt(n *regexNode) error {
	var ends []int
	for i, s := range n.subs {
		last := i == len(n.subs)-1
		split := len(re.prog)
		if !last {
			re.emit(instruction{op: opSplit, x: split + 1})
		}
		if err := re.compile(s); err != nil {
			return err
		}
		if !last {
			ends = append(ends, re.emit(instruction{op: opJump}))
			re.prog[split].y = len(re.prog)
		}
	}
	for _, e := range ends {
		re.prog[e].x = len(re.prog)
	}
	return nil
}

func (re *regex) compileRepeat(n *regexNode) error {
	body := n.subs[0]
	if body.kind == nodeSet && !n.lazy {
		limit := n.max
		if limit < 0 {
			limit = math.MaxInt
		}
		re.emit(instruction{op: opRun, class: body.table(), min: n.min, max: limit, possessive: n.possessive})
		return nil
	}
	if n.possessive {
		plain := *n
		plain.possessive = false
		return re.compile(&regexNode{kind: nodeAtomic, subs: []*regexNode{&plain}})
	}
	for range n.min {
		if err := re.compile(body); err != nil {
			return err
		}
	}
	// order makes a split of which the first way is the body, or with lazy the way out.
	order := func(in *instruction, body, out int) {
		if in.x, in.y = body, out; n.lazy {
			in.x, in.y = out, body
		}
	}
	if n.max < 0 {
		split := re.emit(instruction{op: opSplit})
		slot := re.slots
		shortest, _ := body.width()
		if shortest == 0 { // a round that takes nothing ends the loop
			re.slots++
			re.emit(instruction{op: opMark, x: slot})
		}
		if err := re.compile(body); err != nil {
			return err
		}
		if shortest == 0 {
			at := re.emit(instruction{op: opProgress, x: slot})
			re.prog[at].y = at + 2
		}
		re.emit(instruction{op: opJump, x: split})
		order(&re.prog[split], split+1, len(re.prog))
		return nil
	}
	var splits []int
	for range n.max - n.min {
		splits = append(splits, re.emit(instruction{op: opSplit}))
		if err := re.compile(body); err != nil {
			return err
		}
	}
	for _, s := range splits {
		order(&re.prog[s], s+1, len(re.prog))
	}
	return nil
}

// width returns the least and most characters that n takes.
func (n *regexNode) width() (least, most int) {
	add := func(a, b int) int { return min(a+b, 2*maxPattern) }
	switch n.kind {
	case nodeSet:
		return 1, 1
	case nodeCat, nodeAtomic:
		for _, s := range n.subs {
			a, b := s.width()
			least, most = add(least, a), add(most, b)
		}
	case nodeAlt:
		least = math.MaxInt
		for _, s := range n.subs {
			a, b := s.width()
			least, most = min(least, a), max(most, b)
		}
	case nodeRepeat:
		a, b := n.subs[0].width()
		least, most = min(a*n.min, 2*maxPattern), min(b*n.max, 2*maxPattern)
		if n.max < 0 && b > 0 {
			most = 2 * maxPattern
		}
	}
	return least, most
}

// first returns what n can begin with, unless it can take nothing.
func (n *regexNode) first() (_ runeClass, empty bool) {
	var classes []runeClass
	switch n.kind {
	case nodeSet:
		return n.class, false
	case nodeCat:
		for _, s := range n.subs {
			class, empty := s.first()
			if s.kind == nodeAssert || s.kind == nodeLook || s.kind == nodeEmpty {
				continue // takes nothing itself
			}
			if least, _ := s.width(); empty || least == 0 {
				return nil, true
			}
			return class, false
		}
		return nil, true
	case nodeAlt:
		for _, s := range n.subs {
			class, empty := s.first()
			if empty {
				return nil, true
			}
			classes = append(classes, class)
		}
		return unite(classes), false
	case nodeRepeat, nodeAtomic:
		if n.kind == nodeRepeat && n.min == 0 {
			return nil, true
		}
		return n.subs[0].first()
	}
	return nil, true
}

// matches appends the matches in s, as far as the budget reaches. An empty match
// that touches the one before does not count.
func (re *regex) matches(b *budget, out []int, s string) []int {
	m := machine{re: re, s: s, b: b, slots: make([]int, re.slots)}
	last := -1
	for i := 0; i <= len(s) && b.left >= 0; {
		if re.first == nil || re.first.at(s, i) > 0 {
			if end, ok := m.run(0, i); ok && (end > i || end != last) {
				out = append(out, i, end)
				last = end
				if end > i {
					i = end
					continue
				}
			}
		}
		b.left--
		_, n := utf8.DecodeRuneInString(s[i:])
		i += max(n, 1)
	}
	return out
}

// A frame is a place to return to: at pos, or for a run at each character
// between low and pos; with pc negative it gives slot ^pc back its value pos.
type frame struct{ pc, pos, low int }

type machine struct {
	re    *regex
	s     string
	b     *budget
	slots []int
	stack []frame
	back  int // where the look behind that runs must end
}

// run executes from pc on at pos and returns where the match ends.
func (m *machine) run(pc, pos int) (int, bool) {
	base := len(m.stack)
	for {
		next, at, ok := m.step(pc, pos)
		switch {
		case ok && next < 0:
			m.stack = m.stack[:base]
			return at, true
		case ok:
			pc, pos = next, at
		default:
			if pc, pos, ok = m.backtrack(base); !ok {
				return 0, false
			}
		}
		if m.b.left--; m.b.left < 0 {
			m.stack = m.stack[:base]
			return 0, false
		}
	}
}

// backtrack takes the last frame above base.
func (m *machine) backtrack(base int) (pc, pos int, ok bool) {
	for len(m.stack) > base {
		top := &m.stack[len(m.stack)-1]
		f := *top
		switch {
		case f.pc < 0:
			m.slots[^f.pc] = f.pos
			m.stack = m.stack[:len(m.stack)-1]
			continue
		case f.low < f.pos: // a run gives back a character
			_, n := utf8.DecodeLastRuneInString(m.s[f.low:f.pos])
			if top.pos -= n; top.pos == f.low {
				m.stack = m.stack[:len(m.stack)-1]
			}
			return f.pc, f.pos - n, true
		}
		m.stack = m.stack[:len(m.stack)-1]
		return f.pc, f.pos, true
	}
	return 0, 0, false
}

// step executes one instruction; next is negative at the end of the program.
func (m *machine) step(pc, pos int) (next, at int, ok bool) {
	in := &m.re.prog[pc]
	switch in.op {
	case opMatch:
		return -1, pos, true
	case opSet:
		n := in.class.at(m.s, pos)
		return pc + 1, pos + n, n > 0
	case opRun:
		return m.takeRun(in, pc, pos)
	case opSplit:
		m.stack = append(m.stack, frame{in.y, pos, pos})
		return in.x, pos, true
	case opJump:
		return in.x, pos, true
	case opAssert:
		if in.assert == '<' {
			return pc + 1, pos, pos == m.back
		}
		return pc + 1, pos, assertion(in.assert, m.s, pos)
	case opMark:
		m.stack = append(m.stack, frame{^in.x, m.slots[in.x], 0})
		m.slots[in.x] = pos
		return pc + 1, pos, true
	case opProgress:
		if m.slots[in.x] == pos {
			return in.y, pos, true
		}
		return pc + 1, pos, true
	case opAtomic:
		end, ok := m.run(in.x, pos)
		return in.y, end, ok
	}
	return in.y, pos, m.look(in, pos) != in.negate && m.b.left >= 0
}

// takeRun takes as many characters as there are and leaves a frame for fewer.
func (m *machine) takeRun(in *instruction, pc, pos int) (next, at int, ok bool) {
	count, low := 0, pos
	for count < in.max {
		n := in.class.at(m.s, pos)
		if n == 0 {
			break
		}
		pos += n
		if count++; count == in.min {
			low = pos
		}
	}
	m.b.left -= int64(count)
	if count < in.min {
		return 0, 0, false
	}
	if low < pos && !in.possessive {
		m.stack = append(m.stack, frame{pc + 1, pos, low})
	}
	return pc + 1, pos, true
}

func (m *machine) look(in *instruction, pos int) bool {
	if !in.behind {
		_, ok := m.run(in.x, pos)
		return ok
	}
	outer := m.back
	m.back = pos
	defer func() { m.back = outer }()
	start := pos
	for n := 0; n <= in.max; n++ {
		if n >= in.min {
			if _, ok := m.run(in.x, start); ok {
				return true
			}
		}
		_, size := utf8.DecodeLastRuneInString(m.s[:start])
		if size == 0 {
			return false
		}
		start -= size
	}
	return false
}

// assertion reports whether a place in s is of a kind.
func assertion(kind byte, s string, pos int) bool {
	switch kind {
	case 'A':
		return pos == 0
	case 'z':
		return pos == len(s)
	case 'Z':
		return pos == len(s) || pos == len(s)-1 && s[pos] == '\n'
	case '^':
		return pos == 0 || s[pos-1] == '\n' && pos < len(s)
	case '$':
		return pos == len(s) || s[pos] == '\n'
	}
	before, n := utf8.DecodeLastRuneInString(s[:pos])
	after, k := utf8.DecodeRuneInString(s[pos:])
	border := (n > 0 && isWordRune(before)) != (k > 0 && isWordRune(after))
	return border == (kind == 'b')
}
