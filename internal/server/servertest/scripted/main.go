// Command scripted serves a model without weights that writes what a file of rules says, through the whole server:
// for trying clients and for tests of them. It prints its address.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/baleenrun/baleen/internal/auth"
	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/fetch"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/pool"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/anthropic"
	"github.com/baleenrun/baleen/internal/server/keeper"
	"github.com/baleenrun/baleen/internal/server/llamacpp"
	"github.com/baleenrun/baleen/internal/server/modeladmin"
	"github.com/baleenrun/baleen/internal/server/models"
	"github.com/baleenrun/baleen/internal/server/ollama"
	"github.com/baleenrun/baleen/internal/server/openai"
	"github.com/baleenrun/baleen/internal/server/servertest"
	"github.com/baleenrun/baleen/internal/store"
)

type options struct {
	listen, rules, record, name, key string
	store                            bool
	context                          int
}

func main() {
	var o options
	flag.StringVar(&o.listen, "listen", "127.0.0.1:0", "address to listen on")
	flag.StringVar(&o.rules, "rules", "", "JSON file of rules; none: the rules of the tests")
	flag.StringVar(&o.record, "record", "", "folder that keeps requests, prompts and answers")
	flag.StringVar(&o.name, "name", "scripted", "name of the model; without -store several, with commas between")
	flag.StringVar(&o.key, "api-key", "", "key that requests must bring; none: no key is needed")
	flag.BoolVar(
		&o.store,
		"store",
		false,
		"take changes of models, in a folder that goes when the server ends; nothing is fetched",
	)
	flag.IntVar(&o.context, "context", 1<<20, "tokens that the model takes")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "scripted:", err)
		os.Exit(1)
	}
}

// offline is the network of a server that fetches nothing.
type offline struct{}

func (offline) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("this server fetches nothing")
}

// catalog is what the server has: one model, and with a store those that clients make of it.
func catalog(o options, dir, path string) (chat.Catalog, modeladmin.Keeper, error) {
	if !o.store {
		var names servertest.Names
		for name := range strings.SplitSeq(o.name, ",") {
			names = append(names, chat.Spec{Name: name, Path: path})
		}
		return names, nil, nil
	}
	st := store.Open(filepath.Join(dir, "store"))
	c := models.New(st)
	if _, err := c.Serve(o.name, path); err != nil {
		return nil, nil, err
	}
	return c, &keeper.Keeper{Store: st, Catalog: c, Fetcher: func(p fetch.Progress) *fetch.Fetcher {
		return &fetch.Fetcher{Store: st, Progress: p, Client: &http.Client{Transport: offline{}}, Pip: [][]string{}}
	}}, nil
}

func run(o options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	script := servertest.Script(servertest.Demo)
	if o.rules != "" {
		b, err := os.ReadFile(o.rules)
		if err != nil {
			return err
		}
		list, err := servertest.ParseRules(b)
		if err != nil {
			return err
		}
		script = servertest.RuleScript(list)
	}
	dir, err := os.MkdirTemp("", "scripted-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "scripted.gguf")
	if err := (servertest.Checkpoint{Context: o.context}).Write(path); err != nil {
		return err
	}
	backend, err := servertest.NewBackend(path, script)
	if err != nil {
		return err
	}
	p := pool.New(
		pool.Options[*chat.Model]{
			KeepAlive: new(time.Duration(-1)),
			Open: func(ctx context.Context, key string, _ int64) (*chat.Model, error) {
				return chat.Open(
					ctx,
					key,
					model.Options{
						Backend:     backend,
						Context:     o.context,
						CacheTokens: 2 * o.context,
						MaxRows:     4096,
						Budget:      &model.Budget{Available: 1 << 40, Total: 1 << 40},
					},
				)
			},
		},
	)
	metrics := server.NewMetrics()
	have, changes, err := catalog(o, dir, path)
	if err != nil {
		return err
	}
	svc := chat.New(chat.Options{Catalog: have, Pool: p, Hooks: metrics.Hooks()})
	var keys []string
	if o.key != "" {
		keys = append(keys, o.key)
	}
	s, err := server.New(server.Options{
		Chat: svc, Metrics: metrics, Version: "scripted", RecordDir: o.record, Keys: auth.NewKeys(keys, ""),
		Dialects: []func(*server.Env) server.Dialect{
			openai.New,
			anthropic.New,
			ollama.New(changes),
			llamacpp.New(openai.Shapes()),
		},
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", l.Addr())
	hs := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		hs.Close()
	}()
	if err := hs.Serve(l); err != nil && ctx.Err() == nil {
		return err
	}
	last, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return p.Close(last)
}
