package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Bounds of a command's output: what the model is shown of its beginning and its end, and what is kept on disk.
const (
	outHead  = 4 << 10
	outTail  = 8 << 10
	outSpill = 64 << 20
)

// output collects what a command puts out: the beginning, the end, and, where that is not all, the whole in a file.
type output struct {
	file string // where the whole goes when it is too much; "": nowhere
	show func(string)

	mu    sync.Mutex
	head  []byte // all of it as long as it is short
	tail  []byte
	total int64
	spill *os.File
	half  []byte // of a character, not shown yet
	begun bool   // the file is written from the start
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.show != nil {
		o.stream(p)
	}
	before := o.total
	o.total += int64(len(p))
	if room := outHead + outTail - len(o.head); o.spill == nil && room >= len(p) && !o.begun {
		o.head = append(o.head, p...)
		return len(p), nil
	}
	if o.spill == nil && !o.begun {
		o.begin()
	}
	if o.spill != nil && before < outSpill {
		_, _ = o.spill.Write(p[:min(int64(len(p)), outSpill-before)])
	}
	if room := outHead - len(o.head); room > 0 {
		o.head = append(o.head, p[:min(room, len(p))]...)
		p2 := p[min(room, len(p)):]
		o.keep(p2)
		return len(p), nil
	}
	o.keep(p)
	return len(p), nil
}

// begin goes over to a file: what was kept so far is its beginning.
func (o *output) begin() {
	o.begun = true
	if o.file != "" {
		if f, err := os.OpenFile(o.file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
			o.spill = f
			_, _ = f.Write(o.head)
		}
	}
	if len(o.head) > outHead {
		rest := o.head[outHead:]
		o.head = o.head[:outHead:outHead]
		o.keep(rest)
	}
}

func (o *output) keep(p []byte) {
	o.tail = append(o.tail, p...)
	if len(o.tail) > 4*outTail {
		o.tail = append([]byte(nil), o.tail[len(o.tail)-outTail:]...)
	}
}

// state returns how much was written, and whether it goes to the file.
func (o *output) state() (int64, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total, o.spill != nil
}

// stream shows what has come, whole characters at a time.
func (o *output) stream(p []byte) {
	b := append(o.half, p...)
	n := len(b)
	for i := 1; i <= min(utf8.UTFMax-1, n); i++ {
		if utf8.RuneStart(b[n-i]) {
			if !utf8.FullRune(b[n-i:]) {
				n -= i
			}
			break
		}
	}
	o.half = append([]byte(nil), b[n:]...)
	if n > 0 {
		o.show(strings.ToValidUTF8(ansi.Strip(string(b[:n])), "\uFFFD"))
	}
}

// text is what the model is shown, within a bound, and the file that has the whole; "": the text has.
func (o *output) text(most int) (string, string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.begun && len(o.head) <= most {
		return clean(string(o.head)), ""
	}
	if !o.begun {
		o.begin()
	}
	file := ""
	if o.spill != nil {
		file = o.file
	}
	headMost, tailMost := min(outHead, most/3), min(outTail, most*2/3)
	head := strings.ToValidUTF8(string(o.head[:min(len(o.head), headMost)]), "")
	if i := strings.LastIndexByte(head, '\n'); i > 0 {
		head = head[:i+1]
	}
	tail := string(o.tail[max(0, len(o.tail)-tailMost):])
	if i := strings.IndexByte(tail, '\n'); i >= 0 && i < len(tail)-1 {
		tail = tail[i+1:]
	}
	left := o.total - int64(len(head)+len(tail))
	where := ""
	switch {
	case file != "" && o.total > outSpill:
		where = fmt.Sprintf("; the first %s are in %s", size(outSpill), file)
	case file != "":
		where = "; all of it is in " + file
	}
	return clean(head) + fmt.Sprintf("\n[… %s left out%s …]\n", size(left), where) + clean(tail), file
}

func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.spill != nil {
		_ = o.spill.Close()
	}
}

// clean makes what a program has written for a terminal a plain text: no escapes, of a line that was written over the last
// state, no control characters.
func clean(s string) string {
	s = ansi.Strip(strings.ToValidUTF8(s, "\uFFFD"))
	if strings.ContainsRune(s, '\r') {
		ls := strings.Split(s, "\n")
		for i, l := range ls {
			l = strings.TrimRight(l, "\r")
			ls[i] = l[strings.LastIndexByte(l, '\r')+1:]
		}
		s = strings.Join(ls, "\n")
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, s)
}

// spillFile returns the path of a new file for outputs; "": there is no place for them.
func (e *Env) spillFile(what string) string {
	if e.Spill == "" {
		return ""
	}
	e.state.mu.Lock()
	defer e.state.mu.Unlock()
	for range 100_000 {
		e.state.spills++
		path := filepath.Join(e.Spill, fmt.Sprintf("%s-%d.txt", what, e.state.spills))
		if _, err := os.Lstat(path); err != nil { // of a session that is gone on with
			return path
		}
	}
	return ""
}
