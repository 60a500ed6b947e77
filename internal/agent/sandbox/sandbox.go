// Package sandbox runs commands that a model chose with no more than they need: the workspace and a private folder to
// write to, the system and its toolchains to read, no network but what a proxy lets through, bounded memory, processes
// and disk, and nothing of the user's secrets. It needs no other program: the binary runs itself as the helper that
// sets the limits and then becomes the command.
//
// It knows no models, no tools and no permission rules. What the kernel here can do is a Level; where it cannot do
// enough, Command refuses, and whoever runs commands must ask the user instead.
package sandbox

import (
	"errors"
	"fmt"
	"time"
)

// A Level says by which means commands are held.
type Level uint8

const (
	// None: this system cannot hold commands. Command returns an *UnavailableError.
	None Level = iota
	// Landlock: file access by Landlock, no sockets but local pairs, system calls by seccomp, signals and abstract
	// sockets scoped (Landlock ABI 6, Linux 6.12). It works inside containers. There is no network, whatever the policy
	// allows.
	Landlock
	// Namespaces: Landlock and seccomp inside namespaces of mounts, processes, network and IPC.
	Namespaces
	// Seatbelt: macOS's sandbox-exec.
	Seatbelt
)

func (l Level) String() string {
	return [...]string{"none", "landlock", "namespaces", "seatbelt"}[l]
}

// A Policy says what a command may do. Paths are absolute. What is not named is not allowed.
// RATIONALE: How is a command of a model's held?
type Policy struct {
	Write   []string // folders to read and write: the workspace
	Protect []string // files and folders inside Write that stay as they are, such as .git/hooks; they need not exist
	Read    []string // files and folders to read and execute, beside the system's own (see SystemPaths)
	Scratch string   // a private folder: the command's home, its caches and its temporary files; required

	// Proxy is the path of a Unix socket on which an HTTP proxy answers; "": no network at all.
	Proxy string

	Env    []string // KEY=value, beside those that Environment hands on
	Limits Limits
	// AtMost keeps to a lower level than this system has; None: no bound. For tests, and for users who must.
	AtMost Level
}

// Limits bound what a command takes. Zero values mean the defaults.
type Limits struct {
	Memory    int64         // bytes of all its processes together; 0: 4 GiB
	Processes int           // at a time, threads included; 0: 1024
	FileSize  int64         // bytes of one file; 0: 4 GiB
	FreeDisk  int64         // bytes that it must leave free where it writes; 0: 1 GiB, or half of what is free now
	Time      time.Duration // wall clock; 0: none (the caller's context ends it)
}

func (l Limits) withDefaults() Limits {
	if l.Memory == 0 {
		l.Memory = 4 << 30
	}
	if l.Processes == 0 {
		l.Processes = 1024
	}
	if l.FileSize == 0 {
		l.FileSize = 4 << 30
	}
	if l.FreeDisk == 0 {
		l.FreeDisk = 1 << 30
	}
	return l
}

// An UnavailableError says why commands cannot be held here.
type UnavailableError struct{ Reason string }

func (e *UnavailableError) Error() string {
	return "commands cannot be sandboxed here: " + e.Reason
}

// errRelative refuses policies that depend on the current folder.
var errRelative = errors.New("sandbox: a path of the policy is not absolute")

func (p *Policy) check() error {
	if p.Scratch == "" {
		return errors.New("sandbox: the policy names no scratch folder")
	}
	for _, list := range [][]string{p.Write, p.Protect, p.Read, {p.Scratch}} {
		for _, path := range list {
			if len(path) == 0 || path[0] != '/' {
				return fmt.Errorf("%w: %q", errRelative, path)
			}
		}
	}
	return nil
}

// Exit codes of the helper, beside the command's own. A command killed by a signal gives 128 and its number, as in a
// shell.
const (
	// ExitSetup: the limits could not be set, so nothing was run. The helper's standard error says why.
	ExitSetup = 125
	// ExitLimit: the command was ended because it took more than Limits. The last line of standard error says what.
	ExitLimit = 124
)
