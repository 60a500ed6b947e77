package event

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestJSON: an event is one flat object, comes back as it was, and keeps what a later program wrote.
func TestJSON(t *testing.T) {
	at := time.Date(2026, 12, 1, 6, 0, 0, 5e6, time.UTC)
	for _, c := range []struct {
		e    Event
		want string
	}{
		{Event{1, at, "", Text{"a<b>\n"}}, `{"seq":1,"time":"2026-12-01T06:00:00.005Z","type":"text","text":"a<b>\n"}`},
		{
			Event{2, at, "c1", ToolStart{"c2", "bash", `{"command":"ls"}`}},
			`{"seq":2,"time":"2026-12-01T06:00:00.005Z","type":"tool_start","agent":"c1","call":"c2","name":"bash","args":"{\"command\":\"ls\"}"}`,
		},
		{
			Event{3, at, "", Message{Role: "assistant", From: 2, Tokens: []int32{5, 6}}},
			`{"seq":3,"time":"2026-12-01T06:00:00.005Z","type":"message","role":"assistant","from":2,"tokens":[5,6]}`,
		},
	} {
		b, err := Line(c.e)
		if b = bytes.TrimSuffix(b, []byte("\n")); err != nil || string(b) != c.want {
			t.Errorf("%s %v, want %s", b, err, c.want)
		}
		var back Event
		if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, c.e) {
			t.Errorf("%+v %v, want %+v", back, err, c.e)
		}
	}
	const later = `{"seq":4,"time":"2026-12-01T06:00:00Z","type":"weather","sun":true}`
	var e Event
	if err := json.Unmarshal([]byte(later), &e); err != nil || e.Kind() != "weather" || e.Lasts() {
		t.Errorf("%+v %v", e, err)
	}
	if b, err := json.Marshal(e); err != nil || string(b) != later {
		t.Errorf("%s %v", b, err)
	}
	for _, bad := range []string{`{}`, `{"seq":1}`, `{"seq":1,"type":"text","text":5}`, `[]`} {
		if err := json.Unmarshal([]byte(bad), &e); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// TestKinds: each body is known to readers, under a name of its own.
func TestKinds(t *testing.T) {
	if len(types) != len(Kinds) {
		t.Errorf("%d names for %d kinds", len(types), len(Kinds))
	}
	for _, b := range Kinds {
		raw, err := json.Marshal(Event{Seq: 1, Body: b})
		if err != nil {
			t.Fatal(err)
		}
		var e Event
		if err := json.Unmarshal(raw, &e); err != nil || !reflect.DeepEqual(e.Body, b) {
			t.Errorf("%s: %+v %v", raw, e, err)
		}
	}
}

// TestDocumented: the page for users names every event.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/AGENT.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range Kinds {
		if !strings.Contains(string(page), "`"+b.kind()+"`") {
			t.Errorf("docs/AGENT.md does not name %s", b.kind())
		}
	}
}
