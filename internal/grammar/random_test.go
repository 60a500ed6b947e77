package grammar

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// RandomSchema makes a schema of the kinds that people write, for tests.
func RandomSchema(r *rand.Rand, depth int) string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	if depth == 0 || r.IntN(4) == 0 {
		return pick(
			`{"type":"string"}`,
			`{"type":"integer"}`,
			`{"type":"number","minimum":-3.5,"maximum":120}`,
			`{"type":"boolean"}`,
			`{"enum":["red","green",1,null]}`,
			`{"type":"string","pattern":"^[A-Z]{2}-\\d+$"}`,
			`{"type":"string","maxLength":7}`,
			`{"type":"string","minLength":2,"maxLength":300}`,
			`{"format":"date-time"}`,
			`{"const":{"k":[1,"é"]}}`,
			`{}`,
			`{"type":["string","null"]}`,
			`{"type":"integer","multipleOf":7}`,
			`{"not":{"type":"string"}}`,
			`{"type":"string","pattern":"x"}`,
			`{"type":"string","format":"uuid"}`,
		)
	}
	switch r.IntN(6) {
	case 0:
		return fmt.Sprintf(
			`{"type":"array","items":%s,"minItems":%d,"maxItems":%d}`,
			RandomSchema(r, depth-1),
			r.IntN(2),
			2+r.IntN(3),
		)
	case 1:
		return fmt.Sprintf(`{"anyOf":[%s,%s]}`, RandomSchema(r, depth-1), RandomSchema(r, depth-1))
	case 2:
		return fmt.Sprintf(
			`{"type":"object","patternProperties":{"^a":%s},"additionalProperties":%s}`,
			RandomSchema(r, depth-1),
			RandomSchema(r, depth-1),
		)
	case 3:
		return fmt.Sprintf(
			`{"oneOf":[{"type":"object","required":["k"],"properties":{"k":{"const":"p"},"v":%s}},{"type":"object","required":["k"],"properties":{"k":{"const":"q"},"w":%s}}]}`,
			RandomSchema(r, depth-1),
			RandomSchema(r, depth-1),
		)
	}
	var props, required []string
	for i := range 1 + r.IntN(4) {
		name := fmt.Sprintf("%s%d", pick("name", "a", "valué", "kind of"), i)
		props = append(props, fmt.Sprintf(`%q:%s`, name, RandomSchema(r, depth-1)))
		if r.IntN(2) == 0 {
			required = append(required, fmt.Sprintf("%q", name))
		}
	}
	return fmt.Sprintf(
		`{"type":"object","properties":{%s},"required":[%s]%s}`,
		strings.Join(props, ","),
		strings.Join(required, ","),
		pick("", `,"additionalProperties":false`, `,"additionalProperties":{"type":"integer"}`),
	)
}
