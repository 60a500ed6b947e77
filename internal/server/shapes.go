package server

import (
	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/fields"
)

// Shapes read conversations for a dialect that takes over another one's: dialects do not know each other.
type Shapes struct {
	Messages func(v fields.Value) ([]chat.Message, error)
	Tools    func(v fields.Value) ([]chat.Tool, error)
	Objects  []fields.ObjectTable // that the values are made of: "message" and "tool" among them
}
