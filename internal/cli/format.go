package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/baleenrun/baleen/internal/chat"
)

// maxFormatFile bounds the file of a schema or grammar.
const maxFormatFile = 4 << 20

// formatOf reads what an answer is to be held to, from the values of --format and --grammar. What cannot be enforced is
// an error before any model is loaded.
func formatOf(format, grammar string) (f chat.Format, err error) {
	switch {
	case format != "" && grammar != "":
		return f, usagef("--format and --grammar exclude each other")
	case format == "json":
		f = chat.Format{Kind: chat.JSONFormat, Field: "--format"}
	case strings.HasPrefix(strings.TrimSpace(format), "{"): // the schema itself
		f = chat.Format{Kind: chat.SchemaFormat, Schema: json.RawMessage(format), Field: "--format"}
	case format != "":
		text, err := readFormat(format)
		if err != nil {
			return f, usagef("--format %s: want json, or a file with a JSON Schema: %v", format, err)
		}
		f = chat.Format{Kind: chat.SchemaFormat, Schema: json.RawMessage(text), Field: "--format " + format}
	case grammar != "":
		text, err := readFormat(grammar)
		if err != nil {
			return f, usagef("--grammar %s: want a file with a grammar: %v", grammar, err)
		}
		f = chat.Format{Kind: chat.GrammarFormat, Text: text, Field: "--grammar " + grammar}
		if filepath.Ext(grammar) == ".lark" {
			f.Kind = chat.LarkFormat
		}
	}
	if err := f.Check(); err != nil {
		return f, usagef("%s", chat.AsError(err).Message())
	}
	return f, nil
}

func readFormat(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", why(err)
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxFormatFile+1))
	switch {
	case err != nil:
		return "", why(err)
	case len(b) > maxFormatFile:
		return "", fmt.Errorf("it has more than %d MiB", maxFormatFile>>20)
	case !utf8.Valid(b):
		return "", fmt.Errorf("it is not UTF-8 text")
	}
	return string(b), nil
}

// why is the cause of an error of a file, without its name.
func why(err error) error {
	if e, ok := err.(*os.PathError); ok { //nolint:errorlint // as package os returns it
		return e.Err
	}
	return err
}
