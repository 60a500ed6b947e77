package chatui

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// maxHistory bounds the inputs that are kept.
const maxHistory = 1000

// history is what was typed before, in a file with one JSON string a line. Without a file it is kept in memory.
type history struct {
	path  string
	lines []string
	at    int    // the one that is shown; len(lines): none
	draft string // what was typed before looking back
}

func openHistory(path string) *history {
	h := &history{path: path}
	if path != "" {
		if f, err := os.Open(path); err == nil {
			s := bufio.NewScanner(f)
			s.Buffer(nil, 1<<20)
			for s.Scan() {
				var line string
				if json.Unmarshal(s.Bytes(), &line) == nil && line != "" {
					h.lines = append(h.lines, line)
				}
			}
			f.Close()
		}
	}
	if n := len(h.lines); n > 2*maxHistory { // appended by many chats: shorten it now and then
		h.lines = h.lines[n-maxHistory:]
		h.rewrite()
	}
	h.at = len(h.lines)
	return h
}

func (h *history) rewrite() {
	var b strings.Builder
	for _, l := range h.lines {
		q, err := json.Marshal(l)
		if err != nil {
			return
		}
		b.Write(q)
		b.WriteByte('\n')
	}
	// A history that cannot be kept is no reason to stop.
	if os.WriteFile(h.path+".new", []byte(b.String()), 0o600) == nil {
		_ = os.Rename(h.path+".new", h.path)
	}
}

// add keeps an input, unless it is the last one again.
func (h *history) add(line string) {
	h.draft = ""
	if n := len(h.lines); n == 0 || h.lines[n-1] != line {
		h.lines = append(h.lines, line)
		h.write(line)
	}
	h.at = len(h.lines)
}

func (h *history) write(line string) {
	if h.path == "" {
		return
	}
	q, err := json.Marshal(line)
	if err != nil {
		return
	}
	_ = os.MkdirAll(filepath.Dir(h.path), 0o755)
	f, err := os.OpenFile(h.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	_, _ = f.Write(append(q, '\n')) // one write, so that chats side by side do not mix lines
	_ = f.Close()
}

func (h *history) older(now string) (string, bool) {
	if h.at == 0 {
		return "", false
	}
	if h.at == len(h.lines) {
		h.draft = now
	}
	h.at--
	return h.lines[h.at], true
}

func (h *history) newer() (string, bool) {
	if h.at >= len(h.lines) {
		return "", false
	}
	h.at++
	if h.at == len(h.lines) {
		return h.draft, true
	}
	return h.lines[h.at], true
}

// search looks back for an input that contains what was typed when the search began.
func (h *history) search(now string) (string, bool) {
	if h.at == len(h.lines) {
		h.draft = now
	}
	for i := h.at - 1; i >= 0; i-- {
		if strings.Contains(h.lines[i], h.draft) {
			h.at = i
			return h.lines[i], true
		}
	}
	return "", false
}
