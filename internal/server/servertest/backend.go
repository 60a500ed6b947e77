package servertest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/baleenrun/baleen/internal/backend"
	"github.com/baleenrun/baleen/internal/model"
	"github.com/baleenrun/baleen/internal/plan"
	"github.com/baleenrun/baleen/internal/tokenizer"
)

// A Script says what the model writes behind a prompt. The prompt is what the model sees, control tokens included.
// A script is asked once for each prompt that is not the continuation of its own answer; it should answer the same
// for the same prompt. Behind a zero byte stands what the model writes where the first token of the rest is forbidden.
// It is called by one goroutine.
type Script func(prompt string) string

// Backend is the backend of a scripted model. Its fields may be changed between requests under its own lock: use Set.
type Backend struct {
	mu     sync.Mutex
	script Script
	delay  time.Duration // of each step
	fail   func(prompt string, written int) error
	watch  func(prompt string, tokens int)
	tok    *tokenizer.Tokenizer

	steps atomic.Int64
}

// NewBackend makes a backend for the checkpoint at path.
func NewBackend(path string, script Script) (*Backend, error) {
	p, err := model.OpenPlan(path, 0)
	if err != nil {
		return nil, err
	}
	return &Backend{script: script, tok: p.Tokenizer}, p.Close()
}

// SetScript replaces the script.
func (b *Backend) SetScript(s Script) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.script = s
}

// SetDelay makes each step take so long.
func (b *Backend) SetDelay(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.delay = d
}

// SetFail sets a function that can make a step fail, after the model has written so many tokens behind a prompt.
func (b *Backend) SetFail(f func(prompt string, written int) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = f
}

// SetWatch sets a function that is told of each prompt that the script is asked about, with its length in tokens.
func (b *Backend) SetWatch(f func(prompt string, tokens int)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watch = f
}

// Steps returns the number of steps that ran.
func (b *Backend) Steps() int64 { return b.steps.Load() }

// Name is the backend's name.
func (b *Backend) Name() string { return "scripted" }

const pageBytes = 4 * backend.PageTokens

// Memory says that next to nothing is taken.
func (b *Backend) Memory(p *plan.Plan, o backend.Options) (backend.Memory, error) {
	m := backend.Memory{Weights: 1 << 20, Scratch: int64(o.MaxOut * p.Vocab * 4)}
	for range p.Groups {
		m.Page = append(m.Page, pageBytes)
	}
	return m, nil
}

// Compile makes the executor.
func (b *Backend) Compile(p *plan.Plan, o backend.Options) (backend.Exec, error) {
	if len(p.Groups) != 1 || len(p.States) > 0 {
		return nil, errors.New("servertest: scripted models have one group of pages and no states")
	}
	return &exec{
		b: b, vocab: p.Vocab, pages: make([][backend.PageTokens]int32, o.Pages[0]), logits: make([]float32, o.MaxOut*p.Vocab),
		rest: map[uint64]answer{},
	}, nil
}

// An answer is what remains to be written behind a history of tokens.
type answer struct {
	rest    []int32
	prompt  string
	written int
	asked   bool // it is the script's own for this history, which is asked anew
}

// exec remembers in each page which tokens it holds, so that a history is read through the page tables: a wrong table
// or a wrong prefix gives a wrong prompt.
type exec struct {
	b      *Backend
	vocab  int
	pages  [][backend.PageTokens]int32
	logits []float32
	batch  *backend.Batch
	rest   map[uint64]answer
}

func (x *exec) Submit(b *backend.Batch) error { x.batch = b; return nil }

func (x *exec) Wait() ([]float32, error) {
	x.b.steps.Add(1)
	x.b.mu.Lock()
	delay := x.b.delay
	x.b.mu.Unlock()
	if delay > 0 {
		time.Sleep(delay)
	}
	row := 0
	for i := range x.batch.Seqs {
		s := &x.batch.Seqs[i]
		for r := range s.Rows {
			pos := s.Pos + r
			x.pages[s.Pages[0][pos/backend.PageTokens]][pos%backend.PageTokens] = x.batch.Tokens[row]
			row++
		}
	}
	first, seq := 0, 0
	for i, out := range x.batch.Out {
		for int(out) >= first+x.batch.Seqs[seq].Rows {
			first += x.batch.Seqs[seq].Rows
			seq++
		}
		s := &x.batch.Seqs[seq]
		if err := x.next(x.logits[i*x.vocab:(i+1)*x.vocab], s, s.Pos+int(out)-first); err != nil {
			return nil, err
		}
	}
	return x.logits[:len(x.batch.Out)*x.vocab], nil
}

// next writes the logits behind position pos of a sequence.
func (x *exec) next(logits []float32, s *backend.Seq, pos int) error {
	history := make([]int32, pos+1)
	h := uint64(14695981039346656037)
	var a answer
	ok := false
	for p := range history {
		id := x.pages[s.Pages[0][p/backend.PageTokens]][p%backend.PageTokens]
		history[p] = id
		h = mix(h, id)
		// An answer goes on over tokens that were not drawn from it, one by one, but that a constraint forced.
		if known, found := x.rest[h]; found && (p < pos || !known.asked) {
			a, ok = known, true
		} else if ok = ok && len(a.rest) > 0 && a.rest[0] == id; ok {
			a.rest, a.written = a.rest[1:], a.written+1
		}
	}
	var other []int32
	x.b.mu.Lock()
	script, fail, watch := x.b.script, x.b.fail, x.b.watch
	x.b.mu.Unlock()
	if !ok {
		prompt := x.b.tok.Decode(history, false)
		if watch != nil {
			watch(prompt, len(history))
		}
		first, second, _ := strings.Cut(script(prompt), "\x00")
		a = answer{prompt: prompt}
		var err, err2 error
		a.rest, err = x.b.tok.Encode(nil, first, tokenizer.Options{ParseSpecial: true})
		other, err2 = x.b.tok.Encode(nil, second, tokenizer.Options{ParseSpecial: true})
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		x.keep(h, answer{a.rest, a.prompt, 0, true})
	}
	if fail != nil {
		if err := fail(a.prompt, a.written); err != nil {
			return err
		}
	}
	token := x.b.tok.EOS()[0]
	if len(a.rest) > 0 {
		token = a.rest[0]
		x.keep(mix(h, token), answer{a.rest[1:], a.prompt, a.written + 1, false})
	}
	for i := range logits {
		logits[i] = float32(mix(h, int32(i))%1024) / 1024
	}
	if len(other) > 0 {
		logits[other[0]] = 20
		x.keep(mix(h, other[0]), answer{other[1:], a.prompt, 1, false})
	}
	logits[token] = 30
	return nil
}

// keep remembers what follows a history of tokens.
func (x *exec) keep(h uint64, a answer) {
	if len(x.rest) > 1<<16 {
		clear(x.rest)
	}
	x.rest[h] = a
}

func mix(h uint64, t int32) uint64 {
	for range 4 {
		h = (h ^ uint64(t&0xff)) * 1099511628211
		t >>= 8
	}
	return h
}

func (x *exec) PageBytes(int) int { return pageBytes }

func (x *exec) PageOut(dst []byte, _ int, page int32) {
	for i, t := range x.pages[page] {
		binary.LittleEndian.PutUint32(dst[4*i:], uint32(t))
	}
}

func (x *exec) PageIn(_ int, page int32, src []byte) {
	for i := range x.pages[page] {
		x.pages[page][i] = int32(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

func (x *exec) PageCopy(_ int, dst, src int32) { x.pages[dst] = x.pages[src] }
func (x *exec) SlotBytes() int                 { return 0 }
func (x *exec) SlotOut([]byte, int32)          {}
func (x *exec) SlotIn(int32, []byte)           {}
func (x *exec) SlotCopy(int32, int32)          {}
func (x *exec) SlotZero(int32)                 {}
func (x *exec) Close() error                   { return nil }

// ErrScripted is an error for SetFail.
var ErrScripted = fmt.Errorf("the scripted model fails as it was told")
