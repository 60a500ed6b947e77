package server_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/server/servertest"
)

// TestLoadWithCancels runs 16 clients that ask, wait, hang up and ask again, and then accounts for everything:
// requests, pages, goroutines and memory. BALEEN_TEST_LOAD says how long, such as 10m.
func TestLoadWithCancels(t *testing.T) {
	took := 1500 * time.Millisecond
	if v := os.Getenv("BALEEN_TEST_LOAD"); v != "" {
		var err error
		if took, err = time.ParseDuration(v); err != nil {
			t.Fatal(err)
		}
	}
	w := world(t, servertest.Options{})
	w.Post(t, chatPath, hello) // loads the model
	w.Backend.SetDelay(200 * time.Microsecond)
	before, heap := runtime.NumGoroutine(), heapBytes()
	var sent, whole, hung atomic.Int64
	end := time.Now().Add(took)
	var wg sync.WaitGroup
	for client := range 16 {
		rng := rand.New(rand.NewPCG(7, uint64(client)))
		wg.Go(func() {
			for time.Now().Before(end) {
				body := fmt.Sprintf(`{"model":"scripted","stream":%v,"max_tokens":%d,"n":%d,"messages":[{"role":"user","content":"COUNT %s"}]}`,
					rng.IntN(2) == 0, 1+rng.IntN(200), 1+rng.IntN(3), strings.Repeat("x", rng.IntN(500)))
				ctx, cancel := context.WithCancel(t.Context())
				if rng.IntN(3) == 0 {
					time.AfterFunc(time.Duration(rng.IntN(40))*time.Millisecond, cancel)
				}
				sent.Add(1)
				r, err := w.Send(ctx, "POST", chatPath, body)
				switch {
				case err != nil && ctx.Err() != nil:
					hung.Add(1)
				case err != nil || r.Status != 200 || !strings.Contains(r.Body, `"finish_reason":"length"`) && !strings.Contains(r.Body, `"finish_reason":"stop"`):
					t.Errorf("%v %d %.300s", err, r.Status, r.Body)
				default:
					whole.Add(1)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if sent.Load() != whole.Load()+hung.Load() || whole.Load() == 0 || hung.Load() == 0 {
		t.Errorf("%d sent, %d answered, %d given up", sent.Load(), whole.Load(), hung.Load())
	}
	eventually(t, "all requests end", func() bool { return w.Server.Active() == 0 })
	held(t, w)
	counted := func() (n int64) {
		for _, m := range regexp.MustCompile(`baleen_generations_(ended_)?total\{[^}]*\} (\d+)`).FindAllStringSubmatch(w.Do(t, "GET", "/metrics", "").Body, -1) {
			var k int64
			fmt.Sscan(m[2], &k) //nolint:errcheck // digits
			if m[1] == "" {
				n += k
			} else {
				n -= k
			}
		}
		return n
	}
	eventually(t, "every generation that began has ended", func() bool { return counted() == 0 })
	w.HTTP.CloseClientConnections()
	eventually(t, "the goroutines are gone", func() bool { return runtime.NumGoroutine() <= before+20 })
	if grown := heapBytes() - heap; grown > 64<<20 {
		t.Errorf("the heap has grown by %d MiB", grown>>20)
	}
	t.Logf("%d requests, %d given up", sent.Load(), hung.Load())
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
