package loop

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/agent/event"
	"github.com/baleenrun/baleen/internal/agent/model"
	"github.com/baleenrun/baleen/internal/agent/store"
)

const (
	crashDir = "BALEEN_TEST_CRASH_DIR"
	crashID  = "BALEEN_TEST_CRASH_ID"
)

// TestCrashChild is the process that is killed: an agent that works for ever and says of each event that it is confirmed.
func TestCrashChild(t *testing.T) {
	dir, id := os.Getenv(crashDir), os.Getenv(crashID)
	if dir == "" {
		t.Skip("it is run by TestKill")
	}
	w := newWorld(t, setup{alone: true, first: "Date: today"})
	w.store = store.Open(dir)
	w.root = t.TempDir()
	n := 0
	w.server.Backend.SetScript(func(string) string {
		if n++; n%5 == 0 {
			return "<think>\nHm.\n</think>\n\nDone with a part."
		}
		return w.family.Call("bash", fmt.Sprintf(`{"command":  "run %d é"}`, n))
	})
	out := bufio.NewWriterSize(os.Stdout, 0)
	w.o.Emit = func(e event.Event) {
		if b, err := json.Marshal(e); err == nil && e.Lasts() {
			sum := sha256.Sum256(b)
			fmt.Fprintf(out, "confirmed %d %s\n", e.Seq, hex.EncodeToString(sum[:8]))
			out.Flush()
		}
	}
	if id == "" {
		w.begin()
		fmt.Fprintf(out, "session %s\n", w.log.ID)
		out.Flush()
	} else {
		w.resume(id)
	}
	for {
		if _, _, err := w.agent.Send(t.Context(), "Go on."); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKill: a session is killed at 50 random moments, as a process, and goes on each time: nothing that was confirmed is
// lost, no call is without a result, and the tokens go on from those before.
func TestKill(t *testing.T) {
	rounds := 50
	if testing.Short() {
		rounds = 8
	}
	self, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	dir, id := t.TempDir(), ""
	confirmed := map[string]string{} // hash by number
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range rounds {
		cmd := exec.Command(self, "-test.run=^TestCrashChild$")
		cmd.Env = append(os.Environ(), crashDir+"="+dir, crashID+"="+id)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines, left := bufio.NewScanner(out), 1+rnd.IntN(40)
		for lines.Scan() {
			f := strings.Fields(lines.Text())
			switch {
			case len(f) == 2 && f[0] == "session":
				id = f[1]
			case len(f) == 3 && f[0] == "confirmed":
				confirmed[f[1]] = f[2]
				if left--; left == 0 {
					_ = cmd.Process.Kill()
				}
			default:
				t.Fatalf("round %d: %s", round, lines.Text())
			}
		}
		if err := cmd.Wait(); err == nil || left > 0 {
			t.Fatalf("round %d: the child ended by itself: %v", round, err)
		}
		events, _, err := store.Open(dir).Read(id)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		have := map[string]string{}
		var tokens []int32
		for _, e := range events {
			b, _ := json.Marshal(e)
			sum := sha256.Sum256(b)
			have[fmt.Sprint(e.Seq)] = hex.EncodeToString(sum[:8])
			if m, ok := e.Body.(event.Message); ok && m.Role == model.Assistant {
				if m.From != len(tokens) {
					t.Fatalf("round %d: event %d goes on from token %d of %d", round, e.Seq, m.From, len(tokens))
				}
				tokens = append(tokens, m.Tokens...)
			}
		}
		for seq, sum := range confirmed {
			if have[seq] != sum {
				t.Fatalf("round %d: event %s was confirmed as %s, and the log has %q", round, seq, sum, have[seq])
			}
		}
		s := Fold(events)
		open := map[string]bool{}
		for _, m := range s.Messages {
			if m.Role == model.Assistant && len(open) > 0 {
				t.Fatalf("round %d: an answer stands behind calls without results", round)
			}
			for _, c := range m.Calls {
				open[c.ID] = true
			}
			delete(open, m.CallID)
		}
	}
	t.Logf("%d events confirmed", len(confirmed))
}

// TestResumeEverywhere: a log that ends behind any of its events is gone on with, its prompt extends what there was, and a call
// whose result is missing is told so.
func TestResumeEverywhere(t *testing.T) {
	w := newWorld(t, setup{files: map[string]string{"a": "x"}, first: "Date: today"},
		`call:read {"path": "a"}`+"\n"+`call:bash {"command": "one"}`, `call:write {"path": "b", "content": "y"}`, "Done.", "More.")
	w.send("Go.")
	w.send("Again.")
	events, _, err := w.store.Read(w.log.ID)
	if err != nil {
		t.Fatal(err)
	}
	for n := 2; n <= len(events); n++ {
		cut := events[n-1]
		r := newWorld(t, setup{alone: true, resumed: w, first: "Date: today"}, "Here I am.")
		l, _, err := w.store.Fork(w.log.ID, cut.Seq)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		s := r.resume(l.ID)
		if end, last := r.send("Where are we?"); end.Reason != event.Done || last != "Here I am." {
			t.Fatalf("behind event %d (%s): %+v %q", cut.Seq, cut.Kind(), end, last)
		}
		if strings.Count(r.prompts[0], "Date: today") != 1 {
			t.Errorf("behind event %d (%s): the facts stand %d times", cut.Seq, cut.Kind(), strings.Count(r.prompts[0], "Date: today"))
		}
		for _, c := range s.Open {
			want := "not run: the program ended before"
			if s.Started[c.ID] {
				want = "the program ended while this ran"
			}
			if !strings.Contains(r.prompts[0], want) {
				t.Errorf("behind event %d (%s): %q is not in the prompt", cut.Seq, cut.Kind(), want)
			}
		}
		m := bodies[event.Message](r)
		if last := m[len(m)-1]; last.From != len(s.Tokens) {
			t.Errorf("behind event %d (%s): goes on from token %d of %d", cut.Seq, cut.Kind(), last.From, len(s.Tokens))
		}
	}
}

// TestOtherModel: with another model, the conversation is rendered anew: tokens of one mean nothing to the other.
func TestOtherModel(t *testing.T) {
	w := newWorld(t, setup{}, "Hello.")
	w.send("Hi.")
	w.log.Close()
	r := newWorld(t, setup{family: "mistral", alone: true, resumed: w}, "Hello again.")
	id := w.log.ID
	l, events, _, err := r.store.Resume(id)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r.o.Log = l
	begin := events[0].Body.(event.Session)
	begin.Digest = "another"
	events[0].Body = begin
	if r.agent, err = Resume(r.o, events); err != nil {
		t.Fatal(err)
	}
	r.send("Still there?")
	if m := bodies[event.Message](r); m[len(m)-1].From != 0 || !strings.Contains(r.prompts[0], "[INST]Hi.[/INST]Hello.</s>") {
		t.Errorf("from %d: %q", m[len(m)-1].From, r.prompts[0])
	}
}
