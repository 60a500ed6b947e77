package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/chattmpl"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/tokenizer"
)

// maxJSONLine bounds a line of --jsonl input.
const maxJSONLine = 256 << 20

// eachLine calls f with each line of standard input that is not empty. f's error is reported with the line's number.
// What f wrote to out is passed on before a read that may wait: a program may ask line by line.
func (a *app) eachLine(ctx context.Context, out *bufio.Writer, f func(line []byte) error) error {
	in := bufio.NewReaderSize(a.io.In, 1<<20)
	for n := 1; ; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
		line, err := readLine(in)
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := f(line); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
}

func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxJSONLine {
			return nil, fmt.Errorf("more than %d MiB", maxJSONLine>>20)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// tokenizer finds the tokenizer of a MODEL argument; a folder with only a tokenizer's files will do.
func (a *app) tokenizer(ctx context.Context, arg string) (*tokenizer.Tokenizer, error) {
	path, err := a.locate(ctx, arg)
	if err != nil {
		return nil, err
	}
	return model.LoadTokenizer(path)
}

// text is the argument, or standard input.
func (a *app) text(args []string) (string, error) {
	if len(args) > 1 {
		if !utf8.ValidString(args[1]) {
			return "", errors.New("the text is not UTF-8")
		}
		return args[1], nil
	}
	b, err := io.ReadAll(io.LimitReader(a.io.In, maxText+1))
	if err != nil {
		return "", fmt.Errorf("reading standard input: %w", err)
	}
	if len(b) > maxText || !utf8.Valid(b) {
		return "", errors.New("standard input is not UTF-8 text of at most 1 GiB")
	}
	return string(b), nil
}

func (a *app) tokenizeCommand() *cobra.Command {
	var o tokenizer.Options
	var jsonl, pieces, counts bool
	cmd := &cobra.Command{
		Use:   "tokenize MODEL [TEXT]",
		Short: "Turn text into token ids",
		Long: "Print the token ids of a text, or of standard input as it is. With --jsonl, standard input has one " +
			"JSON string\n" +
			"a line and one JSON array of ids is printed for each. MODEL may be a folder with only a tokenizer's " +
			"files.",
		Example: "  baleen tokenize smollm2-135m \"Hello, world\"\n  baleen tokenize smollm2-135m --jsonl " +
			"< strings.jsonl",
		Args:              argsBetween(1, 2, "MODEL and perhaps TEXT"),
		ValidArgsFunction: firstOnly(a.completeModels),
		RunE: func(cmd *cobra.Command, args []string) error {
			if jsonl && (len(args) > 1 || pieces || counts) {
				return usagef("--jsonl reads standard input and prints ids only")
			}
			if pieces && counts {
				return usagef("--pieces and --count exclude each other")
			}
			tok, err := a.tokenizer(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if jsonl {
				return a.tokenizeLines(cmd.Context(), tok, o)
			}
			text, err := a.text(args)
			if err != nil {
				return err
			}
			ids, err := tok.Encode(nil, text, o)
			if err != nil {
				return err
			}
			return a.printTokens(tok, ids, pieces, counts)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.AddSpecial, "add-special", false, "add the tokens that begin and end a text for this model")
	f.BoolVar(&o.ParseSpecial, "parse-special", false, "read control tokens that are written out in the text")
	f.BoolVar(&jsonl, "jsonl", false, "read JSON strings, print JSON arrays, one a line")
	f.BoolVar(&pieces, "pieces", false, "print each token with its text, one a line")
	f.BoolVar(&counts, "count", false, "print the number of tokens only")
	return cmd
}

func (a *app) printTokens(tok *tokenizer.Tokenizer, ids []int32, pieces, counts bool) error {
	w := bufio.NewWriter(a.io.Out)
	switch {
	case counts:
		fmt.Fprintln(w, len(ids))
	case pieces:
		for _, id := range ids {
			fmt.Fprintf(w, "%d\t%s\n", id, strconv.Quote(string(tok.Bytes(id))))
		}
	default:
		w.Write(appendIDs(nil, ids))
		w.WriteByte('\n')
	}
	return w.Flush()
}

// appendIDs writes a JSON array.
func appendIDs(b []byte, ids []int32) []byte {
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(id), 10)
	}
	return append(b, ']')
}

func (a *app) tokenizeLines(ctx context.Context, tok *tokenizer.Tokenizer, o tokenizer.Options) error {
	out := bufio.NewWriterSize(a.io.Out, 1<<20)
	var ids []int32
	var buf []byte
	err := a.eachLine(ctx, out, func(line []byte) (err error) {
		var text *string
		if err := json.Unmarshal(line, &text); err != nil || text == nil {
			return errors.New("not a JSON string")
		}
		if !wellFormed(line) {
			return errors.New("the string is no text: it has bytes that are not UTF-8, or half of a surrogate pair")
		}
		if ids, err = tok.Encode(ids[:0], *text, o); err != nil {
			return err
		}
		buf = append(appendIDs(buf[:0], ids), '\n')
		_, err = out.Write(buf)
		return err
	})
	return errors.Join(err, out.Flush())
}

// wellFormed reports whether a JSON string is Unicode text. The decoder puts U+FFFD where it is not, and the ids would
// be those of another text than the one that was asked about.
func wellFormed(line []byte) bool {
	at, _ := chat.LoneSurrogate(line)
	return utf8.Valid(line) && at < 0
}

func (a *app) detokenizeCommand() *cobra.Command {
	var jsonl, skip bool
	cmd := &cobra.Command{
		Use:   "detokenize MODEL [ID...]",
		Short: "Turn token ids into text",
		Long: "Print the text of token ids, given as arguments or on standard input, as numbers with spaces or " +
			"commas between\n" +
			"them or as a JSON array. With --jsonl, standard input has one JSON array a line and one JSON string is\n" +
			"printed for each.",
		Example: "  baleen detokenize smollm2-135m 19556 28 905\n  baleen detokenize smollm2-135m --jsonl " +
			"< ids.jsonl",
		Args:              argsBetween(1, 1<<20, "MODEL and perhaps token ids"),
		ValidArgsFunction: firstOnly(a.completeModels),
		RunE: func(cmd *cobra.Command, args []string) error {
			if jsonl && len(args) > 1 {
				return usagef("--jsonl reads standard input")
			}
			tok, err := a.tokenizer(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if jsonl {
				return a.detokenizeLines(cmd.Context(), tok, skip)
			}
			text := strings.Join(args[1:], " ")
			if len(args) == 1 {
				if text, err = a.text(nil); err != nil {
					return err
				}
			}
			ids, err := parseIDs(text, tok.Size())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.io.Out, a.printable(tok.Decode(ids, skip)))
			return err
		},
	}
	cmd.Flags().BoolVar(&jsonl, "jsonl", false, "read JSON arrays, print JSON strings, one a line")
	cmd.Flags().BoolVar(&skip, "skip-special", false, "leave control tokens out")
	return cmd
}

func parseIDs(text string, size int) ([]int32, error) {
	fields := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n,[]", r) })
	ids := make([]int32, 0, len(fields))
	for _, f := range fields {
		id, err := strconv.ParseInt(f, 10, 32)
		if err != nil || id < 0 || int(id) >= size {
			return nil, fmt.Errorf("%q is no token id: want numbers from 0 to %d", f, size-1)
		}
		ids = append(ids, int32(id))
	}
	return ids, nil
}

func (a *app) detokenizeLines(ctx context.Context, tok *tokenizer.Tokenizer, skip bool) error {
	out := bufio.NewWriterSize(a.io.Out, 1<<20)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	err := a.eachLine(ctx, out, func(line []byte) error {
		var given []*int32
		if err := json.Unmarshal(line, &given); err != nil || given == nil || slices.Contains(given, nil) {
			return errors.New("not a JSON array of token ids")
		}
		ids := make([]int32, len(given))
		for i, id := range given {
			if *id < 0 || int(*id) >= tok.Size() {
				return fmt.Errorf("%d is no token id: want numbers from 0 to %d", *id, tok.Size()-1)
			}
			ids[i] = *id
		}
		return enc.Encode(tok.Decode(ids, skip))
	})
	return errors.Join(err, out.Flush())
}

func (a *app) templateCommand() *cobra.Command {
	var file string
	var jsonl bool
	cmd := &cobra.Command{
		Use:   "template [MODEL]",
		Short: "Render conversations with a chat template",
		Long: "Render a conversation with a model's chat template, or with the template in --file. Standard input " +
			"has a JSON\n" +
			"object {\"messages\": [...], \"tools\": [...], \"add_generation_prompt\": true}; all other keys become " +
			"variables\n" +
			"of the template. With --jsonl there is one a line, and {\"text\": ...} or {\"error\": ...} is printed " +
			"for each.",
		Example: "  echo '{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}' |\n    baleen template " +
			"smollm2-135m\n  baleen template --file chat.jinja --jsonl < conversations.jsonl",
		Args:              argsBetween(0, 1, "MODEL or --file"),
		ValidArgsFunction: firstOnly(a.completeModels),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (file != "") {
				return usagef("want MODEL or --file FILE, one of them")
			}
			r, err := a.renderer(cmd.Context(), args, file)
			if err != nil {
				return err
			}
			if jsonl {
				return a.renderLines(cmd.Context(), r)
			}
			in, err := a.text(nil)
			if err != nil {
				return err
			}
			text, err := r.render(cmd.Context(), []byte(in))
			if err != nil {
				return err
			}
			_, err = io.WriteString(a.io.Out, a.printable(text))
			return err
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "read the template from this file")
	cmd.Flags().BoolVar(&jsonl, "jsonl", false, "read one conversation a line, print one JSON object a line")
	return cmd
}

// renderer renders conversations given as JSON.
type renderer struct {
	template *chattmpl.Template
	vars     []chattmpl.KV // spellings that the model has; a conversation may bring its own
}

func (a *app) renderer(ctx context.Context, args []string, file string) (*renderer, error) {
	name, src := file, model.TemplateSource{}
	if file != "" {
		b, err := readTemplate(file)
		if err != nil {
			return nil, err
		}
		src.Text = string(b)
	} else {
		path, err := a.locate(ctx, args[0])
		if err != nil {
			return nil, err
		}
		if src, err = model.LoadTemplate(path); err != nil {
			return nil, err
		}
		name = "chat template"
	}
	t, err := chattmpl.Parse(name, src.Text)
	if err != nil {
		return nil, err
	}
	return &renderer{t, []chattmpl.KV{
		{Key: "bos_token", Value: chattmpl.Text(src.BOS)}, {Key: "eos_token", Value: chattmpl.Text(src.EOS)},
	}}, nil
}

// readTemplate reads a file or a pipe, and no more of it than a template may have.
func readTemplate(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, chattmpl.MaxSource+1))
	if err != nil {
		return nil, err
	}
	if len(b) > chattmpl.MaxSource {
		return nil, fmt.Errorf("%s has more than %d bytes, too many for a template", path, chattmpl.MaxSource)
	}
	return b, nil
}

// errNoObject answers input that is no conversation at all.
var errNoObject = errors.New(`not a JSON object: want {"messages": [{"role": "user", "content": "..."}]}`)

// render decodes one conversation and renders it. Keys beside messages, tools and add_generation_prompt become
// variables.
func (r *renderer) render(ctx context.Context, line []byte) (string, error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return "", errNoObject
	}
	in := chattmpl.Input{}
	own := map[string]bool{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return "", fmt.Errorf("not a JSON object: %w", err)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return "", fmt.Errorf("not a JSON object: %w", err)
		}
		name, _ := key.(string)
		if name == "add_generation_prompt" {
			if err := json.Unmarshal(raw, &in.AddGenerationPrompt); err != nil {
				return "", errors.New("add_generation_prompt is neither true nor false")
			}
			continue
		}
		v, err := chattmpl.ParseJSON(raw)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		switch name {
		case "messages":
			in.Messages = v
		case "tools":
			if _, none := v.(chattmpl.None); !none {
				in.Tools = v
			}
		default:
			own[name] = true
			in.Extra = append(in.Extra, chattmpl.KV{Key: name, Value: v})
		}
	}
	if _, err := dec.Token(); err != nil {
		return "", fmt.Errorf("not a JSON object: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return "", errors.New("there is more behind the JSON object")
	}
	for _, v := range r.vars {
		if !own[v.Key] {
			in.Extra = append(in.Extra, v)
		}
	}
	out, err := r.template.Render(ctx, in, chattmpl.Limits{})
	if err != nil {
		return "", err
	}
	return out.Text(), nil
}

// rendered is a line of "template --jsonl".
type rendered struct {
	Text  *string `json:"text,omitempty"`
	Error *string `json:"error,omitempty"`
}

func (a *app) renderLines(ctx context.Context, r *renderer) error {
	out := bufio.NewWriterSize(a.io.Out, 1<<20)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	err := a.eachLine(ctx, out, func(line []byte) error {
		var reply rendered
		text, err := r.render(ctx, line)
		if err != nil {
			msg := err.Error()
			reply.Error = &msg
		} else {
			reply.Text = &text
		}
		return enc.Encode(reply)
	})
	return errors.Join(err, out.Flush())
}
