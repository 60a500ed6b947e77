package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/baleenrun/baleen/internal/grammar"
	"github.com/baleenrun/baleen/internal/grammar/schema"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/tokenizer"
)

const grammarLong = `Says whether a constraint is accepted, and if not, which keyword cannot be enforced
and where it stands. FILE is a JSON Schema, or a grammar where its name ends in
.gbnf or .lark.

--instances names a file with one text per line. Each is compared with the
constraint as it stands; beside a grammar a JSON string is read as the text.
--model times the masks of a model's vocabulary, along those texts or, without
any, along random ones; a folder with a tokenizer will do.

A FILE with the keys "schema" and "tests" (as MaskBench has them) brings its own
instances. They are compared without blanks and in any order of keys.`

// grammarReport is what "grammar --json" prints for a file.
type grammarReport struct {
	File      string           `json:"file"`
	Accepted  bool             `json:"accepted"`
	Keyword   string           `json:"keyword,omitempty"`
	Path      *string          `json:"path,omitempty"`
	Error     string           `json:"error,omitempty"`
	Notes     []string         `json:"notes,omitempty"`
	CompileUS float64          `json:"compile_us"`
	Instances []instanceReport `json:"instances,omitempty"`
	Masks     *grammar.Timing  `json:"masks,omitempty"`
}

type instanceReport struct {
	Line  int    `json:"line"`
	Fits  bool   `json:"fits"`
	At    int    `json:"at,omitempty"`    // the first byte that does not fit
	Valid *bool  `json:"valid,omitempty"` // what the file says
	Error string `json:"error,omitempty"`
}

type grammarOptions struct {
	instances, model, blanks string
	anyOrder, json, times    bool
}

func (a *app) grammarCommand() *cobra.Command {
	var o grammarOptions
	cmd := &cobra.Command{
		Use:   "grammar FILE...",
		Short: "Say whether a schema or grammar can be enforced",
		Long:  grammarLong,
		Example: `  baleen grammar person.json --instances people.jsonl
  baleen grammar calls.gbnf --model qwen2.5-coder-0.5b --json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.grammar(cmd.Context(), args, o)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.instances, "instances", "", "a `file` of texts, one per line")
	fs.StringVar(&o.model, "model", "", "time masks on the vocabulary of a `model`")
	fs.StringVar(&o.blanks, "blanks", "usual", "where JSON may have blanks: usual, none or free")
	fs.BoolVar(&o.anyOrder, "any-order", false, "keys may come in any order")
	fs.BoolVar(&o.times, "all-times", false, "with --json, print the time of every mask")
	fs.BoolVar(&o.json, "json", false, "print JSON, one line per file")
	return cmd
}

func (a *app) grammar(ctx context.Context, files []string, o grammarOptions) error {
	options := grammar.Options{AnyOrder: o.anyOrder}
	blanks := map[string]grammar.Whitespace{"usual": grammar.Usual, "none": grammar.Compact, "free": grammar.Free}
	var ok bool
	if options.Whitespace, ok = blanks[o.blanks]; !ok {
		return usagef("--blanks is usual, none or free, not %q", o.blanks)
	}
	var tok *tokenizer.Tokenizer
	var vocabulary *grammar.Vocabulary
	if o.model != "" {
		var err error
		if tok, err = a.tokenizer(ctx, o.model); err != nil {
			return err
		}
		if vocabulary, err = model.Vocabulary(tok, tok.Size(), nil, tok.EOS()); err != nil {
			return err
		}
	}
	var texts []string
	if o.instances != "" {
		b, err := os.ReadFile(o.instances)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(b)) {
			texts = append(texts, strings.TrimRight(line, "\r\n"))
		}
	}
	refused := 0
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := a.grammarFile(file, texts, options, tok, vocabulary)
		if err != nil {
			return err
		}
		if !r.Accepted {
			refused++
		}
		if r.Masks != nil && o.times {
			r.Masks.Times = r.Masks.All
		}
		if err := a.printGrammar(r, o.json); err != nil {
			return err
		}
	}
	if refused > 0 && !o.json {
		return fmt.Errorf("%d of %d cannot be enforced", refused, len(files))
	}
	return nil
}

// grammarFile compiles one file and tries its instances.
func (a *app) grammarFile(file string, texts []string, o grammar.Options, tok *tokenizer.Tokenizer,
	v *grammar.Vocabulary,
) (*grammarReport, error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &grammarReport{File: file}
	var valid []bool
	compile := func() (*grammar.Grammar, error) { return grammar.JSONSchema(src, o) }
	switch filepath.Ext(file) {
	case ".gbnf":
		compile = func() (*grammar.Grammar, error) { return grammar.GBNF(string(src)) }
		texts = unquoted(texts)
	case ".lark":
		compile = func() (*grammar.Grammar, error) { return grammar.Lark(string(src)) }
		texts = unquoted(texts)
	default:
		if bare, own, says := collection(src); bare != nil {
			src, texts, valid = bare, own, says
		}
	}
	runtime.LockOSThread() // grammar.Clock is that of the thread
	defer runtime.UnlockOSThread()
	start := grammar.Clock()
	g, err := compile()
	r.CompileUS = float64((grammar.Clock() - start).Nanoseconds()) / 1000
	if err != nil {
		r.Error = err.Error()
		if e := (*schema.Error)(nil); errors.As(err, &e) {
			r.Keyword, r.Path = e.Keyword, &e.Path
		}
		return r, nil
	}
	r.Accepted, r.Notes = true, g.Notes()
	match := g
	if valid != nil { // the collection's instances stand in no order
		if match, err = grammar.JSONSchema(src, grammar.Options{AnyOrder: true, Whitespace: grammar.Compact}); err != nil {
			return nil, err
		}
	}
	for i, text := range texts {
		in := instanceReport{Line: i + 1}
		m, n, err := match.Matcher().Longest([]byte(text))
		switch {
		case err != nil:
			in.Error = err.Error()
		case n == len(text) && m.Accepting():
			in.Fits = true
		default:
			in.At = n
		}
		if valid != nil {
			in.Valid = &valid[i]
		}
		r.Instances = append(r.Instances, in)
	}
	if v == nil {
		return r, nil
	}
	timing := grammar.NewMasker(g, v).Timer()
	for i, text := range texts {
		if !r.Instances[i].Fits {
			continue
		}
		ids, err := tok.Encode(nil, text, tokenizer.Options{})
		if err != nil {
			return nil, err
		}
		if err := timing.Along(ids); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	if len(texts) == 0 {
		if err := timing.Random(rand.New(rand.NewPCG(1, 1)), 8, 100); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	r.Masks = timing.Result()
	return r, nil
}

// unquoted reads JSON strings among texts.
func unquoted(texts []string) []string {
	texts = slices.Clone(texts)
	for i, t := range texts {
		var s string
		if json.Unmarshal([]byte(t), &s) == nil {
			texts[i] = s
		}
	}
	return texts
}

// collection reads a schema that comes with instances.
func collection(src []byte) (bare []byte, texts []string, valid []bool) {
	var f struct {
		Schema json.RawMessage
		Tests  []struct {
			Data  json.RawMessage
			Valid bool
		}
	}
	if json.Unmarshal(src, &f) != nil || f.Schema == nil || f.Tests == nil {
		return nil, nil, nil
	}
	valid = []bool{}
	for _, t := range f.Tests {
		if text, err := grammar.Canonical(t.Data); err == nil {
			texts, valid = append(texts, text), append(valid, t.Valid)
		}
	}
	return f.Schema, texts, valid
}

func (a *app) printGrammar(r *grammarReport, asJSON bool) error {
	if asJSON {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(r); err != nil {
			return err
		}
		_, err := a.io.Out.Write(b.Bytes())
		return err
	}
	w := a.io.Out
	if !r.Accepted {
		fmt.Fprintf(w, "%s: refused: %s\n", r.File, r.Error)
		return nil
	}
	fmt.Fprintf(w, "%s: accepted, compiled in %.1f ms\n", r.File, r.CompileUS/1000)
	for _, n := range r.Notes {
		fmt.Fprintf(w, "  note: %s\n", n)
	}
	for _, in := range r.Instances {
		switch {
		case in.Error != "":
			fmt.Fprintf(w, "  line %d: %s\n", in.Line, in.Error)
		case in.Fits:
			fmt.Fprintf(w, "  line %d fits\n", in.Line)
		default:
			fmt.Fprintf(w, "  line %d does not fit, from byte %d on\n", in.Line, in.At)
		}
	}
	if m := r.Masks; m != nil && m.Count > 0 {
		fmt.Fprintf(w, "  %d masks of %d tokens: mean %.1f µs, median %.1f, 99 %% below %.1f, longest %.1f\n",
			m.Count, m.Tokens, m.Mean, m.P50, m.P99, m.Max)
	}
	return nil
}
