package loop

import (
	"path/filepath"
	"slices"

	"github.com/baleenrun/baleen/internal/agent/event"
	"github.com/baleenrun/baleen/internal/agent/model"
	"github.com/baleenrun/baleen/internal/agent/tool"
)

// State is what a session's log says of it.
type State struct {
	Begin    event.Session
	Messages []model.Message
	// Tokens are the exact ones of the first Known messages.
	Tokens []int32
	Known  int
	Title  string
	Turns  int
	Sum    event.Counts
	Todos  []event.TodoItem
	// Open are calls that have no result: a crash came before it.
	Open []model.Call
	// Started are those of them that had begun.
	Started map[string]bool
	// Ended tells that the work on the last message was over.
	Ended bool
	// Marks are the checkpoints that can be gone back to, the latest last.
	Marks []Mark
	// Shown are the user's own messages, without what the program added.
	Shown []string
}

// Fold reads a log.
func Fold(events []event.Event) State {
	s := State{Started: map[string]bool{}}
	for _, e := range events {
		if u, ok := e.Body.(event.Usage); ok {
			s.Sum = u.Sum
			continue
		}
		if e.Agent != "" {
			continue // a subtask's own conversation; its report is the result of a call
		}
		switch b := e.Body.(type) {
		case event.Session:
			s.Begin = b
		case event.Turn:
			s.Turns, s.Ended = b.N, false
		case event.Message:
			s.message(b)
		case event.ToolStart:
			s.Started[b.Call] = true
		case event.Compaction:
			s.Messages, s.Tokens, s.Known, s.Open = nil, nil, 0, nil
			for i := range s.Marks {
				s.Marks[i].Messages = -1
			}
		case event.Undone:
			if b.Messages != nil && !b.Redo && *b.Messages <= len(s.Messages) {
				s.truncate(*b.Messages)
			}
			s.Marks = slices.DeleteFunc(s.Marks, func(m Mark) bool { return m.ID == b.ID && !b.Redo })
		case event.Checkpoint:
			s.Marks = append(s.Marks, Mark{b.ID, len(s.Messages)})
		case event.Todo:
			s.Todos = b.Items
		case event.Title:
			s.Title = b.Title
		case event.End:
			s.Ended, s.Sum = true, b.Sum
		}
	}
	return s
}

func (s *State) message(b event.Message) {
	m := model.Message{
		Role: b.Role, Text: b.Text, Reasoning: b.Reasoning, CallID: b.Call, Name: b.Name, Failed: b.Failed,
	}
	for _, c := range b.Calls {
		m.Calls = append(m.Calls, model.Call{ID: c.ID, Name: c.Name, Args: c.Args})
	}
	switch b.Role {
	case model.Assistant:
		s.Messages = append(s.Messages, m)
		s.Open = append([]model.Call(nil), m.Calls...)
		if b.From <= len(s.Tokens) && len(b.Tokens) > 0 {
			s.Tokens = append(s.Tokens[:b.From:b.From], b.Tokens...)
			s.Known = len(s.Messages)
		} else {
			s.Tokens, s.Known = nil, 0
		}
	case model.Tool:
		for i, c := range s.Open {
			if c.ID == b.Call {
				s.Open = append(s.Open[:i:i], s.Open[i+1:]...)
				break
			}
		}
		s.Messages = append(s.Messages, m)
	default:
		s.Ended = false
		if !b.Note {
			s.Shown = append(s.Shown, b.Text)
		}
		s.Messages = append(s.Messages, m)
	}
}

// truncate forgets messages; what their tokens were is not known any more.
func (s *State) truncate(n int) {
	s.Messages, s.Open = s.Messages[:n:n], nil
	if s.Known > n {
		s.Tokens, s.Known = nil, 0
	}
}

// Resume goes on with a session whose log has these events. Where its model is another one now, the conversation is
// computed anew. Calls that a crash left without a result get one that says so.
func Resume(o Options, events []event.Event) (*Agent, error) {
	a := newAgent(o)
	s := Fold(events)
	if s.Begin.Prompt != "" {
		a.system = s.Begin.Prompt
	}
	spec := model.Spec{History: s.Messages}
	if i := o.Model.Info(); i.Digest == s.Begin.Digest && i.Name == s.Begin.Model {
		spec.Tokens, spec.Known = s.Tokens, s.Known
	}
	a.session = a.open(spec)
	a.begun, a.title, a.turns, a.sum = len(s.Messages) > 0, s.Title, s.Turns, s.Sum
	a.marks = s.Marks
	if n := len(s.Shown); n > 0 {
		a.request = s.Shown[n-1]
	}
	for _, c := range s.Open {
		text := "not run: the program ended before"
		if s.Started[c.ID] {
			text = "the program ended while this ran: it may have done all, a part, or nothing of it. Look before you go on."
		}
		if err := a.result(c, tool.Result{Text: text, IsError: true}); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func joinRoot(root, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(root, filepath.FromSlash(path))
}
