package schema

import (
	"errors"
	"math/big"
	"slices"
	"sort"
	"strings"

	"github.com/baleenrun/baleen/internal/grammar/regular"
)

// compiler turns schemas into values. A literal's value is that of one schema or its negation, alone.
type compiler struct {
	doc      *document
	literals [][]literal // node → its literals, sorted
	values   []*Value    // node → value, nil until asked for
	nodes    map[string]Node
	conjs    map[[2]Node]Node
	alone    map[literal]*Value
	open     map[literal]bool
	busy     map[Node]bool
	depth    int
	work     int

	any                *regular.DFA
	ands, ors, minuses map[pair]*regular.DFA
	patterns           map[string]*regular.DFA
	notes              []string
	noted              map[string]bool
}

func newCompiler(doc *document) *compiler {
	c := &compiler{
		doc: doc, nodes: map[string]Node{}, conjs: map[[2]Node]Node{}, alone: map[literal]*Value{},
		open: map[literal]bool{}, busy: map[Node]bool{}, any: regular.Any(),
		ands: map[pair]*regular.DFA{}, ors: map[pair]*regular.DFA{}, minuses: map[pair]*regular.DFA{},
		patterns: map[string]*regular.DFA{}, noted: map[string]bool{},
	}
	all := everything()
	c.literals = [][]literal{nil, nil}
	c.values = []*Value{&all, {}}
	return c
}

// value is what may stand at a place; nil without an error while it is being worked out further up.
func (c *compiler) value(n Node) (*Value, error) {
	if v := c.values[n]; v != nil {
		return v, nil
	}
	if c.busy[n] {
		return nil, nil
	}
	if len(c.literals) > maxNodes {
		return nil, &Error{Keyword: "allOf", Reason: "the schema has more combinations of schemas than are kept apart"}
	}
	c.busy[n] = true
	c.depth++
	defer func() { delete(c.busy, n); c.depth-- }()
	v := everything()
	for _, l := range c.literals[n] {
		w, err := c.literal(l)
		if err != nil {
			return nil, err
		}
		if v, err = c.and(v, *w); err != nil {
			return nil, c.explain(l, "allOf", err)
		}
	}
	c.values[n] = &v
	return &v, nil
}

// explain gives an error without a place that of a literal's schema.
func (c *compiler) explain(l literal, keyword string, err error) error {
	if e := (*Error)(nil); errors.As(err, &e) {
		return err
	}
	if l&1 == 1 {
		keyword = "not"
	}
	return c.doc.subs[l>>1].fail(keyword, "%v", err)
}

func (c *compiler) literal(l literal) (*Value, error) {
	if v, ok := c.alone[l]; ok {
		return v, nil
	}
	s := c.doc.subs[l>>1]
	if c.open[l] {
		return nil, s.invalid("$ref", "it leads back to itself without reading any of the value")
	}
	c.open[l] = true
	defer delete(c.open, l)
	e := &expansion{compiler: c, sub: s, number: l >> 1}
	var v Value
	var err error
	switch {
	case s.v.kind == boolean:
		if s.v.truth != (l&1 == 1) {
			v = everything()
		}
	case l&1 == 0:
		v, err = e.positive()
	default:
		v, err = e.negative()
	}
	if err != nil {
		return nil, c.explain(l, "", err)
	}
	c.alone[l] = &v
	return &v, nil
}

// expansion reads one schema's keywords.
type expansion struct {
	*compiler
	*sub
	number int32
}

// A constraint is what one keyword, or several that belong together, say: which values fit, and which do not.
type constraint struct {
	keyword string
	fits    func() (Value, error)
	not     func() (Value, error)
}

func (e *expansion) positive() (Value, error) {
	list, err := e.constraints()
	v := everything()
	if err != nil {
		return v, err
	}
	for _, k := range list {
		w, err := k.fits()
		if err == nil {
			v, err = e.and(v, w)
		}
		if err != nil {
			return v, e.blame(k.keyword, err)
		}
	}
	return v, nil
}

func (e *expansion) negative() (Value, error) {
	list, err := e.constraints()
	var v Value
	if err != nil {
		return v, err
	}
	for _, k := range list {
		w, err := k.not()
		if err == nil {
			v, err = e.or(v, w)
		}
		if err != nil {
			return v, e.blame(k.keyword, err)
		}
	}
	return v, nil
}

func (e *expansion) blame(keyword string, err error) error {
	if x := (*Error)(nil); errors.As(err, &x) {
		return err
	}
	return e.fail(keyword, "%v", err)
}

// only is everything but some types, and those as given: keywords on strings say nothing about other types.
func onlyNum(n *Num) Value  { v := everything(); v.Num = n; return v }
func onlyStr(s []Str) Value { v := everything(); v.Str = s; return v }
func onlyArr(s ...*arrayShape) Value {
	v := everything()
	v.arr = slices.DeleteFunc(s, func(s *arrayShape) bool { return s == nil })
	return v
}

func onlyObj(s ...*objectShape) Value {
	v := everything()
	v.obj = slices.DeleteFunc(s, func(s *objectShape) bool { return s == nil })
	return v
}

func (e *expansion) child(keyword string, v *value) (int32, error) {
	return e.doc.sub(e.sub, v, e.path+"/"+escapePointer(keyword))
}

func (e *expansion) children(keyword string, v *value) ([]int32, error) {
	if v.kind != array || len(v.items) == 0 {
		return nil, e.invalid(keyword, "must be an array of schemas")
	}
	var out []int32
	for i, x := range v.items {
		n, err := e.doc.sub(e.sub, x, e.path+"/"+keyword+"/"+itoa(i))
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

func (e *expansion) fits(n int32) (Value, error) {
	v, err := e.literal(n << 1)
	if err != nil {
		return Value{}, err
	}
	return *v, nil
}

func (e *expansion) fails(n int32) (Value, error) {
	v, err := e.literal(n<<1 | 1)
	if err != nil {
		return Value{}, err
	}
	return *v, nil
}

// place is the node of a schema, or of its negation.
func (e *expansion) place(n int32) Node    { return e.node([]literal{n << 1}) }
func (e *expansion) notPlace(n int32) Node { return e.node([]literal{n<<1 | 1}) }

// constraints reads all keywords that assert something.
func (e *expansion) constraints() ([]constraint, error) {
	if e.v.get("$ref") != nil && !e.since(d2019) {
		k, err := e.reference("$ref")
		return []constraint{k}, err
	}
	var list []constraint
	read := func(f func() ([]constraint, error)) func() error {
		return func() error {
			k, err := f()
			list = append(list, k...)
			return err
		}
	}
	for _, f := range []func() error{
		read(e.types), read(e.enum), read(e.numbers), read(e.strings), read(e.arrays), read(e.objects),
		read(e.applicators), read(e.refused),
	} {
		if err := f(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (e *expansion) reference(keyword string) (constraint, error) {
	ref := e.v.get(keyword)
	if ref.kind != text {
		return constraint{}, e.invalid(keyword, "must be a string")
	}
	n, err := e.doc.resolve(e.sub, keyword, ref.str)
	if err != nil {
		return constraint{}, err
	}
	return constraint{
		keyword,
		func() (Value, error) { return e.fits(n) },
		func() (Value, error) { return e.fails(n) },
	}, nil
}

// refused names keywords that would need annotations of other schemas, unless they say nothing.
func (e *expansion) refused() ([]constraint, error) {
	if e.v.get("$recursiveRef") != nil && e.since(d2019) {
		return nil, e.fail("$recursiveRef", "which schema it means depends on where reading began; use $ref")
	}
	if x := e.v.get("$dynamicRef"); x != nil && e.since(d2020) {
		if x.kind == text && len(x.str) > 1 && x.str[0] == '#' && e.doc.dynamic[x.str[1:]] == 1 {
			k, err := e.reference("$dynamicRef") // there is only one schema that it can mean
			return []constraint{k}, err
		}
		return nil, e.fail("$dynamicRef", "which schema it means depends on where reading began; use $ref")
	}
	for _, k := range []string{"unevaluatedProperties", "unevaluatedItems"} {
		x := e.v.get(k)
		if x == nil || !e.since(d2019) || x.kind == boolean && x.truth || x.kind == object && len(x.keys) == 0 {
			continue
		}
		return e.unevaluated(k, x)
	}
	return nil, nil
}

// unevaluated handles the case without in-place applicators beside it, where it means additionalProperties or items.
func (e *expansion) unevaluated(keyword string, x *value) ([]constraint, error) {
	for _, k := range strings.Fields("allOf anyOf oneOf not if $ref $dynamicRef dependentSchemas contains") {
		if e.v.get(k) != nil {
			return nil, e.fail(
				keyword,
				"it depends on what %q beside it evaluates; use additionalProperties or items",
				k,
			)
		}
	}
	n, err := e.child(keyword, x)
	if err != nil {
		return nil, err
	}
	if keyword == "unevaluatedItems" {
		if e.v.get("items") != nil {
			return nil, nil
		}
		from := 0
		if p := e.v.get("prefixItems"); p != nil {
			from = len(p.items)
		}
		return []constraint{e.items(keyword, from, n)}, nil
	}
	if e.v.get("additionalProperties") != nil {
		return nil, nil
	}
	comp, err := e.component(n)
	if err != nil {
		return nil, err
	}
	return []constraint{e.properties(comp, keyword)}, nil
}

var typeNames = []string{"null", "boolean", "number", "string", "array", "object", "integer"}

func (e *expansion) types() ([]constraint, error) {
	t := e.v.get("type")
	if t == nil {
		return nil, nil
	}
	names := []*value{t}
	if t.kind == array {
		names = t.items
	}
	has := [7]bool{}
	for _, n := range names {
		i := slices.Index(typeNames, n.str)
		if n.kind != text || i < 0 {
			return nil, e.invalid("type", "%q is no type of JSON Schema", n.str)
		}
		has[i] = true
	}
	var v Value
	all := everything()
	v.Null = has[null]
	v.True, v.False = has[boolean], has[boolean]
	switch {
	case has[number]:
		v.Num = all.Num
	case has[6]:
		v.Num = &Num{D: regular.Integers, Integer: true}
	}
	if has[text] {
		v.Str = all.Str
	}
	if has[array] {
		v.arr = all.arr
	}
	if has[object] {
		v.obj = all.obj
	}
	return []constraint{{
		"type",
		func() (Value, error) { return v, nil },
		func() (Value, error) {
			w := everything()
			w.Null, w.True, w.False = !v.Null, !v.True, !v.False
			if v.Str != nil {
				w.Str = nil
			}
			if v.arr != nil {
				w.arr = nil
			}
			if v.obj != nil {
				w.obj = nil
			}
			var err error
			w.Num, err = e.notNum(v.Num)
			return w, err
		},
	}}, nil
}

func (e *expansion) enum() ([]constraint, error) {
	var list []constraint
	if x := e.v.get("enum"); x != nil {
		if x.kind != array || len(x.items) == 0 {
			return nil, e.invalid("enum", "must be an array with a value")
		}
		list = append(list, e.values("enum", x.items))
	}
	if x := e.v.get("const"); x != nil && e.since(draft6) {
		list = append(list, e.values("const", []*value{x}))
	}
	return list, nil
}

func (e *expansion) values(keyword string, values []*value) constraint {
	build := func() (Value, *Num, error) {
		var v Value
		var nums []regular.Decimal
		var strs []string
		integer := true
		for _, x := range values {
			switch x.kind {
			case null:
				v.Null = true
			case boolean:
				v.True, v.False = v.True || x.truth, v.False || !x.truth
			case number:
				d, err := regular.ParseDecimal(x.str)
				if err != nil {
					return v, nil, err
				}
				integer = integer && d.Frac == ""
				nums = append(nums, d)
			case text:
				strs = append(strs, x.str)
			case array:
				s := &arrayShape{min: len(x.items), max: len(x.items), rest: Nothing}
				for _, y := range x.items {
					s.prefix = append(s.prefix, e.constant(y))
				}
				v.arr = append(v.arr, s)
			case object:
				comp := &component{order: x.keys, names: map[string]Node{}, additional: Nothing}
				for i, k := range x.keys {
					comp.names[k] = e.constant(x.items[i])
				}
				s := &objectShape{comps: []*component{comp}, required: slices.Clone(x.keys), max: -1, at: e.sub}
				sort.Strings(s.required)
				v.obj = append(v.obj, s)
			}
		}
		if len(nums) > 0 {
			d, err := regular.Equals(nums)
			if err != nil {
				return v, nil, err
			}
			v.Num = &Num{D: d, Integer: integer}
		}
		if len(strs) > 0 {
			d, err := regular.Literals(strs, true)
			if err != nil {
				return v, nil, err
			}
			v.Str = []Str{{D: d, Hi: -1}}
		}
		return v, v.Num, nil
	}
	return constraint{
		keyword,
		func() (Value, error) { v, _, err := build(); return v, err },
		func() (Value, error) {
			v, _, err := build()
			if err != nil {
				return v, err
			}
			w := everything()
			w.Null, w.True, w.False = !v.Null, !v.True, !v.False
			if w.Num, err = e.notNum(v.Num); err != nil {
				return w, err
			}
			if w.Str, err = e.notStr(v.Str); err != nil {
				return w, err
			}
			for _, x := range values {
				var one Value
				switch x.kind {
				case array:
					one, err = e.notConstantArray(x)
				case object:
					one, err = e.notConstantObject(x)
				default:
					continue
				}
				if err != nil {
					return w, err
				}
				if w, err = e.and(w, one); err != nil {
					return w, err
				}
			}
			return w, nil
		},
	}
}

// constant is the place of one value.
func (e *expansion) constant(x *value) Node {
	return e.place(e.constantSub(x))
}

func (e *expansion) constantSub(x *value) int32 {
	wrapped := e.wrapped(x)
	if n, ok := e.doc.number[wrapped]; ok {
		return n
	}
	return e.doc.made(e.sub, wrapped)
}

// wrapped is {"const": x}, the same for the same x.
func (e *expansion) wrapped(x *value) *value {
	if w, ok := e.doc.constants()[x]; ok {
		return w
	}
	w := makeObject("const", x)
	e.doc.constants()[x] = w
	return w
}

func (e *expansion) notConstantArray(x *value) (Value, error) {
	n := len(x.items)
	shapes := []*arrayShape{{min: n + 1, max: -1}}
	if n > 0 {
		shapes = append(shapes, &arrayShape{max: n - 1})
	}
	for i, y := range x.items {
		s := &arrayShape{min: n, max: n, prefix: make([]Node, i+1)}
		s.prefix[i] = e.notPlace(e.constantSub(y))
		shapes = append(shapes, e.checkArray(s))
	}
	return onlyArr(shapes...), nil
}

func (e *expansion) notConstantObject(x *value) (Value, error) {
	var shapes []*objectShape
	for i, k := range x.keys {
		absent := &component{names: map[string]Node{k: Nothing}}
		differs := &component{names: map[string]Node{k: e.notPlace(e.constantSub(x.items[i]))}}
		shapes = append(shapes,
			&objectShape{comps: []*component{absent}, max: -1, at: e.sub},
			&objectShape{comps: []*component{differs}, required: []string{k}, max: -1, at: e.sub})
	}
	shapes = append(shapes, &objectShape{max: -1, exist: []existence{{not: x.keys}}, at: e.sub})
	return onlyObj(shapes...), nil
}

// maxBound is the first bound that is too large to be counted to.
const maxBound = 1 << 30

// bound reads a keyword that must be a whole number from 0.
func (e *expansion) bound(keyword string) (int, bool, error) {
	x := e.v.get(keyword)
	if x == nil {
		return 0, false, nil
	}
	if x.kind == number {
		if d, err := regular.ParseDecimal(x.str); err == nil && !d.Negative && d.Frac == "" {
			n, ok := new(big.Int).SetString("0"+d.Int, 10)
			if ok && n.IsInt64() && n.Int64() < maxBound {
				return int(n.Int64()), true, nil
			}
			return 0, false, e.fail(keyword, "bounds from %d on are not counted", maxBound)
		}
	}
	return 0, false, e.invalid(keyword, "must be a whole number from 0")
}

func itoa(i int) string { return big.NewInt(int64(i)).String() }

func (e *expansion) numbers() ([]constraint, error) {
	var list []constraint
	add := func(keyword string, build func() (*regular.DFA, error)) {
		list = append(list, constraint{
			keyword,
			func() (Value, error) {
				d, err := build()
				if err != nil || d.Empty() {
					return onlyNum(nil), err
				}
				return onlyNum(&Num{D: d}), nil
			},
			func() (Value, error) {
				d, err := build()
				if err != nil {
					return Value{}, err
				}
				n, err := e.notNum(&Num{D: d})
				return Value{Num: n}, err
			},
		})
	}
	decimal := func(keyword string) (regular.Decimal, bool, error) {
		x := e.v.get(keyword)
		flag := x != nil && x.kind == boolean && e.before(draft6) // draft-04 has exclusiveMinimum beside minimum
		if x == nil || flag && strings.HasPrefix(keyword, "exclusive") {
			return regular.Decimal{}, false, nil
		}
		if x.kind != number {
			return regular.Decimal{}, false, e.invalid(keyword, "must be a number")
		}
		d, err := regular.ParseDecimal(x.str)
		if err != nil {
			return d, false, e.fail(keyword, "%v", err)
		}
		return d, true, nil
	}
	compare := func(keyword string, d regular.Decimal, less, equal, greater bool) {
		want := [4]bool{regular.Less: less, regular.Equal: equal, regular.Greater: greater}
		add(keyword, func() (*regular.DFA, error) {
			k := "compare " + keyword + " " + d.String()
			if equal {
				k += "="
			}
			return e.cached(k, func() (*regular.DFA, error) {
				x, err := regular.Compare(d)
				if err != nil {
					return nil, err
				}
				return regular.Select(x, func(l int32) bool { return want[l] }), nil
			})
		})
	}
	exclusive := func(keyword string) bool {
		x := e.v.get(keyword)
		return x != nil && x.kind == boolean && x.truth && e.before(draft6)
	}
	for _, k := range []string{"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"} {
		d, ok, err := decimal(k)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		switch k {
		case "minimum":
			compare(k, d, false, !exclusive("exclusiveMinimum"), true)
		case "exclusiveMinimum":
			compare(k, d, false, false, true)
		case "maximum":
			compare(k, d, true, !exclusive("exclusiveMaximum"), false)
		case "exclusiveMaximum":
			compare(k, d, true, false, false)
		}
	}
	d, ok, err := decimal("multipleOf")
	if err != nil {
		return nil, err
	}
	if ok {
		if d.Negative || d.Int == "" && d.Frac == "" {
			return nil, e.invalid("multipleOf", "must be above 0")
		}
		add("multipleOf", func() (*regular.DFA, error) {
			return e.cached("multiple "+d.String(), func() (*regular.DFA, error) { return regular.MultipleOf(d) })
		})
	}
	return list, nil
}

func (c *compiler) cached(key string, build func() (*regular.DFA, error)) (*regular.DFA, error) {
	if d, ok := c.patterns[key]; ok {
		return d, nil
	}
	d, err := build()
	if err == nil {
		c.patterns[key] = d
	}
	return d, err
}

func (e *expansion) pattern(keyword, p string) (*regular.DFA, error) {
	d, err := e.cached("pattern "+p, func() (*regular.DFA, error) { return regular.Pattern(p, false) })
	if err != nil {
		return nil, e.fail(keyword, "%v", err)
	}
	return d, nil
}

func (e *expansion) strings() ([]constraint, error) {
	var list []constraint
	add := func(keyword string, s Str) {
		list = append(list, constraint{
			keyword,
			func() (Value, error) {
				if empty, err := s.empty(); err != nil || empty {
					return onlyStr(nil), err
				}
				return onlyStr([]Str{s}), nil
			},
			func() (Value, error) {
				n, err := e.notStr([]Str{s})
				return Value{Str: n}, err
			},
		})
	}
	lo, hasLo, err := e.bound("minLength")
	if err != nil {
		return nil, err
	}
	hi, hasHi, err := e.bound("maxLength")
	if err != nil {
		return nil, err
	}
	if hasLo {
		add("minLength", Str{Lo: lo, Hi: -1})
	}
	if hasHi {
		add("maxLength", Str{Hi: hi})
	}
	if x := e.v.get("pattern"); x != nil {
		if x.kind != text {
			return nil, e.invalid("pattern", "must be a string")
		}
		d, err := e.pattern("pattern", x.str)
		if err != nil {
			return nil, err
		}
		add("pattern", Str{D: d, Hi: -1})
	}
	if x := e.v.get("format"); x != nil && x.kind == text {
		d, most, known, err := regular.Format(x.str)
		switch {
		case err != nil:
			return nil, e.fail("format", "%v", err)
		case !known:
			note := "format " + x.str + " at " + e.path + ": not one that JSON Schema defines, so it asserts nothing"
			if !e.noted[note] {
				e.noted[note] = true
				e.notes = append(e.notes, note)
			}
		default:
			add("format", Str{D: d, Hi: most})
		}
	}
	return list, nil
}
