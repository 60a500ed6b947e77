// Command assistant is a chat in the terminal whose model has tools: the time, a calculator and the files of a
// folder. It is an example of the library; see README.md beside it.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/baleenrun/baleen"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out, log io.Writer) error {
	flags := flag.NewFlagSet("assistant", flag.ContinueOnError)
	name := flags.String("model", baleen.DefaultModel, "name of a model, a file, or a folder")
	folder := flags.String("folder", ".", "folder whose files the model may read")
	file := flags.String("session", "", "file that keeps the conversation")
	if err := flags.Parse(args); err != nil {
		return err
	}
	options, err := baleen.FromEnv()
	if err != nil {
		return err
	}
	options.Pip = true // it may fetch the default model where Hugging Face cannot be reached
	model, err := baleen.Open(ctx, *name, options)
	if err != nil {
		return err
	}
	defer model.Close()
	session, err := restore(model, *file)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(*folder) // no path leads out of it
	if err != nil {
		return err
	}
	defer root.Close()
	params := &baleen.Params{
		Tools: tools(root.FS()), DropOldest: true, Conclude: model.Info().Parameters < 2_000_000_000,
	}
	lines := bufio.NewScanner(in)
	for {
		fmt.Fprint(log, "> ")
		if !lines.Scan() {
			break
		}
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		if err := answer(ctx, session, lines.Text(), params, out, log); err != nil {
			var wrong *baleen.ParamError
			if !errors.As(err, &wrong) {
				return err
			}
			fmt.Fprintln(log, err) // such as text that is no UTF-8: ask again
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return save(session, *file)
}

// answer says something to the model and shows what comes of it.
func answer(ctx context.Context, s *baleen.Session, text string, p *baleen.Params, out, log io.Writer) error {
	for chunk, err := range s.Send(ctx, text, p) {
		if err != nil {
			return err
		}
		if len(chunk.Dropped) > 0 {
			fmt.Fprintf(log, "(%d old messages were dropped to make room)\n", len(chunk.Dropped))
		}
		if chunk.Call != nil {
			fmt.Fprintf(log, "(%s %s)\n", chunk.Call.Name, chunk.Call.Arguments)
		}
		if chunk.Result != nil {
			fmt.Fprintf(log, "(-> %s)\n", firstLine(chunk.Result.Content))
		}
		fmt.Fprint(log, chunk.Reasoning)
		fmt.Fprint(out, chunk.Text)
		if chunk.Finish != "" {
			fmt.Fprintf(out, "\n")
			fmt.Fprintf(log, "(%s, %d tokens)\n", chunk.Finish, chunk.Usage.Generated)
		}
	}
	return nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// restore goes on with the conversation in a file, or begins one.
func restore(model *baleen.Model, file string) (*baleen.Session, error) {
	if file == "" {
		return model.NewSession(instructions), nil
	}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return model.NewSession(instructions), nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return model.LoadSession(f)
}

func save(s *baleen.Session, file string) error {
	if file == "" {
		return nil
	}
	var b bytes.Buffer
	if err := s.Save(&b); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o600)
}

const instructions = "You are a helpful assistant. Use the tools where they help, and answer in a sentence or two."

// tools are what the model can do.
func tools(files fs.FS) []baleen.Tool {
	return []baleen.Tool{
		{
			Name: "clock", Description: "Tells the date and the time now.",
			Func: func(context.Context, json.RawMessage) (string, error) {
				return time.Now().Format(time.RFC1123), nil
			},
		},
		{
			Name: "calculate", Description: "Computes one operation on two numbers.",
			Parameters: json.RawMessage(`{"type":"object","required":["a","operation","b"],"properties":{
				"a":{"type":"number"},"operation":{"enum":["+","-","*","/"]},"b":{"type":"number"}}}`),
			Func: calculate,
		},
		{
			Name: "list_files", Description: "Lists the files of a folder.",
			Parameters: json.RawMessage(`{"type":"object","properties":{"folder":{"type":"string"}}}`),
			Func: func(_ context.Context, args json.RawMessage) (string, error) {
				a := struct{ Folder string }{"."}
				if err := json.Unmarshal(args, &a); err != nil {
					return "", err
				}
				list, err := fs.ReadDir(files, a.Folder)
				var names []string
				for _, f := range list {
					names = append(names, f.Name())
				}
				return strings.Join(names, "\n"), err
			},
		},
		{
			Name: "read_file", Description: "Reads the beginning of a text file.",
			Parameters: json.RawMessage(`{"type":"object","required":["path"],
				"properties":{"path":{"type":"string"}}}`),
			Func: func(_ context.Context, args json.RawMessage) (string, error) {
				var a struct{ Path string }
				if err := json.Unmarshal(args, &a); err != nil {
					return "", err
				}
				f, err := files.Open(a.Path)
				if err != nil {
					return "", err
				}
				defer f.Close()
				b, err := io.ReadAll(io.LimitReader(f, 4000))
				return strings.ToValidUTF8(string(b), ""), err
			},
		},
	}
}

// calculate is a tool's function. The arguments are what a model wrote: whatever they may be.
func calculate(_ context.Context, args json.RawMessage) (string, error) {
	var a struct {
		A, B      float64
		Operation string
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return "", err
	}
	switch a.Operation {
	case "+":
		return fmt.Sprint(a.A + a.B), nil
	case "-":
		return fmt.Sprint(a.A - a.B), nil
	case "*":
		return fmt.Sprint(a.A * a.B), nil
	case "/":
		if a.B == 0 {
			return "", errors.New("division by zero")
		}
		return fmt.Sprint(a.A / a.B), nil
	}
	return "", fmt.Errorf("there is no operation %q", a.Operation)
}
