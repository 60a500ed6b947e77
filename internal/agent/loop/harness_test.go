package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/agent/event"
	"github.com/baleenrun/baleen/internal/agent/model"
	"github.com/baleenrun/baleen/internal/agent/perm"
	"github.com/baleenrun/baleen/internal/agent/store"
	"github.com/baleenrun/baleen/internal/agent/tool"
	modelpkg "github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// A world is an agent with a scripted model: the model's texts go through the real tokenizer, templates, parser,
// permissions and log.
type world struct {
	t      *testing.T
	family servertest.Family
	server *servertest.World
	model  *model.Local
	root   string
	store  *store.Store
	log    *store.Log
	o      Options
	agent  *Agent

	mu      sync.Mutex
	says    []string // what the model says next
	prompts []string // that it was asked with, forks included
	events  []event.Event
	asked   []Approval
	answer  func(Approval) Answer
	on      func(event.Event) // called for each event
}

// an answer that begins with call: is written as the family writes calls: "call:NAME ARGS", several one a line.
const callMark = "call:"

type setup struct {
	family  string // "": hermes
	window  int
	files   map[string]string
	mode    perm.Mode
	budget  Budget
	core    []tool.Tool // nil: fakes
	others  []tool.Tool
	titles  bool
	nobody  bool // to ask
	first   string
	alone   bool // no agent yet
	held    bool // calls are held to the schemas, one an answer, as with real small models
	resumed *world
}

func newWorld(t *testing.T, s setup, says ...string) *world {
	t.Helper()
	w := &world{t: t, says: says, answer: func(Approval) Answer { return Answer{Allow: true} }}
	for _, f := range servertest.Families() {
		if f.Name == s.family || s.family == "" && f.Name == "hermes" {
			w.family = f
		}
	}
	if s.family == "bare JSON" {
		w.family = servertest.Family{
			Checkpoint: servertest.Checkpoint{Visible: []string{}}, Answer: func(text string) string { return text },
			Call: func(name, args string) string { return fmt.Sprintf(`{"name": %q, "arguments": %s}`, name, args) },
		}
	}
	if s.window == 0 {
		s.window = 32768
	}
	w.server = servertest.New(t, servertest.Options{
		Checkpoint: w.family.Checkpoint, Script: w.script, Model: func(o *modelpkg.Options) { o.Context = s.window },
	})
	m, err := model.NewLocal(t.Context(), w.server.Chat, "", model.LocalOptions{Free: !s.held, Many: !s.held})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	w.model, w.root, w.store = m, t.TempDir(), store.Open(t.TempDir())
	if s.resumed != nil {
		w.root, w.store = s.resumed.root, s.resumed.store
	}
	for name, text := range s.files {
		w.write(name, text)
	}
	if s.core == nil {
		s.core = []tool.Tool{fake{w, "read"}, fake{w, "write"}, fake{w, "bash"}}
	}
	w.o = Options{
		Model: m, Policy: perm.New(perm.Options{Root: w.root, Mode: s.mode}), Core: s.core, Others: s.others,
		Env:  &tool.Env{Root: w.root, Home: t.TempDir(), Spill: t.TempDir(), Now: time.Now},
		Emit: w.take, Budget: s.budget, Titles: s.titles,
		More: func(...tool.Tool) tool.Tool { return nil },
	}
	if len(s.core) > 0 {
		if _, ok := s.core[0].(fake); !ok {
			w.o.More = nil // the real one
		}
	}
	if s.first != "" {
		w.o.First = func() string { return s.first }
	}
	if !s.nobody {
		w.o.Approve = func(_ context.Context, q Approval) Answer {
			w.mu.Lock()
			w.asked = append(w.asked, q)
			w.mu.Unlock()
			return w.answer(q)
		}
	}
	if !s.alone {
		w.begin()
	}
	return w
}

func (w *world) begin() {
	w.t.Helper()
	l, err := w.store.Create(Begin(w.o))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(l.Close)
	w.log, w.o.Log = l, l
	w.agent = New(w.o)
}

// resume goes on with another world's session, as another process would.
func (w *world) resume(id string) State {
	w.t.Helper()
	l, events, _, err := w.store.Resume(id)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(l.Close)
	w.log, w.o.Log = l, l
	if w.agent, err = Resume(w.o, events); err != nil {
		w.t.Fatal(err)
	}
	return Fold(events)
}

func (w *world) take(e event.Event) {
	w.mu.Lock()
	w.events = append(w.events, e)
	on := w.on
	w.mu.Unlock()
	if on != nil {
		on(e)
	}
}

// script is the model.
func (w *world) script(prompt string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.prompts = append(w.prompts, prompt)
	if len(w.says) == 0 {
		return w.family.Answer("There is nothing more.")
	}
	text := w.says[0]
	w.says = w.says[1:]
	if raw, ok := strings.CutPrefix(text, "raw:"); ok {
		return raw
	}
	if !strings.HasPrefix(text, callMark) {
		return w.family.Answer(text)
	}
	var out []string
	for _, line := range strings.Split(text, "\n") {
		name, args, _ := strings.Cut(strings.TrimPrefix(line, callMark), " ")
		out = append(out, w.family.Call(name, args))
	}
	return strings.Join(out, "\n")
}

func (w *world) send(text string) (event.End, string) {
	w.t.Helper()
	end, last, err := w.agent.Send(w.t.Context(), text)
	if err != nil {
		w.t.Fatal(err)
	}
	return end, last
}

func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) read(name string) string {
	b, _ := os.ReadFile(filepath.Join(w.root, name))
	return string(b)
}

// kinds are the words for what happened, without deltas.
func (w *world) kinds() string {
	var out []string
	for _, e := range w.events {
		if e.Lasts() && e.Kind() != "usage" {
			out = append(out, e.Kind())
		}
	}
	return strings.Join(out, " ")
}

// results are what the model was told of its calls.
func (w *world) results() []string {
	var out []string
	for _, m := range w.agent.Messages() {
		if m.Role == model.Tool {
			out = append(out, m.Text)
		}
	}
	return out
}

// checkGrowth wants each prompt to begin as the one before, unless the conversation was begun anew between them.
func (w *world) checkGrowth() {
	w.t.Helper()
	last := ""
	var tokens []int32
	for _, e := range w.events {
		if _, ok := e.Body.(event.Compaction); ok {
			tokens = nil
		}
		m, ok := e.Body.(event.Message)
		if !ok || m.Role != model.Assistant || e.Agent != "" {
			continue
		}
		if m.From != len(tokens) || len(m.Tokens) == 0 {
			w.t.Errorf("an answer's tokens go on from number %d, there were %d: %q behind %q", m.From, len(tokens), m.Text, last)
		}
		tokens = append(tokens[:m.From:m.From], m.Tokens...)
		last = m.Text
	}
}

// bodies returns what happened of a kind.
func bodies[T event.Body](w *world) []T {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []T
	for _, e := range w.events {
		if b, ok := e.Body.(T); ok {
			out = append(out, b)
		}
	}
	return out
}

// A fake tool reads, writes, or pretends to run commands.
type fake struct {
	w    *world
	name string
}

func (f fake) Spec() tool.Spec {
	return tool.Spec{Name: f.name, Description: "A " + f.name + " tool.", Core: true, Parameters: json.RawMessage(
		`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"},"command":{"type":"string"}}}`)}
}

type fakeArgs struct{ Path, Content, Command string }

func (f fake) Effect(env *tool.Env, args json.RawMessage) (perm.Effect, error) {
	var a fakeArgs
	if err := json.Unmarshal(args, &a); err != nil {
		return perm.Effect{}, err
	}
	path := filepath.Join(env.Root, a.Path)
	switch {
	case f.name == "bash" && a.Command == "":
		return perm.Effect{}, fmt.Errorf("bash needs a command")
	case f.name == "bash":
		return perm.Effect{Commands: []perm.Command{{Words: strings.Fields(a.Command)}}}, nil
	case f.name == "write":
		return perm.Effect{Writes: []string{path}}, nil
	}
	return perm.Effect{Reads: []string{path}}, nil
}

func (f fake) Run(ctx context.Context, env *tool.Env, args json.RawMessage, out func(string)) (tool.Result, error) {
	var a fakeArgs
	_ = json.Unmarshal(args, &a)
	path := filepath.Join(env.Root, a.Path)
	switch f.name {
	case "read":
		b, err := os.ReadFile(path)
		if err != nil {
			return tool.Result{Text: "there is no file " + a.Path, IsError: true}, nil
		}
		return tool.Result{Text: string(b)}, nil
	case "write":
		if err := os.WriteFile(path, []byte(a.Content), 0o644); err != nil {
			return tool.Result{Text: err.Error(), IsError: true}, nil
		}
		return tool.Result{Text: "written", Diff: "+" + a.Content, Changed: []string{path}}, nil
	}
	switch word, _, _ := strings.Cut(a.Command, " "); word {
	case "sleep":
		out("sleeping\n")
		<-ctx.Done()
		return tool.Result{Text: "sleeping\nkilled", IsError: true}, nil
	case "hang": // a tool that does not obey
		out("hanging\n")
		select {}
	case "panic":
		panic("out of order")
	case "fail":
		return tool.Result{Text: "exit 1", IsError: true}, nil
	}
	return tool.Result{Text: "ran " + a.Command}, nil
}

// moreFake calls the tools behind it by name.
func moreFake(behind ...tool.Tool) tool.Tool { return more(behind) }

type more []tool.Tool

func (m more) Spec() tool.Spec {
	return tool.Spec{Name: "more", Description: "Other tools.", Parameters: json.RawMessage(
		`{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object"}}}`)}
}

func (m more) find(args json.RawMessage) (tool.Tool, json.RawMessage, error) {
	var a struct {
		Name      string
		Arguments json.RawMessage
	}
	_ = json.Unmarshal(args, &a)
	for _, t := range m {
		if t.Spec().Name == a.Name {
			return t, a.Arguments, nil
		}
	}
	return nil, nil, fmt.Errorf("there is no tool %q", a.Name)
}

func (m more) Effect(env *tool.Env, args json.RawMessage) (perm.Effect, error) {
	t, args, err := m.find(args)
	if err != nil {
		return perm.Effect{}, err
	}
	return t.Effect(env, args)
}

func (m more) Run(ctx context.Context, env *tool.Env, args json.RawMessage, out func(string)) (tool.Result, error) {
	t, args, err := m.find(args)
	if err != nil {
		return tool.Result{}, err
	}
	return t.Run(ctx, env, args, out)
}
