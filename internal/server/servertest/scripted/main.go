// Command scripted serves a model without weights that writes what a file of rules says, through the whole server:
// for trying clients and for tests of them. It prints its address.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/pool"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/anthropic"
	"github.com/baleenrun/baleen/internal/server/chat"
	"github.com/baleenrun/baleen/internal/server/ollama"
	"github.com/baleenrun/baleen/internal/server/openai"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// dialects are the APIs that the server speaks.
var dialects = []func(*server.Env) server.Dialect{openai.New, anthropic.New, ollama.New(nil)}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on")
	rules := flag.String("rules", "", "JSON file of rules; none: the rules of the tests")
	record := flag.String("record", "", "folder that keeps requests, prompts and answers")
	name := flag.String("name", "scripted", "name of the model")
	flag.Parse()
	if err := run(*listen, *rules, *record, *name); err != nil {
		fmt.Fprintln(os.Stderr, "scripted:", err)
		os.Exit(1)
	}
}

func run(listen, rules, record, name string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	script := servertest.Script(servertest.Demo)
	if rules != "" {
		b, err := os.ReadFile(rules)
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
	if err := (servertest.Checkpoint{Context: 1 << 20}).Write(path); err != nil {
		return err
	}
	backend, err := servertest.NewBackend(path, script)
	if err != nil {
		return err
	}
	p := pool.New(pool.Options[*chat.Model]{KeepAlive: -1, Open: func(ctx context.Context, key string, _ int64) (*chat.Model, error) {
		return chat.Open(ctx, key, model.Options{Backend: backend, Context: 1 << 20, CacheTokens: 2 << 20, MaxRows: 4096, Budget: &model.Budget{Available: 1 << 40, Total: 1 << 40}})
	}})
	metrics := server.NewMetrics()
	svc := chat.New(chat.Options{Catalog: servertest.Names{{Name: name, Path: path}}, Pool: p, Hooks: metrics.Hooks()})
	s, err := server.New(server.Options{
		Chat: svc, Metrics: metrics, Dialects: dialects, Version: "scripted", RecordDir: record,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", listen)
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
