package grammar

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/baleenrun/baleen/internal/grammar/regular"
)

// The automaton's states are made when they are first reached. A state is a small record, its key; moves computes
// where a byte leads from it, and the answer is kept in the state's row.

type stateID = int32

const (
	unknown int32   = 0 // entry of a row that has not been computed
	dead    int32   = -1
	done    stateID = 1 // the end of a frame: accepts, reads nothing
)

type kind uint8

const (
	kDone kind = iota
	kValue
	kWord  // null, true, false
	kNum   // a number
	kStr   // a string
	kArr   // an array
	kObj   // an object, outside its keys
	kKey   // an object's key
	kItem  // an item of an array whose items differ
	kText  // plain text of a regular language
	kRules // a set of places in rules
)

// A key identifies a state; what the numbers mean depends on the kind.
type key struct {
	kind             kind
	a, b, c, d, e, f int32
}

// A move is where a byte leads: frames that are pushed, by the states to return to, outermost first, and a state.
type move struct {
	push []stateID
	to   stateID
}

type row [256]int32

// A frame is an entry of a stack: the state to return to and the stack below it.
type frame struct {
	ret   stateID
	below int32
}

// A stack is a set of frames, any of which may be the top: where several alternatives reach one state, they go on as
// one, and part where it ends. So alternatives do not multiply with the depth. Two frames end stacks.
const (
	emptyStack int32 = 0
	baseStack  int32 = 1 // a stack that is not known: for masks of a state alone
)

var (
	bottom = frame{0, -1}
	floor  = frame{0, -2}
)

type machine struct {
	keys   []key
	ids    map[key]stateID
	rows   []*row
	accept []bool
	room   []int16  // plainRoom, -1 until asked for
	moves  [][]move // for entries of rows that are more than one state

	stacks  [][]frame // sorted
	depths  []int32
	oneID   map[frame]int32  // stacks of one frame
	manyID  map[string]int32 // and of several
	scratch []byte

	json  *jsonMachine
	texts []*regular.DFA
	rules *ruleMachine
	err   error // the limit that was met
}

var (
	errStates = errors.New("grammar: the text leads to more states than are kept")
	errPlaces = errors.New("grammar: too many alternatives are open at the same time")
)

func newMachine() *machine {
	m := &machine{ids: map[key]stateID{}, oneID: map[frame]int32{}, manyID: map[string]int32{}}
	m.keys = []key{{}, {}}
	m.rows = []*row{nil, nil}
	m.accept = []bool{false, true}
	m.room = []int16{0, 0}
	m.stacks = [][]frame{{bottom}, {floor}}
	m.depths = []int32{0, 0}
	return m
}

func (m *machine) intern(k key) stateID {
	if k.kind == kDone {
		return done
	}
	if id, ok := m.ids[k]; ok {
		return id
	}
	if len(m.keys) >= MaxStates {
		m.err = errStates
		return dead
	}
	id := stateID(len(m.keys))
	m.ids[k] = id
	m.keys = append(m.keys, k)
	m.rows = append(m.rows, nil)
	m.accept = append(m.accept, m.accepts(k))
	m.room = append(m.room, -1)
	return id
}

func (m *machine) accepts(k key) bool {
	switch k.kind {
	case kNum:
		return m.json.nums[k.a].Label(k.b) != 0
	case kText:
		return k.c == 0 && m.texts[k.a].Label(k.b) != 0
	case kRules:
		return m.rules.sets[k.a].accepts
	}
	return false
}

// next is the entry of a state's row for a byte: dead, a state, or below it a list of moves.
func (m *machine) next(s stateID, b byte) int32 {
	r := m.rows[s]
	if r == nil {
		r = new(row)
		m.rows[s] = r
	}
	if e := r[b]; e != unknown {
		return e
	}
	e := m.compute(s, b)
	r[b] = e
	return e
}

func (m *machine) compute(s stateID, b byte) int32 {
	moves := slices.DeleteFunc(m.movesOf(m.keys[s], b), func(mv move) bool { // limits were met
		return mv.to == dead || slices.Contains(mv.push, dead)
	})
	switch {
	case len(moves) == 0:
		return dead
	case len(moves) == 1 && len(moves[0].push) == 0:
		return moves[0].to
	}
	m.moves = append(m.moves, moves)
	return -int32(len(m.moves)) - 1
}

// movesAt is where a byte leads from a state, from its row.
func (m *machine) movesAt(s stateID, b byte) []move {
	switch e := m.next(s, b); {
	case e > 0:
		return []move{{to: e}}
	case e < dead:
		return m.moves[-e-2]
	}
	return nil
}

func (m *machine) movesOf(k key, b byte) []move {
	switch k.kind {
	case kValue:
		return m.json.valueMoves(m, k, b)
	case kWord:
		return m.json.wordMoves(m, k, b)
	case kNum:
		if q := m.json.nums[k.a].Step(k.b, rune(b)); q >= 0 && b < 0x80 {
			return []move{{to: m.intern(key{kind: kNum, a: k.a, b: q})}}
		}
	case kStr:
		return m.json.stringMoves(m, k, b)
	case kArr:
		return m.json.arrayMoves(m, k, b)
	case kObj:
		return m.json.objectMoves(m, k, b)
	case kKey:
		return m.json.keyMoves(m, k, b)
	case kItem:
		return m.json.itemMoves(m, k, b)
	case kText:
		return m.textMoves(k, b)
	case kRules:
		return m.rules.moves(m, k, b)
	}
	return nil
}

func (m *machine) push(ret stateID, below int32) int32 {
	f := frame{ret, below}
	if id, ok := m.oneID[f]; ok {
		return id
	}
	if m.depths[below] >= MaxDepth {
		return -1
	}
	id := m.addStack([]frame{f})
	if id >= 0 {
		m.oneID[f] = id
	}
	return id
}

func (m *machine) addStack(frames []frame) int32 {
	if len(m.stacks) >= 4*MaxStates {
		m.err = errStates
		return -1
	}
	depth := int32(0)
	for _, f := range frames {
		if f.below >= 0 {
			depth = max(depth, m.depths[f.below]+1)
		}
	}
	m.stacks = append(m.stacks, frames)
	m.depths = append(m.depths, depth)
	return int32(len(m.stacks) - 1)
}

// join is the stack of either.
func (m *machine) join(a, b int32) int32 {
	frames := append(slices.Clone(m.stacks[a]), m.stacks[b]...)
	slices.SortFunc(frames, func(x, y frame) int {
		if x.ret != y.ret {
			return int(x.ret - y.ret)
		}
		return int(x.below - y.below)
	})
	frames = slices.Compact(frames)
	if len(frames) == len(m.stacks[a]) {
		return a
	}
	k := m.scratch[:0]
	for _, f := range frames {
		k = binary.LittleEndian.AppendUint32(k, uint32(f.ret))
		k = binary.LittleEndian.AppendUint32(k, uint32(f.below))
	}
	m.scratch = k
	if id, ok := m.manyID[string(k)]; ok {
		return id
	}
	id := m.addStack(frames)
	if id >= 0 {
		m.manyID[string(k)] = id
	}
	return id
}

// A config is a place: a state and the stack below it.
type config struct {
	state stateID
	stack int32
}

// step adds to out, whose own entries begin at from, where a byte leads from a place. A state that accepts may also
// return to a frame below. lowest becomes the depth of the lowest stack that was looked at, -1 if the end was.
func (m *machine) step(c config, b byte, out []config, from int, lowest *int32) []config {
	if c.state != done {
		switch e := m.next(c.state, b); {
		case e > 0:
			out = m.add(out, from, config{e, c.stack})
		case e < dead:
			for _, mv := range m.moves[-e-2] {
				stack := c.stack
				for _, ret := range mv.push {
					if stack = m.push(ret, stack); stack < 0 {
						break
					}
				}
				if stack >= 0 {
					out = m.add(out, from, config{mv.to, stack})
				}
			}
		}
	}
	if m.accept[c.state] {
		for _, f := range m.stacks[c.stack] {
			switch f {
			case floor:
			case bottom:
				*lowest = -1
			default:
				*lowest = min(*lowest, m.depths[f.below])
				out = m.step(config{f.ret, f.below}, b, out, from, lowest)
			}
		}
	}
	return out
}

// ends reports whether all frames above an end of the stack may end at a place.
func (m *machine) ends(c config, end frame) bool {
	if !m.accept[c.state] {
		return false
	}
	for _, f := range m.stacks[c.stack] {
		if f == end || f.below >= 0 && m.ends(config{f.ret, f.below}, end) {
			return true
		}
	}
	return false
}

// accepting reports whether the text may end at a place.
func (m *machine) accepting(c config) bool { return m.ends(c, bottom) }

// add puts a place into a set in which each state stands once.
func (m *machine) add(out []config, from int, c config) []config {
	for i := from; i < len(out); i++ {
		if out[i].state == c.state {
			if out[i].stack != c.stack {
				if id := m.join(out[i].stack, c.stack); id >= 0 {
					out[i].stack = id
				}
			}
			return out
		}
	}
	return append(out, c)
}

// similar is a state that allows the same tokens of up to longest bytes: bounds on a string's length that none of them
// can reach are lowered to ones that none can reach either.
func (m *machine) similar(s stateID, longest int32) stateID {
	k := m.keys[s]
	if k.kind != kStr {
		return s
	}
	set := m.json.strs[k.a]
	far := longest + 1
	if set.D != nil {
		if k.c > 0 {
			return s
		}
		far += int32(set.D.States())
	}
	if k.c <= far && k.d <= far {
		return s
	}
	if k.c = min(k.c, far); k.d > far {
		k.d = far + k.c
	}
	return m.intern(k)
}

// plainRoom is how many characters that need no escape may follow in a state, whatever they are.
func (m *machine) plainRoom(s stateID) int {
	if m.room[s] < 0 {
		m.room[s] = int16(min(m.findRoom(m.keys[s]), maxRoom))
	}
	return int(m.room[s])
}

const maxRoom = 1 << 14

func (m *machine) findRoom(k key) int {
	switch k.kind {
	case kStr:
		set := m.json.strs[k.a]
		switch {
		case k.e != 0:
		case set.D == nil && k.d >= 0:
			return int(k.d)
		case set.D == nil || k.d < 0 && set.D.Universal(k.b):
			return maxRoom
		}
	case kKey:
		if k.d == 0 && m.json.anyKey(k) {
			return maxRoom
		}
	case kItem:
		if k.d == 0 && m.json.arrs[k.a].Texts.Open(k.c) {
			return maxRoom
		}
	case kText:
		if k.c == 0 && m.texts[k.a].Universal(k.b) {
			return maxRoom
		}
	}
	return 0
}

// textMoves reads UTF-8 of a regular language: a is the language, b the state, c what is pending of a code point.
func (m *machine) textMoves(k key, b byte) []move {
	p := pending(k.c)
	if p.what() == inTail {
		return m.tail(&k, &k.c, b)
	}
	r, next, ok := p.utf8(b)
	if !ok {
		return nil
	}
	cs := charset{d: m.texts[k.a], q: k.b}
	if next != 0 {
		if !cs.any(next.span()) {
			return nil
		}
		var settled bool
		if r, p, settled = cs.settle(next); !settled {
			return []move{{to: m.intern(key{kind: kText, a: k.a, b: k.b, c: int32(next)})}}
		}
		next = p
	}
	if q := cs.d.Step(k.b, r); q >= 0 {
		return []move{{to: m.intern(key{kind: kText, a: k.a, b: q, c: int32(next)})}}
	}
	return nil
}

// tail reads one byte of a code point that is settled; at is what the key k has pending.
func (m *machine) tail(k *key, at *int32, b byte) []move {
	next, ok := pending(*at).tail(b)
	if !ok {
		return nil
	}
	*at = int32(next)
	return []move{{to: m.intern(*k)}}
}
