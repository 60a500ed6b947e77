package openai

import (
	"container/list"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/fields"
)

const (
	keptResponses = 1000
	keptBytes     = 256 << 20
)

// A kept response is what later ones and its own routes need.
type kept struct {
	id       string
	caller   string            // whose it is: nobody else gets it, see chat.Trace
	body     json.RawMessage   // as it was answered
	input    []json.RawMessage // of this response alone
	output   []json.RawMessage
	messages []chat.Message // the whole conversation, this answer included

	items map[string]json.RawMessage // of input and output, by id
	bytes int
}

// perPiece is about what a message, a part or a call takes beside its text.
const perPiece = 128

// measure counts what a response holds in memory. The conversation before it counts, too: the responses that it came
// from may be gone.
func (k *kept) measure() {
	k.items = map[string]json.RawMessage{}
	for _, raw := range slices.Concat(k.input, k.output) {
		if id := idOf(raw); id != "" {
			k.items[id] = raw
		}
		k.bytes += len(raw)
	}
	k.bytes += len(k.body)
	for _, m := range k.messages {
		k.bytes += perPiece*(1+len(m.Parts)+len(m.Calls)) + len(m.Reasoning)
		for _, p := range m.Parts {
			k.bytes += len(p.Text) + len(p.Data) + len(p.URL)
		}
		for _, c := range m.Calls {
			k.bytes += len(c.Arguments)
		}
	}
}

// idOf returns the id of an item.
func idOf(raw json.RawMessage) string {
	var m struct{ ID string }
	_ = json.Unmarshal(raw, &m) // "" where there is none
	return m.ID
}

// responseStore keeps the last responses in memory.
type responseStore struct {
	mu    sync.Mutex
	order list.List // of *kept, the oldest first
	byID  map[string]*list.Element
	bytes int
}

func newResponseStore() *responseStore { return &responseStore{byID: map[string]*list.Element{}} }

func (s *responseStore) add(k *kept) {
	k.measure()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byID[k.id] = s.order.PushBack(k)
	s.bytes += k.bytes
	for s.order.Len() > keptResponses || s.bytes > keptBytes && s.order.Len() > 1 {
		s.drop(s.victim(s.bytes > keptBytes))
	}
}

// victim returns the oldest response of the caller that has the most of what there is too much of, so that no caller
// can make the server forget the others'. The newest of all stays.
func (s *responseStore) victim(byBytes bool) *list.Element {
	has := map[string]int{}
	first := map[string]*list.Element{}
	worst := ""
	for e := s.order.Front(); e != s.order.Back(); e = e.Next() {
		k := e.Value.(*kept)
		if first[k.caller] == nil {
			first[k.caller] = e
		}
		has[k.caller]++
		if byBytes {
			has[k.caller] += k.bytes - 1
		}
	}
	for e := s.order.Front(); e != s.order.Back(); e = e.Next() { // of equals the one whose response is the oldest
		if c := e.Value.(*kept).caller; first[worst] == nil || has[c] > has[worst] {
			worst = c
		}
	}
	return first[worst]
}

func (s *responseStore) drop(e *list.Element) {
	k := s.order.Remove(e).(*kept)
	delete(s.byID, k.id)
	s.bytes -= k.bytes
}

// get finds a response of a caller.
func (s *responseStore) get(caller, id string) (*kept, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.byID[id]; ok && e.Value.(*kept).caller == caller {
		return e.Value.(*kept), true
	}
	return nil, false
}

func (s *responseStore) remove(caller, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.byID[id]
	if !ok || e.Value.(*kept).caller != caller {
		return false
	}
	s.drop(e)
	return true
}

// item finds an item of a caller's kept responses, the newest first.
func (s *responseStore) item(caller, id string) (json.RawMessage, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.order.Back(); e != nil; e = e.Prev() {
		k := e.Value.(*kept)
		if raw, ok := k.items[id]; ok && k.caller == caller {
			return raw, true
		}
	}
	return nil, false
}

func caller(r *http.Request) string { return chat.TraceOf(r.Context()).Caller }

func noResponse(id string) error {
	return &chat.Error{Kind: chat.NotFound, Field: "response_id", Msg: "no kept response has the id " + id}
}

func (d *dialect) getResponse(w http.ResponseWriter, r *http.Request) error {
	k, ok := d.store.get(caller(r), r.PathValue("id"))
	if !ok {
		return noResponse(r.PathValue("id"))
	}
	if r.URL.Query().Get("stream") == "true" {
		return chat.Unsupportedf("stream", "a kept response is whole: get it without stream")
	}
	return server.WriteJSON(w, http.StatusOK, k.body)
}

type deletedAnswer struct {
	ID      string `json:"id"`
	Object  string `json:"object" schema:"response"`
	Deleted bool   `json:"deleted"`
}

type itemsAnswer struct {
	listAnswer[json.RawMessage]
	HasMore bool    `json:"has_more"`
	First   *string `json:"first_id"`
	Last    *string `json:"last_id"`
}

func (d *dialect) deleteResponse(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if !d.store.remove(caller(r), id) {
		return noResponse(id)
	}
	return server.WriteJSON(w, http.StatusOK, deletedAnswer{id, "response", true})
}

func (d *dialect) inputItems(w http.ResponseWriter, r *http.Request) error {
	k, ok := d.store.get(caller(r), r.PathValue("id"))
	if !ok {
		return noResponse(r.PathValue("id"))
	}
	items := slices.Clone(k.input)
	query := r.URL.Query()
	if query.Get("order") != "asc" {
		slices.Reverse(items)
	}
	if after := query.Get("after"); query.Has("after") {
		i := slices.IndexFunc(items, func(raw json.RawMessage) bool { return idOf(raw) == after })
		if i < 0 {
			return &chat.Error{
				Kind:  chat.NotFound,
				Field: "after",
				Msg:   fmt.Sprintf("the response has no item %q", after),
			}
		}
		items = items[i+1:]
	}
	limit := defaultItems
	if n, err := strconv.Atoi(query.Get("limit")); err == nil {
		limit = n
	}
	out := itemsAnswer{
		listAnswer: listAnswer[json.RawMessage]{"list", []json.RawMessage{}},
		HasMore:    len(items) > limit,
	}
	if items = items[:min(limit, len(items))]; len(items) > 0 {
		first, last := idOf(items[0]), idOf(items[len(items)-1])
		out.Data, out.First, out.Last = items, &first, &last
	}
	return server.WriteJSON(w, http.StatusOK, out)
}

const defaultItems = 20

var itemsQuery = []server.Parameter{
	{Name: "order", Type: fields.Enum("asc", "desc"), Doc: "asc: as they were sent; not given: the last first"},
	{Name: "limit", Type: fields.Int(1, 100), Doc: "items on a page; not given: 20"},
	{Name: "after", Type: fields.String(), Doc: "begin behind this item"},
	{Name: "include", Type: fields.String(), Doc: "accepted and without effect: items are whole"},
	{Name: "include[]", Type: fields.String(), Doc: "as include"},
}
