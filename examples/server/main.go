// Command server is a web server with a model in it: Baleen's APIs below a path, beside a route of its own. It is an
// example of the library; see README.md beside it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/baleenrun/baleen"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until ctx ends. It writes its address to out when it listens.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("server", flag.ContinueOnError)
	name := flags.String("model", baleen.DefaultModel, "name of a model, a file, or a folder")
	listen := flags.String("listen", "127.0.0.1:8080", "address to listen on")
	key := flags.String("key", "", "key that requests to /ai/ must bring; without one, this machine alone may send any")
	if err := flags.Parse(args); err != nil {
		return err
	}
	options, err := baleen.FromEnv()
	if err != nil {
		return err
	}
	options.Pip = true // it may fetch the default model where Hugging Face cannot be reached
	runtime, err := baleen.NewRuntime(options)
	if err != nil {
		return err
	}
	defer runtime.Close()
	model, err := runtime.Open(ctx, *name) // loaded now, and as long as the program runs
	if err != nil {
		return err
	}
	defer model.Close()
	mux, err := routes(runtime, model, *key)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "http://%s\n", l.Addr())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	done := context.AfterFunc(ctx, func() {
		runtime.Close() // ends what runs; clients are told in the form that they know
		last, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		server.Shutdown(last)
	})
	defer done()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func routes(runtime *baleen.Runtime, model *baleen.Model, key string) (http.Handler, error) {
	o := baleen.ServerOptions{Log: slog.Default()}
	if key != "" {
		o.Keys = []string{key}
	}
	api, err := runtime.Handler(o)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/ai/", http.StripPrefix("/ai", api))
	mux.HandleFunc("PUT /summarize", func(w http.ResponseWriter, r *http.Request) { summarize(w, r, model) })
	return mux, nil
}

// maxText bounds what /summarize reads.
const maxText = 1 << 20

// summarize streams a summary of the text in the body. A client that goes away ends the request.
func summarize(w http.ResponseWriter, r *http.Request, model *baleen.Model) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxText))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	messages := []baleen.Message{baleen.UserMessage("Summarize this text in two sentences.\n\n" + string(text))}
	flush := http.NewResponseController(w)
	begun := false
	for chunk, err := range model.Chat(r.Context(), messages, &baleen.Params{MaxTokens: 200}) {
		if err != nil {
			if begun { // the status is sent: a torn connection tells the client that this is not all
				panic(http.ErrAbortHandler)
			}
			http.Error(w, err.Error(), status(err))
			return
		}
		if chunk.Text == "" {
			continue
		}
		begun = true
		io.WriteString(w, chunk.Text)
		flush.Flush()
	}
}

// status is what HTTP calls an error of the library.
func status(err error) int {
	var long *baleen.PromptTooLongError
	var wrong *baleen.ParamError
	switch {
	case errors.As(err, &long):
		return http.StatusRequestEntityTooLarge
	case errors.As(err, &wrong):
		return http.StatusBadRequest
	case errors.Is(err, baleen.ErrQueueFull), errors.Is(err, baleen.ErrClosed):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
