package baleen

import (
	"slices"
	"testing"

	"github.com/baleenrun/baleen/internal/chat"
)

// TestEffortsAreAllThere: each word that a request may have is a documented constant, and the other way round.
func TestEffortsAreAllThere(t *testing.T) {
	var words []string
	for _, e := range []Effort{
		EffortNone, EffortMinimal, EffortLow, EffortMedium, EffortHigh, EffortXHigh, EffortMax, EffortUltra,
	} {
		words = append(words, string(e))
		if _, err := (&Params{Effort: e}).request(); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(words, chat.Efforts) {
		t.Errorf("the library documents %q, the core takes %q", words, chat.Efforts)
	}
}
