package ollama

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// TestSlowCardHoldsNobodyUp wants one slow file to be read once for all that ask, and others to be answered meanwhile.
func TestSlowCardHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		reads := map[string]int{} // never read and written at once: the slow reader is past this when others begin
		c := cards{load: func(s chat.Spec) (card, error) {
			reads[s.Path]++
			if s.Path == "slow" {
				<-free
			}
			return card{embedding: len(s.Path)}, nil
		}}
		got := make(chan int, 3)
		for range cap(got) {
			go func() { got <- c.of(chat.Spec{Path: "slow"}).embedding }()
		}
		synctest.Wait()
		if n := c.of(chat.Spec{Path: "quick"}).embedding; n != 5 {
			t.Errorf("the quick one: %d", n)
		}
		if len(got) != 0 {
			t.Error("the slow one was answered before it was read")
		}
		close(free)
		for range cap(got) {
			if n := <-got; n != 4 {
				t.Errorf("the slow one: %d", n)
			}
		}
		c.of(chat.Spec{Path: "slow"})
		c.of(chat.Spec{Path: "quick"})
		if reads["slow"] != 1 || reads["quick"] != 1 {
			t.Errorf("read %v times", reads)
		}
	})
}

func TestFailedCardIsReadAgain(t *testing.T) {
	reads, err := 0, errors.New("no more files can be opened")
	c := cards{load: func(chat.Spec) (card, error) {
		reads++
		return card{embedding: reads}, err
	}}
	spec := chat.Spec{Path: "a"}
	c.of(spec)
	err = nil
	for range 3 {
		if n := c.of(spec).embedding; n != 2 {
			t.Errorf("card of reading %d", n)
		}
	}
}

// TestReadCardFails wants what is no model to be an error, which is not kept, and a model to be none.
func TestReadCardFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := os.WriteFile(path, []byte("GGUF"), 0o600); err != nil {
		t.Fatal(err)
	}
	var c cards
	if k := c.of(chat.Spec{Path: path}); len(k.keys) != 0 || len(c.read) != 0 {
		t.Errorf("half a file: %v, kept %d", k.keys, len(c.read))
	}
	if err := (servertest.Checkpoint{}).Write(path); err != nil {
		t.Fatal(err)
	}
	if k := c.of(chat.Spec{Path: path}); len(k.keys) == 0 || len(c.read) != 1 || len(c.running) != 0 {
		t.Errorf("a model: %v, kept %d, running %d", k.keys, len(c.read), len(c.running))
	}
}

// TestCardThatPanics wants those that wait to be let go.
func TestCardThatPanics(t *testing.T) {
	c := cards{load: func(chat.Spec) (card, error) { panic("broken") }}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		c.of(chat.Spec{Path: "a"})
	}()
	if len(c.running) != 0 || len(c.read) != 0 {
		t.Errorf("left: %d running, %d read", len(c.running), len(c.read))
	}
}
