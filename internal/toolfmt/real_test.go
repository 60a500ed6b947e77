package toolfmt

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
)

// TestRealOutputs parses what two small models really answered, at temperature 0, to everyday requests with one to four
// tools in their own template: testdata/make_qwen_real.py asks them. A row without a call is one that must stay text:
// an invented name, a repeated schema, plain code.
func TestRealOutputs(t *testing.T) {
	f, err := os.Open("testdata/qwen-real.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	byName := map[string]Tool{}
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	calls := map[string]int{}
	for first := true; sc.Scan(); first = false {
		if first {
			var head struct{ Tools []Tool }
			if err := json.Unmarshal(sc.Bytes(), &head); err != nil {
				t.Fatal(err)
			}
			for _, tool := range head.Tools {
				byName[tool.Name] = tool
			}
			continue
		}
		var row struct {
			Model, Ask, Out, Call string
			Tools                 []string
		}
		if err := json.Unmarshal(sc.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		var tools []Tool
		for _, name := range row.Tools {
			tools = append(tools, byName[name])
		}
		o := parseSplit(t, formatNamed(t, "hermes"), tools, Options{}, row.Out)
		switch {
		case row.Call == "" && (len(o.calls) != 0 || o.text != row.Out):
			t.Errorf("%s, %q: %q is no call, got %s", row.Model, row.Ask, row.Out, o)
		case row.Call != "" && (len(o.calls) != 1 || o.text != "" || !sameCall(t, o.calls[0], row.Call)):
			t.Errorf("%s, %q: want %s, got %s", row.Model, row.Ask, row.Call, o)
		}
		calls[row.Model] += len(o.calls)
	}
	if calls["Qwen2.5-Coder-0.5B-Instruct"] < 26 || calls["Qwen2.5-Coder-1.5B-Instruct"] < 30 {
		t.Errorf("calls found: %v", calls)
	}
}
