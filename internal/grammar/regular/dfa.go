// Package regular owns regular languages over Unicode code points: deterministic automata, their Boolean algebra,
// and the regular expressions, numbers and formats that are read into them. It knows neither JSON nor tokens.
package regular

import (
	"errors"
	"fmt"
	"sort"
	"strings"
)

// ErrTooLarge is the error of an automaton that would need more states than MaxStates.
var ErrTooLarge = fmt.Errorf("the automaton would need more than %d states", MaxStates)

// MaxStates bounds every automaton built here, so that a hostile pattern costs an error and not memory.
const MaxStates = 20000

const (
	surrogateMin = 0xD800
	surrogateMax = 0xDFFF
	runeEnd      = 0x110000
)

// A DFA is a deterministic automaton over Unicode scalar values. Every state can reach an accepting one: a
// transition that could not is Dead. A state's label is 0 where it does not accept; languages that only accept use
// label 1, classifiers (which property a key names) use more. A DFA is immutable once built.
type DFA struct {
	bounds  []rune  // where intervals begin; the last ends at 0x10FFFF
	column  []int32 // interval → column, -1 for surrogates
	ascii   [128]int32
	columns int
	trans   []int32 // state*columns + column → state or Dead
	labels  []int32

	dist      []int32  // lazily: code points to the nearest accepting state
	counts    []int32  // lazily: strings accepted from a state, saturating at manyStrings
	universal []bool   // lazily: no code point ever leads from here to Dead
	open      []bool   // lazily: nor one that needs no escape in JSON
	reach     []bitset // lazily: labels that can be reached
}

// Dead is where a transition leads from which nothing is accepted.
const Dead int32 = -1

// Empty reports whether the language has no string.
func (d *DFA) Empty() bool { return len(d.labels) == 0 }

// Start is the state before the first code point, Dead in an empty language.
func (d *DFA) Start() int32 {
	if d.Empty() {
		return Dead
	}
	return 0
}

// States is the number of states.
func (d *DFA) States() int { return len(d.labels) }

// Label is a state's label, 0 where it does not accept.
func (d *DFA) Label(state int32) int32 {
	if state < 0 {
		return 0
	}
	return d.labels[state]
}

// Step is the state after one code point.
func (d *DFA) Step(state int32, r rune) int32 {
	if state < 0 {
		return Dead
	}
	var c int32
	if uint32(r) < 128 {
		c = d.ascii[r]
	} else {
		c = d.columnOf(r)
	}
	if c < 0 {
		return Dead
	}
	return d.trans[int(state)*d.columns+int(c)]
}

func (d *DFA) columnOf(r rune) int32 {
	if r < 0 || r >= runeEnd {
		return -1
	}
	i := sort.Search(len(d.bounds), func(i int) bool { return d.bounds[i] > r }) - 1
	return d.column[i]
}

// AnyIn reports whether some code point in lo..hi leads to a live state.
func (d *DFA) AnyIn(state int32, lo, hi rune, live func(int32) bool) bool {
	if state < 0 {
		return false
	}
	i := sort.Search(len(d.bounds), func(i int) bool { return d.bounds[i] > lo }) - 1
	for ; i < len(d.bounds) && d.bounds[i] <= hi; i++ {
		if c := d.column[i]; c >= 0 {
			if t := d.trans[int(state)*d.columns+int(c)]; t >= 0 && (live == nil || live(t)) {
				return true
			}
		}
	}
	return false
}

// Alike reports whether all code points in lo..hi lead the same way from every state.
func (d *DFA) Alike(lo, hi rune) bool {
	i := sort.Search(len(d.bounds), func(i int) bool { return d.bounds[i] > lo })
	return i == len(d.bounds) || d.bounds[i] > hi
}

// Edges calls f for each range of code points that leads from a state to a live one.
func (d *DFA) Edges(state int32, f func(lo, hi rune, to int32)) {
	for i, lo := range d.bounds {
		if c := d.column[i]; c >= 0 {
			if t := d.trans[int(state)*d.columns+int(c)]; t >= 0 {
				hi := rune(runeEnd - 1)
				if i+1 < len(d.bounds) {
					hi = d.bounds[i+1] - 1
				}
				f(lo, hi, t)
			}
		}
	}
}

// Match returns the label of a whole string, 0 if it is not in the language.
func (d *DFA) Match(s string) int32 {
	q := d.Start()
	for _, r := range s {
		if q = d.Step(q, r); q < 0 {
			return 0
		}
	}
	return d.Label(q)
}

// Distance is the number of code points from a state to the nearest accepting one.
func (d *DFA) Distance(state int32) int32 {
	if d.dist == nil {
		d.dist = d.distances()
	}
	return d.dist[state]
}

func (d *DFA) distances() []int32 {
	dist := make([]int32, len(d.labels))
	preds := d.predecessors()
	var queue []int32
	for s := range dist {
		dist[s] = -1
		if d.labels[s] != 0 {
			dist[s] = 0
			queue = append(queue, int32(s))
		}
	}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		for _, p := range preds[s] {
			if dist[p] < 0 {
				dist[p] = dist[s] + 1
				queue = append(queue, p)
			}
		}
	}
	return dist
}

func (d *DFA) predecessors() [][]int32 {
	preds := make([][]int32, len(d.labels))
	for s := range d.labels {
		for c := range d.columns {
			if t := d.trans[s*d.columns+c]; t >= 0 {
				if p := preds[t]; len(p) == 0 || p[len(p)-1] != int32(s) {
					preds[t] = append(p, int32(s))
				}
			}
		}
	}
	return preds
}

// manyStrings stands for more strings than anyone counts; infinite languages have as many.
const manyStrings = 1 << 30

// Count is how many strings are accepted from a state, saturating at 2³⁰.
func (d *DFA) Count(state int32) int32 {
	if state < 0 {
		return 0
	}
	if d.counts == nil {
		d.counts = d.countAll()
	}
	return d.counts[state]
}

func (d *DFA) countAll() []int32 {
	counts := make([]int32, len(d.labels))
	width := d.widths()
	const open, done = 1, 2
	mark := make([]uint8, len(d.labels))
	type frame struct {
		s int32
		c int
		n int64
	}
	for root := range d.labels {
		if mark[root] != 0 {
			continue
		}
		stack := []frame{{s: int32(root)}}
		mark[root] = open
		for len(stack) > 0 {
			f := &stack[len(stack)-1]
			if f.c == 0 && d.labels[f.s] != 0 {
				f.n++
			}
			pushed := false
			for f.c < d.columns {
				c := f.c
				t := d.trans[int(f.s)*d.columns+c]
				if t >= 0 && mark[t] == 0 {
					mark[t] = open
					stack = append(stack, frame{s: t})
					pushed = true
					break
				}
				f.c++
				switch {
				case t < 0:
				case mark[t] == open: // every state is live, so a cycle means infinitely many
					f.n = manyStrings
				default:
					f.n = min(manyStrings, f.n+int64(counts[t])*width[c])
				}
			}
			if pushed {
				continue
			}
			counts[f.s] = int32(min(f.n, manyStrings))
			mark[f.s] = done
			stack = stack[:len(stack)-1]
		}
	}
	return counts
}

// widths is the number of code points in each column.
func (d *DFA) widths() []int64 {
	w := make([]int64, d.columns)
	for i, b := range d.bounds {
		end := rune(runeEnd)
		if i+1 < len(d.bounds) {
			end = d.bounds[i+1]
		}
		if c := d.column[i]; c >= 0 {
			w[c] += int64(end - b)
		}
	}
	return w
}

// Universal reports whether no code point ever leads from a state to Dead.
func (d *DFA) Universal(state int32) bool {
	if state < 0 {
		return false
	}
	if d.universal == nil {
		u := make([]bool, len(d.labels))
		for i := range u {
			u[i] = true
		}
		for again := true; again; {
			again = false
			for s := range u {
				for c := 0; u[s] && c < d.columns; c++ {
					if t := d.trans[s*d.columns+c]; t < 0 || !u[t] {
						u[s], again = false, true
					}
				}
			}
		}
		d.universal = u
	}
	return d.universal[state]
}

type bitset []uint64

func (b bitset) set(i int32)      { b[i>>6] |= 1 << (i & 63) }
func (b bitset) has(i int32) bool { return b[i>>6]>>(i&63)&1 == 1 }

// Reaches returns the labels that can be reached from a state, as a set of bits.
func (d *DFA) Reaches(state int32) []uint64 {
	if d.reach == nil {
		var top int32
		for _, l := range d.labels {
			top = max(top, l)
		}
		words := int(top)/64 + 1
		all := make([]uint64, words*len(d.labels))
		d.reach = make([]bitset, len(d.labels))
		for s := range d.reach {
			d.reach[s] = all[s*words : (s+1)*words]
			if l := d.labels[s]; l != 0 {
				d.reach[s].set(l)
			}
		}
		preds := d.predecessors()
		queue := make([]int32, 0, len(d.labels))
		queued := make([]bool, len(d.labels))
		for s := len(d.labels) - 1; s >= 0; s-- {
			queue, queued[s] = append(queue, int32(s)), true
		}
		for len(queue) > 0 {
			s := queue[0]
			queue, queued[s] = queue[1:], false
			for _, p := range preds[s] {
				grown := false
				for w, bits := range d.reach[s] {
					if bits&^d.reach[p][w] != 0 {
						d.reach[p][w] |= bits
						grown = true
					}
				}
				if grown && !queued[p] {
					queue, queued[p] = append(queue, p), true
				}
			}
		}
	}
	return d.reach[state]
}

// Finish computes what is otherwise computed when first asked for, so that readers may share the automaton.
func (d *DFA) Finish() {
	if d.Empty() {
		return
	}
	d.Distance(0)
	d.Count(0)
	d.Universal(0)
	d.Open(0)
	d.Reaches(0)
}

// builder collects states; finish makes the DFA of them.
type builder struct {
	bounds  []rune
	column  []int32
	columns int
	trans   []int32
	labels  []int32
}

func (b *builder) state(label int32) (int32, error) {
	if len(b.labels) >= MaxStates {
		return 0, ErrTooLarge
	}
	b.labels = append(b.labels, label)
	for range b.columns {
		b.trans = append(b.trans, Dead)
	}
	return int32(len(b.labels) - 1), nil
}

// finish removes states that accept nothing, joins equal ones where that is cheap, and joins equal columns.
// State 0 must be the start.
func (b *builder) finish() *DFA {
	d := &DFA{bounds: b.bounds, column: b.column, columns: b.columns, trans: b.trans, labels: b.labels}
	d.trim()
	d.minimize()
	d.joinColumns()
	d.index()
	return d
}

func (d *DFA) index() {
	for r := range d.ascii {
		d.ascii[r] = d.columnOf(rune(r))
	}
}

// trim drops states from which nothing is accepted, and those that cannot be reached from the start.
func (d *DFA) trim() {
	dist := d.distances()
	if len(dist) == 0 || dist[0] < 0 {
		d.trans, d.labels = nil, nil
		return
	}
	number := make([]int32, len(d.labels))
	for i := range number {
		number[i] = Dead
	}
	order := []int32{0}
	number[0] = 0
	for i := 0; i < len(order); i++ {
		s := int(order[i])
		for c := range d.columns {
			if t := d.trans[s*d.columns+c]; t >= 0 && dist[t] >= 0 && number[t] < 0 {
				number[t] = int32(len(order))
				order = append(order, t)
			}
		}
	}
	trans := make([]int32, len(order)*d.columns)
	labels := make([]int32, len(order))
	for i, s := range order {
		labels[i] = d.labels[s]
		for c := range d.columns {
			t := d.trans[int(s)*d.columns+c]
			if t >= 0 {
				t = number[t]
			}
			trans[i*d.columns+c] = t
		}
	}
	d.trans, d.labels = trans, labels
}

// minimizeRounds bounds Moore's refinement; an automaton that needs more stays as it is, which costs only memory.
const minimizeRounds = 64

func (d *DFA) minimize() {
	n := len(d.labels)
	if n < 2 || n*d.columns > 1<<20 {
		return
	}
	class := make([]int32, n)
	ids := map[string]int32{}
	count := 0
	for s, l := range d.labels {
		k := fmt.Sprint(l)
		id, ok := ids[k]
		if !ok {
			id = int32(len(ids))
			ids[k] = id
		}
		class[s] = id
	}
	key := make([]byte, 0, 4*(d.columns+1))
	put := func(v int32) { key = append(key, byte(v), byte(v>>8), byte(v>>16), byte(v>>24)) }
	stable := false
	for range minimizeRounds {
		clear(ids)
		next := make([]int32, n)
		for s := range class {
			key = key[:0]
			put(class[s])
			for c := range d.columns {
				t := d.trans[s*d.columns+c]
				if t >= 0 {
					t = class[t]
				}
				put(t)
			}
			id, ok := ids[string(key)]
			if !ok {
				id = int32(len(ids))
				ids[string(key)] = id
			}
			next[s] = id
		}
		same := len(ids) == count
		class, count = next, len(ids)
		if same {
			stable = true
			break
		}
		if count == n {
			return
		}
	}
	if !stable || count == n {
		return
	}
	trans := make([]int32, count*d.columns)
	labels := make([]int32, count)
	for s := n - 1; s >= 0; s-- {
		k := int(class[s])
		labels[k] = d.labels[s]
		for c := range d.columns {
			t := d.trans[s*d.columns+c]
			if t >= 0 {
				t = class[t]
			}
			trans[k*d.columns+c] = t
		}
	}
	d.trans, d.labels = trans, labels // class ids are given in order of states, so the start stays 0
}

// joinColumns gives equal columns one number and joins neighbouring intervals of one column.
func (d *DFA) joinColumns() {
	ids := map[string]int32{}
	to := make([]int32, d.columns)
	var keep []int
	key := make([]byte, 4*len(d.labels))
	for c := range d.columns {
		for s := range d.labels {
			t := d.trans[s*d.columns+c]
			key[4*s], key[4*s+1], key[4*s+2], key[4*s+3] = byte(t), byte(t>>8), byte(t>>16), byte(t>>24)
		}
		id, ok := ids[string(key)]
		if !ok {
			id = int32(len(ids))
			ids[string(key)] = id
			keep = append(keep, c)
		}
		to[c] = id
	}
	trans := make([]int32, 0, len(keep)*len(d.labels))
	for s := range d.labels {
		for _, c := range keep {
			trans = append(trans, d.trans[s*d.columns+c])
		}
	}
	var bounds []rune
	var column []int32
	for i, b := range d.bounds {
		c := d.column[i]
		if c >= 0 {
			c = to[c]
		}
		if len(column) == 0 || column[len(column)-1] != c {
			bounds, column = append(bounds, b), append(column, c)
		}
	}
	d.bounds, d.column, d.columns, d.trans = bounds, column, len(keep), trans
}

// partition collects the ends of ranges.
type partition struct{ cuts map[rune]bool }

func newPartition() *partition {
	return &partition{map[rune]bool{0: true, surrogateMin: true, surrogateMax + 1: true}}
}

func (p *partition) add(lo, hi rune) {
	p.cuts[lo] = true
	if hi+1 < runeEnd {
		p.cuts[hi+1] = true
	}
}

func (p *partition) sorted() []rune {
	b := make([]rune, 0, len(p.cuts))
	for r := range p.cuts {
		b = append(b, r)
	}
	sort.Slice(b, func(i, j int) bool { return b[i] < b[j] })
	return b
}

// singletons gives each of the runes its own column and one, the last, to all others.
func (p *partition) singletons(runes []rune) (bounds []rune, column []int32, columns int) {
	at := make(map[rune]int32, len(runes))
	for i, r := range runes {
		at[r] = int32(i)
	}
	bounds = p.sorted()
	for _, b := range bounds {
		c, ok := at[b]
		if !ok {
			c = int32(len(runes))
		}
		if b >= surrogateMin && b <= surrogateMax {
			c = -1
		}
		column = append(column, c)
	}
	return bounds, column, len(runes) + 1
}

// String shows an automaton for tests and debugging.
func (d *DFA) String() string {
	var b strings.Builder
	for s := range d.labels {
		fmt.Fprintf(&b, "%d(%d):", s, d.labels[s])
		for i, lo := range d.bounds {
			if c := d.column[i]; c >= 0 {
				if t := d.trans[s*d.columns+int(c)]; t >= 0 {
					fmt.Fprintf(&b, " %q..→%d", lo, t)
				}
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// IsTooLarge reports whether an error says that a limit was met, and not that a text is wrong.
func IsTooLarge(err error) bool { return errors.Is(err, ErrTooLarge) }
