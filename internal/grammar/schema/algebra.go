package schema

import (
	"fmt"
	"slices"
	"sort"

	"github.com/baleenrun/baleen/internal/grammar/regular"
)

// A Node is a place of a document: the conjunction of schemas and negated schemas that must hold there.
type Node int32

// Anything and Nothing are the places where every value and no value may stand.
const (
	Anything Node = 0
	Nothing  Node = 1
)

// A literal is a schema (number<<1) or its negation (number<<1 | 1).
type literal = int32

// A Value says which JSON values may stand somewhere: those of any of its parts.
type Value struct {
	Null, True, False bool
	Num               *Num // nil: no numbers
	Str               []Str
	arr               []*arrayShape
	obj               []*objectShape

	Arrays  []*Array
	Objects []*Object
}

// A Num is a set of numbers, as texts.
type Num struct {
	All     bool         // every JSON number, exponents included
	D       *regular.DFA // otherwise: all plain spellings of the numbers in the set
	Integer bool         // they are integers, to be spelled without a point
}

// A Str is a set of strings: those of D (nil for all) that have Lo to Hi code points, Hi < 0 for no bound.
type Str struct {
	D      *regular.DFA
	Lo, Hi int
}

// arrayShape is a conjunction of constraints on arrays.
type arrayShape struct {
	prefix   []Node
	rest     Node
	min, max int // max < 0: no bound
	unique   bool
	contains []contain
	uniqueAt *sub
}

// contain counts the items from a place on for which a schema holds.
type contain struct {
	what     literal
	from     int
	min, max int
	at       *sub
}

// objectShape is a conjunction of components, each of which says what every key's value must be.
type objectShape struct {
	comps    []*component
	required []string // sorted
	names    []*regular.DFA
	min, max int
	exist    []existence
	at       *sub // for errors
}

// component is what properties, patternProperties and additionalProperties of one schema say together.
type component struct {
	order      []string
	names      map[string]Node
	patterns   []patternNode
	additional Node
}

type patternNode struct {
	d    *regular.DFA
	node Node
}

// existence wants some key of a language with a value of a place.
type existence struct {
	key  *regular.DFA // nil: any key
	node Node
	not  []string // names that do not count
}

const (
	maxShapes = 300
	maxNodes  = 50000
)

func everything() Value {
	return Value{
		Null: true, True: true, False: true, Num: &Num{All: true}, Str: []Str{{Hi: -1}},
		arr: []*arrayShape{{max: -1}}, obj: []*objectShape{{max: -1}},
	}
}

// conj is the place where both nodes hold.
func (c *compiler) conj(a, b Node) Node {
	switch {
	case a == b || b == Anything:
		return a
	case a == Anything:
		return b
	case a == Nothing || b == Nothing:
		return Nothing
	}
	k := [2]Node{min(a, b), max(a, b)}
	if n, ok := c.conjs[k]; ok {
		return n
	}
	n := c.node(append(slices.Clone(c.literals[a]), c.literals[b]...))
	c.conjs[k] = n
	return n
}

// node returns the place of a conjunction of literals.
func (c *compiler) node(ls []literal) Node {
	slices.Sort(ls)
	ls = slices.Compact(ls)
	out := ls[:0]
	for i, l := range ls {
		if l&1 == 1 && i > 0 && ls[i-1] == l-1 {
			return Nothing
		}
		if v := c.doc.subs[l>>1].v; v.kind == boolean {
			if v.truth == (l&1 == 1) {
				return Nothing
			}
			continue
		} else if len(v.keys) == 0 {
			if l&1 == 1 {
				return Nothing
			}
			continue
		}
		out = append(out, l)
	}
	if len(out) == 0 {
		return Anything
	}
	k := make([]byte, 0, 4*len(out))
	for _, l := range out {
		k = append(k, byte(l), byte(l>>8), byte(l>>16), byte(l>>24))
	}
	if n, ok := c.nodes[string(k)]; ok {
		return n
	}
	n := Node(len(c.literals))
	c.nodes[string(k)] = n
	c.literals = append(c.literals, slices.Clone(out))
	c.values = append(c.values, nil)
	return n
}

func (c *compiler) and(a, b Value) (Value, error) {
	v := Value{Null: a.Null && b.Null, True: a.True && b.True, False: a.False && b.False}
	var err error
	if v.Num, err = c.andNum(a.Num, b.Num); err != nil {
		return v, err
	}
	if v.Str, err = c.andStr(a.Str, b.Str); err != nil {
		return v, err
	}
	for _, x := range a.arr {
		for _, y := range b.arr {
			if z := c.andArray(x, y); z != nil {
				v.arr = append(v.arr, z)
			}
		}
	}
	for _, x := range a.obj {
		for _, y := range b.obj {
			if z := c.andObject(x, y); z != nil {
				v.obj = append(v.obj, z)
			}
		}
	}
	return v, c.tooMany(&v)
}

var errShapes = fmt.Errorf("more than %d combinations of alternatives", maxShapes)

func (c *compiler) tooMany(v *Value) error {
	if c.work += len(v.arr) + len(v.obj); c.work > maxShapeWork {
		return fmt.Errorf("the schema's alternatives have more than %d combinations", maxShapeWork)
	}
	if len(v.arr) > maxShapes || len(v.obj) > maxShapes || len(v.Str) > maxShapes {
		return errShapes
	}
	return nil
}

// maxShapeWork bounds what normalising a schema may cost in all.
const maxShapeWork = 200000

func (c *compiler) or(a, b Value) (Value, error) {
	v := Value{Null: a.Null || b.Null, True: a.True || b.True, False: a.False || b.False}
	var err error
	if v.Num, err = c.orNum(a.Num, b.Num); err != nil {
		return v, err
	}
	if v.Str, err = c.orStr(a.Str, b.Str); err != nil {
		return v, err
	}
	v.arr = append(slices.Clone(a.arr), b.arr...)
	v.obj = append(slices.Clone(a.obj), b.obj...)
	if slices.ContainsFunc(v.arr, (*arrayShape).full) {
		v.arr = []*arrayShape{{max: -1}}
	}
	if slices.ContainsFunc(v.obj, (*objectShape).full) {
		v.obj = []*objectShape{{max: -1}}
	}
	v.arr, v.obj = slices.Compact(v.arr), slices.Compact(v.obj)
	return v, c.tooMany(&v)
}

func (s *arrayShape) full() bool {
	return len(s.prefix) == 0 && s.rest == Anything && s.min == 0 && s.max < 0 && !s.unique && len(s.contains) == 0
}

func (s *objectShape) full() bool {
	return len(s.comps) == 0 && len(s.required) == 0 && len(s.names) == 0 && s.min == 0 && s.max < 0 &&
		len(s.exist) == 0
}

type pair struct{ a, b *regular.DFA }

type operation func(a, b *regular.DFA) (*regular.DFA, error)

// binary computes an operation of two languages once.
func (c *compiler) binary(cache map[pair]*regular.DFA, op operation, a, b *regular.DFA) (*regular.DFA, error) {
	if d, ok := cache[pair{a, b}]; ok {
		return d, nil
	}
	d, err := op(a, b)
	if err == nil {
		cache[pair{a, b}] = d
	}
	return d, err
}

// maxListed is how many strings of finite languages are joined as lists, which is much faster than as automata.
const maxListed = 4096

func listed(d *regular.DFA) ([]string, bool) {
	if d.Count(d.Start()) > maxListed {
		return nil, false
	}
	return d.Strings(maxListed)
}

// filtered is the strings of a that are, or are not, in b.
func filtered(a []string, b *regular.DFA, in bool) (*regular.DFA, error) {
	return regular.Literals(slices.DeleteFunc(a, func(s string) bool { return (b.Match(s) != 0) != in }), true)
}

func (c *compiler) dfaAnd(a, b *regular.DFA) (*regular.DFA, error) {
	if a == b {
		return a, nil
	}
	return c.binary(c.ands, func(a, b *regular.DFA) (*regular.DFA, error) {
		if list, ok := listed(a); ok {
			return filtered(list, b, true)
		}
		if list, ok := listed(b); ok {
			return filtered(list, a, true)
		}
		return regular.And(a, b)
	}, a, b)
}

func (c *compiler) dfaOr(a, b *regular.DFA) (*regular.DFA, error) {
	if a == b {
		return a, nil
	}
	return c.binary(c.ors, func(a, b *regular.DFA) (*regular.DFA, error) {
		x, ok := listed(a)
		if y, all := listed(b); ok && all {
			return regular.Literals(append(x, y...), true)
		}
		return regular.Or(a, b)
	}, a, b)
}

func (c *compiler) dfaMinus(a, b *regular.DFA) (*regular.DFA, error) {
	return c.binary(c.minuses, func(a, b *regular.DFA) (*regular.DFA, error) {
		if list, ok := listed(a); ok {
			return filtered(list, b, false)
		}
		return regular.Minus(a, b)
	}, a, b)
}

func (c *compiler) andNum(a, b *Num) (*Num, error) {
	switch {
	case a == nil || b == nil:
		return nil, nil
	case a.All:
		return b, nil
	case b.All:
		return a, nil
	}
	d, err := c.dfaAnd(a.D, b.D)
	if err != nil || d.Empty() {
		return nil, err
	}
	return &Num{D: d, Integer: a.Integer || b.Integer}, nil
}

func (c *compiler) orNum(a, b *Num) (*Num, error) {
	switch {
	case a == nil:
		return b, nil
	case b == nil:
		return a, nil
	case a.All || b.All:
		return &Num{All: true}, nil
	}
	d, err := c.dfaOr(a.D, b.D)
	return &Num{D: d, Integer: a.Integer && b.Integer}, err
}

func (c *compiler) notNum(a *Num) (*Num, error) {
	switch {
	case a == nil:
		return &Num{All: true}, nil
	case a.All:
		return nil, nil
	}
	d, err := c.dfaMinus(regular.Decimals, a.D)
	if err != nil || d.Empty() {
		return nil, err
	}
	return &Num{D: d}, nil
}

func (c *compiler) andStr(a, b []Str) ([]Str, error) {
	var out []Str
	for _, x := range a {
		for _, y := range b {
			z := Str{D: x.D, Lo: max(x.Lo, y.Lo), Hi: x.Hi}
			if z.Hi < 0 || y.Hi >= 0 && y.Hi < z.Hi {
				z.Hi = y.Hi
			}
			var err error
			if z.D == nil {
				z.D = y.D
			} else if y.D != nil {
				if z.D, err = c.dfaAnd(x.D, y.D); err != nil {
					return nil, err
				}
			}
			empty, err := z.empty()
			if err != nil {
				return nil, err
			}
			if !empty {
				out = append(out, z)
			}
		}
	}
	if len(a) > 1 && len(b) > 1 {
		return c.orStr(out, nil)
	}
	return out, nil
}

func (z Str) empty() (bool, error) {
	switch {
	case z.Hi >= 0 && z.Lo > z.Hi:
		return true, nil
	case z.D == nil:
		return false, nil
	case z.D.Empty():
		return true, nil
	}
	w, err := z.D.Window(z.Lo, z.Hi)
	if err != nil {
		return false, err
	}
	return !w.Alive(0, z.Lo, z.Hi), nil
}

// orStr joins lists of strings; languages without bounds on the length become one.
func (c *compiler) orStr(a, b []Str) ([]Str, error) {
	all := append(slices.Clone(a), b...)
	var out []Str
	var plain []*regular.DFA
	for _, s := range all {
		switch {
		case s.D == nil && s.Lo == 0 && s.Hi < 0:
			return []Str{s}, nil
		case s.D != nil && s.Lo == 0 && s.Hi < 0:
			if !slices.Contains(plain, s.D) {
				plain = append(plain, s.D)
			}
		case !slices.Contains(out, s):
			out = append(out, s)
		}
	}
	switch len(plain) {
	case 0:
	case 1:
		out = append(out, Str{D: plain[0], Hi: -1})
	default:
		d := plain[0]
		for i := 1; i < len(plain); i++ {
			u, err := c.dfaOr(d, plain[i])
			if regular.IsTooLarge(err) { // they stay alternatives
				out = append(out, Str{D: d, Hi: -1})
				d = plain[i]
				continue
			}
			if err != nil {
				return nil, err
			}
			d = u
		}
		out = append(out, Str{D: d, Hi: -1})
	}
	return out, nil
}

func (c *compiler) notStr(list []Str) ([]Str, error) {
	out := []Str{{Hi: -1}}
	for _, s := range list {
		var not []Str
		if s.D != nil {
			d, err := c.dfaMinus(c.any, s.D)
			if err != nil {
				return nil, err
			}
			if !d.Empty() {
				not = append(not, Str{D: d, Hi: -1})
			}
		}
		if s.Lo > 0 {
			not = append(not, Str{Hi: s.Lo - 1})
		}
		if s.Hi >= 0 {
			not = append(not, Str{Lo: s.Hi + 1, Hi: -1})
		}
		var err error
		if out, err = c.andStr(out, not); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func minBound(a, b int) int {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

func (s *arrayShape) at(i int) Node {
	if i < len(s.prefix) {
		return s.prefix[i]
	}
	return s.rest
}

func (c *compiler) andArray(a, b *arrayShape) *arrayShape {
	if a.full() {
		return b
	}
	if b.full() || a == b {
		return a
	}
	s := &arrayShape{rest: c.conj(a.rest, b.rest), unique: a.unique || b.unique}
	s.min, s.max = max(a.min, b.min), minBound(a.max, b.max)
	if s.uniqueAt = a.uniqueAt; s.uniqueAt == nil {
		s.uniqueAt = b.uniqueAt
	}
	for i := range max(len(a.prefix), len(b.prefix)) {
		s.prefix = append(s.prefix, c.conj(a.at(i), b.at(i)))
	}
	s.contains = slices.Clone(a.contains)
	for _, k := range b.contains {
		if !slices.Contains(s.contains, k) {
			s.contains = append(s.contains, k)
		}
	}
	return c.checkArray(s)
}

// checkArray shortens a shape to the items that can exist; nil if there are too few.
func (c *compiler) checkArray(s *arrayShape) *arrayShape {
	for i := 0; i < len(s.prefix) && i < max(s.min, 4); i++ {
		if c.surelyEmpty(s.prefix[i], 1) {
			s.prefix[i] = Nothing
			break
		}
	}
	for i := range s.prefix {
		if s.prefix[i] == Nothing {
			s.prefix, s.rest, s.max = s.prefix[:i:i], Nothing, minBound(s.max, i)
			break
		}
	}
	if s.rest == Nothing {
		s.max = minBound(s.max, len(s.prefix))
	}
	if s.max >= 0 && s.min > s.max {
		return nil
	}
	for _, k := range s.contains {
		if k.max >= 0 && k.min > k.max || s.max >= 0 && k.min > s.max-k.from && k.min > 0 {
			return nil
		}
	}
	return s
}

func (c *compiler) andObject(a, b *objectShape) *objectShape {
	if a.full() {
		return b
	}
	if b.full() || a == b {
		return a
	}
	s := &objectShape{min: max(a.min, b.min), max: minBound(a.max, b.max), at: a.at}
	if s.at == nil {
		s.at = b.at
	}
	s.comps = slices.Clone(a.comps)
	for _, k := range b.comps {
		if !slices.Contains(s.comps, k) {
			s.comps = append(s.comps, k)
		}
	}
	s.required = append(slices.Clone(a.required), b.required...)
	sort.Strings(s.required)
	s.required = slices.Compact(s.required)
	s.names = slices.Clone(a.names)
	for _, d := range b.names {
		if !slices.Contains(s.names, d) {
			s.names = append(s.names, d)
		}
	}
	s.exist = append(slices.Clone(a.exist), b.exist...)
	return c.checkObject(s)
}

// checkObject drops a shape that surely has no object.
func (c *compiler) checkObject(s *objectShape) *objectShape {
	if s.max >= 0 && (s.min > s.max || len(s.required) > s.max) {
		return nil
	}
	for _, name := range s.required {
		if n := c.nodeOf(s, name); n == Nothing || c.surelyEmpty(n, 2) {
			return nil
		}
	}
	return s
}

// nodeOf is the place of the value of a key.
func (c *compiler) nodeOf(s *objectShape, name string) Node {
	for _, d := range s.names {
		if d.Match(name) == 0 {
			return Nothing
		}
	}
	n := Anything
	for _, comp := range s.comps {
		n = c.conj(n, c.inComponent(comp, name))
	}
	return n
}

func (c *compiler) inComponent(comp *component, name string) Node {
	n, known := comp.names[name]
	if !known {
		n = Anything
	}
	for _, p := range comp.patterns {
		if p.d.Match(name) != 0 {
			n, known = c.conj(n, p.node), true
		}
	}
	if !known {
		return comp.additional
	}
	return n
}

// surelyEmpty reports whether a place is known to have no value, looking a few levels down. False may also mean that
// nobody knows yet: then the final search for places without values decides.
func (c *compiler) surelyEmpty(n Node, depth int) bool {
	if n == Nothing {
		return true
	}
	if n == Anything || depth == 0 || c.depth > maxLookahead {
		return false
	}
	v, err := c.value(n)
	if err != nil || v == nil {
		return false
	}
	return !v.Null && !v.True && !v.False && v.Num == nil && len(v.Str) == 0 && len(v.arr) == 0 && len(v.obj) == 0
}

const maxLookahead = 12
