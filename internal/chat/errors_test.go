package chat

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/sample"
)

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
	damaged := AsError(fmt.Errorf("row 3: %w", sample.ErrNotFinite))
	if m := damaged.Message(); damaged.Kind != Internal || !strings.Contains(m, "file is damaged") {
		t.Error(m)
	}
}

// TestHalvesInJSON: JSON texts that come inside of a request, as a library's do, are refused by name where they have half
// of a surrogate pair, which a template would be shown as another character.
func TestHalvesInJSON(t *testing.T) {
	half := `{"a":"\ud83d"}`
	for field, r := range map[string]*Request{
		"tools[0]": {Messages: []Message{Text(User, "x")}, Tools: []Tool{{Name: "f", Parameters: []byte(half)}}},
		"messages[1].tool_calls[0]": {Messages: []Message{
			Text(User, "x"), {Role: Assistant, Calls: []Call{{ID: "1", Name: "f", Arguments: half}}},
		}},
	} {
		var e *Error
		if err := r.check(); !errors.As(err, &e) || e.Field != field || e.Kind != Invalid {
			t.Errorf("%s: %v", field, err)
		}
	}
}
