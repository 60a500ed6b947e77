package ollama

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/iotest"

	"github.com/baleenrun/baleen/internal/chat"
)

// TestUploadThatStops reads a file of which nothing comes any more: the client is told so, not that the server failed.
func TestUploadThatStops(t *testing.T) {
	for err, want := range map[error]chat.Kind{os.ErrDeadlineExceeded: chat.SlowBody, io.ErrUnexpectedEOF: chat.Invalid} {
		u := &upload{iotest.ErrReader(err), http.NewResponseController(httptest.NewRecorder())}
		if _, err := io.ReadAll(u); chat.AsError(err).Kind != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
