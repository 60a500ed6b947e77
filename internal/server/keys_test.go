package server_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/auth"
	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/engine"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/pool"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/anthropic"
	"github.com/baleenrun/baleen/internal/server/models"
	"github.com/baleenrun/baleen/internal/server/ollama"
	"github.com/baleenrun/baleen/internal/server/servertest"
	"github.com/baleenrun/baleen/internal/store"
)

// keyed is a world with two keys that only run models, and one that may do everything.
func keyed(
	t *testing.T,
	o servertest.Options,
	change func(*server.Options),
) (w *servertest.World, alice, bob, admin string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "keys.json")
	add := func(name string, scopes ...auth.Scope) string {
		key, err := auth.Add(file, name, scopes)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	alice, bob, admin = add("alice", auth.Infer), add("bob", auth.Infer), add("admin", auth.Scopes()...)
	o.Dialects = append(o.Dialects, anthropic.New, ollama.New(nil))
	o.Server = func(so *server.Options) {
		so.Keys = auth.NewKeys(nil, file)
		if change != nil {
			change(so)
		}
	}
	return world(t, o), alice, bob, admin
}

// TestKeysShareNoCache sends one prompt under several keys and salts: only the same pair finds it in the cache.
func TestKeysShareNoCache(t *testing.T) {
	long := strings.Repeat("a secret that is longer than a page of the cache ", 10)
	for _, share := range []bool{false, true} {
		w, alice, bob, _ := keyed(t, servertest.Options{}, func(o *server.Options) { o.ShareCache = share })
		for i, c := range []struct {
			key, path, salt string
			found           bool // by a server whose keys share nothing
		}{
			{alice, chatPath, "", false},
			{alice, chatPath, "", true},
			{bob, chatPath, "", false},
			{bob, chatPath, "", true},
			{alice, chatPath, "team", false},
			{bob, chatPath, "team", false},
			{alice, chatPath, "team", true},
			{alice, "/v1/completions", "", false}, // without the template it is another prompt
			{bob, "/v1/completions", "", false},
			{bob, "/v1/completions", "", true},
			{bob, "/v1/responses", "", true}, // the same conversation as bob's above
			{bob, "/v1/responses", "x", false},
		} {
			salt := ""
			if c.salt != "" {
				salt = fmt.Sprintf(`,"cache_salt":%q`, c.salt)
			}
			body := fmt.Sprintf(`{"model":"scripted"%s,"messages":[{"role":"user","content":%q}]}`, salt, long)
			switch c.path {
			case "/v1/completions":
				body = fmt.Sprintf(`{"model":"scripted"%s,"prompt":%q,"max_tokens":1}`, salt, long)
			case "/v1/responses":
				body = fmt.Sprintf(`{"model":"scripted"%s,"input":%q}`, salt, long)
			}
			r := w.Post(t, c.path, body, "Authorization", "Bearer "+c.key)
			u, _ := r.JSON(t)["usage"].(map[string]any)
			details, _ := u["prompt_tokens_details"].(map[string]any)
			if details == nil {
				details, _ = u["input_tokens_details"].(map[string]any)
			}
			cached, ok := details["cached_tokens"].(float64)
			want := c.found || share && (i == 2 || i == 5 || i == 8)
			if !ok || (cached > 300) != want || !want && cached != 0 {
				t.Errorf(
					"shared: %v, request %d: %v cached, want some: %v: %s",
					share,
					i,
					details["cached_tokens"],
					want,
					r.Body,
				)
			}
		}
	}
	w := world(t, servertest.Options{})
	if r := w.Post(t, chatPath, strings.Replace(hello, "{", `{"cache_salt":"",`, 1)); r.Status != 400 ||
		!strings.Contains(r.Body, "cache_salt") {
		t.Errorf("an empty salt: %d %s", r.Status, r.Body)
	}
}

// TestKeysDecideOnlyAboutWhatTheyLoaded tries to unload a model that somebody else made load.
func TestKeysDecideOnlyAboutWhatTheyLoaded(t *testing.T) {
	w, alice, bob, admin := keyed(t, servertest.Options{}, nil)
	loaded := func() int { return len(w.Pool.Loaded(nil)) }
	ask := func(key, path, body string) servertest.Reply {
		t.Helper()
		return w.Post(t, path, body, "Authorization", "Bearer "+key)
	}
	const (
		unload = `{"model":"scripted","keep_alive":0}`
		hi     = `{"model":"scripted","keep_alive":0,"stream":false,"messages":[{"role":"user","content":"hi"}]}`
	)
	ask(admin, "/api/generate", `{"model":"scripted","keep_alive":-1}`)
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{"/api/generate", unload, 403},
		{"/api/chat", unload, 403},
		{"/api/chat", hi, 200},
		{chatPath, hi, 200},
	} {
		r := ask(alice, c.path, c.body)
		if r.Status != c.status ||
			c.status == 200 && !strings.Contains(r.Header.Get(server.NoticeHeader), "keep_alive") {
			t.Errorf("%s %s: %d %v %s", c.path, c.body, r.Status, r.Header, r.Body)
		}
	}
	if loaded() != 1 {
		t.Fatal("a key that only runs models unloaded one that it did not load")
	}
	for key, shows := range map[string]bool{alice: false, admin: true} {
		for path, body := range map[string]string{"/baleen/models": "", "/api/show": `{"model":"scripted"}`} {
			method := "GET"
			if body != "" {
				method = "POST"
			}
			r := w.Do(t, method, path, body, "Authorization", "Bearer "+key)
			if r.Status != 200 || strings.Contains(r.Body, w.Path) != shows {
				t.Errorf("%s: the place on disk is shown: want %v: %s", path, shows, r.Body)
			}
		}
	}
	ask(admin, "/api/generate", unload)
	eventually(t, "it is unloaded", func() bool { return loaded() == 0 })
	ask(alice, "/api/generate", `{"model":"scripted"}`)
	if r := ask(bob, "/api/generate", unload); r.Status != 403 || loaded() != 1 {
		t.Errorf("of another key: %d", r.Status)
	}
	if r := ask(alice, "/api/generate", unload); r.Status != 200 {
		t.Errorf("her own: %d %s", r.Status, r.Body)
	}
	eventually(t, "it is unloaded", func() bool { return loaded() == 0 })
}

// TestErrorsHidePlaces asks for a model that cannot be loaded: only keys that may change models learn where it lies.
func TestErrorsHidePlaces(t *testing.T) {
	w, alice, _, admin := keyed(t, servertest.Options{}, nil)
	if err := os.WriteFile(w.Path, []byte("no model"), 0o600); err != nil {
		t.Fatal(err)
	}
	for key, shows := range map[string]bool{alice: false, admin: true} {
		for path, body := range map[string]string{chatPath: hello, "/v1/messages": strings.Replace(hello, "{", `{"max_tokens":1,`, 1), "/api/chat": hello, "/api/show": hello} {
			r := w.Post(t, path, body, "Authorization", "Bearer "+key)
			if r.Status < 400 || strings.Contains(r.Body, filepath.Dir(w.Path)) != shows ||
				!strings.Contains(r.Body, "scripted.gguf") {
				t.Errorf("%s: %d, want the place: %v: %s", path, r.Status, shows, r.Body)
			}
		}
	}
}

// TestOneKeyCannotFillTheQueue has one key take all places of the engine and of the server: another one gets in, and
// who has its share is told so in the words of the dialect.
func TestOneKeyCannotFillTheQueue(t *testing.T) {
	for name, tune := range map[string]struct {
		places  int
		waiting func(n int) int // at least, when n+1 are in work
		model   func(*model.Options)
		server  func(*server.Options)
	}{
		"the engine's": {places: 5, waiting: func(n int) int { return n }, model: func(o *model.Options) { // one runs, four wait
			o.Seqs = 1
			o.Tune = func(e *engine.Options) { e.MaxQueue = 4 }
		}},
		"the server's": {places: 4, waiting: func(int) int { return 0 }, server: func(o *server.Options) { o.MaxActive = 4 }},
	} {
		t.Run(name, func(t *testing.T) {
			w, alice, bob, _ := keyed(t, servertest.Options{Model: tune.model}, tune.server)
			w.Backend.SetDelay(5 * time.Millisecond)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			defer wg.Wait()
			defer cancel()
			ask := func(key string) {
				wg.Go(func() {
					w.Send(
						ctx,
						"POST",
						chatPath,
						counting,
						"Authorization",
						"Bearer "+key,
					) //nolint:errcheck // it is cancelled
				})
			}
			for n := range tune.places {
				ask(alice)
				eventually(
					t,
					"it is in work",
					func() bool { return w.Server.Active() == n+1 && waiting(w) >= tune.waiting(n) },
				)
			}
			if r := w.Post(t, chatPath, hello, "Authorization", "Bearer "+alice); r.Status != 503 {
				t.Errorf("it is full: %d %s", r.Status, r.Body)
			}
			ask(bob)
			eventually(
				t,
				"another key gets in",
				func() bool { return w.Server.Active() == tune.places+1 && waiting(w) >= tune.waiting(tune.places) },
			)
			for path, want := range map[string]string{chatPath: `"rate_limit_exceeded"`, "/v1/messages": `"rate_limit_error"`, "/api/chat": `{"error":"`} {
				body := strings.Replace(hello, "{", `{"max_tokens":1,`, 1)
				r := w.Post(t, path, body, "Authorization", "Bearer "+alice)
				if r.Status != 429 || !strings.Contains(r.Body, want) || r.Header.Get("Retry-After") == "" {
					t.Errorf("%s: %v %s", path, r.Header, r.Body)
				}
			}
		})
	}
}

// waiting is how many requests wait in the engine's queue.
func waiting(w *servertest.World) (n int) {
	w.Pool.Loaded(func(_ pool.Status, m *chat.Model) { n = m.Engine.Stats().Waiting })
	return n
}

// TestListedNamesWork asks for each name that a list of models shows, on every route that takes one, and looks for it
// among those that are loaded.
func TestListedNamesWork(t *testing.T) {
	st := store.Open(t.TempDir())
	cat := models.New(st)
	w := world(t, servertest.Options{
		Dialects: []func(*server.Env) server.Dialect{anthropic.New, ollama.New(nil)},
		Chat:     func(o *chat.Options) { o.Catalog = cat },
	})
	if err := (servertest.Checkpoint{}).Write(makeFile(t, st.Models(), "whale.gguf")); err != nil {
		t.Fatal(err)
	}
	if err := cat.Derive(models.Derived{Spec: chat.Spec{Name: "calf", Path: filepath.Join(st.Models(), "whale.gguf")}}); err != nil {
		t.Fatal(err)
	}
	tags := w.Do(t, "GET", "/api/tags", "").Body
	for _, name := range []string{"whale", "calf"} {
		for _, asked := range []string{name, name + ":latest", strings.ToUpper(name) + ":Latest"} {
			if asked == name+":latest" && !strings.Contains(tags, `"`+asked+`"`) {
				t.Fatalf("%s is not listed: %s", asked, tags)
			}
			for path, body := range map[string]string{
				chatPath:                    `"max_tokens":1,"messages":[{"role":"user","content":"hi"}]`,
				"/v1/completions":           `"max_tokens":1,"prompt":"hi"`,
				"/v1/responses":             `"input":"hi"`,
				"/v1/messages":              `"max_tokens":1,"messages":[{"role":"user","content":"hi"}]`,
				"/v1/messages/count_tokens": `"messages":[{"role":"user","content":"hi"}]`,
				"/api/generate":             `"prompt":"hi","stream":false`,
				"/api/chat":                 `"messages":[{"role":"user","content":"hi"}],"stream":false`,
				"/api/show":                 `"verbose":false`,
				"/v1/models/" + asked:       "",
			} {
				method := "POST"
				if body == "" {
					method = "GET"
				} else {
					body = fmt.Sprintf(`{"model":%q,%s}`, asked, body)
				}
				if r := w.Do(t, method, path, body); r.Status != 200 {
					t.Errorf("%s for %s: %d %s", path, asked, r.Status, r.Body)
				}
			}
		}
	}
	ps := w.Do(t, "GET", "/api/ps", "").Body
	if !strings.Contains(ps, `"name":"whale:latest"`) || !strings.Contains(ps, `"name":"calf:latest"`) {
		t.Errorf("the names that were asked for are not listed: %s", ps)
	}
	if r := w.Post(t, "/baleen/unload", `{"model":"calf:latest"}`); r.Status != 200 ||
		!strings.Contains(r.Body, "true") {
		t.Errorf("%d %s", r.Status, r.Body)
	}
	eventually(t, "it is unloaded", func() bool { return len(w.Pool.Loaded(nil)) == 0 })
	w.Post(t, "/api/generate", `{"model":"calf"}`)
	if ps := w.Do(t, "GET", "/api/ps", "").Body; strings.Contains(ps, "whale") ||
		!strings.Contains(ps, `"name":"calf:latest"`) {
		t.Errorf("loaded as calf alone: %s", ps)
	}
	if was, err := cat.Forget("calf"); !was || err != nil { // another server on the store does that
		t.Fatal(err)
	}
	if r := w.Post(t, "/baleen/unload", `{"model":"calf:latest"}`); r.Status != 200 ||
		!strings.Contains(r.Body, "true") {
		t.Errorf("by a name that is gone: %d %s", r.Status, r.Body)
	}
	eventually(t, "it is unloaded", func() bool { return len(w.Pool.Loaded(nil)) == 0 })
}

// makeFile makes the folder of a file, and returns the file's path.
func makeFile(t *testing.T, dir, name string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}
