// Package store keeps the agent's sessions on disk: a folder for each, with an append-only log of events in it. What
// the log has is confirmed: it survives a crash of the program at any moment, and one of the machine. It knows no models and no
// tools; what an event means is others' business.
package store

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/baleenrun/baleen/internal/agent/event"
)

// A Store is a folder of sessions. It is safe for concurrent use, also by several programs: each session has one writer.
type Store struct {
	dir string
	now func() time.Time
}

// Open returns the store in a folder, which need not exist yet.
func Open(dir string) *Store { return &Store{dir: dir, now: time.Now} }

// ErrNone is returned where there is no such session.
var ErrNone = errors.New("there is no such session")

// ErrBusy is returned where another program has the session open.
var ErrBusy = errors.New("the session is open in another program")

const (
	logName = "events.jsonl"
	maxLine = 256 << 20
)

// Dir returns the folder of a session, where what belongs to it may be kept (spilled outputs, checkpoints).
func (s *Store) Dir(id string) string { return filepath.Join(s.dir, id) }

// newID returns an id that sorts by time.
func (s *Store) newID() string {
	var b [5]byte
	_, _ = rand.Read(b[:])
	return s.now().UTC().Format("20060102-150405-") + strings.ToLower(base32.HexEncoding.EncodeToString(b[:]))[:6]
}

// validID keeps ids from naming anything outside of the store.
func validID(id string) bool {
	return id != "" && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && r != '-'
	})
}

// Create begins a session and its log, with the Session event in it. ID and Version are filled in.
func (s *Store) Create(begin event.Session) (*Log, error) {
	begin.ID, begin.Version = s.newID(), event.Version
	dir := s.Dir(begin.ID)
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, logName), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	l := &Log{ID: begin.ID, Dir: dir, f: f, now: s.now}
	if err = lock(f); err == nil {
		_, err = l.Append("", begin)
	}
	if err == nil {
		err = errors.Join(syncDir(dir), syncDir(s.dir))
	}
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("sessions: %w", err)
	}
	return l, nil
}

// Find returns the id of the session that a prefix of an id means.
func (s *Store) Find(prefix string) (string, error) {
	if !validID(prefix) {
		return "", fmt.Errorf("%w: %q", ErrNone, prefix)
	}
	ids, err := s.ids()
	if err != nil {
		return "", err
	}
	var found []string
	for _, id := range ids {
		if id == prefix {
			return id, nil
		}
		if strings.HasPrefix(id, prefix) {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%w: %q (baleen sessions list shows those there are)", ErrNone, prefix)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%q may mean %s: give more of the id", prefix, strings.Join(found[:min(4, len(found))], ", "))
}

// ids returns all sessions, the oldest first.
func (s *Store) ids() ([]string, error) {
	es, err := os.ReadDir(s.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	var out []string
	for _, e := range es {
		if e.IsDir() && validID(e.Name()) {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// Read returns what a session's log has. note says what of it could not be read; "": all could.
func (s *Store) Read(id string) (events []event.Event, note string, err error) {
	if !validID(id) {
		return nil, "", fmt.Errorf("%w: %q", ErrNone, id)
	}
	f, err := os.Open(filepath.Join(s.Dir(id), logName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, "", fmt.Errorf("%w: %q", ErrNone, id)
	}
	if err != nil {
		return nil, "", fmt.Errorf("sessions: %w", err)
	}
	defer f.Close()
	events, _, note, err = read(f)
	if err != nil {
		return nil, "", fmt.Errorf("session %s: %w", id, err)
	}
	return events, note, nil
}

// read returns the events up to the first line that is none, and how many bytes they take.
func read(f io.Reader) (events []event.Event, size int64, note string, err error) {
	r := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := readLine(r)
		if errors.Is(err, io.EOF) {
			if len(line) > 0 {
				note = "its last event was not written to the end"
			}
			break
		}
		if err != nil {
			return nil, 0, "", err
		}
		var e event.Event
		if err := json.Unmarshal(line, &e); err != nil || len(events) > 0 && e.Seq <= events[len(events)-1].Seq {
			note = fmt.Sprintf("line %d of its log is damaged", len(events)+1)
			break
		}
		events = append(events, e)
		size += int64(len(line))
	}
	if len(events) == 0 {
		return nil, 0, "", errors.New("its log has no event that can be read")
	}
	begin, ok := events[0].Body.(event.Session)
	switch {
	case !ok:
		return nil, 0, "", errors.New("its log does not begin with a session")
	case begin.Version > event.Version:
		return nil, 0, "", fmt.Errorf("its log is of version %d, and this program knows %d", begin.Version, event.Version)
	}
	return events, size, note, nil
}

func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, fmt.Errorf("a line of its log is longer than %d MiB", maxLine>>20)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// Resume opens a session to go on with it, and returns what its log has. What a crash left half written at the end is
// cut off; anything else that cannot be read is put beside the log first.
func (s *Store) Resume(id string) (l *Log, events []event.Event, note string, err error) {
	if !validID(id) {
		return nil, nil, "", fmt.Errorf("%w: %q", ErrNone, id)
	}
	f, err := os.OpenFile(filepath.Join(s.Dir(id), logName), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, "", fmt.Errorf("%w: %q", ErrNone, id)
	}
	if err != nil {
		return nil, nil, "", fmt.Errorf("sessions: %w", err)
	}
	l = &Log{ID: id, Dir: s.Dir(id), f: f, now: s.now}
	fail := func(err error) (*Log, []event.Event, string, error) {
		l.Close()
		return nil, nil, "", fmt.Errorf("session %s: %w", id, err)
	}
	if err := lock(f); err != nil {
		return fail(err)
	}
	events, size, note, err := read(f)
	if err != nil {
		return fail(err)
	}
	if note != "" {
		if err := l.cut(size); err != nil {
			return fail(err)
		}
	}
	if _, err := f.Seek(size, io.SeekStart); err != nil {
		return fail(err)
	}
	l.seq = events[len(events)-1].Seq
	return l, events, note, nil
}

// cut ends the log behind the last event that can be read, and keeps the rest in another file.
func (l *Log) cut(size int64) error {
	if _, err := l.f.Seek(size, io.SeekStart); err != nil {
		return err
	}
	rest, err := os.OpenFile(filepath.Join(l.Dir, logName+".damaged"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(rest, l.f)
	if err = errors.Join(err, rest.Sync(), rest.Close()); err != nil {
		return err
	}
	if err := l.f.Truncate(size); err != nil {
		return err
	}
	return l.f.Sync()
}

// Remove deletes a session with all that belongs to it. One that is in use is not.
func (s *Store) Remove(id string) error {
	if !validID(id) {
		return fmt.Errorf("%w: %q", ErrNone, id)
	}
	f, err := os.OpenFile(filepath.Join(s.Dir(id), logName), os.O_RDWR, 0)
	switch {
	case err == nil:
		defer f.Close()
		if err := lock(f); err != nil {
			return fmt.Errorf("session %s: %w", id, err)
		}
	case !errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("sessions: %w", err)
	}
	if _, err := os.Stat(s.Dir(id)); err != nil {
		return fmt.Errorf("%w: %q", ErrNone, id)
	}
	return os.RemoveAll(s.Dir(id))
}

// Fork begins a session that goes on from another one as it was after the event of number upTo; 0: all of it.
func (s *Store) Fork(id string, upTo uint64) (*Log, []event.Event, error) {
	events, _, err := s.Read(id)
	if err != nil {
		return nil, nil, err
	}
	begin := events[0].Body.(event.Session)
	begin.Parent = id
	l, err := s.Create(begin)
	if err != nil {
		return nil, nil, err
	}
	var b bytes.Buffer
	for _, e := range events[1:] {
		if upTo > 0 && e.Seq > upTo {
			break
		}
		line, err := event.Line(e)
		if err != nil {
			l.Close()
			return nil, nil, err
		}
		b.Write(line)
		l.seq = e.Seq
	}
	if _, err = l.f.Write(b.Bytes()); err == nil {
		err = l.f.Sync()
	}
	if err != nil {
		l.Close()
		return nil, nil, fmt.Errorf("session %s: %w", l.ID, err)
	}
	events, _, err = s.Read(l.ID)
	if err != nil {
		l.Close()
		return nil, nil, err
	}
	return l, events, nil
}

// A Log is a session that is open for writing. It is safe for concurrent use.
type Log struct {
	ID  string
	Dir string

	now func() time.Time
	mu  sync.Mutex
	f   *os.File
	seq uint64
	err error // of a write: nothing is confirmed any more
}

// Append numbers an event and, where it lasts, writes it. Events that something was promised with (messages, calls that
// begin or end, answers to questions, checkpoints) are on disk when it returns.
func (l *Log) Append(agent string, b event.Body) (event.Event, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return event.Event{}, l.err
	}
	l.seq++
	e := event.Event{Seq: l.seq, Time: l.now().UTC().Truncate(time.Millisecond), Agent: agent, Body: b}
	if !e.Lasts() {
		return e, nil
	}
	line, err := event.Line(e)
	if err != nil {
		return e, err
	}
	if _, err = l.f.Write(line); err == nil && confirms(b) {
		err = l.f.Sync()
	}
	if err != nil {
		l.err = fmt.Errorf("session %s cannot be written any more: %w", l.ID, err)
	}
	return e, l.err
}

func confirms(b event.Body) bool {
	switch b.(type) {
	case event.Turn, event.Usage, event.Note, event.Asked:
		return false
	}
	return true
}

// Close ends the writing.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		_ = l.f.Sync()
		l.err = errors.New("the session is closed")
	}
	_ = l.f.Close()
}

// An Info is a session in a list.
type Info struct {
	ID      string       `json:"id"`
	Time    time.Time    `json:"time"` // of its last event
	Title   string       `json:"title"`
	Root    string       `json:"root"`
	Model   string       `json:"model"`
	Parent  string       `json:"parent,omitempty"`
	End     string       `json:"end,omitempty"` // how its last work ended; "": it did not
	Sum     event.Counts `json:"usage"`
	Problem string       `json:"problem,omitempty"`
}

// List returns the sessions of a workspace, or all where root is "", the latest first. It reads the ends of each log:
// RATIONALE: Why do sessions have no index?
func (s *Store) List(root string) ([]Info, error) {
	ids, err := s.ids()
	if err != nil {
		return nil, err
	}
	var out []Info
	for _, id := range ids {
		i := s.info(id)
		if root == "" || i.Root == root {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b Info) int { return b.Time.Compare(a.Time) })
	return out, nil
}

// headSize and tailSize are what List reads of a log. An End stands in the tail unless a crash was the end.
const headSize, tailSize = 48 << 10, 16 << 10

func (s *Store) info(id string) Info {
	i := Info{ID: id}
	f, err := os.Open(filepath.Join(s.Dir(id), logName))
	if err != nil {
		i.Problem = "it has no log"
		return i
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		i.Problem = err.Error()
		return i
	}
	i.Time = st.ModTime()
	b := make([]byte, headSize)
	n, _ := io.ReadFull(f, b)
	first := ""
	for line := range bytes.Lines(b[:n]) {
		var e event.Event
		if json.Unmarshal(line, &e) != nil {
			break
		}
		switch b := e.Body.(type) {
		case event.Session:
			i.Root, i.Model, i.Parent = b.Root, b.Model, b.Parent
		case event.Message:
			if first == "" && b.Role == "user" && !b.Note {
				first = b.Text
			}
		case event.Title:
			i.Title = b.Title
		}
	}
	if i.Root == "" {
		i.Problem = "its log cannot be read"
		return i
	}
	tail := make([]byte, tailSize)
	n, _ = f.ReadAt(tail, max(0, st.Size()-tailSize))
	for line := range bytes.Lines(tail[:n]) {
		var e event.Event
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		switch b := e.Body.(type) {
		case event.Title:
			i.Title = b.Title
		case event.End:
			if i.End, i.Sum = b.Reason, b.Sum; b.Title != "" {
				i.Title = b.Title
			}
		case event.Message:
			i.End = ""
		}
		i.Time = e.Time
	}
	if i.Title == "" {
		i.Title = brief(first)
	}
	return i
}

// brief is the begin of a text, in one line.
func brief(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > 60 {
		text = string(r[:59]) + "…"
	}
	return text
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return ignoreUnsupported(d.Sync())
}
