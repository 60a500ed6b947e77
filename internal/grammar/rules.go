package grammar

import (
	"fmt"
	"maps"
	"slices"

	"github.com/baleenrun/baleen/internal/grammar/regular"
	"github.com/baleenrun/baleen/internal/grammar/schema"
)

// A term is what a rule consists of, before it is compiled.
type term struct {
	op       termOp
	ranges   []rune       // tSet: pairs
	dfa      *regular.DFA // tRegex
	rule     int          // tRule
	subs     []*term      // tSeq, tAlt, tRepeat
	min, max int          // tRepeat, max < 0 for no bound
}

type termOp uint8

const (
	tSeq termOp = iota // of no terms: the empty text
	tAlt               // of no terms: nothing
	tSet
	tRegex
	tRule
	tRepeat
	tValue // JSON of the schema's node that rule says
)

// ruleMachine reads texts of rules. One frame of the stack is one rule that is being read, at a set of places.
type ruleMachine struct {
	names  []string
	starts []int32
	ends   []int32
	schema *schema.Schema // of JSON values among the rules; nil: there are none
	states []ruleState
	alive  []bool // states from which the end of their rule can be reached
	sets   []ruleSet
	setID  map[string]int32
}

type ruleState struct {
	bytes []byteEdge
	free  []int32
	calls []call
	json  []call // values: the rule is a node of the schema
}

type byteEdge struct {
	lo, hi byte
	to     int32
}

type call struct{ rule, to int32 }

// A ruleSet is places in one rule, closed under steps that read nothing.
type ruleSet struct {
	states  []int32
	accepts bool
	only    bool   // it only accepts: returning to it is returning from it
	calls   []call // to: the set to return to
	json    []call // the same of values
}

const maxRuleStates = 200000

// compileRules makes a grammar of rules, the first of which is a text.
func compileRules(names []string, rules []*term) (*Grammar, error) {
	return compileWith(nil, Options{}, names, rules)
}

// compileWith is compileRules for rules with values of a schema among them.
func compileWith(s *schema.Schema, o Options, names []string, rules []*term) (*Grammar, error) {
	r := &ruleMachine{names: names, schema: s, setID: map[string]int32{}}
	rules = inline(rules)
	productive := make([]bool, len(rules))
	for again := true; again; {
		again = false
		for i, t := range rules {
			if !productive[i] && t.productive(productive) {
				productive[i], again = true, true
			}
		}
	}
	if !productive[0] {
		return nil, fmt.Errorf("grammar: rule %q derives no text", names[0])
	}
	nullable := make([]bool, len(rules))
	for again := true; again; {
		again = false
		for i, t := range rules {
			if !nullable[i] && t.nullable(nullable) {
				nullable[i], again = true, true
			}
		}
	}
	for range rules {
		r.starts, r.ends = append(r.starts, r.state()), append(r.ends, r.state())
	}
	for i, t := range rules {
		if !productive[i] {
			continue
		}
		end, err := r.add(t, r.starts[i], productive, nullable)
		if err != nil {
			return nil, fmt.Errorf("grammar: rule %q: %w", names[i], err)
		}
		r.states[end].free = append(r.states[end].free, r.ends[i])
	}
	if err := r.leftRecursion(); err != nil {
		return nil, err
	}
	r.findAlive()
	return newGrammar(func(m *machine) key {
		m.rules = r
		if s != nil {
			m.json = &jsonMachine{schema: s, options: o}
		}
		return key{kind: kRules, a: r.set([]int32{r.starts[0]})}
	}), nil
}

func (t *term) productive(known []bool) bool {
	switch t.op {
	case tRule:
		return known[t.rule]
	case tRegex:
		return !t.dfa.Empty()
	case tSet:
		return len(t.ranges) > 0
	case tValue:
		return true // the schema's dead nodes read nothing
	case tRepeat:
		return t.min == 0 || t.subs[0].productive(known)
	case tAlt:
		return slices.ContainsFunc(t.subs, func(s *term) bool { return s.productive(known) })
	}
	return !slices.ContainsFunc(t.subs, func(s *term) bool { return !s.productive(known) })
}

func (t *term) nullable(known []bool) bool {
	switch t.op {
	case tRule:
		return known[t.rule]
	case tRegex:
		return !t.dfa.Empty() && t.dfa.Label(t.dfa.Start()) != 0
	case tSet, tValue:
		return false
	case tRepeat:
		return t.min == 0 || t.subs[0].nullable(known)
	case tAlt:
		return slices.ContainsFunc(t.subs, func(s *term) bool { return s.nullable(known) })
	}
	return !slices.ContainsFunc(t.subs, func(s *term) bool { return !s.nullable(known) })
}

// inline replaces rules that do not lead back to themselves by what they are, so that their places become one set and
// not frames, as long as that stays small.
func inline(rules []*term) []*term {
	const maxInlined = 4000
	size := make([]int, len(rules))
	const working, recursive = -1, -2
	var measure func(i int) int
	var sizeOf func(t *term) int
	sizeOf = func(t *term) int {
		n := 1
		switch t.op {
		case tRule:
			k := measure(t.rule)
			if k < 0 {
				return k
			}
			return k
		case tRegex:
			return t.dfa.States()
		}
		for _, s := range t.subs {
			k := sizeOf(s)
			if k < 0 {
				return recursive
			}
			n += k
		}
		if t.op == tRepeat {
			n *= max(t.min, t.max, 1)
		}
		return n
	}
	measure = func(i int) int {
		if size[i] == working {
			return recursive
		}
		if size[i] == 0 {
			size[i] = working
			n := sizeOf(rules[i])
			if n > maxInlined {
				n = recursive
			}
			size[i] = n
		}
		return size[i]
	}
	for i := range rules {
		measure(i)
	}
	var replace func(t *term, depth int) *term
	replace = func(t *term, depth int) *term {
		if t.op == tRule && size[t.rule] > 0 && depth < 200 {
			return replace(rules[t.rule], depth+1)
		}
		if len(t.subs) == 0 {
			return t
		}
		out := *t
		out.subs = make([]*term, len(t.subs))
		for i, s := range t.subs {
			out.subs[i] = replace(s, depth)
		}
		return &out
	}
	out := make([]*term, len(rules))
	for i, t := range rules {
		out[i] = t
		if i == 0 || size[i] < 0 {
			out[i] = replace(t, 0)
		}
	}
	return out
}

func (r *ruleMachine) state() int32 {
	r.states = append(r.states, ruleState{})
	return int32(len(r.states) - 1)
}

func (r *ruleMachine) link(from, to int32) { r.states[from].free = append(r.states[from].free, to) }

// add builds a term that begins at from and returns where it ends.
func (r *ruleMachine) add(t *term, from int32, productive, nullable []bool) (int32, error) {
	if len(r.states) > maxRuleStates {
		return 0, fmt.Errorf("the grammar needs more than %d states", maxRuleStates)
	}
	switch t.op {
	case tSeq:
		var err error
		for _, s := range t.subs {
			if from, err = r.add(s, from, productive, nullable); err != nil {
				return 0, err
			}
		}
		return from, nil
	case tAlt:
		to := r.state()
		for _, s := range t.subs {
			start := r.state()
			r.link(from, start)
			end, err := r.add(s, start, productive, nullable)
			if err != nil {
				return 0, err
			}
			r.link(end, to)
		}
		return to, nil
	case tSet:
		to := r.state()
		for i := 0; i < len(t.ranges); i += 2 {
			r.addRange(from, to, t.ranges[i], t.ranges[i+1])
		}
		return to, nil
	case tRegex:
		return r.addDFA(t.dfa, from), nil
	case tValue:
		to := r.state()
		if r.schema.Alive(schema.Node(t.rule)) {
			r.states[from].json = append(r.states[from].json, call{int32(t.rule), to})
		}
		return to, nil
	case tRule:
		to := r.state()
		if productive[t.rule] {
			r.states[from].calls = append(r.states[from].calls, call{int32(t.rule), to})
			if nullable[t.rule] {
				r.link(from, to)
			}
		}
		return to, nil
	}
	return r.addRepeat(t, from, productive, nullable)
}

func (r *ruleMachine) addRepeat(t *term, from int32, productive, nullable []bool) (int32, error) {
	at := r.state()
	r.link(from, at)
	var err error
	for range t.min {
		if at, err = r.add(t.subs[0], at, productive, nullable); err != nil {
			return 0, err
		}
	}
	to := r.state()
	if t.max < 0 {
		loop := r.state()
		r.link(at, loop)
		end, err := r.add(t.subs[0], loop, productive, nullable)
		if err != nil {
			return 0, err
		}
		r.link(end, loop)
		r.link(loop, to)
		return to, nil
	}
	r.link(at, to)
	for range t.max - t.min {
		if at, err = r.add(t.subs[0], at, productive, nullable); err != nil {
			return 0, err
		}
		r.link(at, to)
	}
	return to, nil
}

func (r *ruleMachine) addDFA(d *regular.DFA, from int32) int32 {
	to := r.state()
	if d.Empty() {
		return to
	}
	base := int32(len(r.states))
	for range d.States() {
		r.state()
	}
	r.link(from, base)
	for s := range int32(d.States()) {
		d.Edges(s, func(lo, hi rune, t int32) { r.addRange(base+s, base+t, lo, hi) })
		if d.Label(s) != 0 {
			r.link(base+s, to)
		}
	}
	return to
}

// addRange adds the UTF-8 of a range of code points.
func (r *ruleMachine) addRange(from, to int32, lo, hi rune) {
	if lo > hi {
		return
	}
	if lo < 0xD800 && hi >= 0xD800 {
		r.addRange(from, to, lo, 0xD7FF)
		lo = 0xD800
	}
	if lo >= 0xD800 && lo <= 0xDFFF {
		if hi <= 0xDFFF {
			return
		}
		lo = 0xE000
	}
	for _, top := range []rune{0x7F, 0x7FF, 0xFFFF} { // one length at a time
		if lo <= top && hi > top {
			r.addRange(from, to, lo, top)
			lo = top + 1
		}
	}
	if hi < 0x80 {
		r.states[from].bytes = append(r.states[from].bytes, byteEdge{byte(lo), byte(hi), to})
		return
	}
	for n := 1; n < 4; n++ { // parts whose last n bytes are all that may stand there
		m := rune(1)<<(6*n) - 1
		if lo&^m != hi&^m {
			if lo&m != 0 {
				r.addRange(from, to, lo, lo|m)
				r.addRange(from, to, lo|m+1, hi)
				return
			}
			if hi&m != m {
				r.addRange(from, to, lo, hi&^m-1)
				r.addRange(from, to, hi&^m, hi)
				return
			}
		}
	}
	a, b := []byte(string(lo)), []byte(string(hi))
	at := from
	for i := range a {
		next := to
		if i+1 < len(a) {
			next = r.state()
		}
		r.states[at].bytes = append(r.states[at].bytes, byteEdge{a[i], b[i], next})
		at = next
	}
}

// leftRecursion finds rules that call themselves before reading anything: those would push frames without end.
func (r *ruleMachine) leftRecursion() error {
	const open, closed = 1, 2
	mark := make([]uint8, len(r.starts))
	var visit func(rule int32, depth int) error
	visit = func(rule int32, depth int) error {
		if mark[rule] == open || depth > 5000 {
			return fmt.Errorf("grammar: rule %q calls itself before anything is read (left recursion): "+
				"write it as a repetition", r.names[rule])
		}
		if mark[rule] == closed {
			return nil
		}
		mark[rule] = open
		for _, s := range r.closure([]int32{r.starts[rule]}) {
			for _, c := range r.states[s].calls {
				if err := visit(c.rule, depth+1); err != nil {
					return err
				}
			}
		}
		mark[rule] = closed
		return nil
	}
	for i := range r.starts {
		if err := visit(int32(i), 0); err != nil {
			return err
		}
	}
	return nil
}

// findAlive marks the states that lead to the end of their rule.
func (r *ruleMachine) findAlive() {
	preds := make([][]int32, len(r.states))
	for s, st := range r.states {
		for _, e := range st.bytes {
			preds[e.to] = append(preds[e.to], int32(s))
		}
		for _, t := range st.free {
			preds[t] = append(preds[t], int32(s))
		}
		for _, c := range st.calls {
			preds[c.to] = append(preds[c.to], int32(s))
		}
		for _, c := range st.json {
			preds[c.to] = append(preds[c.to], int32(s))
		}
	}
	r.alive = make([]bool, len(r.states))
	queue := slices.Clone(r.ends)
	for len(queue) > 0 {
		s := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if !r.alive[s] {
			r.alive[s] = true
			queue = append(queue, preds[s]...)
		}
	}
}

func (r *ruleMachine) closure(states []int32) []int32 {
	out := slices.Clone(states)
	seen := map[int32]bool{}
	for _, s := range out {
		seen[s] = true
	}
	for i := 0; i < len(out); i++ {
		for _, t := range r.states[out[i]].free {
			if !seen[t] && (r.alive == nil || r.alive[t]) {
				seen[t] = true
				out = append(out, t)
			}
		}
	}
	return out
}

// set interns the closure of some states, without those that only lead on.
func (r *ruleMachine) set(states []int32) int32 {
	all := r.closure(states)
	slices.Sort(all)
	s := ruleSet{}
	returns, behind := map[int32][]int32{}, map[int32][]int32{}
	k := make([]byte, 0, 4*len(all))
	for _, q := range all {
		st := &r.states[q]
		end := slices.Contains(r.ends, q)
		if len(st.bytes) == 0 && len(st.calls) == 0 && len(st.json) == 0 && !end || !r.alive[q] {
			continue
		}
		s.accepts = s.accepts || end
		s.states = append(s.states, q)
		k = append(k, byte(q), byte(q>>8), byte(q>>16), byte(q>>24))
		for _, c := range st.calls {
			if r.alive[c.to] {
				returns[c.rule] = append(returns[c.rule], c.to)
			}
		}
		for _, c := range st.json {
			if r.alive[c.to] {
				behind[c.rule] = append(behind[c.rule], c.to)
			}
		}
	}
	if id, ok := r.setID[string(k)]; ok {
		return id
	}
	id := int32(len(r.sets))
	r.setID[string(k)] = id
	s.only = s.accepts && len(s.states) == 1 && len(returns) == 0 && len(behind) == 0
	r.sets = append(r.sets, s)
	calls, json := r.calls(returns), r.calls(behind)
	r.sets[id].calls, r.sets[id].json = calls, json
	return id
}

// calls are the sets to return to behind rules, in their order.
func (r *ruleMachine) calls(returns map[int32][]int32) []call {
	var out []call
	for _, rule := range slices.Sorted(maps.Keys(returns)) {
		out = append(out, call{rule, r.set(returns[rule])})
	}
	return out
}

func (r *ruleMachine) moves(m *machine, k key, b byte) []move {
	set := r.sets[k.a]
	var next []int32
	for _, q := range set.states {
		for _, e := range r.states[q].bytes {
			if b >= e.lo && b <= e.hi && r.alive[e.to] && !slices.Contains(next, e.to) {
				next = append(next, e.to)
			}
		}
	}
	var out []move
	if len(next) > 0 {
		out = append(out, move{to: m.intern(key{kind: kRules, a: r.set(next)})})
	}
	for _, c := range set.json {
		out = m.json.begin(m, out, schema.Node(c.rule), key{kind: kRules, a: c.to}, b)
	}
	for _, c := range set.calls {
		inner := m.movesAt(m.intern(key{kind: kRules, a: r.set([]int32{r.starts[c.rule]})}), b)
		if len(inner) == 0 {
			continue
		}
		var push []stateID
		if !r.sets[c.to].only {
			push = []stateID{m.intern(key{kind: kRules, a: c.to})}
		}
		for _, mv := range inner {
			out = append(out, move{push: append(slices.Clone(push), mv.push...), to: mv.to})
		}
		if len(out) > MaxPlaces {
			m.err = errPlaces
			return nil
		}
	}
	return out
}
