// Package perm decides whether what a model wants to do is allowed, asked for or denied. It knows effects (what is
// read, written and run, which hosts are reached), the user's rules about them, and modes. It runs nothing, and knows no
// tools, models or screens.
package perm

import (
	"fmt"
	"strings"
)

// An Effect is what a call would do, as far as that can be told before. Paths are absolute and clean; links in them are
// followed by Decide. The zero Effect does nothing that needs a permission.
type Effect struct {
	Reads    []string
	Writes   []string
	Commands []Command
	Hosts    []string // host names or addresses that are reached, without ports

	// Unknown says why it cannot be told what would happen; "": it can. It always asks.
	Unknown string
}

// A Command is one simple command of a shell script.
type Command struct {
	// Words are its words, quotes removed. A word of which a part is known only when it runs holds Dynamic there.
	Words []string
	// ReadOnly: it is known to change nothing but what Effect.Writes has.
	ReadOnly bool
	// Writes: all that it would write is in Effect.Writes (mv, cp, mkdir, sed -i …), it does nothing else.
	Writes bool
}

// Dynamic stands in a Command's word for what is known only when it runs, such as a variable's value.
const Dynamic = "\x00"

// String returns the command as it is shown to people, and as patterns are compared with it.
func (c Command) String() string {
	words := make([]string, len(c.Words))
	for i, w := range c.Words {
		words[i] = strings.ReplaceAll(w, Dynamic, "…")
	}
	return strings.Join(words, " ")
}

// A Decision is what becomes of a call. The stricter one is the larger.
type Decision uint8

const (
	Allow Decision = iota
	Ask
	Deny
)

// String returns the word that the rule files have for it.
func (d Decision) String() string {
	switch d {
	case Allow:
		return "allow"
	case Ask:
		return "ask"
	case Deny:
		return "deny"
	}
	return fmt.Sprintf("decision %d", uint8(d))
}

// A Verdict is a decision about a call.
type Verdict struct {
	Decision Decision
	// Reason says why, in words that a model can act on. It is empty where the call is allowed.
	Reason string
	// Pattern is what Always would store, as it is to be shown, a rule a line; "": a question that cannot be answered for
	// always.
	Pattern string

	changes bool // it is about a change
}

// A Mode says what is done without asking where no rule has decided.
type Mode uint8

const (
	// ModeAsk reads the workspace, and asks before it changes or runs anything else.
	ModeAsk Mode = iota
	// ModePlan only reads. Changes are denied, not asked for.
	ModePlan
	// ModeAcceptEdits also changes files of the workspace, and runs commands that the sandbox holds to it.
	ModeAcceptEdits
	// ModeAdaptive asks before the first change, and goes on as ModeAcceptEdits when that was allowed.
	ModeAdaptive
	// ModeAuto asks only where a rule says so, or where it cannot be told what would happen; in the sandbox, commands
	// whose parts are known only when they run are held to it and run.
	ModeAuto
)

var modeNames = []string{"ask", "plan", "accept-edits", "adaptive", "auto"}

// String returns the mode's name, as in settings.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// ParseMode returns the mode of a name.
func ParseMode(name string) (Mode, error) {
	for i, n := range modeNames {
		if n == name {
			return Mode(i), nil
		}
	}
	return ModeAsk, fmt.Errorf("permissions: there is no mode %q; there are %s", name, strings.Join(modeNames, ", "))
}
