package model

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// APIs that a Remote can speak.
const (
	OpenAI    = "openai"    // chat completions, as vLLM, SGLang, llama.cpp, Ollama and Baleen serve them, too
	Anthropic = "anthropic" // messages
)

// RemoteOptions say where a model is.
type RemoteOptions struct {
	API    string // "": OpenAI
	Base   string // such as http://host:8000/v1; of Anthropic's API without /v1
	Key    string
	Name   string // of the model there
	Window int    // tokens of prompt and answer; 0: asked for, where the server says
	// Parameters of the model, where they are known; 0: not known.
	Parameters int64
	Client     *http.Client
	// MaxTokens bounds each answer where nothing else does, for APIs that want a bound; 0: 8192.
	MaxTokens int
	// Own tells that the server is Baleen's: calls are held to the tools' schemas while they are written.
	Own bool
	// Sampling is left to the server where Temperature is nil.
	Temperature *float64
	Seed        *int64
	// Wait is called before a request is tried again; nil: it waits.
	Wait func(context.Context, time.Duration) error
}

// A Remote is a model of a server.
type Remote struct {
	o    RemoteOptions
	info Info
	api  dialect
}

// A dialect writes requests and reads answers.
type dialect interface {
	// request returns path and body. Bodies of one session begin alike, up to where the shorter conversation ends.
	request(s *remoteSession, o Options) (path string, body []byte)
	header(h http.Header, key string)
	// read takes the data of one server-sent event. It reports whether the answer is over.
	read(data []byte, r *reading) (over bool, err error)
}

// NewRemote makes a model of a server. It asks the server how long a context may be, where nothing says so and it can.
func NewRemote(ctx context.Context, o RemoteOptions) (*Remote, error) {
	if o.Client == nil {
		o.Client = &http.Client{}
	}
	if o.MaxTokens == 0 {
		o.MaxTokens = 8192
	}
	if o.Wait == nil {
		o.Wait = func(ctx context.Context, d time.Duration) error {
			select {
			case <-time.After(d):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	o.Base = strings.TrimRight(o.Base, "/")
	if o.Parameters == 0 {
		o.Parameters = parametersOf(o.Name)
	}
	m := &Remote{o: o, info: Info{Name: o.Name, Window: o.Window, Parameters: o.Parameters}}
	switch o.API {
	case "", OpenAI:
		m.api = openAI{}
		return m, m.ask(ctx)
	case Anthropic:
		m.api = anthropic{}
		return m, nil
	}
	return nil, fmt.Errorf("there is no API %q; there are %s and %s", o.API, OpenAI, Anthropic)
}

// size is a number of parameters in a model's name: 7b, 1.5B, 30B of 30B-A3B.
var size = regexp.MustCompile(`(?i)(?:^|[-_:/ ])(\d+(?:\.\d+)?)b(?:$|[-_:. ])`)

// parametersOf is how many parameters a model has by its name; 0: it does not say.
func parametersOf(name string) int64 {
	m := size.FindStringSubmatch(name)
	if m == nil {
		return 0
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0
	}
	return int64(n * 1e9)
}

// ask looks the model up in the server's list.
func (m *Remote) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.o.Base+"/models", nil)
	if err != nil {
		return fmt.Errorf("the address of the model's server: %w", err)
	}
	m.api.header(req.Header, m.o.Key)
	res, err := m.o.Client.Do(req)
	if err != nil {
		return fmt.Errorf("no answer from the model's server: %w", err)
	}
	defer res.Body.Close()
	var list struct {
		Data []struct {
			ID      string `json:"id"`
			Max     int    `json:"max_model_len"`  // vLLM, SGLang
			Context int    `json:"context_length"` // others
			Window  int    `json:"context_window"`
		} `json:"data"`
	}
	if res.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(res.Body, 16<<20)).Decode(&list) != nil {
		return nil // not all have a list, and some want no key for it
	}
	var ids []string
	for _, d := range list.Data {
		ids = append(ids, d.ID)
		if d.ID == m.o.Name || m.o.Name == "" {
			if m.o.Parameters == 0 {
				m.o.Parameters = parametersOf(d.ID)
				m.info.Parameters = m.o.Parameters
			}
			if m.o.Name, m.info.Name = d.ID, d.ID; m.info.Window == 0 {
				m.info.Window = max(d.Max, d.Context, d.Window)
			}
			return nil
		}
	}
	if len(ids) > 0 && len(ids) <= 20 {
		return fmt.Errorf("the server has no model %q; it has %s", m.o.Name, strings.Join(ids, ", "))
	}
	return nil
}

// Info says what is known of the model.
func (m *Remote) Info() Info { return m.info }

// Close ends what is left of connections.
func (m *Remote) Close() { m.o.Client.CloseIdleConnections() }

// Open begins a session, or goes on with one.
func (m *Remote) Open(spec Spec) Session {
	return &remoteSession{m: m, spec: spec, msgs: slices.Clone(spec.History)}
}

// A remoteSession sends the conversation with each request, written in the same bytes each time.
type remoteSession struct {
	m    *Remote
	spec Spec
	msgs []Message
	// What the last answer's prompt and answer took, for so many messages.
	used, usedFor int
}

func (s *remoteSession) Append(ms ...Message) { s.msgs = append(slices.Clip(s.msgs), ms...) }
func (s *remoteSession) Messages() []Message  { return slices.Clone(s.msgs) }

func (s *remoteSession) Fork() Session {
	f := *s
	f.msgs = slices.Clip(s.msgs)
	return &f
}

func (s *remoteSession) Truncate(n int) {
	if n >= len(s.msgs) {
		return
	}
	s.msgs = slices.Clip(s.msgs[:n])
	if s.usedFor > n {
		s.used, s.usedFor = 0, 0
	}
}

// Count is rough: what the server counted for the last answer, and a token for three bytes of what came since.
func (s *remoteSession) Count(context.Context) (int, error) {
	n := s.used
	if s.usedFor == 0 {
		n = len(s.spec.System) / 3
		for _, t := range s.spec.Tools {
			n += (len(t.Name) + len(t.Description) + len(t.Parameters)) / 3
		}
	}
	for _, m := range s.msgs[s.usedFor:] {
		n += 8 + (len(m.Text)+len(m.Reasoning))/3
		for _, c := range m.Calls {
			n += (len(c.Name) + len(c.Args)) / 3
		}
	}
	return n, nil
}

// reading is an answer as it comes.
type reading struct {
	a     Answer
	text  strings.Builder
	think strings.Builder
	open  map[int]int // the API's index of a call: place in a.Message.Calls
	emit  func(Delta)
	began time.Time
	some  bool // anything came
}

func (r *reading) first() {
	if !r.some {
		r.some, r.a.Usage.First = true, time.Since(r.began)
	}
}

func (r *reading) say(text string) {
	if text != "" {
		r.first()
		r.text.WriteString(text)
		r.emit(Delta{Text: text})
	}
}

func (r *reading) reason(text string) {
	if text != "" {
		r.first()
		r.think.WriteString(text)
		r.emit(Delta{Reasoning: text})
	}
}

// call takes a piece of a call.
func (r *reading) call(index int, id, name, args string) {
	r.first()
	at, ok := r.open[index]
	if !ok {
		at = len(r.a.Message.Calls)
		if id == "" {
			id = "call_" + strconv.Itoa(at) + "_" + strconv.FormatInt(r.began.UnixNano(), 36)
		}
		r.open[index] = at
		r.a.Message.Calls = append(r.a.Message.Calls, Call{ID: id, Name: name})
		name = ""
	}
	c := &r.a.Message.Calls[at]
	c.Name += name
	c.Args += args
	r.emit(Delta{Call: &Call{ID: c.ID, Name: c.Name, Args: args}})
}

const (
	tries     = 4
	maxEvent  = 16 << 20
	maxAnswer = 64 << 20
)

func (s *remoteSession) Generate(ctx context.Context, o Options, emit func(Delta)) (Answer, error) {
	path, body := s.m.api.request(s, o)
	for try := 1; ; try++ {
		r := &reading{open: map[int]int{}, emit: emit, began: time.Now()}
		wait, err := s.attempt(ctx, path, body, r)
		r.a.Usage.Total = time.Since(r.began)
		switch {
		case err == nil:
			return s.take(r, o), nil
		case ctx.Err() != nil:
			if r.text.Len()+r.think.Len() == 0 {
				return Answer{}, context.Cause(ctx)
			}
			r.a.Reason, r.a.Message.Calls = Length, nil // a call that is not whole is none
			return s.take(r, o), context.Cause(ctx)
		case wait <= 0 || r.some || try == tries:
			return Answer{}, err
		}
		if err := s.m.o.Wait(ctx, wait*time.Duration(1<<(try-1))); err != nil {
			return Answer{}, err
		}
	}
}

// take makes an answer part of the conversation.
func (s *remoteSession) take(r *reading, o Options) Answer {
	a := r.a
	a.Message.Role, a.Message.Text, a.Message.Reasoning = Assistant, strings.TrimSpace(r.text.String()), r.think.String()
	if o.NoTools {
		a.Message.Calls = nil
	}
	for i := range a.Message.Calls {
		if c := &a.Message.Calls[i]; strings.TrimSpace(c.Args) == "" {
			c.Args = "{}"
		}
	}
	switch {
	case a.Reason == Length:
	case len(a.Message.Calls) > 0:
		a.Reason = Calls
	default:
		a.Reason = Stop
		if !o.NoTools && o.Schema == nil {
			a.settle(slices.Concat(s.spec.Tools, s.spec.Behind), func() string { return "call_" + strconv.FormatInt(r.began.UnixNano(), 36) })
		}
	}
	a.Exact = true
	s.msgs = append(slices.Clip(s.msgs), a.Message)
	if a.Usage.Prompt > 0 {
		s.used, s.usedFor = a.Usage.Prompt+a.Usage.Generated, len(s.msgs)
	}
	return a
}

// attempt sends a request and reads the answer. wait is how long to wait before it may be tried again; 0: it may not.
func (s *remoteSession) attempt(ctx context.Context, path string, body []byte, r *reading) (wait time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.m.o.Base+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	s.m.api.header(req.Header, s.m.o.Key)
	res, err := s.m.o.Client.Do(req)
	if err != nil {
		return time.Second, fmt.Errorf("no answer from the model's server: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return s.refused(res)
	}
	lines := bufio.NewScanner(io.LimitReader(res.Body, maxAnswer))
	lines.Buffer(make([]byte, 64<<10), maxEvent)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if !ok {
			continue
		}
		over, err := s.m.api.read(bytes.TrimSpace(data), r)
		if err != nil || over {
			return 0, s.windowError(err)
		}
	}
	if err := lines.Err(); err != nil {
		return time.Second, fmt.Errorf("the model's server broke off: %w", err)
	}
	return time.Second, errors.New("the model's server ended its answer without its last event")
}

// refused words an answer that is none.
func (s *remoteSession) refused(res *http.Response) (wait time.Duration, err error) {
	b, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	text := strings.TrimSpace(string(b))
	var e struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	if json.Unmarshal(b, &e) == nil {
		var in struct{ Message string }
		switch {
		case json.Unmarshal(e.Error, &in) == nil && in.Message != "":
			text = in.Message
		case e.Message != "":
			text = e.Message
		}
	}
	err = s.windowError(fmt.Errorf("the model's server answered %s: %s", res.Status, text))
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout, 529:
		wait = time.Second
		if n, e := strconv.Atoi(res.Header.Get("Retry-After")); e == nil && n > 0 {
			wait = time.Duration(min(n, 30)) * time.Second
		}
	}
	return wait, err
}

// windowError finds out whether a refusal is of a prompt that is too long: each server words it in its own way.
func (s *remoteSession) windowError(err error) error {
	if err == nil {
		return nil
	}
	t := strings.ToLower(err.Error())
	for _, sign := range []string{
		"context_length_exceeded", "maximum context length", "context length", "context window", "prompt is too long",
		"exceeds the available context", "exceed_context_size", "too many tokens", "and the context holds", "longer than the model",
	} {
		if strings.Contains(t, sign) {
			n, _ := s.Count(context.Background())
			return errors.Join(&WindowError{Tokens: n, Window: s.m.info.Window}, err)
		}
	}
	return err
}

// compact writes JSON in the same bytes each time, without escapes for HTML.
func compact(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return []byte("null") // what is encoded here always can be
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// raw is JSON as it was given, or an empty object where it is none.
func raw(text string) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, []byte(text)) != nil || b.Len() == 0 || b.Bytes()[0] != '{' {
		return json.RawMessage("{}")
	}
	return b.Bytes()
}
