// Package checkpoint keeps a workspace's files as they were before and after each turn of an agent, so that a turn can be
// undone and done again, whatever changed them: tools or commands. It keeps contents by their hashes, outside of the
// workspace and of the user's Git. It knows no models, tools or screens.
//
// RATIONALE: Why are checkpoints no commits?
package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Options say what is kept, and where.
type Options struct {
	Root string // the workspace
	Dir  string // where it is kept: a folder of the session's, outside of the workspace

	MaxFile  int64 // bytes of a file; larger ones are not kept, which is said; 0: 16 MiB
	MaxFiles int   // files and folders in the workspace; with more there are no checkpoints; 0: 50,000
	MaxBytes int64 // that are kept in all; 0: 1 GiB
}

// Checkpoints are those of one session. They are safe for concurrent use.
type Checkpoints struct {
	o Options

	mu    sync.Mutex
	turns []turn
	last  *snapshot // the latest one, of which unchanged files need not be read again
	bytes int64     // that are kept
}

// A turn is the work between two states.
type turn struct {
	ID     string `json:"id"`
	Before string `json:"before"` // snapshots
	After  string `json:"after"`  // "": the work goes on, or was cut short
	Undone bool   `json:"undone,omitempty"`
	// Undid are the turns that were undone right after it was taken, which restoring it does again.
	Undid []int `json:"undid,omitempty"`
}

// A Change is what a Restore has made.
type Change struct {
	ID    string   // of the checkpoint
	Files []string // relative to the workspace, changed
	// Lost are files that the turn changed and that are too large to be kept: they stay as they are.
	Lost []string
}

// A ConflictError names files that were changed after the turn, by hand for example. Nothing was changed.
type ConflictError struct {
	Files []string
	// Cut: the work was cut short, so that it cannot be told who changed them.
	Cut bool
}

func (e *ConflictError) Error() string {
	names := e.Files
	more := ""
	if len(names) > 10 {
		names, more = names[:10], fmt.Sprintf(" and %d more", len(names)-10)
	}
	why := "changed since then"
	if e.Cut {
		why = "changed in work that was cut short, or since then"
	}
	return fmt.Sprintf("nothing was taken back: %s %s%s", why, strings.Join(names, ", "), more)
}

// Open opens the checkpoints of a session, which need not be there yet.
func Open(o Options) (*Checkpoints, error) {
	if o.MaxFile == 0 {
		o.MaxFile = 16 << 20
	}
	if o.MaxFiles == 0 {
		o.MaxFiles = 50_000
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 30
	}
	c := &Checkpoints{o: o}
	b, err := os.ReadFile(c.file("turns.json"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("checkpoints: %w", err)
	default:
		if err := json.Unmarshal(b, &c.turns); err != nil {
			return nil, fmt.Errorf("checkpoints: %s: %w", c.file("turns.json"), err)
		}
	}
	for i, t := range c.turns {
		if slices.ContainsFunc(t.Undid, func(u int) bool { return u < 0 || u >= i }) || !named(t.Before) || t.After != "" && !named(t.After) {
			return nil, fmt.Errorf("checkpoints: %s names no snapshot", c.file("turns.json"))
		}
	}
	_ = filepath.WalkDir(c.file("blobs"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if st, err := d.Info(); err == nil {
				c.bytes += st.Size()
			}
		}
		return nil
	})
	return c, nil
}

func (c *Checkpoints) file(name ...string) string {
	return filepath.Join(append([]string{c.o.Dir}, name...)...)
}

// named tells whether a name is one of a snapshot or a content.
func named(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sha256.Size
}

// Take keeps the workspace as it is now, before a turn, or before a Restore that may be taken back.
func (c *Checkpoints) Take(ctx context.Context) (id string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.snapshot(ctx)
	if err != nil {
		return "", err
	}
	name, err := c.save(s)
	if err != nil {
		return "", err
	}
	id = fmt.Sprint(len(c.turns) + 1)
	return id, c.keep(append(slices.Clone(c.turns), turn{ID: id, Before: name}))
}

// End keeps what the turn has made of the workspace. What changes after that is others' work.
func (c *Checkpoints) End(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.turns)
	if n == 0 || c.turns[n-1].Undone || c.turns[n-1].After != "" {
		return nil
	}
	s, err := c.snapshot(ctx)
	if err != nil {
		return err
	}
	name, err := c.save(s)
	if err != nil {
		return err
	}
	turns := slices.Clone(c.turns)
	turns[n-1].After = name
	return c.keep(turns)
}

// NotKept lists files that the latest checkpoint does not have, since they are too large.
func (c *Checkpoints) NotKept() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	if c.last != nil {
		for path, e := range c.last.Entries {
			if e.Big {
				out = append(out, path)
			}
		}
	}
	slices.Sort(out)
	return out
}

// Restore makes the files that the agent has changed what they were at a checkpoint, and returns which. Where one was
// changed by somebody else since then, nothing is done and a *ConflictError names it.
func (c *Checkpoints) Restore(ctx context.Context, id string) ([]string, error) {
	ch, err := c.RestoreAll(ctx, id, false)
	return ch.Files, err
}

// RestoreAll is Restore, and says which files could not be restored; with force it takes back what somebody else has
// changed, too, as far as the agent had changed the same file.
func (c *Checkpoints) RestoreAll(ctx context.Context, id string, force bool) (Change, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.turns, func(t turn) bool { return t.ID == id })
	if at < 0 {
		return Change{}, fmt.Errorf("checkpoints: there is no %q", id)
	}
	turns := slices.Clone(c.turns)
	last := len(turns) - 1
	var steps []step
	if len(turns[at].Undid) > 0 { // it was taken before others were undone: they are done again
		for _, i := range turns[at].Undid {
			if turns[i].Undone {
				steps = append(steps, step{turns[i].Before, turns[i].After})
				turns[i].Undone = false
			}
		}
	} else {
		if last > at && turns[last].After == "" { // taken to come back to, just now
			turns[last].After = turns[last].Before
		}
		for i := last; i >= at; i-- {
			if t := turns[i]; !t.Undone && t.After != t.Before {
				if t.After == "" {
					name, err := c.cutShort(ctx, t, force)
					if err != nil {
						return Change{}, err
					}
					turns[i].After, t.After = name, name
				}
				steps = append(steps, step{t.After, t.Before})
				turns[i].Undone = true
				if last > at && i < last {
					turns[last].Undid = append([]int{i}, turns[last].Undid...)
				}
			}
		}
	}
	ch, err := c.move(ctx, steps, force)
	ch.ID = id
	if err != nil {
		return ch, err
	}
	return ch, c.keep(turns)
}

// cutShort is what there is now, in place of what a turn that did not end has made: nobody knows what that was. Where
// they are not the same, this is somebody's decision.
func (c *Checkpoints) cutShort(ctx context.Context, t turn, force bool) (string, error) {
	before, err := c.load(t.Before)
	if err != nil {
		return "", err
	}
	now, err := c.snapshot(ctx)
	if err != nil {
		return "", err
	}
	if names := differences(now, before); len(names) > 0 && !force {
		return "", &ConflictError{Files: names, Cut: true}
	}
	return c.save(now)
}

// A step goes from one snapshot to another.
type step struct{ from, to string }

// move goes from snapshot to snapshot, all or nothing: each file must be what the step before has made of it, and, before
// the first, what the step goes from.
func (c *Checkpoints) move(ctx context.Context, steps []step, force bool) (Change, error) {
	var ch Change
	begin, end := map[string]entry{}, map[string]entry{}
	conflicts := map[string]bool{}
	for _, s := range steps {
		a, err := c.load(s.from)
		if err != nil {
			return ch, err
		}
		b, err := c.load(s.to)
		if err != nil {
			return ch, err
		}
		for _, path := range differences(a, b) {
			was, will := a.Entries[path], b.Entries[path]
			if was.Big || will.Big {
				ch.Lost = append(ch.Lost, path)
				continue
			}
			if now, ok := end[path]; !ok {
				begin[path] = was
			} else if !now.same(was) {
				conflicts[path] = true // changed between the turns
			}
			end[path] = will
		}
	}
	root, err := os.OpenRoot(c.o.Root)
	if err != nil {
		return ch, fmt.Errorf("checkpoints: %w", err)
	}
	defer root.Close()
	var work []string
	for _, path := range slices.Sorted(maps.Keys(end)) {
		if ctx.Err() != nil {
			return ch, context.Cause(ctx)
		}
		was, will := begin[path], end[path]
		same, err := c.is(root, path, was)
		if err != nil {
			return ch, fmt.Errorf("checkpoints: %w", err)
		}
		if done, _ := c.is(root, path, will); done && !conflicts[path] {
			continue
		}
		if !same && (!was.dir() || !will.none()) { // a folder that has got other files stays, anyway
			conflicts[path] = true
		}
		if will.regular() {
			if _, err := os.Stat(c.blob(will.Sum)); err != nil {
				return ch, fmt.Errorf("checkpoints: the content of %s is not there any more: %w", path, err)
			}
		}
		work = append(work, path)
	}
	if len(conflicts) > 0 && !force {
		return Change{}, &ConflictError{Files: slices.Sorted(maps.Keys(conflicts))}
	}
	slices.Sort(ch.Lost)
	ch.Lost = slices.Compact(ch.Lost)
	if ch.Files, err = c.apply(root, work, &snapshot{Entries: end}); err != nil {
		return ch, fmt.Errorf("checkpoints: not all was taken back: %w", err)
	}
	return ch, nil
}

// differences are the paths that are not the same in two snapshots, sorted.
func differences(a, b *snapshot) []string {
	var out []string
	for path, e := range a.Entries {
		if !e.same(b.Entries[path]) {
			out = append(out, path)
		}
	}
	for path := range b.Entries {
		if _, ok := a.Entries[path]; !ok {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// keep writes the list of turns, which then counts.
func (c *Checkpoints) keep(turns []turn) error {
	b, err := json.Marshal(turns)
	if err == nil {
		err = c.write("turns.json", b)
	}
	if err != nil {
		return fmt.Errorf("checkpoints: %w", err)
	}
	c.turns = turns
	return nil
}

// write puts a file in its place as a whole.
func (c *Checkpoints) write(name string, b []byte) error {
	path := c.file(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "new-")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// save keeps a snapshot and returns its name.
func (c *Checkpoints) save(s *snapshot) (string, error) {
	stamps := maps.Clone(s.Entries)
	for path, e := range stamps { // times are of no use later, and would make equal states different
		e.stamp = stamp{}
		stamps[path] = e
	}
	b, err := json.Marshal(snapshot{Entries: stamps})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	name := hex.EncodeToString(sum[:])
	if _, err := os.Stat(c.file("snapshots", name)); err == nil {
		return name, nil
	}
	return name, c.write(filepath.Join("snapshots", name), b)
}

func (c *Checkpoints) load(name string) (*snapshot, error) {
	b, err := os.ReadFile(c.file("snapshots", name))
	if err != nil {
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != name {
		return nil, fmt.Errorf("checkpoints: the snapshot %s is damaged", name)
	}
	s := &snapshot{}
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	for path, e := range s.Entries {
		if !fs.ValidPath(path) || e.regular() && !e.Big && !named(e.Sum) {
			return nil, fmt.Errorf("checkpoints: the snapshot %s is damaged at %q", name, path)
		}
	}
	return s, nil
}
