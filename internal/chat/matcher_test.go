package chat

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestMatcherAtEverySplit(t *testing.T) {
	for _, c := range []struct {
		words          []string
		text, out, hit string
	}{
		{nil, "all of it", "all of it", ""},
		{[]string{"END"}, "one END two", "one ", "END"},
		{[]string{"END"}, "one EN", "one EN", ""},
		{[]string{"aab"}, "aaab", "a", "aab"},
		{[]string{"abc", "b"}, "xabc", "xa", "b"},
		{[]string{"b", "ab"}, "xab", "x", "ab"},
		{[]string{"界"}, "世界!", "世", "界"},
		{[]string{"\n\n"}, "a\n\nb", "a", "\n\n"},
		{[]string{"x"}, "x", "", "x"},
	} {
		for i := 0; i <= len(c.text); i++ {
			for j := i; j <= len(c.text); j++ {
				m := matcher{words: c.words}
				out, hit := "", ""
				for _, piece := range []string{c.text[:i], c.text[i:j], c.text[j:]} {
					if hit == "" {
						var o string
						o, hit = m.push(piece)
						out += o
					}
				}
				if hit == "" {
					out += m.flush()
				}
				if out != c.out || hit != c.hit {
					t.Errorf("%q %q at %d and %d: %q %q", c.words, c.text, i, j, out, hit)
				}
			}
		}
	}
}

func FuzzMatcher(f *testing.F) {
	f.Add("one END two", "END", "N", uint8(3))
	f.Fuzz(func(t *testing.T, text, a, b string, step uint8) {
		if a == "" || b == "" {
			return
		}
		whole := matcher{words: []string{a, b}}
		out, hit := whole.push(text)
		if hit == "" {
			out += whole.flush()
		}
		m := matcher{words: []string{a, b}}
		got, found := "", ""
		n := int(step)%7 + 1
		for rest := text; rest != "" && found == ""; {
			k := min(n, len(rest))
			var o string
			o, found = m.push(rest[:k])
			got, rest = got+o, rest[k:]
		}
		if found == "" {
			got += m.flush()
		}
		if got != out || found != hit || !strings.HasPrefix(text, got) {
			t.Errorf("%q %q %q: whole %q %q, in pieces %q %q", text, a, b, out, hit, got, found)
		}
	})
}

func TestErrorsSayWhatToDo(t *testing.T) {
	for k := range kinds {
		e := &Error{Kind: Kind(k), Model: "m", RetryAfter: 1500 * time.Millisecond}
		if e.Message() == "" || e.Kind.String() == "" || e.RetrySeconds() != 2 {
			t.Errorf("%d: %q", k, e.Message())
		}
		if AsError(errors.Join(errors.New("x"), e)) != e {
			t.Error("AsError does not find it")
		}
	}
	e := &Error{Kind: PromptTooLong, Tokens: 9120, Context: 8192}
	if m := e.Message(); !strings.Contains(m, "9,120") || !strings.Contains(m, "8,192") {
		t.Error(m)
	}
}
