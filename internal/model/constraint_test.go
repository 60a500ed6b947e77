package model

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/baleenrun/baleen/internal/engine"
	"github.com/baleenrun/baleen/internal/grammar"
	"github.com/baleenrun/baleen/internal/sample"
	"github.com/baleenrun/baleen/internal/tokenizer"
)

// answerOf runs a request to its end.
func answerOf(t *testing.T, m *Model, r *engine.Request) (ids []int32, why engine.FinishReason) {
	t.Helper()
	s, err := m.Engine.Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for ev := range s.All() {
		switch {
		case ev.Done:
			if ev.Err != nil {
				t.Fatal(ev.Err)
			}
			why = ev.Reason
		case ev.Token >= 0:
			ids = append(ids, ev.Token)
		}
	}
	return ids, why
}

// TestConstrainedAnswersFit samples documents from random weights at temperature 1: those that end fit the schema, those
// that are cut are the beginning of one that does. All answers at once are the answers one by one.
func TestConstrainedAnswersFit(t *testing.T) {
	m := open(t, "", Options{})
	g, err := grammar.JSONSchema([]byte(`{
		"type":"object",
		"properties":{"kind":{"enum":["circle","square"]},"size":{"type":"integer","minimum":1,"maximum":99},"tags":{"type":"array","items":{"type":"boolean"},"maxItems":3}},
		"required":["kind","size"],
		"additionalProperties":false
	}`), grammar.Options{Whitespace: grammar.Compact})
	if err != nil {
		t.Fatal(err)
	}
	c, err := m.Constrain(g)
	if err != nil {
		t.Fatal(err)
	}
	prompt, err := m.Tokenizer.Encode(nil, "a shape", tokenizer.Options{AddSpecial: true})
	if err != nil {
		t.Fatal(err)
	}
	limitOf := func(seed uint64) int {
		if seed%3 == 0 {
			return 5 + int(seed)
		}
		return 80
	}
	ask := func(seed uint64) ([]int32, engine.FinishReason) {
		return answerOf(t, m, &engine.Request{
			Tokens: prompt, MaxTokens: limitOf(seed), Mask: c.Row(), Sampling: sample.Params{Temperature: 1, Seed: seed, HasSeed: true},
		})
	}
	var together [12][]int32
	var wg sync.WaitGroup
	for seed := range together {
		wg.Go(func() { together[seed], _ = ask(uint64(seed)) })
	}
	wg.Wait()
	whole := 0
	for seed := range uint64(12) {
		limit := limitOf(seed)
		ids, why := ask(seed)
		if !slices.Equal(ids, together[seed]) {
			t.Fatalf("seed %d: %v alone, %v beside others", seed, ids, together[seed])
		}
		var text strings.Builder
		for _, id := range ids {
			text.Write(m.Tokenizer.Bytes(id))
		}
		at, n, err := g.Matcher().Longest([]byte(text.String()))
		if err != nil || n != text.Len() {
			t.Fatalf("seed %d: %q fits up to byte %d: %v", seed, text.String(), n, err)
		}
		switch why {
		case engine.FinishStop:
			whole++
			var v struct {
				Kind string
				Size int
				Tags []bool
			}
			if err := json.Unmarshal([]byte(text.String()), &v); err != nil || !at.Accepting() {
				t.Fatalf("seed %d: %q: %v", seed, text.String(), err)
			}
			if v.Kind != "circle" && v.Kind != "square" || v.Size < 1 || v.Size > 99 || len(v.Tags) > 3 {
				t.Fatalf("seed %d: %q does not fit", seed, text.String())
			}
		case engine.FinishLength:
			if len(ids) != limit {
				t.Fatalf("seed %d: %d tokens of %d", seed, len(ids), limit)
			}
		default:
			t.Fatalf("seed %d: ended with %v", seed, why)
		}
	}
	if whole < 4 {
		t.Errorf("%d of 12 answers came to an end", whole)
	}
}

// TestForcedTokensAreWhatMustCome holds that a row's forced tokens spell a beginning of the forced text, all of it but its last token.
func TestForcedTokensAreWhatMustCome(t *testing.T) {
	m := open(t, "", Options{})
	g, err := grammar.Choices([]string{`the quick brown fox`, `the quick brown dog`})
	if err != nil {
		t.Fatal(err)
	}
	c, err := m.Constrain(g)
	if err != nil {
		t.Fatal(err)
	}
	r := c.Row()
	var text strings.Builder
	for _, id := range r.Forced() {
		text.Write(m.Tokenizer.Bytes(id))
		if err := r.Accept(id); err != nil {
			t.Fatal(err)
		}
	}
	if text.Len() == 0 || !strings.HasPrefix(`the quick brown `, text.String()) {
		t.Fatalf("forced %q", text.String())
	}
	if r.Accepting() {
		t.Fatal("a beginning fits as a whole")
	}
	if err := r.Accept(m.stops[0]); err == nil {
		t.Fatal("an end token where the text may not end")
	}
}

// TestConstraintsAreCompiledOnce holds that equal sources share what was compiled, errors too, and that few are kept.
func TestConstraintsAreCompiledOnce(t *testing.T) {
	m := open(t, "", Options{})
	n := 0
	get := func(source string) (*Constraints, error) {
		return m.Constraint(source, func() (*grammar.Grammar, error) {
			n++
			return grammar.Choices([]string{source})
		})
	}
	first, err := get("a")
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := get("a"); again != first || n != 1 {
		t.Fatalf("compiled %d times", n)
	}
	for i := range maxConstraints - 1 {
		if _, err := get(strings.Repeat("b", i+1)); err != nil {
			t.Fatal(err)
		}
	}
	if again, _ := get("a"); again != first {
		t.Fatal("what was used last is gone")
	}
	if _, err := get("c"); err != nil || len(m.constraints.kept) != maxConstraints {
		t.Fatalf("%d kept: %v", len(m.constraints.kept), err)
	}
	if _, err := get("b"); err != nil || n != maxConstraints+2 {
		t.Fatalf("compiled %d times: the one used longest ago stays", n)
	}
	bad := func() (*grammar.Grammar, error) { return grammar.GBNF("root ::= ") }
	if _, err := m.Constraint("bad", func() (*grammar.Grammar, error) { return nil, errors.New("no") }); err == nil {
		t.Fatal("an error is lost")
	}
	if _, err := m.Constraint("empty", bad); err != nil {
		t.Fatal(err) // the empty text
	}
}
