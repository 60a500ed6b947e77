package schema

import (
	"errors"
	"fmt"
	"slices"

	"github.com/baleenrun/baleen/internal/grammar/regular"
)

var errWanted = fmt.Errorf("several keys must exist that no name is given for, and there is a bound on their number")

func (c *compiler) explainShape(s *objectShape, keyword string, err error) error {
	if e := (*Error)(nil); errors.As(err, &e) || s.at == nil {
		return err
	}
	return s.at.fail(keyword, "%v", err)
}

// uniqueArray makes the shape of arrays whose items differ. Items must be scalars, all of one place: then two items are
// equal exactly where their texts are.
func (c *compiler) uniqueArray(a *Array, s *arrayShape) ([]*Array, error) {
	fail := func(why string) ([]*Array, error) { return nil, s.uniqueAt.fail("uniqueItems", "%s", why) }
	if len(s.contains) > 0 {
		return fail("together with contains")
	}
	if len(s.prefix) > 0 {
		return fail("together with items that have places of their own")
	}
	if s.rest == Nothing {
		return []*Array{a}, nil
	}
	v, err := c.value(s.rest)
	if err != nil {
		return nil, err
	}
	if v == nil || len(v.arr)+len(v.obj) > 0 {
		return fail("items that may be arrays or objects are not compared")
	}
	var words []string
	for word, has := range map[string]bool{"null": v.Null, "true": v.True, "false": v.False} {
		if has {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	texts, err := regular.Literals(words, true)
	if err != nil {
		return nil, err
	}
	list := []*regular.DFA{texts}
	if v.Num != nil {
		d := regular.Decimals
		if !v.Num.All {
			d = v.Num.D
		}
		if d, err = c.dfaAnd(d, regular.Shortest); err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	for _, str := range v.Str {
		d := str.D
		if d == nil {
			d = c.any
		}
		if str.Lo > 0 || str.Hi >= 0 {
			length, err := regular.Length(str.Lo, str.Hi)
			if err != nil {
				return fail(err.Error())
			}
			if d, err = c.dfaAnd(d, length); err != nil {
				return fail(err.Error())
			}
		}
		if d, err = regular.Quoted(d); err != nil {
			return fail(err.Error())
		}
		list = append(list, d)
	}
	if a.Texts, err = regular.Union(list); err != nil {
		return fail(err.Error())
	}
	if n := int(a.Texts.Count(a.Texts.Start())); n < 1<<29 { // no more items than there are values
		a.Max = minBound(a.Max, n)
	}
	return []*Array{a}, nil
}

// findAlive finds the places at which some value may stand: the least solution, so that a schema which only leads back
// to itself has none.
func (s *Schema) findAlive() {
	s.alive = make([]bool, len(s.values))
	parents := make([][]Node, len(s.values))
	var queue []Node
	for n, v := range s.values {
		if v == nil {
			continue
		}
		v.children(func(child Node) {
			if p := parents[child]; len(p) == 0 || p[len(p)-1] != Node(n) {
				parents[child] = append(p, Node(n))
			}
		})
		queue = append(queue, Node(n))
	}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		if s.alive[n] || !s.check(s.values[n]) {
			continue
		}
		s.alive[n] = true
		queue = append(queue, parents[n]...)
	}
	for _, v := range s.values {
		if v == nil {
			continue
		}
		var arrays []*Array
		for _, a := range v.Arrays {
			if a.prepare() {
				arrays = append(arrays, a)
			}
		}
		var objects []*Object
		for _, o := range v.Objects {
			if o.alive() {
				objects = append(objects, o)
			}
		}
		v.Arrays, v.Objects = arrays, objects
	}
}

func (s *Schema) check(v *Value) bool {
	if v.Null || v.True || v.False || v.Num != nil || len(v.Str) > 0 {
		return true
	}
	for _, a := range v.Arrays {
		if a.prepare() {
			return true
		}
	}
	for _, o := range v.Objects {
		if o.alive() {
			return true
		}
	}
	return false
}

// Item is the place of item i.
func (a *Array) Item(i int) Node {
	if i < len(a.Prefix) {
		return a.Prefix[i]
	}
	return a.Rest
}

// prepare finds how many items can exist, and reports whether the shape has an array at all.
func (a *Array) prepare() bool {
	a.live = map[int]bool{}
	a.room = a.Max
	for i, n := range a.Prefix {
		if !a.s.alive[n] {
			a.room = minBound(a.room, i)
			break
		}
	}
	if !a.s.alive[a.Rest] {
		a.room = minBound(a.room, len(a.Prefix))
	}
	return a.Live(0, 0)
}

// CanEnd reports whether an array may end after i items of which count fit the counted schema.
func (a *Array) CanEnd(i, count int) bool {
	return i >= a.Min && (a.Contains == nil || count >= a.Contains.Min)
}

// Live reports whether an end can be reached after i items of which count are counted.
func (a *Array) Live(i, count int) bool {
	if a.Contains == nil {
		return a.room < 0 || i <= a.room && a.Min <= a.room
	}
	i, count = a.cap(i, count)
	if a.CanEnd(i, count) {
		return true
	}
	key := i<<20 | count
	if live, ok := a.live[key]; ok {
		return live
	}
	a.live[key] = false // no progress is no way to the end
	with, without := a.Choices(i, count)
	live := with != Nothing && a.Live(i+1, count+1) || without != Nothing && a.Live(i+1, count)
	a.live[key] = live
	return live
}

// cap joins states that have the same future.
func (a *Array) cap(i, count int) (int, int) {
	if a.Max < 0 {
		i = min(i, max(len(a.Prefix), a.Min, len(a.Contains.With)-1))
	}
	if a.Contains.Max < 0 {
		count = min(count, a.Contains.Min)
	}
	return i, count
}

// Choices returns the places that item i may have: counted, and not; Nothing where that cannot be.
func (a *Array) Choices(i, count int) (with, without Node) {
	if a.room >= 0 && i >= a.room {
		return Nothing, Nothing
	}
	if a.Contains == nil {
		return Nothing, a.Item(i)
	}
	k := min(i, len(a.Contains.With)-1)
	with, without = a.Contains.With[k], a.Contains.Without[k]
	if !a.s.alive[with] || a.Contains.Max >= 0 && count >= a.Contains.Max {
		with = Nothing
	}
	if !a.s.alive[without] {
		without = Nothing
	}
	return with, without
}

// Next is the state after one more item.
func (a *Array) Next(i, count int, counted bool) (int, int) {
	if counted {
		count++
	}
	i++
	if a.Contains != nil {
		return a.cap(i, count)
	}
	if a.room < 0 {
		i = min(i, max(len(a.Prefix), a.Min))
	}
	return i, count
}

// alive reports whether the shape has an object.
func (o *Object) alive() bool {
	required, available := 0, int64(0)
	for i, n := range o.Places {
		switch {
		case o.s.alive[n]:
			available++
			if o.Required[i] {
				required++
			}
		case o.Required[i]:
			return false
		}
	}
	for w := range o.Wanted {
		met := false
		for _, k := range o.Classes {
			met = met || o.s.alive[k.Claims[1<<w]]
		}
		if !met {
			return false
		}
	}
	if o.Max >= 0 && required+min(o.Wanted, 1) > o.Max {
		return false
	}
	return available+o.Extras() >= int64(o.Min)
}

// Extras is how many keys there are that are no names.
func (o *Object) Extras() int64 {
	n := int64(0)
	for _, k := range o.Classes {
		if o.s.alive[k.Place] {
			n += int64(k.Count)
		}
	}
	return n
}
