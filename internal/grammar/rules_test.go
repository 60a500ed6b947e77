package grammar

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

const jsonGBNF = `# JSON as llama.cpp's examples have it
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws

string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws

number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws

# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= | " " | "\n" [ \t]{0,20}
`

func TestGBNF(t *testing.T) {
	for _, c := range []struct{ src, yes, no string }{
		{jsonGBNF, "{}|{\"a\": [1, 2.5e3, {\"b\":null}]}|{\"é\\u00e9\":\"x\"}", "[]|{\"a\"}|{a:1}"},
		{"root ::= (expr \"=\" term \"\\n\")+\nexpr ::= term ([-+*/] term)*\nterm ::= num | \"(\" expr \")\"\nnum " +
			"::= [0-9]+", "1=1\n|(1+2)*3=9\n1=1\n", "1=1|=1\n"},
		{`root ::= "é" [α-ω]{2,3} .`, "éαβx|éωωω😀", "éα|eαβx"},
		{`root ::= [^\n]+ | "\x41\u00e9\U0001F600"`, "abc|Aé😀", "\n"},
		{"root ::= a a\na ::= \"(\" a \")\" | \"\"", "()|(())()|", "(|)("},
		{"root ::= \"a\"{2} \"b\"{0,2} \"c\"{1,}", "aac|aabbccc", "ac|aabbbc|aa"},
		{"root ::= b | \"x\"\nb ::= \"y\" b", "x", "y"}, // b derives no text: no token may lead into it
		{"root ::= \"a\" root | \"b\"", "b|aaab", "a"},
	} {
		g, err := GBNF(c.src)
		if err != nil {
			t.Errorf("%s: %v", c.src, err)
			continue
		}
		for _, s := range strings.Split(c.yes, "|") {
			if !fits(t, g, s) {
				t.Errorf("%.30s…: %q does not fit", c.src, s)
			}
		}
		for _, s := range strings.Split(c.no, "|") {
			if fits(t, g, s) {
				t.Errorf("%.30s…: %q fits", c.src, s)
			}
		}
	}
}

func TestGBNFRefused(t *testing.T) {
	for src, why := range map[string]string{
		"root ::= root \"a\" | \"b\"":           "left recursion",
		"root ::= a | \"x\"\na ::= b?  root":    "left recursion",
		"root ::= a":                            "not defined",
		"root ::= \"a":                          "line 1",
		"root ::= <think>":                      "tokens",
		"root ::= \"a\"{99999}":                 "repetition",
		"other ::= \"a\"":                       "not defined",
		"root ::= a\na ::= \"x\" a":             "derives no text",
		"root ::= \"a\"\nroot ::= \"b\"":        "twice",
		"root ::= (\"a\"{1000}){1000} {100}":    "states",
		"root ::= " + strings.Repeat("(", 9999): "nested",
	} {
		if strings.HasSuffix(src, "b?  root") {
			src += "\nb ::= \"b\""
		}
		if _, err := GBNF(src); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%.40s: %v, want %q", src, err, why)
		}
	}
}

// TestDeepRecursion holds that right recursion needs no stack, and other recursion has the limit.
func TestDeepRecursion(t *testing.T) {
	g, err := GBNF("root ::= \"a\" root | \"b\"")
	if err != nil {
		t.Fatal(err)
	}
	if !fits(t, g, strings.Repeat("a", 5*MaxDepth)+"b") {
		t.Error("right recursion is bounded")
	}
	if g, err = GBNF("root ::= \"(\" root \")\" | \"x\""); err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := g.Matcher().Accept([]byte(strings.Repeat("(", MaxDepth+2))); ok {
		t.Error("deeper than the limit")
	}
}

func TestRuleMasks(t *testing.T) {
	tokens := testTokens()
	end := int32(len(tokens) - 2)
	v, err := NewVocabulary(tokens, []int32{end})
	if err != nil {
		t.Fatal(err)
	}
	mask := make([]uint64, v.Words())
	r := rand.New(rand.NewPCG(9, 9))
	g, err := GBNF(jsonGBNF)
	if err != nil {
		t.Fatal(err)
	}
	k := NewMasker(g, v)
	for range 30 {
		m := g.Matcher()
		var text []byte
		for range 40 {
			allowed := checkMask(t, k, m, mask, string(text))
			if len(allowed) == 0 {
				t.Fatalf("nothing may follow %q", text)
			}
			id := allowed[r.IntN(len(allowed))]
			if id == end {
				if !json.Valid(text) {
					t.Fatalf("%q", text)
				}
				break
			}
			m, _, _ = k.AcceptToken(m, id)
			text = append(text, tokens[id]...)
		}
	}
}

func FuzzGBNF(f *testing.F) {
	f.Add(jsonGBNF, `{"a":1}`)
	f.Add("root ::= a a\na ::= \"(\" a \")\" | \"\"", "(())")
	f.Add("root ::= [^a-z\\n]{2,} | .", "AB")
	f.Fuzz(func(t *testing.T, src, text string) {
		if len(src) > 600 || len(text) > 200 {
			return
		}
		if g, err := GBNF(src); err == nil {
			if m, ok, err := g.Matcher().Accept([]byte(text)); ok && err == nil {
				m.Accepting()
				m.Forced()
			}
		}
	})
}

func TestLark(t *testing.T) {
	for _, c := range []struct{ src, yes, no string }{
		{`start: "a" NAME ("," NAME)* -> list
NAME: /[a-z]+/ // names
%ignore " "+`, "a b|a b , cd| a  b", "a|a b,"},
		{`
?start: sum
?sum: product
    | sum "+" product   -> add
    | sum "-" product   -> sub
?product: atom
    | product "*" atom  -> mul
?atom: NUMBER           -> number
     | "(" sum ")"
%import common.NUMBER
%import common.WS_INLINE
%ignore WS_INLINE`, "1+2*3|(1 - 2.5) * 3e2|1", "1+|()|1 +* 2"},
		{`start: "x"~2..3 ["y"] "0".."3" "SELECT"i`, "xx0select|xxxy3SELECT", "x0select|xx4select"},
		{`start: ESC
%import common.ESCAPED_STRING -> ESC`, `"a\"b"`, `"a`},
		{`start: A | B
A.2: "a" /\d{2}/
B: /(?i:yes|no)/`, "a12|YES", "a1|yesno"},
	} {
		g, err := Lark(c.src)
		if err != nil {
			t.Errorf("%s: %v", c.src, err)
			continue
		}
		for _, s := range strings.Split(c.yes, "|") {
			if !fits(t, g, s) {
				t.Errorf("%.40s…: %q does not fit", c.src, s)
			}
		}
		for _, s := range strings.Split(c.no, "|") {
			if fits(t, g, s) {
				t.Errorf("%.40s…: %q fits", c.src, s)
			}
		}
	}
	for src, why := range map[string]string{
		"start: a{b}":                      "templates",
		"start: b":                         "not defined",
		"%declare A\nstart: A":             "%declare",
		"start: %json {}":                  "not supported",
		"start: <think>":                   "not supported",
		"%import python.NAME":              "only common",
		"start: a\na: b\nb: a":             "derives no text",
		"start: /a(?<=b)/":                 "lookbehind",
		"start: \"a":                       "line 1",
		"start: a \"x\"\na: start | \"y\"": "left recursion",
	} {
		if _, err := Lark(src); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", src, err, why)
		}
	}
}

func FuzzLark(f *testing.F) {
	f.Add("?start: sum\nsum: sum \"+\" NUMBER | NUMBER\n%import common.NUMBER\n%ignore \" \"", "1+2")
	f.Add("start: \"a\"~1..2 [/b+/i] -> x", "aB")
	f.Fuzz(func(t *testing.T, src, text string) {
		if len(src) > 600 || len(text) > 200 {
			return
		}
		if g, err := Lark(src); err == nil {
			g.Matcher().Accept([]byte(text))
		}
	})
}
