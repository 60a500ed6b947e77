package sandbox

import (
	"context"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const sandboxExec = "/usr/bin/sandbox-exec"

// Probe reports what this system can do, and why not more.
func Probe() (Level, string) {
	if _, err := exec.LookPath(sandboxExec); err != nil {
		return None, "there is no " + sandboxExec
	}
	return Seatbelt, ""
}

// Helper does nothing: sandbox-exec is part of the system.
func Helper() {}

func start(ctx context.Context, s *spec, c Command) (*Process, error) {
	if s.Policy.Proxy != "" {
		return nil, &UnavailableError{"hosts cannot be let through one by one on macOS yet"}
	}
	args := append([]string{"-p", seatbeltProfile(&s.Policy), "--"}, s.Args...)
	cmd := exec.Command(sandboxExec, args...)
	cmd.Dir, cmd.Env = s.Dir, s.Policy.Env
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = c.Stdin, c.Stdout, c.Stderr, 2*time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, life: group(cmd.Process.Pid), status: io.NopCloser(strings.NewReader(""))}
	p.forget = context.AfterFunc(ctx, p.Stop)
	if t := s.Policy.Limits.Time; t > 0 { // the group's number may be another's when it has ended
		end, forget := time.AfterFunc(t, p.Stop), p.forget
		p.forget = func() bool { end.Stop(); return forget() }
	}
	return p, nil
}

// A group is a process group that ends when it is closed.
type group int

func (g group) Close() error { return syscall.Kill(-int(g), syscall.SIGKILL) }

func signalOf(e *exec.ExitError) int {
	if w, ok := e.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return int(w.Signal())
	}
	return 0
}
