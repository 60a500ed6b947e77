package tokenizer

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

// must returns the ids of a text on which no pattern runs away.
func must(ids []int32, err error) []int32 {
	if err != nil {
		panic(err)
	}
	return ids
}

// words returns what re isolates in s.
func words(t *testing.T, re *regex, s string) []string {
	t.Helper()
	b := newBudget(len(s))
	out := []string{}
	for _, c := range cut(s, re.matches(b, nil, s), isolated, false) {
		if c.end > c.start {
			out = append(out, s[c.start:c.end])
		}
	}
	if b.left < 0 {
		t.Errorf("%q takes too many steps", s)
	}
	return out
}

// TestPatternsMatchAsOnigurumaDoes compares with what testdata/gen/patterns.py recorded.
func TestPatternsMatchAsOnigurumaDoes(t *testing.T) {
	var golden struct {
		Texts []string
		Cases []struct {
			Pattern string
			Words   [][]string
		}
	}
	if err := json.NewDecoder(openCases(t, "testdata/patterns.json.gz")).Decode(&golden); err != nil ||
		len(golden.Cases) < 60 {
		t.Fatal(len(golden.Cases), err)
	}
	for _, c := range golden.Cases {
		re, err := newRegex(c.Pattern)
		if err != nil {
			t.Error(err)
			continue
		}
		for i, s := range golden.Texts {
			if got := words(t, re, s); !slices.Equal(got, c.Words[i]) {
				t.Errorf("%q cuts %q into %q, want %q", c.Pattern, s, got, c.Words[i])
				break
			}
		}
	}
	for pattern, scan := range scanners { // which are other spellings of patterns
		re, err := newRegex(pattern)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, s := range golden.Texts {
			var got []string
			for i := 0; i < len(s); {
				end := scan(s, i)
				got = append(got, s[i:end])
				i = end
			}
			if want := words(t, re, s); !slices.Equal(got, want) {
				t.Errorf("the scanner of %q cuts %q into %q, want %q", pattern, s, got, want)
				break
			}
		}
	}
}

func TestPatternsThatAreNotUnderstood(t *testing.T) {
	for pattern, want := range map[string]string{
		`(a)\1`: "not supported", `a)`: "closes nothing", `(a`: "not closed", `[a`: "not closed", `*a`: "repeats nothing", `(?x: a)`: "not supported",
		`\p{Nonsense}`: "not known", `\p`: "braces", `\xe9`: "a byte", `\u12`: "hexadecimal", `[b-a]`: "a range", `[[:alpha:]]`: "POSIX",
		`(?<=a+)b`: "look behind", `a{1001}`: "interval", `(?i:ss)`: "one character", `(?i:ß)`: "several", `\Ga`: "not supported", `\`: "backslash",
		`((((a{999}){999}){999}){999})`: "instructions", `(((((){999}){999}){999}){999})`: "instructions",
		strings.Repeat("(", 300) + strings.Repeat(")", 300): "nested", strings.Repeat("[", 300): "nested", strings.Repeat("a", maxPattern+1): "limit",
	} {
		if _, err := newRegex(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: error %v, want one with %q", pattern, err, want)
		}
	}
}

// TestRunawayTextIsRefused: a text on which a pattern backtracks without end has no ids, on any machine and under any
// load; it must not get those of a text in one piece.
func TestRunawayTextIsRefused(t *testing.T) {
	part := `{"model":{"type":"BPE","vocab":{"a":0,"!":1,"aa":2},"merges":["a a"]},`
	pre := part + `"pre_tokenizer":{"type":"Split","behavior":"Isolated","invert":false,"pattern":{"Regex":"(?:a+)+b|!"}}}`
	norm := part + `"normalizer":{"type":"Replace","content":"","pattern":{"Regex":"(?:a+)+b"}}}`
	for name, file := range map[string]string{"pre-tokenizer": pre, "normalizer": norm} {
		tok, err := FromJSON([]byte(file))
		if err != nil {
			t.Fatal(name, err)
		}
		if ids, err := tok.Encode(nil, strings.Repeat("a", 8)+"!", Options{}); err != nil ||
			!slices.Equal(ids, []int32{2, 2, 2, 2, 1}) {
			t.Errorf("%s: %v, %v", name, ids, err)
		}
		ids, err := tok.Encode(nil, strings.Repeat("a", 64)+"!", Options{})
		if !errors.Is(err, ErrTooManySteps) || ids != nil || !strings.Contains(err.Error(), "65 bytes") {
			t.Errorf("%s: a text that backtracks without end: %v, %v", name, ids, err)
		}
		if ids, err := tok.EncodeParts(nil, []Part{{Text: "aa!"}}, Options{}); err != nil ||
			!slices.Equal(ids, []int32{2, 1}) {
			t.Errorf("%s: the next text: %v, %v", name, ids, err)
		}
	}
}

// TestStepsAreCounted: a search takes the same steps each time, and ends where they run out.
func TestStepsAreCounted(t *testing.T) {
	re, err := newRegex(`(?:a+)+b`)
	if err != nil {
		t.Fatal(err)
	}
	s := strings.Repeat("a", 12)
	full := &budget{1 << 30}
	re.matches(full, nil, s)
	took := 1<<30 - full.left
	for _, c := range []struct{ steps, left int64 }{{took, 0}, {took + 5, 5}} {
		b := &budget{c.steps}
		if re.matches(b, nil, s); b.left != c.left || b.left < 0 {
			t.Errorf("of %d steps %d are left, want %d", c.steps, b.left, c.left)
		}
	}
	short := &budget{took / 2}
	if re.matches(short, nil, s); short.left >= 0 || short.left < -100 {
		t.Errorf("half of the steps: %d left", short.left)
	}
}
