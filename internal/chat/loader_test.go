package chat

import (
	"testing"

	"github.com/baleenrun/baleen/internal/family"
	"github.com/baleenrun/baleen/internal/model"
)

func TestContextIsAtMostTheModels(t *testing.T) {
	for _, c := range []struct{ asked, trained, want int }{
		{0, 0, serveContext},
		{0, 2048, 2048},
		{0, 131072, serveContext},
		{8192, 131072, 8192},
		{8192, 2048, 2048}, // one of several models of a server
		{8192, 0, 8192},
	} {
		l := Loader{Options: model.Options{Context: c.asked}}
		if got := fit(l.options(), family.Info{MaxContext: c.trained}).Context; got != c.want {
			t.Errorf("--context %d, trained for %d: %d, want %d", c.asked, c.trained, got, c.want)
		}
	}
}
