package grammar

type (
	ruleMachine struct{ sets []ruleSet }
	ruleSet     struct{ accepts bool }
)

func (r *ruleMachine) moves(m *machine, k key, b byte) []move { return nil }
