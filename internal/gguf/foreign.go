package gguf

import (
	"fmt"

	"github.com/baleenrun/baleen/internal/quant"
)

// removedTypes names the formats that GGUF once had under these numbers.
var removedTypes = map[uint32]string{
	4: "Q4_2", 5: "Q4_3", 31: "Q4_0_4_4", 32: "Q4_0_4_8", 33: "Q4_0_8_8", 36: "IQ4_NL_4_4", 37: "IQ4_NL_4_8", 38: "IQ4_NL_8_8",
}

// forkTypes names the formats that only the ik_llama.cpp fork has. It stores each format also with its rows
// interleaved, under the same number plus 200.
var forkTypes = map[uint32]string{
	97: "Q8_0_X4", 98: "Q8_1_X4", 99: "Q8_2_X4",
	133: "Q6_0", 134: "IQ1_BN", 135: "IQ2_BN", 136: "Q8_K64", 137: "IQ2_K", 138: "IQ3_K", 139: "IQ4_K", 140: "IQ5_K", 141: "IQ6_K",
	144: "IQ4_KS", 145: "IQ2_KS", 146: "IQ4_KSS", 147: "Q8_K16", 148: "Q8_K32", 149: "Q8_KR8", 150: "Q8_K128", 151: "Q8_KV",
	152: "IQ5_KS", 153: "IQ2_KT", 154: "IQ3_KT", 155: "IQ4_KT", 156: "IQ3_KS", 157: "IQ2_KL", 158: "IQ1_KT",
}

// foreignType describes a format that cannot be read, for an error about it.
func foreignType(id uint32) string {
	if name, ok := removedTypes[id]; ok {
		return fmt.Sprintf("%s (type %d), which GGUF no longer has", name, id)
	}
	name, ok := forkTypes[id]
	if base := id - 200; !ok && id > 200 {
		if name, ok = forkTypes[base]; !ok && quant.Type(base).Known() {
			name, ok = quant.Type(base).String(), true
		}
		name += " with interleaved rows"
	}
	if ok {
		return fmt.Sprintf("%s (type %d), which only the ik_llama.cpp fork reads", name, id)
	}
	return fmt.Sprintf("%d, which is not known here", id)
}
