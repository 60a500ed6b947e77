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
