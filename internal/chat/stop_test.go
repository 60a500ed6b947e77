package chat

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// firstStop is the definition: the stop string that is complete first, of those the longest.
func firstStop(text string, stops []string) (before, hit string) {
	for end := 1; end <= len(text); end++ {
		for _, s := range stops {
			if s != "" && strings.HasSuffix(text[:end], s) && len(s) > len(hit) {
				hit = s
			}
		}
		if hit != "" {
			return text[:end-len(hit)], hit
		}
	}
	return text, ""
}

// checkStops feeds pieces to a matcher and compares with the definition.
func checkStops(t *testing.T, pieces, stops []string) {
	t.Helper()
	m := newStopMatcher(stops)
	text, got, hit := strings.Join(pieces, ""), "", ""
	fed := ""
	for _, p := range pieces {
		out, found := m.push(p)
		got += out
		fed += p
		if found {
			hit = m.hit
			break
		}
		// What is held back must be the longest end of the text that begins a stop string, and no more.
		held := fed[len(got):]
		for i := range fed {
			if begins(fed[i:], stops) {
				if fed[i:] != held {
					t.Fatalf("pieces %q, stops %q: %q is held back, want %q", pieces, stops, held, fed[i:])
				}
				held = ""
				break
			}
		}
		if held != "" && !begins(held, stops) {
			t.Fatalf("pieces %q, stops %q: %q is held back for nothing", pieces, stops, held)
		}
	}
	if hit == "" {
		got += m.flush()
	}
	want, wantHit := firstStop(text, stops)
	if got != want || hit != wantHit {
		t.Fatalf("pieces %q, stops %q: released %q, hit %q; want %q, %q", pieces, stops, got, hit, want, wantHit)
	}
}

func begins(s string, stops []string) bool {
	for _, stop := range stops {
		if len(s) < len(stop) && strings.HasPrefix(stop, s) {
			return true
		}
	}
	return false
}

var stopTests = []struct {
	text  string
	stops []string
}{
	{"hello world", []string{"wor"}},
	{"hello world", []string{"xyz"}},
	{"hello world", []string{"world", "or"}},      // complete first wins
	{"hello world", []string{"lo wo", "o wo"}},    // complete together: the longest
	{"aaaaab", []string{"aaab"}},                  // falls back inside itself
	{"abababac", []string{"ababac"}},              //
	{"abc", []string{"abcd"}},                     // held to the end, then released
	{"a\n\nUser: b", []string{"\nUser:", "\n\n"}}, //
	{"äöü€", []string{"€", "öü"}},                 // bytes of characters
	{"x", []string{"x"}},                          //
	{"the end.", []string{"the end.", "e", "."}},  //
	{"aaab", []string{"aab"}},                     // begins inside what failed
	{"xabc", []string{"abc", "b"}},                // complete first wins, also inside another
	{"a\n\nb", []string{"\n\n"}},                  //
}

func TestStopStringsAcrossPieces(t *testing.T) {
	for _, tt := range stopTests {
		checkStops(t, strings.Split(tt.text, ""), tt.stops)
		for i := range len(tt.text) + 1 {
			for j := i; j <= len(tt.text); j++ {
				checkStops(t, []string{tt.text[:i], tt.text[i:j], tt.text[j:]}, tt.stops)
			}
		}
	}
}

func FuzzStopStrings(f *testing.F) {
	for _, tt := range stopTests {
		f.Add(tt.text, strings.Join(tt.stops, "|"), uint64(0x0123456789))
	}
	f.Fuzz(func(t *testing.T, text, joined string, cuts uint64) {
		if len(text) > 200 || len(joined) > 100 || !utf8.ValidString(joined) || !utf8.ValidString(text) {
			return
		}
		var stops []string
		for _, s := range strings.Split(joined, "|") {
			if s != "" {
				stops = append(stops, s)
			}
		}
		if len(stops) == 0 {
			return
		}
		var pieces []string
		for rest := text; rest != ""; cuts = cuts>>4 | cuts<<60 {
			n := min(int(cuts&15), len(rest))
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
			if cuts == 0 {
				pieces, rest = append(pieces, rest), ""
			}
		}
		checkStops(t, pieces, stops)
	})
}

// TestFlushForgets: text behind a call or a second answer does not complete a stop string that began before it.
func TestFlushForgets(t *testing.T) {
	m := newStopMatcher([]string{"END"})
	if out, found := m.push("one EN"); out != "one " || found {
		t.Fatalf("%q %v", out, found)
	}
	if out := m.flush(); out != "EN" {
		t.Errorf("flushed %q", out)
	}
	if out, found := m.push("D two"); out != "D two" || found {
		t.Errorf("%q %v", out, found)
	}
}
