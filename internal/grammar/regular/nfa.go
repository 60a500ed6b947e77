package regular

import (
	"fmt"
	"slices"
	"sort"
)

// An expression is a parsed regular expression.
type op uint8

const (
	opEmpty  op = iota
	opNone      // nothing matches
	opSet       // one code point of ranges
	opConcat    // subs in order
	opAlt       // one of subs
	opRepeat    // subs[0], min to max times, max < 0 for no bound
	opAssert    // where is a place
	opLook      // subs[0] follows, or does not where negate is set
)

type place uint8

const (
	atStart place = 1 << iota
	atEnd
	atWord
	notWord
	lineStart
	lineEnd
)

type expr struct {
	op       op
	ranges   []rune // pairs lo, hi, sorted
	subs     []*expr
	min, max int
	where    place
	negate   bool
}

func concat(subs ...*expr) *expr { return &expr{op: opConcat, subs: subs} }

func alt(subs ...*expr) *expr { return &expr{op: opAlt, subs: subs} }

func repeat(e *expr, lo, hi int) *expr {
	return &expr{op: opRepeat, subs: []*expr{e}, min: lo, max: hi}
}

func literal(s string) *expr {
	e := &expr{op: opConcat}
	for _, r := range s {
		e.subs = append(e.subs, &expr{op: opSet, ranges: []rune{r, r}})
	}
	return e
}

var allRunes = []rune{0, surrogateMin - 1, surrogateMax + 1, runeEnd - 1}

// has reports whether an expression contains an operation (and, for assertions, one of the places).
func (e *expr) has(o op, where place) bool {
	if e.op == o && (o != opAssert || e.where&where != 0) {
		return true
	}
	return slices.ContainsFunc(e.subs, func(s *expr) bool { return s.has(o, where) })
}

// An nfa is Thompson's: states with edges that read a set of code points, or nothing.
type nfa struct {
	sets  [][]rune
	setID map[string]int
	edges [][]nfaEdge
}

type nfaEdge struct {
	to    int32
	set   int32 // index into sets, or free
	where place // for free edges: what must hold here
}

const free = int32(-1)

// maxNFA bounds what repetition unrolls to.
const maxNFA = 200000

func (n *nfa) state() (int32, error) {
	if len(n.edges) >= maxNFA {
		return 0, fmt.Errorf("the pattern repeats too much: more than %d states: %w", maxNFA, ErrTooLarge)
	}
	n.edges = append(n.edges, nil)
	return int32(len(n.edges) - 1), nil
}

func (n *nfa) edge(from, to, set int32, where place) {
	n.edges[from] = append(n.edges[from], nfaEdge{to, set, where})
}

func (n *nfa) set(ranges []rune) int32 {
	k := string(ranges)
	for i, r := range ranges { // surrogates do not survive in a string key
		if r >= surrogateMin && r <= surrogateMax {
			k += fmt.Sprint(i, ":", r)
		}
	}
	id, ok := n.setID[k]
	if !ok {
		id = len(n.sets)
		n.sets = append(n.sets, ranges)
		n.setID[k] = id
	}
	return int32(id)
}

// add builds an expression that begins at from, and returns where it ends.
func (n *nfa) add(e *expr, from int32) (int32, error) {
	switch e.op {
	case opEmpty:
		return from, nil
	case opNone:
		return n.state()
	case opSet:
		to, err := n.state()
		if err == nil {
			n.edge(from, to, n.set(e.ranges), 0)
		}
		return to, err
	case opAssert:
		to, err := n.state()
		if err == nil {
			n.edge(from, to, free, e.where)
		}
		return to, err
	case opConcat:
		at := from
		for _, s := range e.subs {
			var err error
			if at, err = n.add(s, at); err != nil {
				return 0, err
			}
		}
		return at, nil
	case opAlt:
		to, err := n.state()
		if err != nil {
			return 0, err
		}
		for _, s := range e.subs {
			start, err := n.state()
			if err != nil {
				return 0, err
			}
			n.edge(from, start, free, 0)
			end, err := n.add(s, start)
			if err != nil {
				return 0, err
			}
			n.edge(end, to, free, 0)
		}
		return to, nil
	case opRepeat:
		return n.addRepeat(e, from)
	}
	return 0, fmt.Errorf("a lookahead stands where it cannot be followed")
}

func (n *nfa) addRepeat(e *expr, from int32) (int32, error) {
	at, err := n.state()
	if err != nil {
		return 0, err
	}
	n.edge(from, at, free, 0)
	for range e.min {
		if at, err = n.add(e.subs[0], at); err != nil {
			return 0, err
		}
	}
	to, err := n.state()
	if err != nil {
		return 0, err
	}
	if e.max < 0 {
		loop, err := n.state()
		if err != nil {
			return 0, err
		}
		n.edge(at, loop, free, 0)
		end, err := n.add(e.subs[0], loop)
		if err != nil {
			return 0, err
		}
		n.edge(end, loop, free, 0)
		n.edge(loop, to, free, 0)
		return to, nil
	}
	n.edge(at, to, free, 0)
	for range e.max - e.min {
		if at, err = n.add(e.subs[0], at); err != nil {
			return 0, err
		}
		n.edge(at, to, free, 0)
	}
	return to, nil
}

// embed adds an automaton whose start is from and whose accepting states lead to the state that it returns.
func (n *nfa) embed(d *DFA, from int32) (int32, error) {
	to, err := n.state()
	if err != nil || d.Empty() {
		return to, err
	}
	base := int32(len(n.edges))
	for range d.labels {
		if _, err := n.state(); err != nil {
			return 0, err
		}
	}
	n.edge(from, base, free, 0)
	ranges := make([][]rune, d.columns)
	for i, lo := range d.bounds {
		end := rune(runeEnd)
		if i+1 < len(d.bounds) {
			end = d.bounds[i+1]
		}
		if c := d.column[i]; c >= 0 {
			ranges[c] = append(ranges[c], lo, end-1)
		}
	}
	sets := make([]int32, d.columns)
	for c := range sets {
		sets[c] = n.set(ranges[c])
	}
	for s := range d.labels {
		for c, set := range sets {
			if t := d.trans[s*d.columns+c]; t >= 0 {
				n.edge(base+int32(s), base+t, set, 0)
			}
		}
		if d.labels[s] != 0 {
			n.edge(base+int32(s), to, free, 0)
		}
	}
	return to, nil
}

func newNFA() *nfa { return &nfa{setID: map[string]int{}} }

var wordRanges = []rune{'0', '9', 'A', 'Z', '_', '_', 'a', 'z'}

func inRanges(ranges []rune, r rune) bool {
	i := sort.Search(len(ranges)/2, func(i int) bool { return ranges[2*i+1] >= r })
	return i < len(ranges)/2 && ranges[2*i] <= r
}

// determinize is the subset construction. A set of states is kept as it stands after reading, before free edges
// are followed: which of them may be depends on the code points on both sides.
func (n *nfa) determinize(start, accept int32) (*DFA, error) {
	wordy := false
	lines := false
	for _, es := range n.edges {
		for _, e := range es {
			wordy = wordy || e.where&(atWord|notWord) != 0
			lines = lines || e.where&(lineStart|lineEnd) != 0
		}
	}
	p := newPartition()
	for _, s := range n.sets {
		for i := 0; i < len(s); i += 2 {
			p.add(s[i], s[i+1])
		}
	}
	if wordy {
		for i := 0; i < len(wordRanges); i += 2 {
			p.add(wordRanges[i], wordRanges[i+1])
		}
	}
	if lines {
		p.add('\n', '\n')
	}
	b := &builder{bounds: p.sorted()}
	members := make([][]bool, 0) // column → set → is in
	columnWord := []bool{}
	columnLine := []bool{}
	ids := map[string]int32{}
	key := make([]byte, len(n.sets)+2)
	for _, at := range b.bounds {
		if at >= surrogateMin && at <= surrogateMax {
			b.column = append(b.column, -1)
			continue
		}
		in := make([]bool, len(n.sets))
		for i, s := range n.sets {
			in[i] = inRanges(s, at)
			key[i] = byte(truth(in[i]))
		}
		w, l := wordy && inRanges(wordRanges, at), lines && at == '\n'
		key[len(n.sets)], key[len(n.sets)+1] = byte(truth(w)), byte(truth(l))
		id, ok := ids[string(key)]
		if !ok {
			id = int32(len(members))
			ids[string(key)] = id
			members, columnWord, columnLine = append(members, in), append(columnWord, w), append(columnLine, l)
		}
		b.column = append(b.column, id)
	}
	b.columns = len(members)

	mark := make([]int, len(n.edges))
	round := 0
	var closed []int32
	closure := func(set []int32, holds place) {
		round++
		closed = closed[:0]
		for _, s := range set {
			if mark[s] != round {
				mark[s] = round
				closed = append(closed, s)
			}
		}
		for i := 0; i < len(closed); i++ {
			for _, e := range n.edges[closed[i]] {
				if e.set == free && e.where&^holds == 0 && mark[e.to] != round {
					mark[e.to] = round
					closed = append(closed, e.to)
				}
			}
		}
	}
	type subset struct {
		states           []int32
		first            bool
		prevWord, prevNL bool
	}
	holds := func(s *subset, end, nextWord, nextNL bool) place {
		var h place
		if s.first {
			h |= atStart
		}
		if end {
			h |= atEnd
		}
		if s.prevWord != nextWord {
			h |= atWord
		} else {
			h |= notWord
		}
		if s.first || s.prevNL {
			h |= lineStart
		}
		if end || nextNL {
			h |= lineEnd
		}
		return h
	}
	known := map[string]int32{}
	var order []*subset
	work := 0
	visit := func(s *subset) (int32, error) {
		slices.Sort(s.states)
		k := make([]byte, 0, 4*len(s.states)+1)
		for _, q := range s.states {
			k = append(k, byte(q), byte(q>>8), byte(q>>16), byte(q>>24))
		}
		k = append(k, byte(truth(s.first)|truth(s.prevWord)<<1|truth(s.prevNL)<<2))
		if id, ok := known[string(k)]; ok {
			return id, nil
		}
		closure(s.states, holds(s, true, false, false))
		id, err := b.state(truth(slices.Contains(closed, accept)))
		if err != nil {
			return 0, err
		}
		known[string(k)] = id
		order = append(order, s)
		return id, nil
	}
	if _, err := visit(&subset{states: []int32{start}, first: true}); err != nil {
		return nil, err
	}
	sink := n.sink(accept)
	for i := 0; i < len(order); i++ {
		s := order[i]
		plain := !wordy && !lines
		if plain {
			closure(s.states, holds(s, false, false, false))
			if sink >= 0 && slices.Contains(closed, sink) {
				closed = append(closed[:0], sink)
			}
		}
		next := make([][]int32, b.columns)
		for c := range b.columns {
			if !plain {
				closure(s.states, holds(s, false, columnWord[c], columnLine[c]))
			}
			round++
			for _, q := range closed {
				for _, e := range n.edges[q] {
					if e.set != free && members[c][e.set] && mark[e.to] != round {
						mark[e.to] = round
						next[c] = append(next[c], e.to)
					}
				}
			}
			if work += len(closed) + 1; work > maxWork {
				return nil, fmt.Errorf("the pattern takes too long to compile: %w", ErrTooLarge)
			}
		}
		for c, set := range next {
			if len(set) == 0 {
				continue
			}
			t := &subset{states: set}
			if wordy {
				t.prevWord = columnWord[c]
			}
			if lines {
				t.prevNL = columnLine[c]
			}
			id, err := visit(t)
			if err != nil {
				return nil, err
			}
			b.trans[i*b.columns+c] = id
		}
	}
	return b.finish(), nil
}

// sink finds a state that accepts everything that follows: where it is in a set, the others do not matter.
func (n *nfa) sink(accept int32) int32 {
	for s, es := range n.edges {
		loops, accepts := false, false
		for _, e := range es {
			loops = loops || e.set != free && e.to == int32(s) && slices.Equal(n.sets[e.set], allRunes)
			accepts = accepts || e.set == free && e.to == accept && e.where == 0
		}
		if loops && accepts {
			return int32(s)
		}
	}
	return -1
}

// maxWork bounds the steps of one determinization, some tens of milliseconds.
const maxWork = 20_000_000

// language compiles an expression that stands at the start of a text and is followed by what rest accepts.
func language(e *expr, rest *DFA) (*DFA, error) {
	if !e.has(opLook, 0) {
		n := newNFA()
		start, err := n.state()
		if err != nil {
			return nil, err
		}
		end, err := n.add(e, start)
		if err != nil {
			return nil, err
		}
		if end, err = n.embed(rest, end); err != nil {
			return nil, err
		}
		return n.determinize(start, end)
	}
	switch e.op {
	case opConcat: // from the right: a lookahead sees all that follows it
		i := len(e.subs)
		for i > 0 {
			j := i
			for j > 0 && !e.subs[j-1].has(opLook, 0) {
				j--
			}
			part := &expr{op: opConcat, subs: e.subs[j:i]}
			if j == i {
				j--
				part = e.subs[j]
			}
			if i < len(e.subs) && part.has(opAssert, atEnd|lineStart|lineEnd|atWord|notWord) && !part.has(opLook, 0) ||
				j > 0 && part.has(opAssert, atStart|atWord|notWord|lineStart|lineEnd) {
				return nil, fmt.Errorf("an anchor stands together with a lookahead where it cannot be followed")
			}
			var err error
			if rest, err = language(part, rest); err != nil {
				return nil, err
			}
			i = j
		}
		return rest, nil
	case opAlt:
		var list []*DFA
		for _, s := range e.subs {
			d, err := language(s, rest)
			if err != nil {
				return nil, err
			}
			list = append(list, d)
		}
		return Union(list)
	case opLook:
		if e.subs[0].has(opAssert, atStart|atWord|notWord|lineStart|lineEnd) {
			return nil, fmt.Errorf("an anchor other than $ stands inside a lookahead")
		}
		ahead, err := language(e.subs[0], Any())
		if err != nil {
			return nil, err
		}
		if e.negate {
			return Minus(rest, ahead)
		}
		return And(rest, ahead)
	case opRepeat:
		if e.min == 1 && e.max == 1 {
			return language(e.subs[0], rest)
		}
		if e.min == 0 && e.max == 1 {
			d, err := language(e.subs[0], rest)
			if err != nil {
				return nil, err
			}
			return Or(d, rest)
		}
		if e.max >= 0 && e.max <= 64 { // unrolled from the right
			out := rest
			for i := e.max; i > 0; i-- {
				d, err := language(e.subs[0], out)
				if err != nil {
					return nil, err
				}
				if i > e.min {
					if d, err = Or(d, rest); err != nil {
						return nil, err
					}
				}
				out = d
			}
			return out, nil
		}
	}
	return nil, fmt.Errorf("a lookahead stands inside a repetition without a bound")
}

// search compiles an expression that may match anywhere in a text, or must match all of it.
func search(e *expr, whole bool) (*DFA, error) {
	if whole {
		return language(concat(e, &expr{op: opAssert, where: atEnd}), epsilon())
	}
	any := &expr{op: opRepeat, subs: []*expr{{op: opSet, ranges: allRunes}}, min: 0, max: -1}
	if e.has(opLook, 0) { // the start is fixed apart from the rest, which lookaheads cut up
		list := []*expr{e}
		if e.op == opAlt {
			list = e.subs
		}
		var all []*DFA
		for _, s := range list {
			rest, anchored := stripStart(s)
			if !anchored {
				rest = concat(any, s)
			}
			d, err := language(rest, Any())
			if err != nil {
				return nil, err
			}
			all = append(all, d)
		}
		return Union(all)
	}
	return language(concat(any, e), Any())
}

// stripStart takes a leading ^ away.
func stripStart(e *expr) (*expr, bool) {
	switch {
	case e.op == opAssert && e.where == atStart:
		return &expr{op: opEmpty}, true
	case e.op == opConcat && len(e.subs) > 0:
		if s, ok := stripStart(e.subs[0]); ok {
			return concat(append([]*expr{s}, e.subs[1:]...)...), true
		}
	case e.op == opRepeat && e.min == 1 && e.max == 1:
		return stripStart(e.subs[0])
	}
	return e, false
}

func epsilon() *DFA {
	d, _ := Literals([]string{""}, true)
	return d
}
