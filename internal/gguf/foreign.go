package gguf

import "fmt"

// foreignTypes names the formats that never were, or are no longer, part of the common numbering, so that refusing them
// can say what the file needs. The numbers from 97 belong to the ik_llama.cpp fork.
var foreignTypes = map[uint32]string{
	4: "Q4_2", 5: "Q4_3", 31: "Q4_0_4_4", 32: "Q4_0_4_8", 33: "Q4_0_8_8", 36: "IQ4_NL_4_4", 37: "IQ4_NL_4_8", 38: "IQ4_NL_8_8",
}

// foreignType describes a format that cannot be read.
func foreignType(id uint32) string {
	name, ok := foreignTypes[id]
	switch {
	case ok && id < 97:
		return fmt.Sprintf("%s (type %d), which GGUF no longer has", name, id)
	case ok:
		return fmt.Sprintf("%s (type %d), which only the ik_llama.cpp fork reads", name, id)
	}
	return fmt.Sprintf("%d, which is not known here", id)
}
