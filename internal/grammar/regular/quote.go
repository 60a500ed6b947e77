package regular

// Quoted is the language of the JSON strings of a language, with their quotes and the escapes that JSON demands: short
// ones where there are, \u00xx for other control characters, none elsewhere.
func Quoted(d *DFA) (*DFA, error) {
	n := newNFA()
	start, err := n.state()
	if err != nil || d.Empty() {
		return None(), err
	}
	base := int32(len(n.edges))
	for range d.labels {
		if _, err := n.state(); err != nil {
			return nil, err
		}
	}
	end, err := n.state()
	if err != nil {
		return nil, err
	}
	quote := n.set([]rune{'"', '"'})
	n.edge(start, base, quote, 0)
	escape := func(from, to int32, text string) error {
		at, err := n.add(literal(text), from)
		if err == nil {
			n.edge(at, to, free, 0)
		}
		return err
	}
	const hex = "0123456789abcdef"
	for s := range d.labels {
		from := base + int32(s)
		if d.labels[s] != 0 {
			n.edge(from, end, quote, 0)
		}
		d.Edges(int32(s), func(lo, hi rune, t int32) {
			to := base + t
			for r := lo; r <= min(hi, 0x1F); r++ {
				text := "\\u00" + string(hex[r>>4]) + string(hex[r&15])
				if short, ok := map[rune]string{'\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}[r]; ok {
					text = short
				}
				if e := escape(from, to, text); e != nil {
					err = e
				}
			}
			for _, r := range []rune{'"', '\\'} {
				if r >= lo && r <= hi {
					if e := escape(from, to, "\\"+string(r)); e != nil {
						err = e
					}
				}
			}
			for _, part := range [][2]rune{{0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, runeEnd - 1}} {
				if a, b := max(lo, part[0]), min(hi, part[1]); a <= b {
					n.edge(from, to, n.set([]rune{a, b}), 0)
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return n.determinize(start, end)
}

// Open reports whether no code point but quotes, backslashes and control characters ever leads from a state to Dead.
func (d *DFA) Open(state int32) bool {
	if state < 0 {
		return false
	}
	if d.open == nil {
		plain := make([]bool, d.columns)
		for i, lo := range d.bounds {
			hi := rune(runeEnd - 1)
			if i+1 < len(d.bounds) {
				hi = d.bounds[i+1] - 1
			}
			if c := d.column[i]; c >= 0 && !(hi < 0x20 || lo == hi && (lo == '"' || lo == '\\')) {
				plain[c] = true
			}
		}
		o := make([]bool, len(d.labels))
		for i := range o {
			o[i] = true
		}
		for again := true; again; {
			again = false
			for s := range o {
				for c := 0; o[s] && c < d.columns; c++ {
					if t := d.trans[s*d.columns+c]; plain[c] && (t < 0 || !o[t]) {
						o[s], again = false, true
					}
				}
			}
		}
		d.open = o
	}
	return d.open[state]
}
