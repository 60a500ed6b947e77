package chattmpl

import (
	"math"
	"math/big"
	"strings"
	"time"
)

// cycler is what cycler() returns.
type cycler struct {
	items []Value
	pos   int
}

func (*cycler) typeName() string { return "Cycler" }

func (c *cycler) attr(name string) Value {
	switch name {
	case "current":
		return c.items[c.pos]
	case "pos":
		return Int(c.pos)
	case "items":
		return &Tuple{items: c.items}
	case "next":
		return &callable{"next", func(_ *interp, a *args) (Value, error) {
			v := c.items[c.pos]
			c.pos = (c.pos + 1) % len(c.items)
			return v, nil
		}}
	case "reset":
		return &callable{"reset", func(_ *interp, a *args) (Value, error) {
			c.pos = 0
			return None{}, nil
		}}
	}
	return nil
}

// joiner is what joiner() returns: empty at the first call, then the separator.
type joiner struct {
	sep  Value
	used bool
}

func (*joiner) typeName() string { return "Joiner" }

func (in *interp) globals() map[string]Value {
	g := map[string]Value{}
	for name, fn := range map[string]func(*interp, *args) (Value, error){
		"range": globalRange, "dict": globalDict, "namespace": globalNamespace, "cycler": globalCycler,
		"joiner": globalJoiner, "lipsum": globalLipsum, "raise_exception": globalRaise, "strftime_now": globalStrftime,
	} {
		g[name] = &callable{name, fn}
	}
	return g
}

// maxRange is the sandbox's limit on the length of a range.
const maxRange = 100000

func globalRange(in *interp, a *args) (Value, error) {
	if err := a.noKeywords("range"); err != nil {
		return nil, err
	}
	if len(a.pos) == 0 || len(a.pos) > 3 {
		return nil, typeErrf("range expected 1 to 3 arguments, got %d", len(a.pos))
	}
	n := [3]*big.Int{big.NewInt(0), nil, big.NewInt(1)}
	for i, v := range a.pos {
		b, ok := asBig(v)
		if !ok {
			if u, isU := v.(undefined); isU {
				return nil, typeErrf("'%s' object cannot be interpreted as an integer", u.typeName())
			}
			return nil, typeErrf("'%s' object cannot be interpreted as an integer", v.typeName())
		}
		if len(a.pos) == 1 {
			i = 1
		}
		n[i] = b
	}
	if n[2].Sign() == 0 {
		return nil, valueErrf("range() arg 3 must not be zero")
	}
	span := new(big.Int).Sub(n[1], n[0])
	count := new(big.Int)
	if span.Sign() == n[2].Sign() && span.Sign() != 0 {
		span.Sub(span, big.NewInt(int64(n[2].Sign())))
		count.Quo(span, n[2])
		count.Add(count, big.NewInt(1))
	}
	if count.Cmp(big.NewInt(maxRange)) > 0 {
		return nil, &evalError{
			kind: "OverflowError",
			msg:  "range too big, the sandbox blocks ranges larger than 100000",
		}
	}
	for _, b := range n {
		if b.BitLen() > 62 {
			return nil, &evalError{kind: "OverflowError", msg: "range bound does not fit 62 bits"}
		}
	}
	return &rangeVal{n[0].Int64(), n[1].Int64(), n[2].Int64(), count.Int64()}, nil
}

// dictFrom is Python's dict(mapping or pairs, **keywords).
func (in *interp) dictFrom(a *args, fn string) (*Dict, error) {
	if len(a.pos) > 1 {
		return nil, typeErrf("%s expected at most 1 argument, got %d", fn, len(a.pos))
	}
	d := &Dict{}
	if len(a.pos) == 1 {
		if err := in.addPairs(d, a.pos[0]); err != nil {
			return nil, err
		}
	}
	for _, kv := range a.kw {
		if err := d.set(lit(kv.Key), kv.Value); err != nil {
			return nil, err
		}
	}
	return d, in.charge(len(d.entries))
}

func (in *interp) addPairs(d *Dict, v Value) error {
	if m, ok := v.(*Dict); ok {
		for _, e := range m.entries {
			if err := d.set(e.key, e.val); err != nil {
				return err
			}
		}
		return in.charge(len(m.entries))
	}
	if u, ok := v.(undefined); ok {
		return u.fail() // dict() looks for the attribute keys
	}
	it, err := in.iter(v)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		p, ok, err := it.next()
		if err != nil || !ok {
			return err
		}
		kv, err := in.items(p)
		if err != nil {
			return typeErrf("cannot convert dictionary update sequence element #%d to a sequence", i)
		}
		if len(kv) != 2 {
			return valueErrf("dictionary update sequence element #%d has length %d; 2 is required", i, len(kv))
		}
		if err := d.set(kv[0], kv[1]); err != nil {
			return err
		}
	}
}

func globalDict(in *interp, a *args) (Value, error) { return in.dictFrom(a, "dict") }

func dictFromKeys(in *interp, a *args) (Value, error) {
	v, err := a.bind("fromkeys", "iterable", "value?", "/")
	if err != nil {
		return nil, err
	}
	it, err := in.iter(v[0])
	if err != nil {
		return nil, err
	}
	var val Value = None{}
	if v[1] != nil {
		val = v[1]
	}
	d := &Dict{}
	for {
		k, ok, err := it.next()
		if err != nil || !ok {
			return d, err
		}
		if err := d.set(k, val); err != nil {
			return nil, err
		}
	}
}

func checkNamespaceName(name string) error {
	if strings.HasPrefix(name, "_") {
		return &evalError{
			kind: "SecurityError",
			msg:  "chat templates cannot store underscore-prefixed attributes on a namespace, but got '" + name + "', rename the attribute",
		}
	}
	return nil
}

func globalNamespace(in *interp, a *args) (Value, error) {
	d, err := in.dictFrom(a, "namespace")
	if err != nil {
		return nil, err
	}
	for _, e := range d.entries {
		if k, ok := e.key.(Str); ok {
			if err := checkNamespaceName(k.s); err != nil {
				return nil, err
			}
		}
	}
	return &namespace{attrs: *d}, nil
}

func globalCycler(in *interp, a *args) (Value, error) {
	if err := a.noKeywords("cycler"); err != nil {
		return nil, err
	}
	if len(a.pos) == 0 {
		return nil, &evalError{kind: "RuntimeError", msg: "at least one item has to be provided"}
	}
	return &cycler{items: a.pos}, nil
}

func globalJoiner(in *interp, a *args) (Value, error) {
	v, err := a.bind("joiner", "sep?")
	if err != nil {
		return nil, err
	}
	var sep Value = lit(", ")
	if v[0] != nil {
		sep = v[0]
	}
	return &joiner{sep: sep}, nil
}

// globalLipsum is refused, as the filter random is.
func globalLipsum(in *interp, a *args) (Value, error) {
	return nil, &evalError{kind: "SecurityError", msg: "lipsum is refused: a prompt must not depend on chance"}
}

// globalRaise is how a template refuses its input.
func globalRaise(in *interp, a *args) (Value, error) {
	v, err := a.bind("raise_exception", "message")
	if err != nil {
		return nil, err
	}
	s, err := in.str(v[0])
	if err != nil {
		return nil, err
	}
	return nil, &evalError{kind: "TemplateError", msg: s.s, err: ErrRaised}
}

func globalStrftime(in *interp, a *args) (Value, error) {
	v, err := a.bind("strftime_now", "format")
	if err != nil {
		return nil, err
	}
	f, ok := v[0].(Str)
	if !ok {
		return nil, typeErrf("strftime() argument 1 must be str, not %s", v[0].typeName())
	}
	if len(f.s) > math.MaxUint16 {
		return nil, limitErrf("time format of %d bytes is too long", len(f.s))
	}
	if in.now == nil {
		in.now = time.Now
	}
	return fully(strftime(in.now(), f.s), f.tainted()), in.chargeBytes(8 * len(f.s))
}
