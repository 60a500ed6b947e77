package modelfile

import (
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	text := "# a comment\nFROM qwen2.5-coder-0.5b\n\nparameter temperature 0.3\r\n" +
		"PARAMETER stop \"<end>\"\nSYSTEM \"\"\"You are\na \"whale\".\"\"\"\n  TEMPLATE {{ messages[0].content }}  \n" +
		"MESSAGE user Is it wet?\nMESSAGE assistant \"Yes.\"\nLICENSE \"\"\"\nFree.\n\"\"\""
	want := []Line{
		{2, "FROM", "", "qwen2.5-coder-0.5b"},
		{4, "PARAMETER", "temperature", "0.3"},
		{5, "PARAMETER", "stop", "<end>"},
		{6, "SYSTEM", "", "You are\na \"whale\"."},
		{8, "TEMPLATE", "", "{{ messages[0].content }}"},
		{9, "MESSAGE", "user", "Is it wet?"},
		{10, "MESSAGE", "assistant", "Yes."},
		{11, "LICENSE", "", "\nFree.\n"},
	}
	got, err := Parse(text)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, want)
	}
}

// goRound are texts that a Modelfile must give back as they are.
var goRound = []string{
	"", " ", "a", `"`, `""`, `"""`, `""""`, "He said \"yes\"", "\"yes\" he said", "a\nb", "a\n", "\na", "\n", "\n\n", "a\"\nb", "a\"\"\nb\"",
	"a \"\"\" b\nc", "a\n\"\"\"", " a ", "\ta\t", "a\r\nb", "a\r", "# no comment\nFROM x", "{%- if x == \"y\" " +
		"%}\n{{ \"z\" }}",
}

func TestQuote(t *testing.T) {
	for _, text := range goRound {
		again(t, text)
	}
	for _, text := range []string{"a\"\"\"\nb", "\"\"\" \nb"} {
		if q, ok := Quote(text); ok {
			t.Errorf("%q is quoted as %s", text, q)
		}
	}
}

// again reads a text that was quoted.
func again(t *testing.T, text string) {
	t.Helper()
	q, ok := Quote(text)
	if !ok {
		return
	}
	lines, err := Parse("FROM a\nSYSTEM " + q + "\nREQUIRES 1\n")
	if err != nil || len(lines) != 3 || lines[1].Value != text || lines[2].Value != "1" {
		t.Errorf("%q: %v %+v", text, err, lines)
	}
}

func FuzzQuote(f *testing.F) {
	for _, text := range goRound {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { again(t, text) })
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "line 1: there is no FROM",
		"SYSTEM x":                          "there is no FROM",
		"FROM a\nFORM b":                    `line 2: there is no instruction "FORM"`,
		"FROM":                              "line 1: FROM needs a value",
		"FROM a\nPARAMETER":                 "line 2: PARAMETER needs a name",
		"FROM a\nPARAMETER seed":            "line 2: PARAMETER needs a value",
		"FROM a\n\nSYSTEM \"\"\"\nopen":     `line 3: no line ends with the closing """ of the text that begins here`,
		"FROM a\nSYSTEM \"\"\"b\nc\"\"\" d": `line 2: no line ends with the closing """`,
		"FROM a\nSYSTEM \"b\nc":             `line 2: no line ends with the closing " of`,
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("FROM a\nSYSTEM \"\"\"x\ny\"\"\"\nPARAMETER stop \"a\"")
	f.Add("FROM \"\"\"")
	f.Fuzz(func(t *testing.T, text string) {
		lines, err := Parse(text)
		if err != nil {
			return
		}
		n := 0
		for _, l := range lines {
			if l.Number <= n || l.Number > strings.Count(text, "\n")+1 {
				t.Fatalf("line %d behind line %d of %q", l.Number, n, text)
			}
			n = l.Number
		}
	})
}
