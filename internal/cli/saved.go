package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/store"
)

// savedChat is a conversation in a file.
type savedChat struct {
	Model    string         `json:"model"`
	Saved    time.Time      `json:"saved"`
	System   string         `json:"system,omitempty"`
	Messages []savedMessage `json:"messages"`
}

type savedMessage struct {
	Role    string `json:"role"` // "user" or "assistant"
	Content string `json:"content"`
}

// chatFile is where a conversation of that name is kept.
func (c *conversation) chatFile(name string) (string, error) {
	if name == "" {
		return "", errors.New("want a name")
	}
	if err := store.CheckName(name); err != nil || strings.ContainsAny(name, "/:@") {
		return "", fmt.Errorf(
			"%q cannot be a conversation's name: one word of letters, digits, '.', '_' and '-', without spaces and "+
				"slashes",
			name,
		)
	}
	dir, err := c.chats()
	return filepath.Join(dir, name+".json"), err
}

// chats is the folder of the conversations that are kept.
func (c *conversation) chats() (string, error) {
	st, err := c.a.store()
	if err != nil {
		return "", err
	}
	if st.Dir() == "" {
		return "", store.ErrNoHome
	}
	return filepath.Join(st.Dir(), "chats"), nil
}

// kept says which conversations there are.
func (c *conversation) kept() string {
	dir, err := c.chats()
	if err != nil {
		return "there are none"
	}
	files, _ := os.ReadDir(dir) // none, where it cannot be read
	var names []string
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name(), ".json"); ok && !f.IsDir() {
			names = append(names, name)
		}
	}
	const most = 20
	switch {
	case len(names) == 0:
		return "there are none; /save NAME keeps this one"
	case len(names) > most:
		return fmt.Sprintf("there are %s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	case len(names) == 1:
		return "there is " + names[0]
	}
	return "there are " + strings.Join(names, ", ")
}

func (c *conversation) save(name string) (string, error) {
	path, err := c.chatFile(name)
	if err != nil {
		return "", err
	}
	saved := savedChat{
		Model:    c.about.Info.Name,
		Saved:    time.Now().UTC().Truncate(time.Second),
		System:   c.f.system,
		Messages: []savedMessage{},
	}
	for _, m := range c.msgs {
		saved.Messages = append(saved.Messages, savedMessage{m.Role, textOf(m)})
	}
	b, err := json.MarshalIndent(saved, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	// What people write is theirs alone.
	if err := os.WriteFile(path+".new", append(b, '\n'), 0o600); err != nil {
		return "", err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d messages are in %s.", len(c.msgs), c.a.tilde(path)), nil
}

func (c *conversation) load(name string) (string, error) {
	if name == "" {
		return "", errors.New("want a name; " + c.kept())
	}
	path, err := c.chatFile(name)
	if err != nil {
		return "", err
	}
	fi, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no kept conversation %q; %s", name, c.kept())
	}
	if err != nil {
		return "", err
	}
	if fi.Size() > maxPrompt {
		return "", fmt.Errorf("%s is too large", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var s savedChat
	if err := json.Unmarshal(b, &s); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	var msgs []chat.Message
	for _, m := range s.Messages {
		if m.Role != chat.User && m.Role != chat.Assistant {
			return "", fmt.Errorf("%s has a message of role %q", path, m.Role)
		}
		msgs = append(msgs, chat.Text(m.Role, m.Content))
	}
	c.msgs, c.said, c.f.system = msgs, nil, s.System
	return fmt.Sprintf("%d messages are loaded.", len(c.msgs)), nil
}
