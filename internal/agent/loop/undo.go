package loop

import (
	"context"
	"errors"

	"github.com/baleenrun/baleen/internal/agent/event"
	"github.com/baleenrun/baleen/internal/agent/model"
)

// A Mark is a place that can be gone back to: a checkpoint of the workspace, before a message of the user's.
type Mark struct {
	ID       string
	Messages int // of the conversation then; -1: it was put into a summary since
}

// undone is what Redo brings back.
type undone struct {
	mark  Mark
	after string // checkpoint of the files as they were
	chat  []model.Message
}

// ErrNothing is returned where there is nothing to undo or redo.
var ErrNothing = errors.New("there is nothing to take back")

// Undo takes back what came of the user's last message: changes of files, the conversation, or both. It refuses where a
// file was changed by somebody else since. It returns the files that changed.
func (a *Agent) Undo(ctx context.Context, files, chat bool) ([]string, error) {
	if len(a.marks) == 0 || a.o.Checkpoints == nil {
		return nil, ErrNothing
	}
	m := a.marks[len(a.marks)-1]
	if chat && m.Messages < 0 && !files {
		return nil, errors.New("the conversation was put into a summary since; only files can be taken back")
	}
	u := undone{mark: m}
	e := event.Undone{ID: m.ID}
	var err error
	if files {
		if u.after, err = a.o.Checkpoints.Take(ctx); err != nil {
			return nil, err
		}
		if e.Files, err = a.o.Checkpoints.Restore(ctx, m.ID); err != nil {
			return nil, err
		}
	}
	if msgs := a.session.Messages(); chat && m.Messages >= 0 && m.Messages <= len(msgs) {
		u.chat = msgs[m.Messages:]
		e.Messages = &m.Messages
		a.session.Truncate(m.Messages)
	}
	a.marks, a.undone = a.marks[:len(a.marks)-1], append(a.undone, u)
	if files && !chat {
		a.note("The user took back the changes of files that you made for the last message.")
	}
	return e.Files, a.emit(e)
}

// Redo brings back what Undo took last, as long as nothing was said since.
func (a *Agent) Redo(ctx context.Context) ([]string, error) {
	if len(a.undone) == 0 {
		return nil, ErrNothing
	}
	u := a.undone[len(a.undone)-1]
	e := event.Undone{ID: u.mark.ID, Redo: true}
	if u.after != "" {
		files, err := a.o.Checkpoints.Restore(ctx, u.after)
		if err != nil {
			return nil, err
		}
		e.Files = files
	}
	a.undone, a.marks = a.undone[:len(a.undone)-1], append(a.marks, u.mark)
	if err := a.emit(e); err != nil {
		return e.Files, err
	}
	for _, m := range u.chat {
		if m.Role == model.Assistant {
			if err := a.keep(model.Answer{Message: m}); err != nil {
				return e.Files, err
			}
			a.session.Append(m)
			continue
		}
		if err := a.say(m, false); err != nil {
			return e.Files, err
		}
	}
	if u.after != "" && len(u.chat) == 0 {
		a.note("The user brought the changes of files back that were taken back.")
	}
	return e.Files, nil
}

// note tells the model something with the next message.
func (a *Agent) note(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.notes = append(a.notes, text)
}
