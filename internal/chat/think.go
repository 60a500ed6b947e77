package chat

import "github.com/baleenrun/baleen/internal/toolfmt"

// Efforts are the words for how much a model is to reason, from none to most.
var Efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra"}

// effortBudgets are the tokens of reasoning that an effort allows models whose templates know no efforts. Higher ones
// set no bound.
var effortBudgets = map[string]int{"low": 1024, "medium": 8192, "high": 24576}

// shownEffort is an effort as templates know it, which have three words at most.
func shownEffort(effort string) string {
	switch effort {
	case "none", "minimal":
		return "low"
	case "xhigh", "max", "ultra":
		return "high"
	}
	return effort
}

// thinking says what the template is told of reasoning.
func (m *Model) thinking(r *Request, f *toolfmt.Format) (toolfmt.PromptOptions, error) {
	o := toolfmt.PromptOptions{Thinking: r.Thinking}
	open, _ := f.ThinkTags()
	if r.Thinking != nil && *r.Thinking && r.ThinkingField != "" && open == "" && !f.SupportsThinkingSwitch() {
		return o, Unsupportedf(r.ThinkingField, "%s does not think", m.Info.Name)
	}
	if r.Effort == "" {
		return o, nil
	}
	if f.SupportsEffort() {
		o.Effort = shownEffort(r.Effort)
		return o, nil
	}
	if o.Thinking == nil {
		on := r.Effort != "none" && r.Effort != "minimal"
		o.Thinking = &on
	}
	return o, nil
}

// thinkingBudget is the number of tokens of reasoning after which the answer begins; 0: there is no bound.
func (r *Request) thinkingBudget(f *toolfmt.Format) int {
	if r.ThinkingBudget > 0 || f.SupportsEffort() {
		return r.ThinkingBudget
	}
	return effortBudgets[r.Effort]
}
