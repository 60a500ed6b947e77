package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/agent/event"
)

func create(t *testing.T, s *Store, root string) *Log {
	t.Helper()
	l, err := s.Create(event.Session{Model: "m", Root: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func add(t *testing.T, l *Log, b event.Body) event.Event {
	t.Helper()
	e, err := l.Append("", b)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestTornTail: whatever a crash left behind the last whole line is cut off, kept beside, and the session goes on.
func TestTornTail(t *testing.T) {
	for _, tail := range []string{"", "{", `{"seq":9,"time":"2026-12-01T00:00:00Z","type":"message","ro`, "\x00\x00\x00", "{}\n", "\n"} {
		s := Open(t.TempDir())
		l := create(t, s, "/w")
		add(t, l, event.Message{Role: "user", Text: "hello"})
		add(t, l, event.Text{Text: "passing"})
		last := add(t, l, event.Message{Role: "assistant", Text: "hi", Tokens: []int32{1, 2, 3}})
		l.Close()
		path := filepath.Join(s.Dir(l.ID), logName)
		before, _ := os.ReadFile(path)
		if err := os.WriteFile(path, append(slices.Clone(before), tail...), 0o600); err != nil {
			t.Fatal(err)
		}
		l2, events, note, err := s.Resume(l.ID)
		if err != nil || len(events) != 3 || (note != "") != (tail != "") || !reflect.DeepEqual(events[2], last) {
			t.Fatalf("tail %q: %d events, %q, %v", tail, len(events), note, err)
		}
		if e := add(t, l2, event.End{Reason: event.Done}); e.Seq != last.Seq+1 {
			t.Errorf("tail %q: the next event is number %d, want %d", tail, e.Seq, last.Seq+1)
		}
		l2.Close()
		if events, note, err := s.Read(l.ID); err != nil || note != "" || len(events) != 4 {
			t.Errorf("tail %q: then %d events, %q, %v", tail, len(events), note, err)
		}
		if kept, _ := os.ReadFile(path + ".damaged"); string(kept) != tail {
			t.Errorf("tail %q: %q is kept", tail, kept)
		}
	}
}

// TestOneWriter: a session that is open is neither resumed nor removed by others.
func TestOneWriter(t *testing.T) {
	s := Open(t.TempDir())
	l := create(t, s, "/w")
	if _, _, _, err := s.Resume(l.ID); !errors.Is(err, ErrBusy) {
		t.Errorf("resumed beside: %v", err)
	}
	if err := s.Remove(l.ID); !errors.Is(err, ErrBusy) {
		t.Errorf("removed beside: %v", err)
	}
	l.Close()
	if _, err := l.Append("", event.Note{Text: "x"}); err == nil {
		t.Error("a closed log takes events")
	}
	if err := s.Remove(l.ID); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Read(l.ID); !errors.Is(err, ErrNone) {
		t.Errorf("read after it was removed: %v", err)
	}
}

// TestIDs: ids name nothing outside of the store, and a beginning that is clear is enough.
func TestIDs(t *testing.T) {
	s := Open(t.TempDir())
	for _, bad := range []string{"", "..", "../x", "a/b", ".", "A"} {
		if _, err := s.Find(bad); !errors.Is(err, ErrNone) {
			t.Errorf("Find(%q): %v", bad, err)
		}
		if err := s.Remove(bad); !errors.Is(err, ErrNone) {
			t.Errorf("Remove(%q): %v", bad, err)
		}
	}
	s.now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	a, b := create(t, s, "/w"), create(t, s, "/w")
	if id, err := s.Find(a.ID[:len(a.ID)-1]); err != nil || id != a.ID {
		t.Errorf("%q %v, want %q", id, err, a.ID)
	}
	if _, err := s.Find("20260102"); err == nil || !strings.Contains(err.Error(), "give more of the id") {
		t.Errorf("%v (%s, %s)", err, a.ID, b.ID)
	}
}

// TestFork: a fork has what was there up to an event, says whose it is, and the first session stays as it was.
func TestFork(t *testing.T) {
	s := Open(t.TempDir())
	l := create(t, s, "/w")
	at := add(t, l, event.Message{Role: "user", Text: "one"})
	add(t, l, event.Message{Role: "user", Text: "two"})
	f, events, err := s.Fork(l.ID, at.Seq)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	add(t, f, event.Message{Role: "user", Text: "other"})
	if len(events) != 2 || events[0].Body.(event.Session).Parent != l.ID || events[0].Body.(event.Session).ID != f.ID {
		t.Errorf("%+v", events)
	}
	if events, _, _ := s.Read(l.ID); len(events) != 3 {
		t.Errorf("the first session has %d events", len(events))
	}
}

// TestList: 1,000 sessions of some length are listed from the ends of their logs, the latest first.
func TestList(t *testing.T) {
	s := Open(t.TempDir())
	filler := strings.Repeat("x", 100<<10)
	for i := range 1000 { // written without fsync, which is not what is looked at
		id := fmt.Sprintf("20260101-000000-%06d", i)
		if err := os.MkdirAll(s.Dir(id), 0o700); err != nil {
			t.Fatal(err)
		}
		log := fmt.Sprintf(`{"seq":1,"time":"2026-01-01T00:00:00Z","type":"session","version":1,"model":"m","root":"/w%d"}
{"seq":2,"time":"2026-01-01T00:00:00Z","type":"message","role":"user","text":"first  words"}
`, i%2)
		if i%10 == 0 {
			log += `{"seq":3,"time":"2026-01-01T00:00:00Z","type":"message","role":"user","text":"` + filler + "\"}\n"
			log += `{"seq":4,"time":"2026-01-01T01:00:00Z","type":"end","reason":"done","title":"A title"}` + "\n"
		}
		if err := os.WriteFile(filepath.Join(s.Dir(id), logName), []byte(log), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	all, err := s.List("/w0")
	t.Logf("%v", time.Since(began))
	if err != nil || len(all) != 500 {
		t.Fatalf("%d %v", len(all), err)
	}
	if i := all[0]; i.Title != "A title" || i.End != event.Done || i.Problem != "" {
		t.Errorf("%+v", i)
	}
	if i := all[499]; i.Title != "first words" || i.End != "" {
		t.Errorf("%+v", i)
	}
}
