package chattmpl

import (
	"math"
	"math/big"
	"strings"
)

// asBig returns an integer value as a big integer.
func asBig(v Value) (*big.Int, bool) {
	switch x := v.(type) {
	case Bool:
		if x {
			return big.NewInt(1), true
		}
		return new(big.Int), true
	case Int:
		return big.NewInt(int64(x)), true
	case BigInt:
		return x.v, true
	}
	return nil, false
}

// asInt returns an integer value that fits 64 bits.
func asInt(v Value) (int64, bool) {
	switch x := v.(type) {
	case Bool:
		if x {
			return 1, true
		}
		return 0, true
	case Int:
		return int64(x), true
	}
	return 0, false
}

// asFloat returns a number as a double.
func asFloat(v Value) (float64, bool) {
	switch x := v.(type) {
	case Float:
		return float64(x), true
	case BigInt:
		f, _ := new(big.Float).SetInt(x.v).Float64()
		return f, true
	}
	n, ok := asInt(v)
	return float64(n), ok
}

func isNumber(v Value) bool {
	switch v.(type) {
	case Bool, Int, BigInt, Float:
		return true
	}
	return false
}

func isInteger(v Value) bool {
	switch v.(type) {
	case Bool, Int, BigInt:
		return true
	}
	return false
}

// indexInt reads an argument that must be an integer, clamped to 64 bits.
func indexInt(v Value, what string) (int64, error) {
	if n, ok := asInt(v); ok {
		return n, nil
	}
	if b, ok := v.(BigInt); ok {
		if b.v.Sign() < 0 {
			return math.MinInt64, nil
		}
		return math.MaxInt64, nil
	}
	if u, ok := v.(undefined); ok {
		return 0, u.fail()
	}
	return 0, typeErrf("%s must be an integer, not %s", what, v.typeName())
}

func (in *interp) unary(op string, v Value) (Value, error) {
	switch x := v.(type) {
	case undefined:
		return nil, x.fail()
	case Float:
		if op == "-" {
			return -x, nil
		}
		return x, nil
	}
	if b, ok := asBig(v); ok {
		if op == "-" {
			return normInt(new(big.Int).Neg(b)), nil
		}
		return normInt(b), nil
	}
	return nil, typeErrf("bad operand type for unary %s: '%s'", op, v.typeName())
}

func (in *interp) binary(op string, x, y Value) (Value, error) {
	if s, ok := x.(Str); ok {
		if op == "%" {
			return in.percent(s, y)
		}
		if op == "+" {
			if t, ok := y.(Str); ok {
				return in.addStr(s, t)
			}
		}
	}
	if u, ok := x.(undefined); ok {
		return nil, u.fail()
	}
	if u, ok := y.(undefined); ok {
		return nil, u.fail()
	}
	if isNumber(x) && isNumber(y) {
		if isInteger(x) && isInteger(y) {
			return in.intOp(op, x, y)
		}
		a, _ := asFloat(x)
		b, _ := asFloat(y)
		return floatOp(op, a, b)
	}
	switch op {
	case "*":
		if isInteger(y) {
			return in.repeat(x, y)
		}
		if isInteger(x) {
			return in.repeat(y, x)
		}
	case "+":
		switch a := x.(type) {
		case *List:
			if b, ok := y.(*List); ok {
				items, err := in.joinItems(a.items, b.items)
				return &List{items: items}, err
			}
		case *Tuple:
			if b, ok := y.(*Tuple); ok {
				items, err := in.joinItems(a.items, b.items)
				return &Tuple{items: items}, err
			}
		case Str:
			return nil, typeErrf("can only concatenate str (not \"%s\") to str", y.typeName())
		}
	}
	return nil, typeErrf("unsupported operand type(s) for %s: '%s' and '%s'", op, x.typeName(), y.typeName())
}

func (in *interp) joinItems(a, b []Value) ([]Value, error) {
	if err := in.charge(len(a) + len(b)); err != nil {
		return nil, err
	}
	out := make([]Value, 0, len(a)+len(b))
	return append(append(out, a...), b...), nil
}

// addStr joins two strings; with markup on one side the other is escaped.
func (in *interp) addStr(s, t Str) (Value, error) {
	markup := s.markup || t.markup
	if markup {
		s, t = escapeHTML(s), escapeHTML(t)
	}
	b := in.newBuilder()
	b.buf = make([]byte, 0, len(s.s)+len(t.s))
	b.str(s)
	b.str(t)
	out, err := in.finish(b)
	out.markup = markup
	return out, err
}

func (in *interp) repeat(v, times Value) (Value, error) {
	n, err := indexInt(times, "count")
	if err != nil {
		return nil, err
	}
	n = max(n, 0)
	limited := func(size int) error {
		if size > 0 && n > int64(in.lim.Steps/size) {
			return limitErrf("repeating %d elements %d times exceeds the budget", size, n)
		}
		return in.charge(size * int(n))
	}
	switch x := v.(type) {
	case Str:
		if len(x.s) > 0 && n > int64(in.lim.StringBytes/len(x.s)) {
			return nil, limitErrf("a string grew over %d bytes", in.lim.StringBytes)
		}
		if len(x.s) == 0 {
			n = 0
		}
		if err := in.charge(int(n) * len(x.s) / bytesPerStep); err != nil {
			return nil, err
		}
		if len(x.taint) == 0 || x.taint[0] == (rng{0, len(x.s)}) {
			out := fully(strings.Repeat(x.s, int(n)), x.tainted())
			out.markup = x.markup
			return out, nil
		}
		b := in.newBuilder()
		for i := int64(0); i < n; i++ {
			b.str(x)
		}
		out, err := in.finish(b)
		out.markup = x.markup
		return out, err
	case *List:
		if err := limited(len(x.items)); err != nil {
			return nil, err
		}
		return &List{items: repeatItems(x.items, n)}, nil
	case *Tuple:
		if err := limited(len(x.items)); err != nil {
			return nil, err
		}
		return &Tuple{items: repeatItems(x.items, n)}, nil
	}
	return nil, typeErrf("unsupported operand type(s) for *: '%s' and '%s'", v.typeName(), times.typeName())
}

func repeatItems(items []Value, n int64) []Value {
	if len(items) == 0 {
		return nil
	}
	out := make([]Value, 0, len(items)*int(n))
	for i := int64(0); i < n; i++ {
		out = append(out, items...)
	}
	return out
}

// maxIntBits bounds the integers that arithmetic may make.
const maxIntBits = 1 << 16

func (in *interp) intOp(op string, x, y Value) (Value, error) {
	a, okA := asInt(x)
	b, okB := asInt(y)
	if okA && okB {
		switch op {
		case "+":
			if c := a + b; (c > a) == (b > 0) {
				return Int(c), nil
			}
		case "-":
			if c := a - b; (c < a) == (b > 0) {
				return Int(c), nil
			}
		case "*":
			if a == 0 || b == 0 {
				return Int(0), nil
			}
			if c := a * b; c/b == a && !(a == -1 && b == math.MinInt64) && !(b == -1 && a == math.MinInt64) {
				return Int(c), nil
			}
		}
	}
	p, _ := asBig(x)
	q, _ := asBig(y)
	if err := in.charge((p.BitLen() + q.BitLen()) / 64); err != nil {
		return nil, err
	}
	r := new(big.Int)
	switch op {
	case "+":
		r.Add(p, q)
	case "-":
		r.Sub(p, q)
	case "*":
		r.Mul(p, q)
	case "/":
		return trueDiv(p, q)
	case "//", "%":
		if q.Sign() == 0 {
			return nil, &evalError{kind: "ZeroDivisionError", msg: "integer division or modulo by zero"}
		}
		m := new(big.Int)
		r.QuoRem(p, q, m)
		if m.Sign() != 0 && m.Sign() != q.Sign() {
			r.Sub(r, big.NewInt(1))
			m.Add(m, q)
		}
		if op == "%" {
			r = m
		}
	case "**":
		return in.intPow(p, q)
	}
	if r.BitLen() > maxIntBits {
		return nil, limitErrf("an integer grew over %d bits", maxIntBits)
	}
	return normInt(r), nil
}

func trueDiv(p, q *big.Int) (Value, error) {
	if q.Sign() == 0 {
		return nil, &evalError{kind: "ZeroDivisionError", msg: "division by zero"}
	}
	f, _ := new(big.Rat).SetFrac(p, q).Float64()
	if math.IsInf(f, 0) {
		return nil, &evalError{kind: "OverflowError", msg: "integer division result too large for a float"}
	}
	return Float(f), nil
}

func (in *interp) intPow(p, q *big.Int) (Value, error) {
	if q.Sign() < 0 {
		if p.Sign() == 0 {
			return nil, &evalError{kind: "ZeroDivisionError", msg: "0.0 cannot be raised to a negative power"}
		}
		a, _ := new(big.Float).SetInt(p).Float64()
		b, _ := new(big.Float).SetInt(q).Float64()
		return Float(math.Pow(a, b)), nil
	}
	if p.BitLen() > 1 && (!q.IsInt64() || q.Int64()*int64(p.BitLen()-1) > maxIntBits) {
		return nil, limitErrf("an integer grew over %d bits", maxIntBits)
	}
	if p.BitLen() <= 1 { // 0, 1 and -1 with any exponent
		switch {
		case q.Sign() == 0:
			return Int(1), nil
		case p.Sign() < 0 && q.Bit(0) == 0:
			return Int(1), nil
		}
		return normInt(p), nil
	}
	return normInt(new(big.Int).Exp(p, q, nil)), nil
}

func floatOp(op string, a, b float64) (Value, error) {
	zero := func(what string) error {
		return &evalError{kind: "ZeroDivisionError", msg: what}
	}
	switch op {
	case "+":
		return Float(a + b), nil
	case "-":
		return Float(a - b), nil
	case "*":
		return Float(a * b), nil
	case "/":
		if b == 0 {
			return nil, zero("float division by zero")
		}
		return Float(a / b), nil
	case "//", "%":
		if b == 0 {
			return nil, zero("float floor division by zero")
		}
		div, mod := floatDivMod(a, b)
		if op == "%" {
			return Float(mod), nil
		}
		return Float(div), nil
	case "**":
		if a == 0 && b < 0 {
			return nil, zero("0.0 cannot be raised to a negative power")
		}
		r := math.Pow(a, b)
		if math.IsInf(r, 0) && !math.IsInf(a, 0) && !math.IsInf(b, 0) {
			return nil, &evalError{kind: "OverflowError", msg: "numerical result out of range"}
		}
		if math.IsNaN(r) && !math.IsNaN(a) && !math.IsNaN(b) {
			return nil, valueErrf("complex numbers are not supported")
		}
		return Float(r), nil
	}
	return nil, typeErrf("unsupported operator %s", op)
}

// floatDivMod is Python's divmod of two floats.
func floatDivMod(a, b float64) (div, mod float64) {
	mod = math.Mod(a, b)
	div = (a - mod) / b
	if mod != 0 {
		if (b < 0) != (mod < 0) {
			mod += b
			div--
		}
	} else {
		mod = math.Copysign(0, b)
	}
	if div != 0 {
		floor := math.Floor(div)
		if div-floor > 0.5 {
			floor++
		}
		return floor, mod
	}
	return math.Copysign(0, a/b), mod
}

// ---- comparison

func (in *interp) compare(op string, x, y Value) (Value, error) {
	switch op {
	case "==", "!=":
		eq, err := in.equal(x, y)
		return Bool(eq == (op == "==")), err
	case "in", "not in":
		has, err := in.contains(y, x)
		return Bool(has == (op == "in")), err
	}
	c, ordered, err := in.order(op, x, y)
	if err != nil {
		return nil, err
	}
	if !ordered {
		return Bool(false), nil
	}
	switch op {
	case "<":
		return Bool(c < 0), nil
	case "<=":
		return Bool(c <= 0), nil
	case ">":
		return Bool(c > 0), nil
	}
	return Bool(c >= 0), nil
}

// cmpNumbers compares two numbers exactly; ordered is false with a NaN.
func cmpNumbers(x, y Value) (c int, ordered bool) {
	a, okA := asInt(x)
	b, okB := asInt(y)
	if okA && okB {
		switch {
		case a < b:
			return -1, true
		case a > b:
			return 1, true
		}
		return 0, true
	}
	big1, err := exact(x)
	big2, err2 := exact(y)
	if err || err2 {
		return 0, false
	}
	return big1.Cmp(big2), true
}

func exact(v Value) (f *big.Float, nan bool) {
	if x, ok := v.(Float); ok {
		if math.IsNaN(float64(x)) {
			return nil, true
		}
		return new(big.Float).SetFloat64(float64(x)), false
	}
	b, _ := asBig(v)
	return new(big.Float).SetPrec(uint(max(b.BitLen(), 64))).SetInt(b), false
}

// order is a three-way comparison for <, <=, > and >=.
func (in *interp) order(op string, x, y Value) (c int, ordered bool, err error) {
	if isNumber(x) && isNumber(y) {
		c, ordered = cmpNumbers(x, y)
		return c, ordered, nil
	}
	switch a := x.(type) {
	case undefined:
		return 0, false, a.fail()
	case Str:
		if b, ok := y.(Str); ok {
			return strings.Compare(a.s, b.s), true, in.chargeBytes(min(len(a.s), len(b.s)))
		}
	case *List:
		if b, ok := y.(*List); ok {
			return in.orderItems(op, a.items, b.items)
		}
	case *Tuple:
		if b, ok := y.(*Tuple); ok {
			return in.orderItems(op, a.items, b.items)
		}
	}
	if u, ok := y.(undefined); ok {
		return 0, false, u.fail()
	}
	return 0, false, typeErrf("'%s' not supported between instances of '%s' and '%s'", op, x.typeName(), y.typeName())
}

func (in *interp) orderItems(op string, a, b []Value) (int, bool, error) {
	if err := in.down(); err != nil {
		return 0, false, err
	}
	defer in.up()
	for i := 0; i < min(len(a), len(b)); i++ {
		eq, err := in.equal(a[i], b[i])
		if err != nil {
			return 0, false, err
		}
		if !eq {
			return in.order(op, a[i], b[i])
		}
	}
	return len(a) - len(b), true, nil
}

func (in *interp) equal(x, y Value) (bool, error) {
	if err := in.step(); err != nil {
		return false, err
	}
	if isNumber(x) && isNumber(y) {
		c, ordered := cmpNumbers(x, y)
		return ordered && c == 0, nil
	}
	switch a := x.(type) {
	case Str:
		b, ok := y.(Str)
		if !ok || len(a.s) != len(b.s) {
			return false, nil
		}
		return a.s == b.s, in.chargeBytes(len(a.s))
	case None:
		_, ok := y.(None)
		return ok, nil
	case undefined:
		_, ok := y.(undefined)
		return ok, nil
	case *List:
		b, ok := y.(*List)
		if !ok {
			return false, nil
		}
		return in.equalItems(a.items, b.items)
	case *Tuple:
		b, ok := y.(*Tuple)
		if !ok {
			return false, nil
		}
		return in.equalItems(a.items, b.items)
	case *Dict:
		b, ok := y.(*Dict)
		if !ok || len(a.entries) != len(b.entries) {
			return false, nil
		}
		return in.equalDicts(a, b)
	case *rangeVal:
		b, ok := y.(*rangeVal)
		if !ok {
			return false, nil
		}
		return a.n == b.n && (a.n == 0 || a.start == b.start && (a.n == 1 || a.step == b.step)), nil
	case *dictView:
		b, ok := y.(*dictView)
		if !ok || a.kind != b.kind || a.kind == "values" || len(a.d.entries) != len(b.d.entries) {
			return ok && a == b, nil
		}
		for i := range a.d.entries {
			has, err := in.contains(b, a.at(i))
			if err != nil || !has {
				return false, err
			}
		}
		return true, nil
	case BigInt, Bool, Int, Float:
		return false, nil
	}
	switch y.(type) {
	case BigInt, Str, undefined:
		return false, nil
	}
	return x == y, nil
}

func (in *interp) equalItems(a, b []Value) (bool, error) {
	if len(a) != len(b) {
		return false, nil
	}
	if err := in.down(); err != nil {
		return false, err
	}
	defer in.up()
	for i := range a {
		eq, err := in.equal(a[i], b[i])
		if err != nil || !eq {
			return false, err
		}
	}
	return true, nil
}

func (in *interp) equalDicts(a, b *Dict) (bool, error) {
	if err := in.down(); err != nil {
		return false, err
	}
	defer in.up()
	for _, e := range a.entries {
		i := b.find(e.hash)
		if i < 0 {
			return false, nil
		}
		eq, err := in.equal(e.val, b.entries[i].val)
		if err != nil || !eq {
			return false, err
		}
	}
	return true, nil
}

// contains is Python's x in box.
func (in *interp) contains(box, x Value) (bool, error) {
	switch b := box.(type) {
	case Str:
		s, ok := x.(Str)
		if !ok {
			return false, typeErrf("'in <string>' requires string as left operand, not %s", x.typeName())
		}
		return strings.Contains(b.s, s.s), in.chargeBytes(len(b.s))
	case *Dict:
		if err := in.chargeText(x); err != nil {
			return false, err
		}
		v, err := b.get(x)
		return v != nil, err
	case *dictView:
		switch b.kind {
		case "keys":
			v, err := b.d.get(x)
			return v != nil, err
		case "items":
			t, ok := x.(*Tuple)
			if !ok || len(t.items) != 2 {
				return false, nil
			}
			v, err := b.d.get(t.items[0])
			if v == nil || err != nil {
				return false, err
			}
			return in.equal(v, t.items[1])
		}
	case *namespace, *macro, *callable, None, Bool, Int, BigInt, Float:
		return false, typeErrf("argument of type '%s' is not iterable", box.typeName())
	}
	it, err := in.iter(box)
	if err != nil {
		return false, typeErrf("argument of type '%s' is not iterable", box.typeName())
	}
	for {
		v, ok, err := it.next()
		if err != nil || !ok {
			return false, err
		}
		if eq, err := in.equal(v, x); err != nil || eq {
			return eq, err
		}
	}
}
