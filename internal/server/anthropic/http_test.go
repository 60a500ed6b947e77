package anthropic_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/baleenrun/baleen/internal/auth"
	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/servertest"
)

const hi = `{"model":"scripted","max_tokens":2000,"messages":[{"role":"user","content":"Hi"}]}`

// with adds members to a JSON object; a later member of a name counts.
func with(body, members string) string { return strings.TrimSuffix(body, "}") + "," + members + "}" }

// wantError checks an answer's status and the vendor's shape of errors.
func wantError(t *testing.T, r servertest.Reply, status int, kind string, words ...string) {
	t.Helper()
	var e struct {
		Type  string
		Error struct{ Type, Message string }
		ID    string `json:"request_id"`
	}
	if err := json.Unmarshal([]byte(r.Body), &e); err != nil {
		t.Fatalf("status %d: %v: %.300s", r.Status, err, r.Body)
	}
	if r.Status != status || e.Type != "error" || e.Error.Type != kind {
		t.Errorf("status %d, want %d; %s, want %s", r.Status, status, r.Body, kind)
	}
	if e.ID == "" || e.ID != r.Header.Get("Request-Id") {
		t.Errorf("request_id %q, header %q", e.ID, r.Header.Get("Request-Id"))
	}
	for _, w := range words {
		if !strings.Contains(e.Error.Message, w) {
			t.Errorf("message %q does not have %q", e.Error.Message, w)
		}
	}
}

// TestRefusedFields asks with each field that cannot be honoured, and with values that fields cannot have.
func TestRefusedFields(t *testing.T) {
	w := newWorld(t, servertest.Options{})
	tool := `{"name":"f","input_schema":{"type":"object"}}`
	user := func(blocks string) string { return `"messages":[{"role":"user","content":[` + blocks + `]}]` }
	after := func(assistant, user string) string {
		return `"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[` + assistant + `]},{"role":"user","content":[` + user + `]}]`
	}
	change := func(block string) string {
		return `"messages":[{"role":"user","content":"Hi"},{"role":"system","content":[` + block + `]}]`
	}
	use := `{"type":"tool_use","id":"a","name":"f","input":{}}`
	for _, c := range []struct{ members, want string }{
		{`"container":"c"`, "container: "},
		{`"mcp_servers":[{"type":"url"}]`, "mcp_servers: "},
		{`"inference_geo":"us"`, "inference_geo: "},
		{`"speed":"fast"`, "speed: "},
		{`"compaction":{"type":"summarize"}`, "compaction: "},
		{`"billing_policy":{"type":"billing_policy"}`, "billing_policy: "},
		{`"fallbacks":[{"model":"x"}]`, "fallbacks: "},
		{`"fallback_credit_token":"x"`, "fallback_credit_token: "},
		{`"thread":{"type":"create"}`, "thread: "},
		{`"service_tier":"priority"`, "service_tier: "},
		{`"metadata":{"name":"x"}`, "metadata.name: Extra inputs are not permitted"},
		{`"diagnostics":{"x":1}`, "diagnostics.x: Extra inputs"},
		{`"user_profile_id":"x"`, "user_profile_id: Extra inputs"},
		{`"seed":1`, "seed: Extra inputs"},
		{`"model":""`, "model: "},
		{`"model":7`, "model: got a number, want a string"},
		{`"max_tokens":-1`, "max_tokens: -1 is outside"},
		{`"max_tokens":1.5`, "max_tokens: 1.5 is not a whole number"},
		{`"max_tokens":"9"`, "max_tokens: "},
		{`"stream":"yes"`, "stream: "},
		{`"temperature":1.5`, "temperature: 1.5 is outside 0 to 1"},
		{`"top_p":-1`, "top_p: "},
		{`"top_k":-1`, "top_k: "},
		{`"stop_sequences":["a"," \n"]`, "stop_sequences.1: "},
		{`"stop_sequences":"a"`, "stop_sequences: "},
		{`"system":7`, "system: "},
		{`"system":[{"type":"image"}]`, "system.0.type: "},
		{`"system":[{"type":"text","text":""}]`, "system.0.text: text content blocks must be non-empty"},
		{`"cache_control":{"type":"ephemeral","ttl":"2h"}`, "cache_control.ttl: "},
		{`"cache_control":{}`, "cache_control.type: Field required"},
		{`"thinking":{"type":"enabled"}`, "thinking.enabled.budget_tokens: Field required"},
		{`"thinking":{"type":"enabled","budget_tokens":2000}`, "max_tokens: 2000 must be greater than thinking.budget_tokens"},
		{`"thinking":{"type":"enabled","budget_tokens":0}`, "thinking.budget_tokens: "},
		{`"thinking":{"type":"adaptive","budget_tokens":9}`, "thinking.adaptive.budget_tokens: "},
		{`"thinking":{"type":"between_tools"}`, "thinking.type: "},
		{`"thinking":{"type":"adaptive","display":"updates"}`, "thinking.display: "},
		{`"thinking":{"type":"some"}`, "thinking.type: "},
		{`"thinking":{}`, "thinking.type: Field required"},
		{`"output_config":{"effort":"huge"}`, "output_config.effort: "},
		{`"output_config":{"format":{"type":"json_schema","schema":{"type":"object","$dynamicRef":"#x"}}}`, "output_config.format.schema: "},
		{`"output_config":{"task_budget":{"type":"tokens","total":9}}`, "output_config.task_budget: "},
		{`"output_format":{"type":"json_schema","schema":{"type":"object","$dynamicRef":"#x"}}`, "output_format.schema: "},
		{`"context_management":{"edits":[{"type":"compact_20260112"}]}`, "context_management.edits.0: compact_20260112"},
		{`"context_management":{"edits":[{"type":"x"}]}`, "context_management.edits.0.type: "},
		{`"context_management":{"edits":[{}]}`, "context_management.edits.0.type: Field required"},
		{`"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":{"type":"tool_uses","value":1}}]}`, "context_management.edits.0.keep.type: "},
		{`"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":{"type":"thinking_turns"}}]}`, "context_management.edits.0.keep.value: "},
		{`"tools":[{"type":"computer_20250124","name":"c"}]`, `tools.0: tools of type "computer_20250124" are not supported`},
		{`"tools":[{"name":"f"}]`, "tools.0.input_schema: Field required"},
		{`"tools":[{"name":"f","input_schema":{"type":"string"}}]`, "tools.0.input_schema.type: "},
		{`"tools":[{"name":"a b","input_schema":{"type":"object"}}]`, "tools.0.name: "},
		{`"tools":[` + tool + `,` + tool + `]`, "tools: tool names must be unique"},
		{`"tools":[{"name":"f","allowed_callers":["code_execution_20260120"],"input_schema":{"type":"object"}}]`, "tools.0.allowed_callers: "},
		{`"tools":[{"name":"f","parameters":{},"input_schema":{"type":"object"}}]`, "tools.0.parameters: Extra inputs"},
		{`"tool_choice":{"type":"any"}`, "tool_choice: tool_choice may only be specified while providing tools"},
		{`"tools":[` + tool + `],"tool_choice":{"type":"tool"}`, "tool_choice.tool.name: Field required"},
		{`"tools":[` + tool + `],"tool_choice":{"type":"tool","name":"g"}`, `tool_choice: there is no tool named "g"`},
		{`"tools":[` + tool + `],"tool_choice":{"type":"auto","name":"f"}`, "tool_choice.name: "},
		{`"tools":[` + tool + `],"tool_choice":{"type":"none","disable_parallel_tool_use":true}`, "tool_choice.disable_parallel_tool_use: "},
		{`"tools":[` + tool + `],"tool_choice":"auto"`, "tool_choice: "},
		{`"tools":[` + tool + `],"tool_choice":{"type":"any"},"thinking":{"type":"enabled","budget_tokens":1024}`, "thinking: thinking may not be enabled"},
		{`"messages":{}`, "messages: "},
		{`"messages":["Hi"]`, "messages"},
		{`"messages":[{"content":"Hi"}]`, "messages.0.role: Field required"},
		{`"messages":[{"role":"user"}]`, "messages.0.content: Field required"},
		{`"messages":[{"role":"user","content":""}]`, "messages.0: all messages must have non-empty content"},
		{`"messages":[{"role":"user","content":"x","name":"y"}]`, "messages.0.name: Extra inputs"},
		{`"messages":[{"role":"system","content":"x"}]`, "messages: at least one message"},
		{`"messages":[{"role":"user","content":"x","clear_at":"next_user_message"}]`, "messages.0: clear_at"},
		{`"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y "}]`, "messages.1: final assistant content cannot end with trailing white space"},
		{`"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"}]}]`, "messages.1: "},
		{user(`7`), "messages.0.content"},
		{user(`{}`), "messages.0.content.0.type: Field required"},
		{user(`{"type":"text"}`), "messages.0.content.0.text: Field required"},
		{user(`{"type":"video"}`), `messages.0.content.0.type: "video" is not one of image, text, tool_result`},
		{user(`{"type":"search_result"}`), "messages.0.content.0: search_result blocks are not supported"},
		{user(`{"type":"server_tool_use"}`), "messages.0.content.0: server_tool_use blocks are not supported"},
		{user(`{"type":"web_search_tool_result"}`), "messages.0.content.0: web_search_tool_result blocks are not supported"},
		{user(use), "messages.0.content.0: `tool_use` blocks can only be in `assistant` messages"},
		{user(`{"type":"image","source":{"type":"file","file_id":"f"}}`), "messages.0.content.0.source.type: "},
		{user(`{"type":"image","source":{"type":"base64"}}`), "messages.0.content.0.source: "},
		{user(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"?"}}`), "messages.0.content.0.source.data: "},
		{user(`{"type":"image","source":{"type":"url","url":"http://x/y.png"}}`), "messages.0.content.0: this model does not take image input"},
		{after(use, `{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source":{"type":"url","url":"http://x"}}]}`), "messages.2.content.0.content.0: this model does not take image input"},
		{after(use, `{"type":"tool_result","tool_use_id":"b"}`), "messages.2.content.0: unexpected `tool_use_id`"},
		{after(use, `{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a"}`), "messages.1: `tool_use` ids were found without"},
		{after(use+","+use, `{"type":"tool_result","tool_use_id":"a"}`), "messages.1.content.1.id: `tool_use` ids must be unique"},
		{after(use, `{"type":"tool_result","tool_use_id":"a"},{"type":"tool_result","tool_use_id":"a"}`), "messages.2.content.1: unexpected `tool_use_id`"},
		{after(`{"type":"tool_use","id":"a!","name":"f","input":{}}`, `{"type":"text","text":"x"}`), "messages.1.content.0.id: "},
		{after(`{"type":"tool_use","id":"a","name":"f","input":"{}"}`, `{"type":"text","text":"x"}`), "messages.1.content.0.input: "},
		{after(`{"type":"tool_use","id":"a","name":"f","input":{},"caller":{"type":"code_execution_20260120"}}`, `{"type":"text","text":"x"}`), "messages.1.content.0.caller.type: "},
		{after(`{"type":"tool_result","tool_use_id":"a"}`, `{"type":"text","text":"x"}`), "messages.1.content.0: `tool_result` blocks can only be in `user` messages"},
		{after(use, `{"type":"tool_result","tool_use_id":"a","content":[{"type":"tool_reference","tool_name":"g"}]}`), `messages.2.content.0.content.0.tool_name: there is no tool named "g"`},
		{user(`{"type":"tool_addition"}`), "messages.0.content.0: `tool_addition` blocks can only be in `system` messages"},
		{`"system":[{"type":"tool_removal"}]`, "system.0"},
		{change(`{"type":"tool_addition"}`), "messages.1.content.0.tool: Field required"},
		{change(`{"type":"tool_addition","tool":{"type":"tool_reference","name":"g"}}`), `messages.1.content.0.tool.name: there is no tool named "g"`},
		{change(`{"type":"tool_removal","tool":{"type":"tool_reference","name":"g"}}`), `messages.1.content.0.tool.name: there is no tool named "g"`},
		{change(`{"type":"tool_addition","tool":{"type":"mcp_toolset_reference","server_name":"g"}}`), "messages.1.content.0.tool.type: "},
		{change(`{"type":"tool_addition","tool":{"type":"tool_definition"}}`), "messages.1.content.0.tool.definition: Field required"},
		{change(`{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"g"}}}`), "messages.1.content.0.tool.definition.input_schema: Field required"},
		{change(`{"type":"tool_removal","tool":{"type":"tool_definition","definition":` + tool + `}}`), "messages.1.content.0.tool.type: "},
		{change(`{"type":"tool_addition","tool":{"type":"tool_definition","definition":`+tool+`}}`) + `,"tools":[` + tool + `]`, "tools: tool names must be unique"},
	} {
		r := w.Post(t, "/v1/messages", with(hi, c.members))
		t.Run(c.want, func(t *testing.T) {
			wantError(t, r, 400, "invalid_request_error")
			if m := r.JSON(t)["error"].(map[string]any)["message"].(string); !strings.HasPrefix(m, c.want) {
				t.Errorf("%s:\ngot  %s\nwant %s", c.members, m, c.want)
			}
		})
	}
}

func TestErrorsOutsideRoutes(t *testing.T) {
	w := newWorld(t, servertest.Options{Server: func(o *server.Options) {
		o.Keys, o.MaxBody = auth.NewKeys([]string{"key-1"}, ""), 4096
	}})
	version := []string{"anthropic-version", "2023-06-01"}
	key := append([]string{"x-api-key", "key-1"}, version...)
	post := func(body string, headers ...string) servertest.Reply {
		return w.Post(t, "/v1/messages", body, headers...)
	}
	wantError(t, post(hi), 401, "authentication_error", "x-api-key")
	wantError(t, post(hi, "x-api-key", "key-2"), 401, "authentication_error")
	wantError(t, post("{", key...), 400, "invalid_request_error", "not valid JSON")
	wantError(t, post("", key...), 400, "invalid_request_error", "empty")
	wantError(t, post("[]", key...), 400, "invalid_request_error", "JSON object")
	wantError(t, post("{\"model\": \"\xff\"}", key...), 400, "invalid_request_error", "UTF-8")
	wantError(t, post(with(hi, `"system":"`+strings.Repeat("x", 5000)+`"`), key...), 413, "request_too_large", "4096")
	wantError(t, post(with(hi, `"model":"nobody"`), key...), 404, "not_found_error", "nobody")
	wantError(t, w.Do(t, "GET", "/v1/messages", "", key...), 405, "invalid_request_error", "POST")
	wantError(t, w.Post(t, "/v1/messages/batches", hi, key...), 404, "not_found_error")
	wantError(t, w.Do(t, "GET", "/v1/nothing", "", key...), 404, "not_found_error")
	wantError(t, w.Do(t, "GET", "/v1/models/nobody", "", key...), 404, "not_found_error", "nobody")
	wantError(
		t,
		w.Post(t, "/v1/messages/count_tokens", hi, key...),
		400,
		"invalid_request_error",
		"max_tokens: Extra inputs",
	)
	wantError(
		t,
		w.Do(t, "POST", "/v1/messages", hi, append([]string{"Host", "evil.example"}, key...)...),
		403,
		"permission_error",
		"evil.example",
	)
	for _, h := range [][]string{{"x-api-key", "key-1"}, {"Authorization", "Bearer key-1"}} {
		if r := post(hi, h...); r.Status != 200 || r.Header.Get("Request-Id") == "" {
			t.Errorf("%v: %d %s", h, r.Status, r.Body)
		}
	}
	w.Server.Stop()
	r := post(hi, key...)
	wantError(t, r, 503, "api_error")
	if r.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

func TestTooLongPrompt(t *testing.T) {
	w := newWorld(t, servertest.Options{Model: func(o *model.Options) { o.Context = 512 }})
	long := with(hi, `"messages":[{"role":"user","content":"`+strings.Repeat("x", 1000)+`"}]`)
	for _, members := range []string{`"stream":false`, `"stream":true`} {
		wantError(
			t,
			w.Post(t, "/v1/messages", with(long, members)),
			400,
			"invalid_request_error",
			"prompt is too long: 1019 tokens > 512 maximum",
		)
	}
}

func TestFullContext(t *testing.T) {
	w := newWorld(t, servertest.Options{
		Model: func(o *model.Options) { o.Context = 128 }, Script: func(string) string { return strings.Repeat("word ", 100) },
	})
	if got := w.Post(t, "/v1/messages", hi).JSON(t)["stop_reason"]; got != "model_context_window_exceeded" {
		t.Errorf("stop_reason %v", got)
	}
	if got := w.Post(t, "/v1/messages", with(hi, `"max_tokens":20`)).JSON(t)["stop_reason"]; got != "max_tokens" {
		t.Errorf("stop_reason %v", got)
	}
}

func TestDeadline(t *testing.T) {
	w := newWorld(t, servertest.Options{
		Chat: func(o *chat.Options) { o.MaxTime = 300 * time.Millisecond }, Script: func(string) string { return strings.Repeat("word ", 400) },
	})
	w.Backend.SetDelay(5 * time.Millisecond)
	wantError(t, w.Post(t, "/v1/messages", hi), 504, "timeout_error", "deadline")
	events := w.Post(t, "/v1/messages", with(hi, `"stream":true`)).Events(t)
	rebuild(t, events)
	last := events[len(events)-1]
	if last.Name != "error" || !strings.Contains(last.Data, "timeout_error") {
		t.Errorf("last event %+v", last)
	}
}

func TestBusy(t *testing.T) {
	w := newWorld(t, servertest.Options{
		Server: func(o *server.Options) { o.MaxActive = 1 }, Script: func(string) string { return strings.Repeat("word ", 200) },
	})
	w.Backend.SetDelay(10 * time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := w.Send(ctx, "POST", "/v1/messages", with(hi, `"stream":true`))
		first <- err
	}()
	waitFor(t, func() bool { return w.Server.Active() == 1 })
	r := w.Post(t, "/v1/messages", hi)
	wantError(t, r, 529, "overloaded_error")
	if r.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	waitFor(t, func() bool { return w.Server.Active() == 0 })
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for range 2000 {
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("waited in vain")
}

// TestStreamComesAsItIsMade reads pieces while the model still writes, and leaves: the model stops.
func TestStreamComesAsItIsMade(t *testing.T) {
	w := newWorld(t, servertest.Options{Script: func(string) string {
		return "<think>\nhm\n</think>\n\nLook: " + servertest.ToolCall(
			"f",
			`{"text": "`+strings.Repeat("word ", 2000)+`"}`,
		)
	}})
	w.Backend.SetDelay(time.Millisecond)
	body := with(
		hi,
		`"stream":true,"max_tokens":9000,"tools":[{"name":"f","input_schema":{"type":"object","properties":{"text":{"type":"string"}}}}]`,
	)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "POST", w.URL+"/v1/messages", strings.NewReader(body))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	kinds := map[string]int{}
	lines := bufio.NewScanner(res.Body)
	for kinds["input_json_delta"] < 20 && lines.Scan() {
		for _, k := range []string{"thinking_delta", "signature_delta", "text_delta", "input_json_delta"} {
			if strings.Contains(lines.Text(), `"type":"`+k+`"`) {
				kinds[k]++
			}
		}
	}
	if kinds["thinking_delta"] == 0 || kinds["signature_delta"] != 1 || kinds["text_delta"] < 3 ||
		kinds["input_json_delta"] < 20 {
		t.Fatalf("%v %v", kinds, lines.Err())
	}
	if steps := w.Backend.Steps(); steps > 5000 {
		t.Errorf("the model had written all after %d steps", steps)
	}
	cancel()
	waitFor(t, func() bool { return w.Server.Active() == 0 })
	waitFor(t, func() bool { // the engine has nobody to make steps for
		l, err := w.Chat.Acquire(t.Context(), "scripted", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Release()
		st := l.Model.Engine.Stats()
		return st.Running+st.Waiting+st.Swapped == 0
	})
}

// TestFailureAnywhere cuts a stream behind every token of reasoning, text and calls.
func TestFailureAnywhere(t *testing.T) {
	answer := "<think>\nhm\n</think>\n\nLook:\n" + servertest.ToolCall(
		"f",
		`{"a": "b"}`,
	) + "\n" + servertest.ToolCall(
		"f",
		`{}`,
	)
	w := newWorld(t, servertest.Options{Script: func(string) string { return answer }})
	body := with(hi, `"stream":true,"tools":[{"name":"f","input_schema":{"type":"object"}}]`)
	whole := w.Post(t, "/v1/messages", body).Events(t)
	if last := whole[len(whole)-1].Name; last != "message_stop" {
		t.Fatalf("ends in %s", last)
	}
	tokens := int(rebuild(t, whole)["usage"].(map[string]any)["output_tokens"].(float64))
	for n := range tokens {
		w.Backend.SetFail(func(_ string, written int) error {
			if written == n {
				return servertest.ErrScripted
			}
			return nil
		})
		// Another prompt each time: one that failed is not asked of the script again.
		r := w.Post(t, "/v1/messages", with(body, fmt.Sprintf(`"system":"Try %d."`, n)))
		if n == 0 { // nothing was sent: an error with its status
			if r.Status != http.StatusInternalServerError || r.JSON(t)["type"] != "error" {
				t.Fatalf("failure of the prompt: %d %s", r.Status, r.Body)
			}
			continue
		}
		events := r.Events(t)
		rebuild(t, events)
		if last := events[len(events)-1]; last.Name != "error" || !strings.Contains(last.Data, `"api_error"`) ||
			strings.Contains(last.Data, "scripted") {
			t.Fatalf("failure after %d tokens: ends in %+v", n, last)
		}
		if got := names(events); got[0] != "message_start" || got[1] != "ping" {
			t.Fatalf("begins with %v", got)
		}
	}
}

// TestStartSaysTheInput asserts that message_start and message_delta say the same of the prompt, also where a part of
// it came from the cache or from a request that runs beside.
func TestStartSaysTheInput(t *testing.T) {
	w := newWorld(t, servertest.Options{})
	body := `{"model":"scripted","max_tokens":50,"stream":true,"system":[{"type":"text","text":"` + strings.Repeat(
		"Know this. ",
		60,
	) +
		`"%s}],"messages":[{"role":"user","content":"Hi"}]}`
	for _, c := range []struct {
		mark   string
		cached bool
	}{{"", false}, {"", true}, {`,"cache_control":{"type":"ephemeral"}`, true}} {
		events := w.Post(t, "/v1/messages", fmt.Sprintf(body, c.mark)).Events(t)
		startsWithItsEnd(t, events)
		var start struct {
			Message struct{ Usage map[string]any }
		}
		if err := json.Unmarshal([]byte(events[0].Data), &start); err != nil {
			t.Fatal(err)
		}
		if read := start.Message.Usage["cache_read_input_tokens"].(float64); c.cached != (read > 0) {
			t.Errorf("%+v: read %v", c, read)
		}
	}
	var wg sync.WaitGroup
	replies := make([]servertest.Reply, 4)
	long := strings.Replace(fmt.Sprintf(body, ""), "Know this. ", strings.Repeat("Know that. ", 200), 1)
	for i := range replies {
		wg.Go(func() { replies[i], _ = w.Send(t.Context(), "POST", "/v1/messages", long) })
	}
	wg.Wait()
	for _, r := range replies {
		startsWithItsEnd(t, r.Events(t))
	}
}

// startsWithItsEnd compares what the first and the last counts of a stream say of the prompt.
func startsWithItsEnd(t *testing.T, events []servertest.SSE) {
	t.Helper()
	var d struct {
		Message, Delta struct{}
		Usage          map[string]any
	}
	var start struct {
		Message struct{ Usage map[string]any }
	}
	if len(events) == 0 || json.Unmarshal([]byte(events[0].Data), &start) != nil || start.Message.Usage == nil {
		t.Fatalf("no message_start: %v", events)
	}
	for _, e := range events {
		if e.Name != "message_delta" {
			continue
		}
		if err := json.Unmarshal([]byte(e.Data), &d); err != nil {
			t.Fatal(err)
		}
		for _, k := range []string{"input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"} {
			if a, b := start.Message.Usage[k], d.Usage[k]; a != b {
				t.Errorf("%s: %v at the start, %v at the end", k, a, b)
			}
		}
	}
}

// TestCacheFigures asserts that a second turn reads the first one's prefix from the cache, in both ways of counting.
func TestCacheFigures(t *testing.T) {
	w := newWorld(t, servertest.Options{})
	system := strings.Repeat("Know this. ", 60)
	turn := func(more, mark string) map[string]any {
		return w.Post(t, "/v1/messages", `{"model":"scripted","max_tokens":50,"system":[{"type":"text","text":"`+system+mark+`}],"messages":[{"role":"user","content":"Hi"}`+more+`]}`).JSON(t)["usage"].(map[string]any)
	}
	for _, mark := range []string{`"`, `!","cache_control":{"type":"ephemeral"}`} {
		marked := len(mark) > 1
		first := turn("", mark)
		second := turn(`,{"role":"assistant","content":"Hello!"},{"role":"user","content":"More"}`, mark)
		n := func(u map[string]any, key string) int { return int(u[key].(float64)) }
		if got := n(second, "cache_read_input_tokens"); got < 640 {
			t.Errorf("%v: the second turn read %d", marked, got)
		}
		if got := n(first, "cache_creation_input_tokens"); marked != (got > 0) {
			t.Errorf("%v: the first turn created %d", marked, got)
		}
		for _, u := range []map[string]any{first, second} {
			if n(u, "input_tokens") < 1 {
				t.Errorf("%v: %v", marked, u)
			}
		}
	}
}

func TestModels(t *testing.T) {
	w := newWorld(t, servertest.Options{Names: func(path string) servertest.Names {
		var list servertest.Names
		for i := range 25 {
			list = append(list, chat.Spec{Name: fmt.Sprintf("m%02d", i), Path: path, Time: time.Unix(1_700_000_000, 0)})
		}
		return list
	}})
	get := func(query string) servertest.Reply {
		return w.Do(t, "GET", "/v1/models"+query, "", "anthropic-version", "2023-06-01")
	}
	for _, c := range []struct {
		query, first, last string
		n                  int
		more               bool
	}{
		{"", "m00", "m19", 20, true},
		{"?limit=25", "m00", "m24", 25, false},
		{"?after_id=m19", "m20", "m24", 5, false},
		{"?before_id=m10&limit=4", "m06", "m09", 4, true},
		{"?before_id=m02", "m00", "m01", 2, false},
		{"?lifecycle[]=active&limit=1", "m00", "m00", 1, true},
		{"?lifecycle=retired", "", "", 0, false},
		{"?after_id=m24", "", "", 0, false},
	} {
		m := get(c.query).JSON(t)
		first, _ := m["first_id"].(string)
		last, _ := m["last_id"].(string)
		if data := m["data"].([]any); len(data) != c.n || first != c.first || last != c.last ||
			m["has_more"] != c.more {
			t.Errorf("%s: %d from %q to %q, more %v", c.query, len(data), first, last, m["has_more"])
		}
	}
	for _, q := range []string{"?limit=0", "?limit=x", "?after_id=zz", "?after_id=m01&before_id=m03", "?lifecycle=old"} {
		wantError(t, get(q), 400, "invalid_request_error")
	}
	one := get("/m03").JSON(t)
	if one["id"] != "m03" || one["type"] != "model" || one["created_at"] != "2023-11-14T22:13:20Z" ||
		one["lifecycle"] != "active" {
		t.Errorf("%v", one)
	}
	want := []string{
		"capabilities",
		"created_at",
		"deprecated_at",
		"display_name",
		"id",
		"lifecycle",
		"line",
		"max_input_tokens",
		"max_tokens",
		"retires_at",
		"type",
	}
	if got := sortedKeys(one); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("fields %v", got)
	}
	if r := w.Do(t, "GET", "/v1/models", ""); r.Status == 200 {
		t.Errorf("without the version header: %s", r.Body)
	}
}

// TestModelThatDoesNotThink: reasoning that is demanded is refused, reasoning that may be is not.
func TestModelThatDoesNotThink(t *testing.T) {
	const template = "{%- for m in messages %}{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' " +
		"}}{%- endfor %}{{- '<|im_start|>assistant\\n' }}"
	w := newWorld(t, servertest.Options{Checkpoint: servertest.Checkpoint{Template: template, Visible: []string{}}})
	wantError(
		t,
		w.Post(t, "/v1/messages", with(hi, `"thinking":{"type":"enabled","budget_tokens":1024}`)),
		400,
		"invalid_request_error",
		"thinking: ",
		"does not think",
	)
	for _, m := range []string{`"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}`, `"thinking":{"type":"disabled"}`, `"output_config":{"effort":"low"}`} {
		if r := w.Post(t, "/v1/messages", with(hi, m)); r.Status != 200 {
			t.Errorf("%s: %d %s", m, r.Status, r.Body)
		}
	}
}

// TestSameTokens: at temperature 0 an answer does not depend on streaming nor on what else runs.
func TestSameTokens(t *testing.T) {
	w := newWorld(t, servertest.Options{Script: func(p string) string { return fmt.Sprintf("%d letters", len(p)) }})
	body := func(i int) string {
		return with(hi, fmt.Sprintf(`"temperature":0,"system":%q`, strings.Repeat("x", i)))
	}
	var want [8]string
	for i := range want {
		want[i] = fmt.Sprint(w.Post(t, "/v1/messages", body(i)).JSON(t)["content"])
	}
	replies := make([]servertest.Reply, len(want))
	var wg sync.WaitGroup
	for i := range want {
		wg.Go(func() {
			r, err := w.Send(t.Context(), "POST", "/v1/messages", with(body(i), `"stream":true`))
			if err != nil {
				t.Error(err)
			}
			replies[i] = r
		})
	}
	wg.Wait()
	for i, r := range replies {
		if got := fmt.Sprint(rebuild(t, r.Events(t))["content"]); got != want[i] {
			t.Errorf("%s, want %s", got, want[i])
		}
	}
}

// TestInterleavedBudget: with interleaved thinking the budget is the whole turn's, which is more than one answer's.
func TestInterleavedBudget(t *testing.T) {
	w := newWorld(t, servertest.Options{})
	body := with(hi, `"thinking":{"type":"enabled","budget_tokens":2000}`)
	wantError(
		t,
		w.Post(t, "/v1/messages", body),
		400,
		"invalid_request_error",
		"max_tokens: 2000 must be greater than thinking.budget_tokens, 2000",
	)
	for _, beta := range []string{"interleaved-thinking-2025-05-14", "files-api-2025-04-14, " +
		"interleaved-thinking-2025-05-14"} {
		if r := w.Post(t, "/v1/messages", body, "anthropic-beta", beta); r.Status != 200 {
			t.Errorf("%s: %d %s", beta, r.Status, r.Body)
		}
	}
}
