package regular

import "sort"

// Any is the language of all strings.
func Any() *DFA {
	b := &builder{bounds: []rune{0, surrogateMin, surrogateMax + 1}, column: []int32{0, -1, 0}, columns: 1}
	s, _ := b.state(1)
	b.trans[s] = s
	return b.finish()
}

// None is the language without strings.
func None() *DFA {
	b := &builder{bounds: []rune{0, surrogateMin, surrogateMax + 1}, column: []int32{0, -1, 0}, columns: 1}
	return b.finish()
}

// Literals is the language of the given strings; the label of strings[i] is i+1, or 1 for all if flat.
func Literals(literals []string, flat bool) (*DFA, error) { return trie(literals, flat, 0) }

// trie is Literals, with a label for all other strings unless it is 0.
func trie(literals []string, flat bool, other int32) (*DFA, error) {
	seen := map[rune]bool{}
	for _, s := range literals {
		for _, r := range s {
			seen[r] = true
		}
	}
	runes := make([]rune, 0, len(seen))
	for r := range seen {
		runes = append(runes, r)
	}
	sort.Slice(runes, func(i, j int) bool { return runes[i] < runes[j] })
	set := newPartition()
	for _, r := range runes {
		set.add(r, r)
	}
	b := &builder{}
	b.bounds, b.column, b.columns = set.singletons(runes)
	if _, err := b.state(0); err != nil {
		return nil, err
	}
	sink := Dead
	if other != 0 {
		sink, _ = b.state(other)
		for c := range b.columns {
			b.trans[c], b.trans[int(sink)*b.columns+c] = sink, sink
		}
	}
	at := make(map[rune]int32, len(runes))
	for i, r := range runes {
		at[r] = int32(i)
	}
	for i, s := range literals {
		q := int32(0)
		for _, r := range s {
			k := int(q)*b.columns + int(at[r])
			if b.trans[k] == sink {
				t, err := b.state(0)
				if err != nil {
					return nil, err
				}
				b.trans[k] = t
				for c := range b.columns {
					b.trans[int(t)*b.columns+c] = sink
				}
			}
			q = b.trans[k]
		}
		if b.labels[q] == 0 {
			if b.labels[q] = int32(i + 1); flat {
				b.labels[q] = 1
			}
		}
	}
	if other != 0 {
		for s, l := range b.labels {
			if l == 0 {
				b.labels[s] = other
			}
		}
	}
	d := &DFA{bounds: b.bounds, column: b.column, columns: b.columns, trans: b.trans, labels: b.labels}
	if len(literals) == 0 {
		d.trim()
	}
	d.index() // a trie has neither dead states nor, but for ends, equal ones
	return d, nil
}

// Product walks two automata together. combine gives a state's label from both (0 for one that has died).
func Product(a, b *DFA, combine func(a, b int32) int32) (*DFA, error) {
	out := &builder{}
	cols := [][2]int32{}
	ids := map[[2]int32]int32{}
	i, j := 0, 0
	for i < len(a.bounds) || j < len(b.bounds) {
		var at rune
		switch {
		case j >= len(b.bounds) || i < len(a.bounds) && a.bounds[i] < b.bounds[j]:
			at = a.bounds[i]
			i++
		case i >= len(a.bounds) || b.bounds[j] < a.bounds[i]:
			at = b.bounds[j]
			j++
		default:
			at = a.bounds[i]
			i, j = i+1, j+1
		}
		c := [2]int32{a.column[i-1], b.column[j-1]}
		id := int32(-1)
		if at < surrogateMin || at > surrogateMax {
			var ok bool
			if id, ok = ids[c]; !ok {
				id = int32(len(cols))
				ids[c] = id
				cols = append(cols, c)
			}
		}
		out.bounds, out.column = append(out.bounds, at), append(out.column, id)
	}
	out.columns = len(cols)
	states := map[[2]int32]int32{}
	var order [][2]int32
	visit := func(p [2]int32) (int32, error) {
		if s, ok := states[p]; ok {
			return s, nil
		}
		s, err := out.state(combine(a.Label(p[0]), b.Label(p[1])))
		if err != nil {
			return 0, err
		}
		states[p] = s
		order = append(order, p)
		return s, nil
	}
	if _, err := visit([2]int32{a.Start(), b.Start()}); err != nil {
		return nil, err
	}
	for n := 0; n < len(order); n++ {
		p := order[n]
		for c, pair := range cols {
			t := [2]int32{Dead, Dead}
			if p[0] >= 0 && pair[0] >= 0 {
				t[0] = a.trans[int(p[0])*a.columns+int(pair[0])]
			}
			if p[1] >= 0 && pair[1] >= 0 {
				t[1] = b.trans[int(p[1])*b.columns+int(pair[1])]
			}
			if t[0] < 0 && t[1] < 0 && combine(0, 0) == 0 {
				continue
			}
			s, err := visit(t)
			if err != nil {
				return nil, err
			}
			out.trans[n*out.columns+c] = s
		}
	}
	return out.finish(), nil
}

// NamesOrOther labels names[i] with i+1 and every other string with len(names)+1.
func NamesOrOther(names []string) (*DFA, error) { return trie(names, false, int32(len(names)+1)) }

// Relabel gives every label a new one; 0 removes the strings that have it.
func Relabel(a *DFA, to func(label int32) int32) *DFA {
	b := &builder{bounds: a.bounds, column: a.column, columns: a.columns}
	b.trans = append([]int32(nil), a.trans...)
	for _, l := range a.labels {
		if l != 0 {
			l = to(l)
		}
		b.labels = append(b.labels, l)
	}
	return b.finish()
}

func truth(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// And is the intersection, Or the union, Minus the difference; the labels of the result are 1.
func And(a, b *DFA) (*DFA, error) {
	return Product(a, b, func(x, y int32) int32 { return truth(x != 0 && y != 0) })
}

// Or is the union of two languages.
func Or(a, b *DFA) (*DFA, error) {
	return Product(a, b, func(x, y int32) int32 { return truth(x != 0 || y != 0) })
}

// Minus is the language of what a has and b has not.
func Minus(a, b *DFA) (*DFA, error) {
	return Product(a, b, func(x, y int32) int32 { return truth(x != 0 && y == 0) })
}

// Not is the complement of a language.
func Not(a *DFA) (*DFA, error) { return Minus(Any(), a) }

// Select keeps the strings whose label is chosen, with label 1.
func Select(a *DFA, chosen func(label int32) bool) *DFA {
	return Relabel(a, func(l int32) int32 { return truth(chosen(l)) })
}

// Length is the language of strings with lo to hi code points; hi < 0 is no bound.
func Length(lo, hi int) (*DFA, error) {
	b := &builder{bounds: []rune{0, surrogateMin, surrogateMax + 1}, column: []int32{0, -1, 0}, columns: 1}
	for i := 0; hi < 0 && i <= lo || i <= hi; i++ {
		s, err := b.state(truth(i >= lo))
		if err != nil {
			return nil, err
		}
		if s > 0 {
			b.trans[s-1] = s
		}
	}
	if hi < 0 {
		b.trans[lo] = int32(lo)
	}
	return b.finish(), nil
}

// Strings lists up to limit strings of a finite language; ok is false where there are more.
func (d *DFA) Strings(limit int) (list []string, ok bool) {
	if d.Empty() {
		return nil, true
	}
	if d.Count(0) > int32(limit) {
		return nil, false
	}
	var walk func(s int32, prefix []rune)
	walk = func(s int32, prefix []rune) {
		if d.labels[s] != 0 {
			list = append(list, string(prefix))
		}
		for i, lo := range d.bounds {
			if d.column[i] < 0 {
				continue
			}
			t := d.trans[int(s)*d.columns+int(d.column[i])]
			if t < 0 {
				continue
			}
			end := rune(runeEnd)
			if i+1 < len(d.bounds) {
				end = d.bounds[i+1]
			}
			for r := lo; r < end; r++ {
				walk(t, append(prefix[:len(prefix):len(prefix)], r))
			}
		}
	}
	walk(0, nil)
	return list, true
}

// Union is the union of many languages, joined in pairs so that none grows large early.
func Union(list []*DFA) (*DFA, error) {
	if len(list) == 0 {
		return None(), nil
	}
	for len(list) > 1 {
		var next []*DFA
		for i := 0; i < len(list); i += 2 {
			if i+1 == len(list) {
				next = append(next, list[i])
				break
			}
			d, err := Or(list[i], list[i+1])
			if err != nil {
				return nil, err
			}
			next = append(next, d)
		}
		list = next
	}
	return list[0], nil
}
