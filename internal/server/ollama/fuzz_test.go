package ollama

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/baleenrun/baleen/internal/chat"
)

// FuzzRequests decodes bodies of all routes that have one: nothing panics, refusals are chat's errors, and what is
// accepted has settings that a sampler takes.
func FuzzRequests(f *testing.F) {
	for _, s := range []string{
		`{"model":"m","messages":[{"role":"user","content":"x","images":["aGk="]},{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{}}}]},{"role":"tool","content":"y"}]}`,
		`{"model":"m","prompt":"x","context":[1,2],"options":{"temperature":0.5,"top_p":0,"seed":-2,"num_predict":-1,"stop":["a"],"repeat_last_n":0}}`,
		`{"model":"m","keep_alive":1e300,"think":"max","format":{"type":"object"},"top_logprobs":3}`,
		`{"model":"m","from":"n","files":{"a":"sha256:00"},"parameters":{"num_ctx":1},"license":["x"],"messages":[]}`,
		`{"model":"m","modelfile":"FROM x\nPARAMETER stop a\nMESSAGE user b"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var g, c run
		var m making
		check := func(err error) bool {
			var e *chat.Error
			if err != nil && (!errors.As(err, &e) || e.Message() == "") {
				t.Fatalf("%q: %v", body, err)
			}
			return err == nil
		}
		if check(generateTable.Decode(body, &g)) && check(g.check()) {
			settings(t, g.generate(chat.Spec{Name: "m"}))
		}
		if check(chatTable.Decode(body, &c)) {
			settings(t, c.conversation(chat.Spec{Name: "m"}))
		}
		if check(createTable.Decode(body, &m)) && m.file != "" {
			check(fromFile(&m.c, m.file))
		}
	})
}

func settings(t *testing.T, q *chat.Request) {
	t.Helper()
	for _, p := range []*float32{q.Sampling.Temperature, q.Sampling.TopP, q.Sampling.MinP, q.Sampling.TypicalP, q.Sampling.RepetitionPenalty} {
		if p != nil && !(*p >= 0 && *p <= 10000) {
			t.Fatalf("a setting is %v", *p)
		}
	}
	if q.KeepAlive != nil && *q.KeepAlive < -1 || q.Context < 0 || q.MaxTokens < -1 || q.MaxTokens > math.MaxInt32 {
		t.Fatalf("keep %v, context %d, tokens %d", q.KeepAlive, q.Context, q.MaxTokens)
	}
	for _, m := range q.Messages {
		for _, c := range m.Calls {
			if !json.Valid([]byte(c.Arguments)) {
				t.Fatalf("arguments %q", c.Arguments)
			}
		}
	}
}
