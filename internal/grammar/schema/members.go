package schema

import (
	"slices"
	"sort"

	"github.com/baleenrun/baleen/internal/grammar/regular"
)

// items is a constraint that the items from a place on fit a schema.
func (e *expansion) items(keyword string, from int, n int32) constraint {
	return constraint{
		keyword,
		func() (Value, error) {
			return onlyArr(e.checkArray(&arrayShape{prefix: make([]Node, from), rest: e.place(n), max: -1})), nil
		},
		func() (Value, error) {
			s := &arrayShape{max: -1, contains: []contain{{what: n<<1 | 1, from: from, min: 1, max: -1, at: e.sub}}}
			return Value{arr: []*arrayShape{s}}, nil
		},
	}
}

// prefix is a constraint that item i fits the i-th schema, where there is one.
func (e *expansion) prefix(keyword string, list []int32) constraint {
	return constraint{
		keyword,
		func() (Value, error) {
			s := &arrayShape{max: -1}
			for _, n := range list {
				s.prefix = append(s.prefix, e.place(n))
			}
			return onlyArr(e.checkArray(s)), nil
		},
		func() (Value, error) {
			var v Value
			for i, n := range list {
				s := &arrayShape{min: i + 1, max: -1, prefix: make([]Node, i+1)}
				s.prefix[i] = e.notPlace(n)
				if s = e.checkArray(s); s != nil {
					v.arr = append(v.arr, s)
				}
			}
			return v, nil
		},
	}
}

func (e *expansion) count(keyword string, lo, hi int) constraint {
	return constraint{
		keyword,
		func() (Value, error) { return onlyArr(&arrayShape{min: lo, max: hi}), nil },
		func() (Value, error) {
			var v Value
			if lo > 0 {
				v.arr = append(v.arr, &arrayShape{max: lo - 1})
			}
			if hi >= 0 {
				v.arr = append(v.arr, &arrayShape{min: hi + 1, max: -1})
			}
			return v, nil
		},
	}
}

func (e *expansion) arrays() ([]constraint, error) {
	var list []constraint
	from := 0
	items := e.v.get("items")
	tuple, tupleName := e.v.get("prefixItems"), "prefixItems"
	if !e.since(d2020) {
		tuple = nil
	}
	rest, restName := items, "items"
	if items != nil && items.kind == array && e.before(d2020) {
		tuple, tupleName = items, "items"
		rest, restName = e.v.get("additionalItems"), "additionalItems"
	}
	if tuple != nil {
		if len(tuple.items) > 0 {
			ns, err := e.children(tupleName, tuple)
			if err != nil {
				return nil, err
			}
			list = append(list, e.prefix(tupleName, ns))
		}
		from = len(tuple.items)
	}
	if rest != nil {
		n, err := e.child(restName, rest)
		if err != nil {
			return nil, err
		}
		list = append(list, e.items(restName, from, n))
	}
	for _, k := range []string{"minItems", "maxItems"} {
		n, ok, err := e.bound(k)
		if err != nil {
			return nil, err
		}
		if ok && k == "minItems" {
			list = append(list, e.count(k, n, -1))
		} else if ok {
			list = append(list, e.count(k, 0, n))
		}
	}
	if x := e.v.get("uniqueItems"); x != nil {
		if x.kind != boolean {
			return nil, e.invalid("uniqueItems", "must be true or false")
		}
		if x.truth {
			list = append(list, constraint{
				"uniqueItems",
				func() (Value, error) { return onlyArr(&arrayShape{max: -1, unique: true, uniqueAt: e.sub}), nil },
				func() (Value, error) {
					return Value{}, e.fail("uniqueItems", "its negation wants two equal items somewhere")
				},
			})
		}
	}
	if x := e.v.get("contains"); x != nil && e.since(draft6) {
		n, err := e.child("contains", x)
		if err != nil {
			return nil, err
		}
		lo, hi := 1, -1
		if e.since(d2019) {
			if m, ok, err := e.bound("minContains"); err != nil {
				return nil, err
			} else if ok {
				lo = m
			}
			if m, ok, err := e.bound("maxContains"); err != nil {
				return nil, err
			} else if ok {
				hi = m
			}
		}
		shape := func(lo, hi int) *arrayShape {
			if hi >= 0 && lo > hi {
				return nil
			}
			return e.checkArray(&arrayShape{max: -1, contains: []contain{{what: n << 1, min: lo, max: hi, at: e.sub}}})
		}
		list = append(list, constraint{
			"contains",
			func() (Value, error) {
				if lo == 0 && hi < 0 {
					return everything(), nil
				}
				return onlyArr(shape(lo, hi)), nil
			},
			func() (Value, error) {
				var v Value
				if lo > 0 {
					v.arr = append(v.arr, shape(0, lo-1))
				}
				if hi >= 0 {
					v.arr = append(v.arr, shape(hi+1, -1))
				}
				return v, nil
			},
		})
	}
	return list, nil
}

// component reads properties, patternProperties and additionalProperties; additional >= 0 is a schema for the latter.
func (e *expansion) component(additional int32) (*component, error) {
	comp := &component{names: map[string]Node{}}
	if p := e.v.get("properties"); p != nil {
		if p.kind != object {
			return nil, e.invalid("properties", "must be an object")
		}
		for i, k := range p.keys {
			n, err := e.doc.sub(e.sub, p.items[i], e.path+"/properties/"+escapePointer(k))
			if err != nil {
				return nil, err
			}
			comp.order = append(comp.order, k)
			comp.names[k] = e.place(n)
		}
	}
	if p := e.v.get("patternProperties"); p != nil {
		if p.kind != object {
			return nil, e.invalid("patternProperties", "must be an object")
		}
		for i, k := range p.keys {
			n, err := e.doc.sub(e.sub, p.items[i], e.path+"/patternProperties/"+escapePointer(k))
			if err != nil {
				return nil, err
			}
			d, err := e.pattern("patternProperties", k)
			if err != nil {
				return nil, err
			}
			comp.patterns = append(comp.patterns, patternNode{d, e.place(n)})
		}
	}
	if additional >= 0 {
		comp.additional = e.place(additional)
	}
	return comp, nil
}

// properties is the constraint of a component: its negation wants one key whose value does not fit.
func (e *expansion) properties(comp *component, keyword string) constraint {
	return constraint{
		keyword,
		func() (Value, error) {
			return onlyObj(&objectShape{comps: []*component{comp}, max: -1, at: e.sub}), nil
		},
		func() (Value, error) { return e.notProperties(comp) },
	}
}

func (e *expansion) negate(n Node) Node {
	ls := e.literals[n]
	switch {
	case n == Anything:
		return Nothing
	case n == Nothing:
		return Anything
	case len(ls) == 1:
		return e.node([]literal{ls[0] ^ 1})
	}
	panic("schema: a component's place is one schema") // components are negated as they are read
}

func (e *expansion) notProperties(comp *component) (Value, error) {
	var v Value
	for _, k := range comp.order {
		not := e.negate(comp.names[k])
		if not == Nothing {
			continue
		}
		wrong := &component{names: map[string]Node{k: not}}
		if s := e.checkObject(&objectShape{comps: []*component{wrong}, required: []string{k}, max: -1, at: e.sub}); s != nil {
			v.obj = append(v.obj, s)
		}
	}
	var covered []*regular.DFA
	for _, p := range comp.patterns {
		covered = append(covered, p.d)
		if not := e.negate(p.node); not != Nothing {
			v.obj = append(v.obj, &objectShape{max: -1, exist: []existence{{key: p.d, node: not}}, at: e.sub})
		}
	}
	if not := e.negate(comp.additional); not != Nothing {
		x := existence{node: not, not: comp.order}
		if len(covered) > 0 {
			d, err := regular.Union(covered)
			if err != nil {
				return v, err
			}
			if x.key, err = e.dfaMinus(e.any, d); err != nil {
				return v, err
			}
		}
		v.obj = append(v.obj, &objectShape{max: -1, exist: []existence{x}, at: e.sub})
	}
	return v, nil
}

func (e *expansion) objects() ([]constraint, error) {
	var list []constraint
	if e.v.get("properties") != nil || e.v.get("patternProperties") != nil || e.v.get("additionalProperties") != nil {
		additional := int32(-1)
		if x := e.v.get("additionalProperties"); x != nil {
			n, err := e.child("additionalProperties", x)
			if err != nil {
				return nil, err
			}
			additional = n
		}
		comp, err := e.component(additional)
		if err != nil {
			return nil, err
		}
		list = append(list, e.properties(comp, "properties"))
	}
	if x := e.v.get("required"); x != nil {
		names, err := e.names("required", x)
		if err != nil {
			return nil, err
		}
		list = append(list, constraint{
			"required",
			func() (Value, error) {
				return onlyObj(&objectShape{required: names, max: -1, at: e.sub}), nil
			},
			func() (Value, error) {
				var v Value
				for _, k := range names {
					v.obj = append(v.obj, e.without(k))
				}
				return v, nil
			},
		})
	}
	for _, k := range []string{"minProperties", "maxProperties"} {
		n, ok, err := e.bound(k)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		fits, not := &objectShape{min: n, max: -1, at: e.sub}, &objectShape{max: n - 1, at: e.sub}
		if k == "maxProperties" {
			fits, not = &objectShape{max: n, at: e.sub}, &objectShape{min: n + 1, max: -1, at: e.sub}
		}
		list = append(list, constraint{
			k,
			func() (Value, error) { return onlyObj(fits), nil },
			func() (Value, error) {
				if k == "minProperties" && n == 0 {
					return Value{}, nil
				}
				return Value{obj: []*objectShape{not}}, nil
			},
		})
	}
	if x := e.v.get("propertyNames"); x != nil && e.since(draft6) {
		k, err := e.propertyNames(x)
		if err != nil {
			return nil, err
		}
		list = append(list, k)
	}
	more, err := e.dependencies()
	return append(list, more...), err
}

// without is the shape of objects that lack a key.
func (e *expansion) without(k string) *objectShape {
	return &objectShape{comps: []*component{{names: map[string]Node{k: Nothing}}}, max: -1, at: e.sub}
}

func (e *expansion) names(keyword string, x *value) ([]string, error) {
	if x.kind != array {
		return nil, e.invalid(keyword, "must be an array of names")
	}
	var names []string
	for _, y := range x.items {
		if y.kind != text {
			return nil, e.invalid(keyword, "must be an array of names")
		}
		names = append(names, y.str)
	}
	sort.Strings(names)
	return slices.Compact(names), nil
}

func (e *expansion) propertyNames(x *value) (constraint, error) {
	n, err := e.child("propertyNames", x)
	if err != nil {
		return constraint{}, err
	}
	language := func() (*regular.DFA, error) {
		v, err := e.fits(n)
		if err != nil {
			return nil, err
		}
		list := []*regular.DFA{}
		for _, s := range v.Str {
			d := s.D
			if d == nil {
				d = e.any
			}
			if s.Lo > 0 || s.Hi >= 0 {
				l, err := regular.Length(s.Lo, s.Hi)
				if err != nil {
					return nil, err
				}
				if d, err = e.dfaAnd(d, l); err != nil {
					return nil, err
				}
			}
			list = append(list, d)
		}
		return regular.Union(list)
	}
	return constraint{
		"propertyNames",
		func() (Value, error) {
			d, err := language()
			if err != nil {
				return Value{}, err
			}
			return onlyObj(&objectShape{names: []*regular.DFA{d}, max: -1, at: e.sub}), nil
		},
		func() (Value, error) {
			d, err := language()
			if err != nil {
				return Value{}, err
			}
			if d, err = e.dfaMinus(e.any, d); err != nil || d.Empty() {
				return Value{}, err
			}
			return Value{obj: []*objectShape{{max: -1, exist: []existence{{key: d}}, at: e.sub}}}, nil
		},
	}, nil
}

// dependencies reads what a key's presence asks for.
func (e *expansion) dependencies() ([]constraint, error) {
	var list []constraint
	for _, keyword := range []string{"dependentRequired", "dependentSchemas", "dependencies"} {
		x := e.v.get(keyword)
		if x == nil || keyword != "dependencies" && !e.since(d2019) { // the old name counts in new drafts, too
			continue
		}
		if x.kind != object {
			return nil, e.invalid(keyword, "must be an object")
		}
		for i, k := range x.keys {
			y := x.items[i]
			present := Value{obj: []*objectShape{{required: []string{k}, max: -1, at: e.sub}}}
			absent := onlyObj(e.without(k))
			if y.kind == array || keyword == "dependentRequired" || y.kind == text && keyword == "dependencies" {
				if y.kind == text {
					y = &value{kind: array, items: []*value{y}}
				}
				names, err := e.names(keyword, y)
				if err != nil {
					return nil, err
				}
				all := append([]string{k}, names...)
				sort.Strings(all)
				all = slices.Compact(all)
				list = append(list, constraint{
					keyword,
					func() (Value, error) {
						v := absent
						v.obj = append(slices.Clone(v.obj), &objectShape{required: all, max: -1, at: e.sub})
						return v, nil
					},
					func() (Value, error) {
						var v Value
						for _, n := range names {
							if n == k {
								continue
							}
							s := e.andObject(present.obj[0], e.without(n))
							if s != nil {
								v.obj = append(v.obj, s)
							}
						}
						return v, nil
					},
				})
				continue
			}
			n, err := e.doc.sub(e.sub, y, e.path+"/"+keyword+"/"+escapePointer(k))
			if err != nil {
				return nil, err
			}
			list = append(list, constraint{
				keyword,
				func() (Value, error) {
					v, err := e.fits(n)
					if err == nil {
						v, err = e.and(v, present)
					}
					if err != nil {
						return v, err
					}
					return e.or(absent, v)
				},
				func() (Value, error) {
					v, err := e.fails(n)
					if err != nil {
						return v, err
					}
					return e.and(v, present)
				},
			})
		}
	}
	return list, nil
}

// applicators reads what applies other schemas to the same value.
func (e *expansion) applicators() ([]constraint, error) {
	var list []constraint
	if e.v.get("$ref") != nil {
		k, err := e.reference("$ref")
		if err != nil {
			return nil, err
		}
		list = append(list, k)
	}
	if x := e.v.get("allOf"); x != nil {
		ns, err := e.children("allOf", x)
		if err != nil {
			return nil, err
		}
		for _, n := range ns {
			list = append(list, constraint{
				"allOf",
				func() (Value, error) { return e.fits(n) },
				func() (Value, error) { return e.fails(n) },
			})
		}
	}
	if x := e.v.get("anyOf"); x != nil {
		ns, err := e.children("anyOf", x)
		if err != nil {
			return nil, err
		}
		list = append(list, constraint{
			"anyOf",
			func() (Value, error) { return e.fold(ns, e.or, e.fits) },
			func() (Value, error) { return e.fold(ns, e.and, e.fails) },
		})
	}
	if x := e.v.get("oneOf"); x != nil {
		ns, err := e.children("oneOf", x)
		if err != nil {
			return nil, err
		}
		list = append(list, constraint{
			"oneOf",
			func() (Value, error) { return e.exactlyOne(ns) },
			func() (Value, error) { return e.notExactlyOne(ns) },
		})
	}
	if x := e.v.get("not"); x != nil {
		n, err := e.child("not", x)
		if err != nil {
			return nil, err
		}
		list = append(list, constraint{
			"not",
			func() (Value, error) { return e.fails(n) },
			func() (Value, error) { return e.fits(n) },
		})
	}
	if x := e.v.get("if"); x != nil && e.since(draft7) {
		k, err := e.conditional(x)
		if err != nil {
			return nil, err
		}
		list = append(list, k...)
	}
	return list, nil
}

func (e *expansion) fold(ns []int32, op func(a, b Value) (Value, error), of func(int32) (Value, error)) (Value, error) {
	v, err := of(ns[0])
	for _, n := range ns[1:] {
		if err != nil {
			return v, err
		}
		var w Value
		if w, err = of(n); err == nil {
			v, err = op(v, w)
		}
	}
	return v, err
}

// exactlyOne is one schema's values without those of the others. Numbers and strings are sets, of which this can be
// computed; shapes of arrays and objects are intersected with the negations of those schemas that they could fit.
func (e *expansion) exactlyOne(ns []int32) (Value, error) {
	values := make([]Value, len(ns))
	for i, n := range ns {
		v, err := e.fits(n)
		if err != nil {
			return v, err
		}
		values[i] = v
	}
	var out Value
	for i, v := range values {
		for j, w := range values {
			if i == j {
				continue
			}
			overlap, err := e.and(v, w)
			if err != nil {
				return out, err
			}
			if overlap.none() {
				continue
			}
			not, err := e.fails(ns[j])
			if err != nil {
				return out, err
			}
			// What does not overlap needs no negation, whose alternatives would multiply.
			keep := v
			if len(overlap.arr) == 0 {
				keep.arr = nil
			}
			if len(overlap.obj) == 0 {
				keep.obj = nil
			}
			less, err := e.and(keep, not)
			if err != nil {
				return out, err
			}
			if len(overlap.arr) == 0 {
				less.arr = v.arr
			}
			if len(overlap.obj) == 0 {
				less.obj = v.obj
			}
			v = less
		}
		var err error
		if out, err = e.or(out, v); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (v *Value) none() bool {
	return !v.Null && !v.True && !v.False && v.Num == nil && len(v.Str) == 0 && len(v.arr) == 0 && len(v.obj) == 0
}

// notExactlyOne is the values of none and those of two.
func (e *expansion) notExactlyOne(ns []int32) (Value, error) {
	out, err := e.fold(ns, e.and, e.fails)
	if err != nil {
		return out, err
	}
	for i := range ns {
		for j := range i {
			a, err := e.fits(ns[i])
			if err != nil {
				return out, err
			}
			b, err := e.fits(ns[j])
			if err != nil {
				return out, err
			}
			if a, err = e.and(a, b); err != nil {
				return out, err
			}
			if out, err = e.or(out, a); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// conditional is (if and then) or (not if and else).
func (e *expansion) conditional(x *value) ([]constraint, error) {
	cond, err := e.child("if", x)
	if err != nil {
		return nil, err
	}
	then, otherwise := e.v.get("then"), e.v.get("else")
	if then == nil && otherwise == nil {
		return nil, nil
	}
	side := func(keyword string, x *value) (int32, error) {
		if x == nil {
			return -1, nil
		}
		return e.child(keyword, x)
	}
	yes, err := side("then", then)
	if err != nil {
		return nil, err
	}
	no, err := side("else", otherwise)
	if err != nil {
		return nil, err
	}
	type read = func(int32) (Value, error)
	both := func(cond read, c int32, of read, n int32, absent Value) (Value, error) {
		v, err := cond(c)
		if err != nil || n < 0 {
			if absent.none() {
				return Value{}, err
			}
			return v, err
		}
		w, err := of(n)
		if err != nil {
			return w, err
		}
		return e.and(v, w)
	}
	join := func(of func(int32) (Value, error), absent Value) (Value, error) {
		a, err := both(e.fits, cond, of, yes, absent)
		if err != nil {
			return a, err
		}
		b, err := both(e.fails, cond, of, no, absent)
		if err != nil {
			return b, err
		}
		return e.or(a, b)
	}
	return []constraint{{
		"if",
		func() (Value, error) { return join(e.fits, everything()) },
		func() (Value, error) { return join(e.fails, Value{}) },
	}}, nil
}
