package sandbox

import (
	"strings"
	"testing"
)

// TestSeatbeltProfile: what is protected comes behind what is given, since later rules win, and paths cannot end their
// string.
func TestSeatbeltProfile(t *testing.T) {
	p := seatbeltProfile(
		&Policy{Write: []string{`/w "a\`}, Protect: []string{"/w/.git/hooks"}, Read: []string{"/r"}, Scratch: "/s"},
	)
	lines := strings.Split(strings.TrimSpace(p), "\n")
	for _, want := range []string{
		`(allow file-read* file-write* (subpath "/w \"a\\") (subpath "/s"))`,
		`(deny file-write* (subpath "/w/.git/hooks"))`,
	} {
		if n := len(lines); lines[n-1] != want && lines[n-2] != want {
			t.Errorf("no %s at the end of\n%s", want, p)
		}
	}
	if lines[1] != "(deny default)" || strings.Contains(p, "network") {
		t.Errorf("%s", p)
	}
}
