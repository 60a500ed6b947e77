package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/auth"
	"github.com/baleenrun/baleen/internal/config"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

func TestServeRefusals(t *testing.T) {
	torn := filepath.Join(t.TempDir(), "torn.gguf")
	if err := (servertest.Checkpoint{}).Write(torn); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(torn, 5000); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		say  string
	}{
		{[]string{"serve", "--host", "0.0.0.0"}, "there is no key"},
		{[]string{"serve", "--host", "::"}, "there is no key"},
		{[]string{"serve", "--host", "192.0.2.1"}, "there is no key"},
		{[]string{"serve", "--api-key", "short"}, "too short"},
		{[]string{"serve", "--tls-cert", "x"}, "belong together"},
		{[]string{"serve", "--tls-cert", "/nowhere", "--tls-key", "/nowhere", "--port", "0"}, "--tls-cert"},
		{[]string{"serve", "--log-level", "loud"}, "--log-level"},
		{[]string{"serve", "--log-format", "xml"}, "--log-format"},
		{[]string{"serve", "--max-memory", "lots"}, "--max-memory"},
		{[]string{"serve", "--max-body", "0"}, "--max-body"},
		{[]string{"serve", "extra"}, "got 1 argument"},
		{[]string{"keys", "add", "x", "--scopes", "root"}, `no scope "root"`},
		{[]string{"keys", "revoke", "x"}, "no key named"},
		{[]string{"ps", "--port", "1"}, "no server answers"},
		{[]string{"serve", "--port", "0", "--model", torn}, "torn.gguf: key "},
		{[]string{"serve", "--socket", "s", "--port", "1"}, "--socket and --port exclude each other"},
		{[]string{"serve", "--socket", "s", "--host", "localhost"}, "--socket and --host exclude each other"},
		{[]string{"serve", "--port", "65536"}, "--port 65536: want a number from 0 to 65535"},
		{[]string{"serve", "--port", "-1"}, "--port -1: want a number from 0 to 65535"},
		{[]string{"serve", "--max-requests", "0"}, "--max-requests 0: want at least 1"},
		{[]string{"serve", "--max-queue", "-1"}, "--max-queue -1: want at least 1"},
		{[]string{"serve", "--parallel", "-2"}, "--parallel -2: want at least 1"},
		{[]string{"serve", "--grace", "-1s"}, "--grace -1s: want no negative time"},
		{[]string{"serve", "--socket", ""}, `--socket "": want the path of a file`},
		{[]string{"serve", "--socket", torn}, "there is something that is no socket"},
		{[]string{"serve", "--socket", filepath.Join(t.TempDir(), "none", "s")}, "s: bind: no such file"},
		{[]string{"serve", "--socket", filepath.Join(t.TempDir(), strings.Repeat("s", 120))}, "may have some 100 " +
			"characters"},
		{[]string{"serve", "--host", "[::1]"}, `--host "[::1]": want a name or an address`},
		{[]string{"serve", "--host", ""}, `--host "": want a name or an address`},
		{[]string{"serve", "--host", "192.0.2.1", "--port", "0", "--api-key", "long-enough"}, "--host 192.0.2.1: " +
			"bind: "},
		{[]string{"ps", "--socket", ""}, `--socket "": want the path of a file`},
		{[]string{"ps", "--socket", "s", "--port", "1"}, "--socket and --port exclude each other"},
		{[]string{"ps", "--port", "0"}, "--port 0: want a number from 1 to 65535"},
		{[]string{"stop", "--host", "http://localhost"}, `--host "http://localhost": want a name or an address`},
		{[]string{"ps", "--host", "localhost:1"}, `--host "localhost:1": want a name or an address`},
		{[]string{"ps", "--tls-cert", "/nowhere"}, "--tls-cert"},
	} {
		var out, errs bytes.Buffer
		status := Main(c.args, IO{Out: &out, Err: &errs, Environ: []string{"BALEEN_HOME=" + t.TempDir()}})
		if status == 0 || !strings.Contains(errs.String(), c.say) {
			t.Errorf("%v: status %d, %s", c.args, status, errs.String())
		}
	}
}

// TestNoServer asks where nobody listens, where somebody listens who is no server, and listens there.
func TestNoServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	socket := filepath.Join(t.TempDir(), "none.sock")
	for _, c := range []struct {
		args []string
		say  string
	}{
		{[]string{"ps", "--port", "1"}, "baleen: no server answers at 127.0.0.1:1 (start one with: baleen serve " +
			"--port 1)\n"},
		{[]string{"stop", "--port", "1"}, "baleen: no server answers at 127.0.0.1:1 (start one with: baleen serve " +
			"--port 1)\n"},
		{[]string{"ps", "--socket", socket}, "baleen: no server answers at " + socket + " (start one with: baleen " +
			"serve --socket " + socket + ")\n"},
		{[]string{"ps", "--port", port}, "baleen: what listens at 127.0.0.1:" + port + " gives no answer: "},
		{[]string{"serve", "--port", port}, "baleen: port " + port + " of 127.0.0.1 is in use, perhaps by a server " +
			"of yours (see: baleen ps --port " + port + "); choose another with --port"},
	} {
		o := command(t, "", c.args...)
		o.oneErrorLine(t, exitFailed, "")
		if !strings.HasPrefix(o.err, c.say) {
			t.Errorf("%v: %q, want %q", c.args, o.err, c.say)
		}
	}
}

// TestServe starts a server as a user does, asks it, and stops it.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tiny.gguf")
	if err := (servertest.Checkpoint{Context: 2048}).Write(path); err != nil {
		t.Fatal(err)
	}
	env := []string{"BALEEN_HOME=" + dir}
	run := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if status := Main(args, IO{Out: &out, Err: &errs, Environ: env}); status != 0 {
			t.Fatalf("%v: %s", args, errs.String())
		}
		return strings.TrimSpace(out.String())
	}
	key := run("keys", "add", "laptop", "--scopes", "all")
	if !strings.Contains(run("keys", "list"), "laptop  infer,manage,watch") {
		t.Error("the key is not listed")
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, w := io.Pipe()
	a := &app{io: IO{Out: w, Err: io.Discard, Environ: env}}
	var err error
	if a.cfg, _, err = config.Load(env); err != nil {
		t.Fatal(err)
	}
	cmd := a.rootCommand()
	socket := filepath.Join(dir, "s")
	cmd.SetArgs([]string{"serve", "--model", path, "--socket", socket, "--threads", "1", "--max-memory", "1GiB"})
	cmd.SetOut(w)
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx); w.Close() }()
	if line := make([]byte, 256); true {
		n, err := r.Read(line)
		if err != nil || !strings.HasPrefix(string(line[:n]), "unix:"+socket) {
			t.Fatalf("%q %v", line[:n], err)
		}
	}
	rem := &remote{socket: socket, key: key}
	var out struct {
		Models []struct{ Name string }
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		err := rem.call(t.Context(), http.MethodGet, "/baleen/models", nil, &out)
		if err == nil && len(out.Models) == 1 && out.Models[0].Name == "tiny" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%+v %v", out, err)
		}
	}
	var answer json.RawMessage
	body := map[string]any{"model": "tiny", "prompt": "x", "max_tokens": 2, "temperature": 0}
	if err := rem.call(t.Context(), http.MethodPost, "/v1/completions", body, &answer); err != nil ||
		!strings.Contains(string(answer), `"completion_tokens":2`) {
		t.Errorf("%s %v", answer, err)
	}
	if err := (&remote{socket: socket}).call(t.Context(), http.MethodGet, "/v1/models", nil, &answer); err == nil ||
		!strings.Contains(err.Error(), "API key") {
		t.Errorf("without the key: %v", err)
	}
	if got := run("ps", "--socket", socket, "--api-key", key); !strings.Contains(got, "tiny") {
		t.Errorf("ps: %s", got)
	}
	o := commandEnv(t, env, "", "stop", "none", "tiny", "--socket", socket, "--api-key", key)
	o.oneErrorLine(t, exitFailed, `"none" is not here`)
	if got := run("ps", "--socket", socket, "--api-key", key); strings.Contains(got, "tiny") &&
		!strings.Contains(got, "unloading") {
		t.Errorf("a wrong name keeps another model loaded: %s", got)
	}
	stop()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the server does not stop")
	}
}

// TestServerWithTLS asks a server that listens with TLS, by its certificate, by another one, and by none.
func TestServerWithTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer right-key" {
			w.WriteHeader(http.StatusUnauthorized)
			io.WriteString(w, `{"error":{"message":"a valid API key is needed"}}`)
			return
		}
		io.WriteString(w, `{"models":[{"name":"tiny","requests":1,"leaving":true}]}`)
	}))
	defer s.Close()
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	cert := filepath.Join(t.TempDir(), "cert.pem")
	write := func(der []byte) {
		if err := os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(s.Certificate().Raw)
	if o := command(t, "", "ps", "--port", port, "--tls-cert", cert, "--api-key", "right-key"); o.status != 0 ||
		!strings.Contains(o.out, "tiny") ||
		!strings.Contains(o.out, "no longer in use") {
		t.Errorf("status %d: %s%s", o.status, o.out, o.err)
	}
	for _, c := range []struct {
		say  string
		args []string
	}{
		{"listens with TLS: give its certificate with --tls-cert", nil},
		{"the server wants an API key: give --api-key, or set BALEEN_API_KEY", []string{"--tls-cert", cert}},
		{"the server does not know this API key", []string{"--tls-cert", cert, "--api-key", "wrong-key"}},
	} {
		o := command(t, "", append([]string{"ps", "--port", port}, c.args...)...)
		if o.oneErrorLine(t, exitFailed, ""); !strings.Contains(o.err, c.say) {
			t.Errorf("%v: %q", c.args, o.err)
		}
	}
	write(append([]byte(nil), s.Certificate().Raw[1:]...))
	if o := command(t, "", "ps", "--port", port, "--tls-cert", cert); !strings.Contains(
		o.err,
		"its certificate is not the one in "+cert,
	) {
		t.Errorf("another certificate: %q", o.err)
	}
}

// TestLastKeyIsRevoked leaves a server without keys: one that other machines reach must not open up by that.
func TestLastKeyIsRevoked(t *testing.T) {
	for host, needed := range map[string]bool{"127.0.0.1": false, "0.0.0.0": true} {
		path := filepath.Join(t.TempDir(), "keys.json")
		if _, err := auth.Add(path, "laptop", auth.Scopes()); err != nil {
			t.Fatal(err)
		}
		keys := auth.NewKeys(nil, path)
		if err := (&serveFlags{host: host}).checkAccess(keys); err != nil {
			t.Fatal(err)
		}
		if err := auth.Revoke(path, "laptop"); err != nil {
			t.Fatal(err)
		}
		if got, err := keys.Needed(); got != needed || err != nil {
			t.Errorf("%s: a key is needed: %v %v, want %v", host, got, err, needed)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "512MiB": 512 << 20, "8GB": 8e9, "1.5 GiB": 3 << 29, "2k": 2048, "7b": 7} {
		if n, err := parseBytes(text); err != nil || n != want {
			t.Errorf("%q: %d %v", text, n, err)
		}
	}
	for _, bad := range []string{"", "-1", "x", "1e30GiB", "0", "nan", "nanGiB"} {
		if _, err := parseBytes(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// TestLogRows wants times as people read them in text, and in seconds in JSON.
func TestLogRows(t *testing.T) {
	for format, want := range map[string]string{"text": "took=1.5s", "json": `"took":1.5`} {
		var errs bytes.Buffer
		a := &app{io: IO{Err: &errs}}
		log, err := a.logger(&serveFlags{logFormat: format, logLevel: "info"})
		if err != nil {
			t.Fatal(err)
		}
		log.Info("request", "took", 1500*time.Millisecond)
		if !strings.Contains(errs.String(), want) {
			t.Errorf("%s: %s", format, errs.String())
		}
	}
}
