package grammar

import (
	"encoding/json"
	"fmt"

	"github.com/baleenrun/baleen/internal/grammar/schema"
)

// A Piece is a part of a text that is put together by Compose. The zero value is the empty text.
type Piece struct {
	op    termOp
	value bool
	text  string // of a literal
	doc   []byte // of a value
	subs  []Piece
	max   int
}

// Literal is exactly this text.
func Literal(text string) Piece { return Piece{text: text} }

// Value is JSON that a JSON Schema allows.
func Value(doc []byte) Piece { return Piece{value: true, doc: doc} }

// InOrder is one piece after the other.
func InOrder(pieces ...Piece) Piece { return Piece{subs: pieces} }

// Either is one of some pieces.
func Either(pieces ...Piece) Piece { return Piece{op: tAlt, subs: pieces} }

// Repeated is a piece from none to max times; without a bound where max is negative.
func Repeated(p Piece, max int) Piece { return Piece{op: tRepeat, subs: []Piece{p}, max: max} }

// Compose compiles a text of pieces: all of its schemas become one automaton with the texts between them. An error of a
// schema is a *schema.Error, whose path begins with the number of the value: "/prefixItems/1/properties/a".
func Compose(p Piece, o Options) (*Grammar, error) {
	var docs []json.RawMessage
	t := p.term(&docs)
	if len(docs) == 0 {
		return compileRules([]string{"text"}, []*term{t})
	}
	for i, doc := range docs {
		docs[i] = resource(doc, i)
	}
	doc, err := json.Marshal(
		map[string]any{"type": "array", "prefixItems": docs, "minItems": len(docs), "maxItems": len(docs)},
	)
	if err != nil {
		return nil, fmt.Errorf("grammar: %w", err)
	}
	if err := tooLong(len(doc)); err != nil {
		return nil, err
	}
	s, err := schema.Compile(doc)
	if err != nil {
		return nil, err
	}
	arrays := s.Value(s.Root).Arrays
	if len(arrays) != 1 {
		return nil, fmt.Errorf("grammar: one of %d schemas allows nothing", len(docs))
	}
	t.place(func(i int) int { return int(arrays[0].Item(i)) })
	g, err := compileWith(s, o, []string{"text"}, []*term{t})
	if err != nil {
		return nil, err
	}
	g.notes = s.Notes
	return g, nil
}

// resource makes a schema one with an address of its own, so that its references to itself keep their meaning.
func resource(doc json.RawMessage, i int) json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(doc, &m) != nil || m == nil || m["$id"] != nil || m["id"] != nil {
		return doc
	}
	head := fmt.Sprintf(`{"$id":"baleen:value/%d"`, i)
	if len(m) > 0 {
		head += ","
	}
	for j, c := range doc {
		if c == '{' {
			return append([]byte(head), doc[j+1:]...)
		}
	}
	return doc
}

func (p Piece) term(docs *[]json.RawMessage) *term {
	if p.value {
		*docs = append(*docs, p.doc)
		return &term{op: tValue, rule: len(*docs) - 1}
	}
	t := &term{op: p.op, max: p.max}
	for _, r := range p.text {
		t.subs = append(t.subs, &term{op: tSet, ranges: []rune{r, r}})
	}
	for _, s := range p.subs {
		t.subs = append(t.subs, s.term(docs))
	}
	return t
}

// place puts the schema's nodes where the numbers of values stand.
func (t *term) place(node func(i int) int) {
	if t.op == tValue {
		t.rule = node(t.rule)
	}
	for _, s := range t.subs {
		s.place(node)
	}
}
