package openai

import (
	"fmt"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/chat"
)

// TestKeptConversationsAreBounded keeps responses that are small themselves and go on with long conversations: the
// responses that these came from are gone, and the text would stay as long as one of them.
func TestKeptConversationsAreBounded(t *testing.T) {
	s := newResponseStore()
	long := strings.Repeat("x", 64<<20)
	for i := range 10 {
		s.add(&kept{id: fmt.Sprint(i), messages: []chat.Message{{Role: chat.Assistant, Reasoning: long}}})
	}
	if n := s.order.Len(); n != 3 {
		t.Errorf("%d responses of 64 MiB each are kept in %d MiB", n, keptBytes>>20)
	}
	if _, ok := s.get("", "9"); !ok {
		t.Error("the last one is not among them")
	}
	for s.order.Len() > 0 {
		s.drop(s.order.Front())
	}
	if s.bytes != 0 {
		t.Errorf("%d bytes are left of nothing", s.bytes)
	}
}

// TestNoCallerMakesOthersForgotten has one caller keep far more than another.
func TestNoCallerMakesOthersForgotten(t *testing.T) {
	for name, size := range map[string]int{"many": 1, "large": keptBytes / 4} {
		s := newResponseStore()
		s.add(&kept{id: "mine", caller: "a", body: []byte("{}")})
		for i := range keptResponses + 5 {
			s.add(&kept{id: fmt.Sprint("their ", i), caller: "b", bytes: size})
			if i > 10 && size > 1 {
				break
			}
		}
		if _, ok := s.get("a", "mine"); !ok || s.order.Len() > keptResponses || s.bytes > keptBytes {
			t.Errorf("%s: mine is kept: %v, %d kept, %d bytes", name, ok, s.order.Len(), s.bytes)
		}
		s.add(&kept{id: "last", caller: "a", bytes: 2 * keptBytes})
		if _, ok := s.get("a", "last"); !ok {
			t.Errorf("%s: the newest is not kept", name)
		}
	}
}
