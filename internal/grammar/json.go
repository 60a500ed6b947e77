package grammar

import (
	"math/bits"
	"slices"

	"github.com/baleenrun/baleen/internal/grammar/regular"
	"github.com/baleenrun/baleen/internal/grammar/schema"
)

// jsonMachine computes the moves of states inside JSON. One frame of the stack is one value that is being read.
type jsonMachine struct {
	schema  *schema.Schema
	options Options

	nums     []*regular.DFA
	numID    map[*regular.DFA]int32
	strs     []*stringSet
	strID    map[schema.Str]int32
	arrs     []*schema.Array
	arrID    map[*schema.Array]int32
	objs     []*objectKeys
	objID    map[*schema.Object]int32
	progress []progress
	progID   map[progress]int32
	allowed  map[int32][]uint64 // progress → labels of keys that may come next
	seen     seenSets
}

// stringSet is a set of strings, ready to be read.
type stringSet struct {
	schema.Str
	window *regular.Window // nil where D is
}

// objectKeys is a shape of objects, ready to be read.
type objectKeys struct {
	*schema.Object
	keys   *regular.DFA
	counts bool // the number of keys matters
	extras int64
	always []uint64 // labels that every state of keys can reach, once asked for
}

// progress is how far an object has been read.
type progress struct {
	obj   int32
	pos   int32  // in the schema's order: names before it cannot come any more
	seen  string // in any order: which names have come, as bits
	count int32  // keys so far, where their number matters, up to the minimum where there is no maximum
	want  uint32 // claims that are still to be met
	extra int32  // keys so far that are no names: a set of seen texts
}

func (j *jsonMachine) value(n int32) *schema.Value { return j.schema.Value(schema.Node(n)) }

func (j *jsonMachine) num(n *schema.Num) int32 {
	d := n.D
	if n.All {
		d = regular.Numbers
	}
	id, ok := j.numID[d]
	if !ok {
		id = int32(len(j.nums))
		j.nums = append(j.nums, d)
		if j.numID == nil {
			j.numID = map[*regular.DFA]int32{}
		}
		j.numID[d] = id
	}
	return id
}

func (j *jsonMachine) str(s schema.Str) int32 {
	id, ok := j.strID[s]
	if !ok {
		id = int32(len(j.strs))
		set := &stringSet{Str: s}
		if s.D != nil {
			set.window, _ = s.D.Window(s.Lo, s.Hi) // was computed when the schema was, with the same limits
		}
		j.strs = append(j.strs, set)
		if j.strID == nil {
			j.strID = map[schema.Str]int32{}
		}
		j.strID[s] = id
	}
	return id
}

func (j *jsonMachine) arr(a *schema.Array) int32 {
	id, ok := j.arrID[a]
	if !ok {
		id = int32(len(j.arrs))
		j.arrs = append(j.arrs, a)
		if j.arrID == nil {
			j.arrID = map[*schema.Array]int32{}
		}
		j.arrID[a] = id
	}
	return id
}

func (j *jsonMachine) obj(o *schema.Object) int32 {
	id, ok := j.objID[o]
	if !ok {
		id = int32(len(j.objs))
		j.objs = append(j.objs, &objectKeys{
			Object: o, keys: o.Keys(), counts: o.Min > 0 || o.Max >= 0, extras: o.Extras(),
		})
		if j.objID == nil {
			j.objID, j.progID, j.allowed = map[*schema.Object]int32{}, map[progress]int32{}, map[int32][]uint64{}
		}
		j.objID[o] = id
	}
	return id
}

func (j *jsonMachine) prog(p progress) int32 {
	id, ok := j.progID[p]
	if !ok {
		id = int32(len(j.progress))
		j.progress = append(j.progress, p)
		j.progID[p] = id
	}
	return id
}

var words = []string{"null", "true", "false"}

// valueMoves is how a value of node k.a begins.
func (j *jsonMachine) valueMoves(m *machine, k key, b byte) []move {
	v := j.value(k.a)
	word := func(i int32) []move {
		return []move{{to: m.intern(key{kind: kWord, a: i, b: 1})}}
	}
	var out []move
	switch b {
	case 'n':
		if v.Null {
			return word(0)
		}
	case 't':
		if v.True {
			return word(1)
		}
	case 'f':
		if v.False {
			return word(2)
		}
	case '"':
		for _, s := range v.Str {
			out = append(out, move{to: m.intern(key{kind: kStr, a: j.str(s), c: int32(s.Lo), d: int32(s.Hi)})})
		}
	case '[':
		for _, a := range v.Arrays {
			out = append(out, move{to: m.intern(key{kind: kArr, a: j.arr(a)})})
		}
	case '{':
		for _, o := range v.Objects {
			id := j.obj(o)
			p := j.prog(progress{obj: id, want: 1<<o.Wanted - 1, seen: string(make([]byte, j.seenBytes(o)))})
			out = append(out, move{to: m.intern(key{kind: kObj, a: id, b: p})})
		}
	default:
		if v.Num != nil && b < 0x80 {
			id := j.num(v.Num)
			if q := j.nums[id].Step(j.nums[id].Start(), rune(b)); q >= 0 {
				return []move{{to: m.intern(key{kind: kNum, a: id, b: q})}}
			}
		}
	}
	return out
}

func (j *jsonMachine) seenBytes(o *schema.Object) int {
	if !j.options.AnyOrder {
		return 0
	}
	return (len(o.Names) + 7) / 8
}

func (j *jsonMachine) wordMoves(m *machine, k key, b byte) []move {
	w := words[k.a]
	switch {
	case w[k.b] != b:
		return nil
	case int(k.b)+1 == len(w):
		return []move{{to: done}}
	}
	return []move{{to: m.intern(key{kind: kWord, a: k.a, b: k.b + 1})}}
}

// stringMoves: a is the set, b the automaton's state, c and d how many code points must and may follow, e what is
// pending.
func (j *jsonMachine) stringMoves(m *machine, k key, b byte) []move {
	s := j.strs[k.a]
	if b == '"' && k.e == 0 {
		if k.c == 0 && (s.D == nil || s.D.Label(k.b) != 0) {
			return []move{{to: done}}
		}
		return nil
	}
	if pending(k.e).what() == inTail {
		return m.tail(&k, &k.e, b)
	}
	if k.d == 0 {
		return nil
	}
	lo, hi := max(k.c-1, 0), k.d
	if hi > 0 {
		hi--
	}
	cs := charset{d: s.D, q: k.b, free: s.D == nil}
	cs.live = func(q int32) bool { return s.window.Alive(q, int(lo), int(hi)) }
	r, next, complete, ok := cs.jsonByte(pending(k.e), b)
	if !ok {
		return nil
	}
	if !complete {
		k.e = int32(next)
		return []move{{to: m.intern(k)}}
	}
	q := k.b
	if s.D != nil {
		q = s.D.Step(q, r)
	}
	return []move{{to: m.intern(key{kind: kStr, a: k.a, b: q, c: lo, d: hi, e: int32(next)})}}
}

// Where blanks may stand.
const (
	afterOpen   = iota // after { and [
	beforeClose        // before } and ]
	afterComma
	afterColon
	elsewhere // before commas and colons
)

// blank reads white space: seen is what there was, 0 for nothing. It returns 0 where b is none that may stand there.
func (j *jsonMachine) blank(where int, seen int32, b byte) int32 {
	const space, lineBreak, tab = 1, 2, 1000
	switch j.options.Whitespace {
	case Free:
		if (b == ' ' || b == '\n' || b == '\t' || b == '\r') && seen < maxFreeBlank {
			return seen + 1
		}
	case Usual:
		switch {
		case where == elsewhere:
		case seen == 0 && b == ' ':
			return space
		case where == afterColon:
		case seen == 0 && b == '\n':
			return lineBreak
		case seen >= lineBreak && seen < lineBreak+maxIndent && b == ' ':
			return seen + 1
		case seen == lineBreak && b == '\t':
			return tab
		case seen >= tab && seen < tab+maxTabs-1 && b == '\t':
			return seen + 1
		}
	}
	return 0
}

// Phases of arrays and objects.
const (
	opened   = iota // after [ or {
	hasValue        // after an item or a member
	hasComma
	hasKey   // objects: after a key
	hasColon // objects
)

// begin pushes a frame that returns to ret and begins a value of a node.
func (j *jsonMachine) begin(m *machine, out []move, n schema.Node, ret key, b byte) []move {
	if n == schema.Nothing || !j.schema.Alive(n) {
		return out
	}
	moves := j.valueMoves(m, key{kind: kValue, a: int32(n)}, b)
	if len(moves) == 0 {
		return out
	}
	r := m.intern(ret)
	for _, mv := range moves {
		out = append(out, move{push: []stateID{r}, to: mv.to})
	}
	return out
}

// arrayMoves: a is the shape, b the items so far, c those of them that were counted, d the phase, e blanks, f, where
// items must differ, those that were seen.
func (j *jsonMachine) arrayMoves(m *machine, k key, b byte) []move {
	a := j.arrs[k.a]
	where := [...]int{opened: afterOpen, hasValue: beforeClose, hasComma: afterComma}[k.d]
	i, count := int(k.b), int(k.c)
	anywhere := where != beforeClose || j.options.Whitespace == Free
	if w := j.blank(where, k.e, b); w != 0 && (anywhere || a.CanEnd(i, count)) {
		k.e = w
		return []move{{to: m.intern(k)}}
	}
	switch {
	case b == ']' && k.d != hasComma:
		if a.CanEnd(i, count) {
			return []move{{to: done}}
		}
	case b == ',' && k.d == hasValue:
		if j.options.Whitespace != Free && k.e != 0 {
			return nil // the blanks were those before an end
		}
		with, without := a.Choices(i, count)
		next := func(n schema.Node, counted bool) bool {
			if n == schema.Nothing || !j.schema.Alive(n) {
				return false
			}
			return a.Live(a.Next(i, count, counted))
		}
		if next(with, true) || next(without, false) {
			return []move{{to: m.intern(key{kind: kArr, a: k.a, b: k.b, c: k.c, d: hasComma, f: k.f})}}
		}
	case k.d != hasValue:
		if a.Texts != nil {
			if _, n := a.Choices(i, count); n == schema.Nothing {
				return nil
			}
			return j.itemMoves(m, key{kind: kItem, a: k.a, b: k.b, c: a.Texts.Start(), e: j.seen.root(k.f), f: k.f}, b)
		}
		var out []move
		with, without := a.Choices(i, count)
		for w, n := range [2]schema.Node{without, with} {
			ni, nc := a.Next(i, count, w == 1)
			if a.Live(ni, nc) {
				out = j.begin(m, out, n, key{kind: kArr, a: k.a, b: int32(ni), c: int32(nc), d: hasValue}, b)
			}
		}
		return out
	}
	return nil
}

// itemMoves: a is the shape, b the items before this one, c the state of the automaton of texts, d what is pending, e
// where the text stands among those that were seen, f these.
func (j *jsonMachine) itemMoves(m *machine, k key, b byte) []move {
	a := j.arrs[k.a]
	p := pending(k.d)
	if p.what() == inTail {
		return m.tail(&k, &k.d, b)
	}
	if p == 0 && a.Texts.Label(k.c) != 0 && !j.seen.ends(k.f, k.e) {
		i, _ := a.Next(int(k.b), 0, false)
		if out := j.arrayMoves(m, key{kind: kArr, a: k.a, b: int32(i), d: hasValue, f: k.f}, b); len(out) > 0 {
			return out
		}
	}
	r, next, ok := p.utf8(b)
	if !ok {
		return nil
	}
	cs := charset{d: a.Texts, q: k.c}
	if k.e != 0 {
		cs.apart = func(lo, hi rune) bool { return j.seen.any(k.f, k.e, lo, hi) }
	}
	if next != 0 {
		if !cs.any(next.span()) {
			return nil
		}
		tail, settled := pending(0), false
		if r, tail, settled = cs.settle(next); !settled {
			k.d = int32(next)
			return []move{{to: m.intern(k)}}
		}
		next = tail
	}
	k.c, k.d, k.e = a.Texts.Step(k.c, r), int32(next), j.seen.step(k.f, k.e, r)
	if k.c < 0 || !j.unseenItem(a.Texts, k.c, k.f, k.e) {
		return nil
	}
	return []move{{to: m.intern(k)}}
}

// unseenItem reports whether a state of the automaton of texts leads to one that was not seen.
func (j *jsonMachine) unseenItem(d *regular.DFA, q, set, node int32) bool {
	if node == 0 || d.Label(q) != 0 && !j.seen.ends(set, node) {
		return true
	}
	found := false
	d.Edges(q, func(lo, hi rune, to int32) {
		for r := lo; r <= hi && !found; r++ {
			next := j.seen.step(set, node, r)
			found = next == 0 || j.unseenItem(d, to, set, next)
		}
	})
	return found
}

// objectMoves: a is the shape, b the progress, c the key's label, d the phase, e blanks, f the seen keys with this one.
func (j *jsonMachine) objectMoves(m *machine, k key, b byte) []move {
	o := j.objs[k.a]
	where := [...]int{
		opened: afterOpen, hasValue: beforeClose, hasComma: afterComma, hasKey: elsewhere, hasColon: afterColon,
	}[k.d]
	p := j.progress[k.b]
	if w := j.blank(where, k.e, b); w != 0 &&
		(where != beforeClose || j.options.Whitespace == Free || j.canClose(o, p)) {
		k.e = w
		return []move{{to: m.intern(k)}}
	}
	switch k.d {
	case hasKey:
		if b == ':' {
			return []move{{to: m.intern(key{kind: kObj, a: k.a, b: k.b, c: k.c, d: hasColon, f: k.f})}}
		}
		return nil
	case hasColon:
		var out []move
		j.afterKey(o, p, k.c, func(n schema.Node, next progress) {
			next.extra = max(next.extra, k.f)
			out = j.begin(m, out, n, key{kind: kObj, a: k.a, b: j.prog(next), d: hasValue}, b)
		})
		return out
	}
	switch {
	case b == '}' && k.d != hasComma:
		if j.canClose(o, p) {
			return []move{{to: done}}
		}
	case b == ',' && k.d == hasValue:
		if (j.options.Whitespace == Free || k.e == 0) && j.anyAllowed(k.b) {
			return []move{{to: m.intern(key{kind: kObj, a: k.a, b: k.b, d: hasComma})}}
		}
	case b == '"' && k.d != hasValue:
		if j.anyAllowed(k.b) {
			return []move{{to: m.intern(key{kind: kKey, a: k.a, b: k.b, c: o.keys.Start(), e: j.seen.root(p.extra)})}}
		}
	}
	return nil
}

// keyMoves: a is the shape, b the progress, c the state of the automaton of keys, d what is pending, e where the text
// stands among the keys that were seen.
func (j *jsonMachine) keyMoves(m *machine, k key, b byte) []move {
	o := j.objs[k.a]
	allowed := j.allowedLabels(k.b)
	if b == '"' && k.d == 0 {
		if l := o.keys.Label(k.c); l != 0 && allowed[l>>6]>>(l&63)&1 == 1 && !j.seen.ends(j.progress[k.b].extra, k.e) {
			return []move{{to: m.intern(key{kind: kObj, a: k.a, b: k.b, c: l, d: hasKey})}}
		}
		return nil
	}
	if pending(k.d).what() == inTail {
		return m.tail(&k, &k.d, b)
	}
	live := func(q int32) bool { return j.leadsToKey(o, q, allowed) }
	set := j.progress[k.b].extra
	cs := charset{d: o.keys, q: k.c, live: live}
	if k.e != 0 { // the text begins a key that was seen: its characters lead elsewhere than others
		cs.apart = func(lo, hi rune) bool { return j.seen.any(set, k.e, lo, hi) }
	}
	r, next, complete, ok := cs.jsonByte(pending(k.d), b)
	switch {
	case !ok:
		return nil
	case complete:
		k.c, k.d, k.e = o.keys.Step(k.c, r), int32(next), j.seen.step(set, k.e, r)
		if k.e != 0 && !j.unseen(o, k.c, allowed, set, k.e) {
			return nil
		}
	default:
		k.d = int32(next)
	}
	return []move{{to: m.intern(k)}}
}

func (j *jsonMachine) leadsToKey(o *objectKeys, q int32, allowed []uint64) bool {
	for i, w := range o.keys.Reaches(q) {
		if i < len(allowed) && w&allowed[i] != 0 {
			return true
		}
	}
	return false
}

// unseen reports whether a state of the automaton of keys leads to an allowed key that was not seen; node is where its
// text stands among those that were.
func (j *jsonMachine) unseen(o *objectKeys, q int32, allowed []uint64, set, node int32) bool {
	if !j.leadsToKey(o, q, allowed) {
		return false
	}
	if node == 0 {
		return true
	}
	if l := o.keys.Label(q); l != 0 && allowed[l>>6]>>(l&63)&1 == 1 && !j.seen.ends(set, node) {
		return true
	}
	found := false
	o.keys.Edges(q, func(lo, hi rune, to int32) {
		if found || !j.leadsToKey(o, to, allowed) {
			return
		}
		for r := lo; r <= hi && !found; r++ {
			next := j.seen.step(set, node, r)
			found = next == 0 || j.unseen(o, to, allowed, set, next)
		}
	})
	return found
}

// anyKey reports whether every text goes on being the beginning of a key that may come.
func (j *jsonMachine) anyKey(k key) bool {
	o := j.objs[k.a]
	if !o.keys.Universal(k.c) {
		return false
	}
	if o.always == nil {
		o.always = slices.Clone(o.keys.Reaches(0))
		for s := range o.keys.States() {
			for i, w := range o.keys.Reaches(int32(s)) {
				o.always[i] &= w
			}
		}
	}
	some, all := false, true
	for i, w := range j.allowedLabels(k.b) {
		some = some || i < len(o.always) && w&o.always[i] != 0
		all = all && (i >= len(o.always) || o.keys.Reaches(k.c)[i]&^w == 0)
	}
	return some || all // whatever is reached, one label that may come can be, or only labels that may come can
}

// canClose reports whether an object may end.
func (j *jsonMachine) canClose(o *objectKeys, p progress) bool {
	return p.want == 0 && (!o.counts || int(p.count) >= o.Min) && j.requiredLeft(o, p) == 0
}

// has reports whether a name has come, or cannot come any more.
func (j *jsonMachine) has(p progress, i int) bool {
	if !j.options.AnyOrder {
		return i < int(p.pos)
	}
	return p.seen[i>>3]>>(i&7)&1 == 1
}

func (j *jsonMachine) requiredLeft(o *objectKeys, p progress) int {
	n := 0
	for i := range o.Names {
		if o.Required[i] && !j.has(p, i) {
			n++
		}
	}
	return n
}

// live reports whether an object can still be completed.
func (j *jsonMachine) live(o *objectKeys, p progress) bool {
	if !o.counts {
		return true
	}
	left := j.requiredLeft(o, p)
	if p.want != 0 {
		left++
	}
	if o.Max >= 0 && int(p.count)+left > o.Max {
		return false
	}
	available := o.extras
	if available < 1<<29 {
		available -= int64(j.seen.count(p.extra))
	}
	for i, n := range o.Places {
		if !j.has(p, i) && j.schema.Alive(n) {
			available++
		}
	}
	return int64(p.count)+available >= int64(o.Min)
}

// afterKey calls f for what may follow a key: its value's place and the progress after it.
func (j *jsonMachine) afterKey(o *objectKeys, p progress, label int32, f func(n schema.Node, next progress)) {
	next := p
	if o.counts {
		if next.count++; o.Max < 0 {
			next.count = min(next.count, int32(o.Min))
		}
	}
	if i := int(label) - 1; i < len(o.Names) {
		if j.options.AnyOrder {
			seen := []byte(next.seen)
			seen[i>>3] |= 1 << (i & 7)
			next.seen = string(seen)
		} else {
			next.pos = label
		}
		if j.schema.Alive(o.Places[i]) && j.live(o, next) {
			f(o.Places[i], next)
		}
		return
	}
	if !j.options.AnyOrder {
		next.pos = int32(len(o.Names))
	}
	class := o.Classes[int(label)-1-len(o.Names)]
	for set, n := range class.Claims {
		if uint32(set)&^p.want != 0 || !j.schema.Alive(n) {
			continue
		}
		next.want = p.want &^ uint32(set)
		if j.live(o, next) {
			f(n, next)
		}
	}
}

// allowedLabels is the labels of the keys that may come next.
func (j *jsonMachine) allowedLabels(id int32) []uint64 {
	if a, ok := j.allowed[id]; ok {
		return a
	}
	p := j.progress[id]
	o := j.objs[p.obj]
	labels := len(o.Names) + len(o.Classes)
	set := make([]uint64, labels/64+1)
	blocked := false // in order: a required name stands before what follows
	for i := range o.Names {
		if j.has(p, i) {
			continue
		}
		if !blocked {
			j.allow(set, o, p, int32(i+1))
		}
		if o.Required[i] && !j.options.AnyOrder {
			blocked = true
		}
	}
	for i := range o.Classes {
		if !blocked {
			j.allow(set, o, p, int32(len(o.Names)+i+1))
		}
	}
	if p.extra != 0 && o.keys.Count(0) < 1<<29 && !j.unseen(o, o.keys.Start(), set, p.extra, j.seen.root(p.extra)) {
		clear(set) // every key that could come has come
	}
	j.allowed[id] = set
	return set
}

func (j *jsonMachine) allow(set []uint64, o *objectKeys, p progress, label int32) {
	j.afterKey(o, p, label, func(schema.Node, progress) { set[label>>6] |= 1 << (label & 63) })
}

func (j *jsonMachine) anyAllowed(id int32) bool {
	for _, w := range j.allowedLabels(id) {
		if bits.Len64(w) > 0 {
			return true
		}
	}
	return false
}
