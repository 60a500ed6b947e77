package toolfmt

import (
	"errors"
	"fmt"
	"html"
	"slices"
	"sort"
	"strings"
	"unicode"

	"github.com/baleenrun/baleen/internal/chattmpl"
)

// LostText is the error of a conversation of which the model's template leaves something out: the model would answer
// another conversation than the one that was sent.
type LostText struct {
	Role string // of the message
	Text string // what is missing
}

func (e *LostText) Error() string {
	const shown = 40
	text := strings.Join(strings.Fields(e.Text), " ")
	if r := []rune(text); len(r) > shown {
		text = string(r[:shown]) + "…"
	}
	return fmt.Sprintf("it leaves out %q of the message with role %s", text, e.Role)
}

// checkLost returns a *LostText where the text of a message, or the name of a call, is not in the rendered prompt.
// Templates may change white space and cases of quoting, take reasoning out of earlier answers, and obey switches.
// They keep the order, in which the search goes on from one text to the next; what costs more than it should is refused.
func checkLost(out chattmpl.Output, ms []Message) error {
	var given strings.Builder // what came out of messages
	for _, s := range out.Spans() {
		if s.FromInput {
			given.WriteString(s.Text)
		}
	}
	from, all := newPage(given.String()), newPage(out.Text())
	var late []int // messages that do not follow the one before
	for i, m := range ms {
		if !isBlank(answerText(m)) && !from.next(m.Content) && !from.next(answerText(m)) {
			late = append(late, i)
		}
		for _, c := range m.Calls {
			if !all.has(c.Name) {
				return lost(m.Role, c.Name, all)
			}
		}
	}
	sort.SliceStable(late, func(a, b int) bool { return len(ms[late[a]].Content) > len(ms[late[b]].Content) })
	for _, i := range late {
		if !from.find(spellings(ms[i])) && !all.find(spellings(ms[i])) {
			return lost(ms[i].Role, answerText(ms[i]), from, all)
		}
	}
	return nil
}

// maxSearch bounds the bytes that are looked through for texts: a conversation that is in order is looked through once
// or twice.
const maxSearch = 1 << 30

// ErrTooScattered is the error of a conversation whose prompt cannot be searched for what it says in reasonable time.
var ErrTooScattered = errors.New("it shows too many texts out of their order to find them all")

// A page is a text without white space in which stretches are claimed, each once.
type page struct {
	text    string
	at      int // behind the last that followed in order
	named   int // behind the last name
	claimed []span
	tried   map[string]int // up to where all places of a text are claimed
	spent   int            // bytes that were looked through
}

type span struct{ start, end int }

func newPage(s string) *page { return &page{text: squeeze(s), tried: map[string]int{}} }

// lost is the error of a text that was not found in pages.
func lost(role, text string, pages ...*page) error {
	for _, p := range pages {
		if p.spent > maxSearch {
			return ErrTooScattered
		}
	}
	return &LostText{role, text}
}

// index is strings.Index from a place on; -1 also where too much was looked through.
func (p *page) index(s string, at int) int {
	if p.spent > maxSearch || at > len(p.text) {
		return -1
	}
	i := strings.Index(p.text[at:], s)
	if i < 0 {
		p.spent += len(p.text) - at
		return -1
	}
	p.spent += i + len(s)
	return at + i
}

func squeeze(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

func isBlank(s string) bool { return squeeze(s) == "" }

// has tells whether s stands behind the last such text, or else anywhere.
func (p *page) has(s string) bool {
	s = squeeze(s)
	i := p.index(s, p.named)
	if i < 0 {
		return p.index(s, 0) >= 0
	}
	p.named = i + len(s)
	return true
}

// next claims s where it stands behind all that was claimed so far.
func (p *page) next(s string) bool {
	s = squeeze(s)
	i := p.index(s, p.at)
	if i < 0 || s == "" {
		return s == ""
	}
	p.at = i + len(s)
	p.claim(span{i, p.at})
	return true
}

// find claims one of the spellings anywhere.
func (p *page) find(spellings []string) bool {
	for _, s := range spellings {
		for at := p.tried[s]; ; {
			i := p.index(s, at)
			if i < 0 {
				break
			}
			next, free := p.free(i, i+len(s))
			if !free {
				at = next
				continue
			}
			p.claim(span{i, i + len(s)})
			p.tried[s] = i + len(s)
			return true
		}
		p.tried[s] = len(p.text) + 1
	}
	return false
}

// claim adds a stretch to those that are claimed, which stand in order and are joined where they touch.
func (p *page) claim(c span) {
	k, _ := slices.BinarySearchFunc(p.claimed, c.start, func(x span, at int) int { return x.start - at })
	before, after := k > 0 && p.claimed[k-1].end == c.start, k < len(p.claimed) && p.claimed[k].start == c.end
	switch {
	case before && after:
		p.claimed[k-1].end = p.claimed[k].end
		p.claimed = slices.Delete(p.claimed, k, k+1)
	case before:
		p.claimed[k-1].end = c.end
	case after:
		p.claimed[k].start = c.start
	default:
		p.claimed = slices.Insert(p.claimed, k, c)
	}
}

// free tells whether a stretch is not claimed, or else where to look on.
func (p *page) free(start, end int) (next int, ok bool) {
	k, _ := slices.BinarySearchFunc(p.claimed, start, func(x span, at int) int { return x.end - 1 - at })
	if k < len(p.claimed) && p.claimed[k].start < end {
		return p.claimed[k].end, false
	}
	return 0, true
}

// switches are words in messages that templates obey and take out.
var switches = []string{"/no_think", "/think", "/nothink", "/system_override"}

// spellings returns the forms in which a template may write a message's text, without white space.
func spellings(m Message) []string {
	texts := []string{m.Content, answerText(m)}
	bare := answerText(m)
	for _, w := range switches {
		bare = strings.ReplaceAll(bare, w, "")
	}
	var out []string
	for _, t := range append(texts, bare) {
		if t = squeeze(t); t == "" {
			continue
		}
		out = append(out, t, html.EscapeString(t))
	}
	for _, t := range texts {
		q := encode(t)
		out = append(out, squeeze(q[1:len(q)-1]))
		out = append(out, squeeze(strings.Trim(escapeASCII(q), `"`)))
	}
	return out
}

// escapeASCII writes the characters of JSON text outside ASCII as escapes.
func escapeASCII(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case r > 0xFFFF:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3FF)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// answerText is a message's text without the reasoning that an assistant's may begin with.
func answerText(m Message) string {
	if m.Role != "assistant" {
		return m.Content
	}
	text := m.Content
	for _, t := range thinkPairs {
		if i := strings.LastIndex(text, t.close); i >= 0 {
			text = text[i+len(t.close):]
		}
	}
	return text
}
