package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

// serve runs the program until the test ends and returns its address.
func serve(t *testing.T, ctx context.Context, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(ctx)
	in, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, append(args, "-listen", "127.0.0.1:0"), out)
		out.CloseWithError(fmt.Errorf("it ended: %w", err))
		ended <- err
	}()
	address, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		stop()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return strings.TrimSpace(address)
}

func send(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func TestServer(t *testing.T) {
	checkpoint := filepath.Join(t.TempDir(), "scripted.gguf")
	if err := (servertest.Checkpoint{Context: 4096}).Write(checkpoint); err != nil {
		t.Fatal(err)
	}
	b, err := servertest.NewBackend(checkpoint, func(prompt string) string {
		if strings.Contains(prompt, "Summarize") {
			return "<think>\nShort.\n</think>\n\nIt is about whales."
		}
		return "Hello!"
	})
	if err != nil {
		t.Fatal(err)
	}
	address := serve(t, model.WithBackend(t.Context(), b), "-model", checkpoint)
	if code, text := send(t, "PUT", address+"/summarize", "Whales are large."); code != 200 ||
		strings.TrimSpace(text) != "It is about whales." {
		t.Errorf("%d %q", code, text)
	}
	for _, body := range []string{strings.Repeat("x", 50_000), strings.Repeat("x", maxText+1)} {
		if code, text := send(t, "PUT", address+"/summarize", body); code != 413 && code != 400 {
			t.Errorf("%d bytes: %d %q", len(body), code, text)
		}
	}
	if code, text := send(t, "PUT", address+"/summarize", "\xff"); code != 400 {
		t.Errorf("no text: %d %q", code, text)
	}
	ask := `{"model":"scripted","messages":[{"role":"user","content":"Hi"}]}`
	if code, text := send(t, "POST", address+"/ai/v1/chat/completions", ask); code != 200 ||
		!strings.Contains(text, "Hello!") {
		t.Errorf("%d %q", code, text)
	}
	if code, text := send(t, "GET", address+"/ai/api/tags", ""); code != 200 || !strings.Contains(text, "scripted") {
		t.Errorf("%d %q", code, text)
	}
}

// TestServerWithARealModel asks one that is on this machine.
func TestServerWithARealModel(t *testing.T) {
	if os.Getenv("BALEEN_TEST_MODELS") == "" {
		t.Skip("BALEEN_TEST_MODELS is not set")
	}
	address := serve(t, t.Context(), "-model", "smollm2-135m")
	if code, text := send(t, "PUT", address+"/summarize", "Whales are large animals. They live in the sea."); code != 200 ||
		text == "" {
		t.Errorf("%d %q", code, text)
	}
	ask := `{"model":"smollm2-135m","messages":[{"role":"user","content":"Hi"}],"max_tokens":8}`
	if code, text := send(t, "POST", address+"/ai/v1/chat/completions", ask); code != 200 ||
		!strings.Contains(text, `"content"`) {
		t.Errorf("%d %q", code, text)
	}
}
