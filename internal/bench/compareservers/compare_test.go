package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const (
	roleEvent  = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}` + "\n\n"
	nullEvent  = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}` + "\n\n"
	textEvent  = `data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}],"usage":null}` + "\n\n"
	plainEvent = `data: {"choices":[{"index":0,"text":"a","finish_reason":null}]}` + "\n\n"
	usageEvent = `data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":4}}` + "\n\n"
	endEvent   = "data: [DONE]\n\n"
)

func TestReadCountsPiecesOfText(t *testing.T) {
	for _, c := range []struct {
		name, stream, err string
		pieces            int
	}{
		{"chat", roleEvent + textEvent + textEvent + usageEvent + endEvent, "", 2},
		{"chat of the other server", nullEvent + textEvent + usageEvent + endEvent, "", 1},
		{"completion", plainEvent + ": alive\n\n" + plainEvent + plainEvent + usageEvent + endEvent, "", 3},
		{"no end", textEvent + usageEvent, "no end", 0},
		{"no usage", textEvent + endEvent, "no usage", 0},
		{"no text", roleEvent + usageEvent + endEvent, "no text", 0},
		{"failure", textEvent + `data: {"error":{"message":"broken"}}` + "\n\n" + endEvent, "broken", 0},
	} {
		var a answer
		err := a.read(bufio.NewReader(strings.NewReader(c.stream)))
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want one with %q", c.name, err, c.err)
			}
			continue
		}
		if err != nil || len(a.at) != c.pieces || a.prompt != 7 || a.tokens != 4 || a.end.IsZero() {
			t.Errorf("%s: %v, %d pieces, want %d, usage %d + %d", c.name, err, len(a.at), c.pieces, a.prompt, a.tokens)
		}
	}
}

// TestWindows checks the windows of a round against answers whose times are known.
func TestWindows(t *testing.T) {
	zero := time.Unix(0, 0)
	at := func(ms ...int) (out []time.Time) {
		for _, m := range ms {
			out = append(out, zero.Add(time.Duration(m)*time.Millisecond))
		}
		return out
	}
	a := &answer{begin: zero, at: at(100, 200, 300, 400), end: at(400)[0], tokens: 8}
	if n := a.within(at(100)[0], at(300)[0]); n != 4 {
		t.Errorf("%g tokens in two of four events of two tokens each", n)
	}
	l := windows([]*answer{a, {begin: zero, at: at(250, 350), end: at(350)[0], tokens: 2, prompt: 5}})
	if l.tokens != 10 || l.window != 400*time.Millisecond || l.steady != 3 || l.during != 100*time.Millisecond {
		t.Errorf("%g tokens in %v, %g in %v while both streamed", l.tokens, l.window, l.steady, l.during)
	}
	f := l.figures()
	if f.requests != 2 || f.rate != 25 || f.first.p50 != 100 || f.first.p99 != 250 || f.gap.p50 != 100 ||
		f.tokens != 10 ||
		f.prompts != 5 {
		t.Errorf("%+v", f)
	}
}

func TestQuantiles(t *testing.T) {
	var v []float64
	for i := range 100 {
		v = append(v, float64(100-i))
	}
	if q := quantilesOf(v); q != (quantiles{50, 99, 100}) || v[0] != 100 {
		t.Errorf("%+v, and the list begins with %g", q, v[0])
	}
}

// TestRound asks a server that refuses what it does not like.
func TestRound(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if string(body) == "bad" {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, roleEvent+textEvent+textEvent+usageEvent+endEvent)
	}))
	defer srv.Close()
	c := newClient(srv.URL)
	l, err := round(t.Context(), c, []ask{{"/", []byte("good")}, {"/", []byte("good")}})
	if err != nil || l.tokens != 8 || len(l.answers) != 2 || l.window <= 0 {
		t.Errorf("%v %+v", err, l)
	}
	if _, err := round(t.Context(), c, []ask{{"/", []byte("good")}, {"/", []byte("bad")}}); err == nil ||
		!strings.Contains(err.Error(), "400") {
		t.Errorf("error %v, want one with the status", err)
	}
}

func TestShares(t *testing.T) {
	r := newReport()
	r.of("Baleen").phases[allAtOnce] = []figures{{steady: 95}, {steady: 110}, {steady: 1}}
	r.of("other").phases[allAtOnce] = []figures{{steady: 1}}
	if got := strings.Join(r.shares(allAtOnce, []float64{100, 100}), " "); got != "95.0 % 110.0 %" {
		t.Errorf("%q", got)
	}
}
