package tool

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/gif"  // sizes of pictures
	_ "image/jpeg" // sizes of pictures
	_ "image/png"  // sizes of pictures
	"io"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/baleenrun/baleen/internal/agent/perm"
)

// read shows a file: its text as it is, without numbers of lines, which cost tokens and get copied into edits.
type read struct{}

type readArgs struct {
	Path   string `json:"path"`
	Offset int    `json:"offset,omitempty"`
	Limit  int    `json:"limit,omitempty"`
}

// Bounds of what read shows at a time, and of files that are read as a whole.
const (
	readLines  = 2000
	lineBytes  = 2000
	wholeBytes = 16 << 20
	imageBytes = 8 << 20
)

func (read) Spec() Spec {
	return Spec{
		Name: "read", Core: true,
		Description: "Show a file. offset: first line, from 1.",
		Parameters:  schema("path:string", "offset?:integer", "limit?:integer"),
	}
}

func (read) Effect(env *Env, args json.RawMessage) (perm.Effect, error) {
	var a readArgs
	if err := decode(args, &a); err != nil {
		return perm.Effect{}, err
	}
	at, err := env.agree(a.Path)
	if err != nil || env.spilled(at) {
		return perm.Effect{}, err
	}
	return perm.Effect{Reads: []string{at.real}}, nil
}

// spilled tells whether a file is one that a tool has put there for the model to read.
func (e *Env) spilled(at place) bool {
	if e.Spill == "" {
		return false
	}
	dir, err := filepath.EvalSymlinks(e.Spill)
	return err == nil && filepath.Dir(at.real) == dir
}

func (read) Run(ctx context.Context, env *Env, args json.RawMessage, out func(string)) (Result, error) {
	var a readArgs
	if err := decode(args, &a); err != nil {
		return failed("%v", err), nil
	}
	if a.Offset < 0 || a.Limit < 0 {
		return failed("offset and limit count lines, from 1"), nil
	}
	at, err := env.find(a.Path)
	if err != nil {
		return failed("%v", err), nil
	}
	if st, err := env.stat(at); err == nil && st.IsDir() {
		res, err := listing{}.Run(ctx, env, json.RawMessage(fmt.Sprintf(`{"path":%q}`, a.Path)), out)
		res.Text = at.shown + " is a folder:\n" + res.Text
		return res, err
	}
	f, st, err := env.open(at)
	if err != nil {
		return failed("%v", err), nil
	}
	defer f.Close()
	if st.Size() > wholeBytes {
		return readHuge(ctx, f, at, st.Size(), a, env.most())
	}
	data, err := io.ReadAll(io.LimitReader(f, wholeBytes+1))
	if err != nil {
		return failed("%s: %v", at.shown, plain(err)), nil
	}
	t, err := decodeText(data)
	if errors.Is(err, errBinary) {
		return readBinary(at, data), nil
	}
	all := lines(t.s)
	if len(data) == 0 {
		env.saw(at, data, 0, 0, 0)
		return Result{Text: "(the file is empty)"}, nil
	}
	from := max(a.Offset, 1) - 1
	if from >= len(all) {
		return failed("%s has %d lines", at.shown, len(all)), nil
	}
	limit := readLines
	if a.Limit > 0 {
		limit = min(a.Limit, readLines)
	}
	shown, to, cutLines := show(all[from:], limit, env.most())
	to += from
	if !cutLines {
		env.saw(at, data, from, to, len(all))
	}
	var notes []string
	if n := t.note(); n != "" {
		notes = append(notes, n)
	}
	if from > 0 || to < len(all) {
		note := fmt.Sprintf("lines %d-%d of %d", from+1, to, len(all))
		if to < len(all) {
			note += fmt.Sprintf("; the next is offset %d", to+1)
		}
		notes = append(notes, note)
	} else if !strings.HasSuffix(t.s, "\n") {
		notes = append(notes, "no newline at the end")
	}
	if len(notes) > 0 {
		shown += "\n[" + strings.Join(notes, "; ") + "]"
	}
	return Result{Text: shown}, nil
}

// most is how many bytes of a result the model is shown; a little is kept for notes.
func (e *Env) most() int {
	if e.Most == 0 {
		return 48 << 10
	}
	return max(e.Most-512, 1024)
}

// show joins as many lines as there is room for. Long lines are cut, which is said.
func show(all []string, limit, room int) (s string, n int, cutLines bool) {
	var b strings.Builder
	for n < len(all) && n < limit {
		line := all[n]
		if len(line) > lineBytes {
			line = cut(line, lineBytes) + fmt.Sprintf("[%d bytes more]", len(line)-lineBytes)
			cutLines = true
		}
		if n > 0 {
			if b.Len()+len(line) > room {
				break
			}
			b.WriteByte('\n')
		}
		b.WriteString(line)
		n++
	}
	return b.String(), n, cutLines
}

// readHuge shows lines of a file that is not held in memory.
func readHuge(ctx context.Context, f io.Reader, at place, bytesInAll int64, a readArgs, room int) (Result, error) {
	r := bufio.NewReaderSize(f, 64<<10)
	if head, _ := r.Peek(8 << 10); bytes.IndexByte(head, 0) >= 0 {
		return failed("%s is a binary file of %s", at.shown, size(bytesInAll)), nil
	}
	from, limit := max(a.Offset, 1)-1, readLines
	if a.Limit > 0 {
		limit = min(a.Limit, readLines)
	}
	var got []string
	n := 0
	for len(got) < limit && room > 0 {
		if n%4096 == 0 && ctx.Err() != nil {
			return Result{}, context.Cause(ctx)
		}
		line, err := boundedLine(r)
		if n >= from && (err == nil || line != "") {
			line = strings.ToValidUTF8(line, "\uFFFD")
			got = append(got, line)
			room -= len(line)
		}
		n++
		if err != nil {
			break
		}
	}
	if len(got) == 0 {
		return failed("%s has fewer than %d lines", at.shown, from+1), nil
	}
	return Result{Text: strings.Join(got, "\n") + fmt.Sprintf("\n[lines %d-%d of a file of %s; search it with grep]",
		from+1, from+len(got), size(bytesInAll))}, nil
}

// boundedLine reads a line of which only the beginning is kept.
func boundedLine(r *bufio.Reader) (string, error) {
	var b []byte
	for {
		part, err := r.ReadSlice('\n')
		if room := lineBytes - len(b); room > 0 {
			b = append(b, part[:min(room, len(part))]...)
		}
		if err != bufio.ErrBufferFull {
			return strings.TrimRight(string(b), "\r\n"), err
		}
	}
}

func readBinary(at place, data []byte) Result {
	kind := http.DetectContentType(data)
	if strings.HasPrefix(kind, "image/") && len(data) <= imageBytes {
		text := fmt.Sprintf("%s: %s, %s", at.shown, kind, size(int64(len(data))))
		if c, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil {
			text += fmt.Sprintf(", %d x %d pixels", c.Width, c.Height)
		}
		return Result{Text: text, Images: []Image{{MIME: kind, Data: data}}}
	}
	return failed("%s is a binary file (%s, %s)", at.shown, kind, size(int64(len(data))))
}
