package cli

import (
	"bytes"
	"testing"
	"time"
)

// TestLoadingLeavesNothing: what is shown while a model loads is gone afterwards, up to its last character, and a late
// report brings nothing back.
func TestLoadingLeavesNothing(t *testing.T) {
	var b bytes.Buffer
	l := &loading{a: &app{io: IO{Err: &b}}, began: time.Now().Add(-time.Second)}
	l.set(50, 100)
	l.set(100, 100)
	l.clear()
	l.set(100, 100)
	if want := "\rLoading 50 %\rLoading 100 %\r             \r"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
