package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/baleenrun/baleen/internal/config"
	"github.com/baleenrun/baleen/internal/server"
)

// remote is a server as "ps" and "stop" reach it.
type remote struct {
	host, socket, key string
	port              int
	cert              string // "": that of an authority, where there is TLS
	tls               bool
}

func (r *remote) register(a *app, cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&r.host, "host", defaultHost, "address of the server [$BALEEN_HOST]")
	fs.IntVar(&r.port, "port", defaultPort, "port of the server [$BALEEN_HOST]")
	fs.StringVar(&r.socket, "socket", "", "socket file of the server")
	fs.StringVar(&r.cert, "tls-cert", "", "certificate file of a server that listens with TLS, as it was started with")
	fs.StringVar(&r.key, "api-key", a.cfg.String(config.APIKey), "key for the server [$BALEEN_API_KEY]")
	fs.Lookup("api-key").DefValue = ""
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { return r.settle(a, cmd) }
}

// settle takes what the flags leave out from the variables.
func (r *remote) settle(a *app, cmd *cobra.Command) error {
	if err := a.place(cmd, &r.host, &r.port, &r.socket, &r.tls); err != nil {
		return err
	}
	if ip := net.ParseIP(r.host); ip != nil && ip.IsUnspecified() { // where a server listens everywhere
		if r.host = defaultHost; ip.To4() == nil {
			r.host = "::1"
		}
	}
	return r.check(cmd)
}

// place takes host, port and socket from BALEEN_HOST or OLLAMA_HOST where no flag says them.
func (a *app) place(cmd *cobra.Command, host *string, port *int, socket *string, tls *bool) error {
	name, usual := "BALEEN_HOST", config.DefaultPort
	text := a.getenv(name)
	if text == "" {
		name, usual = "OLLAMA_HOST", config.OllamaPort
		text = a.getenv(name)
	}
	if text == "" {
		return nil
	}
	addr, err := config.ParseAddress(text, usual)
	if err != nil {
		return usagef("%s=%q: %w", name, text, err)
	}
	given := func(flag string) bool { f := cmd.Flags().Lookup(flag); return f != nil && f.Changed }
	switch {
	case given("socket"):
	case addr.Socket != "":
		if !given("host") && !given("port") {
			*socket = addr.Socket
		}
	default:
		if !given("host") {
			*host = addr.Host
			if tls != nil {
				*tls = addr.TLS
			}
		}
		if !given("port") {
			*port = addr.Port
		}
	}
	return nil
}

func (r *remote) check(cmd *cobra.Command) error {
	if r.port < 1 || r.port > 65535 {
		return usagef("--port %d: want a number from 1 to 65535", r.port)
	}
	return checkSocket(cmd, r.socket, r.host)
}

// pinned accepts one certificate alone: that of the server that was meant, under whatever name it is reached.
func pinned(file string) (*tls.Config, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert: %w", err)
	}
	block, _ := pem.Decode(b)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("--tls-cert %s has no certificate", file)
	}
	return &tls.Config{
		InsecureSkipVerify: true, // for the comparison below, which is stricter
		VerifyConnection: func(s tls.ConnectionState) error {
			if !bytes.Equal(s.PeerCertificates[0].Raw, block.Bytes) {
				return fmt.Errorf("its certificate is not the one in %s", file)
			}
			return nil
		},
	}, nil
}

// address is where the server is, for messages.
func (r *remote) address() string {
	if r.socket != "" {
		return r.socket
	}
	return net.JoinHostPort(r.host, strconv.Itoa(r.port))
}

// flags are those that lead "ps" and "serve" to the server's address, where it is not the usual one.
func (r *remote) flags() string {
	s := ""
	if r.socket != "" {
		return " --socket " + r.socket
	}
	if r.host != defaultHost {
		s += " --host " + r.host
	}
	if r.port != defaultPort {
		s += " --port " + strconv.Itoa(r.port)
	}
	return s
}

// failed words why there was no answer.
func (r *remote) failed(err error) error {
	var dial *net.OpError
	var name *net.DNSError
	var asked *url.Error
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &name):
		return fmt.Errorf("no server answers at %s: there is no host %q", r.address(), r.host)
	case errors.As(err, &dial) && dial.Op == "dial":
		return fmt.Errorf("no server answers at %s (start one with: baleen serve%s)", r.address(), r.flags())
	case errors.As(err, &asked):
		err = asked.Err // the address is said
	}
	return fmt.Errorf("what listens at %s gives no answer: %w", r.address(), err)
}

// client reaches the server; base stands before the paths of routes.
func (r *remote) client() (c *http.Client, base string, err error) {
	t := &http.Transport{Proxy: nil, DisableCompression: true}
	scheme, host := "http", r.address()
	if r.tls || r.cert != "" {
		scheme = "https"
	}
	if r.cert != "" {
		if t.TLSClientConfig, err = pinned(r.cert); err != nil {
			return nil, "", err
		}
	}
	if r.socket != "" {
		host = "localhost"
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", r.socket)
		}
	}
	return &http.Client{Transport: t}, scheme + "://" + host, nil
}

// call asks the server and decodes its answer.
func (r *remote) call(ctx context.Context, method, path string, body, out any) error {
	client, base, err := r.client()
	if err != nil {
		return err
	}
	client.Timeout = 30 * time.Second
	defer client.CloseIdleConnections()
	var b bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&b).Encode(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, base+path, &b)
	if err != nil {
		return err
	}
	if r.key != "" {
		req.Header.Set("Authorization", "Bearer "+r.key)
	}
	res, err := client.Do(req)
	if err != nil {
		return r.failed(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		var e struct{ Error struct{ Message string } }
		if json.Unmarshal(text, &e) == nil && e.Error.Message != "" {
			switch {
			case res.StatusCode != http.StatusUnauthorized:
			case r.key == "":
				return errors.New("the server wants an API key: give --api-key, or set BALEEN_API_KEY")
			default:
				return errors.New("the server does not know this API key")
			}
			return errors.New(e.Error.Message)
		}
		if strings.Contains(string(text), "HTTP request to an HTTPS server") { // as net/http words it
			return fmt.Errorf("the server at %s listens with TLS: give its certificate with --tls-cert", r.address())
		}
		return fmt.Errorf("the server answered %s", res.Status)
	}
	return json.Unmarshal(text, out)
}

func (a *app) psCommand() *cobra.Command {
	r, asJSON := &remote{}, false
	cmd := &cobra.Command{
		Use: "ps", Short: "List the models that a server has loaded",
		Long:    "List the models that a server on this machine has loaded, what they take and how long they stay.",
		Example: "  baleen ps\n  baleen ps --json",
		Args:    argsBetween(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var out struct {
				Models []server.LoadedModel `json:"models"`
			}
			if err := r.call(cmd.Context(), http.MethodGet, "/baleen/models", nil, &out); err != nil {
				return err
			}
			if asJSON {
				return a.writeJSON(out)
			}
			if len(out.Models) == 0 {
				a.note("the server has no model loaded; it loads one with the first request for it")
				return nil
			}
			w := tabwriter.NewWriter(a.io.Out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tMEMORY\tCONTEXT\tREQUESTS\tUNTIL")
			for _, m := range out.Models {
				fmt.Fprintf(
					w,
					"%s\t%.1f GiB\t%d\t%d\t%s\n",
					m.Name,
					float64(m.Bytes)/(1<<30),
					m.Context,
					m.Requests,
					until(m),
				)
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	r.register(a, cmd)
	return cmd
}

func until(m server.LoadedModel) string {
	switch {
	case m.Loading:
		return "loading"
	case m.Leaving && m.Requests > 0:
		return "no longer in use"
	case m.Leaving:
		return "unloading"
	case m.Requests > 0:
		return "in use"
	case m.Expires == nil:
		return "for good"
	}
	return "in " + time.Until(*m.Expires).Round(time.Second).String()
}

func (a *app) stopCommand() *cobra.Command {
	r := &remote{}
	cmd := &cobra.Command{
		Use: "stop [MODEL...]", Short: "Make a server unload models",
		Long:    "Make a server unload models as soon as no request uses them; without a name, all that are loaded.",
		Example: "  baleen stop qwen2.5-coder-0.5b",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			var out struct {
				Models []server.LoadedModel `json:"models"`
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second) // a shell waits
			defer cancel()
			var names []string
			if r.call(ctx, http.MethodGet, "/baleen/models", nil, &out) == nil {
				for _, m := range out.Models {
					if strings.HasPrefix(m.Name, prefix) && !slices.Contains(args, m.Name) {
						names = append(names, m.Name)
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				var out struct {
					Models []server.LoadedModel `json:"models"`
				}
				if err := r.call(cmd.Context(), http.MethodGet, "/baleen/models", nil, &out); err != nil {
					return err
				}
				for _, m := range out.Models {
					args = append(args, m.Name)
				}
			}
			var errs []error // one wrong name keeps no other loaded
			for _, name := range args {
				var out struct{ Unloaded bool }
				err := r.call(cmd.Context(), http.MethodPost, "/baleen/unload", map[string]string{"model": name}, &out)
				if err == nil && !out.Unloaded {
					a.note("%s is not loaded", name)
				}
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		},
	}
	r.register(a, cmd)
	return cmd
}
