package toolfmt

import (
	"encoding/json"
	"fmt"
	"strings"
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

// TestLongOutputs wants time that grows with the output, not with its square: hundreds of kilobytes, in small
// pieces, of all that a parser could be tempted to read again.
func TestLongOutputs(t *testing.T) {
	const size = 200_000
	code := strings.Repeat("if (x > 1) { y[i] = \"a\"; }\n", size/28)
	arg, _ := json.Marshal(code)
	for _, c := range []struct{ family, name, in string }{
		{"hermes", "call", "<tool_call>\n{\"name\": \"write_file\", \"arguments\": {\"path\": \"a\", \"content\": " + string(arg) + "}}\n</tool_call>"},
		{"hermes", "bare call", "{\"name\": \"write_file\", \"arguments\": {\"path\": \"a\", \"content\": " + string(arg) + "}}"},
		{"qwen3-coder", "call", "<tool_call>\n<function=write_file>\n<parameter=path>\na\n</parameter>\n<parameter=content>\n" + code + "\n</parameter>\n</function>\n</tool_call>"},
		{"lfm2", "call", "<|tool_call_start|>[write_file(path=\"a\", content=" + string(arg) + ")]<|tool_call_end|>"},
		{"gemma4", "call", "<|tool_call>call:write_file{path:<|\"|>a<|\"|>,content:<|\"|>" + code + "<|\"|>}<tool_call|>"},
		{"glm", "call", "<tool_call>write_file\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n<arg_key>content</arg_key>\n<arg_value>" + code + "</arg_value>\n</tool_call>"},
		{"harmony", "call", "<|channel|>commentary to=functions.write_file <|constrain|>json<|message|>{\"path\":\"a\",\"content\":" + string(arg) + "}<|call|>"},
		{"hermes", "text", code},
		{"hermes", "open objects", strings.Repeat("{\"name\":", size/8)},
		{"hermes", "open lists", strings.Repeat("[{", size/2)},
		{"hermes", "marks", strings.Repeat("<tool_call>", size/11)},
		{"hermes", "half marks", strings.Repeat("<tool_", size/6)},
		{"hermes", "fences", strings.Repeat("```json\n{\n", size/10)},
		{"gemma3", "python", strings.Repeat("get_weather(", size/12)},
		{"pythonic", "lists", strings.Repeat("[get_weather(location=[\"a\", ", size/28)},
		{"harmony", "marks", strings.Repeat("<|channel|>analysis", size/19)},
	} {
		t.Run(c.family+"/"+c.name, func(t *testing.T) {
			start := time.Now()
			o := feedBy(t, formatNamed(t, c.family), c.in, 7)
			took := time.Since(start)
			if c.name == "call" && (len(o.calls) != 1 || len(o.calls[0]) < size) {
				t.Errorf("%d calls", len(o.calls))
			}
			if took > 10*time.Second {
				t.Errorf("%d bytes took %v", len(c.in), took)
			}
			if testing.Verbose() {
				fmt.Println(c.family, c.name, took)
			}
		})
	}
}
