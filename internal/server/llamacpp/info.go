package llamacpp

import (
	"math"
	"net/http"
	"unicode/utf8"

	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/sample"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/fields"
	"github.com/baleenrun/baleen/internal/tokenizer"
)

type healthAnswer struct {
	Status string `json:"status" schema:"ok"`
}

func (d *dialect) health(w http.ResponseWriter, _ *http.Request) error {
	if d.env.Ready != nil && !d.env.Ready() {
		return &chat.Error{Kind: chat.Unavailable, Msg: "Loading model"}
	}
	return server.WriteJSON(w, http.StatusOK, healthAnswer{"ok"})
}

// settingsFrom are settings of sampling in llama.cpp's names, where off is 1 for top_p and the like.
func settingsFrom(p sample.Params) settingsOut {
	s := settingsOut{
		Predict: -1, Temperature: p.Temperature, TopK: p.TopK, TopP: p.TopP, MinP: p.MinP, TypicalP: p.TypicalP, RepeatLastN: p.RepeatLastN, RepeatPenalty: p.RepetitionPenalty,
		PresencePenalty: p.PresencePenalty, FrequencyPenalty: p.FrequencyPenalty, Stop: []string{}, MaxTokens: -1,
		Samplers: []string{"penalties", "top_k", "typ_p", "top_p", "min_p", "temperature"},
	}
	for _, f := range []*float32{&s.TopP, &s.TypicalP, &s.RepeatPenalty} {
		if *f == 0 {
			*f = 1
		}
	}
	if s.RepeatLastN == 0 {
		s.RepeatLastN = sample.DefaultRepeatLastN
	}
	return s
}

type propsAnswer struct {
	Defaults   slotOut    `json:"default_generation_settings"`
	Slots      int        `json:"total_slots"`
	Alias      string     `json:"model_alias"`
	Path       string     `json:"model_path"` // the name: where files lie is nobody's business
	Template   string     `json:"chat_template"`
	Modalities modalities `json:"modalities"`
	BOS        string     `json:"bos_token"`
	EOS        string     `json:"eos_token"`
	Build      string     `json:"build_info"`
	Sleeping   bool       `json:"is_sleeping"`
}

type modalities struct {
	Vision bool `json:"vision"`
	Audio  bool `json:"audio"`
}

// slotOut is a place of a sequence.
type slotOut struct {
	ID          int         `json:"id"`
	Task        int         `json:"id_task"`
	Context     int         `json:"n_ctx"`
	Speculative bool        `json:"speculative"`
	Processing  bool        `json:"is_processing"`
	Params      settingsOut `json:"params"`
}

// defaults are what a request gets that says nothing.
func (d *dialect) defaults(l *chat.Lease) (slotOut, error) {
	p, err := chat.DefaultParams(&l.Spec, l.Model)
	if err != nil {
		return slotOut{}, err
	}
	s := settingsFrom(p)
	s.Context, s.Seed = l.Model.Engine.Capacity(), math.MaxUint32
	return slotOut{Task: -1, Context: s.Context, Params: s}, nil
}

func (d *dialect) props(w http.ResponseWriter, r *http.Request) error {
	l, err := d.env.Chat.Acquire(r.Context(), r.URL.Query().Get("model"), nil)
	if err != nil {
		return err
	}
	defer l.Release()
	def, err := d.defaults(l)
	if err != nil {
		return err
	}
	m := l.Model
	a := propsAnswer{
		Defaults: def,
		Slots:    m.Engine.Stats().Running + 1,
		Alias:    l.Spec.Name,
		Path:     l.Spec.Name,
		Template: l.Spec.Template,
		Build:    "baleen-" + d.env.Version,
	}
	if a.Template == "" {
		a.Template = m.Info.ChatTemplate
	}
	if id, ok := m.Tokenizer.BOS(); ok {
		a.BOS, _ = m.Tokenizer.Token(id)
	}
	if list := m.Tokenizer.EOS(); len(list) > 0 {
		a.EOS, _ = m.Tokenizer.Token(list[0])
	}
	return server.WriteJSON(w, http.StatusOK, a)
}

func (d *dialect) slots(w http.ResponseWriter, r *http.Request) error {
	l, err := d.env.Chat.Acquire(r.Context(), r.URL.Query().Get("model"), nil)
	if err != nil {
		return err
	}
	defer l.Release()
	def, err := d.defaults(l)
	if err != nil {
		return err
	}
	list := []slotOut{}
	running := l.Model.Engine.Stats().Running
	for i := range running + 1 {
		s := def
		s.ID, s.Processing = i, i < running
		list = append(list, s)
	}
	return server.WriteJSON(w, http.StatusOK, list)
}

// A text is what is turned into tokens.
type text struct {
	model, content               string
	special, written, withPieces bool
}

var tokenizeTable = &fields.Table[text]{Name: "tokenize request", IgnoreUnknown: true, Fields: []fields.Field[text]{
	{
		Name: "model",
		Type: fields.String(),
		Doc:  "name of the model; left out: the server's own choice",
		Set:  func(t *text, v fields.Value) error { t.model = v.String(); return nil },
	},
	{
		Name:     "content",
		Type:     fields.String(),
		Required: true,
		Doc:      "the text",
		Set:      func(t *text, v fields.Value) error { t.content = v.String(); return nil },
	},
	{
		Name: "add_special",
		Type: fields.Bool(),
		Doc:  "put before it what the model wants at the begin of a text",
		Set:  func(t *text, v fields.Value) error { t.special = v.Bool(); return nil },
	},
	{
		Name: "parse_special",
		Type: fields.Bool(),
		Doc:  "control tokens that are written in it are control tokens, which is the default",
		Set:  func(t *text, v fields.Value) error { t.written = v.Bool(); return nil },
	},
	{
		Name: "with_pieces",
		Type: fields.Bool(),
		Doc: "with the text of each token, as a list of bytes where it is not whole characters; of at most 131072 " +
			"tokens",
		Set: func(t *text, v fields.Value) error { t.withPieces = v.Bool(); return nil },
	},
}}

type tokensAnswer struct {
	Tokens []int32 `json:"tokens"`
}

type piecesAnswer struct {
	Tokens []tokenPiece `json:"tokens"`
}

type tokenPiece struct {
	ID    int32 `json:"id"`
	Piece any   `json:"piece"` // a text, or bytes
}

// maxPieces bounds the tokens that are answered with their texts: each costs a hundred bytes and more.
const maxPieces = 1 << 17

func (d *dialect) tokenize(w http.ResponseWriter, r *http.Request) error {
	t := text{written: true}
	if err := server.Decode(r, tokenizeTable, &t); err != nil {
		return err
	}
	if n, most := len(t.content), server.LimitsOf(r).Bytes(); n > most {
		return chat.Invalidf(
			"content",
			"%d bytes, want at most %d: no context of this server has room for more",
			n,
			most,
		)
	}
	l, err := d.env.Chat.Acquire(r.Context(), t.model, nil)
	if err != nil {
		return err
	}
	defer l.Release()
	tok := l.Model.Tokenizer
	list, err := tok.Encode([]int32{}, t.content, tokenizer.Options{AddSpecial: t.special, ParseSpecial: t.written})
	if err != nil {
		return err
	}
	if !t.withPieces {
		return server.WriteJSON(w, http.StatusOK, tokensAnswer{list})
	}
	if len(list) > maxPieces {
		return chat.Invalidf(
			"with_pieces",
			"the text has %d tokens, want at most %d with their texts",
			len(list),
			maxPieces,
		)
	}
	a := piecesAnswer{Tokens: make([]tokenPiece, len(list))}
	for i, id := range list {
		b := tok.Bytes(id)
		if s, ok := tok.Token(id); ok && tok.IsSpecial(id) {
			b = []byte(s)
		}
		p := tokenPiece{ID: id, Piece: string(b)}
		if !utf8.Valid(b) {
			bytes := make([]int, len(b))
			for j, x := range b {
				bytes[j] = int(x)
			}
			p.Piece = bytes
		}
		a.Tokens[i] = p
	}
	return server.WriteJSON(w, http.StatusOK, a)
}

type tokenList struct {
	model  string
	tokens []int32
}

var detokenizeTable = &fields.Table[tokenList]{
	Name:          "detokenize request",
	IgnoreUnknown: true,
	Fields: []fields.Field[tokenList]{
		{
			Name: "model",
			Type: fields.String(),
			Doc:  "name of the model; left out: the server's own choice",
			Set:  func(t *tokenList, v fields.Value) error { t.model = v.String(); return nil },
		},
		{
			Name:     "tokens",
			Type:     fields.List(idType),
			Required: true,
			Doc:      "token ids of the model",
			Set:      func(t *tokenList, v fields.Value) error { t.tokens = v.Int32s(); return nil },
		},
	},
}

type contentAnswer struct {
	Content string `json:"content"`
}

func (d *dialect) detokenize(w http.ResponseWriter, r *http.Request) error {
	var t tokenList
	if err := server.Decode(r, detokenizeTable, &t); err != nil {
		return err
	}
	l, err := d.env.Chat.Acquire(r.Context(), t.model, nil)
	if err != nil {
		return err
	}
	defer l.Release()
	if err := l.Model.CheckIDs("tokens", t.tokens); err != nil {
		return err
	}
	return server.WriteJSON(w, http.StatusOK, contentAnswer{l.Model.Tokenizer.Decode(t.tokens, false)})
}

// templateTable declares a conversation, in OpenAI's form.
func (d *dialect) templateTable() *fields.Table[chat.Request] {
	return &fields.Table[chat.Request]{
		Name:          "apply-template request",
		IgnoreUnknown: true,
		Fields: []fields.Field[chat.Request]{
			{
				Name: "model",
				Type: fields.String(),
				Doc:  "name of the model; left out: the server's own choice",
				Set:  func(q *chat.Request, v fields.Value) error { q.Model = v.String(); return nil },
			},
			{
				Name: "messages", Type: fields.List(fields.Object("message")).Len(1, 0), Required: true, Doc: "the conversation; an assistant's message at its end is continued",
				Set: func(q *chat.Request, v fields.Value) (err error) { q.Messages, err = d.shapes.Messages(v); return err },
			},
			{
				Name: "tools", Type: fields.List(fields.Object("tool")), Doc: "functions that the model may call",
				Set: func(q *chat.Request, v fields.Value) (err error) { q.Tools, err = d.shapes.Tools(v); return err },
			},
		},
	}
}

type promptAnswer struct {
	Prompt string `json:"prompt"`
}

func (d *dialect) applyTemplate(w http.ResponseWriter, r *http.Request) error {
	q := chat.Request{Continue: true}
	if err := server.Decode(r, d.templateTable(), &q); err != nil {
		return err
	}
	_, prompt, err := d.env.Chat.Render(r.Context(), &q)
	if err != nil {
		return err
	}
	return server.WriteJSON(w, http.StatusOK, promptAnswer{prompt})
}
