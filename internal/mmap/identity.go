package mmap

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// ErrChanged is wrapped by errors about a file that is no longer what it was when it was opened or identified.
var ErrChanged = errors.New("the file was changed while it was in use")

// A ChangedError says which file was changed. It wraps ErrChanged.
type ChangedError struct {
	Path string
	What string // what is seen to be different, such as "its size is another"
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s was changed while it was in use (%s): another program writes it; "+
		"once it is complete, try again", e.Path, e.What)
}

func (e *ChangedError) Unwrap() error { return ErrChanged }

// An Identity tells a file's contents from other contents by what the system says of the file: which file it is, its
// size, and when it and its description were last changed. A write changes the last two, and a program that sets the
// time of writing back does not set the time of that change back. Left unseen is what the system does not tell:
// writes through another program's mapping until the system notes them, and those on a file system (of the network,
// say) that reports times late or in whole seconds.
type Identity struct {
	info  os.FileInfo // says which file it is
	stamp stamp
}

// A stamp is what the system says of a file's contents; a description what can be changed of a file beside them.
type stamp struct {
	size, written int64 // bytes; nanoseconds
	changed       int64 // nanoseconds at which contents or description were last changed; 0: not told
	described     description
}

type description struct{ links, mode, uid, gid uint64 }

// differs says what tells two stamps apart, "" if nothing does. A change of the links to a file, its owner or its
// permissions is none of its contents, although the time of change counts it.
func (s *stamp) differs(now *stamp) string {
	switch {
	case s.size != now.size:
		return "its size is another"
	case s.written != now.written:
		return "its time of writing is another"
	case s.changed != now.changed && s.described == now.described:
		return "its time of change is another"
	}
	return ""
}

// Identify returns the identity of the file at path. Later writes are sure to give another one.
func Identify(path string) (Identity, error) {
	return identify(func() (os.FileInfo, error) { return os.Stat(path) })
}

func identify(stat func() (os.FileInfo, error)) (Identity, error) {
	for tries := 20; ; tries-- { // a file that is written all the time will be seen to change
		info, err := stat()
		if err != nil {
			return Identity{}, err
		}
		id := Identity{info, stampOf(info)}
		if tries == 0 || id.stamp.settled() {
			return id, nil
		}
		time.Sleep(tick)
	}
}

// tick is how long is waited for a clock of time stamps to go on, which stands still for some milliseconds at a time.
const tick = time.Millisecond

// settled reports whether a later write is sure to be seen: one within the same tick as the last would leave the same
// time. Times in the future, by another machine's clock, are not waited for.
func (s *stamp) settled() bool {
	now, ok := stampClock()
	return !ok || s.changed < now || s.changed > now+20*int64(time.Millisecond)
}

// Same reports whether both are of one file with the same contents.
func (id *Identity) Same(other *Identity) bool {
	return os.SameFile(id.info, other.info) && id.stamp.differs(&other.stamp) == ""
}

// Check returns an error that wraps ErrChanged where path is no longer the file of this identity, or is gone.
func (id *Identity) Check(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return &ChangedError{path, "it cannot be found"}
	}
	if !os.SameFile(id.info, info) {
		return &ChangedError{path, "it is another file"}
	}
	return id.stamp.check(path, stampOf(info))
}

func (s *stamp) check(path string, now stamp) error {
	if what := s.differs(&now); what != "" {
		return &ChangedError{path, what}
	}
	return nil
}

// Unchanged returns an error that wraps ErrChanged where the file was written since it was opened. That its name now
// means another file, or none, does not matter: what was opened stays as it was. It allocates nothing, so that it can
// be asked in every step.
func (m *File) Unchanged() error {
	f, ok := m.source.(*os.File)
	if !ok {
		return nil
	}
	if m.closed.Load() {
		return ErrClosed
	}
	now, err := stampOfOpen(f, m.fd)
	if err != nil {
		return &ChangedError{m.name, "it cannot be looked at: " + err.Error()}
	}
	return m.identity.stamp.check(m.name, now)
}
