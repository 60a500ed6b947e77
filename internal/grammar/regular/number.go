package regular

import (
	"fmt"
	"math/big"
	"strings"
)

// A Decimal is an exact number in plain decimal notation, without zeros that say nothing; zero has no digits at all.
type Decimal struct {
	Negative bool
	Int      string // digits before the point, none for 0
	Frac     string // digits after it, none for an integer
}

// maxDigits bounds the digits of a number that is spelled out without an exponent.
const maxDigits = 1200

// ParseDecimal reads a JSON number.
func ParseDecimal(s string) (Decimal, error) {
	var d Decimal
	rest, neg := strings.CutPrefix(s, "-")
	mantissa, exp := rest, 0
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		mantissa = rest[:i]
		if _, err := fmt.Sscanf(rest[i+1:], "%d", &exp); err != nil || exp > maxDigits || exp < -maxDigits {
			return d, fmt.Errorf("number %.40s has an exponent beyond %d", s, maxDigits)
		}
	}
	whole, frac, _ := strings.Cut(mantissa, ".")
	if len(whole)+len(frac) > maxDigits {
		return d, fmt.Errorf("number %.40s… has more than %d digits", s, maxDigits)
	}
	for ; exp > 0; exp-- {
		if frac == "" {
			frac = "0"
		}
		whole, frac = whole+frac[:1], frac[1:]
	}
	for ; exp < 0; exp++ {
		if whole == "" {
			whole = "0"
		}
		frac, whole = whole[len(whole)-1:]+frac, whole[:len(whole)-1]
	}
	d.Int, d.Frac = strings.TrimLeft(whole, "0"), strings.TrimRight(frac, "0")
	d.Negative = neg && (d.Int != "" || d.Frac != "")
	return d, nil
}

// String is the plain spelling: -0.5, 12.
func (d Decimal) String() string {
	s := d.Int
	if s == "" {
		s = "0"
	}
	if d.Frac != "" {
		s += "." + d.Frac
	}
	if d.Negative {
		s = "-" + s
	}
	return s
}

// The languages of numbers below hold texts in plain decimal notation, -?(0|[1-9][0-9]*)(\.[0-9]+)?, and either all
// spellings of a value (5, 5.0, 5.00) or none, so that their complements among Decimals are those of the values.

func mustRE2(pattern string) *DFA {
	d, err := RE2(pattern, true)
	if err != nil {
		panic(err) // a constant of this package
	}
	d.Finish()
	return d
}

var (
	// Decimals is every number in plain decimal notation.
	Decimals = mustRE2(`-?(0|[1-9][0-9]*)(\.[0-9]+)?`)
	// Integers is every spelling of an integer without an exponent: 5, but also 5.0.
	Integers = mustRE2(`-?(0|[1-9][0-9]*)(\.0+)?`)
	// PlainIntegers is the spelling of integers without a point.
	PlainIntegers = mustRE2(`0|-?[1-9][0-9]*`)
	// Shortest is the spelling of decimals without zeros that say nothing: each value has one.
	Shortest = mustRE2(`0|-?[1-9][0-9]*|-?(0|[1-9][0-9]*)\.[0-9]*[1-9]`)
	// Numbers is every JSON number, exponents included.
	Numbers = mustRE2(`-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`)
)

// Labels of Compare.
const (
	Less int32 = iota + 1
	Equal
	Greater
)

// digits makes automata over the characters of numbers.
type digits struct{ builder }

func newDigits() *digits {
	d := &digits{}
	p := newPartition()
	runes := []rune("-.0123456789")
	for _, r := range runes {
		p.add(r, r)
	}
	d.bounds, d.column, d.columns = p.singletons(runes)
	return d
}

const (
	minus = 0
	point = 1
	zero  = 2 // column of digit 0; digits follow
)

func (d *digits) link(from int32, column int, to int32) { d.trans[int(from)*d.columns+column] = to }

func (d *digits) linkDigits(from int32, to int32) {
	for k := range 10 {
		d.link(from, zero+k, to)
	}
}

// Compare labels every decimal text Less, Equal or Greater than c.
func Compare(c Decimal) (*DFA, error) {
	d := newDigits()
	var failed error
	state := func(label int32) int32 {
		s, err := d.state(label)
		if err != nil && failed == nil {
			failed = err
		}
		return s
	}
	// settled returns a state after which only the text's form matters: more digits of the fraction.
	settled := func(label int32) (frac int32) {
		frac = state(label)
		d.linkDigits(frac, frac)
		return frac
	}
	flip := func(l int32, neg bool) int32 {
		if neg {
			return Less + Greater - l
		}
		return l
	}
	// magnitude builds the automaton after the sign of texts that have the sign neg, compared with |c| if the signs
	// are the same. It returns the state before the first digit.
	start := state(0)
	zeroIsC := c.Int == "" && c.Frac == ""
	magnitude := func(neg bool, from int32) {
		same := neg == c.Negative
		ref := c
		label := func(l int32) int32 {
			return flip(l, neg)
		}
		if !same || zeroIsC { // against zero: -0 equals 0, everything else is greater in magnitude
			ref = Decimal{}
			if !zeroIsC {
				label = func(l int32) int32 { return flip(Greater, neg) }
			}
		}
		less, greater := settled(label(Less)), settled(label(Greater))
		afterPoint := func(to int32) int32 { // one digit at least must follow the point
			s := state(0)
			d.linkDigits(s, to)
			return s
		}
		lessPoint, greaterPoint := afterPoint(less), afterPoint(greater)
		// fraction j: the first j digits are those of ref. After all of them, zeros are equal.
		fraction := make([]int32, len(ref.Frac)+1)
		for j := range fraction {
			l := Less
			if j == len(ref.Frac) {
				l = Equal
			}
			fraction[j] = state(label(l))
		}
		exactPoint := state(0)
		for j := range fraction {
			for _, f := range []int32{fraction[j], exactPoint} {
				if f == exactPoint && j > 0 {
					continue
				}
				if j == len(ref.Frac) {
					d.linkDigits(f, greater)
					d.link(f, zero, fraction[j])
					continue
				}
				k := int(ref.Frac[j] - '0')
				for n := range 10 {
					switch {
					case n < k:
						d.link(f, zero+n, less)
					case n == k:
						d.link(f, zero+n, fraction[j+1])
					default:
						d.link(f, zero+n, greater)
					}
				}
			}
		}
		// whole numbers of i digits so far, by how they compare with the first i digits of ref
		n := len(ref.Int)
		whole := func(i int, cmp int32) int32 { // the label of an integer that ends here
			switch {
			case i < n || i == n && cmp == Less:
				return Less
			case i > n || cmp == Greater:
				return Greater
			case ref.Frac != "":
				return Less
			}
			return Equal
		}
		longer := state(label(Greater))
		d.linkDigits(longer, longer)
		d.link(longer, point, greaterPoint)
		states := map[[2]int]int32{}
		var get func(i int, cmp int32) int32
		link := func(s int32, i int, cmp int32) {
			for k := range 10 {
				next := cmp
				if cmp == Equal && i < n {
					switch r := int(ref.Int[i] - '0'); {
					case k < r:
						next = Less
					case k > r:
						next = Greater
					}
				}
				if i+1 > n {
					d.link(s, zero+k, longer)
				} else {
					d.link(s, zero+k, get(i+1, next))
				}
			}
		}
		get = func(i int, cmp int32) int32 {
			k := [2]int{i, int(cmp)}
			if s, ok := states[k]; ok {
				return s
			}
			s := state(label(whole(i, cmp)))
			if failed != nil {
				return 0
			}
			states[k] = s
			link(s, i, cmp)
			to := exactPoint
			switch {
			case i < n || cmp == Less:
				to = lessPoint
			case cmp == Greater:
				to = greaterPoint
			}
			d.link(s, point, to)
			return s
		}
		if failed != nil {
			return
		}
		link(from, 0, Equal)
		// A leading zero stands alone.
		z := state(0)
		d.link(from, zero, z)
		switch {
		case n > 0:
			d.labels[z] = label(Less)
			d.link(z, point, lessPoint)
		default:
			l := Equal
			if ref.Frac != "" {
				l = Less
			}
			d.labels[z] = label(l)
			d.link(z, point, exactPoint)
		}
		if !zeroIsC && !same { // texts of the other sign: only -0 and 0 are special, and they are not c
			return
		}
	}
	negative := state(0)
	d.link(start, minus, negative)
	magnitude(false, start)
	magnitude(true, negative)
	if failed != nil {
		return nil, failed
	}
	out := d.finish()
	if !zeroIsC {
		return out, nil
	}
	return out, nil
}

// maxMultiple bounds the remainders that MultipleOf keeps apart.
const maxMultiple = 8000

// MultipleOf is the language of the multiples of m, which must be above 0.
func MultipleOf(m Decimal) (*DFA, error) {
	k, ok := new(big.Int).SetString(m.Int+m.Frac, 10)
	if !ok || k.Sign() <= 0 || m.Negative {
		return nil, fmt.Errorf("must be above 0")
	}
	scale := len(m.Frac)
	if !k.IsInt64() || k.Int64()*int64(scale+2) > maxMultiple {
		return nil, fmt.Errorf("%s has too many remainders to keep apart: %w", m, ErrTooLarge)
	}
	mod := int(k.Int64())
	d := newDigits()
	// States: a remainder after whole digits, or after j digits of the fraction. The text's value times 10^scale
	// must be divisible by mod.
	pow := make([]int, scale+1) // 10^(scale-j) mod mod
	pow[scale] = 1 % mod
	for j := scale - 1; j >= 0; j-- {
		pow[j] = pow[j+1] * 10 % mod
	}
	start, _ := d.state(0)
	negative, _ := d.state(0)
	d.link(start, minus, negative)
	base := func(stage int) int32 { return 2 + int32(stage*mod) }
	// stage 0: whole digits; stage 1+j: j digits after the point (j=0 is the point itself, which is no end)
	for stage := range scale + 2 {
		for r := range mod {
			j := max(stage-1, 0)
			label := truth(r*pow[j]%mod == 0)
			if stage == 1 {
				label = 0
			}
			if _, err := d.state(label); err != nil {
				return nil, err
			}
		}
	}
	// Beyond scale digits only zeros may follow; the point before a fraction of scale 0 has the same state twice.
	tail, err := d.state(1)
	if err != nil {
		return nil, err
	}
	d.link(tail, zero, tail)
	for r := range mod {
		s := base(0) + int32(r)
		for n := range 10 {
			d.link(s, zero+n, base(0)+int32((r*10+n)%mod))
		}
		d.link(s, point, base(1)+int32(r))
		for j := range scale + 1 {
			s := base(1+j) + int32(r)
			if j == scale {
				if r == 0 {
					d.link(s, zero, tail)
				}
				continue
			}
			for n := range 10 {
				d.link(s, zero+n, base(2+j)+int32((r*10+n)%mod))
			}
		}
	}
	zeroState, err := d.state(1)
	if err != nil {
		return nil, err
	}
	d.link(zeroState, point, base(1))
	for _, from := range []int32{start, negative} {
		d.link(from, zero, zeroState)
		for n := 1; n < 10; n++ {
			d.link(from, zero+n, base(0)+int32(n%mod))
		}
	}
	return d.finish(), nil
}

// Equals is the language of all spellings of the given numbers.
func Equals(values []Decimal) (*DFA, error) {
	n := newNFA()
	start, err := n.state()
	if err != nil {
		return nil, err
	}
	accept, err := n.state()
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		end, err := n.add(literal(v.String()), start)
		if err != nil {
			return nil, err
		}
		zeros := repeat(literal("0"), 0, -1)
		if v.Frac == "" {
			zeros = repeat(concat(literal("."), repeat(literal("0"), 1, -1)), 0, 1)
		}
		if end, err = n.add(zeros, end); err != nil {
			return nil, err
		}
		n.edge(end, accept, free, 0)
		if v.Int == "" && v.Frac == "" {
			if end, err = n.add(concat(literal("-0"), zeros), start); err != nil {
				return nil, err
			}
			n.edge(end, accept, free, 0)
		}
	}
	return n.determinize(start, accept)
}
