package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	"github.com/baleenrun/baleen/internal/auth"
	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/fairshare"
	"github.com/baleenrun/baleen/internal/server/fields"
)

// Options say how a server works. Chat is required.
type Options struct {
	Chat     *chat.Service
	Metrics  *Metrics // whose Hooks Chat has; nil: none
	Keys     *auth.Keys
	Hosts    auth.Hosts
	Log      *slog.Logger
	Version  string
	Dialects []func(*Env) Dialect

	MaxContext   int           // tokens of the largest context that a model is given: bounds what requests may hold; 0: not known
	MaxBody      int64         // bytes of a request; 0: 32 MiB
	MaxActive    int           // requests in work; 0: 1024; negative: no limit. See package fairshare
	ShareCache   bool          // API keys share cached prefixes, so that each can tell by time and counts what others sent
	BodyMemory   int64         // bytes of the bodies of all requests in work, see package fairshare; 0: 128 MiB; negative: no limit
	BodyTimeout  time.Duration // to send a body; 0: 2 minutes
	BodyPause    time.Duration // to send a piece of it; 0: 15 seconds
	WriteTimeout time.Duration // to read a piece of an answer; 0: 30 seconds
	RecordDir    string        // keeps what was sent and seen; "": nothing is kept
}

// A Server answers requests. It is an http.Handler.
type Server struct {
	o        Options
	env      *Env
	mux      *http.ServeMux
	dialects []Dialect
	routes   map[string][]entry // by path
	gate     *fairshare.Shares  // requests in work
	bodies   *fairshare.Shares  // bytes of their bodies
	stopping atomic.Bool
	ready    atomic.Bool
	life     context.Context // ends with End
	end      context.CancelCauseFunc
	recorder *recorder
	openapi  [2][]byte // the document of a server without keys, and of one with keys
}

type entry struct {
	dialect Dialect
	route   *Route
}

// New returns a server.
func New(o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Keys == nil {
		o.Keys = &auth.Keys{}
	}
	if o.MaxBody == 0 {
		o.MaxBody = defaultMaxBody
	}
	if o.BodyMemory == 0 {
		o.BodyMemory = defaultBodyMemory
	}
	if o.BodyPause == 0 {
		o.BodyPause = 15 * time.Second
	}
	if o.MaxActive == 0 {
		o.MaxActive = 1024
	}
	if o.BodyTimeout == 0 {
		o.BodyTimeout = 2 * time.Minute
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = 30 * time.Second
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics()
	}
	s := &Server{
		o: o, mux: http.NewServeMux(), routes: map[string][]entry{}, gate: fairshare.New(int64(o.MaxActive)), bodies: fairshare.New(o.BodyMemory),
		env: &Env{
			Chat:    o.Chat,
			Log:     o.Log,
			Version: o.Version,
			Now:     time.Now,
			Limits:  fields.Limits{Tokens: o.MaxContext},
		},
	}
	s.life, s.end = context.WithCancelCause(context.Background())
	s.env.Ready = func() bool { return s.ready.Load() && !s.stopping.Load() }
	s.ready.Store(true)
	if o.RecordDir != "" {
		r, err := newRecorder(o.RecordDir, o.Log)
		if err != nil {
			return nil, err
		}
		s.recorder = r
	}
	s.add(&own{s: s})
	for _, d := range o.Dialects {
		s.add(d(s.env))
	}
	for p, list := range s.routes {
		sort.SliceStable(list, func(i, j int) bool { return list[i].route.When != nil && list[j].route.When == nil })
		s.mux.HandleFunc(p, func(http.ResponseWriter, *http.Request) {}) // the mux only matches paths
	}
	for i := range s.openapi {
		doc, err := s.document(i == 1)
		if err != nil {
			return nil, err
		}
		s.openapi[i] = doc
	}
	return s, nil
}

func (s *Server) add(d Dialect) {
	s.dialects = append(s.dialects, d)
	for _, r := range d.Routes() {
		s.routes[r.Path] = append(s.routes[r.Path], entry{d, &r})
	}
}

// Dialects returns the dialects, the server's own first.
func (s *Server) Dialects() []Dialect { return s.dialects }

// SetReady says whether /readyz answers yes: a server that still loads the model that it was started with is not.
func (s *Server) SetReady(ready bool) { s.ready.Store(ready) }

// Stop refuses new requests; those in work go on.
func (s *Server) Stop() { s.stopping.Store(true) }

// End makes the requests in work end now, with an error in each one's own shape: a connection that is just closed
// leaves streams without their last event.
func (s *Server) End() {
	s.Stop()
	s.end(&chat.Error{Kind: chat.Unavailable, RetryAfter: 5 * time.Second})
}

// Active returns the number of requests in work.
func (s *Server) Active() int { return int(s.gate.Total()) }

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	began := time.Now()
	trace := &chat.Trace{ID: requestID(r)}
	w := &writer{ResponseWriter: rw, timeout: s.o.WriteTimeout, notices: trace.Notices}
	c := &call{
		trace:       trace,
		writer:      w,
		maxBody:     s.o.MaxBody,
		limits:      s.env.Limits,
		bodies:      s.bodies,
		bodyTimeout: s.o.BodyTimeout,
		bodyPause:   s.o.BodyPause,
	}
	defer c.release()
	noteRequest(r)
	if s.recorder != nil {
		s.recorder.attach(c, r)
	}
	ctx, cancel := context.WithCancelCause(context.WithValue(chat.WithTrace(r.Context(), c.trace), callKey{}, c))
	defer cancel(nil)
	defer context.AfterFunc(s.life, func() { cancel(context.Cause(s.life)) })()
	r = r.WithContext(ctx)
	w.Header().Set("X-Request-Id", c.trace.ID)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	defer w.deadline(true) // net/http writes what is left
	defer s.row(c, r, began)
	c.await(r, s.o.BodyTimeout)
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if p == http.ErrAbortHandler {
			panic(p)
		}
		s.o.Log.Error("internal error", "request", c.trace.ID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		e := &chat.Error{Kind: chat.Internal}
		c.trace.Fail(e)
		if w.status == 0 {
			c.dialect.WriteError(w, r, e)
			return
		}
		panic(http.ErrAbortHandler) // the client must not take a torn stream for a whole one
	}()
	c.dialect = s.claimant(r)
	err := s.answer(c, w, r)
	w.trailer()
	if err != nil {
		e := chat.AsError(err)
		if e.Kind == chat.Cancelled && s.life.Err() != nil { // by what looks at no cause
			e = chat.AsError(context.Cause(s.life))
		}
		c.trace.Fail(e)
		if e.Kind == chat.Internal {
			s.o.Log.Error("request failed", "request", c.trace.ID, "error", e)
		}
		if w.status == 0 {
			if !c.bodyRead {
				c.await(r, lastBytes)
			}
			if e.Kind == chat.Overloaded || e.Kind == chat.Unavailable || e.Kind == chat.RateLimited {
				w.Header().Set("Retry-After", fmt.Sprint(e.RetrySeconds()))
			}
			c.dialect.WriteError(w, r, e)
		}
	}
}

// claimant is the dialect that a request seems to be of.
func (s *Server) claimant(r *http.Request) Dialect {
	best, most := s.dialects[0], 0
	for _, d := range s.dialects {
		if n := d.Claims(r); n > most {
			best, most = d, n
		}
	}
	return best
}

func (s *Server) answer(c *call, w *writer, r *http.Request) error {
	if err := s.access(w, r); err != nil {
		return err
	}
	if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	found, err := s.find(w, r)
	if err != nil {
		return err
	}
	c.dialect, c.route = found.dialect, found.route
	if err := s.authorize(w, r, found.route.Scope); err != nil {
		return err
	}
	if err := found.route.checkQuery(r); err != nil {
		return err
	}
	if found.route.Scope == auth.Public {
		return found.route.Handle(w, r)
	}
	if s.stopping.Load() {
		return &chat.Error{Kind: chat.Unavailable, RetryAfter: 5 * time.Second}
	}
	caller := c.trace.Caller
	if ok, others := s.gate.Take(caller, 1); !ok {
		e := &chat.Error{
			Kind:       chat.Overloaded,
			RetryAfter: 2 * time.Second,
			Msg:        fmt.Sprintf("%d requests are in work already", s.o.MaxActive),
		}
		if others {
			e.Kind, e.Msg = chat.RateLimited, e.Msg+", and this key has its share of them"
		}
		return e
	}
	defer s.gate.Give(caller, 1)
	if n := found.route.MaxBody; n != 0 {
		c.maxBody = n
	}
	return found.route.Handle(w, r)
}

// access checks host and origin, and lets named pages read the answer.
func (s *Server) access(w *writer, r *http.Request) error {
	if !s.o.Hosts.HostAllowed(r) {
		return &chat.Error{
			Kind: chat.Forbidden,
			Msg:  fmt.Sprintf("host %q is not one of this server's names: allow it with --allow-host", r.Host),
		}
	}
	ok, cors := s.o.Hosts.OriginAllowed(r)
	if !ok {
		return &chat.Error{
			Kind: chat.Forbidden,
			Msg: fmt.Sprintf(
				"pages of %q may not call this server: allow them with --allow-origin",
				r.Header.Get("Origin"),
			),
		}
	}
	w.Header().Add("Vary", "Origin")
	if !cors {
		return nil
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	h.Set("Access-Control-Expose-Headers", "X-Request-Id, Retry-After, "+NoticeHeader)
	if r.Method == http.MethodOptions {
		h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, HEAD")
		if want := r.Header.Get("Access-Control-Request-Headers"); want != "" {
			h.Set("Access-Control-Allow-Headers", want)
		}
		h.Set("Access-Control-Max-Age", "600")
	}
	return nil
}

// find returns the route of a request.
func (s *Server) find(w *writer, r *http.Request) (entry, error) {
	p := r.URL.Path
	if p == "" || p != path.Clean(p) && p != path.Clean(p)+"/" {
		return entry{}, &chat.Error{Kind: chat.NotFound}
	}
	_, pattern := s.mux.Handler(r)
	list := s.routes[pattern]
	if len(list) == 0 {
		return entry{}, &chat.Error{Kind: chat.NotFound, Msg: fmt.Sprintf("there is no route %s", p)}
	}
	s.mux.ServeHTTP(w, r) // fills in r's path values
	var allow []string
	for _, e := range list {
		if e.route.Method == r.Method || e.route.Method == http.MethodGet && r.Method == http.MethodHead {
			if e.route.When == nil || e.route.When(r) {
				return e, nil
			}
		}
		allow = append(allow, e.route.Method)
	}
	sort.Strings(allow)
	allow = slices.Compact(allow) // dialects may share a path
	w.Header().Set("Allow", strings.Join(allow, ", "))
	return entry{}, &chat.Error{Kind: chat.BadMethod, Allow: strings.Join(allow, ", ")}
}

// authorize checks the key.
func (s *Server) authorize(w *writer, r *http.Request, scope auth.Scope) error {
	if scope == auth.Public {
		return nil
	}
	needed, err := s.o.Keys.Needed()
	if err != nil {
		return &chat.Error{
			Kind: chat.Unavailable,
			Msg:  "the server's key file cannot be read, so nobody gets in",
			Err:  err,
		}
	}
	if !needed {
		return nil
	}
	key, ok, err := s.o.Keys.Check(r)
	switch {
	case err != nil:
		return &chat.Error{
			Kind: chat.Unavailable,
			Msg:  "the server's key file cannot be read, so nobody gets in",
			Err:  err,
		}
	case !ok:
		w.Header().Set("WWW-Authenticate", "Bearer")
		return &chat.Error{Kind: chat.Unauthorized}
	}
	trace := callOf(r.Context()).trace
	trace.Caller, trace.Guest = key.Hash, !key.Allows(auth.Manage)
	if !s.o.ShareCache {
		trace.Salt = key.Hash
	}
	if !key.Allows(scope) {
		return &chat.Error{
			Kind: chat.Forbidden,
			Msg:  fmt.Sprintf("the key %q does not have the scope %q", key.Name, scope),
		}
	}
	return nil
}

// row writes the log row of a request.
func (s *Server) row(c *call, r *http.Request, began time.Time) {
	route := "none"
	if c.route != nil {
		route = c.route.Method + " " + c.route.Path
	}
	took := time.Since(began)
	sum := c.trace.Summary()
	s.o.Metrics.request(route, c.writer.status, took)
	c.record("response.txt", nil)
	attrs := []any{
		"request",
		c.trace.ID,
		"route",
		route,
		"status",
		c.writer.status,
		"took",
		took.Round(time.Microsecond),
	}
	if sum.Model != "" {
		attrs = append(attrs, "model", sum.Model)
	}
	if u := sum.Usage; sum.Streams > 0 {
		share := 0.0
		if u.Prompt > 0 {
			share = float64(u.Cached) / float64(u.Prompt)
		}
		speed := 0.0
		if u.Decode > 0 {
			speed = float64(u.Generated-1) / u.Decode.Seconds()
		}
		attrs = append(attrs, "prompt", u.Prompt, "cached", round(share, 3), "first", u.First.Round(time.Microsecond),
			"tokens", u.Generated, "rate", round(speed, 1))
		if u.Reasoning > 0 {
			attrs = append(attrs, "reasoning", u.Reasoning)
		}
	}
	if n := sum.Usage.Concluded; n > 0 {
		attrs = append(attrs, "concluded", n)
	}
	if list := c.trace.Notices(); len(list) > 0 {
		attrs = append(attrs, "notice", strings.Join(list, "; "))
	}
	if sum.End != "" {
		attrs = append(attrs, "end", sum.End)
	}
	if sum.Err != nil {
		attrs = append(attrs, "error", sum.Err.Error())
	}
	level := slog.LevelInfo
	if c.route != nil && c.route.Scope == auth.Public && sum.Err == nil {
		level = slog.LevelDebug // probes
	}
	s.o.Log.Log(r.Context(), level, "request", attrs...)
}

func round(f float64, digits int) float64 {
	p := 1.0
	for range digits {
		p *= 10
	}
	return float64(int64(f*p+0.5)) / p
}

// requestID takes the client's id where it is harmless, else makes one.
func requestID(r *http.Request) string {
	id := r.Header.Get("X-Request-Id")
	if id == "" || len(id) > 64 ||
		strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" {
		return chat.NewID("req_")
	}
	return id
}
