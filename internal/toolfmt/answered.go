package toolfmt

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/baleenrun/baleen/internal/chattmpl"
)

// Conclusion is the line that Conclude puts behind results. Of a dozen wordings and places that were tried with
// Qwen2.5-Coder 0.5B and 1.5B, this one behind the mark that closes the result made them answer each time; inside
// of the marks, or in words that leave it to the model, they called again.
const Conclusion = "Answer the user now, in plain words."

// resultClose ends a result in templates that put marks around it.
const resultClose = "</tool_response>"

// Conclude puts the Conclusion behind the result that a rendered conversation ends with: behind the mark that closes
// it, or at the end of its text where there is no such mark. Everything before stays as it was, so that its prefix is
// found in caches. result is that result's text. It reports false where it cannot tell the place.
func Conclude(spans []chattmpl.Span, result string) ([]chattmpl.Span, bool) {
	last := -1
	for i, s := range spans {
		if s.FromInput {
			last = i
		}
	}
	if last < 0 ||
		strings.TrimSpace(result) == "" &&
			(last+1 == len(spans) || !strings.Contains(spans[last+1].Text, resultClose)) {
		return nil, false
	}
	line := chattmpl.Span{Text: "\n" + Conclusion, FromInput: true}
	out := slices.Clone(spans[:last+1])
	if last+1 < len(spans) {
		tail := spans[last+1].Text
		at := strings.LastIndex(tail, resultClose)
		if at >= 0 {
			at += len(resultClose)
		} else {
			at = 0
		}
		if at > 0 {
			out = append(out, chattmpl.Span{Text: tail[:at]})
		}
		return append(append(out, line, chattmpl.Span{Text: tail[at:]}), spans[last+2:]...), true
	}
	return append(out, line), true
}

// Answered is what a model knows when a conversation ends with results: its calls since the user's last message. It
// tells which new call adds nothing. It is immutable.
type Answered struct {
	last []Call // answered by the results at the end, or twice before by the same result
	all  []Call
	user string // what the user said last
}

// AnsweredBy reads a conversation. It returns nil where it does not end with results of calls.
func AnsweredBy(ms []Message) *Answered {
	end := len(ms)
	for end > 0 && ms[end-1].Role == "tool" {
		end--
	}
	if end == len(ms) || end == 0 || len(ms[end-1].Calls) == 0 {
		return nil
	}
	a := &Answered{last: ms[end-1].Calls}
	first := end - 1
	for first > 0 && ms[first].Role != "user" {
		first--
	}
	a.user = ms[first].Content
	type outcome struct {
		call   Call
		result string
	}
	var seen []outcome
	for i := first; i < len(ms); i++ {
		for n, c := range ms[i].Calls {
			a.all = append(a.all, c)
			result, ok := resultOf(ms[i+1:], c, n)
			if !ok {
				continue
			}
			if slices.ContainsFunc(seen, func(o outcome) bool { return o.result == result && o.call.Same(c) }) {
				a.last = append(slices.Clip(a.last), c)
			}
			seen = append(seen, outcome{c, result})
		}
	}
	return a
}

// resultOf finds the result of the nth call of a message in what follows it: by its id, or by its place where calls
// have none.
func resultOf(rest []Message, c Call, n int) (string, bool) {
	for i, m := range rest {
		switch {
		case m.Role != "tool":
			return "", false
		case c.ID != "" && m.CallID == c.ID, c.ID == "" && i == n:
			return m.Content, true
		}
	}
	return "", false
}

// Repeats tells whether a call is one that the results at the end answer already: the same tool with the same
// arguments, whatever their order. A call that was made earlier, with others in between, is none, since something may
// have changed; only when it brought the same result twice it is.
func (a *Answered) Repeats(call Call) bool {
	return slices.ContainsFunc(a.last, func(c Call) bool { return c.Same(call) })
}

// MayRepeat tells whether a call may still become one that Repeats finds, of which the name and the beginning of the
// arguments' JSON are known. It compares members as they are written.
func (a *Answered) MayRepeat(name, args string) bool {
	return slices.ContainsFunc(a.last, func(c Call) bool { return c.Name == name && mayBecome(args, c.Arguments) })
}

// Strays tells whether a call is none that the user asked for, as far as can be seen: it was made since the user's
// last message, or the required arguments are not found in that message.
func (a *Answered) Strays(call Call, tools []Tool) bool {
	if slices.ContainsFunc(a.all, func(c Call) bool { return c.Same(call) }) {
		return true
	}
	for _, t := range tools {
		if t.Name == call.Name {
			ti := readTool(t)
			return !ti.said(call.Arguments, a.user) ||
				slices.ContainsFunc(a.all, func(c Call) bool { return ti.sameRequired(c, call) })
		}
	}
	return true
}

// sameRequired tells whether two calls of the tool differ only in what may be left out.
func (t *toolInfo) sameRequired(a, b Call) bool {
	x, ok1 := readJSON(a.Arguments)
	y, ok2 := readJSON(b.Arguments)
	m, isObject1 := x.(map[string]any)
	n, isObject2 := y.(map[string]any)
	if a.Name != b.Name || !ok1 || !ok2 || !isObject1 || !isObject2 || len(t.required) == 0 {
		return false
	}
	for _, k := range t.required {
		if !reflect.DeepEqual(m[k], n[k]) {
			return false
		}
	}
	return true
}

// said tells whether text holds the values of a call's arguments: those that are required, or all where none is.
// Words of an enum and switches need not be said so.
func (t *toolInfo) said(args, text string) bool {
	var values map[string]any
	d := json.NewDecoder(strings.NewReader(args))
	d.UseNumber()
	if d.Decode(&values) != nil {
		return false
	}
	text = squash(strings.ToLower(text))
	var holds func(v any) bool
	holds = func(v any) bool {
		switch v := v.(type) {
		case string:
			return strings.Contains(text, squash(strings.ToLower(v)))
		case json.Number:
			return strings.Contains(text, squash(v.String()))
		case []any:
			return !slices.ContainsFunc(v, func(e any) bool { return !holds(e) })
		case map[string]any:
			for _, e := range v {
				if !holds(e) {
					return false
				}
			}
		}
		return true
	}
	for k, v := range values {
		if p := t.props[k]; len(t.required) > 0 && !t.requires(k) || p != nil && len(p.enum) > 0 {
			continue
		}
		if !holds(v) {
			return false
		}
	}
	return true
}

// attempt is the beginning of a call without marks.
var attempt = regexp.MustCompile("^\\s*(?:```(?:json)?\\s*)?\\{\\s*\"(?:name|function|tool)\"\\s*:\\s*\"([^\"]*)\"")

// Attempts tells whether an answer is meant as a call of an offered tool, though it is none: an object without marks
// that names the tool, whose arguments do not fit. open tells that more text is needed to tell.
func Attempts(text string, tools []Tool) (yes, open bool) {
	if m := attempt.FindStringSubmatch(text); m != nil {
		return indexTools(tools).resolve(m[1]) != nil, false
	}
	rest := strings.TrimSpace(text)
	for _, mark := range []string{"```json", "```"} {
		if partial(rest, mark) {
			return false, true
		}
		rest = strings.TrimSpace(strings.TrimPrefix(rest, mark))
	}
	return false, len(text) < 200 && (rest == "" || rest[0] == '{')
}

// Same tells whether two calls are of the same tool with the same arguments.
func (c Call) Same(d Call) bool { return c.Name == d.Name && sameJSON(c.Arguments, d.Arguments) }

// sameJSON compares two objects by meaning.
func sameJSON(a, b string) bool {
	x, ok1 := readJSON(a)
	y, ok2 := readJSON(b)
	return ok1 && ok2 && reflect.DeepEqual(x, y)
}

func readJSON(s string) (v any, ok bool) {
	if strings.TrimSpace(s) == "" {
		s = "{}"
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	err := d.Decode(&v)
	return v, err == nil
}

// MayBecome tells whether a call whose name and first piece of arguments are given may still become c.
func (c Call) MayBecome(name, args string) bool {
	return c.Name == name && mayBecome(args, c.Arguments)
}

// mayBecome tells whether the beginning of an object can be completed to one with the members of whole.
func mayBecome(begin, whole string) bool {
	v, ok := readJSON(whole)
	object, isObject := v.(map[string]any)
	if !ok || !isObject {
		return false
	}
	var left []string // members, as compact JSON
	for k, v := range object {
		b, err := json.Marshal(v)
		if err != nil {
			return false
		}
		left = append(left, compactJSON(quote(k)+":"+string(b)))
	}
	rest, found := strings.CutPrefix(compactJSON(begin), "{")
	if !found {
		return rest == ""
	}
	for rest != "" && rest != "}" {
		i := slices.IndexFunc(
			left,
			func(m string) bool { return strings.HasPrefix(rest, m) || strings.HasPrefix(m, rest) },
		)
		switch {
		case i < 0:
			return false
		case len(rest) <= len(left[i]):
			return true
		}
		rest = rest[len(left[i]):]
		left = slices.Delete(left, i, i+1)
		if next, more := strings.CutPrefix(rest, ","); more {
			rest = next
		} else if rest != "}" {
			return false
		}
	}
	return rest == "" || len(left) == 0
}

// compactJSON writes the beginning of JSON text without white space between its parts, and its strings in one
// spelling.
func compactJSON(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		switch {
		case isSpace(s[i]):
			i++
		case s[i] == '"':
			end := i + 1
			for end < len(s) && s[end] != '"' {
				if s[end] == '\\' {
					end++
				}
				end++
			}
			if end >= len(s) { // not yet closed
				cut := strings.IndexByte(s[i:], '\\')
				if cut < 0 {
					return b.String() + s[i:]
				}
				return b.String() + s[i:i+cut]
			}
			if text, ok := unquote([]byte(s[i : end+1])); ok {
				b.WriteString(quote(text))
			} else {
				b.WriteString(s[i : end+1])
			}
			i = end + 1
		default:
			b.WriteByte(s[i])
			i++
		}
	}
	return b.String()
}
