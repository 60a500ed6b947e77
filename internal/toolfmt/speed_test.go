//go:build unix

package toolfmt

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"
)

// feedBy parses in pieces of n bytes.
func feedBy(t testing.TB, f *Format, in string, n int) outcome {
	p := f.NewParser(everyday, Options{})
	var ev []Event
	for i := 0; i < len(in); i += n {
		ev = append(ev, p.Feed(in[i:min(i+n, len(in))])...)
	}
	return fold(t, append(ev, p.End()...))
}

// TestLongOutputs wants work that grows with the output, not with its square: hundreds of kilobytes, in small
// pieces, of all that a parser could be tempted to read again.
func TestLongOutputs(t *testing.T) {
	const size, times = 12_500, 16
	call := func(before, after string, quoted bool) func(int) string {
		return func(n int) string {
			code := strings.Repeat("if (x > 1) { y[i] = \"a\"; }\n", n/28)
			if quoted {
				b, _ := json.Marshal(code)
				code = string(b)
			}
			return before + code + after
		}
	}
	repeat := func(s string) func(int) string {
		return func(n int) string { return strings.Repeat(s, n/len(s)) }
	}
	for _, c := range []struct {
		family, name string
		in           func(size int) string
	}{
		{"hermes", "call", call("<tool_call>\n{\"name\": \"write_file\", \"arguments\": {\"path\": \"a\", "+
			"\"content\": ", "}}\n</tool_call>", true)},
		{"hermes", "bare call", call("{\"name\": \"write_file\", \"arguments\": {\"path\": \"a\", \"content\": ", "}}", true)},
		{"qwen3-coder", "call", call("<tool_call>\n<function=write_file>\n<parameter=path>\na\n</parameter>\n<parameter=content>\n", "\n</parameter>\n</function>\n</tool_call>", false)},
		{"lfm2", "call", call("<|tool_call_start|>[write_file(path=\"a\", content=", ")]<|tool_call_end|>", true)},
		{"gemma4", "call", call("<|tool_call>call:write_file{path:<|\"|>a<|\"|>,content:<|\"|>", "<|\"|>}<tool_call|>", false)},
		{"glm", "call", call("<tool_call>write_file\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n<arg_key>content</arg_key>\n<arg_value>", "</arg_value>\n</tool_call>", false)},
		{"harmony", "call", call("<|channel|>commentary to=functions.write_file "+
			"<|constrain|>json<|message|>{\"path\":\"a\",\"content\":", "}<|call|>", true)},
		{"hermes", "text", call("", "", false)},
		{"hermes", "open objects", repeat("{\"name\":")},
		{"hermes", "open lists", repeat("[{")},
		{"hermes", "marks", repeat("<tool_call>")},
		{"hermes", "half marks", repeat("<tool_")},
		{"hermes", "fences", repeat("```json\n{\n")},
		{"gemma3", "python", repeat("get_weather(")},
		{"pythonic", "lists", repeat("[get_weather(location=[\"a\", ")},
		{"harmony", "marks", repeat("<|channel|>analysis")},
	} {
		t.Run(c.family+"/"+c.name, func(t *testing.T) {
			f := formatNamed(t, c.family)
			short, long := c.in(size), c.in(size*times)
			o := feedBy(t, f, long, 7)
			if c.name == "call" && (len(o.calls) != 1 || len(o.calls[0]) < size*times) {
				t.Errorf("%d calls", len(o.calls))
			}
			inParts := func() {
				for range times {
					feedBy(t, f, short, 7)
				}
			}
			r := slowdown(t, times/2, inParts, func() { feedBy(t, f, long, 7) })
			t.Logf("%d bytes take %.1f times as long as in %d parts", len(long), r, times)
			if r > times/2 {
				t.Errorf("%d bytes take %.1f times as long as in %d parts", len(long), r, times)
			}
		})
	}
}

// slowdown returns how many times the processor time of parts whole takes, each at its best. How fast the machine is
// and what else it does falls out: both run in turns, until the ratio is at most enough or many turns have not brought
// it there.
func slowdown(t *testing.T, enough float64, parts, whole func()) float64 {
	t.Helper()
	best := [2]time.Duration{1 << 62, 1 << 62}
	for turn := 0; ; turn++ {
		for i, f := range []func(){parts, whole} {
			start := spent(t)
			f()
			best[i] = min(best[i], max(spent(t)-start, time.Microsecond))
		}
		ratio := float64(best[1]) / float64(best[0])
		if turn >= 1 && ratio <= enough || turn >= 7 {
			return ratio
		}
	}
}

// spent is the processor time of this process: what other programs take does not count.
func spent(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
