package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/agent/model"
)

// checkpoints keep one file.
type checkpoints struct {
	w     *world
	kept  []string
	fails error
}

func (c *checkpoints) Take(context.Context) (string, error) {
	c.kept = append(c.kept, c.w.read("a"))
	return fmt.Sprint(len(c.kept) - 1), nil
}

func (c *checkpoints) End(context.Context) error { return nil }

func (c *checkpoints) Restore(_ context.Context, id string) ([]string, error) {
	if c.fails != nil {
		return nil, c.fails
	}
	n := 0
	_, _ = fmt.Sscan(id, &n)
	c.w.write("a", c.kept[n])
	return []string{"a"}, nil
}

// TestUndo takes back files, the conversation, or both, and brings them forward again; the model's tokens go on from where
// they were, and so does a resumed session.
func TestUndo(t *testing.T) {
	w := newWorld(t, setup{files: map[string]string{"a": "zero"}, first: "Date: today"},
		`call:write {"path": "a", "content": "one"}`, "Done one.", `call:write {"path": "a", "content": "two"}`, "Done two.", "Three.", "Four.")
	c := &checkpoints{w: w}
	w.o.Checkpoints = c
	w.begin()
	if _, err := w.agent.Undo(t.Context(), true, true); !errors.Is(err, ErrNothing) {
		t.Fatal(err)
	}
	w.send("First.")
	one := len(w.agent.Messages())
	w.send("Second.")
	two := len(w.agent.Messages())
	c.fails = errors.New("a was changed by somebody else")
	if _, err := w.agent.Undo(t.Context(), true, true); err == nil || w.read("a") != "two" || len(w.agent.Messages()) != two {
		t.Fatalf("%v, a is %q", err, w.read("a"))
	}
	c.fails = nil
	if files, err := w.agent.Undo(t.Context(), true, true); err != nil || fmt.Sprint(files) != "[a]" || w.read("a") != "one" ||
		len(w.agent.Messages()) != one {
		t.Fatalf("%v, a is %q, %d messages", err, w.read("a"), len(w.agent.Messages()))
	}
	if _, err := w.agent.Redo(t.Context()); err != nil || w.read("a") != "two" || len(w.agent.Messages()) != two {
		t.Fatalf("%v, a is %q, %d messages", err, w.read("a"), len(w.agent.Messages()))
	}
	if _, err := w.agent.Redo(t.Context()); !errors.Is(err, ErrNothing) {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := w.agent.Undo(t.Context(), true, true); err != nil {
			t.Fatal(err)
		}
	}
	if w.read("a") != "zero" || len(w.agent.Messages()) != 1 {
		t.Fatalf("a is %q, %d messages", w.read("a"), len(w.agent.Messages()))
	}
	events, _, err := w.store.Read(w.log.ID)
	if s := Fold(events); err != nil || len(s.Messages) != 1 || len(s.Marks) != 0 {
		t.Errorf("the log: %v, %+v", err, s)
	}
	if _, last := w.send("Again."); last != "Three." || strings.Count(w.prompts[len(w.prompts)-1], "Date: today") != 1 ||
		strings.Contains(w.prompts[len(w.prompts)-1], "First.") {
		t.Errorf("%q %q", last, w.prompts[len(w.prompts)-1])
	}
	if _, err := w.agent.Undo(t.Context(), true, false); err != nil || len(w.agent.Messages()) != 3 {
		t.Fatal(err)
	}
	w.send("And?")
	if p := w.prompts[len(w.prompts)-1]; !strings.Contains(p, "The user took back the changes of files") {
		t.Errorf("the model is not told: %q", p)
	}
	events, _, _ = w.store.Read(w.log.ID)
	s := Fold(events)
	var roles, want []string
	for _, m := range s.Messages {
		roles = append(roles, m.Role+" "+m.Text)
	}
	for _, m := range w.agent.Messages() {
		want = append(want, m.Role+" "+m.Text)
	}
	if fmt.Sprint(roles) != fmt.Sprint(want) || s.Messages[len(s.Messages)-1].Role != model.Assistant {
		t.Errorf("the log has %q, the session %q", roles, want)
	}
}
