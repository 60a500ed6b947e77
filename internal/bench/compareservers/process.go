package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A peer is a server to measure.
type peer struct {
	name    string
	command func(port int) []string
	ready   string // the path that answers 200 once it is
}

// A server is a running one.
type server struct {
	*client
	cmd    *exec.Cmd
	log    bytes.Buffer
	exited chan struct{}
	name   string        // of the model
	ready  time.Duration // from the start of the process
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// start starts a server and waits until it is ready.
func (p *peer) start(ctx context.Context) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	c := p.command(port)
	s := &server{
		client: newClient(fmt.Sprintf("http://127.0.0.1:%d", port)),
		cmd:    exec.Command(c[0], c[1:]...),
		exited: make(chan struct{}),
	}
	s.cmd.Stderr, s.cmd.Stdout = &s.log, nil
	began := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.cmd.Wait() //nolint:errcheck // it is stopped by a signal
		close(s.exited)
	}()
	for !s.get(ctx, p.ready) {
		select {
		case <-s.exited:
			return nil, fmt.Errorf("%s ended: %s", p.name, s.log.String())
		case <-ctx.Done():
			s.stop()
			return nil, ctx.Err()
		case <-time.After(2 * time.Millisecond):
		}
	}
	s.ready = time.Since(began)
	if s.name, err = s.model(ctx); err != nil {
		s.stop()
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	s.client = newClient(s.url) // some servers close a connection that has carried many requests
	return s, nil
}

// stop ends the process and waits for it.
func (s *server) stop() {
	s.http.CloseIdleConnections()
	s.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
	select {
	case <-s.exited:
	case <-time.After(10 * time.Second):
		s.cmd.Process.Kill() //nolint:errcheck // it may have ended
		<-s.exited
	}
}

// memory is what the system says of a process, in bytes.
type memory struct{ all, anonymous, peak int64 }

func (m memory) String() string {
	return fmt.Sprintf(
		"%.0f MB (%.0f MB beside mapped files, peak %.0f MB)",
		float64(m.all)/1e6,
		float64(m.anonymous)/1e6,
		float64(m.peak)/1e6,
	)
}

func (s *server) memory() (m memory) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return m
	}
	for line := range strings.Lines(string(b)) {
		key, rest, _ := strings.Cut(line, ":")
		f := strings.Fields(rest)
		if len(f) != 2 {
			continue
		}
		kb, _ := strconv.ParseInt(f[0], 10, 64)
		switch key {
		case "VmRSS":
			m.all = kb << 10
		case "RssAnon":
			m.anonymous = kb << 10
		case "VmHWM":
			m.peak = kb << 10
		}
	}
	return m
}

// waited is how long the process's threads together were ready to run and did not: other programs had their
// processors. It is 0 where the system does not tell.
func (s *server) waited() (total time.Duration) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for _, t := range tasks {
		b, err := os.ReadFile(t)
		f := strings.Fields(string(b))
		if err != nil || len(f) < 2 {
			continue // the thread has ended
		}
		n, _ := strconv.ParseInt(f[1], 10, 64)
		total += time.Duration(n)
	}
	return total
}

// cpu is the processor time that the process has taken.
func (s *server) cpu() time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}
