package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/baleenrun/baleen/internal/auth"
	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/config"
	"github.com/baleenrun/baleen/internal/engine"
	"github.com/baleenrun/baleen/internal/fetch"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/pool"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/anthropic"
	"github.com/baleenrun/baleen/internal/server/keeper"
	"github.com/baleenrun/baleen/internal/server/llamacpp"
	"github.com/baleenrun/baleen/internal/server/models"
	"github.com/baleenrun/baleen/internal/server/ollama"
	"github.com/baleenrun/baleen/internal/server/openai"
	"github.com/baleenrun/baleen/internal/store"
)

// keeper changes the models on disk for clients.
func (a *app) keeper(st *store.Store, catalog *models.Catalog) *keeper.Keeper {
	return &keeper.Keeper{Store: st, Catalog: catalog, Fetcher: func(p fetch.Progress) *fetch.Fetcher {
		return &fetch.Fetcher{
			Store: st, Progress: p, HFEndpoint: a.getenv("HF_ENDPOINT"), HFToken: a.getenv("HF_TOKEN"), UserAgent: "baleen/" + versionInfo().Version,
		}
	}}
}

// sweep removes what killed processes left and uploads that nobody used, and unloads models whose files are gone, now
// and then until ctx ends. Another server of the store may have removed them: nobody could name them here any more.
func sweep(ctx context.Context, k *keeper.Keeper, p *pool.Pool[*chat.Model], log *slog.Logger) {
	warn := func(what string, err error) {
		if err != nil {
			log.Warn(what, "error", err)
		}
	}
	warn("what killed processes left could not be removed", k.SweepLeftovers(time.Now()))
	warn("unused uploads could not be removed", k.Sweep(time.Now().Add(-keeper.Unused)))
	soon, seldom, often := time.After(3*time.Second), time.NewTicker(6*time.Hour), time.NewTicker(2*time.Second)
	defer seldom.Stop()
	defer often.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-often.C:
			p.Prune(func(path string) bool {
				_, err := os.Stat(path)
				return errors.Is(err, fs.ErrNotExist)
			})
		case <-soon: // what was too young before
			warn("what killed processes left could not be removed", k.SweepLeftovers(time.Now()))
		case <-seldom.C:
			warn("what killed processes left could not be removed", k.SweepLeftovers(time.Now()))
			warn("unused uploads could not be removed", k.Sweep(time.Now().Add(-keeper.Unused)))
		}
	}
}

const (
	defaultHost = "127.0.0.1"
	defaultPort = config.DefaultPort
)

// serveFlags are the flags of "serve".
type serveFlags struct {
	host, socket           string
	port                   int
	models                 []string
	apiKeys                []string
	keyFile                string
	allowHosts, allowPages []string
	tlsCert, tlsKey        string
	logFormat, logLevel    string
	keepAlive              keepAlive
	timeout                time.Duration
	grace                  time.Duration
	memory                 string
	maxModels, parallel    int
	queue, maxActive       int
	maxBody, maxUpload     string
	record                 string
	conclude               bool
	shareCache             bool
}

const serveLong = `Answer requests over HTTP, by the APIs of OpenAI, Anthropic and Ollama.

Models are named in requests: those of the store, and those given with --model, which are
loaded at once. Without --model, models are loaded when they are first asked for.

From this machine no key is needed until one is given or added (see "baleen keys"). Listening
on other addresses needs a key.

Small models, when they get a tool's result, often make the same call again. With --conclude, or
where a request says "baleen_conclude": true, such a call is not handed out: the model is asked
once more, with the line "Answer the user now, in plain words." behind the result. The usage and
a header say so. Without it, answers are what the model wrote.`

const serveExample = `  baleen serve --model qwen2.5-coder-0.5b
  baleen serve --host 0.0.0.0 --api-key-file keys.txt \
    --tls-cert cert.pem --tls-key key.pem
  baleen serve --socket /run/user/1000/baleen.sock`

func (a *app) serveCommand() *cobra.Command {
	f := &serveFlags{}
	cmd := &cobra.Command{
		Use: "serve", Short: "Answer requests over HTTP", Long: serveLong, Example: serveExample,
		Args: argsBetween(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.place(cmd, &f.host, &f.port, &f.socket, nil); err != nil {
				return err
			}
			if err := errors.Join(f.check(cmd), a.noteIneffective(cmd)); err != nil {
				return err
			}
			return a.serve(cmd.Context(), f)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.host, "host", defaultHost, "address to listen on [$BALEEN_HOST]")
	fs.IntVar(&f.port, "port", defaultPort, "port to listen on; 0 takes a free one [$BALEEN_HOST]")
	fs.StringVar(&f.socket, "socket", "", "socket file to listen on instead of a port")
	fs.StringArrayVarP(
		&f.models,
		"model",
		"m",
		nil,
		"model to load at once: a name, a file or a folder; may be repeated",
	)
	fs.StringArrayVar(&f.apiKeys, "api-key", nil, "key that requests must bring; may be repeated [$BALEEN_API_KEY]")
	fs.StringVar(&f.keyFile, "api-key-file", "", "file with such keys, one a line")
	fs.StringArrayVar(
		&f.allowHosts,
		"allow-host",
		nil,
		"name under which clients reach this server, beside localhost; may be repeated",
	)
	fs.StringArrayVar(
		&f.allowPages,
		"allow-origin",
		nil,
		"web pages that may call, such as https://chat.example.org, or moz-extension://* and chrome-extension://* "+
			"for extensions of a browser; may be repeated",
	)
	fs.StringVar(&f.tlsCert, "tls-cert", "", "certificate file: listen with TLS")
	fs.StringVar(&f.tlsKey, "tls-key", "", "the certificate's key file")
	fs.StringVar(&f.logFormat, "log-format", "text", "text, or json with times in seconds")
	fs.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	f.keepAlive.d = 5 * time.Minute
	fs.Var(
		&f.keepAlive,
		"keep-alive",
		"how long an unused model stays loaded, such as 30s; 0: not at all; -1: for good",
	)
	fs.Lookup("keep-alive").DefValue = "5m"
	fs.DurationVar(&f.timeout, "timeout", time.Hour, "longest time that a request may take; 0: no limit")
	fs.DurationVar(
		&f.grace,
		"grace",
		5*time.Minute,
		"how long running answers may take after the server was told to stop",
	)
	fs.StringVar(
		&f.memory,
		"max-memory",
		"",
		"memory that models may take together, such as 8GiB (default: what is free at the start, but for a quarter "+
			"of it or 512 MiB, which are for requests)",
	)
	fs.IntVar(&f.maxModels, "max-models", 0, "most models loaded at once (default: as many as fit)")
	fs.IntVar(&f.parallel, "parallel", 0, "answers of one model that run at once (default: 8)")
	fs.IntVar(&f.queue, "max-queue", 512, "answers of one model that may wait")
	fs.IntVar(&f.maxActive, "max-requests", 1024, "requests in work at once, waiting ones included")
	fs.StringVar(&f.maxBody, "max-body", "32MiB", "largest request body")
	fs.StringVar(&f.maxUpload, "max-upload", "1TiB", "largest file that may be uploaded to make a model of it")
	fs.BoolVar(
		&f.shareCache,
		"share-cache",
		false,
		"let API keys share the cached beginnings of prompts, so that each can tell what others sent",
	)
	fs.BoolVar(
		&f.conclude,
		"conclude",
		false,
		"ask a model that repeats a call, when it got the result, to answer instead",
	)
	fs.StringVar(
		&f.record,
		"record",
		"",
		"folder that keeps each request, the prompt that the model saw, and the answer",
	)
	a.settings(cmd, config.Device, config.Threads, config.Context, config.KV, config.CPU)
	ineffective(cmd)
	alias(cmd)
	_ = cmd.RegisterFlagCompletionFunc("model", a.completeModels)
	return cmd
}

// check refuses flags that contradict each other and numbers that mean nothing: what they were given for would be
// dropped in silence.
func (f *serveFlags) check(cmd *cobra.Command) error {
	if err := checkSocket(cmd, f.socket, f.host); err != nil {
		return err
	}
	if f.port < 0 || f.port > 65535 {
		return usagef("--port %d: want a number from 0 to 65535", f.port)
	}
	for _, n := range []struct {
		flag  string
		value int
	}{{"max-models", f.maxModels}, {"parallel", f.parallel}, {"max-queue", f.queue}, {"max-requests", f.maxActive}} {
		if n.value < 1 && cmd.Flags().Changed(n.flag) {
			return usagef("--%s %d: want at least 1", n.flag, n.value)
		}
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"timeout", f.timeout}, {"grace", f.grace}} {
		if d.value < 0 {
			return usagef("--%s %v: want no negative time", d.flag, d.value)
		}
	}
	return nil
}

// checkSocket refuses a socket beside an address, an empty one, which a variable that is not set leaves and which would
// mean a port that others reach, and a host that is none.
func checkSocket(cmd *cobra.Command, socket, host string) error {
	switch {
	case cmd.Flags().Changed("socket") && socket == "":
		return usagef(`--socket "": want the path of a file`)
	case socket != "":
		return alone(cmd, "socket", "host", "port")
	case host == "" || strings.ContainsAny(host, "/ []") || strings.Contains(host, ":") && net.ParseIP(host) == nil:
		return usagef("--host %q: want a name or an address, without http://, brackets and port", host)
	}
	return nil
}

// alone refuses flags beside one that leaves them without effect.
func alone(cmd *cobra.Command, flag string, others ...string) error {
	for _, o := range others {
		if cmd.Flags().Changed(o) {
			return usagef("--%s and --%s exclude each other", flag, o)
		}
	}
	return nil
}

func (a *app) serve(ctx context.Context, f *serveFlags) error {
	log, err := a.logger(f)
	if err != nil {
		return err
	}
	keys, err := a.keys(f)
	if err != nil {
		return err
	}
	if err := f.checkAccess(keys); err != nil {
		return err
	}
	st, err := a.store()
	if err != nil {
		return err
	}
	if st.Dir() == "" { // keys, uploads and derived models lie there
		return store.ErrNoHome
	}
	catalog := models.New(st)
	catalog.Log = log
	for _, arg := range f.models {
		path, err := a.locate(ctx, arg)
		if err != nil {
			return err
		}
		if path, err = filepath.Abs(path); err != nil {
			return err
		}
		if err := model.Check(path); err != nil { // a server that cannot do what it was started for does not start
			return fmt.Errorf("--model %s: %w", arg, err)
		}
		if _, err := catalog.Serve(arg, path); err != nil {
			return fmt.Errorf("--model %s: %w", arg, err)
		}
	}
	var memory serveMemory
	if b, known := model.SystemBudget(); known {
		memory = divide(b)
		a.limitHeap(memory.soft)
	}
	loader := a.loader(f)
	p, err := f.pool(loader, memory, log)
	if err != nil {
		return err
	}
	metrics := server.NewMetrics()
	svc := chat.New(chat.Options{
		Catalog: catalog, Pool: p, MaxTime: f.timeout, Conclude: f.conclude, Hooks: metrics.Hooks(),
	})
	maxBody, err := parseBytes(f.maxBody)
	if err != nil {
		return usagef("--max-body: %v", err)
	}
	k := a.keeper(st, catalog)
	if k.MaxUpload, err = parseBytes(f.maxUpload); err != nil {
		return usagef("--max-upload: %v", err)
	}
	s, err := server.New(server.Options{
		Chat: svc, Metrics: metrics, Keys: keys, Log: log, Version: versionInfo().Version,
		Dialects: []func(*server.Env) server.Dialect{
			openai.New,
			anthropic.New,
			ollama.New(k),
			llamacpp.New(openai.Shapes()),
		}, // the APIs that it speaks
		Hosts:   auth.Hosts{Names: f.allowHosts, Addresses: !auth.Loopback(f.host), Origins: f.allowPages},
		MaxBody: maxBody, BodyMemory: max(memory.bodies, 2*maxBody), MaxContext: loader.MaxContext(),
		MaxActive: f.maxActive, ShareCache: f.shareCache, RecordDir: f.record,
	})
	if err != nil {
		return err
	}
	l, err := f.listen()
	if err != nil {
		return err
	}
	go sweep(ctx, k, p, log)
	if f.tlsCert == "" {
		return a.runServer(ctx, f, s, svc, server.Listen(l), log)
	}
	cert, err := tls.LoadX509KeyPair(f.tlsCert, f.tlsKey)
	if err != nil {
		l.Close()
		return fmt.Errorf("--tls-cert: %w", err)
	}
	l = server.ListenTLS(l, &tls.Config{Certificates: []tls.Certificate{cert}}, func(err error) {
		log.Debug("a connection under TLS could not be opened", "error", err)
	})
	return a.runServer(ctx, f, s, svc, l, log)
}

// runServer answers requests until ctx ends, and then lets running ones end.
func (a *app) runServer(
	ctx context.Context,
	f *serveFlags,
	s *server.Server,
	svc *chat.Service,
	l net.Listener,
	log *slog.Logger,
) error {
	hs := &http.Server{
		Handler: s, ConnContext: server.ConnContext, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	s.SetReady(len(f.models) == 0)
	failed := make(chan error, 1)
	go func() {
		failed <- hs.Serve(l)
	}()
	log.Info("listening", "address", f.address(l))
	fmt.Fprintf(a.io.Out, "%s\n", f.address(l))
	go a.preload(ctx, f, s, svc, log)
	select {
	case err := <-failed:
		return fmt.Errorf("listening: %w", err)
	case <-ctx.Done():
	}
	s.Stop()
	if n := s.Active(); n > 0 {
		log.Info("stopping; a second signal ends running answers at once", "running", n)
	}
	grace, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	grace, stop := context.WithTimeout(grace, f.grace)
	defer stop()
	err := hs.Shutdown(grace)
	if err != nil {
		log.Warn("running answers are ended", "running", s.Active())
		err = endNow(hs, s)
	}
	last, done := context.WithTimeout(context.Background(), 30*time.Second)
	defer done()
	return errors.Join(err, svc.Pool().Close(last))
}

// lastWords is how long ended answers may take to say so.
const lastWords = 5 * time.Second

// endNow ends the requests in work and closes what is open then.
func endNow(hs *http.Server, s *server.Server) error {
	s.End()
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	if err := hs.Shutdown(ctx); err != nil { // clients that do not read
		return hs.Close()
	}
	return nil
}

// preload loads the models that were named, one after the other.
func (a *app) preload(ctx context.Context, f *serveFlags, s *server.Server, svc *chat.Service, log *slog.Logger) {
	forever := time.Duration(-1)
	specs, err := svc.Catalog().List(ctx)
	if err != nil {
		log.Error("models cannot be listed", "error", err)
		return
	}
	for i := range f.models {
		began := time.Now()
		lease, err := svc.Acquire(ctx, specs[i].Name, &forever)
		if err != nil {
			if ctx.Err() == nil {
				log.Error("loading failed", "model", specs[i].Name, "error", err)
			}
			continue
		}
		log.Info(
			"loaded",
			"model",
			specs[i].Name,
			"took",
			time.Since(began).Round(time.Millisecond),
			"bytes",
			lease.Model.Bytes(),
			"context",
			lease.Model.Context,
		)
		lease.Release()
	}
	s.SetReady(true)
}

func (a *app) logger(f *serveFlags) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return nil, usagef("--log-level %q: want debug, info, warn or error", f.logLevel)
	}
	o := &slog.HandlerOptions{Level: level}
	switch f.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(a.io.Err, o)), nil
	case "json":
		o.ReplaceAttr = func(_ []string, at slog.Attr) slog.Attr {
			if at.Value.Kind() == slog.KindDuration { // else they were nanoseconds, which nothing says
				at.Value = slog.Float64Value(at.Value.Duration().Seconds())
			}
			return at
		}
		return slog.New(slog.NewJSONHandler(a.io.Err, o)), nil
	}
	return nil, usagef("--log-format %q: want text or json", f.logFormat)
}

func (a *app) loader(f *serveFlags) *chat.Loader {
	o := a.modelOptions()
	o.Seqs = f.parallel
	o.Tune = func(e *engine.Options) { e.MaxQueue = f.queue }
	return &chat.Loader{Options: o}
}

func (f *serveFlags) pool(loader *chat.Loader, memory serveMemory, log *slog.Logger) (*pool.Pool[*chat.Model], error) {
	limit := memory.models
	if f.memory != "" {
		n, err := parseBytes(f.memory)
		if err != nil {
			return nil, usagef("--max-memory: %v", err)
		}
		limit = n
	}
	return pool.New(pool.Options[*chat.Model]{
		Open: loader.Open, Need: loader.Need, Limit: limit, MaxModels: f.maxModels, KeepAlive: &f.keepAlive.d,
		Closed: func(key string, err error) {
			if err != nil {
				log.Error("unloading failed", "path", key, "error", err)
				return
			}
			log.Info("unloaded", "path", key)
		},
	}), nil
}

// keys collects the keys of flags, files and the store.
func (a *app) keys(f *serveFlags) (*auth.Keys, error) {
	texts := append([]string(nil), f.apiKeys...)
	if k := a.cfg.String(config.APIKey); k != "" {
		texts = append(texts, k)
	}
	if f.keyFile != "" {
		b, err := os.ReadFile(f.keyFile)
		if err != nil {
			return nil, fmt.Errorf("--api-key-file: %w", err)
		}
		n := len(texts)
		for line := range strings.Lines(string(b)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				texts = append(texts, line)
			}
		}
		if len(texts) == n {
			return nil, fmt.Errorf("--api-key-file %s has no keys", f.keyFile)
		}
	}
	for _, t := range texts {
		if len(t) < 8 {
			return nil, usagef("an API key of %d characters is too short: want at least 8", len(t))
		}
	}
	path, err := a.keysPath()
	if err != nil {
		return nil, err
	}
	return auth.NewKeys(texts, path), nil
}

// checkAccess refuses to listen to other machines without a key, and makes a server that does need one ever after.
func (f *serveFlags) checkAccess(keys *auth.Keys) error {
	if (f.tlsCert == "") != (f.tlsKey == "") {
		return usagef("--tls-cert and --tls-key belong together")
	}
	any, err := keys.Any()
	if err != nil {
		return err
	}
	if f.socket != "" || auth.Loopback(f.host) {
		return nil
	}
	keys.Demand()
	if !any {
		return usagef(
			"--host %s can be reached from other machines, and there is no key: give --api-key, or make one with: "+
				"baleen keys add NAME",
			f.host,
		)
	}
	return nil
}

// inUseWindows is WSAEADDRINUSE, which package syscall does not translate. Other systems have no such number.
const inUseWindows = syscall.Errno(10048)

func (f *serveFlags) listen() (net.Listener, error) {
	if f.tlsCert != "" {
		if _, err := tls.LoadX509KeyPair(f.tlsCert, f.tlsKey); err != nil {
			return nil, fmt.Errorf("--tls-cert: %w", err)
		}
	}
	if f.socket == "" {
		l, err := net.Listen("tcp", net.JoinHostPort(f.host, strconv.Itoa(f.port)))
		if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, inUseWindows) {
			return nil, fmt.Errorf(
				"port %d of %s is in use, perhaps by a server of yours (see: baleen ps%s); choose another with "+
					"--port, or any free one with --port 0",
				f.port,
				f.host,
				(&remote{host: f.host, port: f.port}).flags(),
			)
		}
		return l, noListener("--host "+f.host, err)
	}
	if c, err := net.DialTimeout("unix", f.socket, time.Second); err == nil {
		c.Close()
		return nil, fmt.Errorf("a server answers on %s already", f.socket)
	}
	if st, err := os.Lstat(f.socket); err == nil {
		if st.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("--socket %s: there is something that is no socket", f.socket)
		}
		if err := os.Remove(f.socket); err != nil { // left over by a process that was killed
			return nil, err
		}
	}
	l, err := net.Listen("unix", f.socket)
	if errors.Is(err, syscall.EINVAL) {
		return nil, fmt.Errorf(
			"--socket %s: a socket's path may have some 100 characters, this has %d",
			f.socket,
			len(f.socket),
		)
	}
	if err != nil {
		return nil, noListener("--socket "+f.socket, err)
	}
	if err := os.Chmod(f.socket, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// noListener says of the flag that was given why nobody can listen there.
func noListener(flag string, err error) error {
	var name *net.DNSError
	var op *net.OpError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &name):
		return fmt.Errorf("%s: there is no such host", flag)
	case errors.As(err, &op): // the rest of it says the address again
		err = op.Err
	}
	return fmt.Errorf("%s: %w", flag, err)
}

func (f *serveFlags) address(l net.Listener) string {
	scheme := "http"
	if f.tlsCert != "" {
		scheme = "https"
	}
	if f.socket != "" {
		return "unix:" + f.socket
	}
	return scheme + "://" + l.Addr().String()
}

// parseBytes reads a number of bytes such as 512MiB, 8GB or 1048576.
func parseBytes(s string) (int64, error) {
	units := []struct {
		name string
		n    float64
	}{{"TIB", 1 << 40}, {"GIB", 1 << 30}, {"MIB", 1 << 20}, {"KIB", 1 << 10}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}, {"B", 1}}
	text, factor := strings.ToUpper(strings.TrimSpace(s)), 1.0
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			text, factor = strings.TrimSpace(rest), u.n
			break
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0 && v*factor <= 1<<62) { // NaN is neither
		return 0, fmt.Errorf("%q is no number of bytes: want one such as 512MiB or 8GB", s)
	}
	return int64(v * factor), nil
}
