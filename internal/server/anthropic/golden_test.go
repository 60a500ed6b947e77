package anthropic_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/anthropic"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

var update = flag.Bool("update", false, "write what the dialect answers into the goldens and the reference page")

// A golden is a file of sections, each behind a line "-- name --":
//
//	request   body of POST /v1/messages
//	script    what the model writes; "---" on a line of its own stands between the answers to several prompts
//	fail      tokens after which the model fails; may be missing
//	prompt    what the model must see; may be missing
//	answer    status and document of the plain answer
//	stream    events of the streamed answer, deltas of one block joined
//	count     answer of count_tokens, for requests that are answered
//
// The last four are written by -update (prompt only where it is there).
type golden struct {
	path     string
	sections map[string]string
}

var goldenSections = []string{"request", "script", "fail", "prompt", "answer", "stream", "count"}

func readGolden(t *testing.T, path string) *golden {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g := &golden{path, map[string]string{}}
	name := ""
	for line := range strings.SplitAfterSeq(string(b), "\n") {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "-- "); ok && strings.HasSuffix(n, " --") {
			name = strings.TrimSuffix(n, " --")
			if !strings.Contains(" "+strings.Join(goldenSections, " ")+" ", " "+name+" ") {
				t.Fatalf("%s: no test uses the section %q", path, name)
			}
			g.sections[name] = ""
			continue
		}
		if name != "" {
			g.sections[name] += line
		}
	}
	if g.sections["request"] == "" {
		t.Fatalf("%s: there is no request", path)
	}
	return g
}

func (g *golden) write(t *testing.T) {
	t.Helper()
	var b strings.Builder
	for _, name := range goldenSections {
		if text, ok := g.sections[name]; ok {
			fmt.Fprintf(&b, "-- %s --\n%s", name, text)
			if !strings.HasSuffix(text, "\n") {
				b.WriteByte('\n')
			}
		}
	}
	if err := os.WriteFile(g.path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// check compares a section, or writes it with -update.
func (g *golden) check(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		g.sections[name] = got
		return
	}
	if want := g.sections[name]; strings.TrimSpace(want) != strings.TrimSpace(got) {
		t.Errorf("%s of %s:\ngot:\n%s\nwant:\n%s", name, g.path, got, want)
	}
}

func newWorld(t testing.TB, o servertest.Options) *servertest.World {
	t.Helper()
	o.Dialects = append(o.Dialects, anthropic.New)
	return servertest.New(t, o)
}

// scripted answers prompts with the scripts in order; the same prompt always gets the same answer.
func scripted(seen *[]string, scripts ...string) servertest.Script {
	var mu sync.Mutex
	given := map[string]string{}
	return func(prompt string) string {
		mu.Lock()
		defer mu.Unlock()
		if s, ok := given[prompt]; ok {
			return s
		}
		*seen = append(*seen, prompt)
		given[prompt] = scripts[min(len(given), len(scripts)-1)]
		return given[prompt]
	}
}

var randomIDs = regexp.MustCompile(`(msg|req|toolu)_[a-zA-Z0-9]{24}`)

// stable replaces ids by their order.
func stable(text string) string {
	n := map[string]int{}
	seen := map[string]string{}
	return randomIDs.ReplaceAllStringFunc(text, func(id string) string {
		if seen[id] == "" {
			kind, _, _ := strings.Cut(id, "_")
			n[kind]++
			seen[id] = fmt.Sprintf("%s_%d", kind, n[kind])
		}
		return seen[id]
	})
}

// pretty indents JSON.
func pretty(t *testing.T, text string) string {
	t.Helper()
	var v any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %.300s", err, text)
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// joined writes events one a line; deltas of one block and kind that follow each other become one.
func joined(t *testing.T, events []servertest.SSE) string {
	t.Helper()
	var out []string
	var last struct {
		key, field, text string
	}
	flush := func() {
		if last.key != "" {
			q, err := server.Marshal(last.text)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprintf("%s %s", last.key, q))
		}
		last.key, last.text = "", ""
	}
	for _, e := range events {
		var d struct {
			Type  string
			Index int
			Delta struct{ Type, Text, Thinking, Partial_JSON, Signature string }
		}
		if err := json.Unmarshal([]byte(e.Data), &d); err != nil {
			t.Fatalf("%v: %s", err, e.Data)
		}
		if d.Type != e.Name {
			t.Errorf("event %q has the type %q", e.Name, d.Type)
		}
		if d.Type == "content_block_delta" {
			key := fmt.Sprintf("%s %d %s", d.Type, d.Index, d.Delta.Type)
			if key != last.key {
				flush()
			}
			last.key = key
			last.text += d.Delta.Text + d.Delta.Thinking + d.Delta.Partial_JSON + d.Delta.Signature
			continue
		}
		flush()
		out = append(out, e.Data)
	}
	flush()
	return stable(strings.Join(out, "\n")) + "\n"
}

func TestGoldens(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatal(err, "no goldens")
	}
	all, _ := filepath.Glob("testdata/*")
	if len(all) != len(paths)+2 { // and the scripts of TestSDKs
		t.Errorf("testdata has files that no test uses: %v", all)
	}
	for _, p := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(p), ".txt"), func(t *testing.T) { testGolden(t, readGolden(t, p)) })
	}
}

func testGolden(t *testing.T, g *golden) {
	seen := []string{}
	var scripts []string
	for s := range strings.SplitSeq(g.sections["script"], "\n---\n") {
		scripts = append(scripts, strings.TrimSuffix(s, "\n"))
	}
	world := func() *servertest.World {
		w := newWorld(t, servertest.Options{Script: scripted(&seen, scripts...)})
		if n, ok := g.sections["fail"]; ok {
			var after int
			fmt.Sscan(n, &after)
			w.Backend.SetFail(func(_ string, written int) error {
				if written >= after {
					return errors.New("the disk is on fire")
				}
				return nil
			})
		}
		return w
	}
	var body map[string]json.RawMessage
	isObject := json.Unmarshal([]byte(g.sections["request"]), &body) == nil
	with := func(key, value string) string {
		if !isObject {
			return g.sections["request"]
		}
		m := map[string]json.RawMessage{}
		for k, v := range body {
			m[k] = v
		}
		m[key] = json.RawMessage(value)
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	plain := world().Post(t, "/v1/messages", g.sections["request"], "anthropic-version", "2023-06-01")
	g.check(t, "answer", fmt.Sprintf("%d\n%s", plain.Status, stable(pretty(t, plain.Body))))
	if _, ok := g.sections["prompt"]; ok {
		g.check(t, "prompt", strings.Join(seen, "\n---\n"))
	}
	w := world()
	if isObject {
		s := w.Post(t, "/v1/messages", with("stream", "true"), "anthropic-version", "2023-06-01")
		if strings.HasPrefix(s.Header.Get("Content-Type"), "text/event-stream") {
			g.check(t, "stream", joined(t, s.Events(t)))
			sameAsPlain(t, plain, s)
		} else if s.Status != plain.Status || stable(s.Body) != stable(plain.Body) {
			t.Errorf("streamed: %d %s", s.Status, s.Body)
		}
	}
	if plain.Status == 200 {
		countAs(t, w, g, body, plain)
	}
	if *update {
		g.write(t)
	}
}

// countAs asks for the count of the same conversation.
func countAs(t *testing.T, w *servertest.World, g *golden, body map[string]json.RawMessage, plain servertest.Reply) {
	t.Helper()
	m := map[string]json.RawMessage{}
	for _, k := range []string{"model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "context_management", "cache_control"} {
		if v, ok := body[k]; ok {
			m[k] = v
		}
	}
	b, _ := json.Marshal(m)
	r := w.Post(t, "/v1/messages/count_tokens", string(b))
	g.check(t, "count", r.Body)
	u := plain.JSON(t)["usage"].(map[string]any)
	total := u["input_tokens"].(float64) + u["cache_read_input_tokens"].(float64) + u["cache_creation_input_tokens"].(float64)
	if got := r.JSON(t)["input_tokens"]; got != total {
		t.Errorf("count_tokens says %v, the answer's usage %v", got, total)
	}
}

// sameAsPlain builds the message out of the events, as a client does, and compares its content with the plain one's.
func sameAsPlain(t *testing.T, plain, streamed servertest.Reply) {
	t.Helper()
	if plain.Status != 200 {
		return
	}
	startsWithItsEnd(t, streamed.Events(t))
	m := rebuild(t, streamed.Events(t))
	want := plain.JSON(t)
	for _, key := range []string{"content", "stop_reason", "stop_sequence", "model", "role", "context_management"} {
		got, _ := json.Marshal(m[key])
		exp, _ := json.Marshal(want[key])
		if stable(string(got)) != stable(string(exp)) {
			t.Errorf("%s of the stream: %s, plain: %s", key, got, exp)
		}
	}
	for key, v := range m["usage"].(map[string]any) {
		if key == "cache_creation" {
			continue
		}
		got, _ := json.Marshal(v)
		exp, _ := json.Marshal(want["usage"].(map[string]any)[key])
		if string(got) != string(exp) {
			t.Errorf("usage %s of the stream: %s, plain: %s", key, got, exp)
		}
	}
}

// rebuild accumulates events as the vendor's SDKs do, and checks their order.
func rebuild(t *testing.T, events []servertest.SSE) map[string]any {
	t.Helper()
	var m map[string]any
	var content []map[string]any
	open, args, ended, cut := -1, "", false, ""
	for i, e := range events {
		var d map[string]any
		if err := json.Unmarshal([]byte(e.Data), &d); err != nil {
			t.Fatal(err)
		}
		if ended {
			t.Fatalf("event %d behind the last one: %s", i, e.Data)
		}
		if (i == 0) != (e.Name == "message_start") {
			t.Fatalf("event %d is %s", i, e.Name)
		}
		switch e.Name {
		case "message_start":
			m = d["message"].(map[string]any)
		case "ping":
		case "content_block_start":
			if open >= 0 || int(d["index"].(float64)) != len(content) {
				t.Fatalf("block out of order: %s", e.Data)
			}
			open, args = len(content), ""
			content = append(content, d["content_block"].(map[string]any))
		case "content_block_delta":
			if int(d["index"].(float64)) != open {
				t.Fatalf("delta of a block that is not open: %s", e.Data)
			}
			x := d["delta"].(map[string]any)
			switch b := content[open]; x["type"] {
			case "text_delta":
				b["text"] = b["text"].(string) + x["text"].(string)
			case "thinking_delta":
				b["thinking"] = b["thinking"].(string) + x["thinking"].(string)
			case "signature_delta":
				b["signature"] = x["signature"]
			case "input_json_delta":
				args += x["partial_json"].(string)
			default:
				t.Fatalf("delta of the type %v", x["type"])
			}
		case "content_block_stop":
			if int(d["index"].(float64)) != open {
				t.Fatalf("stop of a block that is not open: %s", e.Data)
			}
			if content[open]["type"] == "tool_use" && args != "" {
				var in any
				if err := json.Unmarshal([]byte(args), &in); err != nil {
					cut = fmt.Sprintf("input %q: %v", args, err) // right where the answer was cut: plain it is text
					text := fmt.Sprintf(`{"name": %q, "arguments": %s`, content[open]["name"], args)
					content[open] = map[string]any{"type": "text", "text": text}
				} else {
					content[open]["input"] = in
				}
			}
			open = -1
		case "message_delta":
			if open >= 0 {
				t.Fatal("message_delta with an open block")
			}
			for k, v := range d["delta"].(map[string]any) {
				m[k] = v
			}
			for k, v := range d["usage"].(map[string]any) {
				m["usage"].(map[string]any)[k] = v
			}
			if c, ok := d["context_management"]; ok {
				m["context_management"] = c
			}
		case "message_stop", "error":
			ended = true
		default:
			t.Fatalf("unknown event %s", e.Name)
		}
	}
	if !ended {
		t.Fatal("the stream has no last event")
	}
	if cut != "" && m["stop_reason"] != "max_tokens" {
		t.Fatal(cut)
	}
	list := []any{}
	for _, b := range content {
		list = append(list, b)
	}
	m["content"] = list
	return m
}

// names lists an event stream's names, repeated ones once.
func names(events []servertest.SSE) []string {
	var out []string
	for _, e := range events {
		if n := len(out); n == 0 || out[n-1] != e.Name {
			out = append(out, e.Name)
		}
	}
	return out
}

func TestReferencePage(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "api", "anthropic.md")
	got := server.Reference(anthropic.New(&server.Env{}))
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != got {
		t.Errorf("%s is not what the declarations say: run go test ./internal/server/anthropic -update (%v)", path, err)
	}
}

func sortedKeys(m map[string]any) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
