package server_test

import (
	"os"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/server/servertest"
)

// TestEachSampleIsOneSeries loads two files that say the same name of themselves, as quantizations of one model do.
func TestEachSampleIsOneSeries(t *testing.T) {
	w := world(t, servertest.Options{
		Names: func(path string) servertest.Names {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path+".second", b, 0o600); err != nil {
				t.Fatal(err)
			}
			return servertest.Names{{Name: "first", Path: path}, {Name: "second", Path: path + ".second"}}
		},
	})
	for _, name := range []string{"first", "second"} {
		if r := w.Post(t, chatPath, strings.Replace(hello, "scripted", name, 1)); r.Status != 200 {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
	}
	body := w.Do(t, "GET", "/metrics", "").Body
	seen := map[string]bool{}
	for line := range strings.Lines(body) {
		series := line[:max(strings.LastIndexByte(line, ' '), 0)]
		if !strings.HasPrefix(line, "#") && seen[series] {
			t.Errorf("%s is there twice", series)
		}
		seen[series] = true
	}
	for _, want := range []string{`baleen_queue{model="first"}`, `baleen_queue{model="second"}`} {
		if !seen[want] {
			t.Errorf("no %s in %s", want, body)
		}
	}
}
