package chattmpl

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

func filterFloat(in *interp, x Value, a *args) (Value, error) {
	v, err := a.bind("float", "default?")
	if err != nil {
		return nil, err
	}
	f, ok, err := toFloat(x)
	if err != nil {
		return nil, err
	}
	if ok {
		return Float(f), nil
	}
	if v[0] != nil {
		return v[0], nil
	}
	return Float(0), nil
}

// toFloat is Python's float(); ok is false where that raises TypeError or ValueError.
func toFloat(x Value) (f float64, ok bool, err error) {
	if s, isStr := x.(Str); isStr {
		f, ok = parseFloat(s.s)
		return f, ok, nil
	}
	if u, isU := x.(undefined); isU {
		return 0, false, u.fail()
	}
	f, ok = asFloat(x)
	if ok && math.IsInf(f, 0) {
		if _, big := x.(BigInt); big {
			return 0, false, &evalError{kind: "OverflowError", msg: "int too large to convert to float"}
		}
	}
	return f, ok, nil
}

// parseFloat reads a float as Python's float() does.
func parseFloat(s string) (float64, bool) {
	s = strings.TrimFunc(s, isSpace)
	t, ok := dropUnderscores(s)
	if !ok || strings.ContainsAny(t, "xXpP") {
		return 0, false
	}
	if len(t) == 4 && (t[0] == '-' || t[0] == '+') && strings.EqualFold(t[1:], "nan") {
		t = t[1:]
	}
	f, err := strconv.ParseFloat(t, 64)
	if err != nil {
		if ne, isNum := err.(*strconv.NumError); !isNum || ne.Err != strconv.ErrRange {
			return 0, false
		}
	}
	return f, true
}

// dropUnderscores removes single underscores between digits.
func dropUnderscores(s string) (string, bool) {
	if !strings.Contains(s, "_") {
		return s, true
	}
	for i := range s {
		if s[i] == '_' && (i == 0 || i+1 == len(s) || !isHex(s[i-1]) || !isHex(s[i+1])) {
			return "", false
		}
	}
	return strings.ReplaceAll(s, "_", ""), true
}

// parseInt reads an integer as Python's int(s, base) does.
func parseInt(s string, base int64) (Value, bool) {
	s = strings.TrimFunc(s, isSpace)
	sign := ""
	if s != "" && (s[0] == '+' || s[0] == '-') {
		sign, s = strings.TrimPrefix(s[:1], "+"), s[1:]
	}
	prefixes := map[string]int64{"0x": 16, "0o": 8, "0b": 2}
	if len(s) > 2 {
		if b, ok := prefixes[strings.ToLower(s[:2])]; ok && (base == 0 || base == b) {
			base, s = b, strings.TrimPrefix(s[2:], "_")
		}
	}
	if base == 0 {
		base = 10
		if len(s) > 1 && s[0] == '0' && strings.Trim(s, "0_") != "" {
			return nil, false
		}
	}
	if s == "" || strings.HasPrefix(s, "_") || strings.HasSuffix(s, "_") || strings.Contains(s, "__") ||
		len(s) > maxIntDigits {
		return nil, false
	}
	s = strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII && unicode.Is(unicode.Nd, r) {
			return decimalDigit(r)
		}
		return r
	}, strings.ReplaceAll(s, "_", ""))
	if s[0] == '+' || s[0] == '-' {
		return nil, false
	}
	n, ok := new(big.Int).SetString(sign+s, int(base))
	if !ok {
		return nil, false
	}
	return normInt(n), true
}

// decimalDigit maps a decimal digit of any script to ASCII: Unicode keeps them
// in runs of ten.
func decimalDigit(r rune) rune {
	zero := r
	for n := 0; n < 9 && unicode.Is(unicode.Nd, zero-1); n++ {
		zero--
	}
	if r-zero > 9 {
		return r
	}
	return '0' + (r - zero)
}

func filterInt(in *interp, x Value, a *args) (Value, error) {
	v, err := a.bind("int", "default?", "base?")
	if err != nil {
		return nil, err
	}
	base := int64(10)
	if v[1] != nil {
		if base, err = indexInt(v[1], "base"); err != nil {
			return nil, err
		}
	}
	var def Value = Int(0)
	if v[0] != nil {
		def = v[0]
	}
	if err := in.step(); err != nil {
		return nil, err
	}
	switch t := x.(type) {
	case undefined:
		return nil, t.fail()
	case Str:
		if base == 0 || base >= 2 && base <= 36 {
			if n, ok := parseInt(t.s, base); ok {
				return n, nil
			}
		}
		f, ok := parseFloat(t.s)
		if !ok || math.IsNaN(f) || math.IsInf(f, 0) {
			return def, nil
		}
		return truncFloat(f), nil
	case Float:
		f := float64(t)
		if math.IsInf(f, 0) {
			return nil, &evalError{kind: "OverflowError", msg: "cannot convert float infinity to integer"}
		}
		if math.IsNaN(f) {
			return def, nil
		}
		return truncFloat(f), nil
	}
	if b, ok := asBig(x); ok {
		return normInt(b), nil
	}
	return def, nil
}

func truncFloat(f float64) Value {
	n, _ := big.NewFloat(math.Trunc(f)).Int(nil)
	return normInt(n)
}

func filterRound(in *interp, x Value, a *args) (Value, error) {
	v, err := a.bind("round", "precision?", "method?")
	if err != nil {
		return nil, err
	}
	prec := int64(0)
	precVal := v[0]
	if precVal != nil && !isNone(precVal) {
		if prec, err = indexInt(precVal, "precision"); err != nil {
			return nil, err
		}
	}
	how := "common"
	if s, ok := v[1].(Str); ok {
		how = s.s
	}
	if how != "common" && how != "ceil" && how != "floor" {
		return nil, &evalError{kind: "FilterArgumentError", msg: "method must be common, ceil or floor"}
	}
	if u, ok := x.(undefined); ok {
		return nil, u.fail()
	}
	if !isNumber(x) {
		return nil, typeErrf("type %s doesn't define __round__ method", x.typeName())
	}
	if how == "common" {
		if isInteger(x) {
			return in.roundInt(x, prec)
		}
		return Float(roundFloat(float64(x.(Float)), prec)), nil
	}
	f, _ := asFloat(x)
	p := math.Pow(10, float64(prec))
	y := math.Floor(f * p)
	if how == "ceil" {
		y = math.Ceil(f * p)
	}
	return floatOp("/", y, p)
}

// roundFloat rounds to decimal places, half to even on the exact value.
func roundFloat(f float64, prec int64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) || prec > 323 {
		return f
	}
	if prec < -308 {
		return math.Copysign(0, f)
	}
	if prec >= 0 {
		r, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(prec), 64), 64)
		return r
	}
	p := math.Pow(10, float64(-prec))
	return math.RoundToEven(f/p) * p
}

func (in *interp) roundInt(x Value, prec int64) (Value, error) {
	b, _ := asBig(x)
	if prec >= 0 {
		return normInt(b), nil
	}
	if -prec > int64(b.BitLen()) {
		return Int(0), nil
	}
	p := new(big.Int).Exp(big.NewInt(10), big.NewInt(-prec), nil)
	q, m := new(big.Int).DivMod(b, p, new(big.Int))
	switch c := new(big.Int).Lsh(m, 1).Cmp(p); {
	case c > 0, c == 0 && q.Bit(0) == 1:
		q.Add(q, big.NewInt(1))
	}
	return normInt(q.Mul(q, p)), nil
}
