package openai

import (
	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/fields"
)

// Shapes are the conversations of chat completions, for other dialects.
func Shapes() server.Shapes {
	return server.Shapes{
		Messages: messages,
		Tools:    func(v fields.Value) ([]chat.Tool, error) { return tools(v, toolTable) },
		Objects:  []fields.ObjectTable{messageTable, partTable, callTable, functionCallTable, toolTable, functionTable},
	}
}
