package baleen

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/auth"
	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/anthropic"
	"github.com/baleenrun/baleen/internal/server/keeper"
	"github.com/baleenrun/baleen/internal/server/modeladmin"
	"github.com/baleenrun/baleen/internal/server/models"
	"github.com/baleenrun/baleen/internal/server/ollama"
	"github.com/baleenrun/baleen/internal/server/openai"
)

// ServerOptions say how a Handler answers. The zero value answers programs on this machine.
type ServerOptions struct {
	// Keys are those of which requests must bring one, as Authorization: Bearer KEY or x-api-key, of at least 8
	// characters. Without any, requests from other machines are refused unless Public is set.
	Keys   []string
	Public bool // anyone who reaches the handler may use it without a key

	Hosts   []string // names under which clients reach the handler, beside localhost
	Origins []string // web pages that may call, such as https://chat.example.org; "*" allows all

	// Manage lets clients fetch, make and remove models.
	Manage bool

	Timeout     time.Duration // longest time that a request may take; 0: no limit
	MaxBody     int64         // bytes of a request's body; 0: 32 MiB
	MaxRequests int           // in work at once, waiting ones included; 0: 1024
	Log         *slog.Logger  // nil: nothing is logged
}

// Handler returns an http.Handler of the APIs of OpenAI, Anthropic and Ollama, as the command "baleen serve" has them;
// the documents in docs/api say what each route takes. It answers with the models of this machine, by their names, and
// with those that were opened before from files and folders, by their names without .gguf; the first that was opened is
// the default. Models are loaded when they are asked for, within the Runtime's memory. To serve it below a path, use
// http.StripPrefix.
//
// It sets deadlines for reading and writing by itself. Close of the Runtime ends it.
func (r *Runtime) Handler(o ServerOptions) (http.Handler, error) {
	if err := r.usable(); err != nil {
		return nil, err
	}
	for _, k := range o.Keys {
		if len(k) < 8 {
			return nil, wrong("ServerOptions.Keys", "a key of %d characters is too short: want at least 8", len(k))
		}
	}
	if o.MaxBody < 0 || o.MaxRequests < 0 || o.Timeout < 0 {
		return nil, wrong("ServerOptions", "MaxBody, MaxRequests and Timeout are 0 or more")
	}
	catalog := models.New(r.store)
	catalog.Log = o.Log
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, ErrClosed
	}
	seen := map[string]bool{}
	for _, s := range r.opened {
		if seen[s.Path] {
			continue
		}
		seen[s.Path] = true
		if _, err := catalog.Serve(s.Name, s.Path); err != nil {
			return nil, public(err)
		}
	}
	metrics := server.NewMetrics()
	var keep modeladmin.Keeper
	if o.Manage && r.store.Dir() != "" {
		keep = &keeper.Keeper{Store: r.store, Catalog: catalog, Fetcher: r.fetcher}
	}
	s, err := server.New(server.Options{
		Chat:    chat.New(chat.Options{Catalog: catalog, Pool: r.pool, MaxTime: o.Timeout, Hooks: metrics.Hooks()}),
		Metrics: metrics, Keys: auth.NewKeys(o.Keys, ""), Log: o.Log, Version: "library",
		Dialects: []func(*server.Env) server.Dialect{openai.New, anthropic.New, ollama.New(keep)},
		Hosts:    auth.Hosts{Names: o.Hosts, Addresses: o.Public || len(o.Keys) > 0, Origins: o.Origins},
		MaxBody:  o.MaxBody, MaxActive: o.MaxRequests,
	})
	if err != nil {
		return nil, public(err)
	}
	r.servers = append(r.servers, s)
	if o.Public || len(o.Keys) > 0 {
		return s, nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !near(req.RemoteAddr) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, stranger) //nolint:errcheck // there is nobody else to tell
			return
		}
		s.ServeHTTP(w, req)
	}), nil
}

// stranger is what a request from another machine gets where there is no key that it could bring.
const stranger = `{"error":{"message":"requests from other machines need a key, and this server has none"}}`

// near reports whether a request comes from this machine; over a socket file it has no address.
func near(remote string) bool {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote == "" || strings.HasPrefix(remote, "@") || strings.HasPrefix(remote, "/")
	}
	return auth.Loopback(host)
}
