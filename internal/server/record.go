package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/baleenrun/baleen/internal/auth"
)

// A recorder keeps requests in folders: what the client sent (request.json, headers.json), what the model saw
// (prompt.txt) and wrote (output.txt), and what the client got (response.txt). Keys are left out of headers.
// What cannot be kept is logged; the request is answered all the same.
type recorder struct {
	dir string
	log *slog.Logger
}

// maxRecord bounds what is kept of one response.
const maxRecord = 16 << 20

func newRecorder(dir string, log *slog.Logger) (*recorder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("server: folder for records: %w", err)
	}
	return &recorder{dir, log}, nil
}

// attach makes a call keep its steps. The folder is made when the first one comes.
func (rec *recorder) attach(c *call, r *http.Request) {
	dir := filepath.Join(rec.dir, time.Now().UTC().Format("20060102-150405.000")+"-"+c.trace.ID)
	var mu sync.Mutex
	counts := map[string]int{}
	var response bytes.Buffer
	head, _ := json.MarshalIndent(struct {
		Method, URL string
		Header      http.Header
	}{r.Method, r.URL.String(), auth.Redact(r.Header)}, "", "  ")
	made, said := false, map[string]bool{}
	lost := func(path string, err error) {
		if err != nil && !said[path] { // a folder that cannot be made is tried again by every step
			said[path] = true
			rec.log.Warn("a part of a record is lost", "path", path, "error", err, "request", c.trace.ID)
		}
	}
	keep := func(name string, b []byte) {
		path := filepath.Join(dir, name)
		lost(path, os.WriteFile(path, b, 0o600))
	}
	write := func(name string, b []byte) {
		if !made {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				lost(dir, err)
				return
			}
			made = true
			keep("headers.json", append(head, '\n'))
		}
		if n := counts[name]; n > 0 { // several streams of one request
			name = fmt.Sprintf("%s.%d", name, n)
		}
		keep(name, b)
	}
	c.writer.tee = func(b []byte) {
		mu.Lock()
		defer mu.Unlock()
		if response.Len() < maxRecord {
			response.Write(b[:min(len(b), maxRecord-response.Len())])
		}
	}
	c.trace.Record = func(name string, b []byte) {
		mu.Lock()
		defer mu.Unlock()
		if name == "response.txt" {
			if !made && c.route == nil {
				return
			}
			b = response.Bytes()
		}
		write(name, b)
		counts[name]++
	}
}
