package toolfmt

import (
	"fmt"
	"html"
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
		if !isBlank(answerText(m)) && !from.next(m.Content) {
			late = append(late, i)
		}
		for _, c := range m.Calls {
			if !all.has(c.Name) {
				return &LostText{m.Role, c.Name}
			}
		}
	}
	sort.SliceStable(late, func(a, b int) bool { return len(ms[late[a]].Content) > len(ms[late[b]].Content) })
	for _, i := range late {
		if !from.find(spellings(ms[i])) && !all.find(spellings(ms[i])) {
			return &LostText{ms[i].Role, answerText(ms[i])}
		}
	}
	return nil
}

// A page is a text without white space in which stretches are claimed, each once.
type page struct {
	text    string
	at      int // behind the last that followed in order
	claimed []span
}

type span struct{ start, end int }

func newPage(s string) *page { return &page{text: squeeze(s)} }

func squeeze(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

func isBlank(s string) bool { return squeeze(s) == "" }

func (p *page) has(s string) bool { return strings.Contains(p.text, squeeze(s)) }

// next claims s where it stands behind all that was claimed so far.
func (p *page) next(s string) bool {
	s = squeeze(s)
	i := strings.Index(p.text[p.at:], s)
	if i < 0 || s == "" {
		return s == ""
	}
	i += p.at
	p.at = i + len(s)
	p.claimed = append(p.claimed, span{i, p.at})
	return true
}

// find claims one of the spellings anywhere.
func (p *page) find(spellings []string) bool {
	for _, s := range spellings {
		for at := 0; ; {
			i := strings.Index(p.text[at:], s)
			if i < 0 {
				break
			}
			i += at
			if next, free := p.free(i, i+len(s)); !free {
				at = next
				continue
			}
			p.claimed = append(p.claimed, span{i, i + len(s)})
			return true
		}
	}
	return false
}

// free tells whether a stretch is not claimed, or else where to look on.
func (p *page) free(start, end int) (next int, ok bool) {
	for _, c := range p.claimed {
		if c.start < end && start < c.end {
			return c.end, false
		}
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
