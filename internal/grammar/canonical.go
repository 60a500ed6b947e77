package grammar

import (
	"fmt"
	"strings"

	"github.com/baleenrun/baleen/internal/grammar/schema"
)

// Canonical spells a JSON value as every constraint on values accepts it, but for the order of keys, which stays: no
// blanks, the fewest escapes, numbers without exponents.
func Canonical(doc []byte) (string, error) {
	var b strings.Builder
	if err := schema.Spell(doc, &b); err != nil {
		return "", fmt.Errorf("grammar: %w", err)
	}
	return b.String(), nil
}
