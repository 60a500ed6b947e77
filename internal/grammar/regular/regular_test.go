package regular

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// TestRegexAgainstGo compares both spellings with Go's own engine on random texts.
func TestRegexAgainstGo(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, p := range []string{
		`^foo`, `foo$`, `^[a-z]+\d{2,4}$`, `a|b`, `(ab)*c`, `^(a|bc){2,3}$`, `\bfoo\b`, `^$`, `(?i)hello`, `[^a-c]x`,
		`^\w+\s`, `o\B`, `^(?:a|^b)c`, `x*`, `a{3}`, `é+`, `[à-ü]$`, `^.{2,3}$`, `\.`, `(?:a(?:b|c)?){2}$`,
	} {
		want := regexp.MustCompile(p)
		re2, err := RE2(p, false)
		if err != nil {
			t.Fatal(p, err)
		}
		ecma, err := Pattern(p, false)
		if err != nil {
			t.Fatal(p, err)
		}
		for range 1500 {
			var b strings.Builder
			for range r.IntN(8) {
				b.WriteString(
					[]string{"a", "b", "c", "f", "o", "foo", "x", " ", "1", "12", "H", "e", "L", "l", "é", "ü", "."}[r.IntN(17)],
				)
			}
			s := b.String()
			if got := re2.Match(s) != 0; got != want.MatchString(s) {
				t.Fatalf("RE2 %s on %q: %v", p, s, got)
			}
			if got := ecma.Match(s) != 0; got != want.MatchString(s) {
				t.Fatalf("ECMA %s on %q: %v", p, s, got)
			}
		}
	}
}

func TestPattern(t *testing.T) {
	for _, c := range []struct{ pattern, yes, no string }{
		{`^(?!foo)[a-z]+$`, "bar fo", "foo foobar"},
		{`^(?=.*\d)(?=.*[a-z]).{4,8}$`, "a1bb 1234567a", "abcd 1234 a1"},
		{`a(?!b)`, "ac a aba", "ab b"},
		{`^(?!.*--)[a-z-]+$`, "a-b", "a--b"},
		{`^(?:(?!ab)[abc])?$`, "a", "ab"},
		{`^\d$`, "1", "१"},             // ASCII only, as ECMA-262 says
		{`^\p{L}+$`, "aé", "1 a1"},     //
		{`^\u00e9\x41$`, "éA", "e"},    //
		{`^\ud83d\ude00$`, "😀", "x"},   // a surrogate pair is one character
		{`^[\w.\-]+$`, "a.b-c", "a/b"}, // escapes without meaning
		{`^[a\]]$`, "a ]", "b"},        //
		{`^{a}$`, "{a}", "a"},          // braces that are no quantifier
		{`^(?<year>\d{4})$`, "2024", "1"},
		{`^a{2}?$`, "aa", "a"}, // lazy: the same language
	} {
		d, err := Pattern(c.pattern, false)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		for _, s := range strings.Fields(c.yes) {
			if d.Match(s) == 0 {
				t.Errorf("%s does not match %q", c.pattern, s)
			}
		}
		for _, s := range strings.Fields(c.no) {
			if d.Match(s) != 0 {
				t.Errorf("%s matches %q", c.pattern, s)
			}
		}
	}
}

func TestPatternRefused(t *testing.T) {
	for pattern, why := range map[string]string{
		`(a)\1`:               "back-references",
		`(?<=a)b`:             "lookbehind",
		`((?!a).)*`:           "without a bound",
		`(?:a{1,999}){1,999}`: "states",
		`a.{40}b.{40}c`:       "states",
		`(`:                   "missing )",
		`a**`:                 "nothing to repeat",
		`[b-a]`:               "out of order",
		`\q`:                  "unknown escape",
		`\p{Nope}`:            "unknown Unicode property",
	} {
		_, err := Pattern(pattern, false)
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", pattern, err, why)
		}
	}
}

func randomNumber(r *rand.Rand) string {
	s := ""
	if r.IntN(3) == 0 {
		s = "-"
	}
	if r.IntN(4) == 0 {
		s += "0"
	} else {
		s += fmt.Sprint(1 + r.IntN([]int{9, 99, 1999, 15}[r.IntN(4)]))
	}
	if r.IntN(2) == 0 {
		s += "."
		for range 1 + r.IntN(3) {
			s += string("0125"[r.IntN(4)])
		}
	}
	return s
}

// TestNumbers compares bounds and multiples with exact arithmetic.
func TestNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 400 {
		c, err := ParseDecimal(randomNumber(r))
		if err != nil {
			t.Fatal(err)
		}
		bound, _ := new(big.Rat).SetString(c.String())
		cmp, err := Compare(c)
		if err != nil {
			t.Fatal(err)
		}
		c.Negative = false
		var multiple *DFA
		if c.Int+c.Frac != "" {
			if multiple, err = MultipleOf(c); err != nil && !IsTooLarge(err) {
				t.Fatal(err)
			}
		}
		for i := range 40 {
			s := randomNumber(r)
			if i%2 == 0 {
				s = new(big.Rat).Mul(bound, big.NewRat(int64(r.IntN(50)-25), 1)).FloatString(6)
			}
			x, _ := new(big.Rat).SetString(s)
			if got, want := cmp.Match(s), int32(x.Cmp(bound)+2); got != want {
				t.Fatalf("%s against %s: %d, want %d", s, bound.FloatString(6), got, want)
			}
			if multiple == nil {
				continue
			}
			divisor, _ := new(big.Rat).SetString(c.String())
			want := new(big.Rat).Quo(x, divisor).IsInt()
			if got := multiple.Match(s) != 0; got != want {
				t.Fatalf("%s of %s: %v", s, c, got)
			}
		}
		for _, s := range []string{"", "-", "01", "1.", ".5", "-00"} {
			if cmp.Match(s) != 0 {
				t.Fatalf("%q is no number", s)
			}
		}
	}
}

func TestParseDecimal(t *testing.T) {
	for in, want := range map[string]string{
		"1e3": "1000", "-1.50": "-1.5", "0.001e2": "0.1", "12e-1": "1.2", "-0.0": "0", "1E+2": "100", "5": "5",
	} {
		if d, err := ParseDecimal(in); err != nil || d.String() != want {
			t.Errorf("%s: %s %v, want %s", in, d, err, want)
		}
	}
	if _, err := ParseDecimal("1e99999"); err == nil {
		t.Error("an exponent without a bound")
	}
}

func TestEquals(t *testing.T) {
	var list []Decimal
	for _, s := range []string{"0", "-2.5", "12"} {
		d, _ := ParseDecimal(s)
		list = append(list, d)
	}
	d, err := Equals(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"0", "-0", "0.00", "-2.5", "-2.500", "12", "12.0"} {
		if d.Match(s) == 0 {
			t.Errorf("%s is missing", s)
		}
	}
	for _, s := range []string{"2.5", "1", "120", "12.", "-12"} {
		if d.Match(s) != 0 {
			t.Errorf("%s is too much", s)
		}
	}
}

func TestFormats(t *testing.T) {
	for format, texts := range map[string][2]string{
		"date":          {"2024-02-29 2000-02-29 1999-12-31", "2023-02-29 1900-02-29 2024-13-01 2024-04-31"},
		"time":          {"23:59:60Z 12:00:00.5+01:00", "24:00:00Z 12:00:60Z 12:00:00"},
		"date-time":     {"2024-01-01T00:00:00Z", "2024-01-01 2024-01-01T00:00Z"},
		"email":         {"joe@example.com", "joe joe@ @example.com a@b@c"},
		"ipv4":          {"127.0.0.1 255.255.255.255", "256.1.1.1 1.2.3 01.1.1.1"},
		"ipv6":          {"::1 1:2:3:4:5:6:7:8 ::ffff:1.2.3.4 2001:db8::", "1::2::3 1:2:3 12345::"},
		"uuid":          {"123e4567-e89b-12d3-a456-426614174000", "123e4567e89b12d3a456426614174000"},
		"uri":           {"https://a.b/c?d#e urn:x:y mailto:a@b", "//a /a a%zz:b"},
		"uri-reference": {"/a ../b ?q #f https://x", "a^b"},
		"hostname":      {"a.b-c.example", "-a a_b a..b"},
		"uri-template":  {"/a/{b} a'b {+x,y*}", "{a b} a{"}, // the apostrophe: erratum 6937
		"json-pointer":  {"/a/b~0 /", "a /~2"},
		"duration":      {"P1Y2M3DT4H5M6S PT1M P2W", "P1 P PT 1D P1W2D"},
	} {
		d, _, known, err := Format(format)
		if err != nil || !known {
			t.Errorf("%s: %v %v", format, known, err)
			continue
		}
		for i, list := range texts {
			for _, s := range strings.Fields(list) {
				if got := d.Match(s) != 0; got != (i == 0) {
					t.Errorf("%s: %q: %v", format, s, got)
				}
			}
		}
	}
	if _, _, known, err := Format("regex"); !known || err == nil {
		t.Error("which strings are patterns is not regular: the format must be refused")
	}
	if _, _, known, _ := Format("color"); known {
		t.Error("an unknown format asserts nothing")
	}
}

// TestCountAndWindow holds what liveness rests on: how many strings a state has left, and of which lengths.
func TestCountAndWindow(t *testing.T) {
	d, err := Pattern(`^(?:a|bc|d{3})$`, false)
	if err != nil {
		t.Fatal(err)
	}
	if n := d.Count(0); n != 3 {
		t.Errorf("counts %d strings, want 3", n)
	}
	for _, c := range []struct {
		lo, hi int
		want   bool
	}{{0, 0, false}, {0, 1, true}, {2, 2, true}, {3, -1, true}, {4, -1, false}, {0, -1, true}} {
		w, err := d.Window(c.lo, c.hi)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.Alive(0, c.lo, c.hi); got != c.want {
			t.Errorf("%d..%d: %v", c.lo, c.hi, got)
		}
	}
	even, err := Pattern(`^(?:aa)*$`, false)
	if err != nil {
		t.Fatal(err)
	}
	w, err := even.Window(3, 3)
	if err != nil || w.Alive(0, 3, 3) {
		t.Errorf("no string of an even length has 3 characters: %v", err)
	}
	if even.Count(0) < 1000 {
		t.Error("the language has no end")
	}
}

func FuzzPattern(f *testing.F) {
	for _, p := range []string{`^(?!foo)[a-z]+$`, `\bfoo\b`, `[^\]]{2,}`, `(a|b)*?c`, `\u{1F600}`, `(?i:x)`} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if len(p) > 200 {
			return
		}
		for i, compile := range []func(string, bool) (*DFA, error){RE2, Pattern} {
			d, err := compile(p, false)
			if err != nil {
				continue
			}
			d.Finish()
			if want, err := regexp.Compile(p); i == 0 && err == nil && !strings.ContainsAny(p, `\.$^[(`) {
				for _, s := range []string{"", "a", "foo", "é"} {
					if (d.Match(s) != 0) != want.MatchString(s) {
						t.Errorf("%q on %q", p, s)
					}
				}
			}
		}
	})
}
