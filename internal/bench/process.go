package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// FirstLine is what a worker prints once it has its first token.
const FirstLine = "first token"

// TimeToFirstToken starts command reps times, each time a new process, and measures from its start until it prints
// FirstLine. It gives milliseconds.
func TimeToFirstToken(ctx context.Context, command []string, stderr io.Writer, reps int) (Spread, error) {
	var values []float64
	for range reps {
		began := time.Now()
		err := child(ctx, command, stderr, func(line []byte) error {
			if string(line) != FirstLine {
				return fmt.Errorf("the worker said %q", line)
			}
			values = append(values, float64(time.Since(began).Microseconds())/1000)
			return nil
		})
		if err != nil {
			return Spread{}, err
		}
	}
	if len(values) != reps {
		return Spread{}, errors.New("a worker ended without its first token")
	}
	return SpreadOf(values), nil
}

// Measure starts command, a process that prints one Result as JSON in a line.
func Measure(ctx context.Context, command []string, stderr io.Writer) (Result, error) {
	var r Result
	got := false
	err := child(ctx, command, stderr, func(line []byte) error {
		got = true
		return json.Unmarshal(line, &r)
	})
	if err == nil && !got {
		err = errors.New("the worker ended without a result")
	}
	return r, err
}

// child runs a command and hands over the lines that it prints.
func child(ctx context.Context, command []string, stderr io.Writer, each func(line []byte) error) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	var problem error
	for lines.Scan() {
		problem = errors.Join(problem, each(lines.Bytes()))
	}
	problem = errors.Join(problem, lines.Err())
	if err := cmd.Wait(); err != nil {
		return errors.Join(&WorkerError{err}, problem)
	}
	return problem
}

// A WorkerError says that a worker process failed; it has said why on standard error.
type WorkerError struct{ Err error }

func (e *WorkerError) Error() string { return fmt.Sprintf("the measuring process failed: %v", e.Err) }

// Unwrap returns the cause.
func (e *WorkerError) Unwrap() error { return e.Err }
