// Package grammar owns constraints on generated text: JSON Schema, regular expressions, GBNF and lists of choices, all
// lowered to one pushdown automaton over bytes, and the masks of tokens that the automaton allows. It knows the ids and
// bytes of tokens; it knows no models, no requests and no protocol.
//
// A Grammar is compiled once and shared. A Matcher is a place in it: a value, so that keeping an old one is how to go
// back. A Masker joins a Grammar with a Vocabulary and says which tokens may come next at a place.
package grammar

import (
	"fmt"
	"sync"

	"github.com/baleenrun/baleen/internal/grammar/regular"
	"github.com/baleenrun/baleen/internal/grammar/schema"
)

// Whitespace says where JSON may have blanks.
type Whitespace uint8

const (
	// Usual allows what models write: one space after colons and commas, or line breaks with bounded indentation.
	Usual Whitespace = iota
	// Compact allows none.
	Compact
	// Free allows up to 64 blanks wherever JSON does.
	Free
)

// Options of JSON Schema. The zero value is the default.
type Options struct {
	Whitespace Whitespace
	// AnyOrder lets keys come in any order. Otherwise those that the schema names come in its order, before others.
	// Either way no key comes twice.
	AnyOrder bool
}

// Limits that every grammar has.
const (
	MaxDepth     = 1000    // frames on the stack: values inside values, rules inside rules
	MaxStates    = 1 << 18 // states made while matching one text
	MaxPlaces    = 1000    // alternatives alive at the same time
	MaxSource    = 4 << 20 // bytes of a schema or grammar
	maxIndent    = 40      // spaces after a line break
	maxTabs      = 20
	maxFreeBlank = 64
	renewAt      = 1 << 15 // states after which new texts begin with a new machine
)

// A Grammar is a compiled constraint. It is safe for concurrent use.
// RATIONALE: Why is a constraint an automaton of our own?
type Grammar struct {
	mu    sync.Mutex
	m     *machine
	start config
	notes []string
	fresh func(m *machine) key // prepares a machine and says where texts begin
}

func newGrammar(fresh func(m *machine) key) *Grammar {
	g := &Grammar{fresh: fresh}
	g.renew()
	return g
}

// renew begins with a machine that has no states yet. Matchers keep the machine that they began with.
func (g *Grammar) renew() {
	g.m = newMachine()
	g.start = config{g.m.intern(g.fresh(g.m)), emptyStack}
}

// Notes says what was read but asserts nothing by the source language's own rules, such as unknown formats.
func (g *Grammar) Notes() []string { return g.notes }

func tooLong(n int) error {
	if n > MaxSource {
		return fmt.Errorf("grammar: %d bytes, more than %d", n, MaxSource)
	}
	return nil
}

// JSONSchema compiles a JSON Schema, draft-04 to 2020-12. Where a keyword cannot be enforced exactly the error is a
// *schema.Error with its name and path.
func JSONSchema(doc []byte, o Options) (*Grammar, error) {
	if err := tooLong(len(doc)); err != nil {
		return nil, err
	}
	s, err := schema.Compile(doc)
	if err != nil {
		return nil, err
	}
	g := newGrammar(func(m *machine) key {
		m.json = &jsonMachine{schema: s, options: o}
		return key{kind: kValue, a: int32(s.Root)}
	})
	g.notes = s.Notes
	return g, nil
}

// JSON is the grammar of any JSON object (what "json_object" asks for) or, with any set, of any JSON value.
func JSON(any bool, o Options) (*Grammar, error) {
	if any {
		return JSONSchema([]byte(`true`), o)
	}
	return JSONSchema([]byte(`{"type":"object"}`), o)
}

// Syntax is a spelling of regular expressions.
type Syntax uint8

const (
	ECMA Syntax = iota // ECMA-262's
	RE2                // RE2's and Go's
)

// Regex compiles a regular expression that the whole text must match.
func Regex(pattern string, syntax Syntax) (*Grammar, error) {
	compile := regular.Pattern
	if syntax == RE2 {
		compile = regular.RE2
	}
	d, err := compile(pattern, true)
	if err != nil {
		return nil, fmt.Errorf("grammar: regular expression %w", err)
	}
	return textGrammar(d)
}

// Choices is the grammar of exactly the given texts.
func Choices(texts []string) (*Grammar, error) {
	d, err := regular.Literals(texts, true)
	if err != nil {
		return nil, fmt.Errorf("grammar: choices: %w", err)
	}
	return textGrammar(d)
}

func textGrammar(d *regular.DFA) (*Grammar, error) {
	if d.Empty() {
		return nil, fmt.Errorf("grammar: no text fits")
	}
	return newGrammar(func(m *machine) key {
		m.texts = []*regular.DFA{d}
		return key{kind: kText}
	}), nil
}
