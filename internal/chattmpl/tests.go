package chattmpl

import "math"

type testFunc func(in *interp, x Value, a *args) (Value, error)

// testTable is filled in init because select and the test named test read it.
var testTable map[string]testFunc

func init() {
	testTable = map[string]testFunc{
		"odd": modTest(2, 1), "even": modTest(2, 0), "divisibleby": testDivisibleBy,
		"defined":   typeTest(func(v Value) bool { _, u := v.(undefined); return !u }),
		"undefined": typeTest(func(v Value) bool { _, u := v.(undefined); return u }),
		"filter":    nameTest(func(s string) bool { return filterTable[s] != nil || s == "urlize" }),
		"test":      nameTest(func(s string) bool { return testTable[s] != nil }),
		"none":      typeTest(func(v Value) bool { _, n := v.(None); return n }),
		"boolean":   typeTest(func(v Value) bool { _, b := v.(Bool); return b }),
		"false":     typeTest(func(v Value) bool { b, ok := v.(Bool); return ok && !bool(b) }),
		"true":      typeTest(func(v Value) bool { b, ok := v.(Bool); return ok && bool(b) }),
		"integer": typeTest(func(v Value) bool {
			_, b := v.(Bool)
			return !b && isInteger(v)
		}),
		"float":    typeTest(func(v Value) bool { _, f := v.(Float); return f }),
		"lower":    caseTest(isLower),
		"upper":    caseTest(isUpper),
		"string":   typeTest(func(v Value) bool { _, s := v.(Str); return s }),
		"mapping":  typeTest(func(v Value) bool { _, d := v.(*Dict); return d }),
		"number":   typeTest(isNumber),
		"sequence": typeTest(isSequence),
		"sameas":   testSameAs,
		"iterable": typeTest(isIterable),
		"callable": typeTest(isCallable),
		"escaped":  typeTest(func(v Value) bool { s, ok := v.(Str); return ok && s.markup }),
		"in":       testIn,
		"==":       compareTest("=="), "eq": compareTest("=="), "equalto": compareTest("=="),
		"!=": compareTest("!="), "ne": compareTest("!="),
		">": compareTest(">"), "gt": compareTest(">"), "greaterthan": compareTest(">"),
		"ge": compareTest(">="), ">=": compareTest(">="),
		"<": compareTest("<"), "lt": compareTest("<"), "lessthan": compareTest("<"),
		"<=": compareTest("<="), "le": compareTest("<="),
	}
}

func typeTest(f func(Value) bool) testFunc {
	return func(_ *interp, x Value, a *args) (Value, error) {
		if _, err := a.bind("test"); err != nil {
			return nil, err
		}
		return Bool(f(x)), nil
	}
}

func nameTest(f func(string) bool) testFunc {
	return func(_ *interp, x Value, a *args) (Value, error) {
		if _, err := a.bind("test"); err != nil {
			return nil, err
		}
		if _, err := hashOf(x); err != nil {
			return nil, err
		}
		s, ok := x.(Str)
		return Bool(ok && f(s.s)), nil
	}
}

func caseTest(f func(string) bool) testFunc {
	return func(in *interp, x Value, a *args) (Value, error) {
		if _, err := a.bind("test"); err != nil {
			return nil, err
		}
		s, err := in.str(x)
		return Bool(f(s.s)), err
	}
}

func modTest(by, want int64) testFunc {
	return func(in *interp, x Value, a *args) (Value, error) {
		if _, err := a.bind("test"); err != nil {
			return nil, err
		}
		r, err := in.binary("%", x, Int(by))
		if err != nil {
			return nil, err
		}
		return in.compare("==", r, Int(want))
	}
}

func testDivisibleBy(in *interp, x Value, a *args) (Value, error) {
	v, err := a.bind("divisibleby", "num")
	if err != nil {
		return nil, err
	}
	r, err := in.binary("%", x, v[0])
	if err != nil {
		return nil, err
	}
	return in.compare("==", r, Int(0))
}

func isSequence(v Value) bool {
	switch v.(type) {
	case Str, *List, *Tuple, *Dict, *rangeVal, undefined:
		return true
	}
	return false
}

func isIterable(v Value) bool {
	switch v.(type) {
	case Str, *List, *Tuple, *Dict, *rangeVal, *dictView, *iterator, *loopCtx, undefined:
		return true
	}
	return false
}

func isCallable(v Value) bool {
	switch v.(type) {
	case *macro, *callable, *loopCtx, *joiner, undefined:
		return true
	}
	return false
}

// testSameAs is identity, which values of different kinds never have. Equal
// small values count as the same, as they do in CPython.
func testSameAs(in *interp, x Value, a *args) (Value, error) {
	v, err := a.bind("sameas", "other")
	if err != nil {
		return nil, err
	}
	if x.typeName() != v[0].typeName() {
		return Bool(false), nil
	}
	switch p := x.(type) {
	case None, Bool, Int, Str:
		return in.compare("==", x, v[0])
	case Float:
		q := v[0].(Float)
		return Bool(math.Float64bits(float64(p)) == math.Float64bits(float64(q))), nil
	case undefined, BigInt:
		return Bool(false), nil
	}
	return Bool(x == v[0]), nil
}

func testIn(in *interp, x Value, a *args) (Value, error) {
	v, err := a.bind("in", "seq")
	if err != nil {
		return nil, err
	}
	return in.compare("in", x, v[0])
}

func compareTest(op string) testFunc {
	return func(in *interp, x Value, a *args) (Value, error) {
		v, err := a.bind(op, "other", "/")
		if err != nil {
			return nil, err
		}
		return in.compare(op, x, v[0])
	}
}
