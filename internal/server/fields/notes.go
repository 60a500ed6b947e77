package fields

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Notes collects what requests have and nothing reads, where that is no error: fields that clients of a vendor send and
// its own servers skip. The zero value is empty.
type Notes struct {
	groups []noteGroup
	more   int // that did not fit
}

// A noteGroup is places that differ in their indexes alone, such as messages[1].id and messages[3].id.
type noteGroup struct {
	key, first string
	n          int
}

// maxNotes bounds how many different places are named.
const maxNotes = 16

var indexes = regexp.MustCompile(`\[\d+\]`)

func (n *Notes) add(path, what string) {
	if n == nil {
		return
	}
	text := path
	if what != "" {
		text += " (" + what + ")"
	}
	key := indexes.ReplaceAllString(text, "[]")
	for i := range n.groups {
		if n.groups[i].key == key {
			n.groups[i].n++
			return
		}
	}
	if len(n.groups) == maxNotes {
		n.more++
		return
	}
	n.groups = append(n.groups, noteGroup{key, text, 1})
}

// String names the places in order, those that are alike once with their number, in characters that a header can have.
func (n *Notes) String() string {
	var list []string
	for _, g := range n.groups {
		text := g.first
		if len(text) > 120 {
			text = text[:120] + "..."
		}
		text = strings.Trim(strconv.QuoteToASCII(text), `"`)
		if g.n > 1 {
			text += fmt.Sprintf(" and %d alike", g.n-1)
		}
		list = append(list, text)
	}
	if n.more > 0 {
		list = append(list, fmt.Sprintf("%d more", n.more))
	}
	return strings.Join(list, ", ")
}

// Ignore notes that a value has no effect; what says more about it, or is empty.
func (v Value) Ignore(what string) { v.notes.add(v.Path, what) }
