package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/auth"
	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/config"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/server"
)

// there is a model that a server of this machine has loaded: nothing is loaded twice.
type there struct {
	r    *remote
	http *http.Client
	base string
	name string
	ab   about
}

// loadSettings are those that say how a model is loaded. A server has its own.
var loadSettings = []string{config.Device, config.Threads, config.Context, config.KV, config.CPU}

// askServer finds a server of this user on this machine that has the model of spec loaded under the name that was
// asked for. Where a setting says how the model is to be loaded, none will do.
// RATIONALE: Why does run ask a server, and which one?
func (a *app) askServer(ctx context.Context, name string, spec chat.Spec, f *runFlags) *there {
	if f.noServer || !byName(name) {
		return nil
	}
	for _, s := range loadSettings {
		if v := a.cfg.String(s); v != config.Get(s).Default {
			return nil
		}
	}
	r := &remote{host: defaultHost, port: defaultPort, key: a.cfg.String(config.APIKey)}
	if err := r.settle(a, f.flags); err != nil {
		return nil
	}
	if r.socket == "" && (!auth.Loopback(r.host) || r.port == 0) || !ownServer(r) { // what is said stays here
		return nil
	}
	path, err := filepath.Abs(spec.Path)
	if err != nil {
		return nil
	}
	quick, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var out struct {
		Models []server.LoadedModel `json:"models"`
	}
	if r.call(quick, http.MethodGet, "/baleen/models", nil, &out) != nil {
		return nil // what listens there is no server of ours, or has another key
	}
	for _, m := range out.Models {
		if m.Path != path || m.Loading || m.Leaving || m.Context == 0 {
			continue
		}
		d, err := model.Describe(path, a.modelOptions())
		if err != nil {
			return nil
		}
		client, base, err := r.client()
		if err != nil {
			return nil
		}
		info := d.Info
		t := &there{r: r, http: client, base: base, name: name}
		t.ab = about{
			Info:    info,
			Context: m.Context,
			Spec:    spec,
			Base:    info.ChatTemplate == "" && spec.Template == "",
			Server:  r.address(),
		}
		return t
	}
	return nil
}

func (t *there) about() about { return t.ab }
func (t *there) close()       { t.http.CloseIdleConnections() }

// body is a request as the server reads it.
func (t *there) body(q *chat.Request) *server.RunBody {
	s := q.Sampling
	b := &server.RunBody{
		Model: t.name, Prompt: q.Prompt, Raw: q.Raw, Said: q.Said, Stop: q.Stop, MaxTokens: q.MaxTokens, Thinking: q.Thinking, Effort: q.Effort,
		Temperature: s.Temperature, TopP: s.TopP, MinP: s.MinP, TypicalP: s.TypicalP, RepetitionPenalty: s.RepetitionPenalty,
		PresencePenalty: s.PresencePenalty, FrequencyPenalty: s.FrequencyPenalty, TopK: s.TopK, RepeatLastN: s.RepeatLastN, Seed: s.Seed,
	}
	b.Format, b.Schema, b.Grammar = q.Format.Kind, q.Format.Schema, q.Format.Text
	for _, m := range q.Messages {
		b.Messages = append(b.Messages, server.RunMessage{Role: m.Role, Content: textOf(m)})
	}
	if q.KeepAlive != nil {
		b.KeepAlive = new(q.KeepAlive.Seconds())
		if *q.KeepAlive < 0 {
			b.KeepAlive = new(-1.0)
		}
	}
	return b
}

// send asks the server. Errors are package chat's, as those of this process.
func (t *there) send(ctx context.Context, path string, q *chat.Request) (*http.Response, error) {
	b, err := json.Marshal(t.body(q))
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.base+path, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if t.r.key != "" {
		req.Header.Set("Authorization", "Bearer "+t.r.key)
	}
	res, err := t.http.Do(req)
	if err != nil {
		return nil, t.r.failed(err)
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return nil, t.r.failed(err)
	}
	var body struct{ Error serverError }
	if json.Unmarshal(text, &body) != nil || body.Error.Message == "" {
		return nil, fmt.Errorf("the server answered %s", res.Status)
	}
	return nil, body.Error.error()
}

// serverError is an error as the server's own routes write it.
type serverError struct {
	Kind, Message, Field string
	Tokens, Context      int
}

func (e serverError) error() error {
	k, ok := chat.ParseKind(e.Kind)
	if !ok {
		return errors.New(e.Message)
	}
	if k == chat.Cancelled {
		return context.Canceled
	}
	return &chat.Error{Kind: k, Msg: e.Message, Field: e.Field, Tokens: e.Tokens, Context: e.Context}
}

func (t *there) count(ctx context.Context, q *chat.Request) (int, error) {
	res, err := t.send(ctx, "/baleen/count", q)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	var n server.RunCount
	return n.Tokens, errors.Join(json.NewDecoder(res.Body).Decode(&n), ctx.Err())
}

// maxLineOf bounds a line of a server's answer; the last one has all ids of a conversation.
const maxLineOf = 64 << 20

func (t *there) answer(ctx context.Context, q *chat.Request, emit func(bool, string) error) (got answered, err error) {
	res, err := t.send(ctx, "/baleen/run", q)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Canceled
		}
		return got, err
	}
	defer res.Body.Close()
	var text, reasoning strings.Builder
	defer func() { got.text, got.reasoning = text.String(), reasoning.String() }()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, maxLineOf)
	for ctx.Err() == nil && lines.Scan() {
		var l struct {
			server.RunLine
			Done *runEnd `json:"done"`
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return got, fmt.Errorf("the server at %s sent what is no answer: %w", t.r.address(), err)
		}
		switch {
		case l.Done != nil:
			return got, l.Done.take(&got)
		case l.Reasoning != "":
			reasoning.WriteString(l.Reasoning)
			err = emit(true, l.Reasoning)
		default:
			text.WriteString(l.Text)
			err = emit(false, l.Text)
		}
		if err != nil {
			return got, err
		}
	}
	if ctx.Err() != nil {
		return got, context.Canceled
	}
	if err := lines.Err(); err != nil {
		return got, t.r.failed(err)
	}
	return got, fmt.Errorf("the server at %s ended in the middle of the answer", t.r.address())
}

// runEnd is server.RunEnd with the error as it is read here.
type runEnd struct {
	server.RunEnd
	Error *serverError `json:"error"`
}

// take puts the end of an answer into it.
func (e *runEnd) take(got *answered) error {
	got.tokens, got.said, got.context, got.sampled = e.Tokens, e.Said, e.Context, e.Sampled
	got.usage = chat.Usage{
		Prompt: e.Prompt, Cached: e.Cached, Generated: e.Answer, Reasoning: e.Thought, Seed: e.Seed,
		Queue: e.Queue, Prefill: e.Prefill, First: e.First, Decode: e.RunEnd.Decode, Total: e.Total,
	}
	if got.end = chat.Stop; e.Finish == chat.Length.String() {
		got.end = chat.Length
	}
	if e.Error != nil {
		return e.Error.error()
	}
	return nil
}
