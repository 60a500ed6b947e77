package servertest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// A Rule is one line of a script: what the model writes behind prompts that have all of If and none of Unless. The
// texts are looked for behind the last turn of the user or of a tool, or in the whole prompt where Anywhere is set.
type Rule struct {
	If, Unless []string
	Anywhere   bool
	Reply      string
}

// ParseRules reads rules as JSON: a list of objects.
func ParseRules(b []byte) ([]Rule, error) {
	var rules []Rule
	if err := json.Unmarshal(b, &rules); err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	return rules, nil
}

// RuleScript makes a script of rules: the first that fits counts; none: "Hello!".
func RuleScript(rules []Rule) Script {
	return func(prompt string) string {
		last := LastTurn(prompt)
		for _, r := range rules {
			text := last
			if r.Anywhere {
				text = prompt
			}
			fits := true
			for _, s := range r.If {
				fits = fits && strings.Contains(text, s)
			}
			for _, s := range r.Unless {
				fits = fits && !strings.Contains(text, s)
			}
			if fits {
				return r.Reply
			}
		}
		return "Hello!"
	}
}

// LastTurn is what stands behind the last mark of a user's turn in a ChatML prompt.
func LastTurn(prompt string) string {
	if i := strings.LastIndex(prompt, "<|im_start|>user\n"); i >= 0 {
		return prompt[i:]
	}
	return prompt
}

// told finds what a last turn tells to write: CALL<<name {"a": 1}>> a call, SAY<<text>> a text.
var told = regexp.MustCompile(`(?s)(CALL|SAY)<<(.*?)>>`)

// behind is what of a text is not yet there at a prompt's end, which has its begin where a call is forced.
func behind(prompt, text string) string {
	for n := len(text); n > 0; n-- {
		if strings.HasSuffix(prompt, text[:n]) {
			return text[n:]
		}
	}
	return text
}

// Demo is a script for tests with real clients: words in the last turn say what to write.
func Demo(prompt string) string {
	last := LastTurn(prompt)
	if m := told.FindStringSubmatch(last); m != nil && !strings.Contains(last, "<tool_response>") {
		if m[1] == "SAY" {
			return m[2]
		}
		name, arguments, _ := strings.Cut(m[2], " ")
		return behind(prompt, ToolCall(name, arguments))
	}
	var count strings.Builder
	for i := 1; i <= 400; i++ {
		fmt.Fprintf(&count, "%d ", i)
	}
	return RuleScript([]Rule{
		{If: []string{"<tool_response>"}, Reply: "It is sunny in Oslo."},
		{
			If:    []string{"TWO CALLS"},
			Reply: ToolCall("get_weather", `{"city": "Oslo"}`) + "\n" + ToolCall("get_weather", `{"city": "Bergen"}`),
		},
		{If: []string{"NAMESPACE"}, Reply: ToolCall("get__weather", `{"city": "Oslo"}`)},
		{If: []string{"WEATHER"}, Reply: "Let me look.\n" + ToolCall("get_weather", `{"city": "Oslo"}`)},
		{If: []string{"THINK"}, Reply: "<think>\nFour words of thought.\n</think>\n\nThe answer is 42."},
		{If: []string{"COUNT"}, Reply: count.String()},
		{If: []string{"UNICODE"}, Reply: "Grüße, 世界 🐋!"},
	})(prompt)
}
