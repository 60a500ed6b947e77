package chat

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// A Trace collects what one HTTP request did, for its log row. It travels in the request's context.
type Trace struct {
	ID     string // of the request
	Caller string // whose request it is: different for each API key, "" where none is needed
	// Guest says that the caller decides of no models but those that it made load how long they stay.
	Guest bool
	// Salt keeps the caller's prompts apart: cached prefixes are shared only under the same. "": with all who have
	// none.
	Salt string
	// Record keeps a step of the request for later reading; nil: nothing is kept.
	Record func(name string, data []byte)

	mu      sync.Mutex
	summary Summary
	notices []string
	names   map[string]Spec // what names of this request mean
}

// A Summary is what a Trace knows. A request that ran several streams sums their counts.
type Summary struct {
	Model   string
	Usage   Usage
	End     string // how it ended: a Reason, or an error's kind; "" where no stream ran
	Err     error
	Streams int
}

type traceKey struct{}

// WithTrace puts a trace into a context.
func WithTrace(ctx context.Context, t *Trace) context.Context {
	return context.WithValue(ctx, traceKey{}, t)
}

// TraceOf returns the context's trace, an empty one where there is none.
func TraceOf(ctx context.Context) *Trace {
	if t, ok := ctx.Value(traceKey{}).(*Trace); ok {
		return t
	}
	return &Trace{}
}

// Summary returns what is known so far.
func (t *Trace) Summary() Summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.summary
}

// Fail notes an error.
func (t *Trace) Fail(err *Error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.summary.Err, t.summary.End = err, err.Kind.String()
}

// spec returns what a name means that was looked up for this request before.
func (t *Trace) spec(name string) (Spec, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.names[name]
	return s, ok
}

// means notes what a name of this request means, and with it the canonical name.
func (t *Trace) means(name string, s Spec) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.names == nil {
		t.names = map[string]Spec{}
	}
	t.names[name], t.names[s.Name] = s, s
}

// Notice notes what a client should know of its request beside the answer; see Notices.
func (t *Trace) Notice(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.notices, text) {
		t.notices = append(t.notices, text)
	}
}

// Notices returns what was noted, in order.
func (t *Trace) Notices() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.notices)
}

// decides is who decides how long models stay, as pool.Use has it.
func (t *Trace) decides() string {
	if t.Guest {
		return t.Caller
	}
	return ""
}

// Hide takes the folders that lead to a path out of a text for the caller: places on this machine are nothing for keys
// that only run models.
func (t *Trace) Hide(text, path string) string {
	i := strings.LastIndexAny(path, `/\`)
	if !t.Guest || i < 0 {
		return text
	}
	return strings.ReplaceAll(text, path[:i+1], "")
}

// cacheSalt is what a request's cached prefixes lie under: no other pair of caller and field gives the same.
func (t *Trace) cacheSalt(field string) string {
	if t.Salt == "" && field == "" {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(t.Salt), t.Salt, field))
	return string(sum[:])
}

func (t *Trace) model(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.summary.Model = name
}

func (t *Trace) record(name string, data []byte) {
	if t.Record != nil {
		t.Record(name, data)
	}
}

func (t *Trace) ended(u Usage, end string, err *Error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &t.summary
	if s.Streams == 0 {
		s.Usage = u
	} else {
		s.Usage.Prompt += u.Prompt
		s.Usage.Cached += u.Cached
		s.Usage.Generated += u.Generated
		s.Usage.Reasoning += u.Reasoning
		s.Usage.Concluded += u.Concluded
		s.Usage.Total = max(s.Usage.Total, u.Total)
		s.Usage.Decode = max(s.Usage.Decode, u.Decode)
	}
	s.Streams++
	s.End = end
	if err != nil {
		s.Err = err
	}
}
