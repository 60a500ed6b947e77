package schema

import (
	"errors"
	"slices"

	"github.com/baleenrun/baleen/internal/grammar/regular"
)

// A Schema is a compiled schema: places and what may stand there.
type Schema struct {
	Root Node
	// Notes says what was read but, by JSON Schema's own rules, asserts nothing.
	Notes []string

	values []*Value
	alive  []bool
}

// Value is what may stand at a place.
func (s *Schema) Value(n Node) *Value { return s.values[n] }

// Alive reports whether any value may stand at a place.
func (s *Schema) Alive(n Node) bool { return s.alive[n] }

// An Array is one shape of arrays.
type Array struct {
	Prefix   []Node
	Rest     Node
	Min, Max int       // Max < 0: no bound
	Contains *Contains // nil where no item is counted
	// Texts, in arrays whose items must differ, is the language of an item's text, of which each value has one.
	Texts *regular.DFA

	room int          // items that can exist, < 0 for no bound; set once it is known which places are alive
	live map[int]bool // index and count → whether an end can be reached
	s    *Schema
}

// Contains counts the items for which a schema holds.
type Contains struct {
	Min, Max int
	With     []Node // places of the items of the prefix, and last of all others, if counted
	Without  []Node // if not; the same places where no upper bound needs to know
}

// An Object is one shape of objects.
type Object struct {
	Names    []string
	Places   []Node
	Required []bool
	Classes  []Class // keys other than Names; the label of class i is len(Names)+1+i
	Wanted   int     // how many of the Claims must be met by some key
	Min, Max int

	keys *regular.DFA
	s    *Schema
}

// A Class is a set of keys whose values have the same place.
type Class struct {
	Place  Node
	Claims []Node // set of wanted claims, as bits → the place that meets them, or Nothing
	Count  int32  // how many keys there are, saturating at 2³⁰
}

// Keys classifies keys: label i+1 for Names[i], above for classes, 0 for keys that may not stand here.
func (o *Object) Keys() *regular.DFA {
	if o.keys == nil {
		if len(o.Classes) == 0 {
			o.keys, _ = regular.Literals(o.Names, false) // their length was checked
		} else {
			o.keys, _ = regular.NamesOrOther(o.Names)
		}
	}
	return o.keys
}

// Compile reads a schema. Its error is an *Error wherever a keyword is the reason.
func Compile(doc []byte) (*Schema, error) {
	root, err := parseJSON(doc)
	var half *Error
	if errors.As(err, &half) {
		return nil, half
	}
	if err != nil {
		return nil, &Error{Keyword: "schema", Reason: err.Error(), Invalid: true}
	}
	if root.kind != object && root.kind != boolean {
		return nil, &Error{Keyword: "schema", Reason: "must be an object or a boolean", Invalid: true}
	}
	d, err := newDocument(root)
	if err != nil {
		return nil, err
	}
	c := newCompiler(d)
	s := &Schema{Root: c.node([]literal{0})}
	if err := c.plan(s); err != nil {
		return nil, err
	}
	s.Notes = c.notes
	s.findAlive()
	if !s.alive[s.Root] {
		return nil, &Error{Keyword: "schema", Reason: "no value fits it", Invalid: true}
	}
	return s, nil
}

// plan makes the final shapes of every place that can be reached.
func (c *compiler) plan(s *Schema) error {
	planned := make([]bool, 0, 64)
	queue := []Node{s.Root, Anything}
	for len(queue) > 0 {
		n := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for len(planned) < len(c.literals) {
			planned = append(planned, false)
		}
		if planned[n] {
			continue
		}
		planned[n] = true
		v, err := c.value(n)
		if err != nil {
			return err
		}
		for _, shape := range v.arr {
			as, err := c.array(shape)
			if err != nil {
				return err
			}
			v.Arrays = append(v.Arrays, as...)
		}
		for _, shape := range v.obj {
			os, err := c.object(shape)
			if err != nil {
				return err
			}
			v.Objects = append(v.Objects, os...)
		}
		if len(v.Arrays) > maxShapes || len(v.Objects) > maxShapes {
			return c.explain(c.literals[n][0], "oneOf", errShapes)
		}
		v.children(func(n Node) { queue = append(queue, n) })
		if v.Num != nil && v.Num.Integer {
			if v.Num.D, err = c.dfaAnd(v.Num.D, regular.PlainIntegers); err != nil {
				return err
			}
		}
		if v.Num != nil && !v.Num.All {
			short, err := c.dfaAnd(v.Num.D, regular.Shortest)
			if err != nil {
				return err
			}
			if short.Count(short.Start()) < 1<<20 { // constants, spelled once
				v.Num = &Num{D: short, Integer: v.Num.Integer}
			}
		}
	}
	s.values = c.values
	for _, v := range s.values {
		if v == nil {
			continue
		}
		for _, a := range v.Arrays {
			a.s = s
		}
		for _, o := range v.Objects {
			o.s = s
		}
	}
	return nil
}

// children calls f for each place that a shape of the value has.
func (v *Value) children(f func(Node)) {
	for _, a := range v.Arrays {
		for _, n := range a.Prefix {
			f(n)
		}
		f(a.Rest)
		if a.Contains != nil {
			for i := range a.Contains.With {
				f(a.Contains.With[i])
				f(a.Contains.Without[i])
			}
		}
	}
	for _, o := range v.Objects {
		for _, n := range o.Places {
			f(n)
		}
		for _, k := range o.Classes {
			f(k.Place)
			for _, n := range k.Claims {
				f(n)
			}
		}
	}
}

func (c *compiler) array(s *arrayShape) ([]*Array, error) {
	a := &Array{Prefix: s.prefix, Rest: s.rest, Min: s.min, Max: s.max}
	if s.unique && (s.max < 0 || s.max > 1) {
		return c.uniqueArray(a, s)
	}
	switch len(s.contains) {
	case 0:
		return []*Array{a}, nil
	case 1:
	default:
		return nil, s.contains[0].at.fail("contains", "more than one counts the same items")
	}
	k := s.contains[0]
	a.Contains = &Contains{Min: k.min, Max: k.max}
	with, without := c.node([]literal{k.what}), c.node([]literal{k.what ^ 1})
	for i := 0; i <= max(len(a.Prefix), k.from); i++ {
		n := s.at(i)
		if i < k.from {
			a.Contains.With, a.Contains.Without = append(a.Contains.With, Nothing), append(a.Contains.Without, n)
			continue
		}
		a.Contains.With = append(a.Contains.With, c.conj(n, with))
		if k.max >= 0 {
			n = c.conj(n, without)
		}
		a.Contains.Without = append(a.Contains.Without, n)
	}
	if bound := max(a.Max, a.Min, k.min, k.max); bound > 1<<14 {
		return nil, k.at.fail("contains", "beside a bound of %d items", bound)
	}
	return []*Array{a}, nil
}

// object makes the final shapes of a shape: what must exist is either one of the names, one shape each, or another key.
func (c *compiler) object(s *objectShape) ([]*Object, error) {
	var names []string
	known := map[string]bool{}
	add := func(k string) {
		if !known[k] {
			known[k] = true
			names = append(names, k)
		}
	}
	for _, comp := range s.comps {
		for _, k := range comp.order {
			add(k)
		}
	}
	for _, k := range s.required {
		add(k)
	}
	for _, comp := range s.comps {
		var more []string
		for k := range comp.names {
			if !known[k] {
				more = append(more, k)
			}
		}
		slices.Sort(more)
		for _, k := range more {
			add(k)
		}
	}
	for _, x := range s.exist {
		for _, k := range x.not {
			add(k)
		}
	}
	base := &Object{Names: names, Min: s.min, Max: s.max}
	size := 0
	for _, k := range names {
		base.Places = append(base.Places, c.nodeOf(s, k))
		base.Required = append(base.Required, slices.Contains(s.required, k))
		size += len(k)
	}
	if size >= regular.MaxStates-2 {
		return nil, c.explainShape(s, "properties", regular.ErrTooLarge)
	}
	type choice struct {
		places   []Node
		required []bool
		extra    []existence
	}
	choices := []choice{{base.Places, base.Required, nil}}
	for _, x := range s.exist {
		var next []choice
		for _, ch := range choices {
			next = append(next, choice{ch.places, ch.required, append(slices.Clone(ch.extra), x)})
			for i, k := range names {
				if ch.places[i] == Nothing || slices.Contains(x.not, k) || x.key != nil && x.key.Match(k) == 0 {
					continue
				}
				n := c.conj(ch.places[i], x.node)
				if c.surelyEmpty(n, 1) {
					continue
				}
				places, required := slices.Clone(ch.places), slices.Clone(ch.required)
				places[i], required[i] = n, true
				next = append(next, choice{places, required, ch.extra})
			}
			if len(next) > maxShapes {
				return nil, c.explainShape(s, "not", errShapes)
			}
		}
		choices = next
	}
	var out []*Object
	for _, ch := range choices {
		o := &Object{
			Names:    names,
			Places:   ch.places,
			Required: ch.required,
			Min:      s.min,
			Max:      s.max,
			Wanted:   len(ch.extra),
		}
		if len(ch.extra) > 1 && s.max >= 0 || len(ch.extra) > 4 {
			return nil, c.explainShape(s, "maxProperties", errWanted)
		}
		if err := c.classes(o, s, ch.extra); err != nil {
			return nil, c.explainShape(s, "patternProperties", err)
		}
		if len(ch.extra) > 0 && len(o.Classes) == 0 {
			continue
		}
		out = append(out, o)
	}
	return out, nil
}

// classes sorts all keys that are no names by what their values must be.
func (c *compiler) classes(o *Object, s *objectShape, extra []existence) error {
	type test struct {
		d   *regular.DFA
		use func(k *class, matches bool)
	}
	var tests []test
	for i, comp := range s.comps {
		for _, p := range comp.patterns {
			tests = append(tests, test{d: p.d, use: func(k *class, matches bool) {
				if matches {
					k.covered[i] = true
					k.place = c.conj(k.place, p.node)
				}
			}})
		}
	}
	for _, d := range s.names {
		tests = append(tests, test{d: d, use: func(k *class, matches bool) {
			if !matches {
				k.place = Nothing
			}
		}})
	}
	for i, x := range extra {
		if x.key != nil {
			tests = append(tests, test{d: x.key, use: func(k *class, matches bool) { k.meets[i] = matches }})
		}
	}
	fresh := func() *class {
		k := &class{covered: make([]bool, len(s.comps)), meets: make([]bool, len(extra))}
		for i, x := range extra {
			k.meets[i] = x.key == nil
		}
		return k
	}
	finish := func(k *class) Class {
		out := Class{Place: k.place, Count: 1 << 30}
		for i, comp := range s.comps {
			if !k.covered[i] {
				out.Place = c.conj(out.Place, comp.additional)
			}
		}
		for set := range 1 << len(extra) {
			n := out.Place
			for i, x := range extra {
				if set>>i&1 == 1 && !k.meets[i] {
					n = Nothing
				} else if set>>i&1 == 1 {
					n = c.conj(n, x.node)
				}
			}
			out.Claims = append(out.Claims, n)
		}
		return out
	}
	n := int32(len(o.Names))
	if len(tests) == 0 {
		if k := finish(fresh()); k.Place != Nothing {
			o.Classes = []Class{k}
		}
		return nil
	}
	d, err := regular.NamesOrOther(o.Names)
	if err != nil {
		return err
	}
	vectors := []string{""}
	for _, t := range tests {
		ids := map[string]int32{}
		var next []string
		d, err = regular.Product(d, t.d, func(x, y int32) int32 {
			if x <= n {
				return x
			}
			v := vectors[x-n-1] + string(rune('0'+min(y, 1)))
			id, ok := ids[v]
			if !ok {
				id = int32(len(next))
				ids[v] = id
				next = append(next, v)
			}
			return n + 1 + id
		})
		if err != nil {
			return err
		}
		vectors = next
	}
	number := make([]int32, len(vectors))
	for i, v := range vectors {
		k := fresh()
		for j, t := range tests {
			t.use(k, v[j] == '1')
		}
		f := finish(k)
		if f.Place == Nothing {
			continue
		}
		one := regular.Select(d, func(l int32) bool { return l == n+1+int32(i) })
		if one.Empty() {
			continue
		}
		f.Count = one.Count(one.Start())
		o.Classes = append(o.Classes, f)
		number[i] = n + int32(len(o.Classes))
	}
	o.keys = regular.Relabel(d, func(l int32) int32 {
		if l <= n {
			return l
		}
		return number[l-n-1]
	})
	return nil
}

type class struct {
	place   Node
	covered []bool // component → a pattern of it matches
	meets   []bool
}
