package llamacpp_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/llamacpp"
	"github.com/baleenrun/baleen/internal/server/openai"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

var update = flag.Bool("update", false, "write the reference page")

func newWorld(t *testing.T, o servertest.Options) *servertest.World {
	t.Helper()
	o.Dialects = []func(*server.Env) server.Dialect{llamacpp.New(openai.Shapes())}
	return servertest.New(t, o)
}

// vim is what llama.vim sends for a completion, but for its texts.
const vim = `{"id_slot":0,"input_prefix":"def f(x):\n","input_suffix":"\nprint(f(1))\n","input_extra":[{"filename":"a.py","text":"A = 1","time":[1,2]}],` +
	`"prompt":"    re","n_predict":128,"stop":[],"n_indent":4,"top_k":40,"top_p":0.90,"samplers":["top_k","top_p","infill"],"stream":false,"cache_prompt":true,` +
	`"t_max_prompt_ms":500,"t_max_predict_ms":0,"response_fields":["content","timings/prompt_n","timings/predicted_n","truncated","tokens_cached"],"model":"scripted"}`

// TestInfill wants the prompt that models were trained with, and the answer that llama.vim reads.
func TestInfill(t *testing.T) {
	var seen []string
	w := newWorld(t, servertest.Options{
		Checkpoint: servertest.Checkpoint{Control: []string{
			"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>", "<|file_sep|>",
		}},
		Script: func(p string) string { seen = append(seen, p); return "turn x\n    # done\nnext = 1" },
	})
	r := w.Post(t, "/infill", vim)
	const want = "<|repo_name|>project\n<|file_sep|>a.py\nA = 1\n<|file_sep|>filename\n<|fim_prefix|>def " +
		"f(x):\n<|fim_suffix|>\nprint(f(1))\n<|fim_middle|>    re"
	if len(seen) != 1 || seen[0] != want {
		t.Errorf("prompt %q, want %q", seen, want)
	}
	m := r.JSON(t)
	if r.Status != 200 || m["content"] != "turn x\n    # done" { // the next line is indented less
		t.Errorf("%d %s", r.Status, r.Body)
	}
	for _, key := range []string{"timings/prompt_n", "timings/predicted_n", "truncated", "tokens_cached"} {
		if _, ok := m[key]; !ok {
			t.Errorf("%s is missing: %s", key, r.Body)
		}
	}
	if len(m) != 5 || !strings.Contains(r.Header.Get(server.NoticeHeader), "samplers[2] (infill)") {
		t.Errorf("%s, notice %q", r.Body, r.Header.Get(server.NoticeHeader))
	}
	// What llama.vim sends to have its context computed ahead.
	r = w.Post(
		t,
		"/infill",
		`{"id_slot":0,"input_prefix":"","input_suffix":"","prompt":"","n_predict":0,"samplers":[],"stream":false,"response_fields":[""]}`,
	)
	if r.Status != 200 || strings.TrimSpace(r.Body) != "{}" {
		t.Errorf("%d %s", r.Status, r.Body)
	}
}

// TestInfillWithoutFileMarks wants other files to stand before the gap as they are where a model has no marks for them,
// and a model without a gap's marks to refuse.
func TestInfillWithoutFileMarks(t *testing.T) {
	var seen string
	w := newWorld(t, servertest.Options{Script: func(p string) string { seen = p; return "x" }})
	w.Post(t, "/infill", vim)
	if want := "A = 1\n\n<|fim_prefix|>def f(x):\n<|fim_suffix|>\nprint(f(1))\n<|fim_middle|>    re"; seen != want {
		t.Errorf("%q, want %q", seen, want)
	}
	w = newWorld(
		t,
		servertest.Options{Checkpoint: servertest.Checkpoint{Control: []string{"<|im_start|>", "<|im_end|>"}}},
	)
	if r := w.Post(t, "/infill", vim); r.Status != 400 || !strings.Contains(r.Body, "was not trained to fill") {
		t.Errorf("%d %s", r.Status, r.Body)
	}
}

const count = `{"prompt":"<|im_start|>user\nCOUNT","n_predict":8,"temperature":0,`

func TestCompletion(t *testing.T) {
	w := newWorld(t, servertest.Options{Script: servertest.Demo})
	for _, c := range []struct {
		name, body string
		content    string
		stopType   string
		tokens     float64
	}{
		{"limit", count + `"seed":1}`, "1 2 3 4 ", "limit", 8},
		{"word", count + `"stop":["3",""]}`, "1 2 ", "word", 0},
		{"eos", `{"prompt":"<|im_start|>user\nhi","n_predict":-1}`, "Hello!", "eos", 7},
		{"none", count + `"max_tokens":0}`, "", "limit", 0},
		{"control tokens are read", `{"prompt":"<|im_start|>user\nWEATHER<|im_end|>\n<|im_start|>user\nUNICODE"}`, "Grüße, 世界 🐋!", "eos", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := w.Post(t, "/completion", c.body)
			m := r.JSON(t)
			if r.Status != 200 || m["content"] != c.content || m["stop_type"] != c.stopType || m["stop"] != true ||
				m["truncated"] != false ||
				m["model"] != "scripted" {
				t.Errorf("%d %s", r.Status, r.Body)
			}
			if c.tokens > 0 && m["tokens_predicted"] != c.tokens {
				t.Errorf("%v tokens, want %v", m["tokens_predicted"], c.tokens)
			}
			var text string
			var last map[string]any
			for _, e := range w.Post(t, "/completions", strings.TrimSuffix(c.body, "}")+`,"stream":true}`).Events(t) {
				if err := json.Unmarshal([]byte(e.Data), &last); err != nil {
					t.Fatal(err)
				}
				text += last["content"].(string)
			}
			if text != c.content || last["stop"] != true || last["stop_type"] != c.stopType {
				t.Errorf("streamed: %q, %v", text, last)
			}
		})
	}
}

// TestCompletionShapes is about several prompts, token ids and probabilities.
func TestCompletionShapes(t *testing.T) {
	w := newWorld(t, servertest.Options{Script: servertest.Demo})
	var ids struct{ Tokens []int32 }
	r := w.Post(t, "/tokenize", `{"content":"<|im_start|>user\nCOUNT"}`)
	if err := json.Unmarshal([]byte(r.Body), &ids); err != nil || len(ids.Tokens) != 11 {
		t.Fatalf("%v %s", err, r.Body)
	}
	list, _ := json.Marshal(ids.Tokens)
	whole := w.Post(t, "/completion", fmt.Sprintf(`{"prompt":%s,"n_predict":3,"return_tokens":true,"n_probs":2}`, list)).
		JSON(t)
	if whole["content"] != "1 2" || len(whole["tokens"].([]any)) != 3 {
		t.Errorf("%v", whole)
	}
	first := whole["completion_probabilities"].([]any)[0].(map[string]any)
	if first["token"] != "1" || len(first["top_logprobs"].([]any)) != 2 || first["id"] != whole["tokens"].([]any)[0] {
		t.Errorf("%v", first)
	}
	var many []map[string]any
	r = w.Post(
		t,
		"/completion",
		`{"prompt":["<|im_start|>user\nhi","<|im_start|>user\nCOUNT"],"n_predict":3,"n_cmpl":2}`,
	)
	if err := json.Unmarshal([]byte(r.Body), &many); err != nil || len(many) != 4 || many[0]["content"] != "Hel" ||
		many[3]["content"] != "1 2" ||
		many[3]["index"] != 3.0 {
		t.Errorf("%v %s", err, r.Body)
	}
	pieces := w.Post(t, "/completion", count+`"stream":true,"return_progress":true,"timings_per_token":true,"response_fields":["content","timings/predicted_n","prompt_progress"]}`).
		Events(t)
	var p map[string]any
	if err := json.Unmarshal([]byte(pieces[0].Data), &p); err != nil ||
		p["prompt_progress"].(map[string]any)["total"] != 11.0 {
		t.Errorf("%v %s", err, pieces[0].Data)
	}
	if last := pieces[len(pieces)-1].Data; !strings.Contains(last, `"timings/predicted_n":8`) ||
		!strings.Contains(last, `"stop":true`) {
		t.Error(last)
	}
}

// TestTimeLimit ends an answer that has a line when its time is over, and gives the model back.
func TestTimeLimit(t *testing.T) {
	w := newWorld(t, servertest.Options{Script: func(string) string { return "a\n" + strings.Repeat("b", 5000) }})
	w.Backend.SetDelay(time.Millisecond)
	m := w.Post(t, "/completion", `{"prompt":"x","t_max_predict_ms":1}`).JSON(t)
	if text := m["content"].(string); !strings.HasPrefix(text, "a\n") || len(text) > 200 || m["stop_type"] != "limit" ||
		m["tokens_predicted"].(float64) > 300 {
		t.Errorf("%d characters, %v tokens", len(text), m["tokens_predicted"])
	}
	if strings.Contains(w.Log(), "cancelled") {
		t.Errorf("an answer that ended by its time is no cancelled one: %s", w.Log())
	}
}

// TestSamplers wants steps that are not named to be off, and settings to be said in llama.cpp's names.
func TestSamplers(t *testing.T) {
	w := newWorld(t, servertest.Options{})
	for _, c := range []struct{ body, want string }{
		{`"samplers":["top_k","top_p"],"top_k":7,"top_p":0.5,"temperature":0.1,"min_p":0.3`, "7 0.5 0 1 1"},
		{`"samplers":["temperature"],"top_k":7,"temperature":0.25,"repeat_penalty":1.5`, "0 1 0 0.25 1"},
		{`"top_k":7,"top_p":1.5,"min_p":0.25,"temperature":0.5,"repeat_penalty":1.5`, "7 1 0.25 0.5 1.5"},
		{`"temperature":-1`, "0 1 0 0 1"},
	} {
		s := w.Post(t, "/completion", `{"prompt":"x",`+c.body+`}`).JSON(t)["generation_settings"].(map[string]any)
		if got := fmt.Sprint(s["top_k"], s["top_p"], s["min_p"], s["temperature"], s["repeat_penalty"]); got != strings.ReplaceAll(
			c.want,
			"  ",
			" ",
		) {
			t.Errorf("%s: %s, want %s", c.body, got, c.want)
		}
	}
}

func TestTokens(t *testing.T) {
	w := newWorld(t, servertest.Options{})
	for _, c := range []struct{ path, body, want string }{
		{"/tokenize", `{"content":"<|im_end|>"}`, `{"tokens":[258]}`},
		{"/tokenize", `{"content":"","add_special":false}`, `{"tokens":[]}`},
		{"/tokenize", `{"content":"é<|im_end|>","with_pieces":true}`, `{"tokens":[{"id":195,"piece":[195]},{"id":169,"piece":[169]},{"id":258,"piece":"<|im_end|>"}]}`},
		{"/detokenize", `{"tokens":[195,169,258]}`, `{"content":"é<|im_end|>"}`},
		{"/detokenize", `{"tokens":[]}`, `{"content":""}`},
		{"/apply-template", `{"messages":[{"role":"user","content":"hi"}]}`, `{"prompt":"<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"}`},
		{"/apply-template", `{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":"Sure"}]}`, `{"prompt":"<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nSure"}`},
	} {
		if r := w.Post(t, c.path, c.body); r.Status != 200 || strings.TrimSpace(r.Body) != c.want {
			t.Errorf("%s %s: %d %s, want %s", c.path, c.body, r.Status, r.Body, c.want)
		}
	}
	if r := w.Post(t, "/tokenize", `{"content":"<|im_end|>","parse_special":false}`); strings.Contains(r.Body, "258") {
		t.Errorf("a text became a control token: %s", r.Body)
	}
}

func TestAbout(t *testing.T) {
	w := newWorld(t, servertest.Options{})
	for _, path := range []string{"/health", "/v1/health"} {
		if r := w.Do(t, "GET", path, ""); r.Status != 200 || strings.TrimSpace(r.Body) != `{"status":"ok"}` {
			t.Errorf("%d %s", r.Status, r.Body)
		}
	}
	w.Server.SetReady(false)
	if r := w.Do(t, "GET", "/health", ""); r.Status != 503 ||
		!strings.Contains(r.Body, `"message":"Loading model","type":"unavailable_error"`) {
		t.Errorf("%d %s", r.Status, r.Body)
	}
	w.Server.SetReady(true)
	p := w.Do(t, "GET", "/props?model=scripted", "").JSON(t)
	def := p["default_generation_settings"].(map[string]any)
	if def["n_ctx"].(float64) < 32000 || p["total_slots"] != 1.0 || p["chat_template"] == "" ||
		p["eos_token"] != "<|im_end|>" ||
		strings.Contains(fmt.Sprint(p), w.Path) {
		t.Errorf("%v", p)
	}
	r := w.Do(t, "GET", "/slots?fail_on_no_slot=1", "")
	if r.Status != 200 || !strings.HasPrefix(r.Body, `[{"id":0,"id_task":-1,"n_ctx":`) ||
		!strings.Contains(r.Body, `"is_processing":false`) {
		t.Errorf("%d %s", r.Status, r.Body)
	}
}

// TestErrors wants llama.cpp's shape, kinds and numbers.
func TestErrors(t *testing.T) {
	w := newWorld(t, servertest.Options{Model: func(o *model.Options) { o.Context = 128 }})
	for _, c := range []struct {
		path, body, kind, say string
		status                int
	}{
		{"/completion", `{"n_predict":1}`, "invalid_request_error", "prompt", 400},
		{"/completion", `{"prompt":[]}`, "invalid_request_error", "no prompt", 400},
		{"/completion", `{"prompt":[["x"]]}`, "invalid_request_error", "prompt", 400},
		{"/completion", `{"prompt":"x","grammar":"root ::= b"}`, "invalid_request_error", "grammar", 400},
		{"/completion", `{"prompt":"x","grammar":"root ::= \"a\"","json_schema":{}}`, "invalid_request_error", "held to grammar already", 400},
		{"/completion", `{"prompt":"x","mirostat":2}`, "invalid_request_error", "mirostat", 400},
		{"/completion", `{"prompt":"x","logit_bias":[["Hello",1]]}`, "invalid_request_error", "logit_bias[0][0]", 400},
		{"/completion", `{"prompt":"x","logit_bias":[[1,true]]}`, "invalid_request_error", "logit_bias[0][1]", 400},
		{"/completion", `{"prompt":"x","model":"nope"}`, "not_found_error", "nope", 404},
		{"/tokenize", `{"content":"` + strings.Repeat("x", 1<<17+1) + `","with_pieces":true}`, "invalid_request_error", "at most 131072", 400},
		{"/tokenize", `{"content":"` + strings.Repeat("x", 16<<20+1) + `"}`, "invalid_request_error", "no context", 400},
		{"/detokenize", `{"tokens":[99999]}`, "invalid_request_error", "99999", 400},
		{"/completion", `{"prompt":"` + strings.Repeat("x", 200) + `"}`, "exceed_context_size_error", "exceeds the available context size", 400},
	} {
		for _, stream := range []string{"false", "true"} {
			r := w.Post(t, c.path, strings.TrimSuffix(c.body, "}")+`,"stream":`+stream+`}`)
			e, _ := r.JSON(t)["error"].(map[string]any)
			if r.Status != c.status || e["type"] != c.kind || e["code"] != float64(c.status) ||
				!strings.Contains(fmt.Sprint(e["message"]), c.say) {
				t.Errorf("%.200s: %d %s", c.body, r.Status, r.Body)
			}
			if c.kind == "exceed_context_size_error" && (e["n_prompt_tokens"] != 200.0 || e["n_ctx"] != 128.0) {
				t.Errorf("%v", e)
			}
		}
	}
	w.Backend.SetScript(servertest.Demo)
	w.Backend.SetFail(func(_ string, n int) error {
		if n == 3 {
			return servertest.ErrScripted
		}
		return nil
	})
	events := w.Post(t, "/completion", count+`"stream":true}`).Events(t)
	if last := events[len(events)-1].Data; !strings.HasPrefix(last, `{"error":{"code":500,`) {
		t.Error(last)
	}
}

// TestBias wants ids of both forms to be heeded.
func TestBias(t *testing.T) {
	w := newWorld(t, servertest.Options{Script: func(string) string { return "ab" }})
	for _, bias := range []string{`[[97,false]]`, `{"97":-100}`} {
		m := w.Post(t, "/completion", `{"prompt":"x","temperature":0,"n_predict":1,"return_tokens":true,"logit_bias":`+bias+`}`).
			JSON(t)
		if slices.Contains(m["tokens"].([]any), any(97.0)) {
			t.Errorf("%s: %v", bias, m)
		}
	}
}

func TestReferencePage(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "api", "llamacpp.md")
	got := server.Reference(llamacpp.New(openai.Shapes())(&server.Env{}))
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want, err := os.ReadFile(path); err != nil || string(want) != got {
		t.Errorf("%s is not what the declarations say: run go test ./internal/server/llamacpp -update (%v)", path, err)
	}
}
