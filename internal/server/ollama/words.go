package ollama

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server/modeladmin"
)

// What the command line shows and reads in Ollama's words.

// Modelfile writes a model's settings as a Modelfile.
func Modelfile(spec chat.Spec, licence string) string { return describe(spec.Name, spec, licence) }

// Parameters lists what a model was made with, a name and a value a line, as /api/show does.
func Parameters(spec chat.Spec) string {
	var b strings.Builder
	for _, p := range parameters(spec) {
		value := p.value
		if p.text { // one line each, as with Ollama
			value = strconv.Quote(value)
		}
		fmt.Fprintf(&b, "%-30s %s\n", p.name, value)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// ReadModelfile takes a Modelfile's settings over. From is as it stands there: a name or a path.
func ReadModelfile(text string) (modeladmin.Creation, error) {
	var c modeladmin.Creation
	err := fromFile(&c, text)
	return c, err
}
